# SPDX-License-Identifier: BSD-3-Clause
"""The process: exit codes, signals, instances side by side, reloads. cases.md J where it needs a
running daemon (the reader's part of it is in test/config)."""

import glob
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest
from bench import Base, WireBench, configuration
from daemon import SLUICE, SLUICECTL, TREE, Daemon
from frames import H0, H1, R0, R1, IP, Ether, ICMP, forwarded_l3, l3, udp4, udp6
from netns import Namespace

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def run(*words, timeout=60, **options):
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **options)


@pytest.fixture
def file(tmp_path):
    def write(text):
        tmp_path.chmod(0o755)
        path = tmp_path / "a.yaml"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        path.chmod(0o644)
        return path
    return write


@pytest.fixture
def readable_sluice(tmp_path_factory):
    """The tree may lie where nobody may look: a copy that everybody may run."""
    folder = tmp_path_factory.mktemp("bin")
    for path in (folder, *list(folder.parents)[:2]):
        path.chmod(0o755)
    copy = folder / "sluice"
    copy.write_bytes(SLUICE.read_bytes())
    copy.chmod(0o755)
    return copy


@pytest.mark.parametrize("arguments", [[], ["--nonsense"], ["a.yaml", "b.yaml"], ["--log-level", "loud", "a.yaml"]])
def test_usage_is_2(arguments):
    done = run(SLUICE, *arguments)
    assert done.returncode == 2 and done.stderr.strip(), done


@pytest.mark.parametrize("arguments", [["frobnicate"], ["route", "add"], ["-j"], []])
def test_usage_of_the_client(arguments):
    done = run(SLUICECTL, "-s", "/nonexistent.sock", *arguments)
    assert done.returncode == 2 and done.stderr.strip(), done


def test_help_and_version():
    for program in (SLUICE, SLUICECTL):
        done = run(program, "--help")
        assert done.returncode == 0 and "sluice" in done.stdout.lower(), done


def test_no_daemon():
    done = run(SLUICECTL, "-s", "/nonexistent.sock", "link", "show")
    assert done.returncode not in (0, 2) and "/nonexistent.sock" in done.stderr, done


@pytest.mark.parametrize("text, words", [
    ("version: 1\nportz: {}\n", ["2:1", "ports"]),
    ("version: 1\nports:\n  p0: {device: net_null0, mtu: 50}\n  p1: {device: net_null0}\n", ["3:", "4:"]),
    ("version: 1\nvrfs: {blue: {table: 255}}\nports: {}\n", ["2:", "255"]),
    ("version: 1\nports: [\n", ["a.yaml:"]),
    ("", ["a.yaml:"]),
])
def test_bad_configuration_is_78(file, text, words):
    path = file(text)
    for options in ([], ["--check"]):
        done = run(SLUICE, *options, path)
        assert done.returncode == 78, done
        for word in words:
            assert word in done.stderr, done.stderr


def test_missing_file(tmp_path):
    done = run(SLUICE, tmp_path / "none.yaml")
    assert done.returncode in (2, 66, 78, 1) and "none.yaml" in done.stderr, done


def test_missing_device_is_69(file):
    config, _ = configuration(standard=False, ports={"p0": {}})
    config["ports"]["p0"]["device"] = "0000:ff:1f.7"
    done = run(SLUICE, file(config))
    assert done.returncode == 69 and "0000:ff:1f.7" in done.stderr + done.stdout, done
    config["ports"]["p0"]["device"] = "net_nothing0"
    done = run(SLUICE, file(config))
    assert done.returncode == 69 and "net_nothing0" in done.stderr + done.stdout, done


def test_missing_hugepages_is_69(file):
    if int(pathlib.Path("/proc/sys/vm/nr_hugepages").read_text()) != 0:
        pytest.skip("this machine has hugepages")
    config, _ = configuration()
    config["dpdk"]["hugepages"] = True
    done = run(SLUICE, file(config))
    text = done.stderr + done.stdout
    assert done.returncode == 69 and "nr_hugepages" in text and "hugepages: false" in text, done


def test_missing_lcores(file):
    config, _ = configuration()
    config["dpdk"]["lcores"] = [0, 127]
    done = run(SLUICE, file(config))
    assert done.returncode in (69, 78) and "127" in done.stderr + done.stdout, done


