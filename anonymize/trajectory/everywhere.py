"""Global suppression ([T] Algorithms 4.1 and 4.2, corrected): an item is removed from all records or from no record.

Removing items leaves the frequency of all other sequences unchanged, so it creates no violation. So a single search
finds the minimal violating sequences of the raw table. Then items are removed until these sequences are gone, each
time the item with the greatest gain per cost; ties: the smallest code.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.table import Ints
from anonymize.trajectory.frequent import Itemset, Maximal, maximal_frequent
from anonymize.trajectory.paths import Items, Paths, without
from anonymize.trajectory.requirement import Bounds, met_by_all
from anonymize.trajectory.sweep import Asked, Search, Suppressed, Sweep, answered


class Cost(Protocol):
    """Cost of removing an item from all records.

    counts:  cost by item, at least 1 for an occurring item: int64, shape (domain,).
    """

    @property
    def counts(self) -> Ints: ...

    def take(self, item: int) -> None:
        """Remove an item."""
        ...


class Instances:
    """Number of records with the item (MM/IL of Xu, Wang, Fu, Yu, KDD 2008)."""

    def __init__(self, paths: Paths) -> None:
        weights = np.repeat(paths.weights, paths.lengths)
        self.counts: Ints = np.bincount(paths.items, weights, paths.domain).astype(np.int64)

    def take(self, item: int) -> None:
        """Remove an item. Other costs do not change."""


class Frequent:
    """1 plus the number of maximal frequent sequences with the item ([T] Equation 4.1)."""

    def __init__(self, sequences: Sequence[Itemset], domain: int) -> None:
        self.maximal = Maximal(sequences, domain)

    @property
    def counts(self) -> Ints:
        return self.maximal.counts + 1

    def take(self, item: int) -> None:
        self.maximal.take(item)


class Violations:
    """Minimal violating sequences during the removal; ``gains``: number of remaining sequences with each item."""

    def __init__(self, by_size: Sequence[Items], domain: int) -> None:
        self._left = np.ones(sum(map(len, by_size)), dtype=bool)
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.full(len(s), s.shape[1]) for s in by_size)])
        self._items = np.concatenate([np.zeros(0, np.int32), *(s.reshape(-1) for s in by_size)])
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        whose = np.repeat(np.arange(len(sizes)), sizes)
        self.gains: Ints = np.bincount(self._items, minlength=domain)
        self._whose = whose[np.argsort(self._items, kind="stable")]
        self._ends = np.cumsum(self.gains)

    def take(self, item: int) -> None:
        """Remove an item and all its sequences."""
        start = self._ends[item - 1] if item else 0
        gone = self._whose[start : self._ends[item]]
        gone = gone[self._left[gone]]
        self._left[gone] = False
        n = np.diff(self._starts)[gone]
        place = np.arange(n.sum()) + np.repeat(self._starts[gone] - (np.cumsum(n) - n), n)
        self.gains -= np.bincount(self._items[place], minlength=len(self.gains))


def best(gains: Ints, costs: Ints) -> int | None:
    """Return the item with the greatest gain per cost, the smallest on ties; None if no item gains."""
    items = np.flatnonzero(gains)
    if len(items) == 0:
        return None
    about = gains[items] / costs[items]
    near = items[about >= about.max() * (1 - 1e-9)]  # exactly equal ones are among them
    return int(max(near, key=lambda item: (Fraction(int(gains[item]), int(costs[item])), -item)))


def taken(violations: Violations, cost: Cost) -> tuple[int, ...]:
    """Remove items and return them in order."""
    items: list[int] = []
    while (item := best(violations.gains, cost.counts)) is not None:
        violations.take(item)
        cost.take(item)
        items.append(item)
    return tuple(items)


def minimal_violating(paths: Paths, bounds: Bounds, max_candidates: int) -> tuple[list[Items], Sweep]:
    """Return the violating sequences without a violating part ([T] Definition 4.5), by size, and the sweep.

    Raises PrivacyError for more than ``max_candidates`` sequences of a size.
    """
    found: list[Items] = []

    def kept(asked: Asked) -> Bools:
        answer = bounds.kept(asked.counts)
        found.append(asked.sequences[~answer & (asked.counts[0] > 0)])
        return answer

    sweep = answered(Search(paths, bounds, max_candidates).first(), kept)
    return found, sweep


def suppress_everywhere(
    paths: Paths, bounds: Bounds, max_candidates: int, frequent: int | None = None
) -> Suppressed:
    """Remove items from all records of a single holder until every occurring sequence is kept.

    frequent:  the cost of an item is the number of maximal sequences with this support; None: the number of records.

    Raises PrivacyError if all records together violate the bounds, or for more than ``max_candidates`` sequences of a
    size.
    """
    met_by_all(paths, bounds)
    violating, sweep = minimal_violating(paths, bounds, max_candidates)
    cost: Cost = Instances(paths)
    if frequent is not None:
        cost = Frequent(maximal_frequent(paths, frequent, max_candidates), paths.domain)
    items = taken(Violations(violating, paths.domain), cost)
    gone = np.zeros(paths.domain, dtype=bool)
    gone[list(items)] = True
    return Suppressed(without(paths, gone[paths.items]), (sweep,), items)
