# SPDX-License-Identifier: BSD-3-Clause
"""Policy rules: checks.md G, E 74, I 90, dst.md C-40 and C-41. Every rule is added and taken away over a warm cache, and the
very next packet obeys."""

import itertools

import pytest
from bench import WireBench
from frames import ICMP, IP, TCP, UDP, Ether, ICMPv6EchoRequest, IPv6, Raw, l3
from sites import eth, from4, from6, host_mac, wide

ROUTES = [{"to": prefix, "via": via.format(port), "table": table}
          for port, table in ((1, 254), (2, 100), (3, 101))
          for prefix, via in (("192.0.2.0/24", "10.0.{}.2"), ("2001:db8:2::/48", "fd00:{}::2"))]
MAIN, HUNDRED = ("p1", 1), ("p2", 2)


@pytest.fixture(scope="module")
def ruled():
    running = WireBench(**wide(4, routes=ROUTES))
    yield running
    running.close()


@pytest.fixture
def rules(ruled):
    yield ruled
    for row in ruled.ctl.json("rule", "show"):
        ruled.ctl.text("-6" if row["family"] == "ipv6" else "-4", "rule", "del", "priority", row["priority"])
    ruled.ctl.text("route", "flush")
    for name in ("p0", "p3"):
        ruled.ctl.text("link", "set", name, "mark", 0)


def goes(bench, frame, way, times=1, into="p0"):
    bench.forwards(frame, into=into, out=way[0], dst=host_mac(way[1]), times=times)


def tcp(family, **ports):
    ip = IP(src="10.0.0.2", dst="192.0.2.9", id=1) if family == 4 else IPv6(src="fd00:0::2", dst="2001:db8:2::9")
    return bytes(Ether(**eth(0)) / ip / TCP(**ports) / Raw(b"x" * 20))


def icmp(family):
    if family == 4:
        return bytes(Ether(**eth(0)) / IP(src="10.0.0.2", dst="192.0.2.9", id=1) / ICMP(type=8) / Raw(b"x" * 20))
    return bytes(Ether(**eth(0)) / IPv6(src="fd00:0::2", dst="2001:db8:2::9") / ICMPv6EchoRequest(data=b"x" * 20))


def udp(family, number=0, **options):
    """DSCP and ECN as one byte in `tos`."""
    if family == 4:
        return from4(number, options.pop("dst", "192.0.2.9"), **options)
    options["tc"] = options.pop("tos", 0)
    return from6(number, options.pop("dst", "2001:db8:2::9"), **options)


# name: (the rule's words, packets that match, packets that do not)
SELECTORS = {
    "dscp": {4: ("dscp 46", [lambda f: udp(f, tos=0xB8), lambda f: udp(f, tos=0xB9), lambda f: udp(f, tos=0xBB)],
                 [lambda f: udp(f), lambda f: udp(f, tos=0x01), lambda f: udp(f, tos=0xB4)])},
    "tos": {4: ("tos 0x10", [lambda f: udp(f, tos=0x10), lambda f: udp(f, tos=0x13)], [lambda f: udp(f, tos=0x08)])},
    "from": {4: ("from 10.0.0.2", [lambda f: udp(f)], [lambda f: udp(f, src="10.0.0.3")]),
             6: ("from fd00::2", [lambda f: udp(f)], [lambda f: udp(f, src="fd00::3")])},
    "from a network": {4: ("from 10.0.0.128/25", [lambda f: udp(f, src="10.0.0.129"), lambda f: udp(f, src="10.0.0.254")],
                           [lambda f: udp(f), lambda f: udp(f, src="10.0.0.127")]),
                       6: ("from fd00::8000:0:0:0/65", [lambda f: udp(f, src="fd00::8000:0:0:1")], [lambda f: udp(f)])},
    "to": {4: ("to 192.0.2.0/28", [lambda f: udp(f), lambda f: udp(f, dst="192.0.2.15")], [lambda f: udp(f, dst="192.0.2.16")]),
           6: ("to 2001:db8:2::/124", [lambda f: udp(f)], [lambda f: udp(f, dst="2001:db8:2::10")])},
    "protocol": {4: ("ipproto tcp", [tcp], [udp, icmp])},
    "icmp": {4: ("ipproto icmp", [icmp], [udp, tcp]), 6: ("ipproto ipv6-icmp", [icmp], [udp, tcp])},
    "ports": {4: ("ipproto udp sport 666 dport 777", [lambda f: udp(f, sport=666, dport=777)],
                  [lambda f: udp(f, sport=666), lambda f: udp(f, dport=777), lambda f: udp(f, sport=777, dport=666),
                   lambda f: tcp(f, sport=666, dport=777)])},
    "port range": {4: ("dport 5060-5061", [lambda f: udp(f, dport=5060), lambda f: udp(f, dport=5061),
                                           lambda f: tcp(f, dport=5060)],
                       [lambda f: udp(f, dport=5059), lambda f: udp(f, dport=5062), lambda f: udp(f, sport=5060), icmp])},
    "all of them": {4: ("from 10.0.0.2 to 192.0.2.9 iif p0 dscp 8 ipproto udp sport 1 dport 2",
                        [lambda f: udp(f, tos=0x20, sport=1, dport=2)],
                        [lambda f: udp(f, sport=1, dport=2), lambda f: udp(f, tos=0x20, sport=1, dport=3),
                         lambda f: udp(f, tos=0x20, sport=1, dport=2, src="10.0.0.3")]),
                    6: ("from fd00::2 to 2001:db8:2::9 iif p0 dscp 8 ipproto udp sport 1 dport 2",
                        [lambda f: udp(f, tos=0x20, sport=1, dport=2)],
                        [lambda f: udp(f, sport=1, dport=2), lambda f: udp(f, tos=0x20, sport=1, dport=3)])},
}


