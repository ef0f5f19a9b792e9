"""Benchmark of every score on held-out rows of five data sets: error of an entropy tree. `make bench AREA=lkc`.

Two thirds of the rows are anonymized, the rest only generalized by the same cut. The tree is learned from the
anonymized rows on the quasi-identifiers and the sensitive column. Means over 18 settings (L 2, 4, all; three K; C
of the data set and 1) and some splits. `python -m benchmarks.bench_scores NAME ...`: named data sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import mean

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.cut import Cut
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.table import CodedTable
from benchmarks.bench_utility import tree_error
from benchmarks.data_sets import DATA_SETS, DataAbsent, DataSet
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from evaluation.features import Features, generalized_features, raw_features, sensitive_features
from evaluation.holdout import Split, mean_of, splits_of
from evaluation.learners import Figures, figures, library
from evaluation.rows import Rows

HELD_OUT = Fraction(1, 3)


@dataclass(frozen=True)
class Way:
    """A way to make and compare candidates. child: True if children leave a node separately."""

    score: JointScore
    child: bool = False


REFERENCE = "infogain"
WAYS: Mapping[str, Way] = {
    REFERENCE: Way(score_of("infogain", None)),
    "tdr": Way(score_of("tdr", None)),
    "added": Way(score_of("added", "cells")),
    "added, contexts partitions": Way(score_of("added", "partitions")),
    "added, refine child": Way(score_of("added", "cells"), child=True),
}


@dataclass(frozen=True)
class Setting:
    """L, K and C."""

    most: int
    size: int
    bound: Fraction

    def asked(self, table: CodedTable) -> AskedList:
        bounds = tuple((column.name, self.bound) for column in table.schema.sensitive)
        return AskedList((Ask(self.most, (Size(self.size), Confidences(bounds=bounds))),))


def settings_of(data: DataSet, n_columns: int) -> Iterator[Setting]:
    for most in (2, 4, n_columns):
        for size in data.sizes:
            for bound in (data.bound, Fraction(1)):
                yield Setting(most, size, bound)


def refined(table: CodedTable, way: Way) -> CodedTable:
    """Return the table with taxonomies refined by the way."""
    columns = (replace(c, by_child=way.child and not c.is_numeric) for c in table.schema.qid)
    return replace(table, schema=replace(table.schema, qid=tuple(columns)))


def cut_of(table: CodedTable, setting: Setting, way: Way) -> Cut:
    """Return the cut of the release."""
    return anonymize_single(refined(table, way), setting.asked(table), way.score).cut


@dataclass(frozen=True)
class Trees:
    """Trees on a split of a data set."""

    rows: Rows
    split: Split
    min_leaf: int

    def learned(self, features: Features) -> Figures:
        """Return the figures of predictions of the held-out rows."""
        train, test, classes = self.split.train, self.split.test, self.rows.class_codes
        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=self.min_leaf, random_state=0
        ).fit(features[train], classes[train])
        shares = np.zeros((len(test), self.rows.n_classes))
        shares[:, tree.classes_] = tree.predict_proba(features[test])
        return figures(shares, classes[test])


@dataclass(frozen=True)
class Percent:
    """Means over settings, in percent. auc: weighted, each class against all remaining classes."""

    error: float
    auc: float


def percent(found: Sequence[Figures]) -> Percent:
    return Percent(100 * mean(each.error for each in found), 100 * mean(each.auc or 0 for each in found))


def held_out(data: DataSet, n_splits: int) -> list[Row]:
    """Return, by way, the mean error over settings and splits, and the paired difference to the reference."""
    rows = data.load()
    schema = rows.table().table.schema
    fixed = {
        "raw data": raw_features(rows, schema),
        "without quasi-identifiers": sensitive_features(rows, schema),
    }
    found: dict[str, list[Percent]] = {name: [] for name in (*fixed, *WAYS)}
    for split in splits_of(rows.whose, HELD_OUT, n_splits, 1):
        trees = Trees(rows, split, data.min_leaf)
        for name, features in fixed.items():
            found[name].append(percent([trees.learned(features)]))
        train = rows.table(split.train).table
        known: dict[object, Figures] = {}
        for name, way in WAYS.items():
            each = []
            for setting in settings_of(data, len(schema.qid)):
                cut = cut_of(train, setting, way)
                if cut.nodes not in known:
                    known[cut.nodes] = trees.learned(generalized_features(rows, schema, cut))
                each.append(known[cut.nodes])
            found[name].append(percent(each))
    said = f"{rows.n_records} rows, {len(schema.qid)} quasi-identifiers, {n_splits} splits"
    return [_compared(data.name, name, each, found[REFERENCE], said) for name, each in found.items()]


TARGETS = {("Adult", "added"): 15.7, ("support2", "added"): 17.5}


def _compared(data: str, name: str, found: list[Percent], reference: list[Percent], said: str) -> Row:
    by = mean_of([mine.error - other.error for mine, other in zip(found, reference, strict=True)])
    error, auc = (mean(getattr(each, what) for each in found) for what in ("error", "auc"))
    spread = "" if by.error is None else f" ± {by.error:.2f}"
    anchor = f"AUC {auc:.2f}; error {by.mean:+.2f}{spread} to {REFERENCE}; {said}"
    detail = {"error": [each.error for each in found], "auc": [each.auc for each in found]}
    return Row(f"{data}: {name}", error, "%", TARGETS.get((data, name)), anchor=anchor, detail=detail)


PUBLISHED = ((2, 50), (4, 20), (4, 50), (4, 100))


def published_protocol() -> list[Row]:
    """Measure Adult at C=0.2 by the papers: all rows are anonymized, then split, so test rows also steer the cut."""
    table = DATA_SETS["Adult"].load().table().table
    rows = []
    for name, way in WAYS.items():
        for most, size in PUBLISHED:
            release = release_of_rows(table, cut_of(table, Setting(most, size, Fraction(1, 5)), way))
            error = tree_error(release, [column for column in release.columns if column != "income"])
            target = 15.6 if (name, most, size) == ("added", 4, 50) else None
            rows.append(
                Row(f"Adult, published protocol, L={most} K={size} C=0.2: {name}", error, "%", target)
            )
    return rows


NAMES = (*DATA_SETS, "published")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--splits", type=int, help="default: those of the data set")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    with library("threadpoolctl").threadpool_limits(1):
        for name, data in DATA_SETS.items():
            if asked.names and name not in asked.names:
                continue
            try:
                rows += held_out(data, asked.splits or data.splits)
            except DataAbsent as error:
                print(f"left out: {error}")
        if not asked.names or "published" in asked.names:
            rows += published_protocol()
    publish("What scores are worth", rows, OUT.parent / f"bench-scores{'-'.join(['', *asked.names])}.json")


if __name__ == "__main__":
    main()
