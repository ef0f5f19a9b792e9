"""A few of the tests marked `more`, drawn as mutants are: library and tests decide, so all have their turn some day.

A test that `make test` leaves out does not notice what breaks the test. `.ci/run` runs some of these tests each time.
Of a test that is marked `by_lot(n)`, n cases are drawn likewise, by `make test` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from tests.mutants.drawing import rank
from tests.mutants.mutant import Sources

LONG = (
    "tests/anonymize/dp/test_noise.py",
    "tests/anonymize/dp/test_utility.py",
    "tests/anonymize/joint/dp/test_guess.py",
    "tests/anonymize/joint/dp/thesis/",
    "tests/anonymize/joint/kd/test_sealed.py",
    "tests/anonymize/joint/lkc/test_icd9.py",
    "tests/anonymize/joint/synthetic/test_guess.py",
    "tests/anonymize/kd/test_single.py",
    "tests/anonymize/lkc/test_adult.py",
    "tests/corpus/",
    "tests/crypto/test_random_value.py",
    "tests/deploy/",
    "tests/end_to_end/test_approval.py",
    "tests/end_to_end/test_dp.py",
    "tests/end_to_end/test_faults_of_processes.py",
    "tests/end_to_end/test_kd.py",
    "tests/end_to_end/test_kinds_of_sources.py",
    "tests/end_to_end/test_spark.py",
    "tests/evaluation/test_evaluate.py",
    "tests/jobs/data/test_spark.py",
    "tests/jobs/dp/test_charge.py",
    "tests/jobs/dp/test_result.py",
    "tests/jobs/synthetic/test_guess.py",
    "tests/jointcut/",
    "tests/matrix/",
    "tests/party/web/test_browser.py",
    "tests/party/web/test_pages.py",
    "tests/test_citations.py",
    "tests/test_hospitals_guide.py",
    "tests/test_mutants.py",
    "tests/test_notebooks.py",
    "tests/test_places.py",
    "tests/test_readme.py",
    "tests/test_scheduling.py",
    "tests/test_wheel.py",
)
"""Places whose tests marked `more` take 4 s or longer on average. They run with `make test-all` alone."""


@cache
def lot() -> Callable[[str], bytes]:
    """Return the order in which names are drawn: those that are lowest in it."""
    return rank(Sources())


def pytest_configure(config: pytest.Config) -> None:
    """Add the drawn tests to those that the mark expression selects."""
    if config.getoption("--drawn-more") and config.option.markexpr:
        config.option.markexpr = f"({config.option.markexpr}) or drawn"


def draw(items: Sequence[pytest.Item], n: int) -> None:
    """Mark n tests with `drawn`."""
    if n:
        for item in sorted(filter(_is_short, items), key=lambda item: lot()(item.nodeid))[:n]:
            item.add_marker(pytest.mark.drawn)


def draw_cases(items: Sequence[pytest.Item]) -> None:
    """Mark with `more` all but n cases of each test that is marked `by_lot(n)`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("by_lot"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("by_lot")
        assert marker
        (n,) = marker.args
        for item in sorted(cases, key=lambda item: lot()(item.nodeid))[n:]:
            item.add_marker(pytest.mark.more)


def _is_short(item: pytest.Item) -> bool:
    marks = {mark.name for mark in item.iter_markers()}
    return "more" in marks and not marks & {"slow", "install"} and not item.nodeid.startswith(LONG)
