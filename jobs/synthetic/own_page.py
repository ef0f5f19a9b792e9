"""Page of a synthetic table for the owner of raw rows: the drawn rows against the raw rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice

from anonymize.release import LabelledColumn, Release
from jobs.data.counted import counted
from jobs.data.rows_read import RowsRead
from jobs.dp.own_page import before
from jobs.page.own import (
    aligned,
    columns_section,
    differences,
    model_section,
    predicted_by_other,
    weights_of,
)
from jobs.page.parts import Section, paragraph, percent
from jobs.synthetic.page import measured_labels
from jobs.task import Task

_MOST_PAIRS = 2_000
"""Most pairs of columns that are compared."""
_MOST_READ = 200_000_000
"""Most rows that are read for all pairs together: seconds."""
_MOST_SHOWN = 40
"""Most pairs on the page, the pairs with the greatest differences."""


def own_sections(task: Task, rows: RowsRead, raw: Release, drawn: Release) -> Iterator[Section]:
    """Yield the sections. drawn: the synthetic rows, of the owner's rows alone or of the rows of all parties."""
    yield from before(task, rows, raw)
    if not raw.n_records:
        return
    if drawn.n_records:
        yield from _compared(task, raw, drawn)
    yield columns_section(raw, None, raw.columns)


def _compared(task: Task, raw: Release, drawn: Release) -> Iterator[Section]:
    """Compare drawn rows with raw rows, one of each or more."""
    same = coded_alike(task, raw, drawn)
    names = [name for name in raw.columns if name in same.columns]
    yield _one_way(raw, same, names)
    yield _two_way(raw, same, names)
    for name in task.job.names("class"):
        if name in names and len(names) > 1:
            others = [each for each in names if each != name]
            share = predicted_by_other(raw, same, name, others)
            yield model_section(raw, name, others, share, "The synthetic rows predict the raw records.")


def coded_alike(task: Task, raw: Release, drawn: Release) -> Release:
    """Return drawn rows with the labels of raw rows: numbers as cells of their grid."""
    return Release({name: _alike(task, name, raw, drawn) for name in drawn.columns if name in raw.columns})


def _alike(task: Task, name: str, raw: Release, drawn: Release) -> LabelledColumn:
    found, values = drawn.columns[name], raw.columns[name].labels
    return LabelledColumn(
        tuple(measured_labels(task.taxonomies.get(name), found.labels, values)), found.codes
    )


def _one_way(raw: Release, drawn: Release, names: Sequence[str]) -> Section:
    weights = weights_of(raw), weights_of(drawn)
    found = [(name, aligned(raw.columns[name], drawn.columns[name]).distance(*weights)) for name in names]
    words = (
        "Share of synthetic rows that would have to change for the column to have the shares of the raw rows."
    )
    return Section("One column against raw rows", [paragraph(words), differences(found, "column")])


def _two_way(raw: Release, drawn: Release, names: Sequence[str]) -> Section:
    weights = weights_of(raw), weights_of(drawn)
    columns = {name: aligned(raw.columns[name], drawn.columns[name]) for name in names}
    whole = len(names) * (len(names) - 1) // 2
    most = max(min(_MOST_PAIRS, _MOST_READ // (raw.n_rows + drawn.n_rows)), 1)
    pairs = list(islice(combinations(names, 2), most))
    found = [(f"{a} and {b}", columns[a].beside(columns[b]).distance(*weights)) for a, b in pairs]
    found = sorted(found, key=lambda line: -line[1])
    mean = sum(away for _, away in found) / max(len(found), 1)
    said = counted(len(pairs), "pair", "pairs") + (f" of {whole:,}" if len(pairs) < whole else "")
    words = (
        f"The same share for pairs of columns: on average {percent(mean)}, over {said}. Fine grids have large "
        "differences by chance alone."
    )
    shown = differences(found[:_MOST_SHOWN], "pair") if found else None
    return Section("Two columns against raw rows", [paragraph(words), shown])
