# SPDX-License-Identifier: BSD-3-Clause
"""The whole loop of a running daemon, drivers included, with the cache off, on and auto: net_pcap in, net_null out."""

import os
import pathlib
import tempfile
import time

from . import daemon_config, pcap, report
from .daemon_config import MEMORY_MB
from .process import Hugepages, Sluice

RULES = """routing-policy:
  - {{priority: 10, family: {family}, from: "{half}", table: 100}}
  - {{priority: 11, family: {family}, dscp: 8, table: 100}}
  - {{priority: 12, family: {family}, to: "{elsewhere}", table: 101}}
  - {{priority: 13, family: {family}, protocol: tcp, dport: 80, table: 101}}
  - {{priority: 14, family: {family}, from: "{half}", to: "{elsewhere}", type: blackhole}}
  - {{priority: 15, family: {family}, protocol: udp, sport: 53, table: 100}}
  - {{priority: 16, family: {family}, dscp: 46, table: 101}}
  - {{priority: 17, family: {family}, table: main}}
"""
WORDS = {"v4": {"family": "ipv4", "half": "10.0.0.128/25", "elsewhere": "203.0.113.0/24"},
         "v6": {"family": "ipv6", "half": "fd00::8000/113", "elsewhere": "2001:db8:ffff::/48"}}


def config(path: pathlib.Path, family: str, decision: bool, hugepages: bool) -> str:
    """`decision`: eight rules over three tables, strict source validation and a group of four."""
    if not decision:
        return daemon_config.text(path, family, daemon_config.over_group(pcap.routes(family), 1), hugepages,
                                  sections=daemon_config.groups(family, 1))
    words = WORDS[family]
    routes = daemon_config.over_group(pcap.routes(family), 10)
    routes += [f'{{to: "{words["elsewhere"]}", nexthop: 1, table: {table}}}' for table in (100, 101)]
    return daemon_config.text(path, family, routes, hugepages, hops=4, ingress="source-validation: strict",
                              sections=daemon_config.groups(family, 4) + RULES.format(**words))


def hits(sluice: Sluice, family: str) -> tuple:
    row = next(r for r in sluice.ask("cache", "show")["workers"] if r["family"] == f"ip{family}")
    return row["hits"], row["hits"] + row["misses"]


def measure(options, directory: pathlib.Path, family: str, decision: bool, count: int, hugepages: bool) -> list:
    rounds, seconds = (4, 0.1) if options.quick else (9, 0.2)
    path = directory / f"{family}-{count}.pcap"
    pcap.write_random(path, family, count)
    cycles = {"off": [], "on": [], "auto": []}
    hit_rate = 0
    sluice = Sluice(options.build, config(path, family, decision, hugepages), f"bench{os.getpid()}")
    try:
        sluice.wait_until_forwarding()
        tsc_hz = sluice.worker()["tsc_hz"]
        for turn in range(rounds):
            modes = list(cycles)
            for mode in modes[turn % 3:] + modes[:turn % 3]:
                sluice.ask("cache", "set", mode)
                time.sleep(0.05)  # `auto` makes up its mind, others warm up
                before = hits(sluice, family)
                cycles[mode].append(tsc_hz / sluice.rate(seconds))
                if mode == "on":
                    after = hits(sluice, family)
                    hit_rate = (after[0] - before[0]) / max(after[1] - before[1], 1)
        if sluice.packets() * 1.01 < sluice.received() * 0.99:
            raise RuntimeError(f"not everything was forwarded: {sluice.ask('stats', 'drops')}")
    finally:
        sluice.close()
    rows = []
    for mode in ("on", "auto"):
        row = report.Row(f"cache-loop/{family}/small/{'decision' if decision else 'plain'}/{count}/{mode}",
                         "TSC cycles/packet", against="off", values=cycles[mode], others=cycles["off"])
        row.extra["hit_rate"] = hit_rate
        rows.append(row)
    return rows


def run(options, head, show) -> list:
    cases = [(True, 100)] if options.quick else [(False, 100), (True, 15), (True, 100), (True, 500)]
    rows = []
    with Hugepages(MEMORY_MB // 2 + 64) as hugepages, tempfile.TemporaryDirectory() as directory:
        print(f"The whole loop, net_pcap to net_null, {'2-MiB' if hugepages else '4-KiB'} pages:")
        head()
        for family in ("v4", "v6"):
            for decision, count in cases:
                pair = measure(options, pathlib.Path(directory), family, decision, count, hugepages)
                show(*pair)
                rows += pair
    print("TSC cycles per packet with receiving and sending; modes alternate within a second (least to most of the rounds).")
    return rows
