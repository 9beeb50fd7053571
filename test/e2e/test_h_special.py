# SPDX-License-Identifier: BSD-3-Clause
"""cases.md H (special addresses, options, IPv6 headers) and checks.md N 123-130."""

import pytest
from bench import WireBench
from frames import (BROADCAST, H0, H1, IP, P3, P4, P5, P6, P7, R0, R1, TCP, UDP, Ether, ICMPv6EchoRequest, IPv6,
                    IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, Raw, RouterAlert,
                    advertisement, echo4, echo6, forwarded_l3, inet_sum, l3, udp4, udp6, with_options)


def test_case_H103_source_zero(bench):
    bench.drops(P5, "martian_source_zero", netdev="p0")


MARTIANS = [
    (udp4, "0.0.0.0", "martian_source_zero"), (udp4, "0.1.2.3", "martian_source_zero"),
    (udp4, "127.0.0.1", "martian_source_loopback"), (udp4, "127.255.255.254", "martian_source_loopback"),
    (udp4, "224.0.0.1", "martian_source_multicast"), (udp4, "239.255.255.255", "martian_source_multicast"),
    (udp4, "255.255.255.255", "martian_source_broadcast"), (udp4, "10.0.0.1", "martian_source_own"),
    (udp4, "10.0.1.1", "martian_source_own"), (udp6, "::", "martian_source_zero"),
    (udp6, "::1", "martian_source_loopback"), (udp6, "ff02::1", "martian_source_multicast"),
    (udp6, "fd00::1", "martian_source_own"), (udp6, "fd00:1::1", "martian_source_own"),
]


@pytest.mark.parametrize("make, src, reason", MARTIANS)
def test_check_N128_martian_sources(bench, make, src, reason):
    """cases.md 103, too."""
    bench.drops(make(src=src), reason, netdev="p0")
    bench.forwards(make())


@pytest.mark.parametrize("make, dst, reason", [
    (udp4, "0.1.2.3", "martian_destination_zero"), (udp4, "0.0.0.0", "martian_destination_zero"),
    (udp4, "127.0.0.1", "martian_destination_loopback"), (udp6, "::", "martian_destination_zero"),
    (udp6, "::1", "martian_destination_loopback"),
])
def test_case_H103_martian_destinations(bench, make, dst, reason):
    bench.drops(make(dst=dst), reason, netdev="p0")


@pytest.mark.parametrize("dst", ["192.0.2.9", "10.0.1.2", "10.0.0.1", "2001:db8:2::9", "fd00::1"])
def test_check_N128_unicast_in_a_broadcast_frame(bench, dst):
    make = udp6 if ":" in dst else udp4
    for mac in (BROADCAST, "01:00:5e:00:00:01", "33:33:00:00:00:01"):
        bench.drops(make(dst=dst, eth={"dst": mac}), "l2_broadcast_unicast", netdev="p0")


def test_group_source_mac(bench):
    bench.drops(udp4(eth={"src": "03:aa:00:00:00:02"}), "eth_bad_source", netdev="p0")


@pytest.mark.parametrize("forward", [True, False])
def test_case_H104_class_e(new_bench, forward):
    """A routed prefix like any other unless forward-class-e is off; never 255.255.255.255."""
    bench = new_bench(routes=[{"to": "240.0.0.0/4", "via": "10.0.1.2"}], **{"forward-class-e": forward})
    if forward:
        bench.forwards(udp4(dst="240.1.1.1"))
    else:
        bench.drops(udp4(dst="240.1.1.1"), "destination_reserved")
    bench.silent(udp4(dst="255.255.255.255"))
    bench.silent(udp4(dst="255.255.255.255", eth={"dst": BROADCAST}))


@pytest.fixture(scope="module")
def point_to_point():
    running = WireBench(ports={
        "p2": {"mac": "02:00:00:00:00:03", "addresses": ["10.9.9.0/31", "fd00:9::/127"]},
        "p3": {"mac": "02:00:00:00:00:04", "addresses": ["10.8.8.1/31", "fd00:8::1/127", "10.7.7.7/32"]}},
        neighbors=[{"to": "10.9.9.1", "dev": "p2", "lladdr": H1}, {"to": "fd00:9::1", "dev": "p2", "lladdr": H1},
                   {"to": "10.8.8.0", "dev": "p3", "lladdr": H1}, {"to": "fd00:8::", "dev": "p3", "lladdr": H1}])
    yield running
    running.close()


