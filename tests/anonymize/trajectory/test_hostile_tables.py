"""Tables made so that sequences are found very often: memory stays bounded, and what takes too long is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from anonymize.errors import PrivacyError
from anonymize.trajectory import rows, sweep
from anonymize.trajectory.frequent import maximal_frequent
from anonymize.trajectory.metrics import frequent_or_none
from anonymize.trajectory.paths import Paths, paths_of
from anonymize.trajectory.sweep import local_alone
from tests.support.paths import bounds

MANY = 1 << 20
WORK = 1 << 12


def table(paths: Sequence[Sequence[int]]) -> Paths:
    whose = np.repeat(np.arange(len(paths)), [len(path) for path in paths])
    items = np.array([item for path in paths for item in path], dtype=np.int64)
    return paths_of(whose, items, np.zeros(len(paths), np.int32), int(items.max()) + 1)[0]


def crossing(n: int) -> Paths:
    """One path of everything, and enough others that each pair across the two halves is frequent, and no other."""
    across = [(a, n + b) for a in range(n) for b in range(n)]
    return table([tuple(range(2 * n)), *across, *[(0, 1, n)] * 2])


SHORT = table([*combinations(range(13), 8), tuple(range(9))])
"""Every path of 8 items of 13, and one of 9, so that those are counted, too."""


@pytest.mark.parametrize(("paths", "least"), [(SHORT, 1), (crossing(50), 2)], ids=["many", "long"])
def test_sequences_are_looked_at_some_at_a_time(
    paths: Paths, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often they are found: in many paths, or in one with many items."""
    monkeypatch.setattr(sweep, "_WORK", WORK)
    looked_at: list[int] = []

    def watched(*asked: Any) -> rows.Extensions:
        found = extended(*asked)
        looked_at.append(len(found.which))
        return found

    extended = rows.extended
    for module in (rows, sweep):
        monkeypatch.setattr(module, "extended", watched)
    maximal_frequent(paths, least, MANY)
    local_alone(paths, bounds(4, least + 1, "1", 1, []), MANY)
    assert sum(looked_at) > 10 * WORK
    assert max(looked_at) <= max(WORK, comb(paths.domain, 2)) + paths.lengths.max()


def test_a_thousand_equal_long_paths() -> None:
    """All of their 2^64 parts are frequent."""
    paths = table([tuple(range(64))] * 1000)
    assert paths.n_paths == 1
    assert frequent_or_none(paths, 10, MANY) is None
    with pytest.raises(PrivacyError, match="1,048,576 in all") as caught:
        maximal_frequent(paths, 10, MANY)
    assert caught.value.error_id == "too-many-sequences"


def test_sequences_that_are_found_too_often() -> None:
    """Few different ones, in each of very many paths: 32 · 31 / 2 pairs, in 30 of 32 items each."""
    paths = table([set(range(32)) - set(two) for two in combinations(range(32), 2)])
    assert paths.n_paths == 496
    assert len(maximal_frequent(paths, 435, MANY)) == 496
    with pytest.raises(PrivacyError, match="found more than 100,000 times in different paths") as caught:
        maximal_frequent(paths, 435, MANY, found=100_000)
    assert caught.value.error_id == "too-many-sequences"
    assert "frequent" in str(caught.value.remedy)
