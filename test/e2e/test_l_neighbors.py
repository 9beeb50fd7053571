# SPDX-License-Identifier: BSD-3-Clause
"""checks.md L (what may enter the neighbor table) and N 133-139."""

import itertools
import time

import pytest
from bench import NEIGHBORS, PORTS, ROUTES, WireBench
from frames import (ARP, BROADCAST, H0, H1, R0, R1, Ether, ICMPv6ND_NA, ICMPv6ND_NS, IPv6, advertisement, arp, echo4,
                    forwarded_l3, l3, pack6, solicitation, tagged, udp4, udp6)
from responder import Responder
from test_d_neighbors import DYNAMIC, is_request, is_solicitation, is_udp, until

GUEST = "02:aa:00:00:00:50"


def mac_of_port(number):
    return f"02:00:00:00:00:{number + 1:02x}"


def three_ports(key):
    """p0, p1 and p2 with 0, 1 and 2 for `key`."""
    return {f"p{n}": {"mac": mac_of_port(n), "addresses": [f"10.0.{n}.1/24", f"fd00:{n}::1/64"], key: n}
            for n in range(3)}


def settle(bench, port):
    """Every test here looks for entries that may come late, or never."""
    time.sleep(0.15)
    return bench.ctl.counters()[port]["drops"]


@pytest.mark.parametrize("op", [1, 2])
def test_check_L105_arp_accept(new_bench, op):
    bench = new_bench(standard=False, ports=three_ports("arp-accept"))
    for n in range(3):
        for address in (f"10.0.{n}.50", "203.0.113.50"):
            target_mac = GUEST if op == 2 else "00:00:00:00:00:00"
            bench.wires[f"p{n}"].send(bytes(arp(op, address, GUEST, address, target_mac)))
        settle(bench, f"p{n}")
    got = {(row["dev"], row["address"]) for row in bench.ctl.neighbors()}
    assert got == {("p1", "10.0.1.50"), ("p1", "203.0.113.50"), ("p2", "10.0.2.50")}
    assert all(row["lladdr"] == GUEST for row in bench.ctl.neighbors())


def test_check_L106_accept_untracked_na(new_bench):
    bench = new_bench(standard=False, ports=three_ports("accept-untracked-na"))
    for n in range(3):
        for address in (f"fd00:{n}::50", "2001:db8:77::50"):
            bench.wires[f"p{n}"].send(bytes(advertisement(address, GUEST)))
        settle(bench, f"p{n}")
    got = {(row["dev"], row["address"], row["state"]) for row in bench.ctl.neighbors()}
    assert got == {("p1", "fd00:1::50", "stale"), ("p1", "2001:db8:77::50", "stale"), ("p2", "fd00:2::50", "stale")}


def test_check_L107_drop_unsolicited_na(new_bench):
    """Dropped, whatever else; and a port that does not forward makes no entry."""
    combinations = list(itertools.product([False, True], [0, 1], [False, True]))
    ports = {f"p{n}": {"mac": mac_of_port(n), "addresses": [f"10.0.{n}.1/24", f"fd00:{n}::1/64"],
                       "drop-unsolicited-na": drop, "accept-untracked-na": accept, "forwarding": forwarding}
             for n, (drop, accept, forwarding) in enumerate(combinations)}
    bench = new_bench(standard=False, ports=ports)
    for n in range(8):
        bench.wires[f"p{n}"].send(bytes(advertisement(f"fd00:{n}::50", GUEST)))
    settle(bench, "p0")
    got = [row["dev"] for row in bench.ctl.neighbors()]
    assert got == [f"p{combinations.index((False, 1, True))}"]


def test_check_L108_route_localnet(new_bench):
    bench = new_bench(standard=False, ports={
        "p0": {"mac": R0, "addresses": ["127.25.3.14/24"], "route-localnet": True},
        "p1": {"mac": R1, "addresses": ["10.0.1.1/24"]}},
        neighbors=[{"to": "127.25.3.4", "dev": "p0", "lladdr": H0}, {"to": "10.0.1.2", "dev": "p1", "lladdr": H1}])
    outcome = bench.probe(echo4(src="127.25.3.4", dst="127.25.3.14"), wait=1)
    assert len(outcome.frames["p0"]) == 1 and l3(outcome.frames["p0"][0])[20] == 0, str(outcome)
    bench.drops(echo4(src="127.25.3.4", dst="10.0.1.1", eth={"dst": R1}), "martian_source_loopback", into="p1")
    bench.drops(echo4(src="10.0.1.2", dst="127.25.3.14", eth={"dst": R1}), "martian_destination_loopback", into="p1")


