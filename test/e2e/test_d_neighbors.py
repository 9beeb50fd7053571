# SPDX-License-Identifier: BSD-3-Clause
"""cases.md D (ARP, NDP, next hops): how neighbors are found, lost and changed."""

import collections
import os
import time

import pytest
from bench import NEIGHBORS, PORTS, ROUTES, WireBench
from frames import (ARP, BROADCAST, H0, H1, IP, R0, R1, Ether, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RA,
                    ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, advertisement, arp, echo6, forwarded_l3, l3,
                    solicitation, udp4, udp6)
from responder import Responder

NEW = "02:aa:00:00:01:99"
# H0 is known; p1 has a known host only for the bench's own markers.
DYNAMIC = {
    "standard": False, "ports": PORTS, "routes": ROUTES,
    "neighbors": [n for n in NEIGHBORS if n["dev"] == "p0"] + [
        {"to": "10.0.1.250", "dev": "p1", "lladdr": "02:aa:00:00:01:fa"}],
}


@pytest.fixture
def fresh(new_bench):
    """H1 is not known yet."""
    return new_bench(**DYNAMIC)


def is_request(target):
    return lambda frame: ARP in Ether(frame) and Ether(frame)[ARP].op == 1 and Ether(frame)[ARP].pdst == target


def is_solicitation(target):
    return lambda frame: ICMPv6ND_NS in Ether(frame) and Ether(frame)[ICMPv6ND_NS].tgt == target


def is_udp(frame):
    return l3_protocol(frame) == 17


def l3_protocol(frame):
    if frame[12:14] not in (b"\x08\x00", b"\x86\xdd"):
        return None
    packet = l3(frame)
    return packet[9] if packet[0] >> 4 == 4 else packet[6]


def until(condition, timeout=5.0):
    """Waits for condition() to be true and returns it."""
    deadline = time.monotonic() + timeout
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value


@pytest.mark.parametrize("order", ["route first", "arp first"])
def test_case_D47_one_neighbor_either_way(new_bench, order):
    bench = new_bench(**{**DYNAMIC, "routes": []})
    request = bytes(arp(1, "10.0.1.2", H1, "10.0.1.1"))
    with Responder(bench, "p1", {"10.0.1.2": H1}):
        if order == "arp first":
            bench.wires["p1"].send(request)
        bench.ctl.text("route", "add", "192.0.2.0/24", "via", "10.0.1.2")
        if order == "route first":
            bench.wires["p1"].send(request)
        for _ in range(3):
            bench.wires["p0"].send(bytes(udp4()))
            got = bench.wires["p1"].wait_for(is_udp)
            assert got and Ether(got).dst == H1 and l3(got) == forwarded_l3(udp4())
    assert [n["address"] for n in bench.ctl.neighbors()].count("10.0.1.2") == 1


@pytest.fixture(scope="module")
def ageing():
    """Two hosts that sluice has heard of but not confirmed. One goes away, one changes its MAC
    silently; then the first comes back. Takes the time that RFC 4861's timers take: about 12 s."""
    bench = WireBench(**{**DYNAMIC, "routes": [*ROUTES, {"to": "198.51.100.0/24", "via": "10.0.1.3"},
                                               {"to": "2001:db8:3::/48", "via": "fd00:1::3"}]})
    seen = collections.defaultdict(list)
    with Responder(bench, "p1", {"10.0.1.3": NEW, "fd00:1::3": NEW}) as hosts:
        for address, mac in (("10.0.1.2", H1), ("10.0.1.3", H1)):
            bench.wires["p1"].send(bytes(arp(1, address, mac, "10.0.1.1")))
        for address, mac in (("fd00:1::2", H1), ("fd00:1::3", H1)):
            bench.wires["p1"].send(bytes(solicitation("fd00:1::1", src=address, mac=mac)))
        until(lambda: len([n for n in bench.ctl.neighbors() if n["dev"] == "p1"]) >= 5)
        seen["learned"] = bench.ctl.neighbors()
        seen["routes"] = bench.ctl.routes()
        frames = {"gone4": udp4(), "gone6": udp6(), "moved4": udp4(dst="198.51.100.9"),
                  "moved6": udp6(dst="2001:db8:3::9")}
        start = time.monotonic()
        while time.monotonic() < start + 14:
            for name, frame in frames.items():
                bench.wires["p1"].drain()
                bench.wires["p0"].send(bytes(frame))
                got = bench.wires["p1"].wait_for(is_udp, timeout=0.2)
                seen[name].append((time.monotonic() - start, Ether(got).dst if got else None))
            time.sleep(0.2)
        seen["after"] = bench.ctl.neighbors()
        seen["routes after"] = bench.ctl.routes()
        seen["asked"] = list(hosts.asked)
        hosts.hosts.update({"10.0.1.2": H1, "fd00:1::2": H1})
        for name in ("gone4", "gone6"):
            deadline = time.monotonic() + 4
            while time.monotonic() < deadline:
                bench.wires["p0"].send(bytes(frames[name]))
                if (got := bench.wires["p1"].wait_for(is_udp, timeout=0.3)) and Ether(got).dst == H1:
                    seen["back"].append(name)
                    break
    yield seen
    bench.close()


