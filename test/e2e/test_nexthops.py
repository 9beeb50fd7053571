# SPDX-License-Identifier: BSD-3-Clause
"""Next-hop objects, groups and resilient groups: checks.md C, D, N 141-145, cases.md F 89 and 91."""

import struct
import threading
import time

import pytest
from bench import WireBench
from frames import ICMP, IP, Ether, ICMPv6EchoRequest, ICMPv6TimeExceeded, IPv6, Raw, UDP, echo4, echo6, inet_sum, l3, l3_offset
from sites import FAMILIES, GATEWAY, MAKE, PREFIX, TARGET, count_out, eth, flows, from4, from6, host_mac, wide, with_ports

FLOWS = 3000


@pytest.fixture(scope="module")
def routed():
    running = WireBench(**wide(4))
    yield running
    running.close()


@pytest.fixture
def nh(routed):
    """Afterwards nothing is left of the test's next hops and routes."""
    yield routed
    if not routed.daemon.alive():
        return
    for port in ("p1", "p2", "p3"):
        routed.ctl.text("link", "set", port, "up")
    routed.quiet.clear()
    routed.ctl.text("route", "flush")
    # Groups first, or they would be gone with their last member.
    rows = sorted(routed.ctl.json("nexthop", "show"), key=lambda row: row["type"] != "group")
    routed.ctl.batch(*(f"nexthop del {row['id']}" for row in rows))
    assert routed.ctl.json("nexthop", "show") == []


def gateways(bench, family=4, ports=(1, 2, 3)):
    """Next hop N is the host of pN."""
    for n in ports:
        bench.ctl.text("nexthop", "add", n, "via", GATEWAY[family].format(n), "dev", f"p{n}")


def route(bench, nexthop, family=4, verb="add"):
    bench.ctl.text("route", verb, PREFIX[family], "nhid", nexthop)


def shown(bench, nexthop):
    return bench.ctl.json("nexthop", "show", "id", nexthop)[0]


def spread(bench, family=4, count=FLOWS, frames=None, into="p0"):
    """Packets per port of many flows; none is lost, and the counters of the next hops say the same."""
    out = count_out(bench, frames or flows(MAKE[family](0, TARGET[family]), count), into)
    assert sum(out.values()) == (len(frames) if frames else count), (out, bench.ctl.json("stats", "drops"))
    return out


def near(out, **weights):
    """Within 15 % of these weights."""
    total, parts = sum(out.values()), sum(weights.values())
    assert set(out) == set(weights), out
    for name, weight in weights.items():
        assert abs(out[name] - total * weight / parts) <= 0.15 * total * weight / parts, (out, weights)


# C: multipath

@pytest.mark.parametrize("family", [4, 6, "4 over link-local 6"])
def test_check_C18_to_C24_weights(nh, family):
    """1:1, 2:1, 11:45, each by a replaced group under the same route, followed at once."""
    ctl = nh.ctl
    if family == "4 over link-local 6":
        family = 4
        for n in (1, 2):
            ctl.text("nexthop", "add", n, "via", "fe80::2", "dev", f"p{n}")
    else:
        gateways(nh, family, (1, 2))
    ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10, family)
    for first, second in ((1, 1), (2, 1), (11, 45)):
        ctl.text("nexthop", "replace", 10, "group", f"1,{first}/2,{second}")
        before = {row["id"]: row["packets"] for row in shown(nh, 10)["group"]}
        near(out := spread(nh, family), p1=first, p2=second)
        after = {row["id"]: row["packets"] for row in shown(nh, 10)["group"]}
        assert {n: after[n] - before[n] for n in after} == {1: out["p1"], 2: out["p2"]}  # D 58
        assert spread(nh, family) == out, "the same flows again take the same ways"


