# SPDX-License-Identifier: BSD-3-Clause
"""The destination cache as its user sees it: counters, modes, and that no change is ever late. dst.md C-11, C-26, C-30, C-41,
checks.md M 109-113, cases.md D 55."""

import pytest
from bench import WireBench
from frames import echo4, echo6, l3
from sites import FAMILIES, MAKE, count_out, flows, from4, from6, host_mac, port, wide

DST = {4: "192.0.2.9", 6: "2001:db8:2::9"}
ROUTES = [{"to": "192.0.2.0/24", "via": "10.0.1.2"}, {"to": "2001:db8:2::/48", "via": "fd00:1::2"}]
COUNTERS = ("hits", "misses", "stale", "inserts", "bypassed")


@pytest.fixture(scope="module")
def cached():
    running = WireBench(**wide(3, routes=ROUTES))
    yield running
    running.close()


def counters(bench, family):
    rows = [row for row in bench.ctl.json("cache", "show")["workers"] if row["family"] == f"ipv{family}"]
    return {name: sum(row[name] for row in rows) for name in COUNTERS}


def counted(bench, family, frames, wanted=None):
    """What the cache counted for these frames."""
    before = counters(bench, family)
    out = count_out(bench, frames, wanted=wanted)
    if wanted is None:
        assert sum(out.values()) == len(frames), out
    after = counters(bench, family)
    return {name: after[name] - before[name] for name in COUNTERS}


def destinations(family, count):
    if family == 4:
        return [from4(0, f"192.0.2.{n + 1}") for n in range(count)]
    return [from6(0, f"2001:db8:2::{n + 1:x}") for n in range(count)]


# So few that hardly ever five of them share a bucket of four, whatever the secret.
N = 30


@FAMILIES
def test_counters_add_up(cached, family):
    """Every packet that was looked up is a hit, a miss or bypassed, in every mode."""
    frames = destinations(family, N)
    try:
        cached.ctl.text("cache", "set", "on")
        for _ in range(20):  # a few of a burst are inserted at a time
            got = counted(cached, family, frames)
            assert got["hits"] + got["misses"] + got["bypassed"] == N, got
            if got["hits"] == N:
                break
        assert got == {"hits": N, "misses": 0, "stale": 0, "inserts": 0, "bypassed": 0}, got
        cached.ctl.text("cache", "flush")
        got = counted(cached, family, frames)
        assert got["misses"] == N and got["hits"] == 0, got
        counted(cached, family, frames)
        # Nothing about any of them changes, but the generation of the block that they are in.
        other = {4: "192.0.3.0/24", 6: "2001:db8:3::/48"}[family]
        cached.ctl.text("route", "add", other, "via", VIA2[family])
        cached.ctl.text("route", "del", other)
        got = counted(cached, family, frames)
        assert got["misses"] == N and got["stale"] > N // 2, got
        cached.ctl.text("cache", "set", "off")
        got = counted(cached, family, frames)
        assert got == {"hits": 0, "misses": 0, "stale": 0, "inserts": 0, "bypassed": N}, got
        cached.ctl.text("cache", "set", "auto")
        got = counted(cached, family, frames)
        assert got["hits"] + got["misses"] + got["bypassed"] == N, got
    finally:
        cached.ctl.text("cache", "set", "on")
    shown = cached.ctl.json("cache", "show")
    assert shown["mode"] == "on" and shown["entries"] == 512 and shown["bypassing"] == []
    for mode in ("never", ""):
        cached.ctl.refused("cache", "set", mode)


