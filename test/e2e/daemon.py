# SPDX-License-Identifier: BSD-3-Clause
"""Starting and stopping sluice, and asking it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
BUILD = TREE / os.environ.get("SLUICE_BUILD", "build")
SLUICE = BUILD / "app" / "sluice"
SLUICECTL = BUILD / "app" / "sluicectl"


class CtlError(Exception):
    def __init__(self, words, status, text):
        super().__init__(f"sluicectl {' '.join(map(str, words))}: status {status}: {text}")
        self.status = status
        self.text = text


class Ctl:
    """sluicectl on one control socket."""

    def __init__(self, socket, netns=None):
        self.socket = str(socket)
        self.options = ["-n", netns] if netns else []

    def within(self, netns):
        """The same daemon, another of its netns."""
        return Ctl(self.socket, netns)

    def text(self, *words, timeout=20):
        command = [str(SLUICECTL), "-s", self.socket, *self.options, *map(str, words)]
        done = subprocess.run(command, text=True, capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise CtlError(words, done.returncode, done.stderr.strip())
        return done.stdout

    def batch(self, *lines):
        """Many commands in one go; stops at the first that is refused."""
        done = subprocess.run([str(SLUICECTL), "-s", self.socket, *self.options, "-b", "-"], text=True,
                              capture_output=True, timeout=60, input="\n".join(lines) + "\n")
        if done.returncode != 0:
            raise CtlError(["batch"], done.returncode, done.stderr.strip())
        return done.stdout

    def json(self, *words):
        return json.loads(self.text("-j", *words))

    def refused(self, *words):
        """The message of a command that must fail."""
        try:
            out = self.text(*words)
        except CtlError as error:
            assert error.text, f"{words}: refused without a message"
            return error.text
        raise AssertionError(f"sluicectl {' '.join(map(str, words))} was accepted: {out}")

    def state(self):
        """All that a rejected command may not change."""
        return {"link": self.links(), "addr": self.json("addr", "show"),
                "route": self.routes(), "neigh": self.neighbors()}

    def links(self):
        return {link["name"]: link for link in self.json("link", "show")}

    def routes(self):
        return self.json("route", "show")

    def neighbors(self):
        return self.json("neigh", "show")

    def neighbor(self, address):
        return next((n for n in self.neighbors() if n["address"] == address), None)

    def counters(self):
        """{netdev: {counter: number, "drops": {reason: number}}}; NETNS/NETDEV where that is not the default"""
        return {(row["name"] if row["netns"] == "default" else f"{row['netns']}/{row['name']}"): row
                for row in self.json("stats", "show")["netdevs"]}

    def pools(self):
        """{pool: mbufs in use}"""
        return {row["name"]: row["in_use"] for row in self.json("stats", "show")["pools"]}


class Daemon:
    """One running sluice; `config` is a dict, written as JSON, which YAML is a superset of."""

    def __init__(self, config, namespace=None, folder=None):
        self.config = config
        self.namespace = namespace
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="sluice-e2e-"))
        self.file = self.folder / f"{config['instance']}.yaml"
        self.socket = pathlib.Path(config["control"]["socket"])
        self.ctl = Ctl(self.socket)
        self.log = self.folder / "log"
        self.process = None
        self.write(config)

    def write(self, config):
        self.config = config
        self.file.write_text(json.dumps(config, indent=1))

    def start(self, ready=True):
        command = [str(SLUICE), str(self.file)]
        if self.namespace:
            command = self.namespace.command(*command)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self, timeout=30):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"sluice ended with {self.process.returncode}:\n{self.log_text()}")
            if self.socket.exists():
                try:
                    self.ctl.links()
                    return
                except CtlError:
                    pass
            time.sleep(0.05)
        raise AssertionError(f"sluice does not answer after {timeout} s:\n{self.log_text()}")

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def reload(self, config=None):
        """Reloads over the control socket, which answers when it is done."""
        if config is not None:
            self.write(config)
        self.ctl.text("config", "reload")

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self, timeout=15):
        """SIGTERM; the exit status."""
        if self.alive():
            self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"sluice did not stop within {timeout} s:\n{self.log_text()}")

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def clean_up(self):
        """Whatever happened, nothing stays: not the process, nor what a killed one leaves."""
        self.kill()
        shutil.rmtree(f"/var/run/dpdk/sluice-{self.config['instance']}", ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
