# SPDX-License-Identifier: BSD-3-Clause
"""Routing instances: netns with the same addresses, ports moved between them, VRFs and routes that leak. cases.md D 56,
checks.md J 95-99, K, N 139, dst.md M."""

import re
import threading
import time

import pytest
from bench import HostBench, WireBench
from frames import H0, H1, ICMP, IP, TCP, Ether, IPv6, echo4, echo6, l3, udp4
from responder import Responder
from sites import CACHE_ON, eth, from4, from6, host_mac, neighbors, port, port_mac, wide

ROUTES = [{"to": "192.0.2.0/24", "via": "10.0.1.2"}, {"to": "2001:db8:2::/48", "via": "fe80::2", "dev": "p1"}]


@pytest.fixture(scope="module")
def twins():
    """Two instances with the same names, addresses and gateways; MACs tell which is which."""
    running = WireBench(**wide(2, routes=ROUTES, netns={"a": {
        "ports": {"p0": port(0, 1), "p1": port(1, 1)}, "neighbors": neighbors([0, 1], 1), "routes": ROUTES}}))
    yield running
    running.close()


def twin(site):
    return "a/" if site else ""


@pytest.mark.parametrize("make, dst", [(from4, "192.0.2.9"), (from4, "10.0.1.2"), (from6, "2001:db8:2::9"),
                                       (from6, "fd00:1::2")])
def test_case_D56_one_gateway_address_in_two_netns(twins, make, dst):
    """In turn, so that an answer remembered for the one would show in the other."""
    for _ in range(3):
        for site in (0, 1):
            twins.forwards(make(0, dst, site), into=twin(site) + "p0", out=twin(site) + "p1",
                           dst=host_mac(1, site), src=port_mac(1, site))


def test_case_D56_learned_in_two_netns(twins):
    """The same unknown host in both: each asks on its own link and keeps its own answer."""
    macs = {0: "02:bb:00:00:00:07", 1: "02:bb:00:01:00:07"}
    with Responder(twins, "p1", {"10.0.1.7": macs[0]}), Responder(twins, "a/p1", {"10.0.1.7": macs[1]}):
        for site in (0, 1):
            outcome = twins.probe(from4(0, "10.0.1.7", site), into=twin(site) + "p0", wait=2)
            assert not outcome.drops, str(outcome)
        for _ in range(2):
            for site in (0, 1):
                twins.forwards(from4(0, "10.0.1.7", site), into=twin(site) + "p0", out=twin(site) + "p1",
                               dst=macs[site], src=port_mac(1, site))
    assert twins.ctl.neighbor("10.0.1.7")["lladdr"] == macs[0]
    assert twins.ctl.within("a").neighbor("10.0.1.7")["lladdr"] == macs[1]


def test_same_names_are_different_things(twins):
    """A change in one netns is none in the other."""
    inner = twins.ctl.within("a")
    inner.text("route", "add", "198.51.100.0/24", "via", "10.0.1.2")
    assert twins.ctl.json("route", "get", "198.51.100.1")["type"] == "none"
    twins.forwards(from4(0, "198.51.100.1", 1), into="a/p0", out="a/p1", dst=host_mac(1, 1))
    twins.error(from4(0, "198.51.100.1"), 3, 0, into="p0", reason="no_route", dst=host_mac(0))
    inner.text("route", "del", "198.51.100.0/24")
    twins.error(from4(0, "198.51.100.1", 1), 3, 0, into="a/p0", reason="no_route", dst=host_mac(0, 1))


def test_generations_are_each_netns_own(twins):
    """G-01, G-02: what is bumped in one netns stays in the other, and no two bumped ones are equal."""
    def generations():
        return {row["name"]: row["ipv4_generation"] for row in twins.ctl.json("netns", "show")}
    seen = set()
    for netns in ("default", "a", "default", "a"):
        before = generations()
        twins.ctl.within(netns).text("rule", "add", "priority", 7, "from", "203.0.113.0/24", "blackhole")
        after = generations()
        assert {name for name in after if after[name] != before[name]} == {netns}
        assert after[netns] not in seen
        seen.add(after[netns])
        twins.ctl.within(netns).text("rule", "del", "priority", 7)
        seen.update(generations().values())


