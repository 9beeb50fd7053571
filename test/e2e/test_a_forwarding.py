# SPDX-License-Identifier: BSD-3-Clause
"""cases.md A (TTL, checksum, padding, MAC filter) and checks.md A (basic forwarding)."""

import pytest
from bench import WireBench
from frames import (BROADCAST, H0, H1, P1, P2, R0, R1, ICMP, IP, Dot1Q, Ether, IPv6, Raw, checksums_ok, echo4, echo6,
                    forwarded_l3, inet_sum, l3, tagged, udp4, udp6)

EVERYWHERE = [("10.0.1.2", udp4), ("192.0.2.9", udp4), ("fd00:1::2", udp6), ("2001:db8:2::9", udp6)]


@pytest.mark.parametrize("dst, make", EVERYWHERE)
def test_case_A01_ttl_and_checksum(bench, dst, make):
    out = bench.forwards(make(dst=dst))
    assert checksums_ok(l3(out))


@pytest.mark.parametrize("dst, make", EVERYWHERE)
def test_case_A02_connected_and_gateway_paths_decrement(bench, dst, make):
    for size in (0, 1, 100, 1400):
        bench.forwards(make(dst=dst, size=size))


@pytest.mark.parametrize("ttl", [0, 1])
def test_case_A03_ttl_expires(bench, ttl):
    bench.error(udp4(ttl=ttl), 11, 0, source="10.0.0.1", reason="ttl_expired")
    bench.error(udp6(hlim=ttl), 3, 0, source="fd00::1", reason="ttl_expired")


def test_case_A03_ttl_one_to_the_router_is_delivered(bench):
    for frame in (echo4(ttl=1), echo6(hlim=1)):
        outcome = bench.probe(frame, wait=1)
        assert len(outcome.frames["p0"]) == 1 and not outcome.drops, str(outcome)
        reply = l3(outcome.frames["p0"][0])
        assert reply[20] == 0 if reply[0] >> 4 == 4 else reply[40] == 129


def test_case_A04_never_leaves_with_ttl_zero(bench):
    for ttl in (1, 2):
        for frame in (udp4(ttl=ttl), udp6(hlim=ttl)):
            outcome = bench.probe(frame, wait=1)
            left = outcome.frames["p1"]
            assert len(left) == (ttl == 2), str(outcome)
            for packet in map(l3, left):
                assert packet[8 if packet[0] >> 4 == 4 else 7] == 1


def test_case_A05_time_exceeded_from_the_arrival_interface(bench):
    bench.error(udp4(ttl=1, size=100), 11, 0, source="10.0.0.1")
    back = {"src": H1, "dst": R1}
    bench.error(udp4(src="10.0.1.2", dst="10.0.0.2", ttl=1, eth=back), 11, 0, source="10.0.1.1", into="p1")


def test_case_A06_arrival_interface_without_global_ipv6(new_bench):
    bench = new_bench(
        ports={"p2": {"mac": "02:00:00:00:00:03", "addresses": ["10.0.2.1/24", "fe80::ff:fe00:3/64"]}},
        routes=[{"to": "2001:db8:5::/48", "via": "fe80::2", "dev": "p2"}],
        neighbors=[{"to": "fe80::2", "dev": "p2", "lladdr": "02:aa:00:00:02:02"},
                   {"to": "10.0.2.2", "dev": "p2", "lladdr": "02:aa:00:00:02:02"}])
    frame = udp6(src="2001:db8:5::5", hlim=1, eth={"src": "02:aa:00:00:02:02", "dst": "02:00:00:00:00:03"})
    error = bench.error(frame, 3, 0, into="p2", dst="02:aa:00:00:02:02")
    assert IPv6(error).src in {"fd00::1", "fd00:1::1"}


def test_case_A08_own_address_as_source(bench):
    bench.drops(udp4(src="10.0.0.1"), "martian_source_own", netdev="p0")
    bench.drops(udp4(src="10.0.1.1"), "martian_source_own", netdev="p0")
    bench.drops(udp6(src="fd00::1"), "martian_source_own", netdev="p0")
    # What sluice says itself does not pass that check again.
    before = bench.ctl.counters()
    bench.error(udp4(ttl=1), 11, 0, source="10.0.0.1")
    after = bench.ctl.counters()
    for name, row in after.items():
        assert row["drops"].get("martian_source_own", 0) == before[name]["drops"].get("martian_source_own", 0)


