"""Scores as one holder has them and with their circuits are the same: by name, by settings, by what they tell."""

from __future__ import annotations

import pytest

from anonymize.contexts import By
from anonymize.joint.disclosure import BY_SCORE
from anonymize.joint.lkc.scores import rows as joint
from anonymize.joint.lkc.scores.score import StrictScore
from anonymize.scores import rows


def test_all_rows_have_the_same_names() -> None:
    assert list(rows.SCORES) == list(joint.SCORES) == list(BY_SCORE)
    assert set(rows.SCORES) == {name for names in rows.OF_GOAL.values() for name in names}


@pytest.mark.parametrize("name", rows.SCORES)
@pytest.mark.parametrize("contexts", [None, "cells", "partitions"])
def test_a_score_with_circuits_is_the_one_of_its_name(name: str, contexts: By | None) -> None:
    alone, with_circuits = rows.score_of(name, contexts), joint.score_of(name, contexts)
    assert isinstance(with_circuits, type(alone))
    assert vars(with_circuits) == vars(alone)
    assert with_circuits.reveals is BY_SCORE[name]


@pytest.mark.parametrize("name", rows.SCORES)
def test_a_score_is_strict_where_there_are_circuits_for_it_and_nothing_is_told_of_candidates(
    name: str,
) -> None:
    score = joint.SCORES[name]
    assert rows.is_strict(name) == (isinstance(score, StrictScore) and not BY_SCORE[name])
