"""Maximal frequent sequences ([T] 4.2.2), of any length: the remaining use of a release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from anonymize.criteria.size import Size
from anonymize.errors import PrivacyError
from anonymize.lkc.requirement import Ask
from anonymize.table import Ints, Schema
from anonymize.trajectory.levels import TOO_MANY
from anonymize.trajectory.paths import Paths
from anonymize.trajectory.requirement import bounds_of
from anonymize.trajectory.sweep import Search, answered

Itemset: TypeAlias = tuple[int, ...]
"""Sequence as its items, ascending."""
MOST_IN_ALL = 1 << 20
"""Most sequences of all sizes together counted in the search for frequent sequences; a public number."""
MOST_FOUND = 1 << 30
"""Most occurrences of sequences in different paths; a public number."""
_NOTHING_SENSITIVE = Schema((), None, ("",))


def maximal_frequent(
    paths: Paths, least: int, max_candidates: int, in_all: int = MOST_IN_ALL, found: int = MOST_FOUND
) -> tuple[Itemset, ...]:
    """Return, in order, the sequences with at least ``least`` records that are part of no other such sequence.

    Raises SchemaError for a ``least`` below 1. Raises PrivacyError for more than ``max_candidates`` sequences of a
    size, more than ``in_all`` of all sizes together, or more than ``found`` occurrences in different paths. The
    memory depends on ``in_all`` and the longest path, not on the number of records.
    """
    longest = max(int(paths.lengths.max(initial=0)), 1)
    bounds = bounds_of(Ask(longest, (Size(least),)), _NOTHING_SENSITIVE)
    search = Search(replace(paths, cells=np.zeros_like(paths.cells)), bounds, max_candidates, in_all, found)
    try:
        answered(search.first(), lambda asked: bounds.kept(asked.counts))
    except PrivacyError as error:
        if error.error_id != TOO_MANY:
            raise
        raise _too_many(max_candidates, in_all, found) from error
    return tuple(sorted(q for level in search.maximal() for q in map(tuple, level.tolist())))


def _too_many(max_candidates: int, in_all: int, found: int) -> PrivacyError:
    return PrivacyError(
        TOO_MANY,
        f"too many sequences are to be counted to find the frequent ones: more than {max_candidates:,} of one size "
        f"(`max_candidates`), more than {in_all:,} in all, or found more than {found:,} times in different paths",
        remedy="raise `frequent`, take a coarser time or fewer locations, or do without `cost: frequent`",
    )


def supports(paths: Paths, sequences: Sequence[Itemset]) -> Ints:
    """Count the records with each sequence: int64, shape (n_sequences,)."""
    order = np.argsort(paths.items, kind="stable")
    whose = np.repeat(np.arange(paths.n_paths), paths.lengths)[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(paths.items, minlength=paths.domain))])
    having = ([whose[starts[item] : starts[item + 1]] for item in q] for q in sequences)
    return np.array([paths.weights[_common(sets, paths)].sum() for sets in having], dtype=np.int64)


def _common(sets: Sequence[Ints], paths: Paths) -> Ints:
    """Return the intersection of ascending sets; all paths for an empty list."""
    if not sets:
        return np.arange(paths.n_paths)
    left, *others = sorted(sets, key=len)
    for other in others:
        place = np.searchsorted(other, left)
        left = left[other[np.minimum(place, len(other) - 1)] == left] if len(other) else other
    return left


class Maximal:
    """Maximal frequent sequences of a table during the removal of items from all records."""

    def __init__(self, sequences: Sequence[Itemset], domain: int) -> None:
        self._with: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
        self.counts: Ints = np.zeros(domain, dtype=np.int64)
        for sequence in sequences:
            self._add(frozenset(sequence))

    @property
    def sequences(self) -> tuple[Itemset, ...]:
        """Current maximal sequences, in order."""
        return tuple(sorted({tuple(sorted(q)) for each in self._with.values() for q in each}))

    def take(self, item: int) -> None:
        """Remove an item from all records.

        Sequences without the item keep their frequency. So each new maximal sequence was maximal before or is the
        rest of such a sequence. [T] Algorithm 4.2, line 5, forgets the rests.
        """
        gone = list(self._with[item])
        for sequence in gone:
            for each in sequence:
                self._with[each].discard(sequence)
                self.counts[each] -= 1
        rests = sorted((sequence - {item} for sequence in gone), key=len, reverse=True)
        for rest in rests:
            if rest and not any(rest <= other for other in self._rarest(rest)):
                self._add(rest)

    def _rarest(self, sequence: frozenset[int]) -> Set[frozenset[int]]:
        """Return the sequences with the given sequence's rarest item."""
        return min((self._with[item] for item in sequence), key=len)

    def _add(self, sequence: frozenset[int]) -> None:
        for each in sequence:
            self._with[each].add(sequence)
            self.counts[each] += 1