@pytest.fixture
def movable():
    running = WireBench(**wide(3, routes=ROUTES))
    yield running
    running.close()


def populate(bench, netns, name, number):
    """What a port needs that came without anything."""
    ctl = bench.ctl.within(netns)
    ctl.text("addr", "add", f"10.0.{number}.1/24", "dev", name)
    ctl.text("addr", "add", f"fd00:{number}::1/64", "dev", name)
    for host in (f"10.0.{number}.2", f"fd00:{number}::2"):
        ctl.text("neigh", "add", host, "dev", name, "lladdr", host_mac(number))


def test_netns_made_filled_and_deleted(movable):
    """M-01: the port leaves everything behind, works in its new place, and comes back bare when that ends."""
    bench, ctl = movable, movable.ctl
    ctl.text("netns", "add", "b")
    assert {row["name"] for row in ctl.json("netns", "show")} == {"default", "b"}
    assert "b" in ctl.refused("netns", "add", "b")
    assert "default" in ctl.refused("netns", "del", "default")
    assert "c" in ctl.refused("netns", "del", "c")
    bench.forwards(from4(0, "10.0.1.2"), out="p1", dst=host_mac(1))
    bench.forwards(from4(0, "192.0.2.9"), out="p1", dst=host_mac(1))
    bench.forwards(from6(0, "2001:db8:2::9"), out="p1", dst=host_mac(1))

    ctl.text("link", "set", "p1", "netns", "b")
    bench.quiet.add("p1")
    assert "p1" not in ctl.links() and ctl.within("b").links()["p1"]["up"]
    assert not [n for n in ctl.neighbors() if n["dev"] == "p1"]
    assert not [route for route in ctl.json("route", "show", "table", "all") if route["dev"] == "p1"]
    for frame in (from4(0, "10.0.1.2"), from4(0, "192.0.2.9")):
        bench.error(frame, 3, 0, into="p0", reason="no_route", dst=host_mac(0))
    for frame in (from6(0, "fd00:1::2"), from6(0, "2001:db8:2::9")):
        bench.error(frame, 1, 0, into="p0", reason="no_route", dst=host_mac(0))
    bench.silent(from4(1, "10.0.0.2"), into="p1")

    ctl.text("link", "set", "p2", "netns", "b")
    for number in (1, 2):
        populate(bench, "b", f"p{number}", number)
    bench.quiet.clear()
    bench.forwards(from4(1, "10.0.2.2"), into="p1", out="p2", dst=host_mac(2))
    bench.forwards(from6(2, "fd00:1::2"), into="p2", out="p1", dst=host_mac(1))
    bench.error(from4(1, "10.0.0.2"), 3, 0, into="p1", reason="no_route", dst=host_mac(1))

    ctl.text("netns", "del", "b")
    assert [row["name"] for row in ctl.json("netns", "show")] == ["default"]
    links = ctl.links()
    assert {"p0", "p1", "p2"} <= set(links) and not links["p1"]["addresses"] and not links["p2"]["addresses"]
    bench.quiet |= {"p1", "p2"}
    bench.silent(from4(1, "10.0.2.2"), into="p1")
    bench.error(from4(0, "10.0.1.2"), 3, 0, into="p0", reason="no_route", dst=host_mac(0))
    for number in (1, 2):
        populate(bench, None, f"p{number}", number)
    bench.quiet.clear()
    bench.forwards(from4(0, "10.0.1.2"), out="p1", dst=host_mac(1))
    bench.forwards(from4(0, "10.0.2.2"), out="p2", dst=host_mac(2))
    assert not ctl.json("uncached", "show")["draining"]