@pytest.mark.parametrize("family, name", itertools.product([4, 6], SELECTORS))
def test_check_G77_and_G80_and_I90_selectors(rules, family, name):
    """ECN bits never count. What a rule does not select keeps its way, before, meanwhile and after."""
    words, matching, others = SELECTORS[name].get(family, SELECTORS[name][4])
    ctl, option = rules.ctl, f"-{family}"
    matching, others = [make(family) for make in matching], [make(family) for make in others]
    for frame in matching + others:
        goes(rules, frame, MAIN, times=2)
    for _ in range(2):
        ctl.text(option, "rule", "add", "priority", 10, *words.split(), "table", 100)
        for frame in matching:
            goes(rules, frame, HUNDRED, times=2)
        for frame in others:
            goes(rules, frame, MAIN)
        ctl.text(option, "rule", "del", "priority", 10)
        for frame in matching + others:
            goes(rules, frame, MAIN)


@pytest.mark.parametrize("family", [4, 6])
def test_check_G77_ingress(rules, family):
    """Two ports to one destination: the cache keeps them apart."""
    one, other = udp(family), udp(family, number=3)
    goes(rules, one, MAIN, times=2)
    goes(rules, other, MAIN, times=2, into="p3")
    rules.ctl.text(f"-{family}", "rule", "add", "priority", 10, "iif", "p3", "table", 100)
    for _ in range(2):
        goes(rules, one, MAIN)
        goes(rules, other, HUNDRED, into="p3")
    rules.ctl.text(f"-{family}", "rule", "del", "priority", 10)
    goes(rules, other, MAIN, into="p3")


@pytest.mark.parametrize("family", [4, 6])
def test_check_G77_marks(rules, family):
    """Set by the port, and by a rule for the rules after it."""
    ctl, option = rules.ctl, f"-{family}"
    one, other = udp(family), udp(family, number=3)
    goes(rules, one, MAIN, times=2)
    ctl.text(option, "rule", "add", "priority", 20, "fwmark", 7, "table", 100)
    ctl.text(option, "rule", "add", "priority", 21, "fwmark", 8, "table", 101)
    goes(rules, one, MAIN, times=2)
    ctl.text("link", "set", "p0", "mark", 7)
    goes(rules, one, HUNDRED, times=2)
    goes(rules, other, MAIN, times=2, into="p3")
    ctl.text(option, "rule", "add", "priority", 10, "dport", 2000, "set-mark", 8)
    goes(rules, one, ("p3", 3), times=2)
    goes(rules, udp(family, dport=2001), HUNDRED, times=2)
    ctl.text(option, "rule", "del", "priority", 10)
    goes(rules, one, HUNDRED)
    ctl.text("link", "set", "p0", "mark", 0)
    goes(rules, one, MAIN)


