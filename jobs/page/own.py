"""Page for the owner of a table: what rests on raw rows, beside what readers of the release see.

The page stands beside a release or an account, for the owner alone. No party sends the page, and no digest covers the
page. Raw rows are the rows as the algorithms read the rows: numbers as cells of their grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.lkc.metrics import partition_sizes
from anonymize.naive_bayes import Labelled, counted_of
from anonymize.release import LabelledColumn, Release, leaf_labels, release_of_leaves
from anonymize.table import Ints, pack
from jobs.data.counted import counted
from jobs.data.tables import Loaded, LoadedColumns, Table
from jobs.page.html import Content, document, tag
from jobs.page.parts import (
    Line,
    Section,
    bars,
    counts_of,
    facts,
    listing,
    paragraph,
    percent,
    sentence,
    term,
    warning,
    with_term,
    with_words,
)
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.release.folder import OWN_PAGE, place_for_owner
from jobs.task import Task

_WARNING = (
    "The figures of this page come from raw rows, without any protection. The page is for the owner of the table: "
    "keep the page with the table, and do not publish, send or deliver the page."
)

_MOST_SPACE = 1 << 18
"""Most values that are counted without sorting."""
_OF_ALL = "Before: your own rows and columns. The release has the records of all parties."
IN_CELLS = (
    "Numbers and dates count as the cells of the job's grid, before as after: with coarse cells, the risk of the "
    "numbers themselves can be higher than the risk before."
)


def own_page_of_folder(task: Task, table: Table, folder: Path, seen: Any = None) -> str:
    """Return the owner's page of the release in a folder.

    table:  of pass 1, the owner's.
    seen:   as in :class:`jobs.task.Rendered`.
    """
    seen = task.model.seen(task, folder) if seen is None else seen
    report = read_report((folder / REPORT).read_bytes())
    return own_page(task, task.model.own_sections(task, table, report, seen))


def place_own_page(page: str, folder: Path) -> None:
    """Write an owner's page into a folder, readable by the owner only. Raises OSError."""
    place_for_owner(folder / OWN_PAGE, page)


def own_page(task: Task, sections: Iterable[Section]) -> str:
    """Return the owner's page."""
    name = task.job.name
    return document(
        f"Only for the owner: {name}",
        tag("h1", f"Only for the owner: {name}"),
        warning(_WARNING),
        paragraph(_OF_ALL) if task.job.roster else None,
        *with_words(sections),
    )


def rows_section(words: Sequence[str]) -> Section:
    """Return the section on the fate of the rows. words: for the owner, from pass 1."""
    return Section("Rows of the table", [listing(sentence(line) for line in words)])


def risk_section(
    raw: Ints,
    released: Ints | None,
    k: int | None,
    why: str = "",
    *,
    known: Sequence[str],
    note: str = IN_CELLS,
) -> Section:
    """Compare the risk of raw rows with the risk of the release, for a reader who knows every quasi-identifier.

    raw, released:  sizes of the groups; None where no released row belongs to a person.
    k:    of the requirement.
    why:  a sentence for a release without figures.
    known: quasi-identifiers of the reader.
    note: a sentence on the values that are compared.
    """
    sides = [raw] if released is None else [raw, released]
    head = ["risk", "before"] if released is None else ["risk", "before", "after"]
    lines: list[Line] = [
        (
            term("Prosecutor risk"),
            *(percent(1 / int(sizes.min())) for sizes in sides),
            "The highest chance to find the record of a person known to be in the table.",
        ),
        (
            term("Journalist risk"),
            *(f"at most {percent(1 / int(sizes.min()))}" for sizes in sides),
            "The same chance for a reader who does not know whether the person is in the table.",
        ),
        (
            term("Marketer risk"),
            *(percent(len(sizes) / int(sizes.sum())) for sizes in sides),
            "The expected share of records that a reader finds who knows everybody: groups / records.",
        ),
        (
            term("Unique records"),
            *(percent(_share_below(sizes, 2)) for sizes in sides),
            "Records with a combination of values that no other record has.",
        ),
    ]
    if k is not None:
        meaning = "Records in groups smaller than K."
        lines.append(
            (f"Records below K={k:,}", *(percent(_share_below(sizes, k)) for sizes in sides), meaning)
        )
    return Section(
        "Risk before and after" if released is not None else "Risk of the raw rows",
        [
            paragraph(
                f"For a reader who knows of a person: {', '.join(known) or 'nothing'}. {note}".rstrip()
            ),
            facts(lines, head=(*head, "meaning")),
            paragraph(why) if why else None,
        ],
    )


def raw_rows(task: Task, table: Table) -> Release:
    """Return the rows of pass 1 with the values as coded, or as published without generalization.

    Of a job on columns of several parties: the own columns.
    """
    if isinstance(table, Loaded):
        rows = release_of_leaves(table.table)
        return replace(rows, columns={**rows.columns, **table.raw})
    assert isinstance(table, LoadedColumns), "a table with a column for each name of the job"
    holding, schema = table.holding, task.schema
    found = {
        column.name: LabelledColumn(leaf_labels(column), codes)
        for column, codes in zip(schema.qid, holding.qid, strict=True)
        if codes is not None
    }
    if schema.class_name is not None and holding.classes is not None:
        found[schema.class_name] = LabelledColumn(schema.classes, holding.classes)
    for sensitive, codes in zip(schema.sensitive, holding.sensitive, strict=True):
        if codes is not None:
            found[sensitive.name] = LabelledColumn(sensitive.domain, codes)
    return Release(found)