def test_name_clash_refuses_the_move(movable):
    """M-01: all or nothing."""
    ctl = movable.ctl
    ctl.text("netns", "add", "b")
    ctl.within("b").text("link", "add", "p1", "vrf", "table", 7)
    before = ctl.json("config", "show")
    assert "p1" in ctl.refused("link", "set", "p1", "netns", "b")
    assert "nowhere" in ctl.refused("link", "set", "p1", "netns", "nowhere")
    assert ctl.json("config", "show") == before
    movable.forwards(from4(0, "192.0.2.9"), out="p1", dst=host_mac(1))
    ctl.text("netns", "del", "b")


def test_nothing_of_the_old_netns_leaves_after_the_move(movable):
    """M-03: traffic without a pause, by a plain route, a next-hop object and a group; after the call returned, nothing more of
    it is on the moved port's cable."""
    bench, ctl = movable, movable.ctl
    frames = [from4(0, f"198.51.{number}.7", dport=4242) for number in (100, 101, 102)]

    def is_ours(got):
        return got[12:14] == b"\x08\x00" and got[30:32] == bytes([198, 51])

    def routes():
        ctl.text("nexthop", "add", 1, "via", "10.0.1.2", "dev", "p1")
        ctl.text("nexthop", "add", 2, "group", "1")
        for number, way in ((100, ("via", "10.0.1.2")), (101, ("nhid", 1)), (102, ("nhid", 2))):
            ctl.text("route", "add", f"198.51.{number}.0/24", *way)

    ending = threading.Event()

    def send():
        while not ending.is_set():
            for frame in frames * 8:
                bench.wires["p0"].send(frame)
            time.sleep(0.001)

    ctl.text("netns", "add", "b")
    routes()
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for turn in range(3):
            for frame in frames:
                assert bench.wires["p1"].wait_for(lambda got, to=frame[30:34]: got[30:34] == to), "no traffic before"
            ctl.text("link", "set", "p1", "netns", "b")
            # What is in the tap's queue already may come; the wire's socket holds it by now.
            time.sleep(0.05)
            bench.wires["p1"].drain()
            late = bench.wires["p1"].collect(is_ours, 0.3)
            assert not late, f"turn {turn}: {len(late)} frames"
            assert not ctl.json("nexthop", "show"), "next hops on the port stayed"
            ctl.within("b").text("link", "set", "p1", "netns", "default")
            populate(bench, None, "p1", 1)
            routes()
    finally:
        ending.set()
        sender.join()
    time.sleep(0.2)
    ctl.text("netns", "del", "b")


def test_moved_under_ping():
    """Real hosts: replies stop with the move, and the far host reaches the port's new instance."""
    bench = HostBench(workers=CACHE_ON)
    try:
        ping = ("ping", "-n", "-i", 0.02, "-W", 1, "-c")
        assert " 0% packet loss" in bench.h0.run(*ping, 5, "10.0.1.2").stdout
        running = bench.h0.popen("ping", "-n", "-i", 0.02, "-D", "10.0.1.2", stdout=-1, stderr=-2)
        time.sleep(0.3)
        bench.ctl.text("netns", "add", "b")
        bench.ctl.text("link", "set", "p1", "netns", "b")
        time.sleep(0.2)
        moved = time.time()
        time.sleep(0.3)
        running.send_signal(2)
        out = running.communicate(timeout=10)[0]
        stamps = [float(stamp) for stamp in re.findall(r"^\[([\d.]+)\] \d+ bytes from 10.0.1.2", out, re.M)]
        assert stamps and max(stamps) < moved, out
        assert "Destination Net Unreachable" in out, out
        inner = bench.ctl.within("b")
        inner.text("addr", "add", "10.0.1.1/24", "dev", "p1")
        inner.text("addr", "add", "fd00:1::1/64", "dev", "p1")
        assert " 0% packet loss" in bench.h1.run(*ping, 5, "10.0.1.1").stdout
        assert " 0% packet loss" in bench.h1.run(*ping, 5, "fd00:1::1").stdout
        assert "Destination Net Unreachable" in bench.h1.run(*ping, 5, "10.0.0.2", check=False).stdout
        bench.ctl.text("netns", "del", "b")
        bench.level = None  # hosts speak unasked
    finally:
        bench.close()


