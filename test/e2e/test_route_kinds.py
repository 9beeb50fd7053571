# SPDX-License-Identifier: BSD-3-Clause
"""What a route says itself: several next hops, a protocol, a scope; and what `route get` says of a flow (checks.md 12, 47,
53, 60, 72)."""

import pytest
from bench import WireBench
from sites import FAMILIES, GATEWAY, MAKE, PREFIX, TARGET, count_out, flows, from4, wide

FLOWS = 1000
SOURCE = {4: "10.0.0.2", 6: "fd00::2"}


@pytest.fixture(scope="module")
def routed():
    running = WireBench(**wide(4))
    yield running
    running.close()


@pytest.fixture
def ctl(routed):
    yield routed.ctl
    for port in ("p1", "p2", "p3"):
        routed.ctl.text("link", "set", port, "up")
    routed.quiet.clear()
    routed.ctl.text("route", "flush")


def legs(family, **weights):
    return [word for port, weight in weights.items()
            for word in ("nexthop", "via", GATEWAY[family].format(port[1:]), "dev", port, "weight", weight)]


def spread(routed, family):
    return count_out(routed, flows(MAKE[family](0, TARGET[family]), FLOWS), "p0")


@FAMILIES
def test_check_60_several_next_hops_of_a_route(routed, ctl, family):
    ctl.text("route", "add", PREFIX[family], *legs(family, p1=1, p2=3))
    out = spread(routed, family)
    assert set(out) == {"p1", "p2"} and abs(out["p2"] - 0.75 * FLOWS) < 0.15 * 0.75 * FLOWS, out
    row = next(row for row in ctl.json("route", "show") if row["prefix"] == PREFIX[family])
    assert [(leg["dev"], leg["weight"], leg["active"]) for leg in row["nexthops"]] == [("p1", 1, True), ("p2", 3, True)]
    ctl.text("link", "set", "p1", "down")
    routed.quiet.add("p1")
    assert spread(routed, family) == {"p2": FLOWS}
    assert "dead" in ctl.text("route", "show")
    ctl.text("link", "set", "p1", "up")
    routed.quiet.clear()
    ctl.text("route", "replace", PREFIX[family], "via", GATEWAY[family].format(3))
    assert spread(routed, family) == {"p3": FLOWS}
    ctl.text("route", "replace", PREFIX[family], *legs(family, p1=1, p3=1))
    assert set(spread(routed, family)) == {"p1", "p3"}
    ctl.refused("route", "del", PREFIX[family], *legs(family, p1=1, p2=1))
    ctl.text("route", "del", PREFIX[family], *legs(family, p3=1, p1=1))
    assert ctl.json("route", "get", TARGET[family])["type"] == "none"


@FAMILIES
def test_route_get_names_the_member_of_a_flow(routed, ctl, family):
    """Each flow leaves by the netdev that was foretold."""
    for port in (1, 2, 3):
        ctl.text("nexthop", "add", port, "via", GATEWAY[family].format(port), "dev", f"p{port}")
    ctl.text("nexthop", "add", 10, "group", "1,1/2,2/3,1")
    try:
        ctl.text("route", "add", PREFIX[family], "nhid", 10)
        taken = set()
        for dport, frame in enumerate(flows(MAKE[family](0, TARGET[family]), 40), 1):
            found = ctl.json("route", "get", TARGET[family], "from", SOURCE[family], "iif", "p0", "ipproto", "udp",
                             "sport", 1000, "dport", dport)
            outcome = routed.probe([frame], wait=1)
            ways = [port for port, got in outcome.frames.items() if got]
            assert ways == [found["dev"]] and found["nexthop"] == 10, f"{found} {outcome}"
            assert found["dev"] == f"p{found['member']}" and found["via"] == GATEWAY[family].format(found["member"])
            taken.add(found["member"])
        assert taken == {1, 2, 3}
    finally:
        ctl.batch("nexthop del 10", "nexthop del 1", "nexthop del 2", "nexthop del 3")


def test_check_53_protocols(routed, ctl):
    ctl.batch("route add 198.51.100.0/24 via 10.0.1.2 proto bgp", "route add 203.0.113.0/24 via 10.0.1.2",
              "route add 2001:db8:51::/48 via fd00:1::2 proto 77")
    assert {row["prefix"]: row["protocol"] for row in ctl.json("route", "show") if row["owner"] == "cli"} == \
        {"198.51.100.0/24": "bgp", "203.0.113.0/24": "boot", "2001:db8:51::/48": "77"}
    assert [row["prefix"] for row in ctl.json("route", "show", "proto", "bgp")] == ["198.51.100.0/24"]
    assert "proto bgp" in ctl.text("route", "show")
    assert ctl.json("route", "flush", "proto", "bgp") == {"removed": 1}
    assert ctl.json("route", "show", "proto", "bgp") == []
    assert ctl.json("route", "flush") == {"removed": 2}


def test_check_47_scopes(routed, ctl):
    ctl.refused("route", "add", "198.51.100.0/24", "via", "10.0.1.2", "scope", "link")
    ctl.refused("route", "add", "198.51.100.0/24", "dev", "p1", "scope", "host")
    ctl.text("route", "add", "198.51.100.0/24", "via", "10.0.1.2", "scope", "global")
    ctl.text("route", "add", "203.0.113.0/24", "dev", "p1", "scope", "link")


def test_lines_of_a_batch_say_which_netns(routed, ctl):
    ctl.text("netns", "add", "tenant")
    try:
        ctl.batch("-n tenant route add 198.51.100.0/24 type blackhole", "route add 198.51.100.0/24 via 10.0.1.2",
                  "-n tenant -6 route add default type unreachable")
        assert [row["type"] for row in ctl.within("tenant").json("route", "show")] == ["blackhole", "unreachable"]
        assert ctl.json("route", "get", "198.51.100.1")["via"] == "10.0.1.2"
    finally:
        ctl.text("netns", "del", "tenant")


def test_check_12_an_own_broadcast_is_ours_whatever_a_rule_says(routed, ctl):
    ctl.batch("route add default via 10.0.1.2 table 100", "rule add priority 10 iif p0 table 100")
    try:
        found = ctl.json("route", "get", "10.0.2.255", "iif", "p0", "from", SOURCE[4])
        assert found["type"] == "broadcast", found
        outcome = routed.probe([from4(0, "10.0.2.255")], wait=0)
        assert not any(outcome.frames.values()), str(outcome)
        outcome = routed.probe([from4(0, "10.9.2.255")], wait=1)
        assert [len(outcome.frames[port]) for port in ("p1", "p2")] == [1, 0], str(outcome)
    finally:
        ctl.text("rule", "del", "priority", 10)
