"""Rows that one holder leaves out: the rule, and the rest meets what was asked."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.criteria.criterion import SideInputs
from anonymize.errors import PrivacyError
from anonymize.lkc.outliers import RUNS_OF_A_STAGE, most_runs, outlier_rows
from anonymize.lkc.single import Partitions, anonymize_single
from anonymize.release import release_of_rows
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer, Outcome
from jobs.file.bundle import Bundle
from jobs.lkc.requirement import job_score
from tests.support import jobs, reference
from tests.support.candidates import as_it_stands
from tests.support.examples import examples
from tests.support.tables import Case, cases


def withheld(bundle: Any, table: CodedTable, most: int, observer: Observer | None = None) -> Ints:
    def part(rows: Ints) -> tuple[CodedTable, SideInputs]:
        return table.some(rows), {}

    return outlier_rows(table, jobs.requirement_of(bundle), job_score(bundle.job), most, part, observer)


def rest(table: CodedTable, gone: Ints) -> CodedTable:
    return table.some(np.setdiff1d(np.arange(len(table.cells)), gone))


def lost(outcome: Outcome, table: CodedTable) -> Fraction:
    """Generalization loss by the definition, record by record."""
    total, schema = Fraction(0), table.schema
    for i, column in enumerate(schema.qid):
        positions = outcome.cut.positions(i).tolist()
        for leaf, weight in zip(table.qid[i].tolist(), table.weights.tolist(), strict=True):
            covered = positions.count(positions[leaf])
            total += Fraction(weight * (covered - 1), max(column.n_leaves - 1, 1))
    return total / len(schema.qid)


def customers(odd: int = 3, n: int = 120) -> tuple[Any, CodedTable]:
    """A table like a foreign one: a column of two values, but for a few odd records."""
    fields = {
        "version": "1",
        "name": "customers",
        "partition": "single",
        "goal": "general",
        "model": {"lkc": {"L": "2", "K": "5"}},
        "data": "t.csv",
        "columns": {
            "gender": {"role": "qid", "refine": "children", "taxonomy": {"*": ["F", "M", "A", "C"]}},
            "income": {"role": "qid", "numeric": {"min": "0", "max": "8", "step": "1"}},
        },
    }
    bundle = jobs.bundle_of(fields)
    rows = [{"gender": "FM"[i % 2], "income": str(i // 2 % 8)} for i in range(n)]
    rows += [{"gender": "AAC"[i % 3], "income": str(i)} for i in range(odd)]
    return bundle, jobs.coded(bundle, rows)


def test_a_few_odd_records_no_longer_keep_a_column_at_its_root() -> None:
    bundle, table = customers()
    whole, _ = jobs.run_single(bundle, table)
    assert len(whole.cut.nodes[0]) == 1
    gone = withheld(bundle, table, 3)
    left, _ = jobs.run_single(bundle, rest(table, gone))
    assert len(left.cut.nodes[0]) == 5  # F, M, A, C and the leaf of missing cells
    assert set(table.qid[0][gone].tolist()) == {2, 3}  # A and C, and nobody else
    assert table.weights[gone].sum() == 3
    assert len(withheld(bundle, table, 2)) == 0


def test_rows_that_free_less_than_they_lose_stay() -> None:
    """Without those that block the column nothing is lost of the others; but the whole table loses more."""
    fields: dict[str, Any] = {
        "version": "1",
        "name": "few",
        "partition": "single",
        "goal": "general",
        "model": {"lkc": {"L": "1", "K": "5"}},
        "data": "t.csv",
        "columns": {
            "gender": {"role": "qid", "refine": "children", "taxonomy": {"*": [*"FM", *"ABCDEGH"]}},
            "state": {"role": "qid", "taxonomy": {"*": ["X", "Y"]}},
        },
    }
    bundle = jobs.bundle_of(fields)
    of_many = [{"gender": "FM"[i % 2], "state": "XY"[i // 2 % 2]} for i in range(20)]
    for n, expected in ((3, 0), (2, 14)):
        rows = of_many + [{"gender": gender, "state": "X"} for gender in "ABCDEGH"] * n
        table = jobs.coded(bundle, rows)
        whole, _ = jobs.run_single(bundle, table)
        assert [len(nodes) > 1 for nodes in whole.cut.nodes] == [False, True]
        gone = withheld(bundle, table, 21)
        # Of every record half was lost: 41 / 2 < 21, but 34 / 2 > 14.
        assert table.weights[gone].sum() == expected
        outcome, _ = jobs.run_single(bundle, rest(table, gone))
        assert (outcome.cut != whole.cut) == bool(expected)


def two_columns() -> Bundle:
    """L=1 K=5, goal general."""
    return jobs.bundle_of(
        {
            "version": "1",
            "name": "two",
            "partition": "single",
            "goal": "general",
            "model": {"lkc": {"L": "1", "K": "5"}},
            "data": "t.csv",
            "columns": {
                "gender": {"role": "qid", "refine": "children", "taxonomy": {"*": ["F", "M", "A"]}},
                "state": {"role": "qid", "refine": "children", "taxonomy": {"*": ["X", "Y", "Z"]}},
            },
        }
    )


def test_the_limit_is_one_for_all_that_is_left_out() -> None:
    """Two columns, each kept at its root by three records of its own."""
    bundle = two_columns()
    rows = [{"gender": "FM"[i % 2], "state": "XY"[i // 2 % 2]} for i in range(80)]
    rows += [{"gender": "A", "state": "X"}] * 3 + [{"gender": "F", "state": "Z"}] * 3
    table = jobs.coded(bundle, rows)
    for most, expected in ((2, 0), (3, 3), (5, 3), (6, 6)):
        gone = withheld(bundle, table, most)
        assert table.weights[gone].sum() == expected
        cut = jobs.run_single(bundle, rest(table, gone))[0].cut
        assert sum(len(nodes) > 1 for nodes in cut.nodes) == expected // 3


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_the_rest_meets_what_was_asked_and_nothing_is_left_out_for_nothing(
    case: Case, data: st.DataObject
) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    most = data.draw(st.integers(0, table.n_records))
    try:
        whole, _ = jobs.run_single(bundle, table)
    except PrivacyError:
        with pytest.raises(PrivacyError):
            withheld(bundle, table, most)
        return
    gone = withheld(bundle, table, most)
    assert table.weights[gone].sum() <= most
    left = rest(table, gone)
    outcome, release = jobs.run_single(bundle, left)
    if len(gone) > 0:
        assert outcome.cut != whole.cut
        # Over all records of the table: those that are left out are lost altogether.
        assert lost(outcome, left) + table.weights[gone].sum() < lost(whole, table)
    labels = [release.columns[name] for name in case.problem.qid]
    rows = [{n: c.labels[c.codes[i]] for n, c in release.columns.items()} for i in range(release.n_rows)]
    (entry,) = case.problem.asked()
    for known in subsets(len(labels), entry.L):
        groups: dict[tuple[int, ...], list[dict[str, str]]] = {}
        for i, row in enumerate(rows):
            nodes = tuple(int(outcome.cut.positions(c)[leaf_of(left, c, i)]) for c in known)
            groups.setdefault(nodes, []).append(row)
        assert all(reference.group_ok(group, entry, case.problem) for group in groups.values())


def subsets(n: int, most: int) -> list[tuple[int, ...]]:
    return [known for size in range(min(n, most) + 1) for known in combinations(range(n), size)]


def leaf_of(table: CodedTable, column: int, record: int) -> int:
    """Of a record, in the order in which a release repeats rows."""
    return int(np.repeat(table.qid[column], table.weights)[record])


@settings(max_examples=examples(50), deadline=None)
@given(case=cases(), data=st.data())
def test_a_greater_limit_makes_no_worse_table(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    limits = sorted(data.draw(st.lists(st.integers(0, table.n_records), min_size=2, max_size=4)))
    losses = []
    for most in limits:
        try:
            gone = withheld(bundle, table, most)
        except PrivacyError:
            assume(False)
        outcome, _ = jobs.run_single(bundle, rest(table, gone))
        losses.append(lost(outcome, rest(table, gone)) + table.weights[gone].sum())
    assert losses == sorted(losses, reverse=True)


def test_runs_are_told_and_bounded() -> None:
    bundle = two_columns()
    rows = [{"gender": "FM"[i % 2], "state": "XY"[i // 2 % 2]} for i in range(100)]
    rows += [{"gender": "A", "state": "X"}] + [{"gender": "F", "state": "Z"}] * 4
    table = jobs.coded(bundle, rows)
    told: list[tuple[int, int]] = []

    class Told(Observer):
        def trial(self, number: int, most: int) -> None:
            told.append((number, most))

    gone = withheld(bundle, table, 10, Told())
    assert table.weights[gone].sum() == 5
    runs = most_runs(10, table.n_records)
    assert runs == 1 + 4 * RUNS_OF_A_STAGE  # up to 1, 2, 5 and 10 records
    assert told == [(1, runs), (2, runs), (3, runs)]  # all rows, those without one, those without five


def test_what_a_stage_frees_may_take_many_runs_but_no_more_than_it_has() -> None:
    """Twenty columns, each kept at its root by a record of its own."""
    names = [f"c{i}" for i in range(20)]
    bundle = jobs.bundle_of(
        {
            "version": "1",
            "name": "many",
            "partition": "single",
            "goal": "general",
            "model": {"lkc": {"L": "1", "K": "5"}},
            "data": "t.csv",
            "columns": {name: {"role": "qid", "taxonomy": {"*": ["F", "M", "A"]}} for name in names},
        }
    )
    rows = [dict.fromkeys(names, "FM"[i % 2]) for i in range(80)]
    rows += [{name: "A" if i == j else "F" for j, name in enumerate(names)} for i in range(20)]
    table = jobs.coded(bundle, rows)
    # Stages of 1, 2, 5, 10 and 20 records; the last one has more than its runs to take out.
    assert table.weights[withheld(bundle, table, 20)].sum() == 10 + RUNS_OF_A_STAGE
    assert table.weights[withheld(bundle, table, 7)].sum() == 7
    assert most_runs(0, 100) == 1


@settings(max_examples=examples(60), deadline=None)
@given(case=cases())
def test_what_fails_is_what_must_go_for_a_candidate_to_be_allowed(case: Case) -> None:
    """And no group that is allowed is among it, unless others' going made it too small."""
    bundle = jobs.bundle_of(case.fields)
    table, asked = jobs.coded(bundle, case.rows), jobs.requirement_of(bundle)
    entries = asked.entries(table.schema)
    try:
        outcome = anonymize_single(table, asked, job_score(bundle.job))
    except PrivacyError:
        assume(False)
    discarded = [step.candidate for step in outcome.steps if not step.applied]
    assume(discarded)
    for candidate in (as_it_stands(table.schema, outcome.cut, each) for each in discarded):
        final = partitions(table, entries, outcome)
        rows = final.failing(candidate, table.n_records)
        assert rows is not None
        n = int(table.weights[rows].sum())
        assert n > 0
        assert final.failing(candidate, n - 1) is None
        left = partitions(rest(table, rows), entries, outcome)
        assert left.violation(None, candidate, entries[0].scope.size) is None


