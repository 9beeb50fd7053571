# SPDX-License-Identifier: BSD-3-Clause
"""Redirects, path MTUs and what is learned for single destinations: checks.md H, I, M 112, cases.md H 114, dst.md C-25."""

import time

import pytest
from bench import Base, WireBench
from frames import (ICMP, IP, R0, Ether, ICMPv6DestUnreach, ICMPv6EchoReply, ICMPv6PacketTooBig, IPv6, Raw, echo4, echo6,
                    forwarded_l3, l3)
from netns import Namespace
from sites import FAMILIES, MAKE, CACHE_ON, eth, from4, host_mac, neighbors, port, wide

OTHER = "02:aa:00:00:00:03"  # the router that is nearer
SOURCES = {4: [f"10.0.0.{n}" for n in range(10, 20)], 6: [f"fd00:0::{n}" for n in range(10, 20)]}
BEHIND = {4: "198.51.100.9", 6: "2001:db8:51::9"}


@pytest.fixture(scope="module")
def one_armed():
    """p0 sends redirects: what it gets for BEHIND goes back out to another router."""
    running = WireBench(**wide(
        2, ports={"p0": port(0, **{"send-redirects": True}), "p1": port(1)},
        routes=[{"to": "198.51.100.0/24", "via": "10.0.0.3"}, {"to": "2001:db8:51::/48", "via": "fe80::3", "dev": "p0"}],
        neighbors=[*neighbors([0, 1]),
                   *({"to": to, "dev": "p0", "lladdr": OTHER} for to in ("10.0.0.3", "fe80::3")),
                   *({"to": to, "dev": "p0", "lladdr": host_mac(0)} for family in (4, 6) for to in SOURCES[family])]))
    yield running
    running.close()


def redirects_in(frames, family):
    return [l3(got) for got in frames if l3(got)[20 if family == 4 else 40] == (5 if family == 4 else 137) and
            l3(got)[9 if family == 4 else 6] in (1, 58)]


@FAMILIES
def test_check_H81_and_case_H114_redirect(one_armed, family):
    """Forwarded, and the sender is told the nearer router; from the cache as from the table."""
    source = SOURCES[family][0]
    frame = MAKE[family](0, BEHIND[family], src=source)
    for turn in range(2):
        outcome = one_armed.probe(frame, wait=2)
        assert not outcome.drops, str(outcome)
        got = outcome.frames["p0"]
        told = redirects_in(got, family)
        forwarded = [one for one in got if l3(one) not in told]
        assert [l3(one) for one in forwarded] == [forwarded_l3(frame)] and len(told) == 1, str(outcome)
        assert Ether(forwarded[0]).dst == OTHER
        if family == 4:
            answer = IP(told[0])
            assert (answer.src, answer.dst, answer[ICMP].code, answer[ICMP].gw) == ("10.0.0.1", source, 1, "10.0.0.3")
            assert told[0][28:] == l3(frame)[:len(told[0]) - 28]
        else:
            answer = IPv6(told[0])
            assert answer.src == "fe80::ff:fe00:1" and answer.dst == IPv6(l3(frame)).src and answer.hlim == 255
            assert told[0][48:64] == bytes.fromhex("fe80" + "00" * 13 + "03")
            assert told[0][64:80] == l3(frame)[24:40]
        time.sleep(1.05)


@FAMILIES
def test_check_M112_limit(one_armed, family):
    """A flow of 100 packets: all are forwarded, and redirects keep their rate, not only the first packet's."""
    frame = MAKE[family](0, BEHIND[family], src=SOURCES[family][1])
    began = time.monotonic()
    total = 0
    for _ in range(3):
        outcome = one_armed.probe([frame] * 100, wait=100)
        told = len(redirects_in(outcome.frames["p0"], family))
        assert len(outcome.frames["p0"]) - told == 100 and not outcome.drops, str(outcome)
        total += told
        time.sleep(1.05)
    assert 2 <= total <= time.monotonic() - began + 1


@FAMILIES
def test_no_redirect(one_armed, family):
    """Not to who is not on the link, not for what leaves elsewhere, not when it is off."""
    away = {4: "100.64.0.9", 6: "2001:db8:64::9"}[family]
    one_armed.forwards(MAKE[family](0, BEHIND[family], src=away), out="p0", dst=OTHER)
    one_armed.forwards(MAKE[family](0, {4: "10.0.1.2", 6: "fd00:1::2"}[family], src=SOURCES[family][2]), out="p1",
                       dst=host_mac(1))
    one_armed.ctl.text("link", "set", "p0", "send-redirects", "off")
    frame = MAKE[family](0, BEHIND[family], src=SOURCES[family][3])
    one_armed.forwards(frame, out="p0", dst=OTHER)
    one_armed.ctl.text("link", "set", "p0", "send-redirects", "on")
    outcome = one_armed.probe(frame, wait=2)
    assert len(redirects_in(outcome.frames["p0"], family)) == 1, str(outcome)


