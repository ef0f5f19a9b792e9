"""Exact inference with negative background knowledge, for the independent check, without trying every set.

The module shares no code with the search of the algorithms that make tables. Both are exact: omitted sets cannot
matter. ``nodes`` counts the examined sets, at most :data:`MOST_SETS` for a group: larger groups remain undecided. A
search of covers with up to five values of eight columns always stays within the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


MOST_SETS = 200_000
"""Most sets of a group; some seconds."""


class TooManySets(Exception):
    """Error for a search with too many sets of values."""


class Covers:
    """Sets of values such that every row of a group has a value of the set.

    has:        True if a row has a value: shape (n_values, n_rows).
    column:     column number of every value.
    limits:     most values taken of each column.
    protected:  True for every value that nobody may infer.
    """

    def __init__(
        self, has: Bools, column: Sequence[int], limits: Sequence[int], protected: Sequence[bool]
    ) -> None:
        self.nodes = 0
        self._column, self._limits, self._protected = column, limits, protected
        may_be = np.array([limits[of] > 0 for of in column], dtype=bool)
        common = np.where(may_be, has.sum(axis=1), 0)
        has = has[:, np.argsort((has * common[:, None]).max(axis=0, initial=0), kind="stable")]
        self._rows = [
            int.from_bytes(np.packbits(each, bitorder="little").tobytes(), "little")
            for each in has & may_be[:, None]
        ]
        self._values = [np.flatnonzero(each).tolist() for each in (has & may_be[:, None]).T]
        self._near = [sum_of([self._rows[value] for value in values]) for values in self._values]
        self._all = (1 << has.shape[1]) - 1

    def infers(self, most: int) -> bool:
        """Return True if some cover of at most ``most`` values needs a protected value, so the other values reveal
        it.

        A cover has a value of the first uncovered row, so only these values are tried. A cover that needs all its
        values is found on a path that bars the row's earlier values.
        """
        return self._infers(self._all, [], [0] * len(self._limits), frozenset(), most)

    def _infers(
        self, left: int, taken: list[int], used: list[int], barred: frozenset[int], most: int
    ) -> bool:
        """Continue the search with ``taken`` values, without ``barred`` values; left: uncovered rows."""
        self.nodes = _counted(self.nodes)
        if not left:
            return any(self._protected[value] and self._needs(taken, value) for value in taken)
        if self._is_beyond(left, most):
            return False
        for value in self._values[_lowest(left)]:
            column = self._column[value]
            if value in barred or used[column] >= self._limits[column]:
                continue
            used[column] += 1
            if self._infers(left & ~self._rows[value], [*taken, value], used, barred, most - 1):
                return True
            used[column] -= 1
            barred |= {value}
        return False

    def _needs(self, taken: list[int], value: int) -> bool:
        """Return True if some row has no other taken value."""
        return bool(self._all & ~sum_of([self._rows[other] for other in taken if other != value]))

    def _is_beyond(self, left: int, most: int) -> bool:
        """Return True if no ``most`` values cover these rows: too many share no value, or values have too few."""
        if most == 0:
            return True
        rest = left
        for _ in range(most):
            rest &= ~self._near[_lowest(rest)] & ~(rest & -rest)
            if not rest:
                break
        if rest:
            return True
        counts = sorted(((rows & left).bit_count() for rows in self._rows), reverse=True)
        return sum(counts[:most]) < left.bit_count()


def _counted(nodes: int) -> int:
    """Return the count plus 1. Raises TooManySets."""
    if nodes == MOST_SETS:
        raise TooManySets
    return nodes + 1


def sum_of(sets: Sequence[int]) -> int:
    """Return the union of sets, each the bits of a number."""
    union = 0
    for each in sets:
        union |= each
    return union


def _lowest(rows: int) -> int:
    return (rows & -rows).bit_length() - 1


class SharesLeft:
    """Shares of values among the rows left after values are excluded.

    has, column, limits:  as in :class:`Covers`; excluded and inferred values count together.
    weights:  occurrences of each row: int64, shape (n_rows,).
    p, q:     greatest share p/q of every value; 1 or more: no bound.
    """

    def __init__(
        self, has: Bools, weights: Numbers, column: Numbers, limits: Numbers, p: Numbers, q: Numbers
    ) -> None:
        self.nodes = 0
        self._has, self._weights = has.astype(np.float64), weights
        self._column, self._limits, self._p, self._q = column, limits, p, q

    def infers(self, most: int) -> bool:
        """Return True if a share exceeds its bound after at most ``most`` values are excluded.

        The surplus of a value with share p/q is (q - p) * rows with the value - p * rows without the value. A
        positive surplus breaks the bound. Excluding another value adds at most p * the rows with only the other
        value. A value is skipped if its share stays within the bound even with all its rows among the fewest rows
        that can be left.
        """
        held, n = self._count(self._weights), int(self._weights.sum())
        surplus = (self._q - self._p) * held - self._p * (n - held)
        fewest = self._fewest(self._weights, np.zeros(len(self._limits), dtype=np.int64), most, n)
        asked = (self._p < self._q) & (held > 0) & (self._limits[self._column] > 0)
        for value in np.flatnonzero(asked & (self._q * held > self._p * fewest)).tolist():
            used = np.zeros(len(self._limits), dtype=np.int64)
            used[self._column[value]] = 1
            all_values = np.arange(len(held))
            if surplus[value] > 0 or self._infers(value, self._weights, used, all_values, most):
                return True
        return False

    def _count(self, weights: Numbers) -> Numbers:
        """Count the rows with each value."""
        return np.rint(self._has @ weights).astype(np.int64)

    def _fewest(self, weights: Numbers, used: Numbers, most: int, best: int) -> int:
        """Return the fewest rows left after at most ``most`` values are excluded, or ``best`` if smaller."""
        self.nodes = _counted(self.nodes)
        n = int(weights.sum())
        held = np.where((used < self._limits)[self._column], self._count(weights), 0)
        if most == 0:
            return min(best, n)
        order = np.argsort(-held, kind="stable")
        best = min(best, n - int(held[order[:1]].sum()))
        for place, value in enumerate(order.tolist() if most > 1 else []):
            if held[value] == 0 or n - int(held[order[place : place + most]].sum()) >= best:
                break
            also = used.copy()
            also[self._column[value]] += 1
            best = self._fewest(np.where(self._has[value] > 0, 0, weights), also, most - 1, best)
        return best

    def _infers(self, value: int, weights: Numbers, used: Numbers, among: Numbers, most: int) -> bool:
        """Return True if excluding 1 to ``most`` of the values ``among`` reveals too much about a value.

        weights:  of rows, 0 for excluded rows. used: taken values by column.
        """
        self.nodes = _counted(self.nodes)
        among = among[(used < self._limits)[self._column[among]]]
        if most == 0 or len(among) == 0:
            return False
        more, less = int(self._q[value] - self._p[value]), int(self._p[value])
        with_it = np.where(self._has[value] > 0, weights, 0)
        kept, lost = self._count(with_it)[among], self._count(weights - with_it)[among]
        left = int(with_it.sum())
        surplus = more * left - less * (int(weights.sum()) - left) - more * kept + less * lost
        if ((surplus > 0) & (lost > 0)).any():
            return True
        order = np.argsort(-lost, kind="stable")
        order = order[lost[order] > 0]
        for place, own in enumerate(order.tolist()):
            others = order[place + 1 :]
            if surplus[own] + less * int(lost[others[: most - 1]].sum()) <= 0:
                continue
            also = used.copy()
            also[self._column[among[own]]] += 1
            rest = np.where(self._has[among[own]] > 0, 0, weights)
            if self._infers(value, rest, also, among[others], most - 1):
                return True
        return False
