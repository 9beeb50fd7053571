# SPDX-License-Identifier: BSD-3-Clause
"""What it costs to add and delete one uncached dst: one list, 64 hashed ones, one per netdev (U-02)."""

from . import program, report

VARIANTS = ["list", "hash", "netdev"]


def run(options):
    quiet = report.is_quiet()
    samples = {}
    rounds = 21 if options.quick else 101
    for line in program.lines(options.build, "insert_bench", "insert", f"--rounds={rounds}", silent=True):
        samples.setdefault((line["family"], line["variant"]), []).append(line["ns"])
    rows = []
    print(f"{'':20}{'ns':>8}{'(min-max)':>18}{'against list':>14}")
    for family in ("v4", "v6"):
        for variant in VARIANTS:
            row = report.Row(f"insert/{family}/{variant}", "ns per dst", against="list",
                             values=samples[family, variant], others=samples[family, "list"])
            rows.append(row)
            j = row.as_json()
            spread = f"({j['min']:.1f}-{j['max']:.1f})"
            print(f"{row.id:20}{j['value']:8.1f}{spread:>18}{j['ratio']:14.2f}")
    print("80,000 dsts over 256 netdevs added and deleted in random order; the variants alternate in every round.")
    return quiet, rows
