# SPDX-License-Identifier: BSD-3-Clause
"""Benchmark programs of ours that print one JSON object a line."""

import json
import pathlib
import statistics
import subprocess
import sys


def lines(build: str, name: str, *arguments: str, silent: bool = False):
    """What test/bench/NAME prints, as it comes; what it says to people goes to stderr unless `silent`."""
    path = pathlib.Path(build) / "test" / "bench" / name
    if not path.exists():
        sys.exit(f"{path} is not there: meson setup {build} && meson compile -C {build}")
    with subprocess.Popen([path, *arguments], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL if silent else None) as process:
        for line in process.stdout:
            if line.startswith("{"):  # the EAL talks, too
                yield json.loads(line)
    if process.returncode != 0:
        raise RuntimeError(f"{name} ended with status {process.returncode}")


def in_parts(values: list, parts: int) -> list:
    """The median of each of so many parts, in order: what is left of the spread when a value is short and noisy."""
    parts = min(parts, len(values))
    bounds = [i * len(values) // parts for i in range(parts + 1)]
    return [statistics.median(values[a:b]) for a, b in zip(bounds, bounds[1:])]