def sizes_of(rows: Release, columns: Sequence[str]) -> Ints:
    """Return the sizes of the groups that agree on the given columns, which may be none."""
    if not columns:
        return np.array([rows.n_records], dtype=np.int64)
    return partition_sizes(rows, columns)


def _share_below(sizes: Ints, least: int) -> float:
    return int(sizes[sizes < least].sum()) / int(sizes.sum())


def model_section(raw: Release, name: str, columns: Sequence[str], share: float, meaning: str) -> Section:
    """Compare a simple model of the class, learned from raw rows, with a model learned from the release.

    name:     of the class.
    columns:  predict the class, one or more.
    share:    of rightly predicted records, by the release; ``meaning``: a sentence on this share.
    """
    most = max(counts_of(raw.columns[name], raw.counts).values()) / raw.n_records
    own = "Each record is predicted from all others."
    lines = [
        ("Raw rows", percent(predicted_by_own(raw, name, columns)), own),
        ("Release", percent(share), meaning),
        ("Most frequent class", percent(most), "Without any column."),
    ]
    words = (
        f"Share of records with the right {name}, predicted by naive Bayes: a simple model, whose columns are "
        "independent of each other within a class. `coordinator evaluate` compares better models, on held-out rows."
    )
    return Section(
        "A simple model",
        [
            with_term(words, "Naive Bayes", "naive Bayes"),
            facts(lines, head=("learned from", "right", "meaning")),
        ],
    )


def predicted_by_own(rows: Release, name: str, columns: Sequence[str]) -> float:
    """Return the share of records whose class naive Bayes predicts rightly from all other records of the rows."""
    records = Labelled(
        [rows.columns[each].codes for each in columns], rows.columns[name].codes, weights_of(rows)
    )
    sizes = [len(rows.columns[each].labels) for each in columns]
    return counted_of(records, sizes, len(rows.columns[name].labels)).accuracy_of_own(records)


def predicted_by_other(raw: Release, other: Release, name: str, columns: Sequence[str]) -> float:
    """Return the share of raw records whose class naive Bayes predicts rightly from the rows of another table."""
    of_class = aligned(raw.columns[name], other.columns[name])
    pairs = [aligned(raw.columns[each], other.columns[each]) for each in columns]
    learned = Labelled([pair.other for pair in pairs], of_class.other, weights_of(other))
    asked = Labelled([pair.one for pair in pairs], of_class.one, weights_of(raw))
    return counted_of(learned, [pair.size for pair in pairs], of_class.size).accuracy(asked)


def weights_of(rows: Release) -> Ints:
    """Return the records of each row: int64, shape (n_rows,)."""
    return np.ones(rows.n_rows, dtype=np.int64) if rows.counts is None else rows.counts


@dataclass(frozen=True)
class Aligned:
    """Column of two tables in common codes.

    one, other:  codes of each table: int64, shape (n_rows,).
    size:        number of different labels.
    """

    one: Ints = field(repr=False)
    other: Ints = field(repr=False)
    size: int

    def beside(self, further: Aligned) -> Aligned:
        """Return the pairs of values of two columns."""
        ours, theirs = ([a, b] for a, b in ((self.one, further.one), (self.other, further.other)))
        one, other = (pack(codes, [self.size, further.size]) for codes in (ours, theirs))
        return Aligned(one, other, self.size * further.size)

    def distance(self, weights: Ints, others: Ints) -> float:
        """Return the total variation distance: the share of records that would have to move, 0 to 1.

        1 if one side alone has no records, as with noisy counts that are all negative.
        """
        if not (weights.any() and others.any()):
            return float(weights.any() != others.any())
        ours, theirs, size = self.one, self.other, self.size
        if size > _MOST_SPACE:
            kinds, both = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
            ours, theirs, size = both[: len(ours)], both[len(ours) :], len(kinds)
        one, other = (
            np.bincount(codes, w, minlength=size) / w.sum()
            for codes, w in ((ours, weights), (theirs, others))
        )
        return float(np.abs(one - other).sum() / 2)


def aligned(one: LabelledColumn, other: LabelledColumn) -> Aligned:
    """Return two columns in common codes."""
    place = {label: i for i, label in enumerate(dict.fromkeys((*one.labels, *other.labels)))}
    codes = [
        np.array([place[label] for label in each.labels], dtype=np.int64)[each.codes] for each in (one, other)
    ]
    return Aligned(codes[0], codes[1], len(place))


def columns_section(raw: Release, released: Release | None, names: Iterable[str]) -> Section:
    """Show the raw values of each column. released: the rows of the release, or None."""
    return Section("Columns before", [*_columns(raw, released, names)])


def _columns(raw: Release, released: Release | None, names: Iterable[str]) -> Iterator[Content]:
    for name in names:
        counts = counts_of(raw.columns[name], raw.counts)
        said = f"{counted(len(counts), 'value', 'values')} before"
        if released is not None and name in released.columns:
            said += f", {len(counts_of(released.columns[name], released.counts)):,} in the release"
        alone = sum(n == 1 for n in counts.values())
        if alone:
            said += f"; {counted(alone, 'value belongs', 'values belong')} to a single record"
        yield tag("h3", name)
        yield paragraph(f"{said}.", "soft")
        yield bars(counts, name, raw.columns[name].labels)


def differences(lines: Iterable[tuple[str, float]], head: str) -> Content:
    """Return a table of total variation distances, the greatest first."""
    ranked = sorted(lines, key=lambda line: -line[1])
    return facts([(name, percent(away)) for name, away in ranked], head=(head, "difference"))
