# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a benchmark: medians, paired ratios, JSON, an SVG."""

import json
import os
import pathlib
import statistics
import subprocess
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[3]


@dataclass
class Row:
    """One measured thing: a value per round and, paired with it, what it is compared with. Where a round is itself many
    pairs, `paired` has the median of their ratios: the two medians alone may be of different pairs."""

    id: str
    unit: str
    values: list = field(default_factory=list)
    against: str = ""
    others: list = field(default_factory=list)  # of the same rounds
    lower_is_better: bool = True
    paired: list = field(default_factory=list)
    extra: dict = field(default_factory=dict)  # shown and written, not judged

    def ratios(self) -> list:
        """Above 1: sluice, or the variant named last in the id, is better."""
        if self.paired:
            return self.paired
        if self.lower_is_better:
            return [other / value for value, other in zip(self.values, self.others) if value > 0]
        return [value / other for value, other in zip(self.values, self.others) if other > 0]

    def as_json(self) -> dict:
        row = {"id": self.id, "value": statistics.median(self.values), "min": min(self.values),
               "max": max(self.values), "unit": self.unit}
        if self.others:
            row |= {"against": self.against, "against_value": statistics.median(self.others)}
            if ratios := self.ratios():
                row |= {"ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}
        return row | self.extra


def _first(path: str, key: str) -> str:
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(key):
            return line.split(":", 1)[1].strip()
    return ""


def is_quiet() -> bool:
    """Nothing else was using the machine just before."""
    return os.getloadavg()[0] < 0.5 * (os.cpu_count() or 1)


def write(options, result) -> None:
    quiet, rows = result
    document = {
        "bench": options.name,
        "commit": subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True,
                                 text=True, check=False).stdout.strip(),
        "cpu": _first("/proc/cpuinfo", "model name"),
        "dpdk": subprocess.run(["pkg-config", "--modversion", "libdpdk"], capture_output=True, text=True,
                               check=False).stdout.strip(),
        "quiet": quiet,
        "rows": [row.as_json() for row in rows],
    }
    if not quiet:
        print("\nThe machine was not quiet: trust the ratios, not the values.")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        pathlib.Path(options.plot).write_text(_svg(options.name, rows), encoding="utf-8")


def _svg(title: str, rows: list) -> str:
    """A bar per row, with the spread, and a mark where the thing compared with stands; a scale for each unit."""
    height, width = 18, 520
    left = 30 + 7 * max(len(r.id) for r in rows)
    tops = {}
    for row in rows:
        tops[row.unit] = max([tops.get(row.unit, 0), *row.values, *row.others])
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 160}" height="{height * len(rows) + 50}" '
           'font-family="sans-serif" font-size="12">',
           f'<text x="10" y="20" font-size="14">{title}</text>']
    for i, row in enumerate(rows):
        y = 34 + i * height
        scale = width / (tops[row.unit] or 1)
        value = statistics.median(row.values)
        out.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{row.id}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{value * scale:.1f}" height="{height - 5}" fill="#4477aa"/>')
        out.append(f'<line x1="{left + min(row.values) * scale:.1f}" x2="{left + max(row.values) * scale:.1f}" '
                   f'y1="{y + 6}" y2="{y + 6}" stroke="#223355"/>')
        if row.others:
            x = left + statistics.median(row.others) * scale
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 1}" y2="{y + height - 4}" stroke="#cc3311" '
                       f'stroke-width="2"><title>{row.against}</title></line>')
        end = left + max([value, *row.values, *row.others]) * scale
        out.append(f'<text x="{end + 6:.1f}" y="{y + 12}">{value:.4g} {row.unit}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
