"""One holder's LKC runs, from a table of its own, against the definition."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from anonymize.errors import PrivacyError
from anonymize.release import release_of_rows
from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.lkc.single import anonymized
from jobs.reading import load_table
from jobs.task import Task
from tests.support import jobs, reference


def source_of(folder: Path, rows: Sequence[Mapping[str, str]]) -> Csv:
    return Csv(jobs.write_csv(folder / "table.csv", rows))


def expect_as_defined(task: Task, rows: list[reference.Row], problem: reference.Problem) -> None:
    """The turns and the table are those that the definition, taken literally, comes to; or both refuse."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_table(source_of(Path(folder), rows), task)
    expected = reference.anonymize(rows, problem)
    if expected is None:
        with pytest.raises(PrivacyError, match="already violates"):
            anonymized(task, loaded, Observer())
        return
    outcome = anonymized(task, loaded, Observer())
    assert jobs.turns(outcome) == expected[0]
    assert jobs.multiset(release_of_rows(loaded.table, outcome.cut)) == Counter(expected[1])
