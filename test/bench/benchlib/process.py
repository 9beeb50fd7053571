# SPDX-License-Identifier: BSD-3-Clause
"""The programs under measurement: started once, stopped by signal while the others have the core."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import cpu_clock

CONTROL_LCORE, WORKER_LCORE = 0, 1
WARM_S = 0.01  # of the core, after the others had it: caches, branch predictor
TX_PORT = 1


def hugepages_free() -> int:
    """2-MiB pages that nobody uses."""
    path = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(path.read_text()) if path.exists() else 0


class Hugepages:
    """Asks the kernel for `pages` while it is entered, when run as root; gives back what it added."""

    def __init__(self, pages: int):
        self.pages = pages
        self.path = pathlib.Path("/proc/sys/vm/nr_hugepages")
        self.added = 0

    def __enter__(self) -> bool:
        if (missing := self.pages - hugepages_free()) > 0 and os.access(self.path, os.W_OK):
            before = int(self.path.read_text())
            self.path.write_text(str(before + missing))
            self.added = int(self.path.read_text()) - before
        return hugepages_free() >= self.pages

    def __exit__(self, *_):
        if self.added:
            self.path.write_text(str(int(self.path.read_text()) - self.added))


class Program:
    """A child process that polls one core flat out; counted packets come from packets()."""

    process: subprocess.Popen

    def __init__(self):
        self.clocks = []
        self.wall_s = self.cpu_s = 0.0  # of all windows

    def stop_running(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        for clock in self.clocks:
            clock.close()
        self.go_on()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def packets(self) -> int:
        raise NotImplementedError

    def check_forwarded(self) -> None:
        """A fast program that forwards nothing would be worth nothing."""

    def _polling_threads(self) -> list:
        return [cpu_clock.busiest_thread(self.process.pid, WORKER_LCORE)]

    def cpu_ns(self) -> int:
        """The time that its worker has had of the core."""
        if not self.clocks:
            self.clocks = [cpu_clock.ThreadClock(tid) for tid in self._polling_threads()]
        return sum(clock.ns() for clock in self.clocks)

    def _wait_for_cpu(self, until_ns: int, deadline: float) -> None:
        while (left := until_ns - self.cpu_ns()) > 0:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{type(self).__name__} did not get the core")
            time.sleep(max(left / 1e9, 0.001))

    def window(self, seconds: float) -> tuple:
        """Packets, and the nanoseconds of the core that they took: at least `seconds`, however long others keep it."""
        deadline = time.monotonic() + 20 * seconds + 10
        self._wait_for_cpu(self.cpu_ns() + int(WARM_S * 1e9), deadline)
        # A request takes a moment: the packets are of the middle between the two clocks.
        start, wall = self.cpu_ns(), time.monotonic()
        first = self.packets()
        started = self.cpu_ns()
        self._wait_for_cpu(started + int(seconds * 1e9), deadline)
        end = self.cpu_ns()
        last = self.packets()
        ended = self.cpu_ns()
        self.wall_s += time.monotonic() - wall
        self.cpu_s += (ended - start) / 1e9
        return last - first, (end + ended - start - started) / 2

    def rate(self, seconds: float) -> float:
        """Packets per second that its worker has of the core, the program running."""
        packets, ns = self.window(seconds)
        return packets / ns * 1e9


def _runtime_directory(file_prefix: str) -> pathlib.Path:
    """As DPDK looks for it."""
    otherwise = "/var/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return pathlib.Path(os.environ.get("RUNTIME_DIRECTORY", otherwise)) / "dpdk" / file_prefix


class Telemetry:
    """The socket that every DPDK program has."""

    def __init__(self, file_prefix: str, process: subprocess.Popen, deadline_s: float):
        path = str(_runtime_directory(file_prefix) / "dpdk_telemetry.v2")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                self.socket.connect(path)
                break
            except OSError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("did not start") from error
                time.sleep(0.02)
        self.socket.recv(16384)  # its greeting

    def ask(self, command: str):
        self.socket.send(command.encode())
        return next(iter(json.loads(self.socket.recv(65536)).values()))

    def port(self, number: int) -> dict:
        return self.ask(f"/ethdev/stats,{number}") or {}

    def close(self) -> None:
        self.socket.close()


class DpdkProgram(Program):
    """Counted by its TX port's driver, whoever it is."""

    START_S = 120  # a full table, on a busy machine

    def _start(self, arguments: list, file_prefix: str, log) -> None:
        self.log = log
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.file_prefix = file_prefix
        self.telemetry = None

    def wait_until_forwarding(self) -> None:
        """All that it receives: it may begin before it has read all its routes, or throw away what it finds first."""
        deadline = time.monotonic() + self.START_S
        try:
            if self.telemetry is None:
                self.telemetry = Telemetry(self.file_prefix, self.process, self.START_S)
            while True:
                self.before = (self.received(), self.packets())
                time.sleep(0.02)
                received, sent = self._since_before()
                if received > 1000 and sent >= 0.99 * received:
                    break
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"received {received} packets and sent {sent}")
        except (OSError, ValueError, RuntimeError) as error:
            self.log.seek(0)
            said = self.log.read()[-2000:]
            self.close()
            raise RuntimeError(f"{self.process.args[0]}: {error}\n{said}") from error

    def packets(self) -> int:
        return self.telemetry.port(TX_PORT).get("opackets", 0)

    def _since_before(self) -> tuple:
        return self.received() - self.before[0], self.packets() - self.before[1]

    def received(self) -> int:
        return self.telemetry.port(0).get("ipackets", 0)

    def check_forwarded(self) -> None:
        received, sent = self._since_before()
        if sent < 0.99 * received:
            raise RuntimeError(f"{self.process.args[0]} received {received} packets and sent {sent}")

    def close(self) -> None:
        super().close()
        if self.telemetry is not None:
            self.telemetry.close()
        shutil.rmtree(_runtime_directory(self.file_prefix), ignore_errors=True)  # 22.11 leaves it