def test_check_N133_one_request_and_the_first_packets(new_bench):
    bench = new_bench(**DYNAMIC)
    frames = [bytes(udp4(id=n)) for n in range(3)]
    for frame in frames:
        bench.wires["p0"].send(frame)
    asked = bench.wires["p1"].collect(is_request("10.0.1.2"), 0.6)
    assert len(asked) == 1, f"{len(asked)} requests at once"
    request = Ether(asked[0])
    assert (request.dst, request.src) == (BROADCAST, R1)
    assert (request[ARP].psrc, request[ARP].hwsrc, request[ARP].hwdst) == ("10.0.1.1", R1, "00:00:00:00:00:00")
    bench.wires["p1"].send(bytes(arp(2, "10.0.1.2", H1, "10.0.1.1", R1, dst=R1)))
    got = bench.wires["p1"].collect(is_udp, 0.5)
    assert [l3(f) for f in got] == [forwarded_l3(f) for f in frames]
    assert all(Ether(f).dst == H1 for f in got)


def test_check_N133_257_packets(new_bench):
    bench = new_bench(**DYNAMIC)
    for n in range(257):
        bench.wires["p0"].send(bytes(udp4(id=n)))
    asked = bench.wires["p1"].collect(is_request("10.0.1.2"), 0.8)
    assert 1 <= len(asked) < 64
    assert bench.ctl.counters()["p0"]["held"] >= 1
    bench.wires["p1"].send(bytes(arp(2, "10.0.1.2", H1, "10.0.1.1", R1, dst=R1)))
    got = bench.wires["p1"].collect(is_udp, 0.5)
    # On a machine so busy that the answer comes late, the first ones have been given up meanwhile.
    drops = bench.ctl.counters()["p0"]["drops"]
    gone = drops.get("hold_queue_full", 0) + drops.get("neighbor_failed", 0)
    assert len(got) >= 1 and len(got) + gone == 257, (len(got), drops)
    # The last ones are kept (RFC 4861 7.2.2).
    assert [l3(f)[4:6] for f in got] == [n.to_bytes(2, "big") for n in range(257 - len(got), 257)]


def test_check_N134_low_32_bits(new_bench):
    """Each is asked for; what found the hold table full is sent again, as a host would."""
    bench = new_bench(**DYNAMIC)
    frames = {pack6(address): bytes(udp6(dst=address))
              for address in (f"fd00:1::{n:x}:{n + 1:x}" for n in range(1, 1001))}
    missing = set(frames)
    deadline = time.monotonic() + 30
    while missing and time.monotonic() < deadline:
        for count, target in enumerate(sorted(missing)):
            bench.wires["p0"].send(frames[target])
            if count % 50 == 49:
                time.sleep(0.02)
        quiet = time.monotonic() + 2
        while missing and time.monotonic() < quiet:
            frame = bench.wires["p1"].receive(0.2)
            if frame and frame[12:14] == b"\x86\xdd" and frame[20] == 58 and frame[54] == 135:
                missing.discard(frame[62:78])
    assert not missing, f"{len(missing)} never asked for"
    assert until(lambda: bench.ctl.counters()["p0"]["held"] == 0, 20), bench.ctl.counters()["p0"]


@pytest.mark.parametrize("name, frame, reason", [
    ("off-subnet", arp(1, "192.168.7.7", GUEST, "10.0.0.1"), "arp_bad_sender"),
    ("own-address", arp(1, "10.0.0.1", GUEST, "10.0.0.1"), "arp_bad_sender"),
    ("own-address-of-another-port", arp(1, "10.0.1.1", GUEST, "10.0.0.1"), "arp_bad_sender"),
    ("source-is-not-sender", arp(1, "10.0.0.50", GUEST, "10.0.0.1", src=H0), "arp_bad_sender"),
    ("gratuitous-off-subnet", arp(1, "192.168.7.7", GUEST, "192.168.7.7"), ("arp_bad_sender", "arp_unknown_sender")),
    ("gratuitous-reply-off-subnet", arp(2, "192.168.7.7", GUEST, "192.168.7.7", GUEST),
     ("arp_bad_sender", "arp_unknown_sender")),
    ("broadcast-sender", arp(1, "10.0.0.255", GUEST, "10.0.0.1"), "arp_bad_sender"),
    ("zero-mac", arp(1, "10.0.0.50", "00:00:00:00:00:00", "10.0.0.1", src=GUEST), "arp_bad_sender"),
    ("group-mac", arp(1, "10.0.0.50", "01:00:5e:00:00:01", "10.0.0.1", src=GUEST), ("arp_bad_sender", "arp_malformed")),
])
def test_check_N135_bad_senders(bench, name, frame, reason):
    before = bench.ctl.neighbors()
    bench.drops(frame, reason, netdev="p0")
    assert bench.ctl.neighbors() == before