def test_check_G77_first_by_priority(rules):
    """The lowest priority first, whatever the order they came in; a table without a route for it is passed by."""
    ctl = rules.ctl
    ctl.text("rule", "add", "priority", 30, "from", "10.0.0.0/8", "table", 101)
    goes(rules, udp(4), ("p3", 3), times=2)
    ctl.text("rule", "add", "priority", 20, "from", "10.0.0.0/8", "table", 100)
    goes(rules, udp(4), HUNDRED, times=2)
    ctl.text("rule", "add", "priority", 10, "from", "10.0.0.0/8", "table", 4711)
    goes(rules, udp(4), HUNDRED, times=2)
    ctl.text("route", "add", "192.0.2.9/32", "via", "10.0.1.2", "table", 4711)
    goes(rules, udp(4), MAIN, times=2)
    assert [row["priority"] for row in ctl.json("-4", "rule", "show")] == [10, 20, 30]
    ctl.text("rule", "del", "priority", 20)
    ctl.text("rule", "del", "priority", 10)
    goes(rules, udp(4), ("p3", 3))


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("action, answer", [
    ("blackhole", {}), ("unreachable", {4: (3, 1), 6: (1, 0)}), ("prohibit", {4: (3, 13), 6: (1, 1)})])
def test_check_G77_actions(rules, family, action, answer):
    """Each with its answer, over a warm cache; gone with the rule."""
    frame, other = udp(family, dport=99), udp(family)
    goes(rules, frame, MAIN, times=2)
    rules.ctl.text(f"-{family}", "rule", "add", "priority", 10, "dport", 99, action)
    if answer:
        rules.error(frame, *answer[family], reason=f"route_{action}", dst=host_mac(0))
    else:
        rules.drops(frame, "route_blackhole", netdev="p0")
    goes(rules, other, MAIN)
    rules.ctl.text(f"-{family}", "rule", "del", "priority", 10)
    goes(rules, frame, MAIN)


@pytest.mark.parametrize("family", [4, 6])
def test_check_E74_suppressed_default(rules, family):
    """Main without its default route, then another table's default."""
    ctl, default = rules.ctl, ("0.0.0.0/0" if family == 4 else "::/0")
    via = "10.0.{}.2" if family == 4 else "fd00:{}::2"
    far = udp(family, dst="100.64.0.1" if family == 4 else "2001:db8:64::1")
    ctl.text("route", "add", default, "via", via.format(1))
    ctl.text("route", "add", default, "via", via.format(2), "table", 100)
    goes(rules, far, MAIN, times=2)
    ctl.text(f"-{family}", "rule", "add", "priority", 10, "table", "main", "suppress_prefixlength", 0)
    goes(rules, far, MAIN, times=2)  # after the last rule main is looked at, whole
    # By port, so that the router's own answers go on by main.
    ctl.text(f"-{family}", "rule", "add", "priority", 20, "dport", 2000, "table", 100)
    goes(rules, far, HUNDRED, times=2)
    goes(rules, udp(family), MAIN, times=2)
    ctl.text(f"-{family}", "rule", "del", "priority", 10)
    goes(rules, udp(family), HUNDRED)
    ctl.text(f"-{family}", "rule", "del", "priority", 20)
    goes(rules, far, MAIN)


@pytest.mark.parametrize("family", [4, 6])
def test_own_answers_meet_no_rule_of_the_ingress(rules, family):
    """What p0 gets for its own host is sent elsewhere; the router's answers to that host came in nowhere."""
    ctl, option, default = rules.ctl, f"-{family}", ("0.0.0.0/0" if family == 4 else "::/0")
    ctl.text("route", "add", default, "via", "10.0.2.2" if family == 4 else "fd00:2::2", "table", 60)
    ctl.text("link", "set", "p0", "mark", 9)
    host = "10.0.0.2" if family == 4 else "fd00::2"
    for selector in (("iif", "p0"), ("fwmark", 9)):
        ctl.text(option, "rule", "add", "priority", 10, *selector, "to", host, "table", 60)
        goes(rules, udp(family, dst=host, src="10.0.0.77" if family == 4 else "fd00::77"), HUNDRED, times=2)
        options = {"ttl": 1} if family == 4 else {"hlim": 1}
        rules.error(udp(family, **options), *((11, 0) if family == 4 else (3, 0)), reason="ttl_expired", dst=host_mac(0))
        ctl.text(option, "rule", "del", "priority", 10)


