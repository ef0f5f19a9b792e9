"""Coded tables and generalized tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize import table
from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.table import (
    MAX_CELLS,
    Categories,
    Packed,
    QidColumn,
    Schema,
    SensitiveColumn,
    coded_table,
    joined,
    narrowest,
    pack,
    tally,
)
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


@given(data=st.data(), most=st.sampled_from([0, 4, 1 << 22]))
def test_packed_columns_come_back_in_their_order(data: st.DataObject, most: int) -> None:
    radices = data.draw(
        st.lists(st.sampled_from([1, 2, 3, 1 << 20, 1 << 31, 1 << 60]), min_size=1, max_size=6)
    )
    n = data.draw(st.integers(0, 12))
    values = [st.sampled_from(sorted({0, radix - 1, radix // 2})) for radix in radices]
    rows = data.draw(st.lists(st.tuples(*values), min_size=n, max_size=n))
    columns = [np.array([row[i] for row in rows], dtype=narrowest(radix)) for i, radix in enumerate(radices)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MOST_TALLIED", most)
        for packed in (Packed.of(columns, radices), Packed.of(columns, radices).numbered()):
            assert (packed.keys < packed.space).all()
            back = packed.columns(packed.keys.astype(np.int64))
            assert list(zip(*(c.tolist() for c in back), strict=True)) == rows
            by_key = sorted(zip(packed.keys.tolist(), rows, strict=True))
            assert [row for _, row in by_key] == sorted(rows)
            assert len(set(packed.keys.tolist())) == len(set(rows))


def test_rows_of_many_columns_are_joined_by_weight() -> None:
    """Keys of all columns would not fit 62 bits. Rows of one record each are joined like rows of several."""
    rng = np.random.default_rng(0)
    grid = Grid(tuple(map(Decimal, range(1001))))
    schema = Schema(tuple(QidColumn(f"c{i}", grid) for i in range(9)), "k", ("a", "b"))
    kinds = rng.integers(0, 1000, (50, 9))
    places = rng.integers(0, 50, 400)
    qid = [kinds[places, i] for i in range(9)]
    ones = coded_table(schema, qid, places % 2, [])
    twos = replace(ones, weights=np.full(400, 2))
    for joined_rows, weight in ((ones.collapsed(), 1), (twos.collapsed(), 2)):
        found = dict(
            zip(zip(*(c.tolist() for c in joined_rows.qid), strict=True), joined_rows.weights, strict=True)
        )
        assert found == {tuple(kinds[i].tolist()): weight * n for i, n in Counter(places.tolist()).items()}
        assert [column.dtype for column in joined_rows.qid] == [column.dtype for column in ones.qid]


@given(keys=st.lists(st.integers(0, 40), max_size=30), most=st.sampled_from([0, 41, 1 << 22]))
def test_keys_are_numbered_and_summed_with_or_without_sorting(keys: list[int], most: int) -> None:
    weights = [2 * key + row + 1 for row, key in enumerate(keys)]
    different = sorted(set(keys))
    own = np.array(keys, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MOST_TALLIED", most)
        first, kind = table.kinds_of_keys(own, 41)
        found, sums = table.sums_by_key(own, np.array(weights, dtype=np.int64), 41)
    assert first.tolist() == [keys.index(key) for key in different]
    assert kind.tolist() == [different.index(key) for key in keys]
    assert found.tolist() == different
    assert sums.tolist() == [sum(w for k, w in zip(keys, weights, strict=True) if k == key) for key in found]


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
    columns = [c.tolist() for c in (*table.qid, jobs.dense(table).cells, table.weights)]
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


def wide(n_columns: int) -> Schema:
    domain = tuple(map(str, range(1025)))
    columns = tuple(SensitiveColumn(f"s{n}", domain, (0,)) for n in range(n_columns))
    return Schema((), "c", ("y", "n"), columns)


def test_more_cells_than_there_are_numbers_are_refused_in_a_dense_table() -> None:
    codes = [np.array([0, 1024])] * 9
    with pytest.raises(SchemaError, match=str(1 << 62)) as caught:
        coded_table(wide(9), [], np.array([0, 1]), codes)
    assert caught.value.error_id == "domain-too-large"
    with pytest.raises(SchemaError, match=str(MAX_CELLS)):
        wide(2).require_few_cells()


def test_a_sparse_table_has_the_same_rows() -> None:
    table = coded_table(wide(2), [], np.array([0, 1, 1]), [np.array([7, 0, 0]), np.array([1024, 3, 3])])
    sparse = table.sparse()
    assert (sparse.schema.n_cells, sparse.cells.tolist()) == (2, [0, 1, 1])
    for i in range(3):
        assert sparse.axis(i).tolist() == table.axis(i).tolist()


@pytest.mark.parametrize("n_columns", [2, 9])  # 9: more combinations than 62 bits hold
def test_a_holder_of_everything_numbers_the_combinations_that_occur(n_columns: int) -> None:
    first, last = np.array([7, 3, 7, 3, 7]), np.array([0, 1024, 0, 1024, 5])
    sensitive = [first] * (n_columns - 1) + [last]
    classes = np.array([1, 0, 1, 1, 1])
    table = coded_table(wide(n_columns), [], classes, sensitive, occurring=True)
    schema = table.schema
    assert table.cells.tolist() == [2, 0, 2, 1, 3]  # by class, then by value
    assert schema.n_cells == 4
    assert table.axis(0).tolist() == classes.tolist()
    assert [table.axis(i).tolist() for i in range(1, n_columns + 1)] == [s.tolist() for s in sensitive]
    assert [axis.tolist() for axis in schema.axes(table.cells)] == [classes.tolist()] + [
        s.tolist() for s in sensitive
    ]
    assert schema.classes_of(np.arange(4)).tolist() == [0, 1, 1, 1]
    number, n = schema.beside_class()
    assert n == 3
    assert number[0] == number[1]
    assert len(set(number[1:].tolist())) == 3


def test_combinations_stay_numbered_when_domains_shrink() -> None:
    table = coded_table(wide(2), [], np.array([1, 0]), [np.array([3, 9]), np.array([9, 9])], occurring=True)
    domains = (("3", "9"), ("9",))
    columns = tuple(SensitiveColumn(f"s{i}", d, (0,)) for i, d in enumerate(domains))
    recoded = table.recoded(Schema((), "c", ("y", "n"), columns))
    assert [recoded.axis(i).tolist() for i in range(3)] == [[1, 0], [0, 1], [0, 0]]
    assert recoded.schema.n_cells == 2


def test_dense_cells_tell_the_same_of_themselves() -> None:
    columns = tuple(SensitiveColumn(n, ("a", "b", "c"), (0,)) for n in "st")
    schema = Schema((), "c", ("y", "n"), columns)
    cells = np.arange(schema.n_cells)
    axes = schema.axes(cells)
    assert np.ravel_multi_index(axes, schema.cell_shape).tolist() == cells.tolist()
    assert schema.classes_of(cells).tolist() == axes[0].tolist()
    number, n = schema.beside_class()
    assert n == 9
    assert number.tolist() == (axes[1] * 3 + axes[2]).tolist()


def test_several_published_values_may_share_a_test_value() -> None:
    plain = SensitiveColumn("s", ("a", "b", "c"), (1,))
    assert plain.tested == plain.domain
    assert plain.tests(np.array([2, 0])).tolist() == [2, 0]
    coarse = SensitiveColumn("s", ("a", "b", "c"), (1,), Categories(("A", "B"), (0, 1, 0)))
    assert coarse.tested == ("A", "B")
    assert coarse.tests(np.array([2, 1, 0])).tolist() == [0, 1, 0]
