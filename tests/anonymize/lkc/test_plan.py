"""Groups that a turn has to test: names of sets of records that last, and plans of some groups."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.clear import InTheClear
from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand, Measure
from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.criteria.size import Size
from anonymize.cut import Candidate, top
from anonymize.lkc.plan import GroupPlan
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.partition import LocalRecords, fully_generalized, refine
from anonymize.qid_groups import RecordSets
from anonymize.table import Ints
from tests.support import jobs
from tests.support.entries import plan_of
from tests.support.examples import examples
from tests.support.horizontal import small_case, small_lkc, whole_of

Turn = tuple[GroupPlan, LocalRecords, Ints, RecordSets]
"""The plan of what is about to be applied, the records, the leaf partition of each, the names."""


def turns() -> Iterator[Turn]:
    """Every turn of the small case before it is applied; what is yielded is good until the next one."""
    tables, request = small_case()
    whole, requirement = whole_of(tables), small_lkc(2, 3)
    entries = requirement.entries(whole.schema)
    counts = np.bincount(whole.cells, whole.weights, whole.schema.n_cells).astype(np.int64)
    table = fully_generalized(len(whole.schema.qid), counts)
    sets, records = RecordSets(table), LocalRecords(whole, whole.cells, table)
    for candidate in anonymize_single(whole, requirement, request.goal).applied:
        plan = plan_of(whole.schema, entries, table, candidate, sets.names)
        yield plan, records, table.partition[records.entry], sets
        refinement = refine(table, candidate, records.counts(candidate, table.entries_of(candidate)))
        records.follow(candidate, refinement)
        sets.follow(table, refinement)
        table = refinement.table


def test_equal_sets_of_records_keep_their_name_and_others_have_another() -> None:
    by_name: dict[int, frozenset[int]] = {}
    by_set: dict[frozenset[int], int] = {}
    for _, _, partition, sets in turns():
        parts = [np.flatnonzero(partition == p) for p in range(len(sets.names))]
        chosen = [(i,) for i in range(len(parts))] + [(i, j) for i in range(len(parts)) for j in range(i)]
        chosen.append(tuple(range(len(parts))))
        for some in chosen:
            rows = frozenset(np.concatenate([parts[i] for i in some]).tolist())
            name = int(sum(int(sets.names[i]) for i in some) % 2**64)
            assert by_name.setdefault(name, rows) == rows
            assert by_set.setdefault(rows, name) == name
    assert len(by_set) > 20


def test_a_plan_of_some_groups_has_their_sums_and_tests() -> None:
    rng = np.random.default_rng(1)
    for plan, _, _, _ in turns():
        chosen = rng.random(plan.n_groups) < 0.5
        some = plan.among(chosen)
        assert np.array_equal(some.names, plan.names[chosen])
        assert np.array_equal(some.sizes, plan.sizes[chosen])
        for criterion in plan.criteria:
            assert np.array_equal(some.at_stake(criterion), plan.at_stake(criterion)[chosen])


def test_rows_are_tallied_as_counts_are() -> None:
    rng = np.random.default_rng(2)
    for plan, records, _, _ in turns():
        entries = np.unique(records.entry[records.members(plan.candidate)[0]])
        counts = records.counts(plan.candidate, entries)
        rows, n_children = records.placed(plan.candidate, entries), len(plan.candidate.children)
        sums = plan.sums_of_cells(counts[:, :-1])
        assert np.array_equal(plan.tallied(*rows, n_children)[:, :-1], sums)
        chosen = rng.random(plan.n_groups) < 0.5
        some = plan.among(chosen)
        assert np.array_equal(some.sums_of_cells(counts[:, :-1]), sums[chosen])
        assert np.array_equal(some.tallied(*rows, n_children)[:, :-1], sums[chosen])
        assert sums.any()


def test_own_records_are_those_of_every_child() -> None:
    """The groups' own sizes, in the end: one holder has all records, and each goes to one child."""
    for plan, records, _, _ in turns():
        counts = records.counts(plan.candidate, np.unique(records.entry[records.members(plan.candidate)[0]]))
        own = plan.own_records(counts).reshape(plan.n_groups, plan.n_children)
        assert np.array_equal(own.sum(axis=1), plan.sizes)


