# SPDX-License-Identifier: BSD-3-Clause
"""The programs under measurement: started once, stopped by signal while the others have the core."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

CONTROL_LCORE, WORKER_LCORE = 0, 1


def hugepages_free() -> int:
    """2-MiB pages that nobody uses."""
    path = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(path.read_text()) if path.exists() else 0


class Hugepages:
    """Asks the kernel for `pages` while it is entered, when run as root; gives back what it added."""

    def __init__(self, pages: int):
        self.pages = pages
        self.path = pathlib.Path("/proc/sys/vm/nr_hugepages")
        self.before = None

    def __enter__(self) -> bool:
        if hugepages_free() < self.pages and os.access(self.path, os.W_OK):
            self.before = self.path.read_text()
            self.path.write_text(str(int(self.before) + self.pages))
        return hugepages_free() >= self.pages

    def __exit__(self, *_):
        if self.before is not None:
            self.path.write_text(self.before)



class Program:
    """A child process that polls one core flat out; counted packets come from packets()."""

    process: subprocess.Popen

    def stop_running(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.go_on()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def packets(self) -> int:
        raise NotImplementedError

    def rate(self, seconds: float) -> float:
        """Packets per second over `seconds`, the program running."""
        before, start = self.packets(), time.monotonic()
        time.sleep(seconds)
        after, end = self.packets(), time.monotonic()
        return (after - before) / (end - start)


class Sluice(Program):
    def __init__(self, build: str, config: str, name: str):
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-bench-")
        self.socket = f"{self.directory.name}/s"
        path = pathlib.Path(self.directory.name) / f"{name}.yaml"
        path.write_text(config.replace("SOCKET", self.socket), encoding="utf-8")
        self.log = open(f"{self.directory.name}/log", "w+", encoding="utf-8")
        self.ctl = f"{build}/app/sluicectl"
        self.process = subprocess.Popen([f"{build}/app/sluice", "--log-level", "warning", str(path)],
                                        stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not pathlib.Path(self.socket).exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise RuntimeError(f"sluice did not start:\n{self.log.read()}")
            time.sleep(0.05)

    def ask(self, *words: str):
        answer = subprocess.run([self.ctl, "-s", self.socket, "-j", *words], capture_output=True, text=True,
                                check=True)
        return json.loads(answer.stdout) if answer.stdout.strip() else None

    def worker(self) -> dict:
        return self.ask("stats", "workers")[0]

    def packets(self) -> int:
        return self.worker()["packets"]

    def close(self) -> None:
        super().close()
        self.log.close()
        self.directory.cleanup()


class Testpmd(Program):
    """dpdk-testpmd in io mode: receive, transmit, nothing between; the floor."""

    def __init__(self, vdevs: list, hugepages: bool, name: str, memory_mb: int):
        memory = ["--in-memory", "-m", str(memory_mb)] if hugepages else ["--no-huge", "-m", str(memory_mb)]
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", "dpdk-testpmd", "-l", f"{CONTROL_LCORE},{WORKER_LCORE}", "--no-pci", "--no-telemetry", *memory,
             f"--file-prefix={name}", *[f"--vdev={v}" for v in vdevs], "--", "-i", "--forward-mode=io",
             "--nb-cores=1", "--burst=32", "--total-num-mbufs=20000", "--auto-start"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self._until("testpmd> ")
        while self.packets() == 0:  # the prompt may come before the first packet
            time.sleep(0.05)

    def _until(self, text: str) -> str:
        seen = ""
        while not seen.endswith(text):
            character = self.process.stdout.read(1)
            if not character:
                raise RuntimeError(f"dpdk-testpmd ended:\n{seen}")
            seen += character
        return seen

    def packets(self) -> int:
        self.process.stdin.write("show port stats 0\n")
        self.process.stdin.flush()
        while True:
            seen = self._until("\n")
            if match := re.search(r"RX-packets: (\d+)", seen):
                self._until("testpmd> ")
                return int(match.group(1))
