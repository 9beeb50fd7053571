# SPDX-License-Identifier: BSD-3-Clause
"""The destination cache off, on and auto: the packet path alone in memory (path_bench), and beside it the whole loop of
a running daemon. Nine counts of destinations as the original measured them, a flood, Zipf's law, and half and half."""

import statistics
import sys

from . import cache_loop, program, report

COUNTS = [1, 2, 15, 100, 500, 1000, 2000, 4000, 8000]
# Change of the receiver's packet rate that the original design brought: 512 entries, buckets of 4.
ORIGINAL = dict(zip(COUNTS, [-1.75, 4.17, 7.23, 8.46, 5.91, 1.43, -1.05, -2.31, -2.82]))
TRAFFIC = [*map(str, COUNTS), "flood", "zipf", "mixed"]
QUICK = ["1", "15", "100", "500", "8000", "flood"]
PARTS = 5


def rows_of(samples: dict, name: str) -> list:
    """`samples` of one row of the path: mode -> [(cycles, hits) of each round]."""
    off = [cycles for cycles, _ in samples["off"]]
    rows = []
    for mode in ("on", "auto"):
        cycles = [c for c, _ in samples[mode]]
        row = report.Row(f"{name}/{mode}", "TSC cycles/packet", against="off",
                         values=program.in_parts(cycles, PARTS), others=program.in_parts(off, PARTS),
                         paired=program.in_parts([o / c for o, c in zip(off, cycles)], PARTS))
        row.extra["hit_rate"] = statistics.median(hits for _, hits in samples[mode])
        row.extra["change_percent"] = (row.as_json()["ratio"] - 1) * 100
        count = name.rsplit("/", 1)[1]
        if count.isdigit():
            row.extra["original_percent"] = ORIGINAL[int(count)]
        rows.append(row)
    return rows


def head() -> None:
    print(f"{'':28}{'off':>8}{'on':>8}{'auto':>8}   {'on against off':>20} {'auto against off':>20} {'hits':>6} "
          f"{'the original':>12}")


def show(on: report.Row, auto: report.Row) -> None:
    def change(row):
        j = row.as_json()
        low, high = ((j[key] - 1) * 100 for key in ("ratio_min", "ratio_max"))
        return f"{(j['ratio'] - 1) * 100:+6.1f} % ({low:+.0f}..{high:+.0f})".rjust(20)

    original = on.extra.get("original_percent")
    print(f"{on.id.removeprefix('cache/').rsplit('/', 1)[0]:28}"
          f"{statistics.median(on.others):8.1f}{statistics.median(on.values):8.1f}{statistics.median(auto.values):8.1f}   "
          f"{change(on)} {change(auto)} {on.extra['hit_rate']:6.2f} " +
          ("" if original is None else f"{original:+10.2f} %"))
    sys.stdout.flush()


def path_rows(options) -> list:
    arguments = ["--rounds", "40" if options.quick else "200"]
    if options.quick:
        # A full table of each family takes a while to build; a smaller one costs as many levels.
        arguments += ["--rows", ",".join(f"/{name}/" for name in QUICK), "--routes", "150000"]
    if options.prefixes:
        arguments += ["--prefixes", options.prefixes]
    rows, name, samples = [], None, {}

    def finish():
        if name is not None:
            pair = rows_of(samples, name)
            show(*pair)
            rows.extend(pair)

    head()
    for line in program.lines(options.build, "path_bench", "cache", *arguments):
        if line["id"] != name:
            finish()
            name, samples = line["id"], {}
        samples.setdefault(line["mode"], []).append((line["cycles"], line["hits"]))
    finish()
    return rows


def run(options):
    quiet = report.is_quiet()
    rows = path_rows(options)
    print("TSC cycles per packet of the path, drivers excluded; change of the packet rate: median of pairs within 2 ms (least to\n"
          f"most of {PARTS} parts of the run). plain: one lookup. decision: 8 rules over 3 tables, strict source validation, a\n"
          "4-way group. small: ten routes, full: as long as the Internet's. 512 entries. hits: of mode on.\n")
    rows += cache_loop.run(options, head, show)
    return quiet, rows
