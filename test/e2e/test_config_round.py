# SPDX-License-Identifier: BSD-3-Clause
"""A file with everything in it: shown, loaded again, changed by reloads. What did not change is not touched."""

import copy
import time

import pytest
from bench import WireBench
from sites import count_out, eth, from4, from6, host_mac, neighbors, port, port_mac, wide

EVERYTHING = {
    "vlans": {"v5": {"link": "p1", "id": 5, "addresses": ["10.50.0.1/24", "fd00:50::1/64"], "mark": 3}},
    "vrfs": {"blue": {"table": 10, "interfaces": ["v5"]}},
    "nexthops": {1: {"via": "10.0.1.2", "dev": "p1"}, 2: {"via": "fd00:1::2"}, 3: {"dev": "p1"}, 4: {"type": "blackhole"},
                 10: {"group": {1: 1, 2: 3}},
                 11: {"group": {1: 1, 2: 1}, "resilient": {"buckets": 32, "idle-timer": "60s"}}},
    "routes": [{"to": "192.0.2.0/24", "nexthop": 10}, {"to": "2001:db8:2::/48", "nexthop": 2},
               {"to": "198.51.100.0/24", "via": "10.0.1.2", "metric": 5, "mtu": 1400},
               {"to": "198.51.100.0/24", "nexthop": 11, "metric": 9}, {"to": "10.66.0.0/16", "type": "prohibit"},
               {"to": "default", "via": "10.50.0.2", "table": 10}, {"to": "10.50.0.0/24", "vrf": "blue"}],
    "routing-policy": [{"priority": 10, "from": "10.0.0.128/25", "iif": "p0", "table": 10},
                       {"priority": 11, "protocol": "udp", "dport": 99, "set-mark": 5, "family": "ipv6"},
                       {"priority": 12, "mark": 5, "type": "prohibit", "family": "ipv6"}],
    "multipath-hash": {"ipv4": {"policy": "l3"}},
    "netns": {"a": {"ports": {"p0": port(0, 1), "p1": port(1, 1)}, "neighbors": neighbors([0, 1], 1),
                    "nexthops": {1: {"via": "10.0.1.2"}}, "routes": [{"to": "default", "nexthop": 1}],
                    "routing-policy": [{"priority": 1, "family": "ipv4", "dscp": 46, "type": "blackhole"}]}},
}


@pytest.fixture
def everything():
    running = WireBench(**wide(3, **EVERYTHING))
    yield running
    running.close()


def workers(bench):
    return [{name: row[name] for name in ("hits", "misses", "stale", "inserts")}
            for row in bench.ctl.json("cache", "show")["workers"]]


def generations(bench):
    return {row["name"]: (row["ipv4_generation"], row["ipv6_generation"]) for row in bench.ctl.json("netns", "show")}


FLOWS = [from4(0, f"192.0.2.{n}") for n in range(1, 60)]


def hits(bench):
    """Of FLOWS, sent again."""
    before = sum(row["hits"] for row in workers(bench))
    assert count_out(bench, FLOWS) == {"p1": len(FLOWS)}
    return sum(row["hits"] for row in workers(bench)) - before


def test_config_show_loads_as_nothing_to_do(everything):
    """The file, a file of what is shown, and a hang-up: caches stay warm, counters and learned neighbors are there."""
    bench = everything
    shown = bench.ctl.json("config", "show")["yaml"]
    for _ in range(20):
        if hits(bench) == len(FLOWS):
            break
    before = generations(bench), bench.ctl.json("nexthop", "show"), bench.ctl.json("route", "show", "table", "all")
    counters = bench.ctl.counters()["p0"]["rx_packets"]
    bench.ctl.text("config", "reload")
    copied = bench.daemon.folder / "shown.yaml"
    copied.write_text(shown)
    bench.ctl.text("config", "reload", copied)
    bench.daemon.hang_up()
    time.sleep(0.3)
    assert bench.ctl.json("config", "show")["yaml"] == shown
    assert (generations(bench), bench.ctl.json("nexthop", "show"), bench.ctl.json("route", "show", "table", "all")) == before
    assert bench.ctl.counters()["p0"]["rx_packets"] == counters
    assert hits(bench) == len(FLOWS)
    # It does what it says.
    bench.forwards(from6(0, "2001:db8:2::9"), out="p1", dst=host_mac(1))
    bench.error(from6(0, "2001:db8:2::9", dport=99), 1, 1, reason="route_prohibit", dst=host_mac(0))
    bench.forwards(from4(0, "203.0.113.1", 1), into="a/p0", out="a/p1", dst=host_mac(1, 1))
    bench.drops(from4(0, "203.0.113.1", 1, tos=0xB8), "route_blackhole", into="a/p0", netdev="a/p0")