def test_missing_rights_is_77(file, readable_sluice):
    config, _ = configuration()
    config["control"]["socket"] = "/tmp/sluice-nobody.sock"
    done = run(*NOBODY, readable_sluice, file(config))
    assert done.returncode == 77 and "root" in done.stderr + done.stdout, done


def test_case_J136_check_needs_no_rights(file, readable_sluice):
    config, _ = configuration()
    config["dpdk"]["hugepages"] = True
    done = run(*NOBODY, readable_sluice, "--check", file(config))
    assert done.returncode == 0 and "net_tap0,iface=t0" in done.stdout, done
    again = run(*NOBODY, readable_sluice, "--check", file(done.stdout))
    assert again.returncode == 0 and again.stdout == done.stdout, "the effective configuration is not a fixed point"
    assert "EAL" not in done.stderr + done.stdout


@pytest.mark.parametrize("name", sorted(p.name for p in (TREE / "conf").glob("*.yaml")))
def test_examples_pass_the_check(name):
    done = run(SLUICE, "--check", TREE / "conf" / name)
    assert done.returncode == 0, done.stderr


def test_case_J128_macs(new_bench):
    bench = new_bench(ports={"p2": {"mac": "52:54:00:12:34:56"}})
    assert bench.ctl.links()["p2"]["mac"] == "52:54:00:12:34:56"
    assert '"52:54:00:12:34:56"' in bench.ctl.text("config", "show")


def test_case_A18_one_mac_twice_is_refused(file):
    config, _ = configuration()
    config["ports"]["p1"]["mac"] = R0
    done = run(SLUICE, "--check", file(config))
    assert done.returncode == 78 and R0 in done.stderr, done


def leftovers(config):
    """What a stopped instance may not leave behind."""
    name = config["instance"]
    found = [path for pattern in ("/dev/hugepages/*", "/run/dpdk/*", "/var/run/dpdk/*", "/dev/shm/*", "/run/sluice/*")
             for path in glob.glob(pattern) if name in path]
    if os.path.exists(config["control"]["socket"]):
        found.append(config["control"]["socket"])
    return found


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_clean_stop(signum):
    config, folder = configuration()
    router = Namespace("stop")
    daemon = Daemon(config, router, folder)
    try:
        daemon.start()
        assert {"t0", "t1"} <= router.links()
        daemon.process.send_signal(signum)
        assert daemon.process.wait(10) == 0, daemon.log_text()
        assert not {"t0", "t1"} & router.links()
        assert leftovers(config) == []
    finally:
        daemon.clean_up()
        router.delete()


def test_effective_eal_arguments_are_logged_first(bench):
    first = next(line for line in bench.daemon.log_text().splitlines() if line.strip())
    assert "--file-prefix" in first and "--no-huge" in first, first


def test_kill_9_then_start_again():
    config, folder = configuration()
    router = Namespace("kill")
    daemon = Daemon(config, router, folder)
    try:
        for _ in range(3):
            daemon.start()
            daemon.kill()
        daemon.start()
        assert daemon.stop() == 0
        assert leftovers(config) == []
    finally:
        daemon.clean_up()
        router.delete()


def test_case_I117_two_instances_side_by_side():
    """Each forwards; one ends; the other goes on."""
    one, two = WireBench(), WireBench()
    try:
        for bench in (one, two, one, two):
            bench.forwards(udp4())
            bench.forwards(udp6())
    finally:
        two.close()
        try:
            one.forwards(udp4())
        finally:
            one.close()


def test_one_instance_twice_is_refused(bench):
    done = run(*bench.router.command(SLUICE, bench.daemon.file))
    assert done.returncode not in (0, 2) and done.stderr + done.stdout, done
    bench.forwards(udp4())
    assert bench.ctl.links()


