"""Coded tables and generalized tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import SchemaError
from anonymize.table import MAX_CELLS, Schema, SensitiveColumn, joined, pack, tally
from tests.support import jobs
from tests.support.tables import Case, cases


@given(st.data())
def test_pack_tells_exactly_equal_rows_together(data: st.DataObject) -> None:
    radices = data.draw(
        st.lists(st.sampled_from([1, 2, 3, 1 << 20, 1 << 31, 1 << 60]), min_size=1, max_size=6)
    )
    n = data.draw(st.integers(1, 12))
    columns = [
        np.array(
            data.draw(st.lists(st.sampled_from(sorted({0, radix - 1, radix // 2})), min_size=n, max_size=n))
        )
        for radix in radices
    ]
    keys = pack(columns, radices)
    rows = list(zip(*(c.tolist() for c in columns), strict=True))
    for i in range(n):
        for j in range(n):
            assert (keys[i] == keys[j]) == (rows[i] == rows[j])


@settings(deadline=None)
@given(cases())
def test_collapsing_and_joining_keep_the_multiset(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    half = len(whole.weights) // 2
    assert len(set(_rows(whole))) == len(_rows(whole))
    assert whole.n_records <= len(case.rows)
    rows = np.arange(len(whole.weights))
    halves = [jobs.part_of(whole, rows[:half]), jobs.part_of(whole, rows[half:])]
    assert Counter(_rows(joined([part for part in halves if part.n_records]))) == Counter(_rows(whole))


def _rows(table):  # type: ignore[no-untyped-def]
    columns = [c.tolist() for c in (*table.qid, table.cells, table.weights)]
    return list(zip(*columns, strict=True))


@settings(deadline=None)
@given(cases())
def test_class_histograms_count_records(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    table = jobs.coded(bundle, case.rows)
    for i in range(len(table.schema.qid)):
        histogram = table.class_histogram(i)
        assert histogram.shape == (table.schema.qid[i].n_leaves, table.schema.n_classes)
        assert histogram.sum() == table.n_records


def test_tally_is_exact_for_large_weights() -> None:
    weights = np.array([2**31 - 1] * 4, dtype=np.int64)
    assert tally(np.array([0, 0, 1, 2]), weights, 4).tolist() == [2**32 - 2, 2**31 - 1, 2**31 - 1, 0]


def test_too_many_cells_are_refused() -> None:
    domain = tuple(map(str, range(1025)))
    columns = tuple(SensitiveColumn(n, domain, (0,)) for n in "ab")
    with pytest.raises(SchemaError, match=str(MAX_CELLS)) as caught:
        Schema((), None, ("",), columns)
    assert caught.value.error_id == "domain-too-large"
