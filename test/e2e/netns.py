# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces, and sockets and commands in them."""

import ctypes
import itertools
import os
import socket
import subprocess

_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_serial = itertools.count()


def _setns(fd):
    if _libc.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Namespace:
    """A network namespace with a name of its own, quiet: no autoconfiguration, no IPv6 noise."""

    def __init__(self, role):
        self.name = f"slr{os.getpid()}-{next(_serial)}-{role}"
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        self.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        self.run("ip", "link", "set", "lo", "up")

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words, check=True, timeout=30):
        """The completed process; its output is text. Raises with that output if `check`."""
        done = subprocess.run(
            self.command(*words), text=True, timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}")
        return done

    def popen(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.command(*words), text=True, **options)

    def sysctl(self, name, value):
        self.run("sysctl", "-qw", f"{name}={value}")

    def socket(self, *arguments):
        """A socket stays in the namespace that it was made in, whoever uses it."""
        with open("/proc/thread-self/ns/net", "rb") as home, \
                open(f"/run/netns/{self.name}", "rb") as there:
            _setns(there.fileno())
            try:
                return socket.socket(*arguments)
            finally:
                _setns(home.fileno())

    def links(self):
        out = self.run("ip", "-o", "link", "show").stdout
        return {line.split(": ")[1].split("@")[0] for line in out.splitlines()}

    def delete(self):
        pids = subprocess.run(["ip", "netns", "pids", self.name], text=True, capture_output=True)
        for pid in pids.stdout.split():
            try:
                os.kill(int(pid), 9)
            except ProcessLookupError:
                pass
        subprocess.run(["ip", "netns", "del", self.name], check=False)
