# SPDX-License-Identifier: BSD-3-Clause
"""Netdevs that go while everything refers to them, and changes that are refused: dst.md X-01, U-04 to U-09, issue "bad
input": each leaves the state as it was."""

import json
import socket
import threading
import time

import pytest
from bench import WireBench
from frames import l3
from sites import count_out, eth, from4, from6, host_mac, port_mac, wide
from wire import Wire

VLANS = 60


class Latency(threading.Thread):
    """A second client that changes nothing, over and over, and notes how long each answer took."""

    def __init__(self, bench):
        super().__init__(daemon=True)
        self.client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.client.connect(bench.ctl.socket)
        self.client.settimeout(10)
        self.ending = threading.Event()
        self.taken = []

    def run(self):
        request = json.dumps({"object": "link", "command": "set", "args": {"name": "p0", "mtu": 1500}}).encode() + b"\n"
        while not self.ending.is_set():
            began = time.monotonic()
            self.client.sendall(request)
            answer = b""
            while not answer.endswith(b"\n"):
                answer += self.client.recv(4096)
            assert json.loads(answer)["ok"], answer
            self.taken.append(time.monotonic() - began)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()
        self.client.close()


def settled(bench, seconds=2.0):
    """Nothing refers to what was removed."""
    deadline = time.monotonic() + seconds
    while (rows := bench.ctl.json("uncached", "show")["draining"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not rows, rows


def test_U_07_and_U_09_a_batch_of_vlans(new_bench):
    """60 VLANs with hosts, next hops, a group over all, held packets and warm caches: one command, done in time; another client
    is answered meanwhile; routes fall to what is left."""
    bench = new_bench(**wide(2))
    ctl = bench.ctl
    names = [f"v{n}" for n in range(1, VLANS + 1)]
    ctl.batch(*(line for n, name in enumerate(names, 1) for line in (
        f"link add {name} link p1 vlan {n}", f"addr add 10.1.{n}.1/24 dev {name}", f"addr add fd01:{n}::1/64 dev {name}",
        f"neigh add 10.1.{n}.2 dev {name} lladdr 02:dd:00:00:00:{n:02x}",
        f"neigh add fd01:{n}::2 dev {name} lladdr 02:dd:00:00:00:{n:02x}",
        f"nexthop add {n} via 10.1.{n}.2 dev {name}", f"route add 203.0.{n}.0/24 via 10.1.{n}.2",
        f"route add 203.0.{n}.0/24 via 10.0.1.2 metric 10")))
    ctl.batch(f"nexthop add 1000 group {'/'.join(str(n) for n in range(1, VLANS + 1))}", "route add 198.51.100.0/24 nhid 1000")
    warm = [make(0, dst.format(n)) for n in range(1, VLANS + 1)
            for make, dst in ((from4, "10.1.{}.2"), (from6, "fd01:{}::2"), (from4, "203.0.{}.9"))]
    for _ in range(2):
        assert count_out(bench, warm) == {"p1": len(warm)}
    for n in range(1, VLANS + 1):  # nobody answers for these
        bench.wires["p0"].send(from4(0, f"10.1.{n}.77"))
        bench.wires["p0"].send(from6(0, f"fd01:{n}::77"))
    time.sleep(0.1)
    owners = {row["netdev"] for row in ctl.json("uncached", "show")["netdevs"]}
    assert set(names) <= owners
    with Latency(bench) as client:
        time.sleep(0.2)
        began = time.monotonic()
        ctl.text("link", "del", *names)
        taken = time.monotonic() - began
        settled(bench)
        time.sleep(0.2)
    assert taken < 2, taken
    assert client.taken and max(client.taken) < 1.5, max(client.taken)
    assert not set(names) & {row["netdev"] for row in ctl.json("uncached", "show")["netdevs"]}
    assert not set(names) & set(ctl.links()) and ctl.json("nexthop", "show") == []
    back = [from4(0, f"203.0.{n}.9") for n in range(1, VLANS + 1)]
    for _ in range(2):
        assert count_out(bench, back, match=lambda got: got[12:14] == b"\x08\x00" and got[23] == 17) == {"p1": VLANS}
    for frame in (from4(0, "198.51.100.9"), from4(0, "10.1.7.2")):
        bench.error(frame, 3, 0, reason="no_route", dst=host_mac(0))
    bench.error(from6(0, "fd01:7::2"), 1, 0, reason="no_route", dst=host_mac(0))


def test_X_01_and_check_N145_port_removed_and_made_again(new_bench):
    """Caches full of the port's hosts, packets held for others, groups over it, VLANs on it; then the same name again."""
    bench = new_bench(**wide(3))
    ctl = bench.ctl
    hosts = [f"10.0.1.{n}" for n in range(10, 210)] + [f"fd00:1::{n}" for n in range(10, 210)]
    ctl.batch(*(f"neigh add {host} dev p1 lladdr 02:cc:00:00:00:{n % 256:02x}" for n, host in enumerate(hosts)),
              "nexthop add 1 via 10.0.1.2 dev p1", "nexthop add 2 via 10.0.2.2 dev p2", "nexthop add 3 group 1/2",
              "nexthop add 4 group 1,1/2,1 type resilient buckets 32 idle_timer 60",
              "route add 198.51.100.0/24 nhid 3", "route add 198.51.101.0/24 nhid 4", "route add 198.51.102.0/24 nhid 1")
    frames = [(from6 if ":" in host else from4)(0, host) for host in hosts]
    for _ in range(2):
        assert count_out(bench, frames) == {"p1": len(hosts)}
    for n in range(40):
        bench.wires["p0"].send(from4(0, f"10.0.1.{211 + n}"))
    assert ctl.refused("link", "del", "p1", "nothing")
    ctl.text("link", "add", "v", "link", "p1", "vlan", 5)
    assert "v" in ctl.refused("link", "del", "p1")
    bench.level = None
    began = time.monotonic()
    ctl.text("link", "del", "p1", "v")
    assert time.monotonic() - began < 2
    settled(bench)
    bench.wires.pop("p1").close()
    assert "t1" not in bench.router.links(), "the tap is left behind"
    assert [(row["id"], [m["id"] for m in row["group"] or []]) for row in ctl.json("nexthop", "show")] == [
        (2, []), (3, [2]), (4, [2])]
    for host in ("10.0.1.10", "10.0.1.230", "198.51.102.9"):
        bench.error(from4(0, host), 3, 0, reason="no_route", dst=host_mac(0))
    for net in (100, 101):
        assert count_out(bench, [from4(0, f"198.51.{net}.{n}") for n in range(1, 50)]) == {"p2": 49}
    ctl.text("link", "add", "p1", "device", "net_tap1,iface=t1", "address", port_mac(1))
    ctl.batch("addr add 10.0.1.1/24 dev p1", "addr add fd00:1::1/64 dev p1",
              f"neigh add 10.0.1.2 dev p1 lladdr {host_mac(1)}", "nexthop add 1 via 10.0.1.2 dev p1",
              "nexthop replace 3 group 1/2", "route add 198.51.102.0/24 nhid 1", "route add 203.0.113.0/24 nhid 1")
    bench.wires["p1"] = Wire(bench.router, "t1")
    for host in ("10.0.1.2", "198.51.102.9", "203.0.113.9"):
        bench.forwards(from4(0, host), out="p1", dst=host_mac(1))
    assert set(count_out(bench, [from4(0, f"198.51.100.{n}") for n in range(1, 250)])) == {"p1", "p2"}


BAD = """
netns add default
netns add twin
netns add bad/name
netns add
netns del default
netns del nowhere
link set p9 up
link set p0 netns nowhere
link set p1 netns twin
link set p0 mtu 50
link set p0 mtu 100000
link set p0 address 01:00:5e:00:00:01
link set p0 address 02:00:00:00:00:02
link set p0 vrf p1
link set p0 vrf nowhere
link set blue vrf blue
link set lo down
link set p0 netns twin mtu 1400
link del lo
link del p0 p9
link del p0 p0
link add p0 vrf table 9
link add green vrf table 10
link add green vrf table 254
link add green vrf table 0
link add v link p9 vlan 5
link add v link p0 vlan 0
link add v link p0 vlan 4095
link add v link v5 vlan 7
link add w link p0 vlan 5
addr add 10.0.0.1/24 dev p0
addr add 10.0.0.1/24 dev p1
addr add 224.0.0.1/4 dev p0
addr add 10.5.0.0/24 dev p9
addr del 10.77.0.1/24 dev p0
route add 192.0.2.0/24 via 10.0.1.2 metric 9
route add 192.0.2.1/24 via 10.0.1.2
route add 198.51.100.0/24 via 172.16.0.1
route add 198.51.100.0/24 via 10.0.0.1
route add 198.51.100.0/24 via fe80::2
route add 2001:db8:9::/48 via 10.0.1.2
route add 198.51.100.0/24 nhid 77
route add 2001:db8:9::/48 nhid 1
route add 198.51.100.0/24 nhid 1 via 10.0.1.2
route add 198.51.100.0/24 vrf nowhere via 10.0.1.2
route add 198.51.100.0/24 via 10.0.1.2 table 255
route add 198.51.100.0/24 via 10.0.1.2 mtu 20
route del 198.51.100.0/24
route add 224.0.0.0/4 via 10.0.1.2
nexthop add 1 via 10.0.1.2
nexthop add 50 group 1/10
nexthop add 50 group 1/1
nexthop add 50 group 1/99
nexthop add 50 group 1,0
nexthop add 50 group 1/4
nexthop replace 1 group 1
nexthop replace 10 via 10.0.1.2
nexthop add 50 group 1 type resilient buckets 100 idle_timer 1
nexthop del 77
rule add priority 10 from 10.0.0.0/24 table 100
rule add priority 11 from 10.0.0.0/24 to 2001:db8::/32 table 100
rule add priority 11 iif p0
rule add priority 11 dscp 64 table 100
rule add priority 11 table 255
rule add priority 11 iif p0 blackhole table 100
rule add priority 11 sport 9-5 table 100
rule del priority 99
neigh add 10.0.0.1 dev p0 lladdr 02:00:00:00:00:09
neigh add 10.0.0.9 dev p0 lladdr ff:ff:ff:ff:ff:ff
neigh del 10.0.0.99 dev p0
cache set sometimes
"""


def test_bad_input_changes_nothing(new_bench):
    """Each is refused with a reason, and the configuration and all that is shown are the same, to the byte."""
    bench = new_bench(**wide(
        3, vlans={"v5": {"link": "p0", "id": 5, "addresses": ["10.50.0.1/24"]}},
        vrfs={"blue": {"table": 10, "interfaces": ["p2"]}},
        nexthops={1: {"via": "10.0.1.2", "dev": "p1"}, 4: {"type": "blackhole"}, 10: {"group": {1: 1}}},
        routes=[{"to": "192.0.2.0/24", "via": "10.0.1.2"}, {"to": "203.0.113.0/24", "nexthop": 10}],
        netns={"twin": {"vrfs": {"p1": {"table": 7}}}},
        **{"routing-policy": [{"priority": 10, "from": "10.0.0.0/24", "table": 100}]}))
    ctl = bench.ctl
    ctl.text("route", "add", "192.0.2.0/24", "via", "10.0.1.2", "metric", 9)

    def state():
        links = [{**link, "counters": None} for link in ctl.json("link", "show", "all")]
        return (ctl.json("config", "show"), links, ctl.json("route", "show", "table", "all"), ctl.json("nexthop", "show"),
                ctl.json("rule", "show"), ctl.json("neigh", "show"), ctl.json("netns", "show"), ctl.json("vrf", "show"),
                ctl.json("cache", "show")["mode"], ctl.json("addr", "show"))

    before, accepted, unlike = state(), [], []
    for line in BAD.strip().splitlines():
        try:
            ctl.text(*line.split())
            accepted.append(line)
        except Exception as error:  # pylint: disable=broad-except
            assert str(error), line
        if (now := state()) != before:
            unlike.append(line)
            before = now
    assert not accepted and not unlike, (accepted, unlike)
    assert bench.daemon.alive()
    bench.forwards(from4(0, "203.0.113.9"), out="p1", dst=host_mac(1))