# A host of the kernel, sluice and another router on one segment, and a far host behind that one.

class SegmentBench(Base):
    def __init__(self, **options):
        self.made = []
        super().__init__(standard=False, workers=CACHE_ON, **options)

    def set_up(self):
        lan, self.h0, self.r2, self.far = [self._namespace(role) for role in ("lan", "h0", "r2", "far")]
        self.router.run("ip", "link", "set", "t0", "netns", lan.name)
        lan.run("ip", "link", "set", "t0", "up")
        for number, (there, mac) in enumerate(((self.h0, host_mac(0)), (self.r2, OTHER)), 2):
            lan.run("ip", "link", "add", "link", "t0", "name", "e0", "address", mac, "netns", there.name,
                    "type", "macvlan", "mode", "bridge")
            self._up(there, "e0", f"10.0.0.{number}/24", f"fd00::{number}/64", f"fe80::{number}/64")
        self.r2.run("ip", "link", "add", "e1", "type", "veth", "peer", "name", "e0", "netns", self.far.name)
        self._up(self.r2, "e1", "198.51.100.1/24", "2001:db8:51::1/64", "fe80::1/64")
        self._up(self.far, "e0", "198.51.100.9/24", "2001:db8:51::9/64", "fe80::9/64")
        for name in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
            self.r2.sysctl(name, 1)
        for name in ("all", "e0"):
            self.h0.sysctl(f"net.ipv4.conf.{name}.accept_redirects", 1)
            self.h0.sysctl(f"net.ipv4.conf.{name}.secure_redirects", 0)
        self.h0.sysctl("net.ipv6.conf.e0.accept_redirects", 1)
        for there, via4, via6 in ((self.h0, "10.0.0.1", "fe80::ff:fe00:1"),
                                  (self.far, "198.51.100.1", "2001:db8:51::1")):
            there.run("ip", "route", "add", "default", "via", via4)
            there.run("ip", "-6", "route", "add", "default", "via", via6, "dev", "e0")

    def _namespace(self, role):
        self.made.append(Namespace(role))
        return self.made[-1]

    @staticmethod
    def _up(there, name, *addresses):
        there.sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 0)
        for key, value in (("accept_dad", 0), ("accept_ra", 0), ("addr_gen_mode", 1)):
            there.sysctl(f"net.ipv6.conf.{name}.{key}", value)
        there.run("ip", "link", "set", name, "up")
        for address in addresses:
            there.run("ip", "addr", "add", address, "dev", name, *(["nodad"] if ":" in address else []))

    def ping(self, family, size=None):
        options = ["-M", "do", "-s", size] if size else []
        return self.h0.run("ping", f"-{family}", "-n", "-c", 1, "-W", 2, *options, BEHIND[family], check=False).stdout

    def way(self, family):
        return self.h0.run("ip", f"-{family}", "route", "get", BEHIND[family]).stdout

    def wait_for_way(self, family, *words):
        deadline = time.monotonic() + 5
        while not all(word in self.way(family) for word in words) and time.monotonic() < deadline:
            time.sleep(0.1)
        out = self.way(family)
        assert all(word in out for word in words), out

    def redirected(self, family):
        """Pings until the host's way is the nearer router. (An IPv4 host resolves that first and believes the next redirect; one
        a second is sent.)"""
        for _ in range(6):
            time.sleep(1.05)
            assert " 0% packet loss" in (out := self.ping(family)), out
            time.sleep(0.1)
            if NEARER[family] in self.way(family):
                return
        raise AssertionError(self.way(family))

    def forwarded(self):
        return self.ctl.counters()["p0"]["forwarded"]

    def flush(self):
        for family in (4, 6):
            self.h0.run("ip", f"-{family}", "route", "flush", "cache")

    def tear_down(self):
        super().tear_down()
        for there in self.made:
            there.delete()


SHAPES = {
    "routes": {"routes": [{"to": "198.51.100.0/24", "via": "10.0.0.3"},
                          {"to": "2001:db8:51::/48", "via": "fe80::3", "dev": "p0"}]},
    "nexthops in a vrf": {"vrfs": {"blue": {"table": 10, "interfaces": ["p0"]}},
                          "nexthops": {1: {"via": "10.0.0.3", "dev": "p0"}, 2: {"via": "fe80::3", "dev": "p0"}},
                          "routes": [{"to": "198.51.100.0/24", "nexthop": 1, "table": 10},
                                     {"to": "2001:db8:51::/48", "nexthop": 2, "table": 10}]},
}


