#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The guard of instruction counts: what it reads out of callgrind's files, and what it says about a change. The rows of
latency and of workers."""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from benchlib import instructions, latency, workers  # noqa: E402

DUMP = """# callgrind format
desc: Trigger: Client Request: v4/small/plain
events: Ir
summary: 160

fn=(1) sluice::test::(anonymous namespace)::Counter::count(Row const&)
0 10
cfn=(2) sluice::pipeline::process_burst(sluice::pipeline::Context&, std::span<rte_mbuf* const, 18446744073709551615ul>)
calls=2 0
0 150

fn=(2)
0 30
+1
cfn=(3) sluice::pipeline::(anonymous namespace)::process<&(sluice::pipeline::ip4_input(sluice::pipeline::Context&))>(int)
calls=2 0
* 80
cfn=(4) sluice::pipeline::classify(sluice::pipeline::Context&)
calls=2 0
* 40

fn=(3)
0 5
cfn=(5) sluice::pipeline::ip4_input(sluice::pipeline::Context&)
calls=2 0
+3 75

fn=(5)
0 75

totals: 160
"""
CONDITIONS = {"compiler": "12.2.0", "dpdk": "DPDK 22.11.11"}
ROW = {"total": 100.0, "stages": {"classify": 40.0, "ip4_input": 60.0}}


def guard(rows: dict, accepted: dict, accept: bool = False, now: dict = CONDITIONS) -> tuple:
    """Exit status, what it says, and the accepted file after it."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        path = pathlib.Path(directory) / "instructions.json"
        instructions.write_accepted(path, CONDITIONS, accepted)
        stack.enter_context(mock.patch.object(instructions, "ACCEPTED", path))
        stack.enter_context(mock.patch.object(instructions.report, "ROOT", pathlib.Path(directory)))
        stack.enter_context(mock.patch.object(instructions, "count", lambda build: (now, rows)))
        said = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        _, found, status = instructions.run(argparse.Namespace(build="b", accept=accept))
        assert [row.id for row in found] == [f"instructions/{name}" for name in rows]
        return status, said.getvalue(), json.loads(path.read_text(encoding="utf-8"))


class Dumps(unittest.TestCase):
    def test_stages_are_what_a_burst_calls_with_what_that_calls(self):
        name, total, stages = instructions.parse(DUMP)
        self.assertEqual((name, total), ("v4/small/plain", 160))
        self.assertEqual(stages, {"burst": 35, "classify": 40, "ip4_input": 75})

    def test_names(self):
        self.assertEqual(instructions.short_name("a::Transmitter<b<c>>::flush_port(unsigned short)"), "flush_port")


class Verdicts(unittest.TestCase):
    def test_two_percent_are_allowed_and_no_more(self):
        for total, wanted in ((98.1, 0), (101.9, 0), (102.1, 1), (97.9, 1)):
            with self.subTest(total):
                status, said, _ = guard({"a": ROW | {"total": total}}, {"a": ROW})
                self.assertEqual(status, wanted)
                self.assertEqual("--accept" in said, wanted == 1)

    def test_it_names_the_row_the_change_and_the_stage(self):
        dearer = {"total": 110.0, "stages": {"classify": 40.0, "ip4_input": 70.0}}
        _, said, _ = guard({"a": ROW, "b": dearer}, {"a": ROW, "b": ROW})
        self.assertIn("b: 100.0 -> 110.0 instructions/packet, +10.0 % (ip4_input 60.0 -> 70.0)", said)
        self.assertNotIn("a: ", said.split("changed by", 1)[1])

    def test_rows_that_come_or_go_are_changes(self):
        self.assertEqual(guard({"a": ROW, "b": ROW}, {"a": ROW})[0], 1)
        self.assertEqual(guard({"a": ROW}, {"a": ROW, "b": ROW})[0], 1)

    def test_other_conditions_do_not_compare(self):
        status, said, _ = guard({"a": ROW | {"total": 200.0}}, {"a": ROW}, now=CONDITIONS | {"compiler": "13.1.0"})
        self.assertEqual(status, instructions.SKIPPED)
        self.assertIn("compiler: 12.2.0 then, 13.1.0 now", said)

    def test_accepting_makes_it_pass(self):
        other = {"a": ROW | {"total": 200.0}}
        status, _, file = guard(other, {"a": ROW}, accept=True)
        self.assertEqual(status, 0)
        self.assertEqual(file["rows"], other)
        self.assertEqual(guard(other, file["rows"])[0], 0)


def line(level: str, mode: str, turn: int) -> dict:
    times = {part: (turn + 1) * (2.0 if mode == "adaptive" else 1.0) for part in latency.PERCENTILES}
    return {"level": level, "mode": mode, "round": turn, "pps": 1e6, "sent": 9, "received": 9, "windows": 4, "clean": 3,
            **times}


class Latency(unittest.TestCase):
    def test_rows(self):
        # In the order in which modes alternate, not in that of the table.
        lines = [line(level, mode, turn) for turn in range(3) for level in ("max", "10", "50", "90")
                 for mode in ("adaptive", "poll")] + [line("wakeup", "adaptive", 0)]
        rows = {row.id: row.as_json() for row in latency.rows_of("ring", latency.gathered(lines), 500)}
        contract = [f"latency/ring/{level}/{mode}/{part}" for level in (10, 50, 90) for mode in ("poll", "adaptive")
                    for part in ("p50", "p99", "p999", "max")]
        self.assertLessEqual(set(contract), rows.keys())
        self.assertEqual(rows["latency/ring/90/adaptive/p99"]["ratio"], 0.5)
        self.assertEqual(rows["latency/ring/90/adaptive/p99"]["value"], 4.0)
        self.assertEqual(rows["latency/ring/max/adaptive"]["ratio"], 1.0)
        self.assertEqual(rows["latency/ring/wakeup/adaptive/max"]["ratio"], 250)
        disturbed = lines + [line("90", mode, 3) | {"p99": 1e6, "clean": mode == "poll"} for mode in latency.MODES]
        found = latency.gathered(disturbed)
        self.assertEqual([len(found["90", mode]) for mode in latency.MODES], [3, 3])
        self.assertEqual(len(latency.gathered([lines[0] | {"clean": 0}])["max", "adaptive"]), 1)
        for row in rows.values():
            self.assertLessEqual({"value", "min", "max", "unit", "against", "ratio", "ratio_min", "ratio_max"}, row.keys())


class Workers(unittest.TestCase):
    def test_only_undisturbed_rounds_count_where_there_are_any(self):
        disturbed = {"both": 900, "alone": 100, "apart": 100, "clean": False}
        clean = [{"both": 100, "alone": 100, "apart": 90, "clean": True}] * 3
        rows = {row.id: row.as_json() for row in workers.rows_of("v4", [disturbed, *clean])}
        self.assertEqual(rows["workers/v4/2/alone"]["ratio"], 1.0)
        self.assertEqual(rows["workers/v4/2/apart"]["ratio"], 0.9)
        self.assertEqual(rows["workers/v4/2/apart"]["clean_rounds"], 0.75)
        self.assertAlmostEqual(workers.rows_of("v6", [disturbed])[0].as_json()["ratio"], 1 / 9)


if __name__ == "__main__":
    unittest.main()