# VRFs: p0 and p2 in blue, p1 and p3 in red, p4 in none. p2 and p3 have one network and one gateway.

def shared(name, number):
    return {"mac": port_mac(number), "addresses": ["10.0.2.1/24", "fd00:2::1/64"]}


@pytest.fixture(scope="module")
def vrfs():
    both = [{"to": "192.0.2.0/24", "via": "10.0.2.2"}, {"to": "2001:db8:2::/48", "via": "fe80::2"}]
    running = WireBench(standard=False, workers=CACHE_ON, ports={
        "p0": port(0), "p1": port(1), "p2": shared("p2", 2), "p3": shared("p3", 3), "p4": port(4)},
        neighbors=[*neighbors([0, 1, 2, 4]),
                   *({"to": host, "dev": "p3", "lladdr": host_mac(3)} for host in ("10.0.2.2", "fd00:2::2", "fe80::2"))],
        vrfs={"blue": {"table": 10, "interfaces": ["p0", "p2"]}, "red": {"table": 20, "interfaces": ["p1", "p3"]}},
        routes=[{**route, **({"dev": dev} if route["via"].startswith("fe80") else {}), "table": table}
                for route in both for dev, table in (("p2", 10), ("p3", 20))])
    yield running
    running.close()


IN = {"blue": ("p0", 0), "red": ("p1", 1)}
OUT = {"blue": ("p2", 2), "red": ("p3", 3)}


@pytest.mark.parametrize("make, dst", [(from4, "192.0.2.9"), (from6, "2001:db8:2::9"), (from4, "10.0.2.2"),
                                       (from6, "fd00:2::2")])
def test_case_D56_in_two_vrfs(vrfs, make, dst):
    for _ in range(3):
        for vrf, (into, number) in IN.items():
            vrfs.forwards(make(number, dst), into=into, out=OUT[vrf][0], dst=host_mac(OUT[vrf][1]))


def own_address6(number):
    return f"fd00:{number}::1" if number else "fd00::1"


def test_vrfs_are_closed(vrfs):
    """What is in no table of the ingress VRF has no route, whoever else has it."""
    for into, number, other in (("p0", 0, 1), ("p1", 1, 0), ("p4", 4, 0), ("p0", 0, 4)):
        vrfs.error(from4(number, f"10.0.{other}.2"), 3, 0, into=into, reason="no_route", dst=host_mac(number),
                   source=f"10.0.{number}.1")
        vrfs.error(from6(number, f"fd00:{other}::2"), 1, 0, into=into, reason="no_route", dst=host_mac(number),
                   source=own_address6(number))
    vrfs.error(from4(4, "192.0.2.9"), 3, 0, into="p4", reason="no_route", dst=host_mac(4))


def test_check_K100_address_in_a_vrf(vrfs):
    """Every own address of the VRF answers its members; others get no route. (No application listens yet.)"""
    for into, number, request in (("p0", 0, "10.0.2.1"), ("p1", 1, "10.0.2.1"), ("p0", 0, "10.0.0.1")):
        for _ in range(2):
            outcome = vrfs.probe(echo4(src=f"10.0.{number}.2", dst=request, eth=eth(number)), into, wait=1)
            assert [IP(l3(got))[ICMP].type for got in outcome.frames[into]] == [0], str(outcome)
    for into, number, request in (("p0", 0, "fd00:2::1"), ("p1", 1, "fd00:2::1")):
        for _ in range(2):
            outcome = vrfs.probe(echo6(src=f"fd00:{number}::2", dst=request, eth=eth(number)), into, wait=1)
            assert [l3(got)[40] for got in outcome.frames[into]] == [129], str(outcome)
    vrfs.error(from4(4, "10.0.0.1"), 3, 0, into="p4", reason="no_route", dst=host_mac(4))
    vrfs.error(from4(1, "10.0.0.1"), 3, 0, into="p1", reason="no_route", dst=host_mac(1))


