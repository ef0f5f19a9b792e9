"""Values that somebody rules out, in joint runs of every kind: the result is that of a single holder."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.joint.columns import Columns
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.winner import Maximum
from anonymize.kd.single import anonymize_kd
from anonymize.linked_columns import Blocks
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_counts, release_of_rows
from anonymize.table import CodedTable
from tests.support import jobs, vertical
from tests.support.entries import ruled_lists
from tests.support.examples import examples
from tests.support.horizontal import expect_same, run_led, run_sealed, run_strict
from tests.support.kd import expect_same_table, kd_cases, run_sealed_kd
from tests.support.tables import Case, cases, dealt

RUNS = {"leader": run_led, "sealed": run_sealed, "strict": run_strict}


@pytest.mark.some(1)
@pytest.mark.parametrize("level", RUNS)
@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data())
def test_a_horizontal_run_equals_the_single_holder(level: str, case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive)
    requirement, _ = data.draw(ruled_lists(case, most=data.draw(st.sampled_from([1, 2]))))
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    tables = dealt(data, whole, 3 if level == "leader" else data.draw(st.sampled_from([2, 3])))
    request = replace(jobs.request_of(bundle), requirement=requirement)
    try:
        outcome = anonymize_single(whole, requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            RUNS[level](tables, request)
        return
    results, _ = RUNS[level](tables, request)
    if level != "strict":
        expect_same(results, outcome, whole)
        return
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    for result in results.values():  # which tells of no candidate that is discarded
        joint = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows


@settings(max_examples=examples(30), deadline=None)
@given(case=kd_cases(30), data=st.data())
def test_a_sealed_run_of_kd_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive)
    requirement, _ = data.draw(ruled_lists(case, most=data.draw(st.sampled_from([1, 2]))))
    whole = jobs.dense(jobs.coded(jobs.bundle_of(case.fields), case.rows))
    tables = dealt(data, whole, data.draw(st.sampled_from([2, 3])))
    try:
        outcome = anonymize_kd(whole, requirement)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates"):
            run_sealed_kd(tables, requirement)
        return
    results, _ = run_sealed_kd(tables, requirement)
    for result in results.values():
        expect_same_table(result.table, outcome.table)


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_no_vertical_group_has_one_protected_value(case: Case, data: st.DataObject, insider: bool) -> None:
    """`diversity: 2` speaks of one column at a time, so its holder can test it."""
    assume(case.problem.sensitive)
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    asks = (Ask(case.problem.L, (Size(case.problem.K), DiverseValues(2))),)
    requirement = AskedList(asks, insider)
    vertical.expect_as_alone(data, whole, replace(jobs.request_of(bundle), requirement=requirement))


@settings(max_examples=examples(30), deadline=None)
@given(case=cases(), data=st.data(), insider=st.booleans())
def test_a_vertical_run_equals_the_single_holder_block_by_block(
    case: Case, data: st.DataObject, insider: bool
) -> None:
    """Values of one holder are looked at together, and nothing across holders."""
    assume(case.problem.sensitive)
    bundle = jobs.bundle_of(case.fields)
    cut = vertical.cut_at_random(data, jobs.coded(bundle, case.rows))
    most = data.draw(st.sampled_from([1, 2]))
    requirement, _ = data.draw(ruled_lists(case, most=most, insider=insider, blocks=vertical.blocks_of(cut)))
    vertical.expect_cut_as_alone(data, cut, replace(jobs.request_of(bundle), requirement=requirement))


@pytest.mark.some(1)
@pytest.mark.parametrize("insider", [False, True])
@pytest.mark.parametrize("maximum", vertical.MAXIMA)
def test_a_holder_of_two_columns_sees_what_they_tell_together(insider: bool, maximum: type[Maximum]) -> None:
    """Ruling out x in s of a and b leaves x in t, so they stay with c and d, but where nothing is linked."""
    whole, request = tied()
    columns = Columns(("one", "two"), ("three", "three"))
    cut = vertical.cut_by_columns(whole, columns, ["one", "two", "three"], strangers=3)
    assert vertical.blocks_of(cut) == (("s", "t"),)
    linked = replace(request, requirement=together((("s", "t"),), insider))
    results, _ = vertical.run_vertical(cut, linked, maximum=maximum)
    vertical.expect_same(cut, results, linked)
    taken = {turn[0] for turn in vertical.applied(results["one"].outcome)}
    apart = anonymize_single(whole, together((("s",), ("t",)), insider), request.goal)
    assert {turn[0] for turn in vertical.applied(apart)} > taken


def together(blocks: Blocks, insider: bool) -> AskedList:
    bounds = (("s", Fraction(4, 5)), ("t", Fraction(4, 5)))
    demands = Size(5), RuledOutValues(1, bounds, blocks=blocks), DiverseValues(3, blocks=blocks)
    return AskedList((Ask(2, demands),), insider)


def tied() -> tuple[CodedTable, Request]:
    sensitive = {"role": "sensitive", "domain": ["x", "y", "z"]}
    fields = {
        "version": "1",
        "name": "tied",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "5", "C": "1"}},
        "score": "infogain",
        "data": "t.csv",
        "columns": {
            "q": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b"], "h": ["c", "d"]}}},
            "r": {"role": "qid", "taxonomy": {"*": ["m", "n"]}},
            "cls": {"role": "class", "domain": ["Y", "N"]},
            "s": sensitive,
            "t": sensitive,
        },
    }
    rng, rows = np.random.default_rng(5), []
    for i in range(600):
        q, four, other = "abcd"[i % 4], int(rng.integers(0, 4)), int(rng.integers(0, 4))
        tied = q in "ab" and rng.random() < 0.9
        cls = "YN"[int(rng.random() < (0.4 if q in "ab" else 0.6))]
        row = {"q": q, "r": "mn"[int(rng.integers(0, 2))], "cls": cls}
        rows.append({**row, "s": "xxyz"[four], "t": "yzxx"[four if tied else other]})
    bundle = jobs.bundle_of(fields)
    return jobs.coded(bundle, rows), jobs.request_of(bundle)
