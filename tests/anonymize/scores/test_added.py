"""Score `added`: against the definition on rows, the vector of the documents, and in every mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.contexts import added_by, least_size
from anonymize.errors import PrivacyError
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.scores.added import Added
from anonymize.scores.names import By
from anonymize.table import CodedTable
from tests.support import jobs, reference
from tests.support.examples import examples
from tests.support.horizontal import expect_same_turns, run_sealed
from tests.support.rebuilt import class_job, rebuilt
from tests.support.tables import Case, cases
from tests.support.vertical import expect_as_alone


@settings(max_examples=examples(80), deadline=None)
@given(
    cases(max_rows=60).filter(lambda case: case.problem.goal == "classification"),
    st.sampled_from(["cells", "partitions"]),
    st.sampled_from([1, 2, 5, 20]),
)
def test_equals_the_definition_taken_literally(case: Case, by: By, per_class: int) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    n_classes = table.schema.n_classes
    case.problem.added = reference.Added(
        per_class, n_classes, tuple(case.problem.sensitive) if by == "cells" else ()
    )
    expected = reference.anonymize(list(case.rows), case.problem)
    if expected is None:
        with pytest.raises(PrivacyError):
            anonymize_single(table, jobs.requirement_of(bundle), Added(by, per_class))
        return
    outcome = anonymize_single(table, jobs.requirement_of(bundle), Added(by, per_class))
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


@pytest.mark.parametrize("per_class", [1, 30, 1000])
def test_a_child_that_begins_where_its_parent_does(per_class: int) -> None:
    """Y, N, Y along one column: the left part of the first split is split again, however large contexts must be."""
    bundle = class_job({"age": {"role": "qid", "numeric": {"min": "0", "max": "9", "step": "1"}}})
    rows = [{"age": str(age), "cls": "N" if 2 <= age < 4 else "Y"} for age in range(9) for _ in range(10)]
    table = jobs.coded(bundle, rows)
    request = replace(jobs.request_of(bundle), goal=JointAdded("cells", per_class))
    alone = anonymize_single(table, request.requirement, request.goal)
    assert [t[1:] for t in jobs.turns(alone)] == [
        ("[0,9)", ["[0,4)", "[4,9)"], True),
        ("[0,4)", ["[0,2)", "[2,4)"], True),
    ]
    for result in run_sealed(divided(table, 2, 1), request)[0].values():
        assert result.outcome.applied == alone.applied


def test_the_documents_vector() -> None:
    bundle, table = rebuilt()
    of_node = [[(0, 4), (0, 12), (20, 4)], [(20, 6), (0, 14)], [(0, 12), (20, 8)]]
    assert [int(added_by(np.array([counts]))[0]) for counts in of_node] == [
        22_559_130,
        19_182_877,
        15_088_933,
    ]
    outcome = anonymize_single(table, jobs.requirement_of(bundle), Added())
    assert [(s.candidate.column, s.applied, s.score) for s in outcome.steps] == [
        (0, True, 22_559_130),
        (1, False, 0),
        (2, False, 0),
    ]


def test_how_large_contexts_are() -> None:
    assert [least_size(n, 2) for n in (0, 32_768, 32_769, 10**6)] == [64, 64, 65, 1954]
    assert least_size(1000, 5) == 256


def divided(table: CodedTable, n: int, seed: int) -> list[CodedTable]:
    owner = np.random.default_rng(seed).integers(0, n, table.n_records)
    return jobs.split_among(table, owner, n)


@settings(max_examples=examples(25), deadline=None)
@given(
    cases(max_rows=40).filter(lambda case: case.problem.goal == "classification"),
    st.sampled_from([1, 3, 20]),
    st.integers(2, 3),
    st.integers(0, 99),
)
def test_joint_runs_equal_the_single_holder(case: Case, per_class: int, n: int, seed: int) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    request = replace(jobs.request_of(bundle), goal=JointAdded("cells", per_class))
    try:
        expected = anonymize_single(table, request.requirement, request.goal)
    except PrivacyError:
        return
    parts = divided(table, n, seed)
    expect_same_turns(parts, request, expected)


@settings(max_examples=examples(30), deadline=None)
@given(
    cases(max_rows=40).filter(lambda case: case.problem.goal == "classification"),
    st.sampled_from([1, 5, 1000]),
    st.data(),
)
def test_vertical_runs_equal_the_single_holder(case: Case, per_class: int, data: st.DataObject) -> None:
    """Contexts are leaf partitions there: sensitive values are known to their holder alone."""
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    goal = JointAdded("partitions", per_class)
    expect_as_alone(data, whole, replace(jobs.request_of(bundle), goal=goal))
