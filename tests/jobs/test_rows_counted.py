"""Rows read back are counted: whatever the batches, the same rows come out, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs import rows_counted
from jobs.release_csv import label_type
from jobs.rows_counted import counted_rows
from tests.support import jobs

Rows = list[tuple[str, ...]]


def batch(rows: Sequence[tuple[str, ...]], n_columns: int) -> pa.RecordBatch:
    """Each batch with labels of its own."""
    columns = [pa.array([row[i] for row in rows], pa.string()).dictionary_encode() for i in range(n_columns)]
    return pa.RecordBatch.from_arrays(
        [column.cast(label_type()) for column in columns], [str(i) for i in range(n_columns)]
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from("xyz"), st.text("12", max_size=2))
        ),
        max_size=6,
    ),
    st.integers(0, 8),
)
def test_rows_of_batches_are_counted(batches: list[Rows], fewest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_counted, "_FEWEST_TO_JOIN", fewest)
        found = counted_rows([batch(rows, 3) for rows in batches], ["p", "q", "r"])
    expected = Counter(row for rows in batches for row in rows)
    assert list(found.columns) == ["p", "q", "r"]
    assert jobs.multiset(found) == expected
    assert found.n_entries == len(expected)


def test_equal_rows_of_many_batches_are_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory are different rows, not batches."""
    joined: list[int] = []
    original = rows_counted._joined

    def noting(kept: Sequence[rows_counted._Counted]) -> rows_counted._Counted:
        joined.append(sum(len(weights) for _, weights in kept))
        return original(kept)

    monkeypatch.setattr(rows_counted, "_FEWEST_TO_JOIN", 10)
    monkeypatch.setattr(rows_counted, "_joined", noting)
    rows = [(str(i),) for i in range(8)]
    found = counted_rows((batch(rows, 1) for _ in range(100)), ["a"])
    assert (found.n_entries, found.n_rows) == (8, 800)
    assert max(joined) <= 8 + 20
    assert len(joined) > 20


def test_more_labels_than_a_byte_has_numbers() -> None:
    """Codes of earlier batches are narrower than those of later ones."""
    batches = [[(str(i), "x") for i in range(start, start + 200)] for start in (0, 150, 300)]
    found = counted_rows([batch(rows, 2) for rows in batches], ["a", "b"])
    assert jobs.multiset(found) == Counter(row for rows in batches for row in rows)
