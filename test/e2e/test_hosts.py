# SPDX-License-Identifier: BSD-3-Clause
"""Real clients of the kernel's hosts through sluice: what a newcomer tries first."""

import re
import time

import pytest


def ping(host, target, *options, count=3, check=True):
    return host.run("ping", "-n", "-c", count, "-i", 0.05, "-W", 3, *options, target, check=check)


@pytest.mark.parametrize("target", ["10.0.1.2", "192.0.2.9"])
def test_check_A001_ping_ipv4(hosts, target):
    for _ in ("cold", "warm"):
        out = ping(hosts.h0, target).stdout
        assert " 0% packet loss" in out and "ttl=63" in out, out
    assert " 0% packet loss" in ping(hosts.h1, "10.0.0.2").stdout


@pytest.mark.parametrize("target", ["fd00:1::2", "2001:db8:2::9"])
def test_check_A002_ping_ipv6(hosts, target):
    for _ in ("cold", "warm"):
        out = ping(hosts.h0, target).stdout
        assert " 0% packet loss" in out and "ttl=63" in out, out
    assert " 0% packet loss" in ping(hosts.h1, "fd00::2").stdout


def test_ping_of_the_router(hosts):
    for target in ("10.0.0.1", "10.0.1.1", "fd00::1", "fd00:1::1"):
        assert " 0% packet loss" in ping(hosts.h0, target).stdout


def test_ping_with_record_route(hosts):
    """IPv4 options in transit pass untouched."""
    assert " 0% packet loss" in ping(hosts.h0, "192.0.2.9", "-R").stdout


def hops(output):
    return re.findall(r"^\s*\d+\s+(\S+)", output, re.M)


@pytest.mark.parametrize("options, first, target", [
    (["-4"], "10.0.0.1", "192.0.2.9"),
    (["-4", "-I"], "10.0.0.1", "192.0.2.9"),
    (["-6"], "fd00::1", "2001:db8:2::9"),
    (["-6", "-I"], "fd00::1", "2001:db8:2::9"),
])
def test_case_A05_traceroute(hosts, options, first, target):
    out = hosts.h0.run("traceroute", "-n", "-q", 1, "-w", 3, "-m", 5, *options, target).stdout
    assert hops(out) == [first, target], out


@pytest.mark.parametrize("target", ["10.0.1.1", "10.0.0.1", "fd00:1::1", "fd00::1"])
def test_case_B31_traceroute_to_the_box(hosts, target):
    """UDP to a high port of the router is answered with port unreachable, which ends the trace."""
    family = "-6" if ":" in target else "-4"
    out = hosts.h0.run("traceroute", family, "-n", "-q", 1, "-w", 3, "-m", 5, target).stdout
    assert hops(out) == [target], out
    assert hosts.daemon.alive()


@pytest.mark.parametrize("options, first, target", [
    ([], "10.0.0.1", "192.0.2.9"), (["-6"], "fd00::1", "2001:db8:2::9")])
def test_tracepath(hosts, options, first, target):
    out = hosts.h0.run("tracepath", *options, "-n", target).stdout
    assert first in out and f"{target} " in out and "reached" in out and "pmtu 1500" in out, out


# iperf3's UDP server answers from its interface's address, so that is the one to call.
@pytest.mark.parametrize("target", ["10.0.1.2", "fd00:1::2"])
@pytest.mark.parametrize("options", [[], ["-u", "-b", "20M"]], ids=["tcp", "udp"])
def test_case_C44_iperf(hosts, target, options):
    """A host with its offloads on: nothing longer than the MTU is made of its segments."""
    before = hosts.ctl.counters()
    server = hosts.h1.popen("iperf3", "--server", "--one-off", stdout=-3, stderr=-3)
    try:
        deadline = time.monotonic() + 5
        while "5201" not in hosts.h1.run("ss", "-Hltn").stdout:
            assert time.monotonic() < deadline, "iperf3 does not listen"
            time.sleep(0.05)
        out = hosts.h0.run("timeout", 15, "iperf3", "--client", target, "--time", 1, "--json", *options).stdout
        assert '"bits_per_second"' in out and '"error"' not in out, out
    finally:
        server.kill()
        server.wait()
    after = hosts.ctl.counters()
    for name in ("p0", "p1"):
        for reason in ("ipv4_truncated", "ipv6_truncated", "tx_too_big", "fragmentation_needed", "packet_too_big"):
            assert after[name]["drops"].get(reason, 0) == before[name]["drops"].get(reason, 0), reason


@pytest.mark.parametrize("address", ["10.0.0.1", "10.0.1.1"])
def test_case_D51_arping(hosts, address):
    """Strict: a port answers for its own addresses alone, not for those of other ports."""
    tap = hosts.taps["p0"]
    done = hosts.h0.run("arping", "-c", 2, "-w", 3, "-f", "-I", tap, address, check=False)
    assert (done.returncode == 0) == (address == "10.0.0.1"), done.stdout


def test_case_D61_ping_of_the_link_local_address(hosts):
    tap = hosts.taps["p0"]
    out = ping(hosts.h0, f"fe80::ff:fe00:1%{tap}").stdout
    assert " 0% packet loss" in out, out


def test_unreachable_host_and_net(hosts):
    out = ping(hosts.h0, "203.0.113.9", count=1, check=False).stdout
    assert "From 10.0.0.1 icmp_seq=1 Destination Net Unreachable" in out, out
    out = ping(hosts.h0, "2001:db8:ffff::1", count=1, check=False).stdout
    assert "From fd00::1 icmp_seq=1 Destination unreachable: No route" in out, out


def test_neighbors_are_known(hosts):
    ping(hosts.h0, "10.0.1.2")
    ping(hosts.h0, "fd00:1::2")
    for address, dev, mac in (("10.0.0.2", "p0", "02:aa:00:00:00:02"), ("10.0.1.2", "p1", "02:aa:00:00:01:02"),
                              ("fd00::2", "p0", "02:aa:00:00:00:02"), ("fd00:1::2", "p1", "02:aa:00:00:01:02")):
        entry = hosts.ctl.neighbor(address)
        assert entry and entry["dev"] == dev and entry["lladdr"] == mac, entry
        assert entry["state"] in ("reachable", "stale", "delay", "probe"), entry


def test_fragments_of_a_host(hosts):
    """The host fragments; sluice passes the fragments on; the other host puts them together."""
    for target in ("192.0.2.9", "2001:db8:2::9"):
        assert " 0% packet loss" in ping(hosts.h0, target, "-s", 4000).stdout