def test_case_A01_route_loop():
    """Two routers that send each other what neither has: TTL-1 copies in all, then one error."""
    router = Namespace("loop")
    daemons = []
    try:
        for mine, other in ((1, 2), (2, 1)):
            config, folder = configuration(
                standard=False,
                ports={"in": {"mac": f"02:00:00:00:{mine:02x}:01", "addresses": [f"10.{mine}.0.1/24"]},
                       "mid": {"mac": f"02:00:00:00:{mine:02x}:02", "addresses": [f"10.9.0.{mine}/24"]}},
                routes=[{"to": "198.51.100.0/24", "via": f"10.9.0.{other}"},
                        {"to": f"10.{other}.0.0/24", "via": f"10.9.0.{other}"}],
                neighbors=[{"to": "10.1.0.2", "dev": "in", "lladdr": H0}] if mine == 1 else [])
            for number, port in enumerate(config["ports"].values()):
                port["device"] = f"net_tap{number},iface=r{mine}t{number}"
            daemons.append(Daemon(config, router, folder).start())
        # A switch between the two: its ports may not carry the routers' own MACs.
        router.run("ip", "link", "add", "name", "switch", "type", "bridge")
        for mine in (1, 2):
            tap = f"r{mine}t1"
            router.run("ip", "link", "set", tap, "address", f"02:cc:00:00:00:{mine:02x}")
            router.run("ip", "link", "set", tap, "master", "switch")
            router.run("ip", "link", "set", tap, "up")
        router.run("ip", "link", "set", "switch", "up")
        from wire import Wire
        host, watch = Wire(router, "r1t0"), Wire(router, "r1t1")
        ttl = 20
        host.send(bytes(udp4(src="10.1.0.2", dst="198.51.100.9", ttl=ttl, eth={"dst": "02:00:00:00:01:01"})))
        errors = host.collect(lambda f: Ether(f).haslayer(ICMP), 3)
        assert len(errors) == 1 and Ether(errors[0])[ICMP].type == 11
        copies = [f for f in watch.drain() if f[12:14] == b"\x08\x00" and l3(f)[9] == 17]
        # `watch` sees what router 1 sent into the switch: every second copy.
        assert len(copies) == ttl // 2, len(copies)
        # In all TTL - 1 copies, and the error of the second router through the first.
        forwarded = sum(d.ctl.counters()[port]["forwarded"] for d in daemons for port in ("in", "mid"))
        assert forwarded == ttl, forwarded
        host.close()
        watch.close()
    finally:
        for daemon in daemons:
            daemon.clean_up()
        router.delete()


class Traffic(threading.Thread):
    """A steady flow through p0 to p1; says how many were lost."""

    def __init__(self, bench):
        super().__init__(daemon=True)
        self.bench, self.sent, self.ending = bench, 0, threading.Event()
        bench.settle()
        self.start()

    def run(self):
        while not self.ending.is_set():
            for make in (udp4, udp6):
                self.bench.wires["p0"].send(bytes(make(sport=1 + self.sent % 60000)))
                self.sent += 1
            time.sleep(0.0003)

    def lost(self):
        self.ending.set()
        self.join()
        out = self.bench.settle()
        return self.sent - len([f for f in out["p1"] if l3(f)[9 if l3(f)[0] >> 4 == 4 else 6] == 17])


def test_case_J138_reload_of_an_unchanged_file_loses_nothing(bench):
    state = bench.ctl.state()
    traffic = Traffic(bench)
    for _ in range(5):
        time.sleep(0.05)
        bench.daemon.reload()
    bench.daemon.hang_up()
    time.sleep(0.3)
    assert traffic.lost() == 0
    after = bench.ctl.state()
    for links in (state["link"], after["link"]):
        for link in links.values():
            link.pop("counters")
    assert after == state


def test_case_J138_ten_thousand_routes_lose_nothing(bench):
    config = bench.daemon.config
    more = [{"to": f"172.{16 + n // 4096}.{n // 16 % 256}.{n % 16 * 16}/28", "via": "10.0.1.2"} for n in range(10000)]
    traffic = Traffic(bench)
    try:
        bench.daemon.reload({**config, "routes": config["routes"] + more})
        assert len(bench.ctl.routes()) >= 10000
        bench.daemon.reload(config)
    finally:
        lost = traffic.lost()
    assert lost == 0
    assert len(bench.ctl.routes()) < 100


def test_case_J137_one_changed_route(bench):
    """Its next hop changes, the others lose nothing."""
    config = bench.daemon.config
    extra = {"to": "198.51.100.0/24", "via": "10.0.1.2"}
    other = {"to": "198.51.100.0/24", "via": "10.0.0.2"}
    bench.daemon.reload({**config, "routes": [*config["routes"], extra]})
    bench.forwards(udp4(dst="198.51.100.1"))
    traffic = Traffic(bench)
    bench.daemon.reload({**config, "routes": [*config["routes"], other]})
    lost = traffic.lost()
    back = {"src": H1, "dst": R1}
    bench.forwards(udp4(src="10.0.1.2", dst="198.51.100.1", eth=back), into="p1", out="p0")
    bench.daemon.reload({**config, "routes": [*config["routes"], {**other, "metric": 50}]})
    bench.forwards(udp4(src="10.0.1.2", dst="198.51.100.1", eth=back), into="p1", out="p0")
    bench.daemon.reload(config)
    bench.error(udp4(dst="198.51.100.1"), 3, 0)
    assert lost == 0


