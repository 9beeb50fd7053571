# SPDX-License-Identifier: BSD-3-Clause
"""Where a packet's cycles go: the worker's own stages, in a daemon between net_pcap and net_null."""

import os
import pathlib
import statistics
import sys
import tempfile

from . import daemon_config, pcap, report
from .daemon_config import MEMORY_MB
from .process import Hugepages, Sluice

STAGES = ["receive", "input", "lookup", "forward", "transmit"]
KINDS = {"plain": [1, 100, 8000], "group": [100], "vlan": [100]}


def between(first: dict, last: dict, stage: str) -> float:
    """TSC cycles per packet between two looks at a worker, whose figures are averages since its start."""
    sampled = last["sampled_packets"] - first["sampled_packets"]
    return (last["stages"][stage] * last["sampled_packets"] -
            (first["stages"][stage] or 0) * first["sampled_packets"]) / max(sampled, 1)


def daemon(directory: pathlib.Path, family: str, kind: str, count: int, hugepages: bool) -> str:
    path = directory / f"{family}-{kind}-{count}.pcap"
    vlans = kind == "vlan"
    pcap.write(path, family, count, vlan_id=daemon_config.VLAN_IN if vlans else 0)
    prefixes = pcap.routes(family)
    if kind == "group":
        return daemon_config.text(path, family, daemon_config.over_group(prefixes, 10), hugepages, hops=4,
                                  sections=daemon_config.groups(family, 4))
    return daemon_config.text(path, family, daemon_config.over_gateways(family, prefixes), hugepages, vlans=vlans)


def measure(options, config: str, row_id: str) -> list:
    rounds, seconds = (3, 0.1) if options.quick else (9, 0.2)
    rows = {stage: report.Row(f"{row_id}/{stage}", "TSC cycles/packet") for stage in STAGES}
    sluice = Sluice(options.build, config, f"stages{os.getpid()}")
    try:
        sluice.wait_until_forwarding()
        for _ in range(rounds):
            first = sluice.worker()
            sluice.window(seconds)
            last = sluice.worker()
            for stage in STAGES:
                rows[stage].values.append(between(first, last, stage))
    finally:
        sluice.close()
    return list(rows.values())


def run(options):
    quiet = report.is_quiet()
    rows = []
    with Hugepages(2 * MEMORY_MB // 2 + 64) as hugepages, tempfile.TemporaryDirectory() as directory:
        print(f"{'':20}" + "".join(f"{stage:>10}" for stage in STAGES) + f"{'sum':>8}")
        for family in ("v4", "v6"):
            for kind, counts in KINDS.items():
                for count in counts:
                    config = daemon(pathlib.Path(directory), family, kind, count, hugepages)
                    found = measure(options, config, f"stages/{family}/{kind}/{count}")
                    rows += found
                    medians = [statistics.median(row.values) for row in found]
                    print(f"{family + '/' + kind + '/' + str(count):20}" +
                          "".join(f"{median:10.1f}" for median in medians) + f"{sum(medians):8.1f}")
                    sys.stdout.flush()
    print("TSC cycles per packet, median; receive and transmit are mostly the drivers'.")
    return quiet, rows