def test_check_N136_static_takes_the_place_of_dynamic(new_bench):
    bench = new_bench(**DYNAMIC)
    with Responder(bench, "p1", {"10.0.1.2": H1, "10.0.1.3": H1}) as hosts:
        for dst in ("10.0.1.2", "10.0.1.3"):
            bench.wires["p0"].send(bytes(udp4(dst=dst)))
            assert bench.wires["p1"].wait_for(is_udp)
        for mac in (H1, GUEST):
            bench.ctl.text("neigh", "add", "10.0.1.2", "lladdr", mac, "dev", "p1")
            assert bench.ctl.neighbor("10.0.1.2")["state"] == "permanent"
            bench.forwards(udp4(), dst=mac)
        # A static entry is not changed by what a host says.
        bench.wires["p1"].send(bytes(arp(2, "10.0.1.2", H1, "10.0.1.2", H1)))
        time.sleep(0.1)
        assert bench.ctl.neighbor("10.0.1.2")["lladdr"] == GUEST
        assert bench.ctl.neighbor("10.0.1.3")["lladdr"] == H1
        bench.ctl.text("link", "set", "p1", "down")
        assert bench.ctl.neighbor("10.0.1.3") is None
        hosts.hosts.clear()
        bench.ctl.text("link", "set", "p1", "up")
        assert bench.ctl.neighbor("10.0.1.3") is None
        assert bench.ctl.neighbor("10.0.1.2")["lladdr"] == GUEST
        bench.forwards(udp4(), dst=GUEST)


def test_check_N137_changed_mac_of_a_netdev(new_bench):
    bench = new_bench(**{**DYNAMIC, "vlans": {"p1.9": {"link": "p1", "id": 9, "addresses": ["10.0.9.1/24"]}},
                         "neighbors": [*DYNAMIC["neighbors"], {"to": "10.0.1.2", "dev": "p1", "lladdr": H1},
                                       {"to": "10.0.9.2", "dev": "p1.9", "lladdr": H1}]})
    bench.forwards(udp4())
    new = "02:00:00:00:00:77"
    config = bench.daemon.config
    config["ports"]["p1"]["mac"] = new
    bench.daemon.reload(config)
    bench.mac_of["p1"] = new
    bench.marker_of["p1"] = (*bench.marker_of["p1"][:3], new)
    bench.forwards(udp4(), src=new)
    bench.forwards(udp4(dst="10.0.9.2"), src=new, tags=[9])
    bench.drops(udp4(src="10.0.1.2", dst="10.0.0.2", eth={"src": H1, "dst": R1}), "eth_other_host", into="p1")
    bench.forwards(udp4(src="10.0.1.2", dst="10.0.0.2", eth={"src": H1, "dst": new}), into="p1", out="p0")
    for dst in ("10.0.1.77", "10.0.9.77"):
        bench.wires["p0"].send(bytes(udp4(dst=dst)))
        got = bench.wires["p1"].wait_for(is_request(dst))
        assert got and Ether(got).src == new and Ether(got)[ARP].hwsrc == new
    bench.wires["p0"].send(bytes(udp6(dst="fd00:1::77")))
    got = bench.wires["p1"].wait_for(is_solicitation("fd00:1::77"))
    assert got and Ether(got).src == new
    outcome = bench.probe(arp(1, "10.0.1.50", GUEST, "10.0.1.1"), "p1", wait=1)
    assert any(ARP in Ether(f) and Ether(f)[ARP].hwsrc == new for f in outcome.frames["p1"]), str(outcome)


def test_check_N138_arp_source_on_the_targets_subnet(new_bench):
    bench = new_bench(**{**DYNAMIC, "ports": {**PORTS, "p1": {
        **PORTS["p1"], "addresses": ["10.0.1.1/24", "10.1.0.1/16", "10.1.7.1/24", "fd00:1::1/64"]}}})

    def source(dst):
        bench.wires["p1"].drain()
        bench.wires["p0"].send(bytes(udp4(dst=dst)))
        got = bench.wires["p1"].wait_for(is_request(dst))
        assert got, f"nobody asks for {dst}"
        return Ether(got)[ARP].psrc

    assert source("10.0.1.66") == "10.0.1.1"
    assert source("10.1.9.66") == "10.1.0.1"
    assert source("10.1.7.66") in ("10.1.7.1", "10.1.0.1")
    bench.ctl.text("addr", "del", "10.1.7.1/24", "dev", "p1")
    assert source("10.1.7.67") == "10.1.0.1"
    bench.ctl.text("addr", "del", "10.1.0.1/16", "dev", "p1")
    bench.error(udp4(dst="10.1.9.68"), 3, 0)
