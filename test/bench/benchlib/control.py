# SPDX-License-Identifier: BSD-3-Clause
"""A daemon to be asked things, and control_bench, the client that asks in microseconds."""

import json
import pathlib
import subprocess
import sys

from .process import Sluice


class Daemon(Sluice):
    def bench(self, *words: str, lines: str = "") -> dict:
        """What control_bench found."""
        done = subprocess.run([pathlib.Path(self.ctl).parents[1] / "test/bench/control_bench", self.socket, *words],
                              input=lines, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"control_bench {' '.join(words)[:60]}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def batch(self, requests: list) -> None:
        """Requests as (object, command, args)."""
        self.bench("batch", lines="".join(json.dumps({"object": o, "command": c, "args": a}) + "\n" for o, c, a in requests))

    def cpu_us(self) -> float:
        """That the control thread has had so far: what counts where others want the core, too."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e3

    def memory_mb(self) -> float:
        """Resident, 2-MiB pages included."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        kb = {line.split(":")[0]: int(line.split()[1]) for line in status.splitlines() if line.endswith("kB")}
        return (kb["VmRSS"] + kb["HugetlbPages"]) / 1024


def check_built(build: str) -> None:
    if not (pathlib.Path(build) / "test/bench/control_bench").exists():
        sys.exit(f"control_bench is not there: meson setup {build} && meson compile -C {build}")
