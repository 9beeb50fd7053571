# SPDX-License-Identifier: BSD-3-Clause
"""What is routed by: ten routes, or as many as the Internet has; and destinations all over them."""

import ipaddress
import pathlib
import random
import subprocess
import sys

from . import pcap

FULL = {"v4": 900_000, "v6": 200_000}
QUICK = {"v4": 150_000, "v6": 100_000}  # costs as many levels and a fraction of the time to load
SEED = 20261130


def _generated(build: str, family: str, count: int) -> list:
    program = pathlib.Path(build) / "test" / "bench" / "print_prefixes"
    if not program.exists():
        sys.exit(f"{program} is not there: meson setup {build} && meson compile -C {build}")
    return subprocess.run([program, family, str(count)], capture_output=True, text=True, check=True).stdout.split()


def _usable(prefix: str) -> bool:
    """Not where the routers' own addresses are, and no martian."""
    return not prefix.startswith(("10.", "127.", "0."))


def full(options, family: str) -> list:
    if options.prefixes:
        lines = pathlib.Path(options.prefixes).read_text(encoding="ascii").split()
        prefixes = [line for line in lines if (":" in line) == (family == "v6")]
    else:
        prefixes = _generated(options.build, family, (QUICK if options.quick else FULL)[family])
    return [prefix for prefix in prefixes if _usable(prefix)]


def destinations(prefixes: list, count: int) -> list:
    """An address in each of so many prefixes, drawn at random."""
    rng = random.Random(SEED)
    found = []
    for prefix in rng.sample(prefixes, min(count, len(prefixes))):
        network = ipaddress.ip_network(prefix)
        found.append(str(network[rng.randrange(network.num_addresses)]))
    return found


class Table:
    def __init__(self, options, family: str, name: str):
        self.family, self.name = family, name
        self.prefixes = pcap.routes(family) if name == "small" else full(options, family)

    def destinations(self, count: int) -> list:
        if self.name == "small":
            return pcap.destinations(self.family, count)
        return destinations(self.prefixes, count)
