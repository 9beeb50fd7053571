# SPDX-License-Identifier: BSD-3-Clause
"""sluice beside DPDK's testpmd (the floor) and l3fwd, and the kernel: the same packets, the same core, by turns."""

import contextlib
import os
import pathlib
import statistics
import sys
import tempfile

from . import peers_kernel, peers_l3fwd, peers_sides, peers_tables, report
from .cache import COUNTS
from .process import Hugepages
from .peers_sides import Cell

FAMILIES = ("v4", "v6")
L3FWD = ("l3fwd-lpm", "l3fwd-fib")
KERNEL_COUNTS = (1, 100, 8000)
FRAME_BYTES = (594, 1500)  # IMIX's mean, the longest
OTHER_COUNTS = (100, 8000)
HUGEPAGES = 1300  # a full table's three programs
QUIET_SHARE = 0.95  # of the core, while something was measured
NO_LPM = f"holds {peers_l3fwd.LPM_ROUTES:,} routes"
COLUMNS = ("floor", *L3FWD, "kernel", "plain")


def base_cells(tables: dict, routers: dict, quick: bool):
    """Nine counts, two families, two tables."""
    for (family, name), table in tables.items():
        for count in ([8000] if name == "full" else [1, 8000]) if quick else COUNTS:
            kernel = routers.get((family, name)) if count in KERNEL_COUNTS else None
            peers = ("floor", *(L3FWD if name == "small" else L3FWD[1:]), *(["kernel"] if kernel else []))
            yield Cell(f"peers/{family}/{name}/{count}", table, count, peers, router=kernel)


def other_cells(tables: dict):
    """Longer frames, a group of four, tags."""
    for family in FAMILIES:
        table = tables[family, "small"]
        for frame_bytes in FRAME_BYTES:
            yield Cell(f"peers-bytes/{family}/{frame_bytes}", table, 100, ("floor", *L3FWD), frame_bytes=frame_bytes)
        for count in OTHER_COUNTS:
            yield Cell(f"peers-group/{family}/{count}", table, count, ("floor", "plain"))
        for count in OTHER_COUNTS:
            yield Cell(f"peers-vlan/{family}/{count}", table, count, ("floor",), vlans=True)


def rows_of(cell: Cell, rates: dict, tsc_hz: float) -> list:
    rows = []
    mine = rates["sluice"]
    for peer in cell.peers:
        row = report.Row(f"{cell.id}/{peer}", "Mpps", values=mine, against=peer, others=rates[peer], lower_is_better=False)
        low, _, high = statistics.quantiles(row.ratios(), n=4, method="inclusive")
        row.extra |= {"ratio_q1": low, "ratio_q3": high, "cycles": tsc_hz / 1e6 / statistics.median(mine),
                      "against_cycles": tsc_hz / 1e6 / statistics.median(rates[peer])}
        rows.append(row)
    if cell.full:
        rows.append(report.Row(f"{cell.id}/l3fwd-lpm", "Mpps", values=mine, against="l3fwd-lpm",
                               extra={"against": "l3fwd-lpm", "note": NO_LPM}))
    return rows


def head() -> None:
    print(f"{'TSC cycles/packet':26}{'sluice':>8}{'Mpps':>7}" + "".join(f"{name:>28}" for name in COLUMNS))


def show(rows: list) -> None:
    found = {row.against: row for row in rows}
    first = rows[0]
    line = f"{first.id.rsplit('/', 1)[0]:26}{first.extra['cycles']:8.1f}{statistics.median(first.values):7.2f}"
    for name in COLUMNS:
        text = ""
        if (row := found.get(name)) and row.others:
            e = row.extra
            text = f"{e['against_cycles']:.1f} {row.as_json()['ratio']:.2f} ({e['ratio_q1']:.2f}-{e['ratio_q3']:.2f})"
        elif row:
            text = "-"
        line += f"{text:>28}"
    print(line.rstrip())
    sys.stdout.flush()


def routers_of(tables: dict, quick: bool, stack: contextlib.ExitStack) -> dict:
    """The kernel's, one for each table."""
    if os.geteuid() != 0:
        print("not root: no rows of the kernel")
        return {}
    routers = {}
    for number, ((family, name), table) in enumerate(tables.items()):
        if not quick or name == "small":
            routers[family, name] = peers_kernel.Router(f"sluice-bench-{os.getpid()}-{number}", family, table.prefixes)
            stack.callback(routers[family, name].close)
    return routers


def run(options):
    quiet = report.is_quiet()
    rounds, seconds = (5, 0.03) if options.quick else (7, 0.06)
    rows = []
    for large in (False, True):
        peers_l3fwd.build(options.build, large)
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hugepages = stack.enter_context(Hugepages(HUGEPAGES))
        print(f"hugepages: {'yes' if hugepages else 'no (expect more cycles everywhere)'}")
        bench = peers_sides.Bench(options, directory, hugepages)
        tables = {(family, name): peers_tables.Table(options, family, name)
                  for family in FAMILIES for name in ("small", "full")}
        for (family, name), table in tables.items():
            bench.rules[family, name] = directory / f"{family}-{name}"
            peers_l3fwd.write_rules(bench.rules[family, name], table.prefixes)
        routers = routers_of(tables, options.quick, stack)
        head()
        cells = [*base_cells(tables, routers, options.quick), *([] if options.quick else other_cells(tables))]
        for cell in cells:
            found = rows_of(cell, *peers_sides.measure(bench, cell, rounds, seconds))
            show(found)
            rows += found
    share = bench.cpu_s / bench.wall_s if bench.wall_s else 1
    full = " and ".join(f"{len(tables[family, 'full'].prefixes):,}" for family in FAMILIES)
    print("One core, the whole loop. Beside a peer's cycles: sluice's packet rate by the peer's, above 1 sluice is faster;\n"
          f"median of {rounds} pairs (quartiles). floor: testpmd, io. small: ten routes, full: {full}.\n"
          f"-: l3fwd's lpm {NO_LPM}. While measured the programs had {share:.0%} of their core.")
    return quiet and share >= QUIET_SHARE, rows
