#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/bench peers measures by: programs by turns, alike traffic, a checked edit. Programs are fake."""

import argparse
import collections
import contextlib
import ipaddress
import pathlib
import struct
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from benchlib import cpu_clock, daemon_config, kernel_feed, pcap, peers_l3fwd, peers_sides, peers_tables  # noqa: E402
from benchlib.process import Program  # noqa: E402


class Fake(Program):
    """Says who has the core."""

    running = set()
    turns = []
    closed = []

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        self.go_on()

    def go_on(self):
        self.running.add(self.name)

    def stop_running(self):
        self.running.discard(self.name)

    def rate(self, seconds):
        assert self.running == {self.name}, self.running
        self.turns.append(self.name)
        self.wall_s += seconds
        self.cpu_s += seconds / 2
        return 1e6

    def worker(self):
        return {"tsc_hz": 2.1e9}

    def close(self):
        self.closed.append(self.name)


def broken():
    raise RuntimeError("does not start")


class Turns(unittest.TestCase):
    def setUp(self):
        Fake.running.clear(), Fake.turns.clear(), Fake.closed.clear()
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.bench = peers_sides.Bench(argparse.Namespace(), pathlib.Path(self.directory), False)
        self.table = peers_tables.Table(None, "v4", "small")

    def measure(self, factories):
        cell = peers_sides.Cell("x", self.table, 2, ())
        with mock.patch.object(peers_sides.Bench, "factories", lambda *_: factories):
            return peers_sides.measure(self.bench, cell, 5, 0.5)

    def test_one_at_a_time_and_each_first_in_its_turn(self):
        names = ("sluice", "floor", "l3fwd-lpm")
        rates, tsc_hz = self.measure({name: (lambda name=name: Fake(name)) for name in names})
        self.assertEqual(rates, {name: [1.0] * 5 for name in names})
        self.assertEqual(tsc_hz, 2.1e9)
        self.assertEqual(Fake.turns[::3], ["sluice", "floor", "l3fwd-lpm", "sluice", "floor"])
        self.assertCountEqual(Fake.closed, names)
        self.assertEqual((self.bench.wall_s, self.bench.cpu_s), (7.5, 3.75))

    def test_who_started_is_closed_when_another_did_not(self):
        with self.assertRaisesRegex(RuntimeError, "does not start"):
            self.measure({"sluice": lambda: Fake("sluice"), "floor": broken})
        self.assertEqual(Fake.closed, ["sluice"])


class Traffic(unittest.TestCase):
    def test_every_destination_equally_often_in_random_order(self):
        for family, at, size in (("v4", 30, 4), ("v6", 38, 16)):
            for count in (1, 15, 8000):
                with self.subTest(family=family, count=count):
                    addresses = pcap.destinations(family, count)
                    wanted = [ipaddress.ip_address(address).packed for address in addresses]
                    seen = [frame[at:at + size] for frame in pcap.each_alike(family, addresses)]
                    self.assertEqual(len(set(wanted)), count)
                    self.assertEqual(collections.Counter(seen), dict.fromkeys(wanted, max(1, 4096 // count)))
                    if count > 1:
                        self.assertNotEqual(seen, wanted * (len(seen) // count))

    def test_lengths_and_tags(self):
        for family in ("v4", "v6"):
            for length in (594, 1500):
                frames = pcap.each_alike(family, pcap.destinations(family, 3), length)
                self.assertEqual({len(frame) for frame in frames}, {length})
                announced = struct.unpack_from("!H", frames[0], 16 if family == "v4" else 18)[0]
                self.assertEqual(announced, length - 14 - (0 if family == "v4" else 40))
        plain, tagged = (pcap.each_alike("v4", ["198.18.0.1"], 0, vlan)[0] for vlan in (0, 100))
        self.assertEqual(tagged[12:16], b"\x81\x00\x00\x64")
        self.assertEqual(tagged[:12] + tagged[16:], plain)

    def test_a_capture_is_read_as_it_was_written(self):
        frames = pcap.each_alike("v6", pcap.destinations("v6", 5), packets=5)
        with tempfile.NamedTemporaryFile() as file:
            pcap.save(pathlib.Path(file.name), frames)
            self.assertEqual(kernel_feed.frames_of(file.name), frames)

    def test_destinations_are_all_over_the_table(self):
        prefixes = [f"20.{i}.0.0/16" for i in range(200)]
        found = peers_tables.destinations(prefixes, 150)
        self.assertEqual(len({address.split(".")[1] for address in found}), 150)
        self.assertEqual(found, peers_tables.destinations(prefixes, 150))


class Configuration(unittest.TestCase):
    def test_groups_and_tags(self):
        routes = daemon_config.over_group(["198.18.0.0/20"], 10)
        text = daemon_config.text(pathlib.Path("x"), "v4", routes, True, hops=4, vlans=True,
                                  sections=daemon_config.groups("v4", 4))
        self.assertIn("10: {group: {1: 1, 2: 1, 3: 1, 4: 1}}", text)
        self.assertIn('in: {link: p0, id: 100, addresses: [10.0.0.1/24', text)
        self.assertEqual(text.count("dev: out, lladdr"), 4)


class Edit(unittest.TestCase):
    SOURCE = "a\n\t\t.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,\nb\n"

    def test_the_request_is_taken_out(self):
        self.assertEqual(peers_l3fwd.edit(self.SOURCE, peers_l3fwd.NO_OFFLOAD["main.c"], "main.c"), "a\nb\n")

    def test_what_is_not_as_expected_is_not_built(self):
        for text in ("", self.SOURCE * 2, self.SOURCE.replace("CHECKSUM", "IPV4_CKSUM")):
            with self.assertRaisesRegex(RuntimeError, "main.c of l3fwd is not as expected"):
                peers_l3fwd.edit(text, peers_l3fwd.NO_OFFLOAD["main.c"], "main.c")


class Clock(unittest.TestCase):
    def test_what_the_thread_had(self):
        """Of the core, not of the wall: asleep it stands still."""
        clock = cpu_clock.ThreadClock(0)
        if clock.fd < 0:
            self.skipTest("perf_event_open is not permitted")
        with contextlib.closing(clock):
            start = clock.ns()
            time.sleep(0.05)
            slept = clock.ns() - start
            own = time.thread_time_ns()
            while time.thread_time_ns() < own + 20_000_000:
                pass
            worked = clock.ns() - start - slept
        self.assertLess(slept, 20_000_000)
        self.assertGreaterEqual(worked, 19_000_000)


if __name__ == "__main__":
    unittest.main()
