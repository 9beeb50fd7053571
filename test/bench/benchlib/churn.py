# SPDX-License-Identifier: BSD-3-Clause
"""Hit rate and packet rate of the path while routes of a full table change (G-05): 100 destinations, mode on."""

import statistics
import sys

from . import program, report


def run(options):
    quiet = report.is_quiet()
    arguments = ["--rounds", "3", "--seconds", "0.4", "--routes", "150000"] if options.quick else ["--rounds", "9", "--seconds", "1"]
    if options.prefixes:
        arguments += ["--prefixes", options.prefixes]
    samples = {}
    for line in program.lines(options.build, "path_bench", "churn", *arguments):
        samples.setdefault(line["id"], []).append(line)
    rows = []
    print(f"{'':20}{'hit rate':>10}{'(min-max)':>18}{'against none':>14}{'Mpps':>9}{'(min-max)':>16}{'updates/s':>11}")
    for name, found in samples.items():
        still = samples[name.rsplit("/", 1)[0] + "/0"]
        row = report.Row(name, "hit rate", against="0 updates", lower_is_better=False,
                         values=[line["hits"] for line in found], others=[line["hits"] for line in still])
        mpps = [line["mpps"] for line in found]
        row.extra |= {"mpps": statistics.median(mpps), "mpps_min": min(mpps), "mpps_max": max(mpps),
                      "mpps_ratio": statistics.median(a["mpps"] / b["mpps"] for a, b in zip(found, still)),
                      "updates_per_s": statistics.median(line["updates"] / line["seconds"] for line in found)}
        rows.append(row)
        j = row.as_json()
        hits = f"({j['min']:.4f}-{j['max']:.4f})"
        print(f"{row.id:20}{j['value']:10.4f}{hits:>18}{j['ratio']:14.4f}{j['mpps']:9.2f}"
              f"{f'({min(mpps):.1f}-{max(mpps):.1f})':>16}{j['updates_per_s']:11.0f}")
        sys.stdout.flush()
    return quiet, rows
