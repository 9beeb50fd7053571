# SPDX-License-Identifier: BSD-3-Clause
"""One comparison: which programs run on what traffic, all started at once, then one at a time on the core."""

import contextlib
import os
import pathlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import daemon_config, pcap, peers_kernel, peers_l3fwd, peers_tables
from .process import Program, Sluice, Testpmd

FULL_MEMORY_MB = 512
FULL_HOPS = 16
GROUP = 4


@dataclass(frozen=True)
class Cell:
    """`peers`: besides sluice, which is the first of them."""

    id: str
    table: peers_tables.Table
    count: int
    peers: tuple
    frame_bytes: int = 0
    vlans: bool = False
    router: peers_kernel.Router = None

    @property
    def full(self) -> bool:
        return self.table.name == "full"


@dataclass
class Bench:
    """What all cells share."""

    options: object
    directory: pathlib.Path
    hugepages: bool
    rules: dict = field(default_factory=dict)  # files of l3fwd, by (family, table)
    wall_s: float = 0.0
    cpu_s: float = 0.0

    def sluice(self, cell: Cell, capture: pathlib.Path, grouped: bool, name: str) -> Sluice:
        family, prefixes = cell.table.family, cell.table.prefixes
        hops = FULL_HOPS if cell.full else GROUP if grouped else 1
        routes = daemon_config.over_group(prefixes, 10) if grouped else daemon_config.over_gateways(family, prefixes, hops)
        text = daemon_config.text(capture, family, routes, self.hugepages, hops=hops, vlans=cell.vlans,
                                  sections=daemon_config.groups(family, GROUP) if grouped else "",
                                  memory_mb=FULL_MEMORY_MB if cell.full else daemon_config.MEMORY_MB)
        sluice = Sluice(self.options.build, text, name)
        sluice.wait_until_forwarding()
        return sluice

    def l3fwd(self, cell: Cell, capture: pathlib.Path, mode: str, name: str) -> peers_l3fwd.L3fwd:
        own, table = cell.table.family, cell.table.name
        rules = {family: self.rules[family, table if family == own else "small"] for family in ("v4", "v6")}
        binary = peers_l3fwd.build(self.options.build, cell.full)
        return peers_l3fwd.L3fwd(binary, mode, daemon_config.devices(capture), rules, self.hugepages, name, cell.full)

    def factories(self, cell: Cell, capture: pathlib.Path) -> dict:
        name = f"bench{os.getpid()}-"
        every = {
            "sluice": lambda: self.sluice(cell, capture, "plain" in cell.peers, name + "s"),
            "plain": lambda: self.sluice(cell, capture, False, name + "p"),
            "floor": lambda: Testpmd(daemon_config.devices(capture), self.hugepages, name + "f", daemon_config.MEMORY_MB),
            "l3fwd-lpm": lambda: self.l3fwd(cell, capture, "lpm", name + "l"),
            "l3fwd-fib": lambda: self.l3fwd(cell, capture, "fib", name + "m"),
            "kernel": lambda: peers_kernel.Kernel(cell.router, capture),
        }
        return {peer: every[peer] for peer in ("sluice", *cell.peers)}


def start(factories: dict, stack: contextlib.ExitStack) -> dict:
    """All at once: each waits for the core, and reads its table, while the others do."""
    def one(make) -> Program:
        program = make()
        program.stop_running()
        return program

    with ThreadPoolExecutor(len(factories)) as pool:
        futures = {peer: pool.submit(one, make) for peer, make in factories.items()}
    # Whoever did start is closed, whatever became of the others.
    for future in futures.values():
        if future.exception() is None:
            stack.callback(future.result().close)
    return {peer: future.result() for peer, future in futures.items()}


def measure(bench: Bench, cell: Cell, rounds: int, seconds: float) -> tuple:
    """Millions of packets per second of the core, per program and round; sluice's TSC rate."""
    capture = bench.directory / "capture.pcap"
    pcap.save(capture, pcap.each_alike(cell.table.family, cell.table.destinations(cell.count), cell.frame_bytes,
                                       daemon_config.VLAN_IN if cell.vlans else 0))
    with contextlib.ExitStack() as stack:
        programs = start(bench.factories(cell, capture), stack)
        rates = {peer: [] for peer in programs}
        tsc_hz = 0
        for turn in range(rounds):
            order = list(programs)
            for peer in order[turn % len(order):] + order[:turn % len(order)]:
                program = programs[peer]
                program.go_on()
                rates[peer].append(program.rate(seconds) / 1e6)
                if turn == rounds - 1:
                    program.check_forwarded()
                    if peer == "sluice":
                        tsc_hz = program.worker()["tsc_hz"]
                program.stop_running()
        bench.wall_s += sum(program.wall_s for program in programs.values())
        bench.cpu_s += sum(program.cpu_s for program in programs.values())
    return rates, tsc_hz