def test_case_H106_both_ends_of_31_and_127(point_to_point):
    for dst, out in (("10.9.9.1", "p2"), ("10.8.8.0", "p3")):
        point_to_point.forwards(udp4(dst=dst), out=out, dst=H1)
    for dst, out in (("fd00:9::1", "p2"), ("fd00:8::", "p3")):
        point_to_point.forwards(udp6(dst=dst), out=out, dst=H1)
    for own in ("10.9.9.0", "10.8.8.1", "10.7.7.7"):
        outcome = point_to_point.probe(echo4(dst=own), wait=1)
        assert len(outcome.frames["p0"]) == 1 and l3(outcome.frames["p0"][0])[20] == 0, str(outcome)
    for own in ("fd00:9::", "fd00:8::1"):
        outcome = point_to_point.probe(echo6(dst=own), wait=1)
        assert len(outcome.frames["p0"]) == 1 and l3(outcome.frames["p0"][0])[40] == 129, str(outcome)


def test_check_N121_both_ends_of_31_resolve(new_bench):
    from frames import arp
    from test_d_neighbors import is_request, is_udp
    bench = new_bench(ports={"p2": {"mac": "02:00:00:00:00:03", "addresses": ["10.9.9.0/31"]},
                             "p3": {"mac": "02:00:00:00:00:04", "addresses": ["10.8.8.1/31"]}})
    for port, peer, own, mac in (("p2", "10.9.9.1", "10.9.9.0", "02:00:00:00:00:03"),
                                 ("p3", "10.8.8.0", "10.8.8.1", "02:00:00:00:00:04")):
        bench.wires["p0"].send(bytes(udp4(dst=peer)))
        assert bench.wires[port].wait_for(is_request(peer))
        bench.wires[port].send(bytes(arp(2, peer, H1, own, mac, dst=mac)))
        assert bench.wires[port].wait_for(is_udp)
        outcome = bench.probe(arp(1, peer, H1, own), port, wait=1)
        assert len(outcome.frames[port]) == 1, str(outcome)


def test_case_H108_hop_by_hop_longer_than_the_packet(bench):
    """A router need not read it: forwarded, untouched."""
    bench.forwards(P3)


def base6(dst="2001:db8:2::9", **ip):
    return Ether(dst=R0, src=H0) / IPv6(**{"src": "fd00::2", "dst": dst, "hlim": 64, **ip})


def test_case_H110_routing_header_in_transit(bench):
    for segments in (0, 1):
        bench.forwards(bytes(base6() / IPv6ExtHdrRouting(type=0, segleft=segments, addresses=["fd00:1::5"]) / UDP()))
        bench.forwards(bytes(base6() / IPv6ExtHdrRouting(type=4, segleft=segments, addresses=["fd00:1::5"]) / UDP()))


def test_case_H110_routing_header_to_the_router(bench):
    done = bytes(base6("fd00::1") / IPv6ExtHdrRouting(type=0, segleft=0, addresses=["fd00:1::5"]) /
                 ICMPv6EchoRequest(id=3, seq=4, data=b"rh0"))
    outcome = bench.probe(done, wait=1)
    assert len(outcome.frames["p0"]) == 1 and l3(outcome.frames["p0"][0])[40] == 129, str(outcome)
    # Segments left: a parameter problem at the type (RFC 5095), never a packet to the next segment.
    outcome = bench.probe(bytes(base6("fd00::1") / IPv6ExtHdrRouting(type=0, segleft=1, addresses=["fd00:1::2"]) /
                                UDP()), wait=1)
    assert not outcome.frames["p1"] and outcome.reasons() == {"ipv6_routing_header": 1}, str(outcome)
    assert [l3(f)[40:42] for f in outcome.frames["p0"]] == [b"\x04\x00"], str(outcome)


