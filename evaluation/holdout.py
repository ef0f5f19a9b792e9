"""Held-out evaluation: some records are anonymized; the remaining records are generalized likewise, and predicted.

The predicted records do not influence the cut. The protocol of the papers ([T] 3.4, [TDR], [KDD09]) anonymizes all
records first and splits the records afterwards, so that test records steer the cut, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from anonymize.errors import PrivacyError
from anonymize.table import CodedTable, Ints, Schema
from evaluation.features import (
    Features,
    Seen,
    raw_features,
    sensitive_features,
)
from evaluation.learners import LEARNERS, Figures, learned, majority
from evaluation.rows import Rows
from jobs.data.tables import Loaded
from jobs.errors import ConfigError

MAJORITY, WITHOUT, RAW = "majority", "without quasi-identifiers", "raw"
ANONYMOUS, PUBLISHED = "anonymized", "anonymized, published protocol"

Anonymize = Callable[[Loaded], tuple[Seen, CodedTable]]
"""Function of a table: a release's view of any records, and the released part, without suppressed rows."""


@dataclass(frozen=True)
class Split:
    """Numbers of the training records, and of the held-out records."""

    train: Ints = field(repr=False)
    test: Ints = field(repr=False)


def splits_of(whose: Ints, holdout: Fraction, n_splits: int, seed: int) -> Sequence[Split]:
    """Return random splits, the same for the same seed; all records of a person are on the same side.

    whose:    the person of each record, numbers from 0 without a gap: int64, shape (n_records,).
    holdout:  the share of held-out people.

    Raises ConfigError if a side would be empty, or for a single person.
    """
    n_people = int(whose.max()) + 1
    if n_people == 1:
        raise ConfigError(
            "usage",
            "nothing can be held out: all records are one person's",
            remedy="evaluate a table of more people",
        )
    n_test = int(n_people * holdout)
    if n_test == 0:
        raise ConfigError(
            "usage",
            f"--holdout {holdout}: no record would be held out",
            remedy="hold out more",
            private=f"less than 1 of {n_people:,}",
        )
    orders = (np.random.default_rng([seed, i]).permutation(n_people) for i in range(n_splits))
    tested = (np.isin(whose, order[:n_test]) for order in orders)
    return [Split(np.flatnonzero(~test), np.flatnonzero(test)) for test in tested]


@dataclass(frozen=True)
class Worth:
    """Worth of a way to prepare the records: the figures of every split, in order, by learner."""

    figures: Mapping[str, Sequence[Figures]]


def evaluated(
    rows: Rows,
    splits: Sequence[Split],
    runs: Mapping[str, Anonymize],
    *,
    published: bool = False,
    done: Callable[[int], object] = lambda i: None,
) -> dict[str, Worth]:
    """Measure the worth of every way, on the same splits.

    runs:       functions that anonymize records, by name; a row of figures for each.
    published:  also with the cut of all records.
    done:       called with the number of every finished split, from 1.
    """
    schema, classes = rows.table().table.schema, rows.class_codes
    fixed = {WITHOUT: sensitive_features(rows, schema), RAW: raw_features(rows, schema)}
    of_all = {name: anonymize(rows.table()) for name, anonymize in runs.items()} if published else {}
    found: dict[str, dict[str, list[Figures]]] = {}
    for number, split in enumerate(splits, 1):
        train, test = split.train, split.test
        for learner in LEARNERS:
            _note(found, MAJORITY, learner, majority(classes, rows.n_classes, train, test))
        for way in _ways(rows, schema, split, fixed, runs, of_all):
            for learner in LEARNERS:
                figures = learned(learner, way.features, classes, rows.n_classes, way.train, way.test)
                _note(found, way.name, learner, figures)
        done(number)
    return {way: Worth(by_learner) for way, by_learner in found.items()}


def _note(found: dict[str, dict[str, list[Figures]]], way: str, learner: str, figures: Figures) -> None:
    found.setdefault(way, {}).setdefault(learner, []).append(figures)


@dataclass(frozen=True)
class _Way:
    """Way to prepare the records of a split."""

    name: str
    features: Features = field(repr=False)
    train: Ints = field(repr=False)
    test: Ints = field(repr=False)


def _ways(
    rows: Rows,
    schema: Schema,
    split: Split,
    fixed: Mapping[str, Features],
    runs: Mapping[str, Anonymize],
    of_all: Mapping[str, tuple[Seen, CodedTable]],
) -> Iterator[_Way]:
    yield from (_Way(name, features, split.train, split.test) for name, features in fixed.items())
    for name, anonymize in runs.items():
        seen, kept = _of_some(anonymize, rows.table(split.train))
        features = seen(rows, schema)
        yield _Way(_named(ANONYMOUS, name), features, rows.among(split.train, kept), split.test)
    for name, (seen, kept) in of_all.items():
        features = seen(rows, schema)
        train, test = rows.among(split.train, kept), rows.among(split.test, kept)
        yield _Way(_named(PUBLISHED, name), features, train, test)


def _of_some(anonymize: Anonymize, loaded: Loaded) -> tuple[Seen, CodedTable]:
    """Anonymize the training records. Raises PrivacyError with a note that the training records are meant."""
    try:
        return anonymize(loaded)
    except PrivacyError as error:
        raise PrivacyError(
            error.error_id,
            f"of the records that are learned from: {error}",
            column=error.column,
            remedy=f"hold out fewer, or {error.remedy}",
            private=error.private,
        ) from None


def _named(way: str, run: str) -> str:
    return f"{way}, {run}" if run else way


@dataclass(frozen=True)
class Mean:
    """Mean over splits, and its standard error: None for a single split."""

    mean: float
    error: float | None


def mean_of(values: Sequence[float]) -> Mean:
    spread = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return Mean(statistics.mean(values), spread)