def test_bad_reload_keeps_everything(bench):
    config = bench.daemon.config
    state = bench.ctl.state()
    traffic = Traffic(bench)
    try:
        for broken in ({**config, "portz": {}},
                       {**config, "routes": [*config["routes"], {"to": "10.0.0.1/24", "via": "10.0.1.2"}]},
                       {**config, "routes": [*config["routes"], {"to": "203.0.113.0/24", "via": "9.9.9.9"}]},
                       {**config, "dpdk": {**config["dpdk"], "memory-mb": 512}},
                       {**config, "ports": {**config["ports"], "p9": {"device": "net_nothing0"}}}):
            bench.daemon.write(broken)
            message = bench.ctl.refused("config", "reload")
            assert message
            bench.daemon.hang_up()
            time.sleep(0.2)
            assert bench.daemon.alive()
    finally:
        bench.daemon.write(config)
        lost = traffic.lost()
    assert lost == 0
    after = bench.ctl.state()
    for links in (state["link"], after["link"]):
        for link in links.values():
            link.pop("counters")
    assert after == state


def test_sighup_applies_what_differs(bench):
    config = bench.daemon.config
    bench.daemon.write({**config, "routes": [*config["routes"], {"to": "203.0.113.0/24", "via": "10.0.1.2"}]})
    bench.daemon.hang_up()
    deadline = time.monotonic() + 3
    while not any(r["prefix"] == "203.0.113.0/24" for r in bench.ctl.routes()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    bench.forwards(udp4(dst="203.0.113.9"))
    bench.daemon.reload(config)
    bench.error(udp4(dst="203.0.113.9"), 3, 0)


def test_effective_configuration_is_a_no_op(bench, tmp_path):
    yaml = bench.ctl.json("config", "show")["yaml"]
    path = tmp_path / "effective.yaml"
    path.write_text(yaml)
    bench.ctl.text("config", "reload", path)
    assert bench.ctl.json("config", "show")["yaml"] == yaml
    bench.forwards(udp4())
    bench.daemon.reload()


@pytest.mark.parametrize("line", [
    b"\n", b"{\n", b"[]\n", b"null\n", b'{"object":"link"}\n', b'{"object":"link","command":"show","args":[]}\n',
    b'{"id":[],"object":"link","command":"show"}\n', b'{"object":"link","object":"addr","command":"show"}\n',
    b"\xff\xfe\x00\n", b"[" * 5000 + b"\n", b'{"object":"link","command":"set","args":{"name":"p0","mtu":"9"}}\n',
    b'{"object":"link","command":"show","args":{"nam":"p0"}}\n', b"x" * 300000 + b"\n",
], ids=lambda line: repr(line[:40]))
def test_hostile_requests(bench, line):
    """One clear error each; the daemon lives and still answers, on this connection or a new one."""
    import socket
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(bench.daemon.socket))
        client.sendall(line)
        answer = client.makefile("rb").readline()
        assert json.loads(answer)["ok"] is False and json.loads(answer)["error"]["message"], answer
    assert "p0" in bench.ctl.links()


def test_check_O159_pipelined_requests(bench):
    import socket
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(str(bench.daemon.socket))
        client.sendall(b"".join(b'{"id":%d,"object":"route","command":"show"}\n' % n for n in range(64)))
        client.shutdown(socket.SHUT_WR)
        answers = [json.loads(line) for line in client.makefile("rb")]
    assert [a["id"] for a in answers] == list(range(64)) and all(a["ok"] for a in answers)


def test_workers_sleep_when_idle(bench):
    """workers.idle adaptive: an idle instance leaves the processor to others."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used():
        fields = pathlib.Path(f"/proc/{bench.daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    time.sleep(0.5)
    before = used()
    time.sleep(2)
    busy = (used() - before) / 2
    assert busy < 0.4, f"{busy:.0%} of a core while idle"
    bench.forwards(udp4())
