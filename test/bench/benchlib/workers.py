# SPDX-License-Identifier: BSD-3-Clause
"""What a second worker costs the first: cycles per packet of two workers of one process at once, beside each of them
alone, and beside two that work at once in processes of their own and so share nothing but the machine."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from . import pcap, report
from .process import Program

COUNT = 1000
SECONDS = 0.03


class Process(Program):
    """One two_workers; stopped unless it measures: even a sleeping worker wakes up a thousand times a second."""

    def __init__(self, build: str, path: pathlib.Path, workers: str):
        super().__init__()
        self.process = subprocess.Popen([f"{build}/test/bench/two_workers", path, workers], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.answer()

    def ask(self, workers: str) -> None:
        self.go_on()
        self.process.stdin.write(f"{workers} {SECONDS}\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        for line in self.process.stdout:
            if line.startswith("{"):  # drivers talk, too
                self.stop_running()
                return json.loads(line)
        raise RuntimeError(f"two_workers ended with status {self.process.wait()}")

    def measure(self, workers: str) -> dict:
        self.ask(workers)
        return self.answer()


def round_of(turn: int, both: Process, apart: list) -> dict:
    """Mean cycles per packet of the two workers, and whether all of it was undisturbed. The clock of a core changes at any
    time: what is compared stands next to each other."""
    def in_turn():
        return [both.measure("0"), both.measure("1")]

    def at_once():
        for worker, process in enumerate(apart):
            process.ask(str(worker))
        return [process.answer() for process in apart]

    # The middle one of three: as far from the one as from the other.
    first, last = (in_turn, at_once) if turn % 2 == 0 else (at_once, in_turn)
    found = {first: first()}
    together = both.measure("01")
    found[last] = last()
    alone, others = found[in_turn], found[at_once]
    mean = lambda found: statistics.mean(f["cycles"][worker] for worker, f in enumerate(found))  # noqa: E731
    return {"both": statistics.mean(together["cycles"]), "alone": mean(alone), "apart": mean(others),
            "clean": all(f["clean"] for f in (together, *alone, *others))}


def measure(build: str, path: pathlib.Path, rounds: int) -> list:
    processes = []
    try:
        for workers in ("01", "0", "1"):
            processes.append(Process(build, path, workers))
        return [round_of(turn, processes[0], processes[1:]) for turn in range(rounds)]
    finally:
        for process in processes:
            process.close()


def rows_of(family: str, found: list) -> list:
    """Of the undisturbed rounds, where there are any. The ratio is above 1 where two at once are cheaper."""
    rows = []
    share = sum(f["clean"] for f in found) / len(found)
    found = [f for f in found if f["clean"]] or found
    for against in ("alone", "apart"):
        row = report.Row(f"workers/{family}/2/{against}", "TSC cycles/packet", [f["both"] for f in found], against,
                         [f[against] for f in found])
        ratios = row.ratios()
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        row.extra |= {"ratio_q1": quartiles[0], "ratio_q3": quartiles[2], "clean_rounds": share}
        rows.append(row)
    return rows


def run(options):
    if not (pathlib.Path(options.build) / "test/bench/two_workers").exists():
        sys.exit(f"two_workers is not there: meson setup {options.build} && meson compile -C {options.build}")
    quiet = report.is_quiet()
    rounds = 40 if options.quick else 200
    rows = []
    print(f"{'':22}{'two at once':>13}{'compared':>11}{'ratio':>8}{'quartiles':>15}{'clean %':>9}")
    with tempfile.TemporaryDirectory() as directory:
        for family in ("v4", "v6"):
            path = pathlib.Path(directory) / f"{family}.pcap"
            pcap.write_random(path, family, COUNT)
            for row in rows_of(family, measure(options.build, path, rounds)):
                rows.append(row)
                j = row.as_json()
                print(f"{row.id:22}{j['value']:13.1f}{j['against_value']:11.1f}{j['ratio']:8.3f}"
                      f"{j['ratio_q1']:9.3f}-{j['ratio_q3']:.3f}{j['clean_rounds'] * 100:9.0f}")
                sys.stdout.flush()
    print("TSC cycles per packet, the whole loop, net_pcap to one net_null, 1,000 destinations: two workers of one process beside each\n"
          "alone, and beside two in processes of their own. Ratio: compared / two at once, median of the rounds\nin which nobody else took a core (clean).")
    return quiet, rows
