"""The table of names says of each score what its object says."""

from __future__ import annotations

from anonymize.joint.lkc.scores import rows
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.joint.lkc.scores.score import StrictScore
from anonymize.scores import score as alone
from anonymize.scores.names import OF_GOAL, SCORES, STRICT, WITH_CONTEXTS, needs_class


def test_each_name_has_its_object() -> None:
    assert tuple(rows.SCORES) == SCORES
    assert [name for name, score in rows.SCORES.items() if isinstance(score, JointAdded)] == list(
        WITH_CONTEXTS
    )
    strict = [
        n for n, score in rows.SCORES.items() if isinstance(score, StrictScore) and not score.wants_sums
    ]
    assert strict == list(STRICT)
    assert {name: type(alone.score_of(name, None)) for name in alone.SCORES} == {
        name: next(each for each in type(score).mro() if each.__module__.startswith("anonymize.scores."))
        for name, score in rows.SCORES.items()
    }
    for name in SCORES:
        told = [getattr(of(name, "partitions"), "contexts", None) for of in (alone.score_of, rows.score_of)]
        assert told == ["partitions" if name in WITH_CONTEXTS else None] * 2
    for goal, names in OF_GOAL.items():
        assert {rows.SCORES[name].needs_class for name in names} == {needs_class(goal)}
