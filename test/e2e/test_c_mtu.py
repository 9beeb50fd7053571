# SPDX-License-Identifier: BSD-3-Clause
"""cases.md C: MTU, fragmentation, jumbo and giant frames."""

import pytest
from bench import WireBench
from frames import (H0, H1, IP, P6, R0, R1, Ether, IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw,
                    TCP, UDP, checksums_ok, echo4, forwarded_l3, l3, tagged, udp4,
                    udp6, with_options)

PATTERN = bytes(n * 7 % 251 for n in range(70000))


@pytest.fixture(scope="module")
def narrow():
    """p1 takes 1400 bytes."""
    bench = WireBench(ports={"p1": {"mtu": 1400}},
                      routes=[{"to": "198.51.100.0/24", "via": "10.0.1.2", "mtu": 1280},
                              {"to": "2001:db8:3::/48", "via": "fd00:1::2", "mtu": 1300}])
    yield bench
    bench.close()


def fragments(bench, frame, mtu, times=2):
    """The frame leaves p1 in fragments: offsets, MF, ids, sums right, payload whole."""
    frame = bytes(frame)
    whole = forwarded_l3(frame)
    header = (whole[0] & 15) * 4
    for _ in range(times):
        outcome = bench.probe(frame, wait=(len(whole) - header + mtu - header - 1) // (mtu - header))
        got = sorted((IP(l3(f)) for f in outcome.frames["p1"]), key=lambda p: p.frag)
        assert len(got) >= 2 and not outcome.frames["p0"] and not outcome.drops, str(outcome)
        first = IP(whole)
        at = first.frag
        for packet in got:
            assert len(bytes(packet)) <= mtu and checksums_ok(bytes(packet)), str(outcome)
            assert packet.frag == at and packet.id == first.id and packet.ttl == first.ttl, str(outcome)
            payload = len(bytes(packet)) - packet.ihl * 4
            last = packet is got[-1]
            assert bool(packet.flags.MF) == (not last or bool(first.flags.MF)), str(outcome)
            assert last or payload % 8 == 0
            at += payload // 8
        joined = b"".join(bytes(p)[p.ihl * 4:] for p in got)
        assert joined == whole[header:], "the payload is not what was sent"
        for f in outcome.frames["p1"]:
            assert (Ether(f).dst, Ether(f).src) == (H1, R1)
    return got


def test_case_C32_df(narrow):
    for size in (1401 - 28, 1500 - 28):
        packet = narrow.error(udp4(size=size, flags="DF"), 3, 4, source="10.0.0.1", reason="fragmentation_needed")
        assert packet[24:28] == b"\0\0" + (1400).to_bytes(2, "big")


def test_case_C32_fragments(narrow):
    for size in (1401 - 28, 1402 - 28, 1480 - 28, 1500 - 28):
        got = fragments(narrow, udp4(payload=PATTERN[:size], id=size), 1400)
        assert len(got) == 2


def test_case_C32_exact_fit(narrow):
    narrow.forwards(udp4(size=1400 - 28))
    narrow.forwards(udp4(size=1400 - 28, flags="DF"))
    narrow.forwards(udp6(size=1400 - 48))


def test_case_C32_packet_too_big(narrow):
    for size in (1401 - 48, 1500 - 48):
        packet = narrow.error(udp6(size=size), 2, 0, source="fd00::1", reason="packet_too_big")
        assert packet[44:48] == (1400).to_bytes(4, "big")


def test_check_N131_reassembles_and_error_is_short(narrow):
    frame = udp4(payload=PATTERN[:1472], id=77)
    got = fragments(narrow, frame, 1400)
    assert sum(len(bytes(p)) - 20 for p in got) == 1480
    packet = narrow.error(udp4(size=1472, flags="DF"), 3, 4, source="10.0.0.1")
    assert len(packet) <= 576 and packet[26:28] == (1400).to_bytes(2, "big")
    # The MTU of a route below the netdev's is the next hop's.
    packet = narrow.error(udp4(dst="198.51.100.9", size=1350, flags="DF"), 3, 4)
    assert packet[26:28] == (1280).to_bytes(2, "big")
    fragments(narrow, udp4(dst="198.51.100.9", payload=PATTERN[:1350]), 1280)


def test_check_N132_path_mtu_of_a_route(narrow):
    packet = narrow.error(udp6(dst="2001:db8:3::9", size=1310 - 48), 2, 0)
    assert packet[44:48] == (1300).to_bytes(4, "big") and len(packet) <= 1280
    narrow.forwards(udp6(dst="2001:db8:3::9", size=1300 - 48))
    narrow.ctl.text("route", "add", "2001:db8:4::/48", "via", "fd00:1::2", "mtu", 1300)
    packet = narrow.error(udp6(dst="2001:db8:4::9", size=1310 - 48), 2, 0)
    assert packet[44:48] == (1300).to_bytes(4, "big")
    narrow.ctl.text("route", "replace", "2001:db8:4::/48", "via", "fd00:1::2")
    narrow.forwards(udp6(dst="2001:db8:4::9", size=1310 - 48))
    packet = narrow.error(udp6(dst="2001:db8:4::9", size=1410 - 48), 2, 0)
    assert packet[44:48] == (1400).to_bytes(4, "big")
    narrow.ctl.text("route", "del", "2001:db8:4::/48")


def test_check_O151_a_fragment_is_fragmented_further(narrow):
    for flags, frag in (("MF", 0), ("MF", 185), (0, 185)):
        size = 1480 if flags else 1477
        frame = Ether(dst=R0, src=H0) / IP(src="10.0.0.2", dst="192.0.2.9", id=9, flags=flags, frag=frag, proto=17) / \
            Raw(PATTERN[:size])
        fragments(narrow, frame, 1400)


def test_fragments_carry_the_options_that_are_copied(narrow):
    """RFC 791 3.1: record route goes with the first fragment alone, router alert with each."""
    options = bytes.fromhex("0707040000000094040000") + b"\0"
    frame = with_options(options, PATTERN[:1480 - 32])
    outcome = narrow.probe(frame, wait=2)
    got = sorted((l3(f) for f in outcome.frames["p1"]), key=lambda p: int.from_bytes(p[6:8], "big") & 0x1FFF)
    assert len(got) == 2 and all(map(checksums_ok, got)), str(outcome)
    first, second = got
    assert first[20:32] == options and (first[0] & 15) == 8
    copied = second[20:(second[0] & 15) * 4]
    assert bytes.fromhex("94040000") in copied and 7 not in copied[:1], copied.hex()
    assert first[32:] + second[(second[0] & 15) * 4:] == PATTERN[:1480 - 32]


@pytest.mark.parametrize("tags", [0, 1])
def test_case_C33_tags_do_not_count(new_bench, tags):
    ids = [10] * tags
    vlans = {"p0.10": {"link": "p0", "id": 10, "addresses": ["10.0.10.1/24", "fd00:100::1/64"]},
             "p1.10": {"link": "p1", "id": 10, "addresses": ["10.1.10.1/24", "fd00:110::1/64"]}}
    bench = new_bench(vlans=vlans, neighbors=[{"to": "10.1.10.2", "dev": "p1.10", "lladdr": H1},
                                              {"to": "fd00:110::2", "dev": "p1.10", "lladdr": H1}])
    for out, dst4, dst6 in (([], "192.0.2.9", "2001:db8:2::9"), ([10], "10.1.10.2", "fd00:110::2")):
        bench.forwards(tagged(udp4(dst=dst4, size=1472, flags="DF"), *ids), tags=out)
        bench.forwards(tagged(udp6(dst=dst6, size=1452), *ids), tags=out)


def test_case_C33_two_tags():
    pytest.skip("QinQ is not routed: a second tag is dropped, see test_case_G100_qinq")


def test_case_C35_many_fragments_return_their_mbufs(narrow):
    """The pools are at their level again after it (the stage tests do this under ASan)."""
    frames = [bytes(udp4(payload=PATTERN[:1472], id=n)) for n in range(100)]
    for _ in range(10):
        outcome = narrow.probe(frames, wait=200)
        assert len(outcome.frames["p1"]) == 200 and not outcome.drops, dict(outcome.drops)
    narrow.check_books()


def test_case_C36_mtu_of_the_egress(new_bench):
    bench = new_bench(ports={"p0": {"mtu": 1400}, "p1": {"mtu": 1300}})
    for tap in bench.taps.values():
        bench.router.run("ip", "link", "set", tap, "mtu", 1500)
    packet = bench.error(udp4(size=1350, flags="DF"), 3, 4)
    assert packet[26:28] == (1300).to_bytes(2, "big")
    packet = bench.error(udp6(size=1340), 2, 0)
    assert packet[44:48] == (1300).to_bytes(4, "big")
    # An ingress MTU says nothing about what is received.
    back = {"src": H1, "dst": R1}
    bench.forwards(udp4(src="10.0.1.2", dst="10.0.0.2", size=1360, eth=back), into="p1", out="p0")


def test_case_C37_extension_headers_too_big(narrow):
    base = Ether(dst=R0, src=H0) / IPv6(src="fd00::2", dst="2001:db8:2::9", hlim=64)
    for frame in (base / IPv6ExtHdrHopByHop() / UDP() / Raw(b"x" * 1430),
                  base / IPv6ExtHdrDestOpt() / UDP() / Raw(b"x" * 1430),
                  base / IPv6ExtHdrFragment(offset=0, m=1, id=1, nh=17) / Raw(b"x" * 1432)):
        packet = narrow.error(bytes(frame), 2, 0, reason="packet_too_big")
        assert packet[44:48] == (1400).to_bytes(4, "big")


def test_case_C39_truncated(bench):
    bench.drops(P6, "ipv4_truncated", netdev="p0")


@pytest.fixture(scope="module")
def jumbo():
    """net_tap takes no more than 1504 bytes, so the cables are veth pairs under net_pcap."""
    bench = WireBench(ports={"p0": {"mtu": 9000}, "p1": {"mtu": 9000}}, cable="veth")
    yield bench
    bench.close()


def test_case_C39_jumbo_in_segments(jumbo):
    """Longer than one mbuf's data room: several segments through RX, forwarding and TX."""
    for size in (1472, 1473, 2048, 4000, 8972):
        jumbo.forwards(udp4(payload=PATTERN[:size], flags="DF"))
        jumbo.forwards(udp6(payload=PATTERN[:min(size, 8952)]))


def test_case_C39_jumbo_to_the_router(jumbo):
    outcome = jumbo.probe(bytes(echo4(payload=PATTERN[:8000])), wait=1)
    assert len(outcome.frames["p0"]) == 1, str(outcome)
    reply = l3(outcome.frames["p0"][0])
    assert checksums_ok(reply) and reply[28:] == PATTERN[:8000] and reply[20] == 0


def test_case_C39_jumbo_truncated(jumbo):
    frame = bytes(udp4(payload=PATTERN[:8000]))
    jumbo.drops(frame[:-1], "ipv4_truncated")
    jumbo.drops(frame[:100], "ipv4_truncated")
    frame = bytes(udp6(payload=PATTERN[:8000]))
    jumbo.drops(frame[:-1], "ipv6_truncated")


def test_case_C40_mtu_reaches_the_device_and_changes(new_bench):
    """At the start net_tap's kernel side is told, too; later it belongs to the host, which may have
    moved it out of reach."""
    bench = new_bench(ports={"p1": {"mtu": 1400}})
    assert "mtu 1400 " in bench.router.run("ip", "link", "show", bench.taps["p1"]).stdout
    for mtu in (1400, 1300, 1450):
        bench.ctl.text("link", "set", "p1", "mtu", mtu)
        assert bench.ctl.links()["p1"]["mtu"] == mtu
        bench.forwards(udp4(size=mtu - 28, flags="DF"))
        packet = bench.error(udp4(size=mtu - 27, flags="DF"), 3, 4)
        assert packet[26:28] == mtu.to_bytes(2, "big")
        packet = bench.error(udp6(size=mtu - 47), 2, 0)
        assert packet[44:48] == mtu.to_bytes(4, "big")


def test_case_C41_jumbo_port_fragments(new_bench):
    """Segmented mbufs and fragmentation together: the port starts, and both work."""
    bench = new_bench(ports={"p0": {"mtu": 9000}}, cable="veth")
    got = fragments(bench, udp4(payload=PATTERN[:8972]), 1500)
    assert len(got) == 7


def test_case_C42_more_than_the_device_takes(bench):
    message = bench.ctl.refused("link", "set", "p1", "mtu", 9000)
    assert "net_tap" in message and "9000" in message and "1504" in message, message
    bench.forwards(udp4())


@pytest.mark.parametrize("mtu", [67, 0, 9703, 65536, 100000, -1, "big"])
def test_case_C42_mtu_out_of_range(bench, mtu):
    before = bench.ctl.state()
    message = bench.ctl.refused("link", "set", "p1", "mtu", mtu)
    assert "mtu" in message.lower(), message
    assert bench.ctl.state() == before
    bench.forwards(udp4())


def test_case_C44_giant_frames(new_bench):
    """A host whose NIC believes in a larger MTU: nothing is cut, nothing is forwarded in part."""
    bench = new_bench()
    tap = bench.taps["p0"]
    bench.router.run("ip", "link", "set", tap, "mtu", 65000)
    for size in (5000, 9000, 20000, 64000):
        tcp = Ether(dst=R0, src=H0) / IP(src="10.0.0.2", dst="192.0.2.9", flags="DF", id=1) / TCP(
            sport=1, dport=2, flags="A") / Raw(PATTERN[:size])
        outcome = bench.probe(bytes(tcp))
        assert not outcome.frames["p1"], str(outcome)[:300]
        # Either the device had no room for it and counts it, or sluice says that it is too big.
        for got in outcome.frames["p0"]:
            assert l3(got)[20:22] == b"\x03\x04"
        bench.forwards(udp4())
    assert bench.daemon.alive()


def test_case_C45_peer_limit():
    pytest.skip("what a peer takes is not known; nothing longer than the egress MTU reaches a device")