@pytest.mark.parametrize("middle", [
    IPv6ExtHdrHopByHop(options=[RouterAlert()]) / IPv6ExtHdrFragment(offset=0, m=1, id=7, nh=17) / Raw(b"f" * 64),
    IPv6ExtHdrHopByHop(options=[RouterAlert()]) / IPv6ExtHdrFragment(offset=9, m=0, id=7, nh=17) / Raw(b"f" * 64),
    IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting(type=4, addresses=["fd00::5"]) / UDP(),
    IPv6ExtHdrFragment(offset=0, m=0, id=7) / UDP(),
    Raw(b"no upper layer"),
])
def test_case_H111_header_chains_in_transit(bench, middle):
    bench.forwards(bytes(base6(nh=59) / middle if isinstance(middle, Raw) else base6() / middle))


def test_case_H113_link_local_source(bench):
    outcome = bench.probe(P4, drops=1)
    assert not outcome.frames["p1"] and outcome.reasons() == {"martian_source_link_local": 1}, str(outcome)
    # RFC 4443 3.1: beyond scope of source address, once the sender's MAC is known.
    bench.wires["p0"].drain()
    bench.wires["p0"].send(bytes(advertisement("fe80::2", H0, dst="fe80::ff:fe00:1", eth_dst=R0, solicited=1)))
    got = bench.wires["p0"].wait_for(lambda f: l3(f)[6] == 58 and l3(f)[40] == 1)
    assert got and l3(got)[41] == 2 and Ether(got)[IPv6].dst == "fe80::2"


def test_check_N126_link_local_stays_on_its_link(new_bench):
    """Also with a default route that would take it."""
    bench = new_bench(routes=[{"to": "::/0", "via": "fd00:1::2"}])
    for frame, reason in ((P4, "martian_source_link_local"), (udp6(dst="fe80::9"), "destination_link_local"),
                          (udp6(src="fe80::2", dst="fd00:1::2"), "martian_source_link_local")):
        for _ in ("cold", "warm"):
            outcome = bench.probe(frame, drops=1)
            assert not outcome.frames["p1"] and outcome.reasons() == {reason: 1}, str(outcome)


@pytest.mark.parametrize("dst", ["ff01::1", "ff02::1", "ff02::5", "ff05::2", "ff0e::1", "ff02::1:ff00:9"])
def test_case_H113_multicast_is_not_forwarded(bench, dst):
    from frames import group_mac
    bench.silent(udp6(dst=dst, eth={"dst": group_mac(dst)}))
    bench.silent(udp6(dst=dst))


def test_case_H114_next_hop_on_the_ingress_port(new_bench):
    """Forwarded; a redirect is not sent where send-redirects is off, as it is unless told."""
    bench = new_bench(routes=[{"to": "198.51.100.0/24", "via": "10.0.0.3"}, {"to": "2001:db8:9::/48", "via": "fd00::3"}],
                      neighbors=[{"to": "10.0.0.3", "dev": "p0", "lladdr": "02:aa:00:00:00:03"},
                                 {"to": "fd00::3", "dev": "p0", "lladdr": "02:aa:00:00:00:03"}])
    bench.forwards(udp4(dst="198.51.100.9"), out="p0", dst="02:aa:00:00:00:03")
    bench.forwards(udp6(dst="2001:db8:9::9"), out="p0", dst="02:aa:00:00:00:03")


def patched(frame, *changes, fix_checksum=True):
    """The frame with bytes of its IP header changed: (offset, value)."""
    frame = bytearray(bytes(frame))
    for offset, value in changes:
        frame[14 + offset] = value
    if fix_checksum and frame[14] >> 4 == 4:
        header = max(20, (frame[14] & 15) * 4)
        frame[24:26] = b"\0\0"
        frame[24:26] = (inet_sum(bytes(frame[14:14 + header])) ^ 0xFFFF).to_bytes(2, "big")
    return bytes(frame)


