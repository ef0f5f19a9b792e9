"""Rows that are held come out as they went in, whatever the batches, and in labels that are in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import rows_held
from jobs.release_csv import csv_bytes, label_type
from jobs.rows_held import Texts, held_rows
from tests.support import jobs
from tests.support.releases import release_of

Rows = list[tuple[str, ...]]
NAMES = ["p", "q"]
CELLS = st.one_of(st.sampled_from(["", "a", "b"]), st.text(st.characters(codec="utf-8"), max_size=3))


def batch(rows: Sequence[tuple[str, ...]]) -> pa.RecordBatch:
    """Each batch with labels of its own, one of which no row has."""
    columns = []
    for i in range(len(NAMES)):
        labels = sorted({row[i] for row in rows} | {"of no row"})
        codes = pa.array([labels.index(row[i]) for row in rows], pa.int32())
        columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(labels, pa.string())))
    assert all(column.type == label_type() for column in columns)
    return pa.RecordBatch.from_arrays(columns, NAMES)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(CELLS, CELLS)), max_size=5), st.integers(0, 8))
def test_the_same_rows_in_the_same_bytes(batches: list[Rows], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_held, "_MOST_APART", most)
        patch.setattr(rows_held, "_AT_ONCE", 2)
        found = held_rows(map(batch, batches), NAMES)
        rows = [row for own in batches for row in own]
        assert jobs.multiset(found) == Counter(rows)
        for column in found.columns.values():
            labels = list(column.labels)
            assert labels == sorted({labels[code] for code in column.codes.tolist()})
        if rows:
            expected = release_of(NAMES, rows).in_label_order()
            assert csv_bytes(found.in_label_order()) == csv_bytes(expected)
    if len(rows) <= most:
        assert [tuple(c.labels[c.codes[i]] for c in found.columns.values()) for i in range(len(rows))] == rows


def test_equal_rows_are_joined_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_held, "_MOST_APART", 10)
    rows = [(str(i), "x") for i in range(8)]
    held: list[int] = []
    original = rows_held._joined

    def noting(columns: list[rows_held._Held], weights: np.ndarray[tuple[int], np.dtype[np.int64]]) -> object:
        held.append(len(weights))
        return original(columns, weights)

    monkeypatch.setattr(rows_held, "_joined", noting)
    found = held_rows((batch(rows) for _ in range(20)), NAMES)
    assert max(held) == 24
    assert found.n_entries <= 24
    assert found.n_rows == 160


def test_texts_of_each_batch_are_its_own() -> None:
    batches: list[Rows] = [[("a", "x"), ("b", "y")], [("c", "y"), ("a", "z")]]
    assert jobs.multiset(held_rows(map(batch, batches), NAMES)) == Counter(batches[0] + batches[1])


def test_codes_are_as_narrow_as_their_labels_allow() -> None:
    found = held_rows([batch([(str(i), "x") for i in range(300)]), batch([("1", "y")])], NAMES)
    assert [column.codes.dtype for column in found.columns.values()] == [np.uint16, np.uint8]


def test_texts_are_a_sequence() -> None:
    texts = Texts(pa.array(["a", "é", "𝄞"], pa.large_string()))
    assert (len(texts), texts[1], texts[-1], list(texts[1:])) == (3, "é", "𝄞", ["é", "𝄞"])
    assert pa.array(texts, pa.string()).to_pylist() == list(texts) == ["a", "é", "𝄞"]
    assert "é" not in repr(texts)
