"""Sealed horizontal LKC: the same result as a single holder, up to the limits of the arithmetic."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.table import MAX_RECORDS, CodedTable, Schema, SensitiveColumn, coded_table, joined
from crypto import batch
from crypto.errors import LocalProtocolError
from crypto.local import run_local
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.entries import lkc
from tests.support.examples import examples
from tests.support.horizontal import (
    Revealed,
    expect_bytes_of_the_pair,
    expect_openings,
    expect_same,
    expect_sealed_ledger,
    greatest_tables,
    most_rounds,
    numeric_column,
    run_sealed,
    small_case,
    small_lkc,
    whole_of,
)
from tests.support.rng import SeededRng
from tests.support.scores import PUBLISHED
from tests.support.tables import Case, cases, dealt
from tests.support.vectors import Golden


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 2, 3, 5]))
    tables = dealt(data, whole, n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    request = jobs.request_of(bundle)
    try:
        outcome, _ = jobs.run_single(bundle, whole)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_sealed(tables, request, leader=leader, deputy=deputy)
        return
    results, transcript = run_sealed(tables, request, leader=leader, deputy=deputy)
    expect_same(results, outcome, whole)
    expect_sealed_ledger(results["p0"], request)
    assert transcript.rounds <= most_rounds(results["p0"], transcript, n)


@pytest.mark.some(3)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("c", [Fraction(1), Fraction(4, 5)])
@pytest.mark.parametrize("k", [1, 2, 90, 91])
def test_limits_at_their_edges(goal: Any, c: Fraction, k: int) -> None:
    """K = 1: no identity bound; C = 1: no attribute bound; K at and above the number of rows."""
    tables, request = small_case()
    request = dataclasses.replace(request, requirement=small_lkc(2, k, c), goal=PUBLISHED[goal])
    whole = whole_of(tables)
    if k > whole.n_records:
        with pytest.raises(PrivacyError):
            run_sealed(tables, request)
        return
    results, _ = run_sealed(tables, request)
    expect_same(results, anonymize_single(whole, request.requirement, PUBLISHED[goal]), whole)


def test_a_party_with_one_row_and_one_with_none() -> None:
    tables, request = small_case()
    whole = whole_of(tables)
    owners = np.zeros(whole.n_records, dtype=np.int64)
    owners[5] = 1
    shares = jobs.split_among(whole, owners, 3)
    assert [table.n_records for table in shares] == [89, 1, 0]
    results, _ = run_sealed(shares, request)
    expect_same(results, anonymize_single(whole, request.requirement, request.goal), whole)


def wide_job(cells: int, classes: int) -> dict[str, Any]:
    """A numeric column with many cut points, and several sensitive columns with their own values and C."""
    return {
        "version": "1",
        "name": "wide",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "3", "C": "0.9"}},
        "score": "infogain",
        "data": "t.csv",
        "columns": {
            "x": {"role": "qid", "numeric": {"min": "0", "max": str(cells), "step": "1"}},
            "q": {"role": "qid", "taxonomy": {"*": [f"v{i}" for i in range(9)]}},
            "cls": {"role": "class", "domain": [f"c{i}" for i in range(classes)]},
            "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x", "z"]},
            "t": {"role": "sensitive", "domain": ["0", "1"], "values": ["1"], "C": "2/3"},
            "u": {"role": "sensitive", "domain": ["a", "b"], "C": "1"},
        },
    }


@pytest.mark.some(1)
@pytest.mark.parametrize(("cells", "classes"), [(40, 5), (1024, 2), (7, 1)])
def test_many_cut_points_classes_and_sensitive_columns(
    cells: int,
    classes: int,
    revealed: Revealed,
    computed: list[Computed],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if cells == 1024:
        monkeypatch.setattr(batch, "LOOKAHEAD", 2)
    goal = {"goal": "general", "score": "groups"} if classes == 1 else {}
    bundle = jobs.bundle_of(wide_job(cells, classes) | goal)
    rng = np.random.default_rng(cells)
    x = rng.integers(0, cells, 400)
    rows = [
        {
            "x": str(v),
            "q": f"v{rng.integers(0, 9)}",
            "cls": f"c{int(v * classes / cells + rng.random()) % classes}",
            "s": "xyz"[rng.integers(0, 3)],
            "t": str(rng.integers(0, 2)),
            "u": "ab"[rng.integers(0, 2)],
        }
        for v in x
    ]
    whole = jobs.coded(bundle, rows)
    tables = jobs.split_among(whole, rng.integers(0, 2, whole.n_records), 2)
    results, transcript = run_sealed(tables, jobs.request_of(bundle))
    outcome, _ = jobs.run_single(bundle, whole)
    assert len(outcome.applied) > 1
    expect_same(results, outcome, whole)
    expect_openings(computed, revealed[0], jobs.request_of(bundle))
    assert transcript.rounds <= most_rounds(results["p0"], transcript, 2, computed)
    if cells == 1024:  # whose first batches are more than one chunk
        assert transcript.rounds > most_rounds(results["p0"], transcript, 2)
    expect_bytes_of_the_pair(transcript, computed, results["p0"])


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
def test_almost_two_to_the_31_records(goal: Any) -> None:
    """Widths come from the public number of rows; weights stand for records."""
    tables, request = small_case()
    whole = whole_of(tables)
    factor = (2**31 - 1) // whole.n_records
    heavy = [dataclasses.replace(t, weights=t.weights * factor) for t in tables[:2]]
    light = dataclasses.replace(tables[2], weights=tables[2].weights * factor - 1)
    union = joined([*heavy, light])
    assert 2**31 - 200 < union.n_records < 2**31
    outcome = anonymize_single(union, lkc(2, 10**8), PUBLISHED[goal])
    assert outcome.applied
    names = ("p0", "p1", "p2")
    request = Request(request.schema, lkc(2, 10**8), PUBLISHED[goal], bytes(32))
    results, _ = run_local(
        {
            me: anonymize_sealed(
                Roster(me, names, "p0", "p1"), table, request, SeededRng(me), mode="horizontal/sealed"
            )
            for me, table in zip(names, [*heavy, light], strict=True)
        },
        record=False,
    )
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
    assert results["p2"].generalized.n_records == union.n_records


def test_the_greatest_table() -> None:
    """2^31 - 1 records, all of them in one cell."""
    tables, request = greatest_tables()
    results, _ = run_sealed(tables, request)
    outcome = anonymize_single(joined(tables), request.requirement, request.goal)
    assert outcome.applied
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        assert result.generalized.n_records == MAX_RECORDS


def test_too_many_records_in_sum_fail_the_root_check(revealed: Revealed) -> None:
    """Each party's rows are fewer than 2**31, their sum is not: refused, as the arithmetic would not be exact."""
    tables, request = small_case()
    heavy = [dataclasses.replace(t, weights=t.weights * (2**31 // 45)) for t in tables]
    with pytest.raises(
        PrivacyError, match="or all parties together have more than 2147483647 rows"
    ) as caught:
        run_sealed(heavy, request)
    assert caught.value.error_id == "requirement-unmet"
    assert revealed[0] == [("root_check", False, "all")]


@pytest.mark.parametrize("n_records", [29, 30])
def test_a_c_too_fine_for_the_rows_fails_the_root_check(revealed: Revealed, n_records: int) -> None:
    """C has so many digits that 29 rows are the most; one more, and the bit is 0, of which the error says this."""
    tables, request = small_case()
    (column,) = request.schema.sensitive
    q = (2**62 - 1) // 29
    column = dataclasses.replace(column, protected=(2,))
    schema = dataclasses.replace(request.schema, sensitive=(column,))
    whole = dataclasses.replace(whole_of(tables), schema=schema)
    units = jobs.split_among(whole, np.arange(whole.n_records) // n_records, 4)[0]
    request = dataclasses.replace(request, schema=schema, requirement=small_lkc(2, 2, Fraction(q - 1, q)))
    parties = jobs.split_among(units, np.arange(n_records) % 2, 2)
    if n_records == 29:
        expect_same(
            run_sealed(parties, request)[0], anonymize_single(units, request.requirement, request.goal), units
        )
        return
    with pytest.raises(PrivacyError, match="more than 29 rows, the most that C with so many digits allows"):
        run_sealed(parties, request)
    assert revealed[0] == [("root_check", False, "all")]


def _numeric_case(codes: list[list[int]], classes: list[int], sensitive: list[int]) -> CodedTable:
    """Columns of two cells, two classes, one protected value."""
    columns = tuple(numeric_column(name, 2) for name in "ab"[: len(codes)])
    schema = Schema(columns, "c", ("y", "n"), (SensitiveColumn("s", ("x", "z"), (0,)),))
    return coded_table(
        schema, [np.array(values) for values in codes], np.array(classes), [np.array(sensitive)]
    )


@pytest.mark.parametrize(
    ("whole", "k", "c"),
    [
        # a child of 80 with 5 protected ones: 4·80 − 5·5 = 295 takes nine bits and the sign
        (
            _numeric_case([[0] * 80 + [1] * 10], [0] * 70 + [1] * 20, [0] * 5 + [1] * 80 + [0] + [1] * 4),
            1,
            Fraction(4, 5),
        ),
        # a whole bit of InfoGain, the most two classes have, beside a column with less
        (
            _numeric_case(
                [[0] * 24 + [1] * 32 + [0] * 8, [0] * 32 + [1] * 32],
                [0] * 32 + [1] * 32,
                [1] * 64,
            ),
            2,
            Fraction(1),
        ),
    ],
    ids=["differences", "keys"],
)
def test_the_widest_numbers(whole: CodedTable, k: int, c: Fraction) -> None:
    parties = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    request = Request(whole.schema, small_lkc(2, k, c), PUBLISHED["classification"], bytes(32))
    results, _ = run_sealed(parties, request)
    outcome = anonymize_single(whole, request.requirement, request.goal)
    assert outcome.applied
    expect_same(results, outcome, whole)


def test_golden_transcripts(golden: Golden) -> None:
    tables, request = small_case()
    golden.check("sealed", "three", run_sealed(tables, request)[1].digest())
    two = [tables[0], joined(tables[1:])]
    golden.check("sealed", "two", run_sealed(two, request)[1].digest())
    general = dataclasses.replace(request, goal=PUBLISHED["general"])
    golden.check("sealed", "general", run_sealed(tables, general)[1].digest())


@pytest.mark.parametrize("pair", [("p0", "p0"), ("p0", "p9"), ("p9", "p1")])
def test_a_pair_must_be_two_parties_of_the_roster(pair: tuple[str, str]) -> None:
    tables, request = small_case()
    names = ("p0", "p1", "p2")
    with pytest.raises(LocalProtocolError, match="two different parties"):
        run_local(
            {
                me: anonymize_sealed(
                    Roster(me, names, *pair), tables[0], request, SeededRng(me), mode="horizontal/sealed"
                )
                for me in names
            }
        )
