# SPDX-License-Identifier: BSD-3-Clause
"""checks.md B (broadcast forwarding) and M 113; each decision per ingress port."""

import pytest
from bench import WireBench
from frames import BROADCAST, H0, H1, ICMP, IP, R0, R1, Ether, echo4, forwarded_l3, l3, udp4

# ingress port: (host's address and MAC, port's address and MAC, own net's broadcast, the other's)
SIDES = {
    "p0": ("10.0.0.2", H0, "10.0.0.1", R0, "10.0.0.255", "10.0.1.255", "p1", R1),
    "p1": ("10.0.1.2", H1, "10.0.1.1", R1, "10.0.1.255", "10.0.0.255", "p0", R0),
}


def running(**bc_forwarding):
    return WireBench(ports={name: {"bc-forwarding": on} for name, on in bc_forwarding.items()})


@pytest.fixture(scope="module")
def off():
    bench = running()
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def on():
    bench = running(p0=True, p1=True)
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def mixed():
    bench = running(p0=True, p1=False)
    yield bench
    bench.close()


def request(side, dst, mac=None):
    host, host_mac, _, port_mac, *_ = SIDES[side]
    return bytes(echo4(src=host, dst=dst, eth={"src": host_mac, "dst": mac or port_mac}))


def answers(bench, side, dst, mac=None):
    """sluice itself answers from the ingress address, and forwards nothing."""
    for _ in ("cold", "warm"):
        outcome = bench.probe(request(side, dst, mac), side, wait=1)
        assert sum(map(len, outcome.frames.values())) == 1 and len(outcome.frames[side]) == 1, str(outcome)
        reply = IP(l3(outcome.frames[side][0]))
        assert reply[ICMP].type == 0 and reply.src == SIDES[side][2] and reply.dst == SIDES[side][0], str(outcome)


def floods(bench, side, dst):
    """Forwarded as a broadcast of the other link."""
    other, other_mac = SIDES[side][6:8]
    frame = request(side, dst)
    for _ in ("cold", "warm"):
        outcome = bench.probe(frame, side, wait=1)
        assert [l3(got) for got in outcome.frames[other]] == [forwarded_l3(frame)], str(outcome)
        assert not outcome.frames[side] and not outcome.drops, str(outcome)
        ether = Ether(outcome.frames[other][0])
        assert (ether.dst, ether.src) == (BROADCAST, other_mac)


@pytest.mark.parametrize("side", SIDES)
def test_check_B012_off_remote_broadcast_is_answered(off, side):
    answers(off, side, SIDES[side][5])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("mac", [None, BROADCAST])
def test_check_B013_off_own_broadcast_is_answered(off, side, mac):
    answers(off, side, SIDES[side][4], mac)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("mac", [None, BROADCAST])
def test_check_B014_limited_broadcast_is_answered(off, on, side, mac):
    answers(off, side, "255.255.255.255", mac)
    answers(on, side, "255.255.255.255", mac)


@pytest.mark.parametrize("side", SIDES)
def test_check_B015_on_remote_broadcast_is_forwarded(on, side):
    floods(on, side, SIDES[side][5])


@pytest.mark.parametrize("side", SIDES)
def test_check_B016_on_ingress_broadcast_is_dropped(on, side):
    on.drops(request(side, SIDES[side][4]), "destination_broadcast", into=side)


def test_check_B017_decided_per_ingress(mixed):
    """The same destination from one port and the other, in turn: no memory of the other's answer."""
    for _ in range(3):
        floods(mixed, "p0", "10.0.1.255")
        answers(mixed, "p1", "10.0.1.255")
        answers(mixed, "p1", "10.0.0.255")
        mixed.drops(request("p0", "10.0.0.255"), "destination_broadcast", times=1)


@pytest.mark.parametrize("side", SIDES)
def test_check_N121_udp_to_a_directed_broadcast(off, on, side):
    host, host_mac, _, port_mac, _, remote, other, _ = SIDES[side]
    frame = udp4(src=host, dst=remote, eth={"src": host_mac, "dst": port_mac})
    off.silent(frame, into=side)
    on.forwards(frame, into=side, out=other, dst=BROADCAST)


def test_check_M113_never_from_a_cache(off):
    """Between two of each kind comes a good packet from the same host."""
    for _ in range(3):
        off.silent(udp4(dst="10.0.1.255"), times=1)
        off.forwards(udp4(), times=1)
        off.silent(udp4(dst="255.255.255.255"), times=1)
        off.forwards(udp4(), times=1)
        off.silent(udp4(src="0.0.0.0", dst="0.0.0.0"), times=1)
        off.forwards(udp4(), times=1)
