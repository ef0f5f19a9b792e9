"""Specializations in a result: what is encoded is followed again, and nothing else can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from anonymize.errors import PrivacyError
from anonymize.tds import Step
from jobs.release.steps import replayed, step_fields
from tests.support import jobs
from tests.support.examples import examples
from tests.support.samples import joint_job
from tests.support.tables import Case, cases

SCHEMA = jobs.task_of(joint_job(score="infogain")).schema
JOB, AGE = 0, 1
# `job` has the leaves Janitor, Mover (Blue), Lawyer (White), missing; `age` has ten cells.
STEPS: list[list[Any]] = [
    [AGE, 0, 4, True, 7],
    [JOB, 0, 2, True, 0],
    [AGE, 4, 9, False, 0],
    [JOB, 0, 1, True, 0],
]


@settings(deadline=None, max_examples=examples(50))
@given(cases())
def test_a_run_is_followed_from_its_encoded_steps(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    try:
        outcome, _ = jobs.run_single(bundle, table)
    except PrivacyError:
        return
    encoded = json.loads(json.dumps([step_fields(step) for step in outcome.steps]))
    steps, cut = replayed(table.schema, encoded)
    assert cut == outcome.cut
    assert steps == tuple(Step(s.candidate, s.applied, s.score, naming=s.naming) for s in outcome.steps)


def test_steps_one_after_the_other() -> None:
    steps, cut = replayed(SCHEMA, STEPS)
    assert [step_fields(step) for step in steps] == STEPS
    assert [SCHEMA.qid[AGE].label(node) for node in cut.nodes[AGE]] == ["[0,40)", "[40,100)"]
    assert [SCHEMA.qid[JOB].label(node) for node in cut.nodes[JOB]] == ["Janitor", "Mover", "Lawyer", "?"]
    assert steps[0].score == 7


def test_no_step_leaves_everything_at_the_top() -> None:
    steps, cut = replayed(SCHEMA, [])
    assert steps == ()
    assert [len(nodes) for nodes in cut.nodes] == [1, 1]


WRONG: dict[str, Callable[[list[list[Any]]], object]] = {
    "a column that is not there": lambda s: s[0].__setitem__(0, 2),
    "a column counted from the end": lambda s: s[0].__setitem__(0, -1),
    "no column": lambda s: s[0].__setitem__(0, None),
    "a node that is not in the cut": lambda s: s[0].__setitem__(1, 1),
    "a node that was specialized": lambda s: s.append([AGE, 0, 2, True, 0]) or s.append([AGE, 0, 3, True, 0]),
    "a split at the first cell": lambda s: s[0].__setitem__(2, 0),
    "a split at the end": lambda s: s[0].__setitem__(2, 10),
    "a split behind the end": lambda s: s[0].__setitem__(2, 11),
    "a split before the node": lambda s: s[2].__setitem__(2, 3),
    "children that the taxonomy does not have": lambda s: s[1].__setitem__(2, 1),
    "a leaf": lambda s: s.append([JOB, 0, 1, True, 0]),
    "a field too few": lambda s: s[0].pop(),
    "a field too many": lambda s: s[0].append(0),
    "a score that is no number": lambda s: s[0].__setitem__(4, "x"),
    "an interval that is called by a child": lambda s: s[0].__setitem__(4, None),
    "a node that is called by a child and whose children leave together": lambda s: s[1].__setitem__(4, None),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_step_that_the_cut_does_not_allow(what: str) -> None:
    steps = [list(step) for step in STEPS]
    WRONG[what](steps)
    with pytest.raises((ValueError, LookupError)):
        replayed(SCHEMA, steps)
