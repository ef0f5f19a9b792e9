"""The level of the log, changed at run time."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from party.operations.levels import OURS, less, more


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = {name: logging.getLogger(name).level for name in OURS}
    logging.getLogger("party").setLevel(logging.INFO)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_more_and_less_go_step_by_step_and_stop_at_the_ends() -> None:
    assert [more(), more()] == ["debug", "debug"]
    assert [less() for _ in range(5)] == ["info", "warning", "error", "error", "error"]
    assert more() == "warning"


def test_libraries_stay_as_they_are() -> None:
    """What they say in detail may hold what no log of ours does."""
    root = logging.getLogger().level
    asyncio_before = logging.getLogger("asyncio").getEffectiveLevel()
    more()
    assert logging.getLogger().level == root
    assert logging.getLogger("asyncio").getEffectiveLevel() == asyncio_before
    assert all(logging.getLogger(name).getEffectiveLevel() == logging.DEBUG for name in OURS)
