# SPDX-License-Identifier: BSD-3-Clause
"""COVERAGE.md names a place for every number, and every place is there."""

import pathlib
import re

HERE = pathlib.Path(__file__).parent
TREE = HERE.parents[1]

CASES = {"A": [1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18], "B": [20, 21, 23, 24, 25, 26, 29, 30, 31],
         "C": [32, 33, 35, 36, 37, 39, 40, 41, 42, 44, 45],
         "F": [89, 91],
         "D": [47, 48, 49, 51, 52, 54, 55, 56, 57, 59, 60, 61, 63, 64, 66, 67], "G": [100, 101],
         "H": [103, 104, 106, 108, 110, 111, 113, 114]}
CHECKS = {"A": range(1, 12), "B": range(12, 18), "C": range(18, 32), "D": range(32, 59), "F": range(75, 77),
          "G": range(77, 81), "H": range(81, 87), "I": range(87, 93), "J": range(93, 100), "K": range(100, 105),
          "L": range(105, 109), "M": range(109, 114), "N": range(114, 146)}


def table():
    """{("case"|"check", "A 1"): (places, what it waits for)}"""
    rows, kind = {}, None
    for line in (HERE / "COVERAGE.md").read_text().splitlines():
        if line.startswith("## "):
            kind = line[3:].lower().rstrip("s")
        elif match := re.match(r"\| ([A-O] \d+) \| (.*) \| (.*) \|$", line):
            assert (kind, match[1]) not in rows, f"{kind} {match[1]} stands there twice"
            rows[(kind, match[1])] = (re.findall(r"`([^`]+::[^`]+)`", match[2]), match[3].strip())
    return rows


def test_every_number_has_a_place():
    rows = table()
    for kind, lists in (("case", CASES), ("check", CHECKS)):
        for letter, numbers in lists.items():
            for number in numbers:
                places, reason = rows.get((kind, f"{letter} {number}"), ([], ""))
                assert places or reason, f"{kind} {letter} {number} is tested nowhere and waits for nothing"


def test_every_place_is_there():
    for (kind, number), (places, reason) in table().items():
        for place in places + re.findall(r"`([^`]+::[^`]+)`", reason):
            file, name = place.split("::")
            path = TREE / file if "/" in file else HERE / file
            assert path.is_file(), f"{kind} {number}: no {file}"
            assert re.search(rf"\b{name}\b", path.read_text()), f"{kind} {number}: no {name} in {file}"


def test_every_numbered_test_is_named():
    text = (HERE / "COVERAGE.md").read_text()
    for path in sorted(HERE.glob("test_*.py")):
        for name in re.findall(r"^def (test_(?:case|check)_\w+)", path.read_text(), re.M):
            assert f"`{path.name}::{name}`" in text, f"{path.name}::{name} is not in COVERAGE.md"