@FAMILIES
def test_C_30_what_is_dropped_is_not_remembered(cached, family):
    """Expired packets, martians, and what has no route leave nothing in the cache."""
    options = {"ttl": 1} if family == 4 else {"hlim": 1}
    martian = {4: "127.0.0.1", 6: "::1"}[family]
    nowhere = {4: "100.64.0.9", 6: "2001:db8:64::9"}[family]
    cached.ctl.text("cache", "flush")
    frames = [MAKE[family](0, DST[family], **options), MAKE[family](0, DST[family], src=martian),
              MAKE[family](0, nowhere)] * 10
    before, inserts = cached.ctl.counters()["p0"]["dropped"], counters(cached, family)["inserts"]
    count_out(cached, frames, wanted=20, match=lambda got: got[23 if family == 4 else 20] in (1, 58))
    assert cached.ctl.counters()["p0"]["dropped"] - before == 30
    assert counters(cached, family)["inserts"] == inserts
    got = counted(cached, family, [MAKE[family](0, DST[family])])
    assert got["hits"] == 0 and got["misses"] == 1, got


@FAMILIES
def test_check_M110_forwarding_per_port(cached, family):
    """Off on p2, on for p0: to one destination in turn, each packet is judged by its own port."""
    cached.ctl.text("link", "set", "p2", "forwarding", "off")
    try:
        for _ in range(3):
            outcome = cached.probe(MAKE[family](2, DST[family]), "p2", drops=1)
            assert outcome.reasons() == {"forwarding_disabled": 1}, str(outcome)
            cached.forwards(MAKE[family](0, DST[family]), out="p1", dst=host_mac(1))
    finally:
        cached.ctl.text("link", "set", "p2", "forwarding", "on")
    cached.forwards(MAKE[family](2, DST[family]), into="p2", out="p1", dst=host_mac(1))


VIA2 = {4: "10.0.2.2", 6: "fd00:2::2"}
PREFIX = {4: "192.0.2.0/24", 6: "2001:db8:2::/48"}
HOST = {4: "192.0.2.9/32", 6: "2001:db8:2::9/128"}
# name: (commands, their undoing); afterwards the flow goes out of p2
CHANGES = {
    "more specific route": lambda f: ([f"route add {HOST[f]} via {VIA2[f]}"], [f"route del {HOST[f]}"]),
    "less specific leaves": lambda f: ([f"route add {HOST[f]} via {VIA2[f]}"],
                                       [f"route replace {HOST[f]} via {VIA2[f]} metric 9", f"route del {HOST[f]} metric 0",
                                        f"route del {HOST[f]} metric 9"]),
    "next hop": lambda f: ([f"nexthop add 1 via {VIA2[f]} dev p2", f"route add {HOST[f]} nhid 1"], ["nexthop del 1"]),
    "next hop replaced": lambda f: ([f"nexthop add 1 dev p0", f"route add {HOST[f]} nhid 1",
                                     f"nexthop replace 1 via {VIA2[f]} dev p2"], ["nexthop del 1"]),
    "group": lambda f: ([f"nexthop add 1 via {VIA2[f]} dev p2", "nexthop add 2 group 1", f"route add {HOST[f]} nhid 2"],
                        ["nexthop del 2", "nexthop del 1"]),
    "rule": lambda f: ([f"route add {PREFIX[f]} via {VIA2[f]} table 7",
                        f"rule add priority 5 to {PREFIX[f]} table 7"],
                       [f"rule del priority 5 to {PREFIX[f]} table 7", f"route del {PREFIX[f]} table 7"]),
    "rule's table": lambda f: ([f"rule add priority 5 to {PREFIX[f]} table 7", f"route add {PREFIX[f]} via {VIA2[f]} table 7"],
                               [f"route del {PREFIX[f]} table 7", f"rule del priority 5 to {PREFIX[f]} table 7"]),
}


@FAMILIES
@pytest.mark.parametrize("name", CHANGES)
def test_C_41_the_next_packet_obeys(cached, family, name):
    """Warm, changed, once; undone, once; several rounds."""
    frame = MAKE[family](0, DST[family])
    there, back = CHANGES[name](family)
    cached.forwards(frame, out="p1", dst=host_mac(1), times=3)
    for _ in range(3):
        cached.ctl.batch(*there)
        cached.forwards(frame, out="p2", dst=host_mac(2), times=1)
        cached.ctl.batch(*back)
        cached.forwards(frame, out="p1", dst=host_mac(1), times=1)


