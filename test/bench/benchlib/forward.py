# SPDX-License-Identifier: BSD-3-Clause
"""One worker, 60-byte UDP, net_pcap in, net_null out, ten routes: sluice beside testpmd's io mode."""

import os
import pathlib
import statistics
import sys
import tempfile

from . import daemon_config, pcap, report
from .daemon_config import MEMORY_MB
from .process import Hugepages, Sluice, Testpmd

COUNTS = [1, 15, 100, 500, 1000, 2000, 4000, 8000]
STAGES = ["receive", "input", "lookup", "forward", "transmit"]


def measure(options, directory: pathlib.Path, family: str, count: int, hugepages: bool) -> report.Row:
    rounds, seconds = (3, 0.25) if options.quick else (7, 0.5)
    path = directory / f"{family}-{count}.pcap"
    pcap.write(path, family, count)
    row = report.Row(f"forward/{family}/{count}", "TSC cycles/packet", against="testpmd io")
    name = f"bench{os.getpid()}"
    floor = Testpmd(daemon_config.devices(path), hugepages, name, MEMORY_MB)
    floor.stop_running()
    try:
        routes = daemon_config.over_gateways(family, pcap.routes(family))
        sluice = Sluice(options.build, daemon_config.text(path, family, routes, hugepages), name)
        try:
            sluice.wait_until_forwarding()
            tsc_hz = sluice.worker()["tsc_hz"]
            rates = []
            stages = dict.fromkeys(STAGES, 0.0)
            sampled = 0
            before = sluice.worker()
            for _ in range(rounds):
                first = sluice.worker()
                rates.append(sluice.rate(seconds))
                last = sluice.worker()
                # Within the round only: the burst that the stop falls into would be charged with it.
                for stage in STAGES:
                    stages[stage] += (last["stages"][stage] * last["sampled_packets"] -
                                      (first["stages"][stage] or 0) * first["sampled_packets"])
                sampled += last["sampled_packets"] - first["sampled_packets"]
                sluice.stop_running()
                floor.go_on()
                row.others.append(tsc_hz / floor.rate(seconds))
                floor.stop_running()
                sluice.go_on()
            row.values = [tsc_hz / rate for rate in rates]
            row.extra["mpps"] = statistics.median(rates) / 1e6
            row.extra["stages"] = {stage: cycles / max(sampled, 1) for stage, cycles in stages.items()}
            after = sluice.worker()
            drops = sluice.ask("stats", "drops")
            check(sluice, before, after, drops)
        finally:
            sluice.close()
    finally:
        floor.close()
    return row


def check(sluice: Sluice, before: dict, after: dict, drops) -> None:
    """A fast row that forwarded nothing would be worth nothing."""
    netdevs = {n["name"]: n for n in sluice.ask("stats", "show")["netdevs"]}
    moved = after["packets"] - before["packets"]
    if netdevs["p1"]["tx_packets"] < moved:
        raise RuntimeError(f"not everything was forwarded: {netdevs['p0']} {drops}")


def run(options):
    counts = [1, 100, 8000] if options.quick else COUNTS
    quiet = report.is_quiet()
    rows = []
    with Hugepages(2 * MEMORY_MB // 2 + 64) as hugepages, tempfile.TemporaryDirectory() as directory:
        print(f"hugepages: {'yes' if hugepages else 'no (expect more cycles everywhere)'}")
        print(f"{'':22}{'Mpps':>7}{'sluice':>18}{'floor':>18}{'ratio':>7}   " +
              "".join(f"{stage:>9}" for stage in STAGES))
        for family in ("v4", "v6"):
            for count in counts:
                row = measure(options, pathlib.Path(directory), family, count, hugepages)
                rows.append(row)
                j = row.as_json()
                stages = "".join(f"{row.extra['stages'][stage]:9.1f}" for stage in STAGES)
                print(f"{row.id:22}{row.extra['mpps']:7.2f}"
                      f"{j['value']:7.1f} ({j['min']:.0f}-{j['max']:.0f})".ljust(47) +
                      f"{j['against_value']:7.1f} ({min(row.others):.0f}-{max(row.others):.0f})".ljust(18) +
                      f"{j['ratio']:7.2f}   {stages}")
                sys.stdout.flush()
    print("TSC cycles per packet, the whole loop: median (min-max); stages: sluice's own, sampled.")
    return quiet, rows
