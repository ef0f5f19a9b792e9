"""Page of a DP release for the owner of raw rows: risk of the rows, and noisy counts against true counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from anonymize.release import LabelledColumn, Release
from anonymize.table import Ints, Schema, pack
from jobs.data.rows_read import RowsRead
from jobs.dp.nodes import nodes_of
from jobs.dp.page import counts_in
from jobs.page.own import (
    Aligned,
    aligned,
    columns_section,
    differences,
    risk_section,
    rows_section,
    sizes_of,
    weights_of,
)
from jobs.page.parts import Section, facts, number, paragraph
from jobs.task import Task

NO_FIGURE = (
    "The release has no such figures: ε bounds what any reader learns about a record, whatever the reader knows. The "
    "raw rows have no such bound."
)


def before(task: Task, rows: RowsRead, raw: Release) -> Iterator[Section]:
    """Yield the sections on the raw rows of any DP job."""
    yield rows_section(rows.words())
    known = [name for name in task.job.names("qid") if name in raw.columns]
    if raw.n_records:
        yield risk_section(sizes_of(raw, known), None, None, NO_FIGURE, known=known)


def own_sections(
    task: Task, rows: RowsRead, raw: Release, cells: Release, cut: Mapping[str, Sequence[str]]
) -> Iterator[Section]:
    """Yield the sections of noisy counts.

    cells:  the cells as released, a row each, with the column `count`.
    cut:    labels of each column in the release.
    """
    yield from before(task, rows, raw)
    if not raw.n_records:
        return
    of_sets = any(column.sets is not None for column in task.schema.qid)  # a record counts for several values
    of_others = bool(task.job.roster)
    if cells.n_rows and not of_sets and not of_others:
        yield _noise(task, generalized(task.schema, raw, cut), cells)
    yield columns_section(raw, None, raw.columns)


def generalized(schema: Schema, raw: Release, cut: Mapping[str, Sequence[str]]) -> Release:
    """Return raw rows with the labels of a cut. Of nodes with the same label any covers a leaf."""
    columns = dict(raw.columns)
    for column in schema.qid:
        labels = tuple(cut[column.name])
        place = np.zeros(len(raw.columns[column.name].labels), dtype=np.int64)
        for i, nodes in enumerate(nodes_of(column, labels).values()):
            for node in nodes:
                place[node.leaves] = i
        columns[column.name] = LabelledColumn(labels, place[raw.columns[column.name].codes])
    return replace(raw, columns=columns)


def _noise(task: Task, raw: Release, cells: Release) -> Section:
    """Compare noisy counts with true counts: of each cell, and of the values of each column."""
    noisy = counts_in(cells)
    names = [name for name in cells.columns if name != "count"]
    pairs = [aligned(raw.columns[name], cells.columns[name]) for name in names]
    sizes = [pair.size for pair in pairs]
    both = pack([np.concatenate([pair.one, pair.other]) for pair in pairs], sizes)
    kinds, kind = np.unique(both, return_inverse=True)
    true = np.bincount(kind[: raw.n_rows], weights_of(raw), minlength=len(kinds)).astype(np.int64)
    listed = kind[raw.n_rows :]
    away = np.abs(noisy - true[listed])
    lost = int(true.sum() - true[np.unique(listed)].sum())
    lines = [
        ("Mean error of a cell", number(float(away.mean())), "Noisy count against true count, in records."),
        (
            "95 of 100 cells",
            f"± {int(np.quantile(away, 0.95, method='higher')):,}",
            "No larger error than this.",
        ),
        ("Records in cells that are not listed", number(lost), "Cells below the threshold of the release."),
    ]
    shown = differences(
        (
            (name, distance_of_sums(pair, weights_of(raw), noisy))
            for name, pair in zip(names, pairs, strict=True)
        ),
        "column",
    )
    words = "Share of records that would have to move to make the sums of a column equal to the true counts."
    head = ("measure", "figure", "meaning")
    return Section("Noise against true counts", [facts(lines, head=head), paragraph(words), shown])


def distance_of_sums(pair: Aligned, true: Ints, noisy: Ints) -> float:
    """Return the distance of a column's sums of noisy counts from its true counts. A sum below 0 counts as 0.

    pair:  the column in raw rows, and in released cells.
    true:  records of each raw row. noisy: count of each cell.
    """
    sums = np.bincount(pair.other, noisy, minlength=pair.size).astype(np.int64)
    return replace(pair, other=np.arange(pair.size)).distance(true, np.maximum(sums, 0))