@FAMILIES
def test_C_41_types_addresses_and_links(cached, family):
    """Into each of the other verdicts and out again."""
    ctl, frame = cached.ctl, MAKE[family](0, DST[family])
    error = {4: {"prohibit": (3, 13), "local": (3, 3), "big": (3, 4), "none": (3, 0)},
             6: {"prohibit": (1, 1), "local": (1, 4), "big": (2, 0), "none": (1, 0)}}[family]

    def goes():
        cached.forwards(frame, out="p1", dst=host_mac(1), times=2)

    def once(kind, reason):
        cached.error(frame, *error[kind], reason=reason, dst=host_mac(0), times=1)

    goes()
    ctl.text("route", "add", "prohibit", HOST[family])
    once("prohibit", "route_prohibit")
    ctl.text("route", "del", HOST[family])
    goes()
    ctl.text("route", "add", "blackhole", HOST[family])
    cached.drops(frame, "route_blackhole", times=1)
    ctl.text("route", "del", HOST[family])
    goes()
    ctl.text("addr", "add", HOST[family], "dev", "p2")
    once("local", "udp_no_port")
    ctl.text("addr", "del", HOST[family], "dev", "p2")
    goes()
    big = MAKE[family](0, DST[family], size=1402, **({"flags": "DF"} if family == 4 else {}))
    cached.forwards(big, out="p1", dst=host_mac(1))
    ctl.text("link", "set", "p1", "mtu", 1400)
    cached.error(big, *error["big"], dst=host_mac(0), times=1)
    ctl.text("link", "set", "p1", "mtu", 1500)
    cached.forwards(big, out="p1", dst=host_mac(1), times=1)
    cached.quiet.add("p1")
    ctl.text("link", "set", "p1", "down")
    once("none", "no_route")
    ctl.text("link", "set", "p1", "up")
    cached.quiet.clear()
    goes()


@FAMILIES
def test_case_D55_neighbor_with_another_mac(cached, family):
    """The cached decision goes to the new MAC with the next packet. (On every worker: test/pipeline/hold_test.cc.)"""
    via = {4: "10.0.1.2", 6: "fd00:1::2"}[family]
    frames = flows(MAKE[family](0, DST[family]), 64)
    count_out(cached, frames)
    for mac in ("02:ee:00:00:00:01", "02:ee:00:00:00:02", host_mac(1)):
        cached.ctl.text("neigh", "add", via, "dev", "p1", "lladdr", mac)
        wanted = bytes.fromhex(mac.replace(":", ""))
        old = []
        out = count_out(cached, frames, match=lambda got: old.append(got[:6]) or got[:6] == wanted)
        assert out == {"p1": 64}, (out, set(old))


@FAMILIES
def test_X_02_removed_netdev_is_served_to_nobody(cached, family):
    """Warm through a VLAN; removed, the very next packet knows; made again, it works again."""
    ctl, frame = cached.ctl, MAKE[family](0, {4: "10.9.0.2", 6: "fd00:9::2"}[family])
    for _ in range(2):
        ctl.batch("link add v link p1 vlan 9", "addr add 10.9.0.1/24 dev v", "addr add fd00:9::1/64 dev v",
                  "neigh add 10.9.0.2 dev v lladdr 02:dd:00:00:00:02", "neigh add fd00:9::2 dev v lladdr 02:dd:00:00:00:02")
        cached.forwards(frame, out="p1", dst="02:dd:00:00:00:02", tags=[9], times=3)
        ctl.text("link", "del", "v")
        cached.error(frame, *((3, 0) if family == 4 else (1, 0)), reason="no_route", dst=host_mac(0))


def test_cache_off_and_sizes(new_bench):
    """The smallest cache, three times as many destinations: right answers all the same."""
    bench = new_bench(**wide(2, routes=ROUTES, workers={"idle": "adaptive", "cache": "on", "cache-entries": 4}))
    assert bench.ctl.json("cache", "show")["entries"] == 4
    for family in (4, 6):
        for _ in range(3):
            got = counted(bench, family, destinations(family, 12))
            assert got["hits"] + got["misses"] + got["bypassed"] == 12, got
