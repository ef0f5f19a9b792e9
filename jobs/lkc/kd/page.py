"""Reasons why the groups of a kd table are no smaller, for the page of a release and for the page of the owner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonymize.release import Release
from anonymize.table import CodedTable
from jobs.data.counted import counted
from jobs.lkc.kd.stopping import FINEST, REFUSED, SMALL, Ended, ended, stopped_by_k, thresholds
from jobs.lkc.settings import PUBLIC
from jobs.page.html import Content, tag
from jobs.page.parts import Line, Section, facts, listing, pairs, paragraph, percent
from jobs.task import Task

_TITLE = "Why groups are no smaller"
_MOST_GROUPS = 10
"""Most groups in a table of groups; the largest groups without an allowed cut."""


def sections(task: Task, release: Release) -> Iterator[Section]:
    """Yield the reasons, from the released table."""
    groups = ended(task, release)
    if groups is None:
        return
    largest = groups.largest_refused[:_MOST_GROUPS].tolist()
    lines = [(pairs(groups.values(group)), f"{int(groups.sizes[group]):,}") for group in largest]
    yield Section(
        _TITLE,
        [
            paragraph("Each group was cut by itself, until one of these:"),
            _reasons(task, groups),
            paragraph("Share of the records whose group was cut no further in a column, by reason:"),
            _by_column(groups),
            *([tag("h3", "The largest groups without an allowed cut")] if lines else ()),
            facts(lines, head=("group", "records")) if lines else None,
            *([tag("h3", "To keep more detail"), listing(frees)] if (frees := _frees(task, groups)) else ()),
        ],
    )


def own_sections(task: Task, table: CodedTable, release: Release) -> Iterator[Section]:
    """Yield the thresholds that stopped the largest groups, from the rows of a single holder."""
    groups = ended(task, release)
    if groups is None or task.job.roster:
        return
    largest = groups.largest_refused[:_MOST_GROUPS].tolist()
    by_k = stopped_by_k(task, table, groups, largest)
    others = " or ".join(thresholds(task))
    lines = [
        (pairs(groups.values(group)), f"{int(groups.sizes[group]):,}", "K" if is_k else others)
        for group, is_k in zip(largest, by_k, strict=True)
    ]
    if lines:
        words = "The largest groups of 2·K records or more that no cut divides, and the threshold that a side breaks:"
        yield Section(_TITLE, [paragraph(words), facts(lines, head=("group", "records", "threshold"))])


def _reasons(task: Task, groups: Ended) -> Content:
    others = thresholds(task)
    told = f" or break {' or '.join(others)}; the table does not tell which" if others else ""
    words = {
        SMALL: (
            f"Fewer than 2·K={2 * groups.least:,} records",
            "A cut would leave a side with fewer than K records.",
        ),
        REFUSED: (
            "No allowed cut",
            f"At each place for a cut a side would have fewer than K records{told}.",
        ),
        FINEST: ("Finest values", "The job has no finer values."),
    }
    total = int(groups.sizes.sum())
    lines: list[Line] = []
    for reason, (name, meaning) in words.items():
        which = groups.reason == reason
        share = percent(int(groups.sizes[which].sum()) / total)
        lines.append((name, f"{int(which.sum()):,}", share, meaning))
    return facts(lines, head=("reason", "groups", "of records", "meaning"))


def _by_column(groups: Ended) -> Content:
    total = int(groups.sizes.sum())
    lines = []
    for column, widths in zip(groups.schema.qid, groups.boxes.widths, strict=True):
        parts = (
            widths == 1,
            (widths > 1) & (groups.reason == SMALL),
            (widths > 1) & (groups.reason == REFUSED),
        )
        lines.append((column.name, *(percent(int(groups.sizes[part].sum()) / total) for part in parts)))
    return facts(lines, head=("column", "finest value", "too few records", "no allowed cut"))


def _frees(task: Task, groups: Ended) -> list[str]:
    """Return what would free detail, for the reasons that the table has."""
    lines = []
    if (groups.reason == SMALL).any():
        lines.append("A smaller K cuts groups of fewer than 2·K records.")
    if (groups.reason == REFUSED).any():
        numeric = [column.name for column in groups.schema.qid if column.is_numeric]
        if task.job.lkc.split == PUBLIC and not task.job.roster:
            lines.append("`split: median` cuts in the middle of the records of a group, not at fixed places.")
        elif numeric:
            lines.append(
                f"`cuts` at published quantiles, at {', '.join(numeric)}: cells where the records are."
            )
        if others := thresholds(task):
            lines.append(f"A weaker {' or '.join(others)}.")
    if np.all(groups.reason == FINEST):
        lines.append(
            f"Finer values in the job: {counted(len(groups.sizes), 'group', 'groups')} could be smaller."
        )
    return lines