@pytest.fixture(scope="module", params=SHAPES)
def segment(request):
    running = SegmentBench(ports={"p0": {"mac": R0, "addresses": ["10.0.0.1/24", "fd00::1/64"], "send-redirects": True}},
                           **SHAPES[request.param])
    yield running
    running.close()


FIRST = {4: "via 10.0.0.1 ", 6: "via fe80::ff:fe00:1 "}
NEARER = {4: "via 10.0.0.3 ", 6: "via fe80::3 "}


@FAMILIES
def test_check_H81_to_H85_host_takes_the_redirect(segment, family):
    """The host's next hop is the nearer router after one ping, sluice sees no more of the flow, and a flushed cache starts
    anew."""
    segment.flush()
    assert FIRST[family] in segment.way(family)
    for _ in range(2):
        before = segment.forwarded()
        segment.redirected(family)
        assert segment.forwarded() > before
        time.sleep(0.1)
        before = segment.forwarded()
        for _ in range(3):
            assert " 0% packet loss" in segment.ping(family)
        assert segment.forwarded() == before
        segment.flush()
        assert FIRST[family] in segment.way(family)


@FAMILIES
@pytest.mark.parametrize("redirect_first", [True, False])
def test_check_H83_redirect_and_path_mtu(segment, family, redirect_first):
    """Whichever the host learns first, it ends with both."""
    segment.flush()
    ends = ((segment.r2, "e1"), (segment.far, "e0"))
    size = 1322 if family == 4 else 1302
    try:
        for there, name in ends:
            there.run("ip", "link", "set", name, "mtu", 1300)
        if redirect_first:
            segment.redirected(family)
            segment.ping(family, size)
        else:
            segment.ctl.text("link", "set", "p0", "send-redirects", "off")
            segment.ping(family, size)
            segment.wait_for_way(family, FIRST[family], "mtu 1300")
            segment.ctl.text("link", "set", "p0", "send-redirects", "on")
            segment.redirected(family)
            if family == 6:  # Linux forgets an IPv6 path's MTU with the redirect, and learns it again
                segment.ping(family, size)
        segment.wait_for_way(family, NEARER[family], "mtu 1300")
    finally:
        for there, name in ends:
            there.run("ip", "link", "set", name, "mtu", 1500)
        segment.ctl.text("link", "set", "p0", "send-redirects", "on")
        segment.flush()


# What sluice learns about its own packets.

FAR = {4: "203.0.113.{}", 6: "2001:db8:113::{}"}
OWN = {4: "10.0.1.1", 6: "fd00:1::1"}


@pytest.fixture(scope="module")
def learning():
    running = WireBench(**wide(3, routes=[{"to": "203.0.113.0/24", "via": "10.0.1.2"},
                                          {"to": "2001:db8:113::/48", "via": "fe80::2", "dev": "p1"}]))
    yield running
    running.close()


@pytest.fixture
def learner(learning):
    yield learning
    learning.ctl.text("route", "flush", "cache")
    assert shown(learning) == []


def shown(bench):
    return bench.ctl.json("route", "show", "cache")


def known(bench, family, host):
    return next((row for row in shown(bench) if row["destination"] == FAR[family].format(host)), None)


def ask(bench, family, host, size=56):
    """The far host pings us; what left by p1."""
    make = echo4 if family == 4 else echo6
    outcome = bench.probe(make(src=FAR[family].format(host), dst=OWN[family], eth=eth(1), payload=b"e" * size), "p1",
                          wait=1)
    assert not outcome.drops, str(outcome)
    return [l3(got) for got in outcome.frames["p1"]]


def too_big(bench, family, host, mtu, source=None):
    """Somebody on the way says that our answer to `host` was too big."""
    quoted_source = source or OWN[family]
    if family == 4:
        quote = IP(src=quoted_source, dst=FAR[4].format(host), id=9) / ICMP(type=0) / Raw(b"e" * 56)
        packet = IP(src="10.0.1.2", dst=OWN[4]) / ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(bytes(quote)[:28])
    else:
        quote = IPv6(src=quoted_source, dst=FAR[6].format(host)) / ICMPv6EchoReply(data=b"e" * 56)
        packet = IPv6(src="fd00:1::2", dst=OWN[6]) / ICMPv6PacketTooBig(mtu=mtu) / Raw(bytes(quote))
    bench.probe(bytes(Ether(**eth(1)) / packet), "p1")