def test_check_N123_lengths_versions_checksums(bench):
    bench.forwards(bytes(udp4()) + b"\xaa" * 100)
    bench.forwards(bytes(udp6()) + b"\xaa" * 100)
    bench.drops(P6, "ipv4_truncated")
    bench.drops(bytes(udp4())[:-1], "ipv4_truncated")
    bench.drops(patched(udp4(), (11, 0xFF), fix_checksum=False), "ipv4_bad_checksum")
    bench.drops(patched(udp4(), (0, 0x55)), "ipv4_bad_version")
    bench.drops(patched(udp4(), (0, 0x65)), "ipv4_bad_version")
    bench.drops(patched(udp4(), (0, 0x44)), "ipv4_bad_header_length")
    bench.drops(patched(udp4(), (3, 19)), "ipv4_bad_total_length")
    bench.drops(patched(udp4(), (0, 0x4F), (3, 40)), "ipv4_bad_total_length")
    bench.drops(patched(udp6(), (0, 0x40)), "ipv6_bad_version")
    tcp = Ether(dst=R0, src=H0) / IP(src="10.0.0.2", dst="192.0.2.9", frag=1, proto=6) / Raw(b"t" * 12)
    bench.drops(bytes(tcp), "ipv4_tiny_fragment")


@pytest.mark.parametrize("length", [0, 1, 8, 19])
def test_check_N123_cut_headers(bench, length):
    bench.drops(bytes(udp4())[:14 + length], "ipv4_too_short")


@pytest.mark.parametrize("length", [0, 1, 20, 39])
def test_check_N123_cut_headers_ipv6(bench, length):
    bench.drops(bytes(udp6())[:14 + length], "ipv6_too_short")


def test_check_N124_bad_sources_to_an_own_address(bench):
    for src in ("0.0.0.0", "255.255.255.255"):
        bench.silent(echo4(src=src))
        bench.silent(udp4(src=src, dst="10.0.0.1"))
    bench.silent(echo6(src="::"))


def test_check_N125_ipv6_longer_than_the_frame(bench):
    frame = bytes(udp6())
    bench.drops(frame[:-1], "ipv6_truncated")
    bench.drops(patched(frame, (5, len(frame) - 54 + 1)), "ipv6_truncated")
    bench.drops(patched(frame, (4, 0xFF), (5, 0xFF)), "ipv6_truncated")


def test_check_N127_no_error_about_errors(bench):
    """The matrix is test_case_B21_no_error_about_errors_and_fragments; here each cause once."""
    from frames import ICMP, ICMPv6DestUnreach
    head = Ether(dst=R0, src=H0)
    quoted = Raw(bytes(udp4(src="192.0.2.9", dst="10.0.0.2"))[14:])
    for dst, ttl in (("192.0.2.9", 1), ("203.0.113.9", 64), ("10.0.0.1", 64)):
        bench_silent_or_delivered(bench, head / IP(src="10.0.0.2", dst=dst, ttl=ttl) / ICMP(type=3, code=1) / quoted)
    quoted = Raw(bytes(udp6(src="2001:db8:2::9", dst="fd00::2"))[14:])
    for dst, ttl in (("2001:db8:2::9", 1), ("2001:db8:ffff::9", 64), ("fd00::1", 64)):
        bench_silent_or_delivered(bench, head / IPv6(src="fd00::2", dst=dst, hlim=ttl) / ICMPv6DestUnreach() / quoted)


def bench_silent_or_delivered(bench, frame):
    outcome = bench.probe(bytes(frame))
    assert not any(outcome.frames.values()), str(outcome)


def test_check_N129_no_route_is_not_silence(bench):
    bench.error(udp4(dst="203.0.113.9"), 3, 0, reason="no_route")
    bench.error(udp6(dst="2001:db8:ffff::9"), 1, 0, reason="no_route")


def options(raw):
    return with_options(raw + b"\0" * (-len(raw) % 4), bytes(UDP(sport=1, dport=2, len=26)) + b"o" * 18)


def test_check_N130_options_in_transit(bench):
    bench.forwards(P7)
    for raw in (b"\x01" * 4, b"\x94\x04\0\0", b"\x44\x0c\x05\0" + b"\0" * 8, b"\x07\x27\x04" + b"\0" * 36,
                b"\x88\x04\0\1", b"\x5e\x04\x12\x34"):
        bench.forwards(options(raw))


def test_source_routes_are_dropped(bench):
    for kind in (131, 137):
        raw = bytes([kind, 7, 4]) + bytes([10, 0, 1, 2])
        outcome = bench.probe(options(raw), drops=1)
        assert not outcome.frames["p1"] and outcome.reasons() == {"ipv4_source_route": 1}, str(outcome)