def memory_arguments(hugepages: bool, memory_mb: int) -> list:
    return ["--in-memory", "-m", str(memory_mb)] if hugepages else ["--no-huge", "-m", str(memory_mb)]


class Sluice(DpdkProgram):
    def __init__(self, build: str, config: str, name: str):
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="sluice-bench-")
        self.socket = f"{self.directory.name}/s"
        path = pathlib.Path(self.directory.name) / f"{name}.yaml"
        path.write_text(config.replace("SOCKET", self.socket), encoding="utf-8")
        self.ctl = f"{build}/app/sluicectl"
        self._start([f"{build}/app/sluice", "--log-level", "warning", str(path)], f"sluice-{name}",
                    open(f"{self.directory.name}/log", "w+", encoding="utf-8"))
        deadline = time.monotonic() + self.START_S
        while not pathlib.Path(self.socket).exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                said = self.log.read()
                self.close()
                raise RuntimeError(f"sluice did not start:\n{said}")
            time.sleep(0.05)

    def ask(self, *words: str):
        answer = subprocess.run([self.ctl, "-s", self.socket, "-j", *words], capture_output=True, text=True,
                                check=True)
        return json.loads(answer.stdout) if answer.stdout.strip() else None

    def worker(self) -> dict:
        return self.ask("stats", "workers")[0]

    def wait_until_forwarding(self) -> None:
        self.worker()  # it answers when it has read its configuration
        super().wait_until_forwarding()

    def close(self) -> None:
        super().close()
        self.log.close()
        self.directory.cleanup()


class Testpmd(DpdkProgram):
    """dpdk-testpmd in io mode: receive, transmit, nothing between; the floor."""

    def __init__(self, vdevs: list, hugepages: bool, name: str, memory_mb: int):
        super().__init__()
        self._start(["dpdk-testpmd", "-l", f"{CONTROL_LCORE},{WORKER_LCORE}", "--no-pci",
                     *memory_arguments(hugepages, memory_mb), f"--file-prefix={name}", *[f"--vdev={v}" for v in vdevs],
                     "--", "--forward-mode=io", "--nb-cores=1", "--burst=32", "--total-num-mbufs=20000", "--auto-start"],
                    name, tempfile.TemporaryFile("w+", encoding="utf-8"))
        self.wait_until_forwarding()
