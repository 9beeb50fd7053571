# SPDX-License-Identifier: BSD-3-Clause
"""The configuration of a measured daemon: a capture in by p0, nowhere out by p1."""

import pathlib

MEMORY_MB = 256
HOPS = {"v4": "10.0.1.{}", "v6": "fd00:1::{}"}
ADDRESSES = ('10.0.0.1/24, "fd00::1/64"', '10.0.1.1/24, "fd00:1::1/64"')
HOP_MAC = "02:aa:00:00:01:{:02x}"
VLAN_IN, VLAN_OUT = 100, 200


def gateways(family: str, count: int) -> list:
    return [HOPS[family].format(i + 2) for i in range(count)]


def over_gateways(family: str, prefixes: list, count: int = 1) -> list:
    """Routes, by each gateway in turn."""
    hops = gateways(family, count)
    return [f'{{to: "{prefix}", via: "{hops[i % count]}"}}' for i, prefix in enumerate(prefixes)]


def over_group(prefixes: list, nexthop: int) -> list:
    return [f'{{to: "{prefix}", nexthop: {nexthop}}}' for prefix in prefixes]


def groups(family: str, count: int) -> str:
    """Next hop 10, a group of so many equal ones, which are 1 and on."""
    hops = "".join(f'  {i + 1}: {{via: "{gateway}"}}\n' for i, gateway in enumerate(gateways(family, count)))
    members = ", ".join(f"{i + 1}: 1" for i in range(count))
    return f"nexthops:\n{hops}  10: {{group: {{{members}}}}}\n"


def devices(path: pathlib.Path) -> list:
    """The same for every program."""
    return [f"net_pcap0,rx_pcap={path},infinite_rx=1", "net_null0,no-rx=1"]


def text(path: pathlib.Path, family: str, routes: list, hugepages: bool, *, hops: int = 1, sections: str = "",
         ingress: str = "", vlans: bool = False, memory_mb: int = MEMORY_MB) -> str:
    """`sections`: whole ones; `ingress`: keys of the netdev that packets come in by; `vlans`: tagged in and out."""
    source, sink = devices(path)
    lines = "\n".join
    ports = [f'device: "{source}", mac: "02:00:00:00:00:01", rx-queues: 1',
             f'device: "{sink}", mac: "02:00:00:00:00:02", rx-queues: 1']
    netdevs = [f"addresses: [{ADDRESSES[0]}]{', ' if ingress else ''}{ingress}", f"addresses: [{ADDRESSES[1]}]"]
    if vlans:
        tagged = (f"vlans:\n  in: {{link: p0, id: {VLAN_IN}, {netdevs[0]}}}\n"
                  f"  out: {{link: p1, id: {VLAN_OUT}, {netdevs[1]}}}\n")
    else:
        ports = [f"{port}, {netdev}" for port, netdev in zip(ports, netdevs)]
        tagged = ""
    out = "out" if vlans else "p1"
    neighbors = [f'  - {{to: "{gateway}", dev: {out}, lladdr: "{HOP_MAC.format(i + 2)}"}}'
                 for i, gateway in enumerate(gateways(family, hops))]
    return f"""version: 1
dpdk: {{lcores: [0, 1], hugepages: {str(hugepages).lower()}, memory-mb: {memory_mb}}}
workers: {{idle: poll}}
control: {{socket: SOCKET}}
ports:
  p0: {{{ports[0]}}}
  p1: {{{ports[1]}}}
{tagged}{sections}routes:
{lines(f"  - {route}" for route in routes)}
neighbors:
{lines(neighbors)}
"""