@FAMILIES
def test_check_H86_and_I87_path_mtus(learner, family):
    """Each destination its own; a lower one replaces, a higher one does not; answers fit from then on."""
    big = 1400
    assert len(ask(learner, family, 7, big)) == 1
    too_big(learner, family, 7, 1350)
    row = known(learner, family, 7)
    assert (row["mtu"], row["dev"], row["via"]) == (1350, "p1", None) and 590 < row["expires_s"] <= 600, row
    too_big(learner, family, 8, 1300)
    too_big(learner, family, 7, 1320)
    assert known(learner, family, 7)["mtu"] == 1320 and known(learner, family, 8)["mtu"] == 1300
    too_big(learner, family, 7, 1400)
    assert known(learner, family, 7)["mtu"] == 1320
    for _ in range(2):
        if family == 4:
            parts = ask(learner, family, 7, big)
            assert len(parts) == 2 and all(len(part) <= 1320 for part in parts), [len(part) for part in parts]
        else:  # own IPv6 packets are not fragmented: what is too long for its path is dropped and counted
            outcome = learner.probe(echo6(src=FAR[6].format(7), dst=OWN[6], eth=eth(1), payload=b"e" * big), "p1",
                                    drops=1)
            assert outcome.drops == {("lo", "packet_too_big"): 1} and not outcome.frames["p1"], str(outcome)
        assert len(ask(learner, family, 9, big)) == 1
    learner.ctl.text("route", "flush", "cache")
    assert len(ask(learner, family, 7, big)) == 1


@FAMILIES
def test_check_I89_less_than_a_path_may_have(learner, family):
    """IPv4: believed down to 552; IPv6: less than 1280 is ignored."""
    too_big(learner, family, 7, 400)
    if family == 4:
        assert known(learner, 4, 7)["mtu"] == 552
    else:
        assert known(learner, 6, 7) is None
    assert learner.ctl.text("route", "show", "cache").count("203.0.113.7") == (1 if family == 4 else 0)


def test_check_I89_a_link_of_less(learner):
    """Nor is the link's own MTU held up by it: down to 500 and up again."""
    ctl = learner.ctl
    ctl.batch("link add low link p1 vlan 30", "addr add 10.30.0.1/24 dev low", "route add 203.0.113.9/32 via 10.30.0.2")
    try:
        too_big(learner, 4, 9, 400)
        for link, path in ((1500, 552), (500, 500), (1500, 1500)):
            ctl.text("link", "set", "low", "mtu", link)
            assert known(learner, 4, 9)["mtu"] == path, link
    finally:
        ctl.text("link", "del", "low")


@FAMILIES
def test_check_I88_local_links(learner, family):
    """What was learned behind a link follows it down, and up again from there; what is behind another one stays."""
    ctl, length, gateway = learner.ctl, {4: 32, 6: 128}[family], {4: "10.0.2.2", 6: "fd00:2::2"}[family]
    prefix = f"{FAR[family].format(9)}/{length}"
    ctl.text("route", "add", prefix, "via", gateway)
    try:
        too_big(learner, family, 7, 1400)
        too_big(learner, family, 9, 1450)
        for link, path in ((1490, 1400), (1300, 1300), (1490, 1490), (1500, 1500)):
            ctl.text("link", "set", "p1", "mtu", link)
            assert known(learner, family, 7)["mtu"] == path, link
            assert known(learner, family, 9)["mtu"] == 1450
    finally:
        ctl.text("link", "set", "p1", "mtu", 1500)
        ctl.text("route", "del", prefix)


@FAMILIES
def test_not_about_our_packets(learner, family):
    """A quote that is no packet of ours teaches nothing."""
    too_big(learner, family, 7, 1300, source=FAR[family].format(99))
    assert shown(learner) == []


def redirect(bench, family, host, gateway, source):
    if family == 4:
        quote = IP(src=OWN[4], dst=FAR[4].format(host), id=9) / ICMP(type=0) / Raw(b"e" * 56)
        packet = IP(src=source, dst=OWN[4]) / ICMP(type=5, code=1, gw=gateway) / Raw(bytes(quote)[:28])
    else:
        from scapy.layers.inet6 import ICMPv6ND_Redirect
        packet = IPv6(src=source, dst=OWN[6], hlim=255) / ICMPv6ND_Redirect(tgt=gateway, dst=FAR[6].format(host))
    bench.probe(bytes(Ether(**eth(1)) / packet), "p1")


