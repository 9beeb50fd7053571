# SPDX-License-Identifier: BSD-3-Clause
"""cases.md G (VLAN) and checks.md N 114."""

import struct

import pytest
from bench import WireBench
from frames import H0, H1, R0, R1, echo4, l3, tagged, tags_of, udp4, udp6


@pytest.fixture(scope="module")
def vlans():
    bench = WireBench(
        vlans={"p0.10": {"link": "p0", "id": 10, "addresses": ["10.0.10.1/24", "fd00:10::1/64"]},
               "p0.20": {"link": "p0", "id": 20, "addresses": ["10.0.20.1/24"]},
               "p1.30": {"link": "p1", "id": 30, "addresses": ["10.0.30.1/24", "fd00:30::1/64"]}},
        neighbors=[{"to": "10.0.10.2", "dev": "p0.10", "lladdr": H0}, {"to": "10.0.20.2", "dev": "p0.20", "lladdr": H0},
                   {"to": "fd00:10::2", "dev": "p0.10", "lladdr": H0},
                   {"to": "10.0.30.2", "dev": "p1.30", "lladdr": H1}, {"to": "fd00:30::2", "dev": "p1.30", "lladdr": H1}])
    yield bench
    bench.close()


def ingress(bench, frame):
    """The netdev that a frame into p0 is booked on."""
    outcome = bench.probe(frame, wait=1)
    assert len(outcome.frames["p1"]) == 1 and not outcome.drops, str(outcome)
    return [name for name in ("p0", "p0.10", "p0.20") if outcome.delta(name, "forwarded")]


def test_case_G100_each_tag_its_netdev(vlans):
    assert ingress(vlans, udp4()) == ["p0"]
    assert ingress(vlans, tagged(udp4(src="10.0.10.2"), 10)) == ["p0.10"]
    assert ingress(vlans, tagged(udp4(src="10.0.20.2"), 20)) == ["p0.20"]
    assert ingress(vlans, tagged(udp6(src="fd00:10::2"), 10)) == ["p0.10"]


def test_case_G100_unknown_tag(vlans):
    for tag in (1, 9, 11, 99, 4094):
        vlans.drops(tagged(udp4(), tag), "vlan_unknown", netdev="p0")
        vlans.drops(tagged(udp6(), tag), "vlan_unknown", netdev="p0")


def test_case_G100_qinq(vlans):
    vlans.drops(tagged(udp4(), 10, 20), "vlan_qinq")
    vlans.drops(tagged(udp4(), 0, 10), "vlan_qinq")
    frame = bytes(udp4())
    vlans.drops(frame[:12] + struct.pack("!HH", 0x88A8, 10) + frame[12:], ("vlan_qinq", "eth_unknown_type"))


def test_check_N114_priority_tag_is_untagged(vlans):
    """VLAN 0, every priority, DEI too."""
    for bits in (0, 1 << 13, 5 << 13, 7 << 13, 1 << 12):
        assert ingress(vlans, tagged(udp4(), bits)) == ["p0"]
        assert ingress(vlans, tagged(udp4(src="10.0.10.2"), 10 | bits)) == ["p0.10"]


def test_case_G101_tags_pushed_and_popped(vlans):
    """Tagged and untagged on both sides, in every combination."""
    for into in ([], [10]):
        src4, src6 = ("10.0.10.2", "fd00:10::2") if into else ("10.0.0.2", "fd00::2")
        for out, dst4, dst6 in (([], "192.0.2.9", "2001:db8:2::9"), ([30], "10.0.30.2", "fd00:30::2")):
            vlans.forwards(tagged(udp4(src=src4, dst=dst4), *into), tags=out)
            vlans.forwards(tagged(udp6(src=src6, dst=dst6), *into), tags=out)
    # From one VLAN to another of the same port.
    vlans.forwards(tagged(udp4(src="10.0.10.2", dst="10.0.20.2"), 10), out="p0", tags=[20])


def test_answers_carry_the_tag(vlans):
    outcome = vlans.probe(tagged(echo4(src="10.0.10.2", dst="10.0.10.1"), 10), wait=1)
    assert [tags_of(f) for f in outcome.frames["p0"]] == [[10]], str(outcome)
    packet = vlans.error(tagged(udp4(src="10.0.10.2", ttl=1), 10), 11, 0, source="10.0.10.1")
    assert packet


def test_case_D52_arp_for_another_sub_interface(new_bench):
    from frames import arp
    bench = new_bench(vlans={"p0.101": {"link": "p0", "id": 101, "addresses": ["10.1.1.1/24"]},
                             "p0.102": {"link": "p0", "id": 102, "addresses": ["10.1.2.1/24"]}})
    bench.silent(tagged(arp(1, "10.1.1.2", H0, "10.1.2.1"), 101))
    outcome = bench.probe(tagged(arp(1, "10.1.1.2", H0, "10.1.1.1"), 101), wait=1)
    assert [tags_of(f) for f in outcome.frames["p0"]] == [[101]], str(outcome)
    outcome = bench.probe(tagged(arp(1, "10.1.2.2", H0, "10.1.2.1"), 102), wait=1)
    assert [tags_of(f) for f in outcome.frames["p0"]] == [[102]], str(outcome)


def test_vlan_added_and_deleted_at_run_time(vlans):
    frame = tagged(udp4(src="10.0.40.2"), 40)
    vlans.drops(frame, "vlan_unknown")
    vlans.ctl.text("link", "add", "p0.40", "link", "p0", "vlan", 40)
    vlans.ctl.text("addr", "add", "10.0.40.1/24", "dev", "p0.40")
    vlans.forwards(frame)
    vlans.ctl.text("link", "set", "p0.40", "down")
    vlans.drops(frame, "netdev_down", netdev="p0.40")
    vlans.ctl.text("link", "set", "p0.40", "up")
    vlans.forwards(frame)
    vlans.ctl.text("link", "del", "p0.40")
    vlans.drops(frame, "vlan_unknown")
    assert "p0" in vlans.ctl.refused("link", "add", "x", "link", "p0", "vlan", 10)
    vlans.ctl.refused("link", "add", "x", "link", "p9", "vlan", 11)
    vlans.ctl.refused("link", "add", "x", "link", "p0", "vlan", 4095)
