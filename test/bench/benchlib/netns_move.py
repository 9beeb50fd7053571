# SPDX-License-Identifier: BSD-3-Clause
"""400 netns made, each with a VLAN moved in, two addresses and a dozen routes, by 1, 4 and 16 clients at once (M-04)."""

import os
import statistics

from . import control, report

CLIENTS = [1, 4, 16]
NETNS = 400
CONFIG = """version: 1
dpdk: {lcores: [0, 1], hugepages: false, memory-mb: 128}
workers: {idle: adaptive}
control: {socket: SOCKET}
ports:
  p0: {device: "net_null0,no-rx=1", mac: "02:00:00:00:00:01", rx-queues: 1}
"""


def run(options):
    control.check_built(options.build)
    quiet = report.is_quiet()
    rounds = 5 if options.quick else 25
    rates = {clients: [] for clients in CLIENTS}
    work = {clients: [] for clients in CLIENTS}  # us of the control thread for each netns
    removals = []
    daemon = control.Daemon(options.build, CONFIG, f"bench{os.getpid()}")
    try:
        empty = daemon.memory_mb()
        full = None
        for turn in range(rounds):
            shift = turn % len(CLIENTS)
            for clients in CLIENTS[shift:] + CLIENTS[:shift]:
                cpu = daemon.cpu_us()
                found = daemon.bench("netns", str(clients), "0", str(NETNS), "p0")
                work[clients].append((daemon.cpu_us() - cpu) / NETNS)
                rates[clients].append(NETNS / found["us"] * 1e6)
                if full is None:
                    full = daemon.memory_mb()
                    check(daemon)
                removals.append(NETNS / daemon.bench("netns-del", "0", str(NETNS))["us"] * 1e6)
        after = daemon.memory_mb()
    finally:
        daemon.close()
    rows = []
    print(f"{'':20}{'netns/s':>9}{'(min-max)':>16}{'against 1':>11}{'control us':>12}")
    for clients, found in rates.items():
        row = report.Row(f"netns-move/{clients}", "netns/s", against="1 client", lower_is_better=False, values=found,
                         others=rates[1])
        row.extra |= {"memory_mb": full - empty, "control_us": statistics.median(work[clients])}
        rows.append(row)
        j = row.as_json()
        print(f"{row.id:20}{j['value']:9.0f}{f'({min(found):.0f}-{max(found):.0f})':>16}{j['ratio']:11.2f}{j['control_us']:12.1f}")
    print(f"Each netns: 17 requests; control us: of the control thread's own time. Deleting them: {statistics.median(removals):.0f} a second. Memory: {empty:.1f} MB empty, "
          f"{full - empty:+.1f} MB with {NETNS} netns,\n{after - empty:+.1f} MB after {len(removals)} times of making and "
          "deleting them. Daemon and clients share the machine's cores, nothing is pinned but\nthe daemon's two threads.")
    return quiet, rows


def check(daemon: control.Daemon) -> None:
    netns = [n for n in daemon.ask("netns", "show") if n["name"] != "default"]
    # Two connected prefixes, and a dozen of ours.
    if len(netns) != NETNS or any(n["ipv4_routes"] + n["ipv6_routes"] < 14 for n in netns):
        raise RuntimeError(f"{len(netns)} netns: {netns[:2]}")