def test_case_D48_routes_outlive_their_neighbor(ageing):
    state = {n["address"]: n["state"] for n in ageing["after"]}
    assert state.get("10.0.1.2") in (None, "failed", "incomplete"), state
    assert state.get("fd00:1::2") in (None, "failed", "incomplete"), state
    assert ageing["gone4"][-1][1] is None and ageing["gone6"][-1][1] is None
    assert ageing["routes"] == ageing["routes after"]
    assert ageing["back"] == ["gone4", "gone6"], "traffic does not resume"


@pytest.mark.parametrize("flow, address", [("moved4", "10.0.1.3"), ("moved6", "fd00:1::3")])
def test_case_D49_silent_change_of_mac(ageing, flow, address):
    """Probed by unicast at the old MAC, then by broadcast or multicast, which the host hears."""
    macs = [mac for _, mac in ageing[flow]]
    assert macs[0] == H1 and macs[-1] == NEW, ageing[flow]
    asked = [group for target, group in ageing["asked"] if target == address]
    assert False in asked and True in asked and asked.index(False) < asked.index(True), asked


def test_case_D51_arp_is_strict(bench):
    for target in ("10.0.0.77", "10.0.0.255", "10.0.1.1", "192.0.2.9"):
        bench.silent(arp(1, "10.0.0.2", H0, target))
    outcome = bench.probe(arp(1, "10.0.0.2", H0, "10.0.0.1"), wait=1)
    reply = Ether(outcome.frames["p0"][0])
    assert (reply.dst, reply.src) == (H0, R0)
    answer = reply[ARP]
    assert (answer.op, answer.psrc, answer.hwsrc, answer.pdst, answer.hwdst) == (2, "10.0.0.1", R0, "10.0.0.2", H0)


def test_case_D54_flood_to_unresolvable_hosts(fresh):
    bench = fresh
    with Responder(bench, "p1", {"10.0.1.2": H1}) as hosts:
        bench.wires["p0"].send(bytes(udp4()))
        assert bench.wires["p1"].wait_for(is_udp)
        lost = [f"10.0.1.{n}" for n in range(3, 250)]
        floods = [bytes(udp4(dst=dst)) for dst in lost]
        good = bytes(udp4(sport=7777))
        bench.wires["p1"].drain()
        start = time.monotonic()
        sent = flood = 0
        while time.monotonic() < start + 2:
            for n, frame in enumerate(floods):
                bench.wires["p0"].send(frame)
                flood += 1
                if n % 10 == 0:
                    bench.wires["p0"].send(good)
                    sent += 1
        out = bench.settle()
        seconds = time.monotonic() - start
        assert len([f for f in out["p1"] if is_udp(f)]) == sent, "the good flow lost packets"
        counts = collections.Counter(target for target, _ in hosts.asked)
        assert set(lost) <= set(counts), f"{len(set(lost) - set(counts))} never asked for"
        assert max(counts.values()) <= seconds + 2, counts.most_common(3)
        held = bench.ctl.counters()["p0"]["held"]
        assert held <= 16 * len(lost), f"{held} packets held for {len(lost)} neighbors"
        # Every one of them is given up in the end; close() checks the pools and the books.
        assert until(lambda: bench.ctl.counters()["p0"]["held"] == 0, 10), bench.ctl.counters()["p0"]
        drops = bench.ctl.counters()["p0"]["drops"]
        gone = sum(drops.get(r, 0) for r in ("hold_queue_full", "hold_table_full", "neighbor_failed"))
        assert gone == flood, (drops, flood)


