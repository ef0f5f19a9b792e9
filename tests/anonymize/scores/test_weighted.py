"""Weights of columns: the order of specializations follows weighted scores, and nothing else changes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.scores.score import score_of
from anonymize.scores.weighted import Weighted
from anonymize.tds import Outcome
from jobs.errors import ConfigError
from jobs.lkc.requirement import job_score
from jobs.loading import parse_job
from tests.support import jobs, reference
from tests.support.examples import examples
from tests.support.samples import columns, joint_job, single_job, vertical_job
from tests.support.tables import Case, cases

SCORES = [
    ("classification", "infogain"),
    ("classification", "added"),
    ("classification", "tdr"),
    ("general", "groups"),
    ("general", "records"),
]
WEIGHTS = st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9)
QID = {
    "a": {"role": "qid", "taxonomy": {"*": {"x": ["x1", "x2"], "y": ["y1", "y2"]}}},
    "b": {"role": "qid", "numeric": {"min": "0", "max": "16", "step": "1"}},
    "c": {"role": "qid", "suppress": ["u", "v", "w"]},
}


def fields(goal: str, score: str, **weights: str) -> dict[str, Any]:
    qid = {
        name: {**column, **({"weight": weights[name]} if name in weights else {})}
        for name, column in QID.items()
    }
    cls = {"k": {"role": "class", "domain": ["p", "q"]}} if goal == "classification" else {}
    return single_job(goal=goal, columns={**qid, **cls}, model={"lkc": {"L": "2", "K": "4", "score": score}})


def outcome(goal: str, score: str, **weights: str) -> Outcome:
    bundle = jobs.bundle_of(fields(goal, score, **weights))
    rng = random.Random(7)  # noqa: S311
    rows = []
    for _ in range(400):
        a, b, c = rng.choice(["x1", "x2", "y1", "y2"]), rng.randrange(16), rng.choice("uvw")
        likely = (a[0] == "x") + (b > 7) + (c == "u")
        row = {"a": a, "b": str(b), "c": c, "k": "p" if rng.randrange(4) < likely else "q"}
        rows.append({name: row[name] for name in bundle.job.columns})
    table = jobs.coded(bundle, rows)
    return anonymize_single(table, jobs.requirement_of(bundle), job_score(bundle.job))


def turns(found: Outcome) -> list[int]:
    """Return the column of each turn."""
    return [step.candidate.column for step in found.steps if not step.naming]


@pytest.mark.parametrize(("goal", "score"), SCORES)
def test_equal_weights_change_nothing(goal: str, score: str) -> None:
    plain, weighted = outcome(goal, score), outcome(goal, score, a="1/3", b="1/3", c="1/3")
    assert plain.steps == weighted.steps
    assert len(set(turns(plain))) == 3


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(("goal", "score"), SCORES)
def test_a_heavy_column_comes_first(goal: str, score: str, column: int) -> None:
    heavy = [turn == column for turn in turns(outcome(goal, score, **{"abc"[column]: "1e30"}))]
    assert any(heavy)
    assert heavy == sorted(heavy, reverse=True)


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize(("goal", "score"), [each for each in SCORES if each[1] != "added"])
def test_a_light_column_comes_last(goal: str, score: str, column: int) -> None:
    """With `added` a candidate that adds nothing may add something after another column's specialization."""
    light = [turn == column for turn in turns(outcome(goal, score, **{"abc"[column]: "1e-30"}))]
    assert any(light)
    assert light == sorted(light)


@settings(max_examples=examples(60), deadline=None)
@given(case=cases(max_rows=30), data=st.data())
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    weights = {name: data.draw(WEIGHTS) for name in bundle.job.generalized}
    score = Weighted(job_score(bundle.job), dict(enumerate(weights.values())))
    table, requirement = jobs.coded(bundle, case.rows), jobs.requirement_of(bundle)
    expected = reference.anonymize(list(case.rows), replace(case.problem, weights=weights))
    if expected is None:
        with pytest.raises(PrivacyError):
            anonymize_single(table, requirement, score)
        return
    found = anonymize_single(table, requirement, score)
    assert jobs.turns(found) == expected[0]
    assert jobs.multiset(release_of_rows(table, found.cut)) == Counter(expected[1])


@pytest.mark.parametrize(("goal", "score"), SCORES)
def test_published_scores_have_no_weight(goal: str, score: str) -> None:
    job = jobs.bundle_of(fields(goal, score, a="7")).job
    weighted = job_score(job)
    assert isinstance(weighted, Weighted)
    assert weighted.weights == {0: Fraction(7)}
    assert weighted.inner == score_of(score, job.lkc.contexts)


def test_a_weight_of_one_is_not_said() -> None:
    said, unsaid = (jobs.bundle_of(fields("general", "groups", **w)).job for w in ({"a": "1.0"}, {}))
    assert said.canonical() == unsaid.canonical()


AGE = {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "5"}, "weight": "2"}


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (joint_job(columns=columns(age=AGE)), "columns.age.weight is for LKC jobs of one holder"),
        (vertical_job(columns={"id": {"role": "id"}, **columns(age=AGE)}), "is for LKC jobs of one holder"),
        (
            single_job(model={"dp": {"epsilon": "1", "method": "synthetic"}}, columns={"age": AGE}),
            "is for LKC jobs of one holder",
        ),
        (
            single_job(
                goal="general", model={"lkc": {"L": "all", "K": "4", "method": "kd"}}, columns={"age": AGE}
            ),
            "leave `weight` out",
        ),
        (single_job(columns=columns(age={**AGE, "weight": "0"})), "weight"),
    ],
)
def test_where_a_weight_has_no_meaning(job: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_job(job, "job")
