# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to add and delete one uncached dst: one list, 64 hashed ones, one per netdev (U-02). The lists alone, and
the whole of what a host's dst takes of the control thread: request, neighbor, dst, list, and back."""

import os
import random

from . import control, program, removal, report



def list_samples(options) -> dict:
    samples = {}
    rounds = 21 if options.quick else 101
    for line in program.lines(options.build, "insert_bench", "insert", f"--rounds={rounds}", silent=True):
        samples.setdefault((line["family"], line["variant"]), []).append(line["ns"])
    return samples


def host_requests(command: str) -> list:
    """For 80,000 hosts of 256 netdevs, in random order."""
    lladdr = {"lladdr": "02:aa:00:00:00:01"} if command == "add" else {}
    hosts = [(owner, host) for owner in range(removal.OWNERS) for host in range(2, 2 + removal.dsts_of(owner))]
    random.Random(1).shuffle(hosts)
    return [("neigh", command, {"address": f"10.{owner}.{host >> 8}.{host & 255}", "dev": f"own{owner}"} | lladdr)
            for owner, host in hosts]


def whole_samples(options) -> dict:
    """By the control thread's own time, in daemons that differ in their lists."""
    samples = {variant: [] for variant in removal.VARIANTS}
    daemons = {}
    adds, dels = host_requests("add"), host_requests("del")
    try:
        for variant, lists in removal.VARIANTS.items():
            daemons[variant] = removal.start(options, lists, False, f"bench{os.getpid()}-{variant}")
            daemons[variant].stop_running()
        names = list(daemons)
        for turn in range(4 if options.quick else 10):
            for name in names[turn % 3:] + names[:turn % 3]:
                daemon = daemons[name]
                daemon.go_on()
                before = daemon.cpu_us()
                daemon.batch(adds)
                daemon.batch(dels)
                ns = (daemon.cpu_us() - before) * 1e3 / removal.DSTS
                daemon.stop_running()
                if turn != 0:  # pages are touched for the first time
                    samples[name].append(ns)
    finally:
        for daemon in daemons.values():
            daemon.close()
    return samples


def show(name: str, values: list, against: list) -> report.Row:
    row = report.Row(name, "ns per dst", against="list", values=values, others=against)
    j = row.as_json()
    spread = f"({j['min']:.1f}-{j['max']:.1f})"
    print(f"{row.id:24}{j['value']:8.1f}{spread:>18}{j['ratio']:14.2f}")
    return row


def run(options):
    control.check_built(options.build)
    quiet = report.is_quiet()
    print(f"{'':24}{'ns':>8}{'(min-max)':>18}{'against list':>14}")
    lists = list_samples(options)
    rows = [show(f"insert/{family}/{variant}", lists[family, variant], lists[family, "list"])
            for family in ("v4", "v6") for variant in removal.VARIANTS]
    whole = whole_samples(options)
    rows += [show(f"insert-whole/{variant}", whole[variant], whole["list"]) for variant in removal.VARIANTS]
    print("80,000 dsts over 256 netdevs added and deleted in random order; the variants alternate in every round. whole: hosts by\n"
          "request, as a client has them made, in the control thread's own time; the others are the list operations alone.")
    return quiet, rows
