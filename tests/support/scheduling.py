"""Tests that stay in one worker of the test runner, one after the other.

Marks of pytest-xdist do not do it: it reads groups from the ids of tests, where pytest no longer lets it write them.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.support.costly import costly

BY_MODULE = (
    "attacks/test_faults.py",
    "coordinator/",
    "crypto/compiled/",
    "deploy/",
    "end_to_end/",
    "evaluation/",
    "jobs/",
    "jointcut/",
    "matrix/",
    "party/",
    "test_citations.py",
    "test_documents.py",
    "test_drawn.py",
    "test_layering.py",
    "test_prose.py",
)
"""The tests of a module here stay together: many share daemons that a fixture started, or texts that they read."""

SIMULATED = frozenset(
    {
        "coordinator/test_cli.py",
        "coordinator/test_progress.py",
        "coordinator/test_owner_figures.py",
        "coordinator/test_simulate.py",
        "coordinator/test_vertical.py",
        "end_to_end/test_results.py",
        "jobs/lkc/test_report.py",
        "jointcut/api/test_simulated.py",
        "jointcut/test_launcher.py",
        "test_places.py",
        "test_readme.py",
    }
)
"""All these stay together: `coordinator simulate` and `demo` with daemons, whose ports the system chooses."""


def unit_of(test: str) -> str:
    """Return the unit of a test, named by its id: tests of one unit share a worker."""
    module = test.partition("::")[0].removeprefix("tests/")
    if module in SIMULATED:
        return "simulated"
    return module if module.startswith(BY_MODULE) else test


_OTHERS_S = 0.05
"""Mean seconds of a test that is not costly."""


def seconds_of(tests: Collection[str], costs: Mapping[str, float]) -> float:
    """Return the seconds that a unit takes. tests: ids of its tests; costs: seconds of the costly tests by name."""
    names = {test.partition("[")[0].removeprefix("tests/") for test in tests}
    return sum(costs.get(name, 0) for name in names) + _OTHERS_S * len(tests)


class Scheduling(LoadScopeScheduling):
    """Sends each worker one unit after the other, those that take longest first: all workers end together."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._is_ordered = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        if not self._is_ordered:
            costs = costly()
            units = sorted(self.workqueue.items(), key=lambda unit: -seconds_of(unit[1], costs))
            self.workqueue, self._is_ordered = OrderedDict(units), True
        super()._assign_work_unit(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a unit with its last test: xdist would count the tests of all units after each test."""
        test = self.registered_collections[node][item_index]
        units, unit = self.assigned_work[node], unit_of(test)
        units[unit][test] = True
        if all(units[unit].values()):
            del units[unit]
        self._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return two workers a core: tests of processes wait a sixth of their time, for time-outs and for each other."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Schedule by units, whatever `--dist` says."""
    return Scheduling(config, log)
