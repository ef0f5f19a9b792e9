"""Released counts as a file: writing, reading back, and checking by what it says.

`counts.csv` has the job's columns in order, generalized, and the noisy count of each cell, which may be negative.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.noisy_table import NoisyTable
from anonymize.release import LabelledColumn, Release
from anonymize.table import Ints
from party.bundle import Bundle
from party.dp_report import dp_report_fields
from party.dp_result import DpResult
from party.errors import PartyError, json_object
from party.job import COUNT
from party.release_file import REPORT, TABLE, csv_bytes, read_csv

COUNTS = "counts.csv"
BY_COORDINATOR = frozenset({"finished", "versions", "cost"})
"""What of a report does not follow from the job and the release."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def delivered_files(bundle: Bundle) -> tuple[str, str]:
    """The files that parties receive in the end: the table, or the counts, and the report."""
    return (TABLE if bundle.job.model.dp is None else COUNTS), REPORT


def counts_csv(table: NoisyTable, names: Sequence[str]) -> bytes:
    """The released cells with their counts; ``names``: the published columns in order."""
    return csv_bytes(with_counts(table.cells.ordered(names), table.counts))


def with_counts(cells: Release, counts: Ints) -> Release:
    """A table of cells with the column of their counts."""
    values, codes = np.unique(counts, return_inverse=True)
    labels = tuple(map(str, values.tolist()))
    return Release({**cells.columns, COUNT: LabelledColumn(labels, codes)})


def read_counts(content: bytes | Path, names: Sequence[str]) -> tuple[Release, Ints]:
    """Read cells and counts back. Raises PartyError for other columns, or a count that is no integer."""
    release = read_csv(content, [*names, COUNT])
    column = release.columns[COUNT]
    if not all(_INTEGER.fullmatch(label) for label in column.labels):
        raise _wrong(f"column {COUNT} has a value that is no integer")
    values = np.array([int(label) for label in column.labels] or [0], dtype=np.int64)
    return release.ordered(names), values[column.codes]


def check_dp_delivery(bundle: Bundle, result: DpResult, files: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    Of the report everything but what the coordinator alone can say: the time, the versions, the costs.
    """
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != bundle.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    ours = {name: _text(value) for name, value in dp_report_fields(bundle, result).items()}
    told = {name: _text(value) for name, value in report.items() if name not in BY_COORDINATOR}
    for name in ours:
        if told.pop(name, None) != ours[name]:
            message = f"the delivered report says of {name} what does not follow from the release"
            raise PartyError("result-mismatch", message)
    if told:
        raise PartyError("result-mismatch", "the delivered report says more than follows from the release")
    if files[COUNTS] != counts_csv(result.table, bundle.job.published):
        raise PartyError("result-mismatch", "the delivered counts are not those that were computed")


def _text(value: Any) -> str:
    """Values that are the same, as JSON; 1, 1.0 and true are not."""
    return json.dumps(value, sort_keys=True)


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", what)
