# SPDX-License-Identifier: BSD-3-Clause
"""Source validation (RFC 3704): dst.md C-23 and C-24, checks.md D 49 and M 111, cases.md A 8."""

import random

import pytest
from bench import WireBench
from frames import echo4, echo6, l3
from sites import FAMILIES, MAKE, count_out, eth, host_mac, port, wide

DST = {4: "192.0.2.9", 6: "2001:db8:2::9"}
# Sources by what the router thinks of them: behind p0, behind p3, nowhere.
HERE = {4: "198.51.100.7", 6: "2001:db8:51::7"}
THERE = {4: "203.0.113.7", 6: "2001:db8:113::7"}
NOWHERE = {4: "100.64.0.7", 6: "2001:db8:64::7"}
ROUTES = [{"to": "192.0.2.0/24", "via": "10.0.1.2"}, {"to": "2001:db8:2::/48", "via": "fd00:1::2"},
          {"to": "198.51.100.0/24", "via": "10.0.0.2"}, {"to": "2001:db8:51::/48", "via": "fd00:0::2"},
          {"to": "203.0.113.0/24", "via": "10.0.3.2"}, {"to": "2001:db8:113::/48", "via": "fd00:3::2"}]


@pytest.fixture(scope="module")
def strict():
    """p0 strict, p2 loose, p3 off; everything of interest leaves by p1."""
    ports = {"p0": port(0, **{"source-validation": "strict"}), "p1": port(1),
             "p2": port(2, **{"source-validation": "loose"}), "p3": port(3)}
    running = WireBench(**wide(4, ports=ports, routes=ROUTES))
    yield running
    running.close()


def passes(bench, frame, into="p0", times=2):
    bench.forwards(frame, into=into, out="p1", dst=host_mac(1), times=times)


@FAMILIES
def test_strict(strict, family):
    """What is routed back by the port it came from, and nothing else; the good ones meanwhile pass."""
    good = [MAKE[family](0, DST[family]), MAKE[family](0, DST[family], src=HERE[family])]
    for _ in range(2):
        for frame in good:
            passes(strict, frame)
        for source in (THERE[family], NOWHERE[family], {4: "10.0.1.77", 6: "fd00:1::77"}[family]):
            strict.drops(MAKE[family](0, DST[family], src=source), "source_invalid", netdev="p0")


@FAMILIES
def test_loose(strict, family):
    """What is routed anywhere."""
    for source in (HERE[family], THERE[family], {4: "10.0.1.77", 6: "fd00:1::77"}[family]):
        passes(strict, MAKE[family](2, DST[family], src=source), into="p2")
    strict.drops(MAKE[family](2, DST[family], src=NOWHERE[family]), "source_invalid", into="p2", netdev="p2")


@FAMILIES
def test_off(strict, family):
    for source in (HERE[family], THERE[family], NOWHERE[family]):
        passes(strict, MAKE[family](3, DST[family], src=source), into="p3")


@FAMILIES
def test_one_source_on_three_ports(strict, family):
    """The verdict is the ingress's: the same packet in turn on each."""
    for _ in range(3):
        for source, verdicts in ((THERE[family], (False, True, True)), (NOWHERE[family], (False, False, True))):
            for number, good in zip((0, 2, 3), verdicts):
                frame = MAKE[family](number, DST[family], src=source)
                if good:
                    passes(strict, frame, into=f"p{number}", times=1)
                else:
                    strict.drops(frame, "source_invalid", into=f"p{number}", times=1)


def spoofed(family, n):
    """None of them is routed back by p0."""
    if family == 4:
        return f"203.0.{113 if n % 2 else 0}.{1 + n % 250}"
    return f"2001:db8:{113 if n % 2 else 64}::{n + 1:x}"