FIELDS = {
    "version": "1",
    "name": "p",
    "partition": "single",
    "model": {"lkc": {"L": "2", "K": "2", "C": "0.8"}},
    "goal": "general",
    "data": "t.csv",
    "columns": {
        "q": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b"], "h": ["c", "d"]}}},
        "r": {"role": "qid", "taxonomy": {"*": ["a", "b", "c"]}},
        "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x", "y"]},
        "t": {"role": "sensitive", "domain": ["x", "y"]},
    },
}


@st.composite
def asks(draw: st.DrawFn) -> Ask:
    """One entry, of one or both columns."""
    c = draw(st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)]))
    bounds = (("s", c), ("t", c))
    others: list[Demand] = [Confidences(bounds=bounds), RuledOutValues(1, bounds), DiverseValues(2)]
    others += [DiverseValues(3), DistinctValues((("s", 2),))]
    demands = Size(draw(st.integers(1, 6))), *draw(st.sets(st.sampled_from(others)))
    return Ask(draw(st.integers(1, 2)), demands, draw(st.sampled_from([None, ("q",), ("q", "r")])))


def decided(plan: GroupPlan, measured: dict[Measure, Ints]) -> bool:
    """Return the decision of joint runs, which test what is at stake."""
    met = [
        criterion.rule.met(InTheClear(), [form.of(measured)[stake] for form in forms])
        for criterion in plan.criteria
        for forms, stake in zip(criterion.cases, plan.at_stake(criterion).T, strict=True)
    ]
    return all(each.all() for each in met)


@settings(max_examples=examples(80), deadline=None)
@given(requested=st.lists(asks(), min_size=1, max_size=2), seed=st.integers(0, 2**32))
def test_what_is_at_stake_decides_alone(requested: list[Ask], seed: int) -> None:
    """Leaving out what a child with the greatest K of its group could not break changes no decision."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet([0.5] * 6)
    rows = [
        {"q": "abcd"[rng.integers(4)], "r": "abc"[rng.integers(3)], "s": "xyz"[v // 2], "t": "xy"[v % 2]}
        for v in rng.choice(6, int(rng.integers(1, 60)), p=weights)
    ]
    whole = jobs.coded(jobs.bundle_of(FIELDS), rows)
    entries = AskedList(tuple(requested)).entries(whole.schema)
    counts = np.bincount(whole.cells, whole.weights, whole.schema.n_cells).astype(np.int64)
    table, cut = fully_generalized(2, counts), top(whole.schema)
    records = LocalRecords(whole, whole.cells, table)
    for column in (1, 0, 0):
        node = cut.nodes[column][0]
        candidate = Candidate(column, node, tuple(whole.schema.qid[column].children(node)))
        by_child = records.counts(candidate, table.entries_of(candidate))
        plan = plan_of(whole.schema, entries, table, candidate)
        if plan.entries:
            sums = plan.sums(by_child)
            assert decided(plan, plan.by_child(sums, plan.totals)) == (plan.violation(sums) is None)
        refinement = refine(table, candidate, by_child)
        records.follow(candidate, refinement)
        table, cut = refinement.table, cut.specialized(candidate)


def test_a_group_of_several_entries_is_asked_for_the_greatest_k() -> None:
    """Of 8 records 3 have the value; at C = 1/2 no child with 6 of them breaks that, and one with 5 does."""
    whole = jobs.coded(
        jobs.bundle_of(FIELDS), [{"q": "a", "r": "a", "s": "xxxyzzzz"[i], "t": "x"} for i in range(8)]
    )
    bound = Confidences(bounds=(("s", Fraction(1, 2)),))
    for k, columns, n_at_stake in ((5, None, 1), (6, None, 0), (6, ("r",), 1)):
        asked = Ask(2, (Size(2), bound)), Ask(2, (Size(k),), columns)
        entries = AskedList(asked).entries(whole.schema)
        counts = np.bincount(whole.cells, whole.weights, whole.schema.n_cells).astype(np.int64)
        root = top(whole.schema).nodes[0][0]
        candidate = Candidate(0, root, tuple(whole.schema.qid[0].children(root)))
        plan = plan_of(whole.schema, entries, fully_generalized(2, counts), candidate)
        (confidence,) = (c for c in plan.criteria if c.name == "C")
        assert plan.at_stake(confidence).sum() == n_at_stake