def test_check_K101_asked_from_outside_and_from_within(vrfs):
    get = vrfs.ctl.json
    assert get("route", "get", "10.0.2.1")["type"] == "none"
    assert get("route", "get", "10.0.2.1", "iif", "p0")["type"] == "local"
    assert get("route", "get", "192.0.2.9")["type"] == "none"
    for vrf in IN:
        answer = get("route", "get", "192.0.2.9", "iif", IN[vrf][0])
        assert (answer["dev"], answer["via"], answer["table"]) == (OUT[vrf][0], "10.0.2.2", {"blue": 10, "red": 20}[vrf])
        answer = get("route", "get", "2001:db8:2::9", "iif", IN[vrf][0])
        assert (answer["dev"], answer["via"]) == (OUT[vrf][0], "fe80::2")


def test_check_K102_closed_port_in_a_vrf(vrfs):
    """The answer about a port nobody listens on goes back inside the VRF."""
    vrfs.error(from4(0, "10.0.2.1", dport=4444), 3, 3, into="p0", dst=host_mac(0), reason="udp_no_port")
    vrfs.error(from6(1, "fd00:2::1", dport=4444), 1, 4, into="p1", dst=host_mac(1), reason="udp_no_port")


@pytest.fixture
def leaks(vrfs):
    """blue ↔ red: each has the other's host network."""
    back = [("10.0.0.0/24", "red", "blue"), ("fd00::/64", "red", "blue")]
    forth = [("10.0.1.0/24", "blue", "red"), ("fd00:1::/64", "blue", "red")]
    for prefix, table, dev in [*back, *forth]:
        vrfs.ctl.text("route", "add", prefix, "dev", dev, "vrf", table)
    yield vrfs
    for prefix, table, dev in [*back, *forth]:
        try:
            vrfs.ctl.text("route", "del", prefix, "dev", dev, "vrf", table)
        except Exception:  # pylint: disable=broad-except
            pass  # the test took it away


def test_check_N118_leaked_both_ways(leaks):
    leaks.forwards(from4(0, "10.0.1.2"), into="p0", out="p1", dst=host_mac(1))
    leaks.forwards(from4(1, "10.0.0.2"), into="p1", out="p0", dst=host_mac(0))
    leaks.forwards(from6(0, "fd00:1::2"), into="p0", out="p1", dst=host_mac(1))
    leaks.forwards(from6(1, "fd00::2"), into="p1", out="p0", dst=host_mac(0))
    assert leaks.ctl.json("route", "get", "10.0.1.2", "iif", "p0")["dev"] == "p1"


def test_leak_ends_with_the_next_packet(leaks):
    leaks.forwards(from4(0, "10.0.1.2"), into="p0", out="p1", dst=host_mac(1))
    leaks.ctl.text("route", "del", "10.0.1.0/24", "dev", "red", "vrf", "blue")
    leaks.error(from4(0, "10.0.1.2"), 3, 0, into="p0", reason="no_route", dst=host_mac(0))


def expires(bench):
    bench.error(from4(0, "10.0.1.2", ttl=1), 11, 0, into="p0", source="10.0.0.1", reason="ttl_expired",
                dst=host_mac(0))
    bench.error(from6(0, "fd00:1::2", hlim=1), 3, 0, into="p0", source="fd00::1", reason="ttl_expired",
                dst=host_mac(0))


def test_check_J095_time_exceeded_through_a_leak(leaks):
    expires(leaks)


def test_check_J096_too_big_through_a_leak(leaks):
    leaks.ctl.text("link", "set", "p1", "mtu", 1400)
    try:
        got = leaks.error(from4(0, "10.0.1.2", size=1422, flags="DF"), 3, 4, into="p0", source="10.0.0.1",
                          reason="fragmentation_needed", dst=host_mac(0))
        assert got[26:28] == (1400).to_bytes(2, "big")
        got = leaks.error(from6(0, "fd00:1::2", size=1402), 2, 0, into="p0", source="fd00::1",
                          reason="packet_too_big", dst=host_mac(0))
        assert got[44:48] == (1400).to_bytes(4, "big")
    finally:
        leaks.ctl.text("link", "set", "p1", "mtu", 1500)