def test_case_D55_changed_mac_reaches_every_worker(new_bench):
    """As many workers as this machine has lcores for, up to four."""
    bench = new_bench(**DYNAMIC, dpdk={"lcores": list(range(min(5, os.cpu_count()))), "hugepages": False,
                                       "memory-mb": 256})
    flows = [bytes(udp4(sport=5000 + n)) for n in range(64)]
    with Responder(bench, "p1", {"10.0.1.2": H1}):
        bench.wires["p0"].send(flows[0])
        assert bench.wires["p1"].wait_for(is_udp)
    outcome = bench.probe(flows, wait=64)
    assert [Ether(f).dst for f in outcome.frames["p1"]] == [H1] * 64
    for mac, change in ((NEW, arp(2, "10.0.1.2", NEW, "10.0.1.2", NEW)), (H1, arp(1, "10.0.1.2", H1, "10.0.1.2"))):
        bench.wires["p1"].send(bytes(change))
        assert until(lambda mac=mac: bench.ctl.neighbor("10.0.1.2")["lladdr"] == mac)
        time.sleep(0.02)
        outcome = bench.probe(flows, wait=64)
        assert [Ether(f).dst for f in outcome.frames["p1"]] == [mac] * 64


def test_case_D56_one_link_local_gateway_on_two_ports(new_bench):
    bench = new_bench(routes=[{"to": "2001:db8:a::/48", "via": "fe80::99", "dev": "p0"},
                              {"to": "2001:db8:b::/48", "via": "fe80::99", "dev": "p1"}])
    one, two = "02:bb:00:00:00:01", "02:bb:00:00:00:02"
    with Responder(bench, "p0", {"fe80::99": one}), Responder(bench, "p1", {"fe80::99": two}):
        for dst, port, mac in (("2001:db8:a::1", "p0", one), ("2001:db8:b::1", "p1", two)):
            bench.wires[port].drain()
            bench.wires["p0"].send(bytes(udp6(dst=dst)))
            got = bench.wires[port].wait_for(is_udp)
            assert got and Ether(got).dst == mac
        for _ in range(3):
            bench.forwards(udp6(dst="2001:db8:a::1"), out="p0", dst=one)
            bench.forwards(udp6(dst="2001:db8:b::1"), out="p1", dst=two)


@pytest.mark.parametrize("target", ["fd00::1", "fe80::ff:fe00:1"])
def test_case_D57_solicitation_is_answered(bench, target):
    for _ in ("cold", "warm"):
        outcome = bench.probe(solicitation(target), wait=1)
        assert len(outcome.frames["p0"]) == 1, str(outcome)
        answer = Ether(outcome.frames["p0"][0])
        assert (answer.dst, answer.src) == (H0, R0)
        assert (answer[IPv6].src, answer[IPv6].dst, answer[IPv6].hlim) == (target, "fd00::2", 255)
        advert = answer[ICMPv6ND_NA]
        assert (advert.tgt, advert.R, advert.S, advert.O) == (target, 1, 1, 1)
        assert answer[ICMPv6NDOptDstLLAddr].lladdr == R0
    # To the address itself, without an option: answered, too.
    outcome = bench.probe(solicitation(target, dst=target, eth_dst=R0, option=False), wait=1)
    assert ICMPv6ND_NA in Ether(outcome.frames["p0"][0])