@FAMILIES
def test_check_H86_redirects_are_for_hosts(learner, family):
    """A netdev that forwards takes none; one that does not takes those of its gateway, and keeps a path MTU beside it."""
    ctl = learner.ctl
    gateway, nearer = ({4: ("10.0.1.2", "10.0.1.3"), 6: ("fe80::2", "fe80::3")})[family]
    ctl.text("neigh", "add", nearer, "dev", "p1", "lladdr", "02:aa:00:00:01:03")
    redirect(learner, family, 7, nearer, gateway)
    assert shown(learner) == []
    ctl.text("link", "set", "p1", "forwarding", "off")
    try:
        redirect(learner, family, 7, nearer, {4: "10.0.1.9", 6: "fe80::9"}[family])
        assert shown(learner) == [], "from who is not the gateway"
        redirect(learner, family, 7, nearer, gateway)
        row = known(learner, family, 7)
        assert (row["via"], row["mtu"], row["dev"]) == (nearer, None, "p1"), row
        outcome = learner.probe((echo4 if family == 4 else echo6)(src=FAR[family].format(7), dst=OWN[family], eth=eth(1)),
                                "p1", wait=1)
        assert [Ether(got).dst for got in outcome.frames["p1"]] == ["02:aa:00:00:01:03"], str(outcome)
        too_big(learner, family, 7, 1300)
        row = known(learner, family, 7)
        assert (row["via"], row["mtu"]) == (nearer, 1300), row
    finally:
        ctl.text("link", "set", "p1", "forwarding", "on")
        ctl.text("neigh", "del", nearer, "dev", "p1")


@FAMILIES
def test_check_H84_and_I91_end_with_their_route(learner, family):
    """Listed, flushed; a replaced route takes what was learned behind it along."""
    for host in range(20, 30):
        too_big(learner, family, host, 1300)
    assert len(shown(learner)) == 10
    prefix, via = {4: ("203.0.113.0/24", "10.0.2.2"), 6: ("2001:db8:113::/48", "fd00:2::2")}[family]
    learner.ctl.text("route", "add", prefix, "via", via, "metric", 4)
    assert len(shown(learner)) == 10
    more = {4: "203.0.113.16/28", 6: "2001:db8:113::/96"}[family]
    learner.ctl.text("route", "add", more, "via", via)
    assert known(learner, family, 20) is None
    outcome = learner.probe((echo4 if family == 4 else echo6)(src=FAR[family].format(20), dst=OWN[family], eth=eth(1)), "p1",
                            wait=1)
    assert len(outcome.frames["p2"]) == 1, str(outcome)
    learner.ctl.text("route", "del", more)
    learner.ctl.text("route", "del", prefix, "metric", 4)
    learner.ctl.text("route", "flush", "cache")
    assert shown(learner) == []


def test_check_I91_and_I92_port_removed(new_bench):
    """Exceptions in both families and the port that they lead out of: gone within the time, nothing refers to it."""
    bench = new_bench(**wide(3, routes=[{"to": "203.0.113.0/24", "via": "10.0.1.2"},
                                        {"to": "2001:db8:113::/48", "via": "fe80::2", "dev": "p1"}]))
    for family in (4, 6):
        for host in range(20, 40):
            too_big(bench, family, host, 1300)
    assert len(shown(bench)) == 40
    began = time.monotonic()
    bench.ctl.text("link", "del", "p1")
    assert time.monotonic() - began < 2
    deadline = time.monotonic() + 2
    while bench.ctl.json("uncached", "show")["draining"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not bench.ctl.json("uncached", "show")["draining"]
    assert shown(bench) == []
    bench.wires.pop("p1").close()
    bench.level = None
    bench.forwards(from4(0, "10.0.2.2"), out="p2", dst=host_mac(2))


@FAMILIES
def test_route_mtu(new_bench, learning, family):
    """A route's MTU is told to senders as a netdev's is; gone with the route."""
    bench, dst = learning, {4: "192.0.2.9", 6: "2001:db8:2::9"}[family]
    prefix, via = {4: ("192.0.2.0/24", "10.0.2.2"), 6: ("2001:db8:2::/48", "fd00:2::2")}[family]
    bench.ctl.text("route", "add", prefix, "via", via, "mtu", 1400)
    options = {"flags": "DF", "size": 1422} if family == 4 else {"size": 1402}
    got = bench.error(MAKE[family](0, dst, **options), *((3, 4) if family == 4 else (2, 0)), dst=host_mac(0))
    assert int.from_bytes(got[26:28] if family == 4 else got[44:48], "big") == 1400
    bench.ctl.text("route", "replace", prefix, "via", via)
    bench.forwards(MAKE[family](0, dst, **options), out="p2", dst=host_mac(2))
    bench.ctl.text("route", "del", prefix)