def test_check_J097_errors_return_by_the_ingress_vrf(leaks):
    """red has no way back: the error never needed one."""
    leaks.ctl.text("route", "del", "10.0.0.0/24", "dev", "blue", "vrf", "red")
    leaks.ctl.text("route", "del", "fd00::/64", "dev", "blue", "vrf", "red")
    leaks.error(from4(1, "10.0.0.2"), 3, 0, into="p1", reason="no_route", dst=host_mac(1))
    expires(leaks)


def test_check_J098_own_traffic_through_a_leak(leaks):
    """A host in red pings blue's address; the answer goes back to it."""
    for _ in range(2):
        outcome = leaks.probe(echo4(src="10.0.1.2", dst="10.0.0.1", eth=eth(1)), "p1", wait=1)
        assert [IP(l3(got))[ICMP].type for got in outcome.frames["p1"]] == [0], str(outcome)
        outcome = leaks.probe(echo6(src="fd00:1::2", dst="fd00::1", eth=eth(1)), "p1", wait=1)
        assert [l3(got)[40] for got in outcome.frames["p1"]] == [129], str(outcome)


def test_check_J099_in_a_vrf(leaks):
    """Counted where the packet came in."""
    leaks.ctl.text("link", "set", "p1", "mtu", 1400)
    leaks.ctl.text("route", "add", "prohibit", "2001:db8:66::/48", "vrf", "blue")
    try:
        for frame, reason in ((from6(0, "fd00:1::2", size=1402), "packet_too_big"),
                              (from6(0, "fd00:1::2", hlim=1), "ttl_expired"),
                              (from6(0, "2001:db8:66::1"), "route_prohibit")):
            outcome = leaks.probe(frame, "p0", wait=1, drops=1)
            assert outcome.drops == {("p0", reason): 1}, str(outcome)
            assert outcome.delta("p0", "icmp_errors_sent") == 1, str(outcome)
        leaks.ctl.text("link", "set", "p0", "forwarding", "off")
        outcome = leaks.probe(from6(0, "fd00:1::2"), "p0", drops=1)
        assert outcome.drops == {("p0", "forwarding_disabled"): 1}, str(outcome)
    finally:
        leaks.ctl.text("link", "set", "p0", "forwarding", "on")
        leaks.ctl.text("route", "del", "2001:db8:66::/48", "vrf", "blue")
        leaks.ctl.text("link", "set", "p1", "mtu", 1500)


def test_check_N118_tables_that_send_to_each_other(vrfs):
    """A loop of leaks drops, and the process lives."""
    vrfs.ctl.text("route", "add", "203.0.113.0/24", "dev", "red", "vrf", "blue")
    vrfs.ctl.text("route", "add", "203.0.113.0/24", "dev", "blue", "vrf", "red")
    try:
        vrfs.silent(from4(0, "203.0.113.9"), into="p0")
        vrfs.drops(from4(0, "203.0.113.9"), "route_loop", into="p0")
    finally:
        vrfs.ctl.text("route", "del", "203.0.113.0/24", "vrf", "blue")
        vrfs.ctl.text("route", "del", "203.0.113.0/24", "vrf", "red")


@pytest.fixture
def plain():
    """Three ports in no VRF, gateways learned."""
    running = WireBench(**wide(3))
    yield running
    running.close()


