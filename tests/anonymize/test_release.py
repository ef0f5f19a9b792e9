"""The released table: written out from rows or counts, and in an order that tells nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import top
from anonymize.release import LabelledColumn, Release, random_order, ranks, release_of_counts, release_of_rows
from anonymize.table import Schema, coded_table
from tests.support import jobs
from tests.support.candidates import refined_at_random
from tests.support.dp_tables import categorical
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.samples import release_of
from tests.support.tables import Case, cases


@settings(deadline=None, max_examples=examples(50))
@given(case=cases(), data=st.data())
def test_rows_and_counts_give_the_same_table(case: Case, data: st.DataObject) -> None:
    table = jobs.coded(jobs.bundle_of(case.fields), case.rows)
    cut, generalized, _ = refined_at_random(table, data)
    by_rows, by_counts = release_of_rows(table, cut), release_of_counts(table.schema, cut, generalized)
    assert jobs.multiset(by_rows) == jobs.multiset(by_counts)
    assert list(by_rows.columns) == list(by_counts.columns)
    assert by_rows.n_records == by_rows.in_rows().n_rows == table.n_records
    for column in table.schema.qid:
        labels = by_rows.columns[column.name].labels
        assert list(labels) == [column.label(node) for node in cut.nodes[table.schema.qid.index(column)]]


def test_a_table_without_a_class_has_no_such_column() -> None:
    schema = Schema((categorical("q", {"*": ["a", "b"]}),), None, ("",))
    table = coded_table(schema, [np.array([0, 1, 1])], np.zeros(3, dtype=np.int64), [])
    assert jobs.multiset(release_of_rows(table, top(schema))) == Counter({("*",): 3})


@given(seed=st.integers(0, 1000), n=st.integers(1, 30))
def test_shuffled_rows_are_the_same_rows(seed: int, n: int) -> None:
    rows = [(str(i), str(i % 3)) for i in range(n)]
    shuffled = release_of(["number", "rest"], rows).shuffled(SeededRng(seed))
    columns = [[c.labels[code] for code in c.codes] for c in shuffled.columns.values()]
    assert sorted(zip(*columns, strict=True)) == sorted(rows)  # cells of a row stay together


class Keys:
    """Gives these 64-bit keys as bytes."""

    def __init__(self, *keys: int) -> None:
        self._bytes = b"".join(key.to_bytes(8, "little") for key in keys)

    def bytes(self, n: int) -> bytes:
        assert n == len(self._bytes)
        return self._bytes


def test_the_order_is_that_of_one_whole_key_for_each_row() -> None:
    assert random_order(3, Keys(2**63, 5, 2**32)).tolist() == [1, 2, 0]  # unsigned, all eight bytes
    assert random_order(3, Keys(1 << 56, 2, 1)).tolist() == [2, 1, 0]
    assert random_order(0, Keys()).tolist() == []


@given(data=st.data(), shift=st.sampled_from([0, 1, 2, 3, 32, 60]))
def test_equal_keys_and_keys_that_end_differently_keep_their_order(data: st.DataObject, shift: int) -> None:
    keys = [key << shift for key in data.draw(st.lists(st.integers(0, 9), max_size=20))]
    order = random_order(len(keys), Keys(*keys)).tolist()
    assert order == sorted(range(len(keys)), key=keys.__getitem__)


def test_every_order_of_three_rows_is_as_frequent() -> None:
    rng = SeededRng("orders")
    seen = Counter(tuple(random_order(3, rng).tolist()) for _ in range(1200))
    assert len(seen) == 6
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 25  # chi square, 5 degrees of freedom


def test_columns_in_another_order() -> None:
    release = release_of(["a", "b", "c"], [("1", "2", "3")])
    assert list(release.ordered(["c", "nowhere", "a"]).columns) == ["c", "a"]


@pytest.mark.parametrize(("n_labels", "dtype"), [(1, "uint8"), (256, "uint8"), (257, "uint16")])
def test_codes_are_no_wider_than_their_labels_need(n_labels: int, dtype: str) -> None:
    """A million rows stay a few megabytes; and no code is cut off."""
    column = categorical("q", {"*": [f"v{i}" for i in range(max(n_labels, 2))]})
    classes = tuple(f"c{i}" for i in range(n_labels))
    schema = Schema((column,), "cls", classes)
    codes = np.arange(n_labels)
    table = coded_table(schema, [np.zeros(n_labels, dtype=np.int64)], codes, [])
    released = release_of_rows(table, top(schema)).columns["cls"]
    assert released.codes.dtype == dtype
    assert sorted(released.labels[code] for code in released.codes) == sorted(classes)


def test_a_release_of_no_rows() -> None:
    empty = Release({"a": LabelledColumn(("x",), np.zeros(0, dtype=np.uint8))})
    assert empty.n_rows == 0
    assert empty.shuffled(SeededRng(0)).n_rows == 0


def test_ranks_do_not_depend_on_how_rows_are_coded() -> None:
    one = LabelledColumn(("b", "a", "b", "c"), np.array([0, 1, 2, 3, 1]))
    other = LabelledColumn(("c", "b", "a"), np.array([1, 2, 1, 0, 2]))
    assert ranks(one).tolist() == ranks(other).tolist() == [1, 0, 1, 2, 0]
    assert ranks(LabelledColumn((), np.zeros(0, dtype=np.uint8))).tolist() == []


def test_nothing_of_the_rows_is_printed() -> None:
    release = release_of(["town"], [("Uppsala",), ("Lund",)])
    assert repr(release) == "Release()"
    assert repr(release.columns["town"]) == "LabelledColumn()"
