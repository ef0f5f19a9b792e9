"""Explorers of small tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.data.sources import Csv
from jobs.lkc.exploring import Explorer
from jobs.loading import load_task
from tests.support import jobs
from tests.support.network import write_job
from tests.support.samples import COLUMNS


def explorer_of(folder: Path, fields: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> Explorer:
    """Write a job and its table, with the sample columns, into a folder."""
    path = write_job(folder, fields)
    source = Csv(jobs.write_csv(folder / "table.csv", rows, COLUMNS))
    return Explorer.of(str(path), lambda changes: load_task(path, changes), source)


def lkc(**keys: Any) -> dict[str, Any]:
    return {"lkc": keys}
