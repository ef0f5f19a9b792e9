"""Released counts as a file: they come back as they were, and nothing else is read as a count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.release import LabelledColumn, Release
from jobs.dp.counts import COUNTS, counts_csv, read_counts, with_counts
from jobs.errors import PartyError
from jobs.release.csv import csv_bytes
from tests.support.dp_jobs import made


def test_counts_come_back(tmp_path: Path) -> None:
    """Signed, in the job's order of columns, from a file or from memory."""
    site, result = made("horizontal")
    names = site.bundle.job.published
    content = counts_csv(result.table, names)
    (tmp_path / COUNTS).write_bytes(content)
    for source in (content, tmp_path / COUNTS):
        cells, counts = read_counts(source, names)
        assert counts.tolist() == result.table.counts.tolist()
        assert list(cells.columns) == list(names)
    assert content.splitlines()[0].decode() == ",".join([*names, "count"])


COLUMN = {"a": LabelledColumn(("x", "y"), np.array([0, 1, 0]))}


@given(st.lists(st.integers(-(10**17), 10**17), min_size=3, max_size=3))
def test_any_count_comes_back(counts: list[int]) -> None:
    content = csv_bytes(with_counts(Release(COLUMN), np.array(counts)))
    assert read_counts(content, ["a"])[1].tolist() == counts


@pytest.mark.parametrize("count", ["", "1.0", "+1", "01", "-0x1", "1e3", "NaN", "9" * 30, " 1", "-"])
def test_counts_that_are_no_integers(count: str) -> None:
    with pytest.raises(PartyError) as caught:
        read_counts(f"a,count\nx,{count}\n".encode(), ["a"])
    assert caught.value.problem.error_id == "verification-failed"
