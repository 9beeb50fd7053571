#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds the tree to ARCHITECTURE.md's module order.

usage: check_layers.py [TREE]         prints every violation; exit status 1 if there is one
       check_layers.py --self-test    shows on small trees that each rule can fail
"""

import pathlib
import re
import sys
import tempfile

# What each module may include besides itself.
MAY_SEE = {
    "base": set(),
    "net": {"base"},
    "config": {"base", "net"},
    "dpdk": {"base", "net"},
    "stats": {"base", "net", "dpdk"},
    "fib": {"base", "net", "dpdk", "stats"},
    "pipeline": {"base", "net", "dpdk", "stats", "fib"},
    "control": {"base", "net", "dpdk", "stats", "fib", "pipeline", "config"},
    "app": {"base", "net", "dpdk", "stats", "fib", "pipeline", "config", "control"},
}

# Libraries of others: how an include of theirs looks, and who may use them.
EXTERNAL = {
    "dpdk": (re.compile(r"rte_|generic/rte_"), {"dpdk", "pipeline", "control", "app"}),
    "yaml": (re.compile(r"yaml-cpp/"), {"config"}),
    "json": (re.compile(r"nlohmann/"), {"control", "app"}),
    "cli11": (re.compile(r"CLI/"), {"app"}),
    "spdlog": (re.compile(r"spdlog/"), {"control", "app"}),
    "boost": (re.compile(r"boost/"), {"fib", "pipeline", "control", "app"}),
    "fmt": (re.compile(r"fmt/"), set(MAY_SEE)),
}

# DPDK handles are born and die in lib/dpdk only.
RAW_CREATORS = re.compile(
    r"\b(rte_eal_init|rte_eal_cleanup|rte_eal_hotplug_\w+|rte_dev_probe|rte_dev_remove"
    r"|rte_vdev_init|rte_vdev_uninit|rte_pktmbuf_pool_create\w*|rte_mempool_create\w*"
    r"|rte_mempool_free|rte_(?:ring|hash|lpm6?|fib6?|rib6?|acl|stack)_(?:create|free)\w*"
    r"|rte_ring_init|rte_rcu_qsbr_init|rte_rcu_qsbr_dq_(?:create|delete)"
    r"|rte_(?:malloc|zmalloc|calloc|realloc)(?:_socket)?|rte_free|rte_memzone_(?:reserve\w*|free)"
    r"|rte_eth_dev_(?:configure|start|stop|close)|rte_eth_[rt]x_queue_setup"
    r"|rte_mbuf_dyn(?:field|flag)_register\w*|rte_pdump_(?:init|uninit))\s*\("
)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
RELEASE = re.compile(r"\bRTE_VER(?:SION|_YEAR|_MONTH)")
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
SPDX_SUFFIXES = {".cc", ".h", ".py", ".sh", ".yaml", ".yml", ".build"}
SPDX_PLACES = ("app", "lib", "test", "scripts", "conf", ".ci")


def module_of(path, tree):
    """'app' or the name under lib/."""
    parts = path.relative_to(tree).parts
    return parts[1] if parts[0] == "lib" else parts[0]


def sources(tree, places):
    for place in places:
        for path in sorted((tree / place).rglob("*")):
            if path.suffix in (".cc", ".h") and path.is_file():
                yield path


def lines(path):
    """Numbered lines; block comments are rare enough here to be looked at, too."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        yield number, re.sub(r"//.*", "", line)


def check_source(path, tree):
    module = module_of(path, tree)
    if module not in MAY_SEE:
        yield 1, f"'{module}' is no module of ARCHITECTURE.md"
        return
    for number, line in lines(path):
        match = INCLUDE.match(line)
        if match and match[1] == '"':
            yield from ((number, text) for text in check_own_include(match[2], module, path, tree))
        elif match:
            for name, (pattern, users) in EXTERNAL.items():
                if pattern.match(match[2]) and module not in users:
                    yield number, f"module '{module}' may not use {name} (<{match[2]}>)"
        match = RAW_CREATORS.search(line)
        if match and module != "dpdk":
            yield number, f"{match[1]} belongs into lib/dpdk, behind an owner"
        if RELEASE.search(line) and module != "dpdk":
            yield number, "only lib/dpdk knows which DPDK release it is"


def check_own_include(name, module, path, tree):
    target = name.split("/")[0]
    if "/" not in name:
        # The daemon's own headers lie beside it; in lib/ every include names its module.
        if module != "app" or not (path.parent / name).is_file():
            yield f'"{name}": write the module, as in "{module}/{name}"'
    elif target not in MAY_SEE:
        yield f'"{name}" names no module'
    elif target != module and target not in MAY_SEE[module]:
        yield f"module '{module}' may not include from '{target}' (\"{name}\")"
    elif target != "app" and not (tree / "lib" / name).is_file():
        yield f'"{name}" is not there'


def check_meson(tree):
    """Each module's meson.build names only the dependencies that MAY_SEE and EXTERNAL allow."""
    builds = [tree / "lib" / module / "meson.build" for module in MAY_SEE if module != "app"]
    builds = [path for path in builds + [tree / "app" / "meson.build"] if path.is_file()]
    texts = {path: re.sub(r"#.*", "", path.read_text()) for path in builds}
    owner = {}  # a module may split itself into several libraries
    for path, text in texts.items():
        for name in re.findall(r"^\s*(\w+_dep)\s*=", text, re.M):
            owner[name] = module_of(path, tree)
    for path, text in texts.items():
        module = module_of(path, tree)
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"\b\w+_dep\b", line):
                target = owner.get(name)
                if target is None:
                    yield path, number, f"{name} is defined by no module"
                elif target != module and target not in MAY_SEE[module]:
                    yield path, number, f"module '{module}' may not depend on '{target}'"
            for name in re.findall(r"\b(\w+)_ext\b", line):
                if module not in EXTERNAL.get(name, (None, set()))[1]:
                    yield path, number, f"module '{module}' may not depend on {name}_ext"