@pytest.mark.parametrize("rule_first", [True, False])
@pytest.mark.parametrize("family", [4, 6])
def test_check_G78_local_everything(rules, family, rule_first):
    """A mark leads to a table that delivers all; added, shown and deleted in either order."""
    ctl, option, default = rules.ctl, f"-{family}", ("0.0.0.0/0" if family == 4 else "::/0")
    rule = lambda verb: ctl.text(option, "rule", verb, "priority", 10, "fwmark", 1, "table", 50)  # noqa: E731
    route = lambda verb: ctl.text("route", verb, "local", default, "table", 50)  # noqa: E731
    ctl.text("link", "set", "p3", "mark", 1)
    goes(rules, udp(family, number=3), MAIN, times=2, into="p3")
    for step in (rule, route) if rule_first else (route, rule):
        step("add")
    # Delivered: and nobody listens. The answer itself has no mark.
    rules.error(udp(family, number=3), *((3, 3) if family == 4 else (1, 4)), into="p3", reason="udp_no_port",
                dst=host_mac(3))
    goes(rules, udp(family), MAIN)
    assert ctl.json(option, "rule", "show")[0]["table"] == 50
    assert ctl.json("route", "show", "table", 50)[0]["type"] == "local"
    for step in (rule, route) if rule_first else (route, rule):
        step("del")
    goes(rules, udp(family, number=3), MAIN, into="p3")


def test_check_G79_route_get(rules):
    """Asked with every selector, the answer is what such a packet meets."""
    ctl = rules.ctl

    def get(*words):
        answer = ctl.json("route", "get", *words)
        return answer["type"], answer["dev"]

    for family, dst, src in ((4, "192.0.2.9", "10.0.0.2"), (6, "2001:db8:2::9", "fd00::2")):
        option = f"-{family}"
        assert get(dst) == ("unicast", "p1")
        for priority, words in enumerate((f"from {src}", "iif p3", "dscp 46", "ipproto tcp", "ipproto udp sport 666 dport 777")):
            ctl.text(option, "rule", "add", "priority", 10 + priority, *words.split(), "table", 100)
        base = ("iif", "p0")
        assert get(dst, *base) == ("unicast", "p1")
        for words in (("from", src), ("dscp", 46), ("tos", "0xb8"), ("ipproto", "tcp"),
                      ("ipproto", "udp", "sport", 666, "dport", 777)):
            assert get(dst, *base, *words) == ("unicast", "p2"), words
        assert get(dst, "iif", "p3") == ("unicast", "p2")
        assert get(dst, *base, "ipproto", "udp", "sport", 666) == ("unicast", "p1")
        assert get(dst, *base, "dscp", 45) == ("unicast", "p1")
    for loopback in ("127.0.0.1", "::1"):
        assert ctl.json("route", "get", loopback)["address"] == loopback
    assert get("10.0.0.1", "iif", "p3")[0] == "local"


def test_C_40_rules_leave_the_cache_on(rules):
    """Fields in the key and fields that are classed: the second packet of each kind is a hit, nothing bypasses."""
    ctl = rules.ctl
    for priority, words in enumerate(("dscp 46", "from 10.0.0.0/25", "iif p0 ipproto udp dport 99", "fwmark 3")):
        ctl.text("rule", "add", "priority", 10 + priority, *words.split(), "table", 100)
    frames = [udp(4), udp(4, tos=0xB8), udp(4, src="10.0.0.200"), udp(4, src="10.0.0.200", dport=99)]
    for frame in frames:
        rules.probe(frame, wait=1)
    before = [row for row in ctl.json("cache", "show")["workers"] if row["family"] == "ipv4"]
    for frame in frames:
        rules.probe(frame, wait=1)
    shown = ctl.json("cache", "show")
    after = [row for row in shown["workers"] if row["family"] == "ipv4"]
    assert shown["bypassing"] == []
    assert sum(row["bypassed"] for row in after) == sum(row["bypassed"] for row in before)
    # The bench's own echo requests hit or miss as they like.
    assert sum(row["hits"] for row in after) - sum(row["hits"] for row in before) >= len(frames)
