"""Set-valued columns: a set is generalized to the combination of cut nodes with its items ([T] 6.3.1).

Specializing v → child(v) replaces v, in every combination with v, by the non-empty combinations of its children; at
most ``max_items`` nodes in all if the job bounds the items of a cell. These are up to 2^|child(v)| − 1 for each
combination, nearly all empty, so they are tested. A combination with a noisy count at or above a public threshold is
listed, occupied or not (:mod:`anonymize.dp.sparse`). Departures from [T] 6.3.2:

- The test is on the column alone, not for every leaf partition. So the released cells stay the product of the
  columns' values, and counts are compared with the threshold before they are split up.
- The threshold is [T]'s √2/ε′, or higher if otherwise more than one empty combination would be expected to
  pass.
- Records of failing combinations are not dropped: they stay at their old combination, as its *rest*, without
  further specialization. If all combinations are listed, no rest is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb

import numpy as np

from anonymize.cut import Candidate
from anonymize.dp.noise import Noise
from anonymize.dp.sparse import Filter, filter_for, least_above, sparse_counts
from anonymize.table import Ints, LeafSets, QidColumn
from anonymize.taxonomy import Node


@dataclass(frozen=True, slots=True)
class Combination:
    """Generalized value of a set-valued column: the nodes of its records' items, from left to right.

    rest:  True for the records whose finer combinations are not listed; never specialized further.
    """

    nodes: tuple[Node, ...]
    rest: bool = False

    def label(self, column: QidColumn) -> str:
        assert column.sets is not None
        return column.sets.separator.join(column.label(node) for node in self.nodes)


@dataclass(frozen=True)
class Subsets:
    """Non-empty subsets of ``n`` children with at most ``most`` elements, numbered by size, then by place.

    A subset is a bit mask. Within a size the order is that of the combinatorial number system.
    """

    n: int
    most: int

    @property
    def count(self) -> int:
        return sum(comb(self.n, size) for size in range(1, self.most + 1))

    def rank(self, mask: int) -> int:
        """Number of a subset."""
        places = _bits(mask)
        below = sum(comb(self.n, size) for size in range(1, len(places)))
        return below + sum(comb(place, i) for i, place in enumerate(places, start=1))

    def unrank(self, rank: int) -> int:
        """Return the subset of a number in [0, count)."""
        size = 1
        while rank >= comb(self.n, size):
            rank -= comb(self.n, size)
            size += 1
        mask, place = 0, self.n - 1
        for i in range(size, 0, -1):
            while comb(place, i) > rank:
                place -= 1
            mask |= 1 << place
            rank -= comb(place, i)
        return mask


def _bits(mask: int) -> list[int]:
    """Return the places of the set bits, ascending."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


@dataclass(frozen=True)
class Refinable:
    """Combinations made possible by a specialization, numbered parent after parent.

    parents:  combinations with the candidate's node.
    subsets:  for each parent, the subsets of children that may replace the node.
    """

    candidate: Candidate
    parents: tuple[Combination, ...]
    subsets: tuple[Subsets, ...]

    @property
    def count(self) -> int:
        return sum(subsets.count for subsets in self.subsets)

    def rank(self, parent: int, mask: int) -> int:
        return sum(s.count for s in self.subsets[:parent]) + self.subsets[parent].rank(mask)

    def unrank(self, rank: int) -> Combination:
        """Return the combination of a number."""
        parent, rank = self._within(rank)
        chosen = [self.candidate.children[i] for i in _bits(self.subsets[parent].unrank(rank))]
        others = [node for node in self.parents[parent].nodes if node != self.candidate.node]
        return Combination(tuple(sorted([*others, *chosen])))

    def incomplete(self, listed: Iterable[int]) -> list[int]:
        """Return the parents with unlisted combinations."""
        times = Counter(self._within(rank)[0] for rank in listed)
        return [i for i, subsets in enumerate(self.subsets) if times[i] < subsets.count]

    def _within(self, rank: int) -> tuple[int, int]:
        """Return the parent of a number, and the number within the parent."""
        parent = 0
        while rank >= self.subsets[parent].count:
            rank -= self.subsets[parent].count
            parent += 1
        return parent, rank