def test_case_D57_foreign_targets_are_not(bench):
    for target in ("fd00::2", "fd00::77", "fd00:1::1", "2001:db8:2::9", "fe80::ff:fe00:2", "::"):
        bench.silent(solicitation(target))
    # To the group of an own address, about another.
    bench.silent(solicitation("fd00::77", dst="ff02::1:ff00:1", eth_dst="33:33:ff:00:00:01"))


def test_case_D57_advertisement_without_address(fresh):
    """RFC 4861 7.2.5: of no use while incomplete; a unicast answer may leave the option out."""
    bench = fresh
    bench.wires["p0"].send(bytes(udp6()))
    assert bench.wires["p1"].wait_for(is_solicitation("fd00:1::2"))
    bench.wires["p1"].send(bytes(advertisement("fd00:1::2", H1, dst="fd00:1::1", eth_dst=R1, solicited=1, option=False)))
    time.sleep(0.1)
    assert bench.ctl.neighbor("fd00:1::2")["state"] == "incomplete"
    bench.wires["p1"].send(bytes(advertisement("fd00:1::2", H1, dst="fd00:1::1", eth_dst=R1, solicited=1)))
    got = bench.wires["p1"].wait_for(is_udp)
    assert got and Ether(got).dst == H1
    assert bench.ctl.neighbor("fd00:1::2")["state"] == "reachable"


def test_case_D59_duplicate_address_detection_is_answered(bench):
    for target in ("fd00::1", "fe80::ff:fe00:1"):
        bench.wires["p0"].drain()
        bench.wires["p0"].send(bytes(solicitation(target, src="::", option=False)))
        got = bench.wires["p0"].wait_for(lambda f: ICMPv6ND_NA in Ether(f))
        assert got, target
        ether = Ether(got)
        assert (ether[IPv6].dst, ether.dst) == ("ff02::1", "33:33:00:00:00:01")
        assert (ether[ICMPv6ND_NA].tgt, ether[ICMPv6ND_NA].S, ether[ICMPv6ND_NA].R) == (target, 0, 1)
    # With a source address option it is malformed (RFC 4861 7.1.1).
    bench.drops(solicitation("fd00::1", src="::"), "ndp_malformed")


def test_case_D60_advertisements_on_every_queue(new_bench):
    """Two RX queues: the kernel spreads hosts over them, and every one of them is learned."""
    if os.cpu_count() < 3:
        pytest.skip("two RX queues want two workers, and those with the control thread three lcores")
    ports = {name: {**port, "rx-queues": 2} for name, port in PORTS.items()}
    bench = new_bench(**{**DYNAMIC, "ports": ports}, dpdk={"lcores": [0, 1, 2], "hugepages": False, "memory-mb": 256})
    assert bench.ctl.links()["p1"]["rx_queues"] == 2
    hosts = {f"fd00:1::{n:x}": f"02:aa:00:00:02:{n:02x}" for n in range(16, 48)}
    with Responder(bench, "p1", hosts):
        for address in hosts:
            bench.wires["p0"].send(bytes(udp6(dst=address)))
        learned = until(lambda: all((bench.ctl.neighbor(a) or {}).get("lladdr") == mac for a, mac in hosts.items()))
    assert learned, bench.ctl.neighbors()


def test_case_D61_echo_to_the_link_local_address(fresh):
    """From a link-local address that sluice does not know: it learns the neighbor and answers."""
    bench = fresh
    with Responder(bench, "p0", {"fe80::2": H0}):
        bench.wires["p0"].send(bytes(echo6(src="fe80::2", dst="fe80::ff:fe00:1")))
        got = bench.wires["p0"].wait_for(lambda f: l3_protocol(f) == 58 and l3(f)[40] == 129)
    assert got and Ether(got).dst == H0 and Ether(got)[IPv6].src == "fe80::ff:fe00:1"
    assert bench.ctl.neighbor("fe80::2")["lladdr"] == H0


def test_case_D63_link_local_from_the_mac(bench):
    mine = {(row["dev"], row["address"]) for row in bench.ctl.json("addr", "show") if row["scope"] == "link"}
    assert ("p0", "fe80::ff:fe00:1/64") in mine and ("p1", "fe80::ff:fe00:2/64") in mine, mine