def test_hang_ups_add_and_take_away(everything):
    """Each section in turn leaves and comes back; the rest works on, and at the end it is the first state."""
    bench = everything
    shown = bench.ctl.json("config", "show")["yaml"]
    config = bench.daemon.config

    def hang_up(wanted):
        bench.daemon.write(wanted)
        bench.daemon.hang_up()
        deadline = time.monotonic() + 5
        loaded = bench.daemon.log_text().count(": loaded")
        while bench.daemon.log_text().count(": loaded") <= counted[0] and time.monotonic() < deadline:
            time.sleep(0.02)
        counted[0] = max(loaded, bench.daemon.log_text().count(": loaded"))

    counted = [bench.daemon.log_text().count(": loaded")]
    without_rules = {key: value for key, value in config.items() if key != "routing-policy"}
    hang_up(without_rules)
    assert bench.ctl.json("rule", "show") == []
    bench.forwards(from6(0, "2001:db8:2::9", dport=99), out="p1", dst=host_mac(1), times=1)
    hang_up(config)
    assert len(bench.ctl.json("rule", "show")) == 3
    bench.error(from6(0, "2001:db8:2::9", dport=99), 1, 1, reason="route_prohibit", dst=host_mac(0), times=1)

    fewer = copy.deepcopy(config)
    fewer["nexthops"] = {key: value for key, value in config["nexthops"].items() if key not in (10, 11, "10", "11")}
    fewer["routes"] = [route for route in config["routes"] if route.get("nexthop") not in (10, 11)]
    hang_up(fewer)
    bench.error(from4(0, "192.0.2.9"), 3, 0, reason="no_route", dst=host_mac(0), times=1)
    bench.forwards(from6(0, "2001:db8:2::9"), out="p1", dst=host_mac(1))
    hang_up(config)
    bench.forwards(from4(0, "192.0.2.9"), out="p1", dst=host_mac(1))

    no_vrf = copy.deepcopy(config)
    del no_vrf["vrfs"]
    no_vrf["routes"] = [route for route in config["routes"] if "vrf" not in route]
    hang_up(no_vrf)
    assert bench.ctl.json("vrf", "show") == []
    hang_up(config)
    assert [row["name"] for row in bench.ctl.json("vrf", "show")] == ["blue"]
    assert bench.ctl.json("config", "show")["yaml"] == shown
    bench.forwards(from4(0, "203.0.113.1", 1), into="a/p0", out="a/p1", dst=host_mac(1, 1))


def test_a_port_moves_by_reload(everything):
    """From the default netns into a new one, and back; a bad file in between changes nothing."""
    bench = everything
    config = bench.daemon.config
    bench.forwards(from4(0, "10.0.2.2"), out="p2", dst=host_mac(2))
    moved = copy.deepcopy(config)
    there = moved["ports"].pop("p2")
    moved["neighbors"] = [row for row in moved["neighbors"] if row["dev"] != "p2"]
    moved["netns"]["b"] = {"ports": {"p2": there}, "neighbors": neighbors([2])}
    bench.daemon.reload(moved)
    assert "p2" not in bench.ctl.links() and "p2" in bench.ctl.within("b").links()
    bench.error(from4(0, "10.0.2.2"), 3, 0, reason="no_route", dst=host_mac(0))
    bench.error(from4(2, "10.0.0.2"), 3, 0, into="p2", reason="no_route", dst=host_mac(2))
    shown = bench.ctl.json("config", "show")
    bad = copy.deepcopy(moved)
    bad["netns"]["b"]["routes"] = [{"to": "default", "via": "172.16.0.1"}]
    bench.daemon.write(bad)
    assert "172.16.0.1" in bench.ctl.refused("config", "reload")
    assert bench.ctl.json("config", "show") == shown
    bench.daemon.reload(config)
    assert {row["name"] for row in bench.ctl.json("netns", "show")} == {"default", "a"}
    bench.forwards(from4(0, "10.0.2.2"), out="p2", dst=host_mac(2))
    bench.forwards(from4(2, "10.0.0.2"), into="p2", out="p0", dst=host_mac(0))
