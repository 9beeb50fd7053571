# SPDX-License-Identifier: BSD-3-Clause
"""How long a packet takes through sluice: through net_ring ports inside one process, and through a daemon's net_tap ports
from one network namespace to another; at parts of the highest rate, with a worker that polls and one that may sleep."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

from . import program, report
from .process import CONTROL_LCORE, WORKER_LCORE, Sluice

LEVELS = ["10", "50", "90"]
MODES = ["poll", "adaptive"]
PERCENTILES = ["p50", "p99", "p999", "max"]
CONFIG = """version: 1
dpdk: {{lcores: [{control}, {worker}], hugepages: false, memory-mb: 128}}
workers: {{idle: {idle}}}
control: {{socket: SOCKET}}
ports:
  p0: {{device: "net_tap0,iface={taps[0]}", mac: "02:00:00:00:00:01", rx-queues: 1, addresses: [10.0.0.1/24]}}
  p1: {{device: "net_tap1,iface={taps[1]}", mac: "02:00:00:00:00:02", rx-queues: 1, addresses: [10.0.1.1/24]}}
"""


def command(*words: str) -> str:
    done = subprocess.run([str(word) for word in words], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


class Tap:
    """A daemon with two net_tap ports, the kernel's end of each in a namespace."""

    def __init__(self, build: str):
        self.build = build
        self.names = [f"sll{os.getpid()}{end}" for end in "ab"]  # of namespaces and interfaces
        self.instance = f"bench{os.getpid()}"
        self.sluice = None

    def __enter__(self):
        try:
            for name in self.names:
                command("ip", "netns", "add", name)
            self.sluice = Sluice(self.build, self.config("adaptive"), self.instance)
            for i, name in enumerate(self.names):
                inside = ["ip", "-n", name]
                command("ip", "link", "set", name, "netns", name)
                command("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
                command(*inside, "addr", "add", f"10.0.{i}.2/24", "dev", name)
                command(*inside, "link", "set", name, "up")
                command(*inside, "route", "add", "default", "via", f"10.0.{i}.1")
            self.run("100", 0.5)  # neighbors
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.sluice is not None:
            self.sluice.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def config(self, idle: str) -> str:
        return CONFIG.format(control=CONTROL_LCORE, worker=WORKER_LCORE, idle=idle, taps=self.names)

    def idle(self, mode: str) -> None:
        path = pathlib.Path(self.sluice.directory.name) / f"{self.instance}.yaml"
        path.write_text(self.config(mode).replace("SOCKET", self.sluice.socket), encoding="utf-8")
        command(self.sluice.ctl, "-s", self.sluice.socket, "config", "reload", path)

    def run(self, level: str, seconds: float) -> dict:
        sender, receiver = self.names
        program_path = pathlib.Path(self.build) / "test" / "bench" / "tap_latency"
        return json.loads(command("taskset", "-c", CONTROL_LCORE, program_path, sender, "10.0.0.2", receiver, "10.0.1.2",
                                  self.sluice.process.pid, level, seconds))

    def lines(self, rounds: int, seconds: float):
        """As ring_latency prints them."""
        for turn in range(rounds):
            modes = MODES if turn % 2 == 0 else MODES[::-1]
            most = {}
            for level in ["max", *LEVELS]:
                for mode in modes:
                    self.idle(mode)
                    rate = "max" if level == "max" else f"{min(most.values()) * int(level) / 100:.0f}"
                    found = self.run(rate, seconds)
                    if level == "max":
                        most[mode] = found["pps"]
                    yield {"level": level, "mode": mode, "round": turn, **found}
            self.idle("adaptive")
            yield {"level": "wakeup", "mode": "adaptive", "round": turn, **self.run("wakeup", 2 * seconds)}


def rows_of(wire: str, samples: dict, bound_us: float) -> list:
    """`samples`: (level, mode) -> what was found in each round. Ratios are against polling, of `wakeup`, which only a worker
    that sleeps has, against the longest sleep."""
    rows = []
    for (level, mode), found in samples.items():
        against, others = ("bound", [dict.fromkeys(PERCENTILES, bound_us)] * len(found)) if level == "wakeup" else (
            "poll", samples[level, "poll"])
        if level == "max":
            rows.append(report.Row(f"latency/{wire}/max/{mode}", "Mpps", [f["pps"] / 1e6 for f in found], against,
                                   [f["pps"] / 1e6 for f in others], lower_is_better=False))
            continue
        for part in PERCENTILES:
            row = report.Row(f"latency/{wire}/{level}/{mode}/{part}", "µs", [f[part] for f in found], against,
                             [f[part] for f in others])
            row.extra["pps"] = statistics.median(f["pps"] for f in found)
            row.extra["clean_windows"] = sum(f["clean"] for f in found) / sum(f["windows"] for f in found)
            rows.append(row)
    return rows


def show(wire: str, samples: dict) -> None:
    for (level, mode), found in samples.items():
        middle = {key: statistics.median(f[key] for f in found) for key in ["pps", *PERCENTILES]}
        lost = sum(f["sent"] - f["received"] for f in found) / max(sum(f["sent"] for f in found), 1)
        clean = sum(f["clean"] for f in found) / sum(f["windows"] for f in found)
        name = f"{wire}/{level}/{mode}"
        print(f"{name:24}{middle['pps'] / 1e6:9.3f}" + "".join(f"{middle[part]:10.1f}" for part in PERCENTILES) +
              f"{lost * 100:9.2f}{clean * 100:9.0f}")
    sys.stdout.flush()


def gathered(lines) -> dict:
    """(level, mode) -> what was found in each round; of a level the rounds in which both modes had an undisturbed window, where
    there are any."""
    samples = {}
    for line in lines:
        samples.setdefault((line["level"], line["mode"]), []).append(line)
    disturbed = {(line["level"], line["round"]) for found in samples.values() for line in found if not line["clean"]}
    for (level, mode), found in samples.items():
        samples[level, mode] = [line for line in found if (level, line["round"]) not in disturbed] or found
    order = ["max", *LEVELS, "wakeup"]
    return dict(sorted(samples.items(), key=lambda item: (order.index(item[0][0]), MODES.index(item[0][1]))))


def run(options):
    quiet = report.is_quiet()
    rounds, seconds = (2, 0.3) if options.quick else (7, 0.5)
    print(f"{'':24}{'Mpps':>9}" + "".join(f"{part + ' us':>10}" for part in ["p50", "p99", "p99.9", "max"]) +
          f"{'lost %':>9}{'clean %':>9}")
    ring = gathered(program.lines(options.build, "ring_latency", "--rounds", str(rounds), "--seconds", str(seconds)))
    show("ring", ring)
    with Tap(options.build) as tap:
        taps = gathered(tap.lines(rounds, seconds))
    show("tap", taps)
    bound = ring["wakeup", "adaptive"][0]["bound_us"]
    print(f"Microseconds from the sender to the receiver, median of {rounds} rounds at most. 10, 50, 90: percent of the highest rate, the lower\n"
          f"of both modes. wakeup: the worker is asleep; without an interrupt (ring) it sleeps {bound} us at most. Of windows of 2 ms\n"
          "only those count in which nobody else took the two cores (clean); of a level without any, all.")
    return quiet, rows_of("ring", ring, bound) + rows_of("tap", taps, bound)