def test_case_D64_both_sides_of_a_tap_with_one_mac(bench):
    """net_tap gives its kernel side the port's MAC: a host that uses it so would be deaf."""
    kernel = bench.router.run("ip", "-o", "link", "show", bench.taps["p0"]).stdout
    log = bench.daemon.log_text().lower()
    assert R0 not in kernel or ("same mac" in log and "p0" in log), log


def test_case_D66_router_advertisements(bench):
    """Nobody here reads them (accept-ra is not built yet): well-formed ones are ignored, counted."""
    def advert(**ip):
        return Ether(dst="33:33:00:00:00:01", src=H0) / IPv6(**{"src": "fe80::2", "dst": "ff02::1", "hlim": 255,
                                                                **ip}) / ICMPv6ND_RA() / ICMPv6NDOptSrcLLAddr(lladdr=H0)
    bench.drops(advert(), "ndp_ignored")
    bench.drops(advert(hlim=254), "ndp_malformed")


def test_case_D66_punted():
    pytest.skip("punting router advertisements to applications is not built yet")


@pytest.mark.parametrize("words", [
    "addr add 10.0.0.1/24 dev p0", "addr add 10.0.0.300/24 dev p0", "addr add 10.0.9.1/24 dev p9",
    "addr del 10.0.9.1/24 dev p0", "addr add 224.0.0.1/24 dev p0", "addr add 10.0.9.0/24 dev p0",
    "route add 10.0.0.1/24 via 10.0.1.2", "route add 203.0.113.0/24 via 9.9.9.9",
    "route add 203.0.113.0/24 via 10.0.1.1", "route add 203.0.113.0/24 via fd00:1::2 dev p9",
    "route add 2001:db8:7::/48 via 10.0.1.2", "route add 2001:db8:7::/48 via fe80::7", "route del 203.0.113.0/24",
    "route add 203.0.113.0/24 type nonsense", "route add 203.0.113.0/33 via 10.0.1.2",
    "route add 203.0.113.0/24 via 10.0.1.2 table 255", "route add 203.0.113.0/24 nexthop 5",
    "neigh add 10.0.1.9 lladdr 01:00:5e:00:00:01 dev p1", "neigh add 10.0.1.9 lladdr 02:aa dev p1",
    "neigh del 10.0.1.99 dev p1", "neigh add 10.0.1.9 lladdr 02:aa:00:00:00:09 dev p9",
    "link set p9 up", "link set p0 mtu 50", "link del p0 p9", "link add p0 device net_null7",
    "link add p7 device net_nothing0", "link set p0 netns blue", "frobnicate show", "link frobnicate p0", "route add",
])
def test_case_D67_a_rejected_change_changes_nothing(bench, words):
    """checks.md 148, too: refused with a reason."""
    before = bench.ctl.state()
    bench.ctl.refused(*words.split())
    after = bench.ctl.state()
    for state in (before, after):
        for link in state["link"].values():
            link.pop("counters")
    assert after == before


def test_case_D67_the_same_again(bench):
    for words in ("route add 203.0.113.0/24 via 10.0.1.2", "neigh add 10.0.1.9 lladdr 02:aa:00:00:00:09 dev p1",
                  "addr add 10.0.9.1/24 dev p1", "link add p1.5 link p1 vlan 5"):
        object_, _, what, *rest = words.split()
        bench.ctl.text(*words.split())
        before = bench.ctl.routes(), bench.ctl.neighbors(), bench.ctl.json("addr", "show")
        if object_ == "neigh":
            bench.ctl.text(*words.split())  # replaces itself
        else:
            bench.ctl.refused(*words.split())
        assert (bench.ctl.routes(), bench.ctl.neighbors(), bench.ctl.json("addr", "show")) == before
        delete = [object_, "del", what] + (["dev", "p1"] if object_ in ("neigh", "addr") else [])
        bench.ctl.text(*delete)
        bench.ctl.refused(*delete)