@FAMILIES
@pytest.mark.parametrize("size", [2, 8, 64])
def test_check_M111_C_23_spoofed_behind_a_legitimate_packet(strict, family, size):
    """One legitimate packet in `size` to one destination, in bursts without a pause: each spoofed one is dropped and
    counted. (The kernel lets all that are in its burst through.)"""
    legitimate = MAKE[family](0, DST[family])
    forged = [MAKE[family](0, DST[family], src=spoofed(family, n)) for n in range(64)]
    passes(strict, legitimate)
    randomly = random.Random(size)
    frames, good = [], 0
    for _ in range(2048 // size):
        burst = [legitimate] + [forged[randomly.randrange(64)] for _ in range(size - 1)]
        if randomly.random() < 0.5:
            randomly.shuffle(burst)
        frames += burst
        good += 1
    before = strict.ctl.counters()
    out = count_out(strict, frames, wanted=good)
    assert out == {"p1": good}, (out, good)
    strict.settle()
    after = strict.ctl.counters()
    dropped = {reason: count - before["p0"]["drops"].get(reason, 0) for reason, count in after["p0"]["drops"].items()
               if count != before["p0"]["drops"].get(reason, 0)}
    assert dropped == {"source_invalid": len(frames) - good}


@FAMILIES
def test_C_24_local_delivery_is_validated(strict, family):
    """The router's own address answers who can be there, and no forger."""
    make, own = (echo4, "10.0.0.1") if family == 4 else (echo6, "fd00:0::1")
    outcome = strict.probe(make(src={4: "10.0.0.2", 6: "fd00:0::2"}[family], dst=own, eth=eth(0)), wait=1)
    assert len(outcome.frames["p0"]) == 1, str(outcome)
    for source in (THERE[family], NOWHERE[family]):
        strict.drops(bytes(make(src=source, dst=own, eth=eth(0))), "source_invalid", netdev="p0")


@FAMILIES
def test_a_changed_route_changes_the_verdict_at_once(strict, family):
    """Sources that were found valid are remembered; not beyond the route that made them so."""
    ctl, frame = strict.ctl, MAKE[family](0, DST[family], src=HERE[family])
    more = {4: "198.51.100.7/32", 6: "2001:db8:51::7/128"}[family]
    passes(strict, frame)
    for _ in range(2):
        ctl.text("route", "add", more, "via", {4: "10.0.3.2", 6: "fd00:3::2"}[family])
        strict.drops(frame, "source_invalid", netdev="p0")
        ctl.text("route", "del", more)
        passes(strict, frame)
    ctl.text("link", "set", "p0", "source-validation", "loose")
    passes(strict, MAKE[family](0, DST[family], src=THERE[family]))
    ctl.text("link", "set", "p0", "source-validation", "off")
    passes(strict, MAKE[family](0, DST[family], src=NOWHERE[family]))
    ctl.text("link", "set", "p0", "source-validation", "strict")
    for source in (THERE[family], NOWHERE[family]):
        strict.drops(MAKE[family](0, DST[family], src=source), "source_invalid", netdev="p0")


@FAMILIES
def test_case_A08_with_source_validation(strict, family):
    """An own address as source is a martian all the same, and the router's own errors pass no such check."""
    own = {4: "10.0.1.1", 6: "fd00:1::1"}[family]
    strict.drops(MAKE[family](0, DST[family], src=own), "martian_source_own", netdev="p0")
    before = strict.ctl.counters()
    options = {"ttl": 1} if family == 4 else {"hlim": 1}
    strict.error(MAKE[family](0, DST[family], src=HERE[family], **options), *((11, 0) if family == 4 else (3, 0)),
                 reason="ttl_expired", dst=host_mac(0))
    strict.error(MAKE[family](0, NOWHERE[family]), *((3, 0) if family == 4 else (1, 0)), reason="no_route",
                 dst=host_mac(0))
    after = strict.ctl.counters()
    for name, row in after.items():
        for reason in ("martian_source_own", "source_invalid"):
            assert row["drops"].get(reason, 0) == before[name]["drops"].get(reason, 0), (name, reason)


@FAMILIES
def test_check_D49_default_over_a_group(strict, family):
    """Every member's port is a way back; another strict port is none. The flow itself may take any."""
    ctl, via = strict.ctl, {4: "10.0.{}.2", 6: "fd00:{}::2"}[family]
    for number in (0, 3):
        ctl.text("nexthop", "add", number + 1, "via", via.format(number), "dev", f"p{number}")
    ctl.text("nexthop", "add", 10, "group", "1/4")
    ctl.text("route", "add", "0.0.0.0/0" if family == 4 else "::/0", "nhid", 10)
    for name in ("p2", "p3"):
        ctl.text("link", "set", name, "source-validation", "strict")
    try:
        for _ in range(2):
            for number in (0, 3):
                passes(strict, MAKE[family](number, DST[family], src=NOWHERE[family]), into=f"p{number}")
            strict.drops(MAKE[family](2, DST[family], src=NOWHERE[family]), "source_invalid", into="p2", netdev="p2")
        ctl.text("nexthop", "del", 1)
        strict.drops(MAKE[family](0, DST[family], src=NOWHERE[family]), "source_invalid", netdev="p0")
        passes(strict, MAKE[family](3, DST[family], src=NOWHERE[family]), into="p3")
    finally:
        ctl.text("link", "set", "p2", "source-validation", "loose")
        ctl.text("link", "set", "p3", "source-validation", "off")
        for row in ctl.json("nexthop", "show"):
            if row["type"] != "group":
                ctl.text("nexthop", "del", row["id"])
    assert ctl.json("nexthop", "show") == []
