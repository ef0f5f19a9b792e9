"""Measures the worth of the anonymous table: classification error of a decision tree ([T] 3.4, figure 3.5a).

`make bench AREA=lkc`.

Adult, entropy tree, 2/3 of the rows for training, 1/3 for testing, the sensitive column kept as a predictor.
BE is the error on raw data, UE without the quasi-identifiers.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import Release, release_of_rows
from anonymize.scores.infogain import InfoGain
from anonymize.table import CodedTable
from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Row, publish
from jobs.data.sources import Csv
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from jobs.release.csv import read_csv

SEEDS = range(5)
CLASS = "income"


def features(release: Release, names: Iterable[str]) -> NDArray[np.float64]:
    """Return intervals and numbers by their lower edge, categories as a column per value."""
    parts = []
    for name in names:
        column = release.columns[name]
        edges = [_lower_edge(label) for label in column.labels]
        if all(edge is not None for edge in edges):
            parts.append(np.array(edges, dtype=np.float64)[column.codes][:, None])
        else:
            parts.append(np.eye(len(column.labels))[:, : max(len(column.labels) - 1, 1)][column.codes])
    return np.hstack(parts)


def _lower_edge(label: str) -> float | None:
    try:
        return float(label.removeprefix("[").split(",")[0])
    except ValueError:
        return None


def tree_error(release: Release, names: Iterable[str], class_name: str = CLASS) -> float:
    """Return the mean test error in percent over a few random thirds."""
    from sklearn.preprocessing import OrdinalEncoder
    from sklearn.tree import DecisionTreeClassifier

    x = features(release, names)
    column = release.columns[class_name]
    y = np.asarray(OrdinalEncoder().fit_transform(np.array(column.labels)[column.codes][:, None]))[:, 0]
    errors = []
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = order[: len(y) // 3], order[len(y) // 3 :]
        tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=20, random_state=0)
        errors.append(100 * (1 - tree.fit(x[train], y[train]).score(x[test], y[test])))
    return statistics.mean(errors)


def raw_release(folder: Path) -> Release:
    """Return the raw table."""
    path = folder / "raw.csv"
    return read_csv(path, path.open().readline().strip().split(","))


def anonymous(table: CodedTable, L: int, K: int, c: str) -> Release:
    """Return the table anonymized under L, K, C."""
    bounds = tuple((column.name, Fraction(c)) for column in table.schema.sensitive)
    requirement = AskedList((Ask(L, (Size(K), Confidences(bounds=bounds))),))
    return release_of_rows(table, anonymize_single(table, requirement, InfoGain()).cut)


def main() -> None:
    folder = shared_job("adult")
    bundle = load_task(folder / "job.yaml").bundle
    table = load_table(Csv(folder / "raw.csv"), open_task(bundle)).table
    predictors = [name for name in bundle.job.published if name != CLASS]
    raw = raw_release(folder)
    base = tree_error(raw, predictors)
    rows = [
        Row("BE: raw data", base, "%", anchor="[T] 14.7; reproduction 14.7-15.1"),
        Row(
            "UE: without quasi-identifiers",
            tree_error(raw, bundle.job.names("sensitive")),
            "%",
            anchor="[T] 24.5",
        ),
    ]
    anchors = {(2, 20): "15.3", (2, 100): "15.5", (4, 20): "15.4", (4, 100): "15.6", (6, 100): "15.6"}
    for L in (2, 4, 6):
        for K in (20, 60, 100):
            error = tree_error(anonymous(table, L, K, "0.2"), predictors)
            known = f"; reproduction {anchors[L, K]}" if (L, K) in anchors else ""
            said = "[T] within 1 of BE" if L == 2 else "[T] BE + 1.1 to 4.1"
            rows.append(
                Row(f"CE: L={L} K={K} C=0.2", error, "%", base + 1 if L == 2 else None, anchor=said + known)
            )
    publish("Classification error, Adult", rows, OUT.parent / "bench-utility.json")


if __name__ == "__main__":
    main()
