"""t-closeness in top-down runs and kd of one holder, against the definition taken literally; and what verifies it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymize.kd.single import anonymize_kd
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.verification.tables import Claim, examine
from tests.support import jobs, kd_reference, reference
from tests.support.closeness import Close
from tests.support.entries import close_lists
from tests.support.examples import examples
from tests.support.kd import kd_cases, printed
from tests.support.samples import release_of
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases


@settings(max_examples=examples(80), deadline=None)
@given(case=cases(), data=st.data())
def test_top_down_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive and len(case.rows) >= case.problem.K)
    requirement, problem = data.draw(close_lists(case))
    bundle = jobs.bundle_of(case.fields)
    table, goal = jobs.coded(bundle, case.rows), PUBLISHED[bundle.job.goal]
    expected = reference.anonymize(list(case.rows), problem)
    assert expected is not None, "the whole table is as close to itself as can be"
    outcome = anonymize_single(table, requirement, goal)
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(table, outcome.cut)) == Counter(expected[1])


@settings(max_examples=examples(80), deadline=None)
@given(case=kd_cases(), data=st.data())
def test_kd_equals_the_definition_taken_literally(case: Case, data: st.DataObject) -> None:
    assume(case.problem.sensitive and len(case.rows) >= case.problem.K)
    requirement, problem = data.draw(close_lists(case))
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    expected = kd_reference.anonymize(list(case.rows), problem)
    assert expected is not None
    assert printed(table.schema, anonymize_kd(table, requirement).table) == expected


@settings(max_examples=examples(100), deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.sampled_from("abc")] * 3), min_size=1, max_size=12),
    most=st.fractions(Fraction(1, 9), Fraction(8, 9), max_denominator=9),
    ordered=st.booleans(),
)
def test_a_verifier_finds_the_greatest_distance(
    rows: list[tuple[str, str, str]], most: Fraction, ordered: bool
) -> None:
    """On one of two columns, and with a value of the row that no record has."""
    names, row = ["p", "r", "s"], tuple("abcd") if ordered else None
    table = [dict(zip(names, cells, strict=True)) for cells in rows]
    close = Close(table, {"s": (most, row)})
    groups = [[r for r in table if r[name] == own] for name in "pr" for own in {r[name] for r in table}]
    greatest = max(close.distance("s", group) for group in groups)
    claim = Claim(("p", "r"), 1, {"t": {"s": (most, row)}})
    examined = examine(release_of(names, list(rows)), claim)
    assert (examined.finding is None) == (greatest <= most)
    if examined.finding is None:
        assert examined.worst == {("t", "s"): greatest}
    else:
        assert (examined.finding.threshold, examined.finding.sensitive) == ("t", "s")