class SetColumn:
    """Values of a set-valued column and, at the holder of the records, the value of each set.

    values:         the listed combinations.
    untested:       combinations made possible by the last specialization, all of them values, too.
    value_of_sets:  value of every set, in [0, size).
    """

    def __init__(self, column: QidColumn, sets: LeafSets, records: Ints) -> None:
        """``records``: how many records have each set, shape (n_sets,)."""
        self._column = column
        self._sets = sets
        self._records = records
        self.values: tuple[Combination, ...] = (Combination((column.root,)),)
        self.untested: Refinable | None = None
        self.value_of_sets: list[int] = [0] * sets.n_sets

    @property
    def size(self) -> int:
        """Number of values of the column in the release."""
        return len(self.values) + (self.untested.count if self.untested else 0)

    def label(self, value: int) -> str:
        """Print a value, in [0, size)."""
        if value < len(self.values):
            return self.values[value].label(self._column)
        assert self.untested is not None
        return self.untested.unrank(value - len(self.values)).label(self._column)

    def profile(self, candidate: Candidate, classes_of_sets: Ints) -> Ints:
        """Return the class counts of the occurring child combinations of a node, shape (n, n_classes).

        Only records open to specialization count. Empty combinations add nothing to either utility.
        """
        masks = _masks(self._sets, candidate)
        open_sets = np.array([not self.values[v].rest for v in self.value_of_sets], dtype=bool)
        holds = np.flatnonzero((masks != 0) & open_sets)
        distinct, part = np.unique(masks[holds], return_inverse=True)
        counts = np.zeros((len(distinct), classes_of_sets.shape[1]), dtype=np.int64)
        np.add.at(counts, part, classes_of_sets[holds])
        return counts

    def specialize(self, candidate: Candidate, epsilon: Fraction | None, noise: Noise) -> None:
        """Specialize. ``epsilon``: cost of the test of the combinations; None in the last turn, without a test."""
        kept = tuple(v for v in self.values if v.rest or candidate.node not in v.nodes)
        refinable = self._refinable(candidate)
        parents, ranks = self._ranked(candidate, refinable)
        old = [kept.index(v) if v in kept else -1 for v in self.values]
        if epsilon is None:
            self.value_of_sets = [
                old[value] if rank < 0 else len(kept) + rank
                for value, rank in zip(self.value_of_sets, ranks, strict=True)
            ]
            self.values, self.untested = kept, refinable
            return
        listed = self._tested(refinable, ranks, epsilon, noise)
        incomplete = refinable.incomplete(listed)
        number = {rank: i for i, rank in enumerate(listed, start=len(kept))}
        rest = {parent: i for i, parent in enumerate(incomplete, start=len(kept) + len(listed))}
        self.value_of_sets = [
            old[value] if rank < 0 else number[rank] if rank in number else rest[parent]
            for value, parent, rank in zip(self.value_of_sets, parents, ranks, strict=True)
        ]
        rests = (replace(refinable.parents[parent], rest=True) for parent in incomplete)
        self.values = (*kept, *map(refinable.unrank, listed), *rests)

    def _refinable(self, candidate: Candidate) -> Refinable:
        assert self._column.sets is not None
        parents = tuple(v for v in self.values if not v.rest and candidate.node in v.nodes)
        n, most = len(candidate.children), self._column.sets.max_items
        bounds = [n if most is None else min(n, most - len(v.nodes) + 1) for v in parents]
        return Refinable(candidate, parents, tuple(Subsets(n, bound) for bound in bounds))

    def _ranked(self, candidate: Candidate, refinable: Refinable) -> tuple[list[int], list[int]]:
        """Return the parent and the new combination number of every set; −1 for unchanged sets."""
        place = {value: i for i, value in enumerate(refinable.parents)}
        parents = [place.get(self.values[value], -1) for value in self.value_of_sets]
        known: dict[tuple[int, int], int] = {}
        ranks = []
        for parent, mask in zip(parents, _masks(self._sets, candidate).tolist(), strict=True):
            if parent >= 0 and (parent, mask) not in known:
                known[parent, mask] = refinable.rank(parent, mask)
            ranks.append(known[parent, mask] if parent >= 0 else -1)
        return parents, ranks

    def _tested(
        self, refinable: Refinable, ranks: Sequence[int], epsilon: Fraction, noise: Noise
    ) -> tuple[int, ...]:
        """Return the combinations with noisy counts at or above the threshold, ascending."""
        occupied: dict[int, int] = {}
        for rank, records in zip(ranks, self._records.tolist(), strict=True):
            if rank >= 0:
                occupied[rank] = occupied.get(rank, 0) + records
        test = combination_test(refinable.count, epsilon)
        return tuple(sparse_counts(refinable.count, occupied, test, noise))


def combination_test(count: int, epsilon: Fraction) -> Filter:
    """Return the public test of ``count`` combinations at a cost of ε: threshold √2/ε ([T] 6.3.2) or higher."""
    return filter_for(epsilon, count, least_above(2 / epsilon**2))


def _masks(sets: LeafSets, candidate: Candidate) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Return the candidate's children with items of each set: uint64, shape (n_sets,)."""
    node = candidate.node
    child = np.repeat(
        np.arange(len(candidate.children), dtype=np.uint64), [c.last - c.first for c in candidate.children]
    )
    inside = (sets.leaves >= node.first) & (sets.leaves < node.last)
    bits = np.zeros(len(sets.leaves), dtype=np.uint64)
    bits[inside] = np.uint64(1) << child[sets.leaves[inside] - node.first]
    masks: np.ndarray[tuple[int, ...], np.dtype[np.uint64]] = np.bitwise_or.reduceat(bits, sets.starts[:-1])
    return masks