def partitions(table: CodedTable, entries: Any, outcome: Outcome) -> Partitions:
    found = Partitions(table, entries, {}, all_cells=False)
    for candidate in outcome.applied:
        found.apply(candidate)
    return found


def test_the_order_of_rows_and_equal_rows_make_no_difference() -> None:
    bundle, table = customers(odd=5)
    rows = np.repeat(np.arange(len(table.cells)), table.weights)[::-1]
    units = jobs.part_of(table, rows)
    apart = CodedTable(units.schema, units.qid, units.cells, np.ones(len(rows), dtype=np.int64))

    def left_out(of: CodedTable) -> Any:
        cut, _ = jobs.run_single(bundle, rest(of, withheld(bundle, of, 5)))
        return jobs.multiset(release_of_rows(rest(of, withheld(bundle, of, 5)), cut.cut))

    assert left_out(table) == left_out(apart)


@pytest.mark.parametrize(
    "values",
    [
        {"taxonomy": {"Any": ["F", "M", "X"]}, "refine": "child"},
        {"suppress": ["F", "M", "X"]},
        {"taxonomy": {"Any": ["F", "M", "X"]}, "refine": "children"},
    ],
)
def test_three_odd_records_free_both_values_however_the_column_is_refined(values: Any) -> None:
    bundle = jobs.bundle_of(
        {
            "version": "1",
            "name": "odd",
            "partition": "single",
            "goal": "classification",
            "score": "infogain",
            "model": {"lkc": {"L": "1", "K": "10"}},
            "data": "t.csv",
            "columns": {
                "sex": {"role": "qid", **values},
                "dead": {"role": "class", "domain": ["Y", "N"]},
            },
        }
    )
    rows = [{"sex": "FM"[i % 2], "dead": "YN"[(i + (i % 7 == 0)) % 2]} for i in range(600)]
    table = jobs.coded(bundle, [*rows, *[{"sex": "X", "dead": "Y"}] * 3])

    def sexes(of: CodedTable) -> dict[str, int]:
        published = jobs.multiset(jobs.run_single(bundle, of)[1]).elements()
        return dict(Counter(sex for sex, _ in published))

    assert len(sexes(table)) == (1 if values.get("refine") == "children" else 2)
    assert not {"M", "X"} <= set(sexes(table))
    gone = withheld(bundle, table, 12)
    assert table.weights[gone].sum() == 3
    assert sexes(rest(table, gone)) == {"F": 300, "M": 300}
