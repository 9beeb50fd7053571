#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds up what a test run left behind; the last line is 'N passed, N failed, N skipped'.

usage: test_summary.py [meson:DIR | clean:DIR | pytest:FILE | step:NAME=STATUS]...

meson:DIR    build directory; each gtest case counts (DIR/gtest-results), any other test as one
clean:DIR    build directory whose tests count as one each: the same cases, under a sanitizer
pytest:FILE  junit XML
step:NAME=S  a step with exit status S
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


class Count:
    def __init__(self, name):
        self.name = name
        self.passed = 0
        self.failures = []
        self.skips = []

    def add(self, name, failed, skipped_because):
        if failed:
            self.failures.append(name)
        elif skipped_because is not None:
            self.skips.append((name, skipped_because))
        else:
            self.passed += 1


def first_line(text):
    """gtest puts 'file:line' on a line of its own before the message."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def add_junit(count, path, prefix=""):
    """True if no case failed."""
    before = len(count.failures)
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = prefix + case.get("classname", "") + "." + case.get("name", "")
        skipped = case.find("skipped")
        reason = None
        if skipped is not None:
            reason = first_line(skipped.get("message") or skipped.text)
        elif case.get("status") == "notrun":
            reason = "disabled"
        bad = case.find("failure") is not None or case.find("error") is not None
        count.add(name, bad, reason)
    return len(count.failures) == before


def add_meson(count, folder, cases):
    folder = pathlib.Path(folder)
    log = folder / "meson-logs" / "testlog.json"
    if not log.is_file():
        count.add(f"{log}: the tests did not run", True, None)
        return
    for line in log.read_text().splitlines():
        test = json.loads(line)
        good = test["result"] in ("OK", "EXPECTEDFAIL")
        skipped = "skipped as a whole" if test["result"] == "SKIP" else None
        executable = next((word for word in test["command"] if "/test_" in word), "")
        results = folder / "gtest-results" / (pathlib.Path(executable).name + ".xml")
        if not cases or not results.is_file():
            count.add(test["name"], not good and skipped is None, skipped)
        elif add_junit(count, results) and not good:
            # Every case passed, yet the process did not end well.
            count.add(f"{test['name']} ({test['result']})", True, None)


def add_pytest(count, file):
    if pathlib.Path(file).is_file():
        add_junit(count, file)
    else:
        count.add(f"{file}: the tests did not run", True, None)


def main(arguments):
    counts = []
    for argument in arguments:
        kind, _, where = argument.partition(":")
        if kind in ("meson", "clean"):
            count = Count("unit and stage tests" + (" under sanitizers" if kind == "clean" else ""))
            add_meson(count, where, kind == "meson")
        elif kind == "pytest":
            count = Count("end-to-end tests")
            add_pytest(count, where)
        elif kind == "step":
            name, _, status = where.partition("=")
            count = Count(name)
            count.add(name, status != "0", None)
        else:
            sys.exit(__doc__)
        counts.append(count)

    for count in counts:
        for name, reason in count.skips:
            print(f"skipped: {name}: {reason}")
    for count in counts:
        for name in count.failures:
            print(f"FAILED: {name}")
    print()
    for count in counts:
        print(f"{count.name}: {count.passed} passed, {len(count.failures)} failed, {len(count.skips)} skipped")
    passed = sum(count.passed for count in counts)
    failed = sum(len(count.failures) for count in counts)
    skipped = sum(len(count.skips) for count in counts)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
