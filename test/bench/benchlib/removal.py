# SPDX-License-Identifier: BSD-3-Clause
"""Removing netdevs while others own 80,000 uncached dsts (U-06, U-07): how long another client waits meanwhile, with
uncached dsts in one list, in 64 hashed ones, in one per netdev."""

import os
import statistics
import sys
import time

from . import control, report

VARIANTS = {"list": 1, "hash": 64, "netdev": 4096}
REMOVED = [6, 36, 256]
OWNERS = 256
DSTS = 80_000
MANY = [4000, 5000, 6000, 8000, 12000, 20000]
# A stopped worker would never pass a grace period; a sleeping one does not count.
CONFIG = """version: 1
dpdk: {{lcores: [0, 1], hugepages: false, memory-mb: 128}}
workers: {{idle: adaptive}}
control: {{socket: SOCKET}}
limits: {{neighbors: 100000, uncached-lists: {lists}}}
ports:
  p0: {{device: "net_null0,no-rx=1", mac: "02:00:00:00:00:01", rx-queues: 1}}
  p1: {{device: "net_null1,no-rx=1", mac: "02:00:00:00:00:02", rx-queues: 1}}
"""


def dsts_of(owner: int) -> int:
    if owner < len(MANY):
        return MANY[owner]
    rest, few = DSTS - sum(MANY), OWNERS - len(MANY)
    return rest // few + (1 if owner - len(MANY) < rest % few else 0)


def start(options, lists: int, foreign: bool, name: str) -> control.Daemon:
    """With 256 netdevs; `foreign`: which own 80,000 dsts of hosts."""
    daemon = control.Daemon(options.build, CONFIG.format(lists=lists), name)
    requests = []
    for owner in range(OWNERS):
        requests.append(("link", "add", {"name": f"own{owner}", "link": "p0", "vlan_id": owner + 1}))
        requests.append(("addr", "add", {"address": f"10.{owner}.0.1/16", "dev": f"own{owner}"}))
        for host in range(2, 2 + dsts_of(owner) if foreign else 0):
            requests.append(("neigh", "add", {"address": f"10.{owner}.{host >> 8}.{host & 255}", "dev": f"own{owner}",
                                              "lladdr": "02:aa:00:00:00:01"}))
    daemon.batch(requests)
    owned = sum(row["dsts"] for row in daemon.ask("uncached", "show")["netdevs"])
    if foreign != (owned >= DSTS):
        raise RuntimeError(f"{owned} uncached dsts")
    return daemon


def remove(daemon: control.Daemon, count: int, batch: bool) -> dict:
    names = [f"gone{i}" for i in range(count)]
    daemon.batch([request for i, name in enumerate(names) for request in (
        ("link", "add", {"name": name, "link": "p1", "vlan_id": i + 1}),
        ("addr", "add", {"address": f"172.{16 + (i >> 8)}.{i & 255}.1/24", "dev": name}))])
    time.sleep(0.02)
    daemon.ask("stats", "workers", "reset")
    found = daemon.bench("removal-batch" if batch else "removal", "p0", *names)
    found["pause_us"] = daemon.worker()["longest_round_us"]
    return found


def measure(daemons: dict, rounds: int, count: int, batch: bool) -> dict:
    found = {key: [] for key in daemons}
    for turn in range(rounds):
        keys = list(daemons)
        for key in keys[turn % len(keys):] + keys[:turn % len(keys)]:
            daemons[key].go_on()
            found[key].append(remove(daemons[key], count, batch))
            daemons[key].stop_running()
    return found


def row_of(name: str, found: list, without: list) -> report.Row:
    row = report.Row(name, "ms", against="no foreign dsts",
                     values=[f["worst_us"] / 1e3 for f in found], others=[f["worst_us"] / 1e3 for f in without])
    middle = lambda key, runs: statistics.median(f[key] for f in runs)  # noqa: E731
    row.extra |= {"median_ms": middle("median_us", found) / 1e3, "against_median_ms": middle("median_us", without) / 1e3,
                  "removal_ms": middle("us", found) / 1e3, "against_removal_ms": middle("us", without) / 1e3,
                  "worker_pause_us": max(f["pause_us"] for f in found)}
    return row


def run(options):
    control.check_built(options.build)
    quiet = report.is_quiet()
    rounds = 3 if options.quick else 15
    counts = REMOVED
    daemons, rows = {}, []
    try:
        for variant, lists in VARIANTS.items():
            for foreign in (True, False):
                key = (variant, foreign)
                daemons[key] = start(options, lists, foreign, f"bench{os.getpid()}-{variant}-{'with' if foreign else 'none'}")
                daemons[key].stop_running()
        print(f"{'':30}{'worst ms':>9}{'(min-max)':>16}{'none':>8}{'(min-max)':>16}{'ratio':>7}{'median ms':>11}{'none':>8}"
              f"{'removal ms':>12}{'none':>8}{'pause us':>10}")
        for count in counts:
            for batch in (False, True):
                found = measure(daemons, rounds, count, batch)
                for variant in VARIANTS:
                    row = row_of(f"removal/{count}/{'batch' if batch else 'single'}/{variant}", found[variant, True],
                                 found[variant, False])
                    rows.append(row)
                    show(row)
    finally:
        for daemon in daemons.values():
            daemon.close()
    print("Another client's latency (link set to what is) while netdevs are removed: the worst of a removal, median of\n"
          f"{rounds} removals, beside 256 netdevs with {DSTS:,} uncached dsts and with none. pause: the longest round of a worker.\n"
          "Daemon and clients share the machine's cores, nothing is pinned but the daemon's two threads.")
    return quiet, rows


def show(row: report.Row) -> None:
    j = row.as_json()
    print(f"{row.id:30}{j['value']:9.3f}{spread(row.values):>16}"
          f"{j['against_value']:8.3f}{spread(row.others):>16}{j['ratio']:7.2f}{j['median_ms']:11.3f}{j['against_median_ms']:8.3f}"
          f"{j['removal_ms']:12.2f}{j['against_removal_ms']:8.2f}{j['worker_pause_us']:10.0f}")
    sys.stdout.flush()


def spread(values: list) -> str:
    return f"({min(values):.2f}-{max(values):.2f})"
