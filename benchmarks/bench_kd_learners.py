"""Compares learners on kd tables with learners on top-down tables of goal general, at the same K and C:
trees, random forests, boosted trees and logistic regression, on records that had no part in the table.

    python -m benchmarks.bench_kd_learners [DATA_SET ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.kd.single import anonymize_kd
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable
from benchmarks.data_sets import DATA_SETS, DataSet
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from evaluation.features import (
    Seen,
    raw_features,
    seen_by_cut,
    seen_in_boxes,
    sensitive_features,
)
from evaluation.holdout import mean_of, splits_of
from evaluation.learners import LEARNERS, figures, library

MOST_SPLITS = 3
_ALL = 0


def forest(n_records: int) -> Any:
    return library("sklearn.ensemble").RandomForestClassifier(
        n_estimators=50, min_samples_leaf=5, random_state=0
    )


def logistic(n_records: int) -> Any:
    scaled = library("sklearn.preprocessing").StandardScaler()
    model = library("sklearn.linear_model").LogisticRegression(max_iter=300)
    return library("sklearn.pipeline").make_pipeline(scaled, model)


ALL_LEARNERS: Mapping[str, Callable[[int], Any]] = {**LEARNERS, "forest": forest, "logistic": logistic}


def required(table: CodedTable, known: int, size: int, bound: Fraction) -> AskedList:
    """Return K and C of every protected value; known: L, or all."""
    n = len(table.schema.qid)
    of_columns = tuple((column.name, bound) for column in table.schema.sensitive)
    return AskedList((Ask(known or n, (Size(size), Confidences(bounds=of_columns))),))


def kd(table: CodedTable, size: int, bound: Fraction) -> Seen:
    return seen_in_boxes(anonymize_kd(table, required(table, _ALL, size, bound)).table.boxes)


def top_down(known: int) -> Callable[[CodedTable, int, Fraction], Seen]:
    def seen(table: CodedTable, size: int, bound: Fraction) -> Seen:
        requirement = required(table, known, size, bound)
        return seen_by_cut(anonymize_single(table, requirement, score_of("groups", None)).cut)

    return seen


WAYS: Mapping[str, Callable[[CodedTable, int, Fraction], Seen]] = {
    "kd, L=all": kd,
    "top-down, L=all": top_down(_ALL),
    "top-down, L=4": top_down(4),
    "top-down, L=2": top_down(2),
}


def rows_of(data: DataSet) -> list[Row]:
    """Return errors in percent, means over splits, by way and learner."""
    rows = data.load()
    size, schema, classes = data.sizes[1], rows.table().table.schema, rows.class_codes
    errors: dict[tuple[str, str], list[float]] = {}
    for split in splits_of(rows.whose, Fraction(1, 3), min(data.splits, MOST_SPLITS), 0):
        train = rows.table(split.train).table
        made = {"raw": raw_features(rows, schema), "without": sensitive_features(rows, schema)}
        for way, seen in WAYS.items():
            try:
                made[way] = seen(train, size, data.bound)(rows, schema)
            except PrivacyError:
                continue
        for way, features in made.items():
            for name, learner in ALL_LEARNERS.items():
                with library("threadpoolctl").threadpool_limits(1):
                    model = learner(len(split.train)).fit(features[split.train], classes[split.train])
                    shares = np.zeros((len(split.test), rows.n_classes))
                    shares[:, model.classes_] = model.predict_proba(features[split.test])
                error = figures(shares, classes[split.test]).error
                errors.setdefault((way, name), []).append(100 * error)
    return [
        Row(f"{data.name}, K={size}, C={data.bound}: {way}, {name}", mean_of(found).mean, "% error")
        for (way, name), found in errors.items()
    ]


def main(names: Sequence[str]) -> None:
    rows = [
        row
        for name in names or ("crx", "support2", "Adult", "diabetes130")
        for row in rows_of(DATA_SETS[name])
    ]
    publish("kd and learners", rows, OUT.parent / "bench-kd-learners.json")


if __name__ == "__main__":
    main(sys.argv[1:])
