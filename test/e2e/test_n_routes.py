# SPDX-License-Identifier: BSD-3-Clause
"""checks.md N 115-122: routes, addresses and netdevs that come and go under traffic."""

import threading
import time

from bench import PORTS, WireBench
from frames import H0, H1, R0, forwarded_l3, l3, udp4, udp6


def wire_agrees(bench, routed, hosts):
    """Exactly the routed destinations leave p1; the others are answered with no route."""
    frames = [bytes(udp4(dst=host, id=n)) for n, host in enumerate(hosts)]
    outcome = bench.probe(frames, wait=len(frames), drops=len(hosts) - len(routed))
    want = [forwarded_l3(frame) for frame, host in zip(frames, hosts) if host in routed]
    assert [l3(got) for got in outcome.frames["p1"]] == want
    assert outcome.reasons() == ({"no_route": len(hosts) - len(routed)} if len(routed) < len(hosts) else {})


def test_check_N115_host_routes(bench):
    hosts = [f"198.51.100.{n}" for n in range(1, 101)]
    routed = set(hosts)
    wire_agrees(bench, set(), hosts)
    for host in hosts:
        bench.ctl.text("route", "add", f"{host}/32", "via", "10.0.1.2")
    wire_agrees(bench, routed, hosts)
    for host in hosts[20:30]:
        bench.ctl.text("route", "del", f"{host}/32")
        routed.remove(host)
    wire_agrees(bench, routed, hosts)
    for host in hosts[22:27]:
        bench.ctl.text("route", "add", f"{host}/32", "via", "10.0.1.2")
        routed.add(host)
    wire_agrees(bench, routed, hosts)
    bench.ctl.text("route", "flush")
    wire_agrees(bench, set(), hosts)


def test_check_N116_hole_in_a_prefix(bench):
    bench.forwards(udp4())
    bench.ctl.text("route", "add", "192.0.2.9/32", "type", "blackhole")
    bench.drops(udp4(), "route_blackhole")
    bench.forwards(udp4(dst="192.0.2.8"))
    bench.ctl.text("route", "del", "192.0.2.9/32")
    bench.forwards(udp4())
    bench.ctl.text("route", "add", "2001:db8:2::9/128", "type", "blackhole")
    bench.drops(udp6(), "route_blackhole")
    bench.ctl.text("route", "del", "2001:db8:2::9/128")
    bench.forwards(udp6())


def test_check_N117_replaced_table(new_bench):
    """A reload keeps what is in both files without a blink and takes out the rest."""
    old = [{"to": f"198.51.{n}.0/24", "via": "10.0.1.2"} for n in range(100)]
    new = [{"to": f"198.51.{n}.0/24", "via": "10.0.1.2"} for n in range(50, 150)]
    bench = new_bench(routes=old)
    config = bench.daemon.config
    kept = config["routes"][:2]
    stop = threading.Event()
    sent = []

    def traffic():
        while not stop.is_set():
            bench.wires["p0"].send(bytes(udp4(dst="198.51.70.1", id=len(sent) & 0xFFFF)))
            sent.append(1)
            time.sleep(0.0005)

    bench.wires["p1"].drain()
    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        for routes in (new, old, new):
            bench.daemon.reload({**config, "routes": [*kept, *routes]})
    finally:
        stop.set()
        thread.join()
    out = bench.settle()
    assert len(out["p1"]) == len(sent) and not out["p0"], f"{len(out['p1'])} of {len(sent)}"
    for n in (0, 49):
        bench.error(udp4(dst=f"198.51.{n}.1"), 3, 0, reason="no_route")
    for n in (50, 99, 100, 149):
        bench.forwards(udp4(dst=f"198.51.{n}.1"))


