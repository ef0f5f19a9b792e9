"""Worth of synthetic rows: learners trained on synthetic rows and tested on real rows; the distance of their
tables.

Accuracy of an entropy tree (leaves of 100 rows, fewer in small tables) and of gradient boosting; the total
variation distance of all one-way and two-way tables, the class included, in at most 16 public groups a column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import combinations
from statistics import mean, stdev

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from anonymize.dp.noise import exact_noise
from anonymize.synthetic.draw import drawn_leaves
from anonymize.synthetic.fit import fitted
from anonymize.synthetic.loop import SyntheticOutcome
from anonymize.synthetic.requirement import Design, Synthetic
from anonymize.synthetic.single import synthesize_single
from anonymize.table import Ints, QidColumn
from benchmarks.synthetic_tables import Coded
from crypto.rng import Prg

MOST_GROUPS = 16


@dataclass(frozen=True)
class Worth:
    """Figures of a table, in percent."""

    tree: float
    boosting: float
    one_way: float
    two_way: float


def worth_of(made: Coded, train: Coded, test: Coded) -> Worth:
    """Measure rows ``made`` from ``train``."""
    return Worth(*accuracies(made, test), *distances(made, train))


def means(found: list[Worth]) -> tuple[Worth, Worth]:
    """Return the mean of several runs, and its standard errors."""
    columns = [[getattr(worth, field.name) for worth in found] for field in fields(Worth)]
    errors = (stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0 for values in columns)
    return Worth(*map(mean, columns)), Worth(*errors)


def synthetic_rows(train: Coded, requirement: Synthetic, seed: int) -> tuple[SyntheticOutcome, Coded]:
    """Run once, seeded. Seeding is safe only because these records are public."""
    outcome = synthesize_single(train.table, requirement, exact_noise(Prg(seed.to_bytes(16, "little"))))
    return outcome, drawn_rows(outcome, train, seed)


def drawn_rows(outcome: SyntheticOutcome, train: Coded, seed: int) -> Coded:
    """Draw rows from the opened figures."""
    classes, leaves = drawn_leaves(
        fitted(outcome.schema, outcome.opened), Prg((seed + (1 << 32)).to_bytes(16, "little"))
    )
    return Coded(train.schema, np.array(leaves).T, classes)


def asked(epsilon: str, edges: int | None, design: Design | None = None) -> Synthetic:
    return Synthetic(Fraction(epsilon), edges, design=design or Design())


def accuracies(made: Coded, test: Coded) -> tuple[float, float]:
    """Return the accuracies of a tree and of gradient boosting."""
    if len(np.unique(made.classes)) < 2:
        only = 100 * float((test.classes == made.classes[:1]).mean())
        return only, only
    least = min(100, max(5, len(made.classes) // 60))
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=least, random_state=0)
    boosting = HistGradientBoostingClassifier(
        max_iter=60,
        min_samples_leaf=max(1, least // 4),
        max_leaf_nodes=15,
        early_stopping=False,
        random_state=0,
        categorical_features=[not column.is_numeric for column in made.schema.qid],
    )
    with threadpool_limits(1):
        return (
            _accuracy(tree, _one_hot, made, test),
            _accuracy(boosting, lambda rows: rows.leaves.astype(np.float32), made, test),
        )


def _accuracy(
    learner: DecisionTreeClassifier | HistGradientBoostingClassifier,
    features: Callable[[Coded], np.ndarray],
    made: Coded,
    test: Coded,
) -> float:
    predicted = learner.fit(features(made), made.classes).predict(features(test))
    return 100 * float((predicted == test.classes).mean())


def _one_hot(rows: Coded) -> np.ndarray:
    """Return numbers by cell, a missing number as the highest; categories as a column for each value."""
    columns = [
        leaves[:, None] if column.is_numeric else leaves[:, None] == np.arange(column.n_leaves)
        for column, leaves in zip(rows.schema.qid, rows.leaves.T, strict=True)
    ]
    return np.hstack([column.astype(np.float32) for column in columns])


def distances(made: Coded, real: Coded) -> tuple[float, float]:
    """Return the mean total variation distance of one-way and of two-way tables."""
    sizes = [*(min(column.n_leaves, MOST_GROUPS) for column in real.schema.qid), real.schema.n_classes]
    rows = [_grouped(table) for table in (made, real)]
    one = [_distance(rows, [i], sizes) for i in range(len(sizes))]
    two = [_distance(rows, pair, sizes) for pair in combinations(range(len(sizes)), 2)]
    return mean(one), mean(two)


def _grouped(rows: Coded) -> list[Ints]:
    """Return, by column, the group of every row, then its class."""
    return [*map(_groups, rows.schema.qid, rows.leaves.T), rows.classes]


def _groups(column: QidColumn, leaves: Ints) -> Ints:
    n_leaves = column.n_leaves
    return leaves if n_leaves <= MOST_GROUPS else leaves * MOST_GROUPS // n_leaves


def _distance(rows: list[list[Ints]], columns: list[int] | tuple[int, ...], sizes: list[int]) -> float:
    """Return the distance in percent."""
    shape = [sizes[column] for column in columns]
    shares = []
    for table in rows:
        keys = np.ravel_multi_index([table[column] for column in columns], shape)
        counts = np.bincount(keys, minlength=int(np.prod(shape)))
        shares.append(counts / max(len(keys), 1))
    return 50 * float(np.abs(shares[0] - shares[1]).sum())
