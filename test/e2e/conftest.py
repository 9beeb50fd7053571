# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the end-to-end tests. Each bench checks the books when its module is done."""

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from bench import HostBench, WireBench  # noqa: E402


# Told to end (scripts/test has a time limit), the fixtures clean up as after ^C.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="needs root: makes network namespaces and taps"))


@pytest.fixture(scope="module")
def bench():
    """The test bench of cases.md, static neighbors, cables in hand."""
    running = WireBench()
    yield running
    running.close()


@pytest.fixture
def new_bench():
    """Makes benches of other shapes; each is checked and closed with the test."""
    made = []

    def make(*arguments, **options):
        made.append(WireBench(*arguments, **options))
        return made[-1]

    yield make
    for running in made:
        running.close()


@pytest.fixture(scope="module")
def hosts():
    """sluice between two hosts of the kernel."""
    running = HostBench(workers={"idle": "adaptive", "cache": "auto"})
    yield running
    running.close()
