# SPDX-License-Identifier: BSD-3-Clause
"""The processor time that a thread of any process has had, to the nanosecond: what others take from a shared core is
not in it. (schedstat of a running thread is as old as the last tick.)"""

import ctypes
import os
import pathlib
import struct
import time

_SYS_PERF_EVENT_OPEN = 298  # x86-64
_TYPE_SOFTWARE, _TASK_CLOCK = 1, 1
_ATTR_BYTES = 112
_CLOEXEC = 8


class ThreadClock:
    """Wall time where the kernel does not let us count."""

    def __init__(self, tid: int):
        attr = struct.pack("<IIQ", _TYPE_SOFTWARE, _ATTR_BYTES, _TASK_CLOCK).ljust(_ATTR_BYTES, b"\0")
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.syscall(_SYS_PERF_EVENT_OPEN, attr, tid, -1, -1, _CLOEXEC)

    def ns(self) -> int:
        if self.fd < 0:
            return time.monotonic_ns()
        return struct.unpack("<Q", os.read(self.fd, 8))[0]

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def busiest_thread(pid: int, lcore: int) -> int:
    """Of those that may run on `lcore` only: the one that polls."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        status = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line)
        if status["Cpus_allowed_list"].strip() == str(lcore):
            found.append((int((task / "schedstat").read_text().split()[0]), int(task.name)))
    if not found:
        raise RuntimeError(f"process {pid} has no thread on lcore {lcore}")
    return max(found)[1]


def thread_named(name: str) -> int:
    """A kernel thread."""
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        if path.read_text().strip() == name:
            return int(path.parent.name)
    raise RuntimeError(f"no thread is called {name}")
