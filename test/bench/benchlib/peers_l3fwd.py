# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own example router, built from the sources that Debian's dpdk-doc has, by the flags that are best for it."""

import pathlib
import subprocess
import tempfile

from . import daemon_config
from .process import WORKER_LCORE, DpdkProgram, memory_arguments

INSTALLED = pathlib.Path("/usr/share/dpdk/examples")
SOURCES = ["main.c", "l3fwd_acl.c", "l3fwd_lpm.c", "l3fwd_fib.c", "l3fwd_em.c", "l3fwd_event.c", "l3fwd_event_generic.c",
           "l3fwd_event_internal_port.c"]
# As good as -march=corei7, Debian's, within the noise; linked statically it needs 4 to 9 % less, since shared drivers call a
# function to find their thread's own memory.
FLAGS = ["-O3", "-march=native", "-DALLOW_EXPERIMENTAL_API", "-I../common", "-w"]
# Named one by one: what `pkg-config --static libdpdk` names wants packages that libdpdk-dev does not bring.
DRIVERS = ["bus_vdev", "mempool_ring", "net_pcap", "net_null"]
LIBRARIES = ["acl", "cmdline", "cryptodev", "eal", "ethdev", "eventdev", "fib", "hash", "kvargs", "lpm", "mbuf", "mempool",
             "meter", "net", "rcu", "rib", "ring", "telemetry", "timer"]
LINK = ["-Wl,--whole-archive", *[f"-l:librte_{name}.a" for name in DRIVERS], "-Wl,--no-whole-archive", "-Wl,--start-group",
        *[f"-l:librte_{name}.a" for name in LIBRARIES], "-Wl,--end-group", "-lpcap", "-lnuma", "-lbsd", "-lm", "-ldl", "-pthread"]
# file -> [(what stands there, what shall)]; each must be there exactly once.
NO_OFFLOAD = {"main.c": [("\t\t.offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM,\n", "")]}
LARGE_FIB = {"l3fwd_fib.c": [("config_ipv4.max_routes = (1 << 16);", "config_ipv4.max_routes = (1 << 20);"),
                             ("config.max_routes = (1 << 16) - 1;", "config.max_routes = (1 << 18);"),
                             ("config.trie.num_tbl8 = (1 << 15);", "config.trie.num_tbl8 = (1 << 19);")]}
LPM_ROUTES = 1024  # compiled in; rte_lpm's time to add is quadratic, so no more would do
MEMORY_MB = {False: 256, True: 1536}


def edit(text: str, changes: list, name: str) -> str:
    for old, new in changes:
        if text.count(old) != 1:
            raise RuntimeError(f"{name} of l3fwd is not as expected: {old.strip()!r} is there {text.count(old)} times")
        text = text.replace(old, new)
    return text


def _run(arguments: list, where: pathlib.Path) -> str:
    done = subprocess.run(arguments, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}:\n{done.stderr[-2000:]}")
    return done.stdout


def _examples(cache: pathlib.Path) -> pathlib.Path:
    """Where Debian's package is not installed it is fetched and unpacked, not installed."""
    if (INSTALLED / "l3fwd").is_dir():
        return INSTALLED
    unpacked = cache / "dpdk-doc"
    if not (unpacked / "usr/share/dpdk/examples/l3fwd").is_dir():
        version = _run(["dpkg-query", "-W", "-f", "${Version}", "libdpdk-dev"], cache)
        _run(["apt-get", "download", f"dpdk-doc={version}"], cache)
        _run(["dpkg-deb", "-x", next(cache.glob("dpdk-doc_*.deb")), unpacked], cache)
    return unpacked / "usr/share/dpdk/examples"


def _compile_flags() -> list:
    return _run(["pkg-config", "--cflags", "libdpdk"], pathlib.Path("/")).split()


def build(directory: str, large: bool) -> pathlib.Path:
    """`large`: its fib holds a full table. Built once for each build directory and release."""
    cache = pathlib.Path(directory).resolve() / "peers"
    version = _run(["pkg-config", "--modversion", "libdpdk"], pathlib.Path("/")).strip()
    binary = cache / f"l3fwd-{version}{'-large' if large else ''}"
    if binary.exists():
        return binary
    cache.mkdir(exist_ok=True)
    examples = _examples(cache)
    changes = NO_OFFLOAD | (LARGE_FIB if large else {})
    with tempfile.TemporaryDirectory(dir=cache) as work:
        for name in ("common", "l3fwd"):
            for source in (examples / name).rglob("*.[ch]"):
                target = pathlib.Path(work) / source.relative_to(examples)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(edit(source.read_text(encoding="utf-8"), changes.get(source.name, []), source.name),
                                  encoding="utf-8")
        compiler = ["gcc", *_compile_flags(), *FLAGS, *SOURCES]  # the last -march counts
        _run([*compiler, "-o", binary, *LINK], pathlib.Path(work) / "l3fwd")
    return binary


def write_rules(path: pathlib.Path, prefixes: list) -> None:
    path.write_text("".join(f"R{prefix} 1\n" for prefix in prefixes), encoding="ascii")


class L3fwd(DpdkProgram):
    def __init__(self, binary: pathlib.Path, mode: str, devices: list, rules: dict, hugepages: bool, name: str, large: bool):
        """`rules`: a file for each family, both wanted."""
        super().__init__()
        # A longer RX queue only makes its pool larger: the frames of a capture take 8,000 of the usual 8,192.
        self._start([binary, "-l", str(WORKER_LCORE), "--no-pci", *memory_arguments(hugepages, MEMORY_MB[large]),
                     f"--file-prefix={name}", *[f"--vdev={device}" for device in devices], "--", "-p", "3",
                     f"--config=(0,0,{WORKER_LCORE})", "--parse-ptype", f"--lookup={mode}", f"--rule_ipv4={rules['v4']}",
                     f"--rule_ipv6={rules['v6']}", f"--eth-dest=1,{daemon_config.HOP_MAC.format(2)}", "--rx-queue-size=8192"],
                    name, tempfile.TemporaryFile("w+", encoding="utf-8"))
        self.wait_until_forwarding()
