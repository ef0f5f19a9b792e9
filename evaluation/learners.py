"""Learners: an entropy tree, as in [T] 3.4 and [TDR], and boosted trees.

Only this file knows scikit-learn. The package is an optional dependency of `jointcut[evaluate]`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.table import Ints
from evaluation.features import Features
from jobs.errors import ConfigError

_ROWS_PER_LEAF = 1500
_LEAST_LEAF = 5


def library(module: str) -> Any:
    """Return a module of scikit-learn, or of its dependencies. Raises ConfigError if not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            "extra-missing",
            "this command needs scikit-learn, which is not installed",
            remedy="pip install 'jointcut[evaluate]'",
        ) from error


@dataclass(frozen=True)
class Figures:
    """Figures of a learned model on other records.

    error:  share of records with a wrongly predicted class.
    auc:    area under the ROC curve of each class against the rest, weighted by the frequency of the class;
            None for records of a single class.
    """

    error: float
    auc: float | None


def _tree(n_records: int) -> Any:
    least = max(_LEAST_LEAF, n_records // _ROWS_PER_LEAF)
    return library("sklearn.tree").DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=least, random_state=0
    )


def _boosting(n_records: int) -> Any:
    return library("sklearn.ensemble").HistGradientBoostingClassifier(early_stopping=False, random_state=0)


LEARNERS: Mapping[str, Callable[[int], Any]] = {"tree": _tree, "boosting": _boosting}
"""Learner for a number of records, by name."""


def learned(
    learner: str, features: Features, classes: Ints, n_classes: int, train: Ints, test: Ints
) -> Figures:
    """Train on the records ``train`` and predict the records ``test``. classes: int64, shape (n_records,)."""
    found, truth = classes[train], classes[test]
    known = np.unique(found)
    shares = np.zeros((len(test), n_classes))
    if len(known) == 1:
        shares[:, known] = 1
    else:
        with library("threadpoolctl").threadpool_limits(1):  # threads wait for each other on a busy machine
            model = LEARNERS[learner](len(train)).fit(features[train], found)
            shares[:, model.classes_] = model.predict_proba(features[test])
    return figures(shares, truth)


def majority(classes: Ints, n_classes: int, train: Ints, test: Ints) -> Figures:
    """Predict the most frequent class of the records ``train``; ties go to the earlier class."""
    shares = np.tile(np.bincount(classes[train], minlength=n_classes) / len(train), (len(test), 1))
    return figures(shares, classes[test])


def figures(shares: NDArray[np.float64], truth: Ints) -> Figures:
    """Compare predicted shares, shape (n_records, n_classes), with the true classes."""
    error = float((shares.argmax(axis=1) != truth).mean())
    return Figures(error, _auc(shares, truth))


def _auc(shares: NDArray[np.float64], truth: Ints) -> float | None:
    counts = np.bincount(truth, minlength=shares.shape[1])
    there = np.flatnonzero(counts)
    if len(there) < 2:
        return None
    areas = [_area(shares[:, c], truth == c) for c in there]
    return float(np.average(areas, weights=counts[there]))


def _area(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the share of pairs in which a record of the class scores above a record of another class.

    Ties count half (Mann and Whitney).
    """
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    n = int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))