def test_check_K103_vrf_deleted_with_members(plain):
    plain.ctl.text("link", "add", "green", "vrf", "table", 30)
    for name in ("p0", "p1"):
        plain.ctl.text("link", "set", name, "vrf", "green")
    assert [(row["name"], sorted(row["interfaces"])) for row in plain.ctl.json("vrf", "show")] == [
        ("green", ["p0", "p1"])]
    static(plain)
    plain.forwards(from4(0, "10.0.1.2"), out="p1", dst=host_mac(1))
    plain.error(from4(0, "10.0.2.2"), 3, 0, into="p0", reason="no_route", dst=host_mac(0))
    plain.ctl.text("link", "del", "green")
    assert plain.ctl.json("vrf", "show") == [] and plain.ctl.links()["p0"]["vrf"] is None
    static(plain)
    for number in (1, 2):
        plain.forwards(from4(0, f"10.0.{number}.2"), out=f"p{number}", dst=host_mac(number))
        plain.forwards(from6(0, f"fd00:{number}::2"), out=f"p{number}", dst=host_mac(number))
        plain.forwards(from4(number, "10.0.0.2"), into=f"p{number}", out="p0", dst=host_mac(0))


def static(bench):
    """The hosts again, where a change of VRF took them away."""
    known = {(n["dev"], n["address"]) for n in bench.ctl.neighbors() if n["state"] == "permanent"}
    for number in range(3):
        for host in (f"10.0.{number}.2", f"fd00:{number}::2"):
            if (f"p{number}", host) not in known:
                bench.ctl.text("neigh", "add", host, "dev", f"p{number}", "lladdr", host_mac(number))


def test_check_N139_moved_to_another_vrf(plain):
    """What was learned on the netdev is asked for again; the caches forget it with the same call."""
    frame = from4(0, "10.0.1.7")
    with Responder(plain, "p1", {"10.0.1.7": "02:bb:00:00:00:01"}) as answers:
        plain.probe(frame, wait=2)
        plain.forwards(frame, out="p1", dst="02:bb:00:00:00:01")
        asked = len(answers.asked)
        plain.ctl.text("link", "add", "green", "vrf", "table", 30)
        plain.ctl.text("link", "set", "p1", "vrf", "green")
        assert plain.ctl.neighbor("10.0.1.7") is None
        static(plain)
        plain.error(frame, 3, 0, into="p0", reason="no_route", dst=host_mac(0))
        plain.ctl.text("link", "set", "p0", "vrf", "green")
        static(plain)
        answers.hosts["10.0.1.7"] = "02:bb:00:00:00:02"
        outcome = plain.probe(frame, wait=2)
        assert not outcome.drops, str(outcome)
        assert len(answers.asked) > asked
        plain.forwards(frame, out="p1", dst="02:bb:00:00:00:02")


def test_check_K104_held_packets_and_a_member_deleted(plain):
    """Packets wait for a neighbor that never answers; the member goes at once and they are dropped (U-05)."""
    ctl = plain.ctl
    ctl.text("link", "add", "green", "vrf", "table", 30)
    for name in ("p0", "p1", "p2"):
        ctl.text("link", "set", name, "vrf", "green")
    static(plain)
    for number in range(20):
        plain.wires["p0"].send(from4(0, f"10.0.1.{100 + number}"))
        plain.wires["p0"].send(from6(0, f"fd00:1::{100 + number}"))
    plain.wires["p1"].wait_for(lambda got: got[12:14] == b"\x08\x06")
    began = time.monotonic()
    ctl.text("link", "del", "p1")
    assert time.monotonic() - began < 2
    deadline = time.monotonic() + 2
    while ctl.json("uncached", "show")["draining"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not ctl.json("uncached", "show")["draining"]
    ctl.text("link", "del", "green")
    plain.wires.pop("p1").close()
    static_left(plain)
    plain.level = None
    plain.forwards(from4(0, "10.0.2.2"), out="p2", dst=host_mac(2))
    plain.error(from4(0, "10.0.1.100"), 3, 0, into="p0", reason="no_route", dst=host_mac(0))


def static_left(bench):
    known = {(n["dev"], n["address"]) for n in bench.ctl.neighbors() if n["state"] == "permanent"}
    for number in (0, 2):
        for host in (f"10.0.{number}.2", f"fd00:{number}::2"):
            if (f"p{number}", host) not in known:
                bench.ctl.text("neigh", "add", host, "dev", f"p{number}", "lladdr", host_mac(number))