def needs_spdx(path):
    if path.suffix in SPDX_SUFFIXES or path.name in ("meson_options.txt", "packages.txt"):
        return True
    return path.suffix == "" and path.read_bytes()[:2] == b"#!"


def check_licence(tree):
    places = [path for place in SPDX_PLACES for path in sorted((tree / place).rglob("*"))]
    for path in [tree / "meson.build", tree / "meson_options.txt", *places]:
        if path.is_file() and "__pycache__" not in path.parts and needs_spdx(path):
            head = path.read_text(encoding="utf-8", errors="replace").splitlines()[:3]
            if not any(SPDX in line for line in head):
                yield path, 1, f"no '{SPDX}' in the first lines"


def violations(tree):
    for path in sources(tree, ("lib", "app")):
        for number, text in check_source(path, tree):
            yield path, number, text
    yield from check_meson(tree)
    yield from check_licence(tree)


def report(tree):
    found = list(violations(tree))
    for path, number, text in found:
        print(f"{path.relative_to(tree)}:{number}: {text}")
    checked = sum(1 for _ in sources(tree, ("lib", "app")))
    if checked == 0:
        print(f"{tree}: no sources found")
        return 1
    print(f"{checked} sources, {len(found)} violations")
    return 1 if found else 0


HEAD = f"// {SPDX}\n"
BUILD = f"# {SPDX}\n"

# name, files added to a good tree, words of the one violation wanted (None: none)
SELF_TESTS = [
    ("good tree", {}, None),
    ("upward include", {"lib/net/a.cc": HEAD + '#include "fib/dst.h"\n'}, "may not include from 'fib'"),
    ("config sees dpdk", {"lib/config/a.cc": HEAD + '#include "dpdk/eal.h"\n'}, "may not include from 'dpdk'"),
    ("fib sees config", {"lib/fib/a.cc": HEAD + '#include "config/model.h"\n'}, "may not include from 'config'"),
    ("control sees config", {"lib/control/a.cc": HEAD + '#include "config/model.h"\n'}, None),
    ("library sees app", {"lib/control/a.cc": HEAD + '#include "app/main.h"\n'}, "may not include from 'app'"),
    ("bare include", {"lib/net/a.cc": HEAD + '#include "checksum.h"\n'}, "write the module"),
    ("missing header", {"lib/net/a.cc": HEAD + '#include "net/none.h"\n'}, "is not there"),
    ("unknown module", {"lib/extra/a.cc": HEAD}, "no module of ARCHITECTURE.md"),
    ("DPDK in net", {"lib/net/a.cc": HEAD + "#include <rte_ip.h>\n"}, "may not use dpdk"),
    ("yaml-cpp in control", {"lib/control/a.cc": HEAD + "#include <yaml-cpp/yaml.h>\n"}, "may not use yaml"),
    ("raw creator", {"lib/fib/a.cc": HEAD + 'auto* r = rte_ring_create("x", 8, 0, 0);\n'}, "rte_ring_create belongs"),
    ("raw free", {"lib/pipeline/a.cc": HEAD + "rte_mempool_free(pool);\n"}, "rte_mempool_free belongs"),
    ("an mbuf is no handle", {"lib/pipeline/a.cc": HEAD + "rte_pktmbuf_free(m);\n"}, None),
    ("creator in its place", {"lib/dpdk/a.cc": HEAD + "rte_mempool_free(pool);\n"}, None),
    ("release elsewhere", {"lib/pipeline/a.cc": HEAD + "#if RTE_VERSION >= 1\n"}, "which DPDK release"),
    ("release in its place", {"lib/dpdk/a.cc": HEAD + "#if RTE_VERSION >= 1\n"}, None),
    ("no licence", {"test/net/a.cc": "int x;\n"}, "SPDX"),
    ("no licence in a script", {"scripts/x": "#!/bin/sh\n"}, "SPDX"),
    ("no licence in a build file", {"test/meson.build": "x\n"}, "SPDX"),
    ("upward dependency", {"lib/net/meson.build": BUILD + "x = [fib_dep]\n"}, "may not depend on 'fib'"),
    ("external dependency", {"lib/net/meson.build": BUILD + "x = [dpdk_ext]\n"}, "may not depend on dpdk_ext"),
    ("unknown dependency", {"lib/net/meson.build": BUILD + "x = [odd_dep]\n"}, "defined by no module"),
]


def self_test():
    good = {
        "lib/base/id.h": HEAD,
        "lib/net/checksum.h": HEAD + '#include <array>\n#include "base/id.h"\n',
        "lib/config/model.h": HEAD,
        "lib/dpdk/eal.h": HEAD + "#include <rte_eal.h>\n",
        "lib/fib/dst.h": HEAD,
        "lib/fib/meson.build": BUILD + "fib_dep = declare_dependency(dependencies: [fmt_ext])\n",
        "app/main.cc": HEAD + '#include "dpdk/eal.h"\n',
        "app/main.h": HEAD,
    }
    failed = 0
    for name, added, wanted in SELF_TESTS:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for file, text in {**good, **added}.items():
                path = tree / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            texts = [text for _, _, text in violations(tree)]
        fine = not texts if wanted is None else len(texts) == 1 and wanted in texts[0]
        if not fine:
            failed += 1
            print(f"{name}: wanted {wanted!r}, found {texts}")
    print(f"{len(SELF_TESTS)} rules tried, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parent.parent
    sys.exit(report(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else here))
