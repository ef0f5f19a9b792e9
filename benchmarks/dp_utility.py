"""Worth of a DP release: an entropy tree learns from the cells and is tested on unseen records ([T] 6.4).

The cells weigh the Norm-Sub results of their noisy counts; test records are generalized to the cut of the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.cut import Cut, top
from anonymize.dp.noisy_table import NoisyTable, norm_sub
from anonymize.table import CodedTable, QidColumn
from anonymize.taxonomy import Taxonomy
from anonymize.tds import Outcome

Floats = NDArray[np.float64]
LEAF_RECORDS = 100
"""Minimum number of records in a leaf of a tree: smaller leaves are mostly noise."""


@dataclass(frozen=True)
class Released:
    """A release as a reader has it; without a table, records generalized to a cut."""

    outcome: Outcome
    table: NoisyTable | None


@dataclass(frozen=True)
class Worth:
    """Figures of a tree on unseen records, in percent.

    accuracy:  share of the records with a correctly predicted class.
    ranking:   area under the ROC curve, for two classes: 50 is chance, even if a class is rare.
    """

    accuracy: float
    ranking: float


def worth_of(release: Released, test: CodedTable) -> Worth:
    """Measure a tree that learns from a release."""
    assert release.table is not None
    schema, cells = release.outcome.schema, release.table.cells
    assert schema.class_name is not None
    weights = norm_sub(release.table.counts)
    columns = [Features(c, release, i) for i, c in enumerate(schema.qid)]
    x = np.hstack(
        [
            f.of_labels(cells.columns[f.column.name].labels)[cells.columns[f.column.name].codes]
            for f in columns
        ]
    )
    y = cells.columns[schema.class_name].codes
    kept = weights > 0
    if len(set(y[kept].tolist())) < 2:
        return Worth(_share(np.full(len(test.weights), y[weights.argmax()]), test), 50.0)
    return _tested(columns, x[kept], y[kept], weights[kept], test)


def _tested(columns: Sequence[Features], x: Floats, y: Any, weights: Any, test: CodedTable) -> Worth:
    from sklearn.metrics import roc_auc_score
    from sklearn.tree import DecisionTreeClassifier

    least = min(0.5, LEAF_RECORDS / int(weights.sum()))
    tree = DecisionTreeClassifier(criterion="entropy", min_weight_fraction_leaf=least, random_state=0)
    tree.fit(x, y, sample_weight=weights)
    records = np.hstack([f.of_records(test) for f in columns])
    ranked = roc_auc_score(test.axis(0), tree.predict_proba(records)[:, 1], sample_weight=test.weights)
    return Worth(_share(tree.predict(records), test), 100 * float(ranked))


def _share(predicted: NDArray[np.float64], test: CodedTable) -> float:
    right = (predicted == test.axis(0)) * test.weights
    return 100 * float(right.sum()) / test.n_records


def majority(train: CodedTable, test: CodedTable) -> float:
    """Return the accuracy of the most frequent class."""
    counts = train.class_histogram(0).sum(axis=0)
    return _share(np.full(len(test.weights), int(counts.argmax())), test)


def without_privacy(train: CodedTable, test: CodedTable, cut: Cut) -> Worth:
    """Measure a tree that learns from the records themselves, generalized to a cut."""
    whole = Released(Outcome(train.schema, cut, ()), None)
    columns = [Features(c, whole, i) for i, c in enumerate(train.schema.qid)]
    x = np.hstack([f.of_records(train) for f in columns])
    return _tested(columns, x, train.axis(0), train.weights, test)


class Features:
    """A column as numbers: intervals by their place, categories as a number for each node of the cut.

    For a set-valued column each number tells if a node is touched. A release may have coarser values for rare
    combinations. A value is looked up as a reader would, from the finest cut to the coarsest.
    """

    def __init__(self, column: QidColumn, release: Released, number: int) -> None:
        self.column = column
        self._number = number
        self._cuts = _cuts(release.outcome)
        self._listed = None if release.table is None else release.table.cells.columns[column.name].labels
        nodes = self._cuts[-1].nodes[number]
        if column.sets is not None and isinstance(column.values, Taxonomy):
            nodes = column.values.nodes
        self._labels = [column.label(node) for node in nodes]

    def of_labels(self, labels: Sequence[str]) -> Floats:
        """Return features of released values, shape (n_values, n_features)."""
        if self.column.is_numeric:
            return np.array([[self._labels.index(label)] for label in labels], dtype=np.float64)
        rule = self.column.sets
        parts = [[label] if rule is None else label.split(rule.separator) for label in labels]
        return np.array([[name in part for name in self._labels] for part in parts], dtype=np.float64)

    def of_records(self, table: CodedTable) -> Floats:
        """Return features of every row of a table."""
        codes = table.qid[self._number]
        if self.column.sets is None:
            labels = [self._labels[p] for p in self._cuts[-1].positions(self._number)]
        else:
            sets = table.sets[self._number]
            bounds = zip(sets.starts[:-1].tolist(), sets.starts[1:].tolist(), strict=True)
            labels = [self._value_of(sets.leaves[a:b].tolist()) for a, b in bounds]
        return self.of_labels(labels)[codes]

    def _value_of(self, leaves: Sequence[int]) -> str:
        """Return the released value of a set: the finest listed combination touched by the set."""
        assert self.column.sets is not None
        found = ""
        for cut in reversed(self._cuts):
            touched = [n for n in cut.nodes[self._number] if any(n.first <= x < n.last for x in leaves)]
            found = self.column.sets.separator.join(self.column.label(node) for node in sorted(touched))
            if self._listed is None or found in self._listed:
                break
        return found


def _cuts(outcome: Outcome) -> list[Cut]:
    """Return the cuts of a run from the top to the last; for an outcome without steps, its cut."""
    if not outcome.steps:
        return [outcome.cut]
    cuts = [top(outcome.schema)]
    for step in outcome.steps:
        cuts.append(cuts[-1].specialized(step.candidate))
    return cuts
