"""Shares of the counts of public candidates, given to the pair before a candidate is taken.

A party shares its records per (refined entry, child but the last). An entry is shared once, as long as no
specialization refines the entry. Of an interval whose split point is not public, the counts of all cells are shared:
shares of the counts of either side are sums of these. Shares open nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate, Order
from anonymize.table import Ints
from anonymize.taxonomy import Node
from crypto.encoding import Words


@dataclass(frozen=True)
class _Given:
    """Counts of a candidate that all parties have shared; of an interval, of the candidate of all its cells.

    stamps:  of the refined entries, ascending by entry: int64, shape (n_entries,).
    words:   own shares: uint64, shape (n_entries, n_children - 1); None outside the pair.
    """

    candidate: Candidate
    stamps: Ints = field(repr=False)
    words: Words | None = field(repr=False)

    def words_of(self, children: Sequence[Node]) -> Words:
        """Return own shares of the counts of children that are runs of own children: uint64, shape (n_entries,
        n_children - 1).
        """
        assert self.words is not None, "at the pair"
        if children == self.candidate.children:
            return self.words
        firsts = np.array([child.first for child in self.candidate.children[:-1]])
        within = [(child.first <= firsts) & (firsts < child.last) for child in children[:-1]]
        return np.stack([self.words[:, cells].sum(axis=1, dtype=np.uint64) for cells in within], axis=1)


class Ahead:
    """Counts shared so far, at a party.

    ``stamps``: as :meth:`anonymize.joint.lkc.opened_table.OpenedTable.stamps`.
    """

    def __init__(self) -> None:
        self._given: dict[Order, _Given] = {}

    def missing(self, candidate: Candidate, stamps: Ints) -> Bools:
        """Return the refined entries whose counts are not shared: shape (n_entries,)."""
        given = self._given.get(candidate.order)
        return np.ones(len(stamps), dtype=bool) if given is None else ~np.isin(stamps, given.stamps)

    def put(self, candidate: Candidate, stamps: Ints, missing: Bools, share: Words | None) -> None:
        """Note that the missing counts are shared. ``share``: as in :meth:`whole`; None outside the pair."""
        words = None if share is None else self.whole(candidate, stamps, missing, share)
        self._given[candidate.order] = _Given(candidate, stamps, words)

    def whole(self, candidate: Candidate, stamps: Ints, missing: Bools, share: Words) -> Words:
        """Return own shares of all refined entries: uint64, shape (n_entries, n_children - 1).

        share:  of the missing entries, in their order.
        """
        words = np.empty((len(stamps), share.shape[1]), dtype=np.uint64)
        words[missing] = share
        if not missing.all():
            given = self._given[candidate.order]
            # Entries that stay as they were keep their numbers, so their order.
            words[~missing] = given.words_of(candidate.children)[np.isin(given.stamps, stamps)]
        return words

    def drop(self, applied: Candidate) -> None:
        """Forget the candidates of a specialized node."""
        self._given = {k: given for k, given in self._given.items() if not given.candidate.is_beside(applied)}

    def discard(self, candidate: Candidate) -> None:
        """Forget a judged candidate."""
        self._given.pop(candidate.order, None)
