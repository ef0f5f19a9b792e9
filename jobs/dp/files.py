"""Files of a DP release: all files follow from the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonymize.dp.noisy_table import NoisyTable
from jobs.dp.counts import COUNTS, counts_csv, rows_csv
from jobs.dp.report import report_fields
from jobs.dp.result import DpResult
from jobs.dp.verify import require_verified_counts
from jobs.options import Options
from jobs.release.csv import TABLE
from jobs.release.sums import SUMS, read_sums
from jobs.task import Collected, Rendered, Task


def render(task: Task, result: DpResult) -> Rendered:
    """Return counts and report of a release."""
    counts = counts_csv(result.table, task.job.published)
    return Rendered({COUNTS: counts}, report_fields(task, result))


def _with_rows(task: Task, rendered: Rendered, table: NoisyTable) -> Rendered:
    """Add the rows made of the counts, for the maker alone."""
    return replace(rendered, beside={TABLE: rows_csv(table, task.job.published)})


def made_of(task: Task, collected: Collected, options: Options) -> Rendered:
    """Make the release of a joint run. Raises PartyError unless the release passes the verification of readers."""
    rendered = render(task, collected.result)
    table = require_verified_counts(task, rendered.tables[COUNTS], rendered.report).table
    return _with_rows(task, rendered, table) if options.as_records else rendered


def expected_of(task: Task, result: DpResult, files: Mapping[str, bytes]) -> Rendered:
    """Return the release that a party expects from its result; with rows if the coordinator states rows."""
    rendered = render(task, result)
    return _with_rows(task, rendered, result.table) if TABLE in read_sums(files[SUMS]) else rendered
