"""Page of a DP release: the guarantee, the noise of counts, and the cells to trust."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from anonymize.release import Release
from anonymize.table import Ints
from jobs.data.counted import counted
from jobs.dp.report import half_width, half_width_of_sum, half_width_of_two, outside_any
from jobs.dp.requirement import settings
from jobs.dp.sentences import times_as_likely, weakness_of
from jobs.page.html import tag
from jobs.page.parts import (
    Line,
    Section,
    bars,
    checked,
    facts,
    listing,
    number,
    ordered,
    pairs,
    paragraph,
    percent,
    sentence,
    term,
    warning,
)
from jobs.task import Task


def guarantee(report: Mapping[str, Any], what: str) -> Section:
    """Return the section on the guarantee of any DP release. what: checked by the program, before the release."""
    privacy = report["privacy"]
    epsilon = Fraction(privacy["epsilon"])
    lines: list[Line] = [
        (term("ε"), str(privacy["epsilon"]), _meaning(epsilon)),
        (term("δ"), str(privacy["delta"]), "The chance that the bound of ε fails; 0 for a pure guarantee."),
        ("Protected", privacy["unit"], "The bound compares the table with a table that lacks this much."),
    ]
    spent = [
        (each["for"], each["epsilon"], f"iteration {each['iteration']}" if each["iteration"] else "")
        for each in privacy["account"]
    ]
    return Section(
        "What the table promises",
        [
            listing(sentence(words) for words in privacy["guarantees"]),
            *(warning(sentence(words)) for words in weakness_of(epsilon, privacy["unit"])),
            checked(f"{what}, and the spending adds up to ε", f"{_UNCHECKED} "),
            facts(lines, head=("parameter", "value", "meaning")),
            tag("h3", "Not covered"),
            listing(sentence(words) for words in privacy.get("not_covered", [])),
            tag("h3", "Spending of ε"),
            facts(spent, head=("for", "ε", "")),
        ],
    )


_UNCHECKED = "No release can show that its noise was drawn properly; the tests of the program do."


def _meaning(epsilon: Fraction) -> str:
    return f"{sentence(times_as_likely(epsilon, 'the protected unit'))} A smaller ε protects more."


def sections(task: Task, report: Mapping[str, Any], counts: Release) -> Iterator[Section]:
    """Yield the sections of noisy counts. counts: the cells as released, a row each, with the column `count`."""
    once = "every cell is listed once, with or without records"
    listed = once if report["threshold"] is None else "every listed count is at the threshold or above"
    yield guarantee(report, listed)
    values = counts_in(counts)
    yield _cells(task, report, counts, values)
    yield Section("Columns", [*_columns(task, report, counts, values)])


def counts_in(cells: Release) -> Ints:
    """Return the column `count` of released cells: int64, shape (n_cells,)."""
    column = cells.columns["count"]
    found: Ints = np.array([int(text) for text in column.labels], dtype=np.int64)[column.codes]
    return found


def _cells(task: Task, report: Mapping[str, Any], counts: Release, values: Ints) -> Section:
    """Return the noise of counts, the total, and the cells to trust."""
    noise = _noise(task, report)
    two = " Each of the two parties that compute adds noise of its own." if noise.n_of_a_count > 1 else ""
    every = noise.half_width_of_all(report["cells"])
    lines: list[Line] = [
        ("Cells", number(report["cells"]), "Combinations of published values."),
        *_total(report, values, noise),
        (
            term("Noise"),
            f"± {noise.half_width:,}",
            f"The error of at least 95 of 100 counts is no larger, for a count named before looking.{two}",
        ),
        (
            term("Noise", " of the worst count"),
            f"± {every:,}",
            f"With a chance of at least 95 %, none of all {report['cells']:,} counts is off by more. This bound "
            "holds for counts chosen because they are large, too.",
        ),
    ]
    return Section(
        "Counts and noise",
        [
            facts(lines, head=("measure", "figure", "meaning")),
            _warning(values, every),
            tag("h3", "Which cells to trust"),
            _by_trust(values, every),
            *(_largest(task, counts, values, every) if len(values) else ()),
        ],
    )


def _total(report: Mapping[str, Any], values: Ints, noise: _Noise) -> Iterator[Line]:
    """Yield the listed cells, if not all are listed, and the sum of the counts.

    The noise of listed counts does not cancel, because a threshold prefers counts with noise above 0.
    """
    if report["cells_listed"] == report["cells"]:
        width = half_width_of_sum(noise.rate, noise.n_of_a_count * len(values))
        yield "Records in all", f"{int(values.sum()):,} ± {width:,}", "Sum of all noisy counts."
        return
    meaning = f"Cells whose noisy count reached the threshold, {report['threshold']:,}."
    yield "Listed cells", number(report["cells_listed"]), meaning
    meaning = (
        "Sum of the listed counts: not the number of records. The records of all other cells are missing, and counts "
        "that reach the threshold by their noise are too large."
    )
    yield "Records in listed cells", f"{int(values.sum()):,}", meaning


@dataclass(frozen=True)
class _Noise:
    """Noise of each count. n_of_a_count: noises of this rate, 1, or 2 from two parties."""

    rate: float
    n_of_a_count: int

    @property
    def half_width(self) -> int:
        return half_width(self.rate) if self.n_of_a_count == 1 else half_width_of_two(self.rate)

    def half_width_of_all(self, n_cells: int) -> int:
        """Return the bound on the error of all cells at once, in 95 of 100 tables."""
        widest = half_width if self.n_of_a_count == 1 else half_width_of_two
        return widest(self.rate, outside_any(n_cells))


def _noise(task: Task, report: Mapping[str, Any]) -> _Noise:
    epsilon = next(
        Fraction(each["epsilon"]) for each in report["privacy"]["account"][::-1] if "counts" in each["for"]
    )
    rate = float(epsilon / (settings(task.job).max_records_per_person or 1))
    return _Noise(rate, 2 if report["privacy"]["noise"] == "each" else 1)


_PRECISE = 10
"""Least number of bounds in a count that readers may take as it is."""
_MOST_CELLS = 20
"""Most cells in the table of cells."""


def _warning(values: Ints, width: int) -> Element | None:
    """Return the warning of a table that tells nothing of a single cell.

    width:  bound on the error of all counts at once.
    """
    larger = "A larger ε, fewer specializations or fewer columns make larger counts per cell."
    if not len(values):
        return warning(f"Nothing is left: no count reached the threshold. {larger}")
    if (values > width).any():
        return None
    return warning(
        "No cell tells that it has a record: every count may be noise alone. Read sums of many cells only. "
        f"{larger}"
    )


def _trusted(width: int) -> Sequence[tuple[int, str, str]]:
    """Return the least count of each verdict, the verdict, and its meaning; the last verdict takes all others.

    width:  bound on the error of all counts at once.
    """
    return (
        (
            max(_PRECISE * width, 1),
            "trust",
            f"Counts from {max(_PRECISE * width, 1):,} on: off by about 10 % or less.",
        ),
        (width + 1, "rough", f"Counts from {width + 1:,} on: there are such records; the number is rough."),
        (
            -sys.maxsize,
            "noise",
            "Smaller counts, and counts below 0: there may be no record. Trust sums of many.",
        ),
    )


def _verdicts(values: Ints, width: int) -> Ints:
    """Return the place of the verdict on each count: int64, shape (n_cells,)."""
    precise, rough, _ = (least for least, _, _ in _trusted(width))
    return np.where(values >= precise, 0, np.where(values >= rough, 1, 2))


def _by_trust(values: Ints, width: int) -> Element:
    places, total = _verdicts(values, width), int(np.maximum(values, 0).sum()) or 1
    lines = [
        (
            word,
            f"{int((places == i).sum()):,}",
            percent(int(np.maximum(values[places == i], 0).sum()) / total),
            meaning,
        )
        for i, (_, word, meaning) in enumerate(_trusted(width))
    ]
    head = ("verdict", "cells", "of counts above 0", "meaning, of all cells at once in 95 of 100 tables")
    return facts(lines, head=head)


def _largest(task: Task, counts: Release, values: Ints, width: int) -> Iterator[Element]:
    """Yield a table of the cells with the largest counts, and a sentence on the others."""
    order = np.argsort(-values, kind="stable")
    shown, others = order[:_MOST_CELLS], values[order[_MOST_CELLS:]]
    words = [word for _, word, _ in _trusted(width)]
    verdicts = _verdicts(values, width)
    names = [name for name in counts.columns if name in task.job.columns]
    lines = [
        (
            pairs((name, _label(counts, name, cell)) for name in names),
            words[verdicts[cell]],
            f"{values[cell]:,}",
            f"{max(values[cell] - width, 0):,}–{max(values[cell] + width, 0):,}",
        )
        for cell in shown.tolist()
    ]
    yield paragraph(
        "The largest counts. With a chance of at least 95 % all true counts lie in their range. The largest of many "
        "noisy counts are mostly too large.",
        "soft",
    )
    yield facts(lines, head=("cell", "verdict", "count", "range"))
    if len(others):
        near = counted(int((others <= width).sum()), "is noise", "are noise")
        yield paragraph(
            f"Not shown: {counted(len(others), 'cell', 'cells')} with counts of {int(others.max()):,} or less, of "
            f"which {near}.",
            "soft",
        )


def _label(counts: Release, name: str, cell: int) -> str:
    column = counts.columns[name]
    return str(column.labels[column.codes[cell]])


def _columns(task: Task, report: Mapping[str, Any], counts: Release, values: Ints) -> Iterator[Any]:
    yield paragraph("Sums of noisy counts by published value. A sum below 0 is shown as 0.", "soft")
    noise, whole = _noise(task, report), report["cells_listed"] == report["cells"]
    for name, column in counts.columns.items():
        if name in task.job.columns:
            sums = np.bincount(column.codes, weights=values, minlength=len(column.labels)).astype(np.int64)
            yield tag("h3", name)
            if whole:
                most = int(np.bincount(column.codes).max())
                width = half_width_of_sum(noise.rate, noise.n_of_a_count * most)
                part = percent(width / max(int(values.sum()), 1))
                words = f"95 of 100 sums are off by {width:,} records or less, which is {part} of all."
                yield paragraph(words, "soft")
            found = {label: max(int(n), 0) for label, n in zip(column.labels, sums, strict=True)}
            yield bars(ordered(found, report["cut"].get(name, ())), name)
