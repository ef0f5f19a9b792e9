"""Requirements of several entries at a single holder, against the definition taken literally."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.cut import Candidate, Cut, child_of_leaf
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Ask, AskedList, Entry, concerned, most_columns
from anonymize.lkc.single import anonymize_single
from anonymize.lkc.validity import PairTest, PartitionTest
from anonymize.qid_groups import Scope
from anonymize.release import release_of_rows
from anonymize.table import CodedTable
from tests.support import jobs, reference
from tests.support.candidates import random_candidate, refined_at_random
from tests.support.entries import asked_lists, lkc, plan_of
from tests.support.examples import examples
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


def test_a_column_concerns_every_entry_that_names_it() -> None:
    entries = tuple(Entry(Scope(columns, 1), (Size(k),)) for k, columns in enumerate([(0, 1), (1,), (0,)], 2))
    assert concerned(entries, 0) == (entries[0], entries[2])
    assert concerned(entries, 1) == entries[:2]


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_equals_the_definition_taken_literally(case: Case, data: st.DataObject, insider: bool) -> None:
    requirement, problem = data.draw(asked_lists(case, insider=insider))
    bundle = jobs.bundle_of(case.fields)
    table, goal = jobs.coded(bundle, case.rows), PUBLISHED[bundle.job.goal]
    expected = reference.anonymize(list(case.rows), problem)
    if expected is None:
        with pytest.raises(PrivacyError) as caught:
            anonymize_single(table, requirement, goal)
        assert caught.value.error_id == "requirement-unmet"
        return
    outcome = anonymize_single(table, requirement, goal)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


@settings(max_examples=examples(50), deadline=None)
@given(case=cases(), data=st.data())
def test_all_ways_to_test_agree(case: Case, data: st.DataObject) -> None:
    """Pairs of columns, leaf partitions, and a plan whose groups are dealt out among holders."""
    requirement, _ = data.draw(asked_lists(case))
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    entries = requirement.entries(table.schema)
    counts = records.counts(candidate, generalized.entries_of(candidate))
    by_partition = PartitionTest(table.schema, entries).violation(
        generalized, candidate, counts, most_columns(entries)
    )
    plan = plan_of(table.schema, entries, generalized, candidate)
    by_plan = plan.violation(plan.sums(counts))
    assert (by_partition is None) == (by_plan is None)
    if PairTest.fits(table.schema, entries):
        by_pair = PairTest(table, entries).violation(cut, candidate, most_columns(entries))
        assert (by_pair is None) == (by_plan is None)


@settings(max_examples=examples(50), deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_what_was_discarded_is_invalid_in_the_end(case: Case, data: st.DataObject, insider: bool) -> None:
    """A discard is final: on the finished table the same children still make a group that is not allowed."""
    requirement, problem = data.draw(asked_lists(case, insider=insider))
    bundle = jobs.bundle_of(case.fields)
    table, goal = jobs.coded(bundle, case.rows), jobs.request_of(bundle).goal
    try:
        outcome = anonymize_single(table, requirement, goal)
    except PrivacyError:
        assume(False)
    for step in outcome.steps:
        told_apart = None if step.applied else step.candidate
        assert is_allowed(table, outcome.cut, told_apart, problem) == step.applied


def is_allowed(table: CodedTable, cut: Cut, told_apart: Candidate | None, problem: reference.Problem) -> bool:
    """Return True if a table generalized by a cut meets a problem's entries, counted from its rows by nodes.

    told_apart:  a candidate whose children are told apart besides; its node may have left the cut.
    """
    nodes = [cut.positions(c)[table.qid[c]].tolist() for c in range(len(table.schema.qid))]
    if told_apart is not None:
        column, first, child = told_apart.column, told_apart.node.first, child_of_leaf(told_apart)
        codes = table.qid[column].tolist()
        of_node = [child[v - first] if first <= v < told_apart.node.last else -1 for v in codes]
        nodes[column] = list(zip(nodes[column], of_node, strict=True))
    values = {c.name: [c.domain[v] for v in table.axis(1 + i)] for i, c in enumerate(table.schema.sensitive)}
    names, weights = list(problem.qid), table.weights.tolist()
    classes = table.axis(0).tolist()
    for entry in problem.asked():
        places = [names.index(name) for name in entry.columns]
        keys: list[list[Any]] = (
            [list(zip(*(nodes[p] for p in places), classes, strict=True))] if problem.insider else []
        )
        of_subsets = [list(s) for s in combinations(places, min(entry.L, len(places)))]
        keys += [[tuple(nodes[p][r] for p in s) for r in range(len(weights))] for s in of_subsets]
        for number, key in enumerate(keys):
            groups: dict[Any, list[reference.Row]] = {}
            for r, k in enumerate(key):
                row = {name: of_row[r] for name, of_row in values.items()}
                groups.setdefault(k, []).extend([row] * weights[r])
            cells = problem.insider and number == 0
            for group in groups.values():
                met = reference.inference_ok(group, entry)
                if not met or not (cells or reference.group_ok(group, entry, problem)):
                    return False
    return True


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_the_same_entry_twice_is_tested_once(case: Case, data: st.DataObject) -> None:
    """Groups are told apart by their leaf partitions, not by the entries they come from."""
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    once = lkc(2, 3, c={name: c for name, (_, c) in case.problem.sensitive.items()})
    twice = AskedList(once.asks * 2)
    plans = [plan_of(table.schema, r.entries(table.schema), generalized, candidate) for r in (once, twice)]
    counts = records.counts(candidate, generalized.entries_of(candidate))
    first, second = (plan.sums(counts) for plan in plans)
    assert np.array_equal(first, second)
    assert np.array_equal(*(plan.totals for plan in plans))
    assert plans[0].criteria == plans[1].criteria


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_a_holder_gives_no_sum_that_no_entry_asks_for(case: Case, data: st.DataObject) -> None:
    """An entry of K alone has groups whose sensitive counts nobody needs."""
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, generalized, records = refined_at_random(table, data)
    candidate = random_candidate(table, cut, data)
    assume(candidate is not None)
    names = [column.name for column in table.schema.qid]
    own = names[candidate.column]
    bounds = Confidences(bounds=tuple((name, c) for name, (_, c) in case.problem.sensitive.items()))
    requirement = AskedList((Ask(3, (Size(2),)), Ask(1, (Size(2), bounds), (own,))))
    plan = plan_of(table.schema, requirement.entries(table.schema), generalized, candidate)
    sums = plan.sums(records.counts(candidate, generalized.entries_of(candidate)))
    of_second = plan_of(table.schema, requirement.entries(table.schema)[1:], generalized, candidate)
    assert plan.n_groups >= of_second.n_groups == 1
    with_values = np.flatnonzero(sums[:, :, 1:].any(axis=(1, 2)))
    assert len(with_values) <= 1
    assert (plan.sizes[with_values] == of_second.sizes[0]).all()