def test_check_N119_two_addresses_of_one_subnet(bench):
    bench.ctl.text("addr", "add", "10.0.1.7/24", "dev", "p1")
    bench.ctl.text("addr", "add", "10.6.0.1/24", "dev", "p1")
    bench.ctl.text("addr", "add", "10.6.0.2/24", "dev", "p1")
    bench.ctl.text("neigh", "add", "10.6.0.9", "lladdr", H1, "dev", "p1")
    bench.forwards(udp4(dst="10.6.0.9"))
    bench.ctl.text("addr", "del", "10.6.0.1/24", "dev", "p1")
    bench.forwards(udp4(dst="10.6.0.9"))
    bench.ctl.text("addr", "del", "10.6.0.2/24", "dev", "p1")
    bench.error(udp4(dst="10.6.0.9"), 3, 0, reason="no_route")
    bench.ctl.text("addr", "del", "10.0.1.7/24", "dev", "p1")
    bench.forwards(udp4())


def test_check_N120_address_on_a_netdev_that_is_down(new_bench):
    bench = new_bench(ports={"p2": {"mac": "02:00:00:00:00:03", "addresses": ["10.0.2.1/24", "fd00:2::1/64"],
                                    "up": False}},
                      neighbors=[{"to": "10.0.2.2", "dev": "p2", "lladdr": H1},
                                 {"to": "fd00:2::2", "dev": "p2", "lladdr": H1}])
    for _ in range(2):
        bench.error(udp4(dst="10.0.2.2"), 3, 0, reason="no_route")
        bench.error(udp6(dst="fd00:2::2"), 1, 0, reason="no_route")
        bench.ctl.text("link", "set", "p2", "up")
        bench.quiet.clear()
        bench.forwards(udp4(dst="10.0.2.2"), out="p2", dst=H1)
        bench.forwards(udp6(dst="fd00:2::2"), out="p2", dst=H1)
        bench.ctl.text("link", "set", "p2", "down")
        bench.quiet.add("p2")
        back = {"src": H1, "dst": "02:00:00:00:00:03"}
        bench.drops(udp4(src="10.0.2.2", eth=back), "netdev_down", into="p2", times=1)


def test_check_N122_no_address_no_input(new_bench):
    bench = new_bench(ports={"p2": {"mac": "02:00:00:00:00:03"}})
    eth = {"src": "02:aa:00:00:02:02", "dst": "02:00:00:00:00:03"}
    four, six = udp4(src="10.0.2.2", eth=eth), udp6(src="fd00:2::2", eth=eth)
    for _ in range(2):
        bench.drops(four, "ip_disabled", into="p2")
        bench.ctl.text("addr", "add", "10.0.2.1/24", "dev", "p2")
        bench.forwards(four, into="p2")
        bench.ctl.text("addr", "del", "10.0.2.1/24", "dev", "p2")
    bench.ctl.text("addr", "add", "fd00:2::1/64", "dev", "p2")
    bench.forwards(six, into="p2")
    bench.ctl.text("addr", "del", "fd00:2::1/64", "dev", "p2")


def test_link_state_is_followed(bench):
    """The cable of p1 is pulled and put back."""
    tap = bench.taps["p1"]

    def running(wanted):
        deadline = time.monotonic() + 4
        while bench.ctl.links()["p1"]["running"] != wanted:
            assert time.monotonic() < deadline, f"p1 does not become {'running' if wanted else 'not running'}"
            time.sleep(0.05)

    running(True)
    bench.router.run("ip", "link", "set", tap, "down")
    running(False)
    bench.router.run("ip", "link", "set", tap, "up")
    running(True)
    bench.settle()
    bench.forwards(udp4())
    bench.forwards(udp6())


def test_ports_added_and_deleted_at_run_time(bench):
    routes = bench.ctl.routes()
    for _ in range(5):
        bench.ctl.text("link", "add", "p7", "device", "net_tap7,iface=t7")
        bench.ctl.text("addr", "add", "10.0.7.1/24", "dev", "p7")
        bench.ctl.text("route", "add", "203.0.113.0/24", "via", "10.0.7.2")
        assert "t7" in bench.router.links() and "p7" in bench.ctl.links()
        bench.forwards(udp4(), times=1)
        bench.ctl.text("link", "del", "p7")
        assert "t7" not in bench.router.links() and "p7" not in bench.ctl.links()
        bench.error(udp4(dst="203.0.113.9"), 3, 0, reason="no_route", times=1)
    assert bench.ctl.routes() == routes
