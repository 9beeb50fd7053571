#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench as its readers know it: what rows there are, under which ids, with which keys. The measuring programs
run for as short as they can; daemons are fake.

    bench_test.py BUILD_DIRECTORY
"""

import argparse
import contextlib
import functools
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from benchlib import (cache, cache_loop, churn, control, insert, netns_move, peers, peers_l3fwd, peers_sides,  # noqa: E402
                      peers_tables, program, removal, report)

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else "build"
# What others rely on.
IDS = {
    "cache": r"cache/(v4|v6)/(small|full)/(plain|decision)/(1|2|15|100|500|1000|2000|4000|8000|flood|zipf|mixed)/(on|auto)",
    "churn": r"churn/(v4|v6)/(0|10|1000|10000)",
    "removal": r"removal/(6|36|256)/(single|batch)/(list|hash|netdev)",
    "insert": r"(insert/(v4|v6)|insert-whole)/(list|hash|netdev)",
    "netns-move": r"netns-move/(1|4|16)",
    "peers": r"peers/(v4|v6)/(small|full)/(1|2|15|100|500|1000|2000|4000|8000)/(floor|l3fwd-lpm|l3fwd-fib|kernel)|"
             r"peers-bytes/(v4|v6)/(594|1500)/(floor|l3fwd-lpm|l3fwd-fib)|peers-group/(v4|v6)/(100|8000)/(floor|plain)|"
             r"peers-vlan/(v4|v6)/(100|8000)/floor",
}
ROWS = {"cache": 2 * 2 * 2 * 12 * 2, "churn": 8, "removal": 18, "insert": 9, "netns-move": 3,
        "peers": 2 * 2 * (9 * 3 + 3) + 4 * 3 + 4 * 2 + 4}
KEYS = {"id", "value", "min", "max", "unit", "against", "ratio", "ratio_min", "ratio_max"}
SHORT = {"cache": ["--rounds", "2", "--packets", "256", "--warm", "256", "--sequence", "1000", "--routes", "1000"],
         "churn": ["--rounds", "1", "--seconds", "0.01", "--routes", "1000"], "insert": ["--rounds=1"]}


class FakeDaemon:
    """As fast as a daemon is, and with nobody in it."""

    def __init__(self, build, config, name):
        self.foreign = name.endswith("with")
        self.removals = 0
        self.cpu = 0.0

    def bench(self, what, *words, lines=""):
        if what == "netns":
            return {"us": 80_000 / int(words[0])}
        self.removals += 1
        return {"us": 1000, "median_us": 50, "p99_us": 60, "worst_us": 100 + self.removals}

    def ask(self, *words):
        if words == ("netns", "show"):
            return [{"name": f"n{i}", "ipv4_routes": 7, "ipv6_routes": 8} for i in range(netns_move.NETNS)]
        return {"netdevs": [{"dsts": removal.DSTS if self.foreign else 0}]}

    def worker(self):
        return {"longest_round_us": 12.5}

    def cpu_us(self):
        self.cpu += 1000.0
        return self.cpu

    def memory_mb(self):
        return 100.0

    def batch(self, requests):
        assert all(len(request) == 3 for request in requests)

    def __getattr__(self, name):
        return lambda: None  # stop_running() and the like


def short_lines(build, name, what, *arguments, silent=False):
    return REAL_LINES(build, name, what, *SHORT[what], silent=True)


def fake_measure(bench, cell, rounds, seconds):
    """sluice twice as fast as every peer."""
    return {"sluice": [20.0] * rounds} | {peer: [10.0] * rounds for peer in cell.peers}, 2.1e9


REAL_LINES = program.lines
MODULES = {"peers": peers, "cache": cache, "churn": churn, "insert": insert, "removal": removal, "netns-move": netns_move}


@functools.cache
def document(name: str) -> tuple:
    """What --json writes, what --plot writes."""
    with tempfile.TemporaryDirectory() as directory:
        options = argparse.Namespace(name=name, quick=False, build=BUILD, prefixes=None, json=f"{directory}/j", plot=f"{directory}/p")
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(program, "lines", short_lines))
            stack.enter_context(mock.patch.object(control, "Daemon", FakeDaemon))
            stack.enter_context(mock.patch.object(control, "check_built", lambda build: None))
            stack.enter_context(mock.patch.object(cache_loop, "run", lambda *_: []))
            stack.enter_context(mock.patch.object(peers_l3fwd, "build", lambda *_: None))
            stack.enter_context(mock.patch.object(peers_sides, "measure", fake_measure))
            stack.enter_context(mock.patch.object(peers_tables, "full", lambda *_: ["198.51.100.0/24"]))
            stack.enter_context(mock.patch.object(peers, "Hugepages", lambda _: contextlib.nullcontext(True)))
            stack.enter_context(mock.patch.object(peers, "routers_of", lambda tables, *_: dict.fromkeys(tables, "a router")))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            report.write(options, MODULES[name].run(options))
        return json.loads(pathlib.Path(options.json).read_text()), pathlib.Path(options.plot).read_text()


class Rows(unittest.TestCase):
    def test_ids_keys_and_plot(self):
        for name in MODULES:
            with self.subTest(name):
                found, plot = document(name)
                self.assertEqual(found["bench"], name)
                self.assertLessEqual({"bench", "commit", "cpu", "dpdk", "quiet", "rows"}, found.keys())
                ids = [row["id"] for row in found["rows"]]
                self.assertEqual(len(set(ids)), ROWS[name], ids)
                self.assertEqual(len(ids), ROWS[name])
                for row in found["rows"]:
                    self.assertRegex(row["id"], f"^{IDS[name]}$")
                    # What a peer cannot hold has no ratio and says why.
                    self.assertLessEqual(KEYS - {"ratio", "ratio_min", "ratio_max"} if "note" in row else KEYS, row.keys())
                    self.assertLessEqual(row["min"], row["value"])
                    self.assertLessEqual(row["value"], row["max"])
                    self.assertIn(f">{row['id']}<", plot)

    def test_the_original_stands_beside_its_counts(self):
        found, _ = document("cache")
        original = {row["id"].split("/")[4]: row["original_percent"] for row in found["rows"] if "original_percent" in row}
        self.assertEqual(original, {"1": -1.75, "2": 4.17, "15": 7.23, "100": 8.46, "500": 5.91, "1000": 1.43, "2000": -1.05,
                                    "4000": -2.31, "8000": -2.82})

    def test_peers_rows_are_packet_rates(self):
        found, _ = document("peers")
        rows = {row["id"]: row for row in found["rows"]}
        row = rows["peers/v4/full/8000/l3fwd-fib"]
        self.assertEqual((row["value"], row["against_value"], row["ratio"], row["ratio_q1"], row["unit"]), (20, 10, 2, 2, "Mpps"))
        self.assertEqual((row["cycles"], row["against_cycles"]), (105, 210))
        self.assertIn("note", rows["peers/v4/full/8000/l3fwd-lpm"])
        self.assertFalse([i for i in rows if i.endswith("/kernel") and i.split("/")[3] not in ("1", "100", "8000")])

    def test_the_distribution_of_uncached_dsts(self):
        counts = sorted(removal.dsts_of(owner) for owner in range(removal.OWNERS))
        self.assertEqual(sum(counts), 80_000)
        self.assertEqual(counts[-6:], [4000, 5000, 6000, 8000, 12000, 20000])
        self.assertTrue(all(90 <= count <= 110 for count in counts[:-6]), counts[:3])


class Ratios(unittest.TestCase):
    def test_above_one_is_better(self):
        cost = report.Row("x", "ms", values=[2, 2, 2], others=[4, 4, 2])
        self.assertEqual(cost.as_json()["ratio"], 2)
        rate = report.Row("x", "1/s", values=[2, 2, 2], others=[4, 4, 2], lower_is_better=False)
        self.assertEqual(rate.as_json()["ratio"], 0.5)
        pairs = report.Row("x", "ms", values=[2], others=[4], paired=[1.5, 1.6, 1.7])
        self.assertEqual(pairs.as_json()["ratio"], 1.6)

    def test_parts_keep_order_and_all(self):
        self.assertEqual(program.in_parts([1, 1, 9, 2, 2, 2], 2), [1, 2])
        self.assertEqual(program.in_parts([3], 5), [3])


if __name__ == "__main__":
    unittest.main()
