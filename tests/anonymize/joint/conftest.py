"""Fixtures of several tests of joint runs."""

from __future__ import annotations

import pytest

from tests.support.computations import Computed, watched
from tests.support.horizontal import Revealed, recorded


@pytest.fixture
def revealed(monkeypatch: pytest.MonkeyPatch) -> Revealed:
    """Everything revealed, with its values (name, value, to), one list for every party of every run."""
    return recorded(monkeypatch)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Computed]:
    """Every batch of circuits that the pair evaluates, at both ends."""
    return watched(monkeypatch)
