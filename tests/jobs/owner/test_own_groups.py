"""`own_k`: groups have none of a party's records, or so many."""

from __future__ import annotations

import numpy as np
import pytest

from anonymize.table import Ints
from anonymize.tds import Observer
from jobs.errors import PolicyError
from jobs.owner.own_groups import OwnGroups


class Shown(Observer):
    def __init__(self) -> None:
        self.told: list[list[int]] = []

    def opening_groups(self, own: Ints) -> None:
        self.told.append(own.tolist())


@pytest.mark.parametrize(
    ("least", "own"),
    [(1, [0, 1, 2]), (3, [0, 3, 500]), (2, [0, 0]), (5, [])],
)
def test_none_or_enough_is_passed_on(least: int, own: list[int]) -> None:
    shown = Shown()
    OwnGroups(shown, least).opening_groups(np.array(own, dtype=np.int64))
    assert shown.told == [own]


@pytest.mark.parametrize(("least", "own"), [(2, [0, 1, 9]), (31, [30]), (31, [77, 0, 30, 29])])
def test_too_few_end_the_run_and_only_the_owner_hears_how_many(least: int, own: list[int]) -> None:
    shown = Shown()
    with pytest.raises(PolicyError) as caught:
        OwnGroups(shown, least).opening_groups(np.array(own))
    problem = caught.value.problem
    assert shown.told == []
    assert problem.error_id == "policy-refused"
    assert f"{min(n for n in own if n)} record" in problem.private
    assert f"`policy.own_k` is {least}" in problem.private
    assert not any(character.isdigit() for character in problem.for_others())