def test_case_F89_one_to_three(nh):
    """A quarter within 3 %; sluice's own answers take the group, too; the last member gone, no route."""
    gateways(nh, 4, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1,1/2,3")
    route(nh, 10)
    out = spread(nh, count=10000)
    assert 0.22 < out["p1"] / 10000 < 0.28, out
    ways = set()
    for n in range(40):
        outcome = nh.probe(echo4(src=f"198.51.100.{n + 1}", dst="10.0.0.1", eth=eth(0)), wait=1)
        ways |= {name for name, got in outcome.frames.items() if got}
        assert sum(map(len, outcome.frames.values())) == 1 and not outcome.drops, str(outcome)
    assert ways == {"p1", "p2"}
    nh.ctl.text("nexthop", "del", 1)
    nh.ctl.text("nexthop", "del", 2)
    nh.error(from4(0, TARGET[4]), 3, 0, reason="no_route", dst=host_mac(0))


@FAMILIES
def test_case_B30_group_expires_alike(nh, family):
    """Over a group as over any route: time exceeded from the arrival interface."""
    gateways(nh, family, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10, family)
    for n in range(8):
        options = {"ttl": 1} if family == 4 else {"hlim": 1}
        nh.error(MAKE[family](0, TARGET[family], sport=5000 + n, **options), *((11, 0) if family == 4 else (3, 0)),
                 source="10.0.0.1" if family == 4 else "fd00::1", reason="ttl_expired", dst=host_mac(0))


def test_check_C22_random_flow_labels(nh):
    gateways(nh, 6, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1,2/2,1")
    route(nh, 10, 6)
    frame = bytearray(bytes(echo6(src="fd00:0::2", dst=TARGET[6], eth=eth(0))))
    frames = []
    for label in range(FLOWS):
        struct.pack_into("!I", frame, 14, 6 << 28 | (label * 0x9E3B) & 0xFFFFF)
        frames.append(bytes(frame))
    out = count_out(nh, frames, match=lambda got: got[20] == 58 and got[54] == 128)
    assert sum(out.values()) == FLOWS
    near(out, p1=2, p2=1)


def various(family, field, count=600):
    """Frames that differ in one field only."""
    make, frames = MAKE[family], []
    base = make(0, TARGET[family])
    at = l3_offset(base)
    for n in range(count):
        frame = bytearray(base)
        if field == "source":
            struct.pack_into("!H", frame, at + (14 if family == 4 else 22), 0x4000 + n)
        elif field == "destination":
            if family == 4:
                frame[at + 19] = 1 + n % 250
            else:
                struct.pack_into("!H", frame, at + 38, n)
        elif field == "flow-label":
            struct.pack_into("!I", frame, at, 6 << 28 | n * 977)
        elif family == 4:
            frame[at + 10:at + 12] = b"\0\0"
        frame = bytes(frame)
        if field in ("source-port", "destination-port"):
            frame = with_ports(frame, *((1000 + n, 2000) if field == "source-port" else (1000, 2000 + n)))
        if family == 4:
            frame = bytearray(frame)
            frame[at + 10:at + 12] = b"\0\0"
            struct.pack_into("!H", frame, at + 10, inet_sum(bytes(frame[at:at + 20])) ^ 0xFFFF)
        frames.append(bytes(frame))
    return frames


@pytest.mark.parametrize("family, field, other", [
    (4, "source", "destination"), (4, "destination", "source"), (4, "source-port", "destination-port"),
    (4, "destination-port", "source-port"), (6, "flow-label", "source"), (6, "source", "destination-port")])
def test_check_C25_to_C29_custom_fields(nh, family, field, other):
    """The field in the hash balances, another one does not; a reload sets it."""
    config = dict(nh.daemon.config)
    ways = {"nexthops": {1: {"via": GATEWAY[family].format(1)}, 2: {"via": GATEWAY[family].format(2)},
                         10: {"group": {1: 1, 2: 1}}}, "routes": [{"to": PREFIX[family], "nexthop": 10}]}
    nh.daemon.reload({**config, **ways})
    near(spread(nh, family), p1=1, p2=1)
    nh.daemon.reload({**config, **ways,
                      "multipath-hash": {f"ipv{family}": {"policy": "custom", "fields": [field]}}})
    try:
        out = spread(nh, frames=various(family, field))
        # By 250 destinations the split is as fair as 250 coins.
        assert len(out) == 2 and abs(out["p1"] - out["p2"]) <= 0.25 * 600, out
        assert len(out := spread(nh, frames=various(family, other))) == 1, out
    finally:
        nh.daemon.reload(config)


@FAMILIES
def test_check_C30_burst_to_one_destination(nh, family):
    """One destination, ports vary, sent without a pause: the decision may be remembered, the member not."""
    gateways(nh, family, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10, family)
    near(spread(nh, family), p1=1, p2=1)
    one = flows(MAKE[family](0, TARGET[family]), 2)
    ways = [set(spread(nh, frames=[frame] * 64)) for frame in one]
    assert all(len(way) == 1 for way in ways), ways
    interleaved = spread(nh, frames=[frame for n in range(100) for frame in one])
    assert interleaved == ({way.copy().pop(): 100 for way in ways} if ways[0] != ways[1] else {ways[0].pop(): 200})


@FAMILIES
def test_check_C31_errors_follow_the_flow_they_quote(nh, family):
    """S → D takes one way; an ICMP error to S about such a packet takes the same."""
    gateways(nh, family, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10, family)
    net = "198.51.100.{}" if family == 4 else "2001:db8:51::{}"
    seen = set()
    for n in range(1, 25):
        source, destination = net.format(n), net.format(200 + n)
        packet = MAKE[family](0, destination, src=source, sport=3000 + n, dport=53)
        way = set(spread(nh, frames=[packet]))
        if family == 4:
            error = (Ether(**eth(0)) / IP(src="10.0.0.2", dst=source, id=n) / ICMP(type=11) / Raw(l3(packet)[:28]))
        else:
            error = (Ether(**eth(0)) / IPv6(src="fd00:0::2", dst=source) / ICMPv6TimeExceeded() / Raw(l3(packet)))
        got = count_out(nh, [bytes(error)], match=lambda got: got[23 if family == 4 else 20] in (1, 58))
        assert set(got) == way, (n, got, way)
        seen |= way
    assert seen == {"p1", "p2"}


# D: next-hop objects and groups

@FAMILIES
def test_check_D32_to_D34_blackhole_and_back(nh, family):
    ctl, frame = nh.ctl, MAKE[family](0, TARGET[family])
    gateways(nh, family)
    ctl.text("nexthop", "add", 4, "blackhole")
    ctl.text("nexthop", "add", 10, "group", 4)
    ctl.text("nexthop", "add", 11, "group", "1/2")
    route(nh, 4, family)
    nh.drops(frame, "route_blackhole")
    route(nh, 10, family, "replace")
    nh.drops(frame, "route_blackhole")
    route(nh, 11, family, "replace")
    spread(nh, family, 50)
    # The object changes and the route does not.
    route(nh, 4, family, "replace")
    nh.drops(frame, "route_blackhole")
    ctl.text("nexthop", "del", 10)
    ctl.text("nexthop", "replace", 4, "via", GATEWAY[family].format(3), "dev", "p3")
    nh.forwards(frame, out="p3", dst=host_mac(3))
    ctl.text("nexthop", "replace", 4, "blackhole")
    nh.drops(frame, "route_blackhole")
    route(nh, 11, family, "replace")
    ctl.text("nexthop", "replace", 11, "group", 4)
    nh.drops(frame, "route_blackhole")
    ctl.text("nexthop", "replace", 11, "group", "3")
    nh.forwards(frame, out="p3", dst=host_mac(3))


def test_check_D35_and_D39_to_D43_refused(nh):
    """Impossible next hops: each is refused, and nothing is another afterwards."""
    ctl = nh.ctl
    gateways(nh, 4)
    ctl.text("nexthop", "add", 4, "blackhole")
    ctl.text("nexthop", "add", 6, "via", "fd00:1::2", "dev", "p1")
    ctl.text("nexthop", "add", 10, "group", "1/2")
    ctl.text("nexthop", "add", 11, "group", "6")
    ctl.text("nexthop", "add", 12, "group", "1/6")
    route(nh, 11, 6)
    before = ctl.json("config", "show"), [{**row, "packets": 0} for row in ctl.json("nexthop", "show")]
    for words in (
            "add 20 group 1/4", "replace 10 group 1/4", "replace 1 blackhole",      # D 35
            "add 20 group 1/1", "add 20 group 99", "add 20 group 10/2", "add 20 group 1 dev p1",  # D 39
            "add 20 group 1 via 10.0.1.2",
            "replace 10 via 10.0.1.2 dev p1", "replace 2 group 1",                   # D 40
            "add 20 via 172.16.0.1", "add 20 via 172.16.0.1 dev p1", "add 1 via 10.0.1.2 dev p1",  # D 41
            "add 20 via 10.0.1.1 dev p1", "add 20 via 10.0.1.255 dev p1", "add 20 via 224.0.0.1 dev p1 onlink",
            "add 20 via fe80::2", "add 20 dev lo", "add 20 dev nowhere", "add 0 dev p1", "del 99",
            "replace 6 via 10.0.1.2 dev p1", "replace 11 group 1/6"):                # D 43
        ctl.refused("nexthop", *words.split())
    for nexthop in (1, 10, 12, 99):
        ctl.refused("route", "add", "2001:db8:99::/48", "nhid", nexthop)
    ctl.text("link", "set", "p3", "down")
    nh.quiet.add("p3")
    ctl.refused("nexthop", "add", 20, "via", "10.0.3.2", "dev", "p3")
    ctl.refused("nexthop", "add", 20, "dev", "p3")
    ctl.text("link", "set", "p3", "up")
    nh.quiet.clear()
    after = ctl.json("config", "show"), [{**row, "packets": 0} for row in ctl.json("nexthop", "show")]
    assert after == before
    # What is refused for IPv6 is not once the IPv4 members are gone; on-link takes a gateway of no subnet.
    ctl.text("nexthop", "replace", 12, "group", "6")
    ctl.text("route", "add", "2001:db8:99::/48", "nhid", 12)
    ctl.text("nexthop", "add", 20, "via", "172.16.0.1", "dev", "p1", "onlink")


def test_check_D36_and_D38_deleted_member(nh):
    """In two groups with weights; both go on with the rest, at once, and no packet is lost."""
    gateways(nh, 4)
    nh.ctl.text("nexthop", "add", 10, "group", "1,2/2,1/3,1")
    nh.ctl.text("nexthop", "add", 11, "group", "2/3")
    route(nh, 10)
    nh.ctl.text("route", "add", "203.0.113.0/24", "nhid", 11)
    near(spread(nh), p1=2, p2=1, p3=1)
    near(spread(nh, frames=flows(from4(0, "203.0.113.9"), FLOWS)), p2=1, p3=1)
    nh.ctl.text("nexthop", "del", 2)
    near(spread(nh), p1=2, p3=1)
    assert set(spread(nh, frames=flows(from4(0, "203.0.113.9"), 100))) == {"p3"}
    assert [(row["id"], row["weight"]) for row in shown(nh, 10)["group"]] == [(1, 2), (3, 1)]


@FAMILIES
def test_check_D37_and_N142_port_down(nh, family):
    """The rest carry everything, all down ends the route, up again is used again; a route made meanwhile does not use
    the dead leg."""
    ctl = nh.ctl
    gateways(nh, family)
    ctl.text("nexthop", "add", 10, "group", "1/2/3")
    route(nh, 10, family)
    near(spread(nh, family), p1=1, p2=1, p3=1)
    ctl.text("link", "set", "p2", "down")
    nh.quiet.add("p2")
    near(spread(nh, family), p1=1, p3=1)
    other = {4: "203.0.113.9", 6: "2001:db8:52::9"}[family]
    ctl.text("route", "add", {4: "203.0.113.0/24", 6: "2001:db8:52::/48"}[family], "nhid", 10)
    assert set(spread(nh, frames=flows(MAKE[family](0, other), 100))) == {"p1", "p3"}
    for port in ("p1", "p3"):
        ctl.text("link", "set", port, "down")
        nh.quiet.add(port)
    nh.error(MAKE[family](0, TARGET[family]), *((3, 0) if family == 4 else (1, 0)), reason="no_route", dst=host_mac(0))
    for port in ("p1", "p2", "p3"):
        ctl.text("link", "set", port, "up")
    nh.quiet.clear()
    near(spread(nh, family), p1=1, p2=1, p3=1)


def test_check_D42_and_D52_device_only(nh):
    """The packet's own destination is the neighbor; alone and in a group with a gateway."""
    ctl = nh.ctl
    ctl.text("nexthop", "add", 1, "dev", "p1")
    ctl.text("nexthop", "add", 2, "via", "10.0.2.2", "dev", "p2")
    ctl.text("nexthop", "add", 10, "group", "1/2")
    ctl.text("route", "add", "203.0.113.5/32", "nhid", 1)
    ctl.text("neigh", "add", "203.0.113.5", "dev", "p1", "lladdr", "02:cc:00:00:00:05")
    ctl.text("neigh", "add", TARGET[4], "dev", "p1", "lladdr", "02:cc:00:00:00:09")
    got = ctl.json("route", "get", "203.0.113.5", "from", "10.0.0.2", "iif", "p0")
    assert (got["dev"], got["via"], got["source"]) == ("p1", None, "10.0.1.1"), got
    nh.forwards(from4(0, "203.0.113.5"), out="p1", dst="02:cc:00:00:00:05")
    route(nh, 10)
    near(spread(nh), p1=1, p2=1)
    for address in ("203.0.113.5", TARGET[4]):
        ctl.text("neigh", "del", address, "dev", "p1")


def test_check_D44_to_D46_ipv4_over_ipv6(nh):
    """A neighbor for the gateway, none for the destination; mixed groups; the default route."""
    ctl = nh.ctl
    ctl.text("nexthop", "add", 1, "via", "fe80::2", "dev", "p1")
    ctl.text("nexthop", "add", 2, "via", "10.0.2.2", "dev", "p2")
    ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 1)
    nh.forwards(from4(0, TARGET[4]), out="p1", dst=host_mac(1))
    assert ctl.neighbor(TARGET[4]) is None
    route(nh, 10, verb="replace")
    near(spread(nh), p1=1, p2=1)
    ctl.text("route", "add", "default", "via", "fd00:3::2", "metric", 5, "dev", "p3")
    # "default" with an IPv6 gateway is ::/0; 0.0.0.0/0 says what is meant.
    ctl.text("route", "add", "0.0.0.0/0", "via", "fd00:3::2", "metric", 5)
    nh.forwards(from4(0, "100.64.0.1"), out="p3", dst=host_mac(3))
    nh.forwards(from6(0, "2001:db8:77::1"), out="p3", dst=host_mac(3))


@pytest.mark.parametrize("object_first", [True, False])
def test_check_D48_two_default_routes(nh, object_first):
    gateways(nh, 4, (1,))
    adds = [("default", "nhid", 1, "metric", 20), ("default", "via", "10.0.2.2", "metric", 10)]
    for words in adds if object_first else reversed(adds):
        nh.ctl.text("route", "add", *words)
    nh.forwards(from4(0, "100.64.0.1"), out="p2", dst=host_mac(2))
    nh.ctl.text("route", "del", "default", "via", "10.0.2.2", "metric", 10)
    nh.forwards(from4(0, "100.64.0.1"), out="p1", dst=host_mac(1))


def test_check_D50_many_large_groups(nh):
    """32 groups of 32 members with the same members in each."""
    ctl = nh.ctl
    members = "/".join(f"{100 + n},{1 + n % 7}" for n in range(32))
    ctl.batch(*(f"nexthop add {100 + n} via 10.0.{1 + n % 3}.{100 + n} dev p{1 + n % 3}" for n in range(32)),
              *(f"nexthop add {1000 + group} group {members}" for group in range(32)))
    rows = {row["id"]: row for row in ctl.json("nexthop", "show")}
    assert len(rows) == 64
    for group in range(32):
        assert [(m["id"], m["weight"]) for m in rows[1000 + group]["group"]] == [(100 + n, 1 + n % 7) for n in range(32)]
    assert ctl.text("nexthop", "show").count("\n") >= 64


def test_check_D51_torture(nh):
    """Members and weights change as fast as they can under traffic: no packet is lost while one member is always there."""
    ctl = nh.ctl
    gateways(nh, 4)
    ctl.text("nexthop", "add", 10, "group", "1/2/3")
    ctl.text("nexthop", "add", 12, "group", "2/3", "type", "resilient", "buckets", 32, "idle_timer", 0)
    route(nh, 10)
    ctl.text("route", "add", "203.0.113.0/24", "nhid", 12)
    ending, changes = threading.Event(), []

    def churn():
        turn = 0
        while not ending.is_set():
            turn += 1
            for words in (("replace", 10, "group", f"1,{1 + turn % 9}/2,2/3"), ("del", 1),
                          ("add", 1, "via", "10.0.1.2", "dev", "p1"), ("replace", 10, "group", "1/3"),
                          ("replace", 12, "group", f"2,{1 + turn % 5}/3", "type", "resilient", "buckets", 32,
                           "idle_timer", 0)):
                ctl.text("nexthop", *words)
            changes.append(turn)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            spread(nh, frames=flows(from4(0, TARGET[4]), 1000))
            spread(nh, frames=flows(from4(0, "203.0.113.9"), 1000))
    finally:
        ending.set()
        thread.join()
    assert changes


def test_check_D53_flush_by_protocol(nh):
    """Next hops of one protocol go, with what is over them, and only those; groups go on with the others."""
    ctl = nh.ctl
    gateways(nh, ports=(1, 2))
    ctl.batch("nexthop add 3 via 10.0.3.2 dev p3 proto bgp", "nexthop add 10 group 1/3", "nexthop add 11 group 3 proto bgp",
              "route add 203.0.113.0/24 nhid 11")
    route(nh, 10)
    near(spread(nh), p1=1, p3=1)
    assert [row["id"] for row in ctl.json("nexthop", "show", "proto", "bgp")] == [3, 11]
    assert ctl.json("nexthop", "flush", "proto", "bgp") == {"removed": 2}
    near(spread(nh), p1=1)
    assert [row["id"] for row in ctl.json("nexthop", "show")] == [1, 2, 10]
    assert ctl.json("route", "get", "203.0.113.9")["type"] == "none"


def test_check_F75_and_F76_on_link(nh):
    """A gateway of no subnet: in the main table, another one and a VRF's, alone and as a leg; not an own address, nor a group."""
    ctl = nh.ctl
    ctl.batch("link add v link p3 vlan 60", "link add green vrf table 30", "link set v vrf green", "addr add 10.60.0.1/24 dev v")
    try:
        good = ["203.0.113.0/24 via 172.16.0.9 dev p1 onlink", "203.0.113.0/24 via 172.16.0.9 dev p1 onlink table 77",
                "203.0.113.0/24 via 172.16.0.9 dev v onlink vrf green", "203.0.114.0/24 via 10.0.1.2 dev p1 onlink",
                "2001:db8:71::/48 via 2001:db8:ffff::9 dev p1 onlink", "2001:db8:72::/48 via ::ffff:10.0.9.9 dev p1 onlink"]
        ctl.batch(*(f"route add {words}" for words in good),
                  "neigh add 172.16.0.9 dev p1 lladdr 02:cc:00:00:00:09", "neigh add 2001:db8:ffff::9 dev p1 lladdr 02:cc:00:00:00:0a",
                  "nexthop add 1 via 172.16.0.9 dev p1 onlink", "nexthop add 2 via 10.0.2.2 dev p2", "nexthop add 10 group 1/2")
        nh.forwards(from4(0, "203.0.113.9"), out="p1", dst="02:cc:00:00:00:09")
        nh.forwards(from6(0, "2001:db8:71::9"), out="p1", dst="02:cc:00:00:00:0a")
        route(nh, 10)
        near(spread(nh), p1=1, p2=1)
        before = ctl.json("route", "show", "table", "all")
        for words in ("203.0.115.0/24 via 10.0.1.1 dev p1 onlink", "203.0.115.0/24 via 10.0.2.1 dev p1 onlink",
                      "203.0.115.0/24 via 224.0.0.5 dev p1 onlink", "203.0.115.0/24 via 172.16.0.9 onlink",
                      "203.0.115.0/24 via 10.60.0.1 dev v onlink vrf green",
                      "2001:db8:73::/48 via fe80::ff:fe00:2 dev p1 onlink", "2001:db8:73::/48 via fd00:1::1 dev p1 onlink",
                      "2001:db8:73::/48 via ff02::5 dev p1 onlink", "2001:db8:73::/48 via 2001:db8:ffff::9 onlink"):
            ctl.refused("route", "add", *words.split())
        assert ctl.json("route", "show", "table", "all") == before
        ctl.text("neigh", "del", "172.16.0.9", "dev", "p1")
        ctl.text("neigh", "del", "2001:db8:ffff::9", "dev", "p1")
    finally:
        ctl.text("link", "del", "v", "green")


# Resilient groups

def resilient(bench, members, timer, verb="add", buckets=64):
    bench.ctl.text("nexthop", verb, 10, "group", members, "type", "resilient", "buckets", buckets, "idle_timer", timer)


def buckets(bench):
    return {row["id"]: row["buckets"] for row in shown(bench, 10)["group"]}


def test_check_D54_no_timer(nh):
    gateways(nh, 4, (1, 2))
    resilient(nh, "1/2", 0)
    route(nh, 10)
    near(spread(nh), p1=1, p2=1)
    resilient(nh, "1,3/2,1", 0, "replace")
    assert buckets(nh) == {1: 48, 2: 16}
    near(spread(nh), p1=3, p2=1)
    assert sum(row["packets"] for row in shown(nh, 10)["group"]) == 2 * FLOWS  # D 58


def test_check_D55_busy_buckets_stay(nh):
    gateways(nh, 4, (1, 2))
    resilient(nh, "1/2", 120)
    route(nh, 10)
    before = spread(nh)
    resilient(nh, "1,3/2,1", 120, "replace")
    time.sleep(0.5)
    assert buckets(nh) == {1: 32, 2: 32}
    assert spread(nh) == before


def test_check_D56_idle_buckets_follow(nh):
    gateways(nh, 4, (1, 2))
    resilient(nh, "1/2", 1)
    route(nh, 10)
    near(spread(nh), p1=1, p2=1)
    resilient(nh, "1,3/2,1", 1, "replace")
    deadline = time.monotonic() + 8
    while buckets(nh) != {1: 48, 2: 16} and time.monotonic() < deadline:
        time.sleep(0.1)
    assert buckets(nh) == {1: 48, 2: 16}
    near(spread(nh), p1=3, p2=1)


def per_flow(bench, count=512):
    """{destination port: port it left by}"""
    frames, ways = flows(from4(0, TARGET[4]), count), {}
    for wire in bench.wires.values():
        wire.drain()
    for frame in frames:
        bench.wires["p0"].send(frame)
    deadline = time.monotonic() + 10
    while len(ways) < count and time.monotonic() < deadline:
        for name, wire in bench.wires.items():
            for got in wire.drain():
                if got[12:14] == b"\x08\x00" and got[23] == 17:
                    ways[struct.unpack_from("!H", got, 36)[0]] = name
    assert len(ways) == count
    return ways


def test_check_D57_removed_member_moves_its_flows_only(nh):
    gateways(nh, 4)
    resilient(nh, "1/2/3", 120)
    route(nh, 10)
    before = per_flow(nh)
    assert "buckets" in nh.ctl.refused("nexthop", "replace", 10, "group", "1/2/3", "type", "resilient", "buckets", 128,
                                       "idle_timer", 120)
    nh.ctl.refused("nexthop", "replace", 10, "group", "1/2/3")
    nh.ctl.text("nexthop", "del", 3)
    after = per_flow(nh)
    assert {port for port in before if before[port] != after[port]} == {p for p in before if before[p] == "p3"}
    assert set(after.values()) == {"p1", "p2"}


def test_check_N144_third_member_takes_no_busy_flow(nh):
    gateways(nh, 4)
    resilient(nh, "1/2", 120)
    route(nh, 10)
    before = per_flow(nh)
    resilient(nh, "1/2/3", 120, "replace")
    time.sleep(0.5)
    assert per_flow(nh) == before


# N: what else was seen to go wrong

@FAMILIES
def test_check_N143_fragments_of_one_datagram(nh, family):
    """First fragments have ports and the others none; all of a datagram take one way."""
    gateways(nh, family, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10, family)
    net = "198.51.100.{}" if family == 4 else "2001:db8:51::{}"
    seen = set()
    for n in range(1, 31):
        parts = []
        for offset, more in ((0, 1), (4, 1), (8, 0)):
            payload = bytes(UDP(sport=4000 + n, dport=5000, len=96, chksum=0))[:8] + b"f" * 24 if not offset else b"f" * 32
            if family == 4:
                parts.append(Ether(**eth(0)) / IP(src="10.0.0.2", dst=net.format(n), id=n, proto=17, flags=more,
                                                  frag=offset) / Raw(payload))
            else:
                header = struct.pack("!BBHI", 17, 0, offset << 3 | more, n)
                parts.append(Ether(**eth(0)) / IPv6(src="fd00:0::2", dst=net.format(n), nh=44) / Raw(header + payload))
        out = count_out(nh, [bytes(part) for part in parts],
                        match=lambda got: got[23 if family == 4 else 20] in (17, 44))
        assert list(out.values()) == [3], (n, out)
        seen |= set(out)
    assert seen == {"p1", "p2"}


def test_check_N145_netdev_made_again(nh):
    """The same name, the routes added again; and a route that was never there before."""
    ctl = nh.ctl
    for _ in range(2):
        ctl.text("link", "add", "v", "link", "p1", "vlan", 50)
        ctl.text("addr", "add", "10.9.0.1/24", "dev", "v")
        ctl.text("neigh", "add", "10.9.0.2", "dev", "v", "lladdr", "02:dd:00:00:00:02")
        ctl.text("nexthop", "add", 1, "via", "10.9.0.2", "dev", "v")
        ctl.text("nexthop", "add", 10, "group", "1")
        route(nh, 10)
        ctl.text("route", "add", "203.0.113.0/24", "via", "10.9.0.2")
        for dst in (TARGET[4], "203.0.113.9", "10.9.0.2"):
            nh.forwards(from4(0, dst), out="p1", dst="02:dd:00:00:00:02", tags=[50])
        ctl.text("link", "del", "v")
        assert ctl.json("nexthop", "show") == []
        for dst in (TARGET[4], "203.0.113.9", "10.9.0.2"):
            nh.error(from4(0, dst), 3, 0, reason="no_route", dst=host_mac(0))


def test_case_F91_and_check_N141_two_stages(nh, new_bench):
    """What leaves one box by one way is split again by the next: their seeds differ."""
    gateways(nh, 4, (1, 2))
    nh.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(nh, 10)
    ways = per_flow(nh, 2000)
    second = new_bench(**wide(3))
    for n in (1, 2):
        second.ctl.text("nexthop", "add", n, "via", f"10.0.{n}.2", "dev", f"p{n}")
    second.ctl.text("nexthop", "add", 10, "group", "1/2")
    route(second, 10)
    for way in ("p1", "p2"):
        frames = [with_ports(from4(0, TARGET[4]), 1000, port) for port in ways if ways[port] == way]
        near(spread(second, frames=frames), p1=1, p2=1)