@pytest.mark.parametrize("bit", [0, 7, 8, 15])
def test_case_A09_one_bit_of_the_checksum(bench, bit):
    frame = bytearray(bytes(udp4()))
    frame[24 + bit // 8] ^= 1 << bit % 8
    bench.drops(bytes(frame), "ipv4_bad_checksum", netdev="p0")


def test_case_A09_longest_frame(bench):
    bench.forwards(udp4(size=1500 - 28))  # 1514 bytes, 1518 with the FCS
    bench.forwards(udp6(size=1500 - 48))


def test_case_A12_checksum_zero_edge(bench):
    out = bench.forwards(P2)
    assert l3(out)[10:12] == b"\0\0"


@pytest.mark.parametrize("checksum", [0x0000, 0x0001, 0x00FF, 0x0100, 0xFE00, 0xFEFE, 0xFEFF, 0xFF00, 0xFFFE])
def test_case_A12_checksum_sweep(bench, checksum):
    """The IP id is chosen so that the header's checksum is the wanted one."""
    frame = bytearray(bytes(udp4()))
    frame[18:20] = frame[24:26] = b"\0\0"
    ident = (0xFFFF - checksum - inet_sum(bytes(frame[14:34]))) % 0xFFFF
    frame[18:20] = ident.to_bytes(2, "big")
    frame[24:26] = checksum.to_bytes(2, "big")
    if inet_sum(bytes(frame[14:34])) != 0xFFFF:
        pytest.fail("the test's own frame is wrong")
    bench.forwards(bytes(frame))


def test_case_A14_padding_is_no_data(bench):
    """An echo request of one byte in a padded frame is answered with one byte."""
    frame = bytes(echo4(payload=b"z"))
    outcome = bench.probe(frame + b"\xaa" * (60 - len(frame)), wait=1)
    reply = IP(l3(outcome.frames["p0"][0]))
    assert reply.len == 29 and bytes(reply[ICMP].payload) == b"z" and checksums_ok(bytes(reply)[:29])


def test_case_A14_padding_to_an_application():
    pytest.skip("punting to applications is not built yet")


def test_case_A15_padding(bench):
    bench.forwards(P1)


def test_case_A15_padding_with_a_vlan_tag(new_bench):
    bench = new_bench(vlans={"p0.10": {"link": "p0", "id": 10, "addresses": ["10.0.10.1/24"]}})
    bench.forwards(tagged(P1, 10))
    # The tag's four bytes count for the 64 of Ethernet, so less padding is also right.
    bench.forwards(tagged(P1[:-4], 10))


def test_case_A17_mac_filter(bench):
    for frame in (udp4(eth={"dst": "02:00:00:00:00:99"}), udp6(eth={"dst": R1})):
        bench.drops(frame, "eth_other_host", netdev="p0")


def test_case_A17_promiscuous_toggled_keeps_the_filter_and_a_secondary_mac(new_bench):
    second = "02:00:00:00:00:0a"
    bench = new_bench(vlans={"p0.10": {"link": "p0", "id": 10, "mac": second, "addresses": ["10.0.10.1/24"]}})
    for promiscuous in (True, False):
        config = bench.daemon.config
        config["ports"]["p0"]["promiscuous"] = promiscuous
        bench.daemon.reload(config)
        bench.forwards(tagged(udp4(eth={"dst": second}), 10))
        bench.drops(udp4(eth={"dst": "02:00:00:00:00:99"}), "eth_other_host")
        bench.drops(tagged(udp4(eth={"dst": "02:00:00:00:00:99"}), 10), "eth_other_host")


def test_case_A18_as_many_out_as_in(bench):
    frames = [udp4(id=n, size=n % 400) for n in range(300)] + [udp6(size=n % 400) for n in range(300)]
    outcome = bench.probe(frames, wait=600)
    got = [l3(frame) for frame in outcome.frames["p1"]]
    assert got == [forwarded_l3(frame) for frame in frames], f"{len(got)} of 600 in order"
    assert not outcome.frames["p0"] and not outcome.drops


def test_check_A003_class_e_source(bench):
    assert_five(bench, udp4(src="240.0.0.1"))


@pytest.fixture(scope="module")
def wide():
    running = WireBench(
        routes=[{"to": "198.51.100.0/24", "via": "10.0.1.2"}, {"to": "169.254.1.0/24", "via": "10.0.1.2"}])
    yield running
    running.close()


def assert_five(bench, frame):
    outcome = bench.probe([frame] * 5, wait=5)
    assert [l3(got) for got in outcome.frames["p1"]] == [forwarded_l3(frame)] * 5, str(outcome)
    assert not outcome.drops


def test_check_A004_source_is_destination(wide):
    assert_five(wide, udp4(src="198.51.100.2", dst="198.51.100.2"))


def test_check_A005_source_is_destination_ipv6(bench):
    assert_five(bench, udp6(src="2001:db8:2::9", dst="2001:db8:2::9"))


def test_check_A006_link_local_destination_is_routable(wide):
    assert_five(wide, udp4(dst="169.254.1.1"))


def test_check_A007_multicast_route():
    pytest.skip("multicast routing is not built yet")


def test_check_A008_vlan_id_one():
    running = WireBench(
        standard=False, ports={"p0": {"mac": R0}, "p1": {"mac": R1}},
        vlans={"p0.1": {"link": "p0", "id": 1, "addresses": ["10.0.0.1/24", "fd00::1/64"]},
               "p1.1": {"link": "p1", "id": 1, "addresses": ["10.0.1.1/24", "fd00:1::1/64"]}},
        neighbors=[{"to": "10.0.0.2", "dev": "p0.1", "lladdr": H0}, {"to": "fd00::2", "dev": "p0.1", "lladdr": H0},
                   {"to": "10.0.1.2", "dev": "p1.1", "lladdr": H1}, {"to": "fd00:1::2", "dev": "p1.1", "lladdr": H1}])
    try:
        back = {"src": H1, "dst": R1}
        running.forwards(tagged(echo4(dst="10.0.1.2"), 1), tags=[1])
        running.forwards(tagged(echo4(src="10.0.1.2", dst="10.0.0.2", eth=back), 1), into="p1", out="p0", tags=[1])
        running.forwards(tagged(echo6(dst="fd00:1::2"), 1), tags=[1])
        running.forwards(tagged(echo6(src="fd00:1::2", dst="fd00::2", eth=back), 1), into="p1", out="p0", tags=[1])
    finally:
        running.close()


def test_check_A009_nothing_crosses_ports_without_addresses(new_bench):
    bench = new_bench(standard=False, ports={"p0": {"mac": R0}, "p1": {"mac": R1}})
    untagged = []
    for dst in (R0, "02:00:00:00:00:99", "01:00:5e:00:00:05", "33:33:00:00:00:05", BROADCAST):
        eth = {"dst": dst}
        untagged += [Ether(dst=dst, src=H0, type=0x88B5) / Raw(b"n" * 46), udp4(eth=eth), udp6(eth=eth),
                     udp4(dst="224.0.0.5", eth=eth), udp6(dst="ff05::5", eth=eth),
                     udp4(dst="255.255.255.255", eth=eth)]
    ids = [0, 1, 2, 3, 5, 10, 100, 500, 1000, 1023, 2047, 2048, 4000, 4093, 4094]
    frames = [bytes(frame) for frame in untagged] + [tagged(frame, tag) for tag in ids for frame in untagged]
    outcome = bench.probe(frames, drops=len(frames))
    assert not outcome.frames["p1"], str(outcome)
    assert sum(outcome.drops.values()) == len(frames), dict(outcome.drops)


def test_check_A010_bridges():
    pytest.skip("bridges are not built yet")


def test_check_A011_own_arp_is_not_received(new_bench):
    """A port loops nothing back. (Turning a device's loopback on is not offered.)"""
    bench = new_bench(neighbors=[])
    before = bench.ctl.counters()["p1"]["rx_packets"]
    bench.wires["p0"].send(bytes(udp4(dst="10.0.1.77")))
    assert bench.wires["p1"].wait_for(lambda frame: Ether(frame).type == 0x0806)
    assert bench.ctl.counters()["p1"]["rx_packets"] == before
