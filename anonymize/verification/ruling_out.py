"""Inference by ruling values out: for the independent check, without trying every set.

It shares no code with the search of the algorithms that make tables. Both searches are exact: what they leave out
cannot hold what they look for. ``nodes`` counts the sets that were looked at, of which there are at most as many for
one group as :data:`MOST_SETS`: nothing is said of a group that takes more. A search of covers with up to five values
of eight columns never does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


MOST_SETS = 200_000
"""Of one group; some seconds."""


class TooManySets(Exception):
    """A search came to more sets of values than it looks at."""


class Covers:
    """Sets of values of which every row of a group has one.

    has:        of every value whether a row has it: shape (n_values, n_rows).
    column:     of every value the number of its column.
    limits:     by column how many of its values are taken at most.
    protected:  of every value whether nobody may infer it.
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
        """Return True if some cover of at most ``most`` values needs a protected one: so that the others tell
        it.

        A cover has a value of the first row that is not covered yet, so only these are tried: a cover that needs all
        its values is met on one of these ways, with those of the row that were tried before left out.
        """
        return self._infers(self._all, [], [0] * len(self._limits), frozenset(), most)

    def _infers(
        self, left: int, taken: list[int], used: list[int], barred: frozenset[int], most: int
    ) -> bool:
        """As above, with ``taken`` values in it and none of those ``barred``; left: rows that are not covered."""
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
        """Return True if some row has none of the other values."""
        return bool(self._all & ~sum_of([self._rows[other] for other in taken if other != value]))

    def _is_beyond(self, left: int, most: int) -> bool:
        """Return True if no ``most`` values cover these rows: more of them share no value, or the values have
        too few.
        """
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
    """One set more. Raises TooManySets."""
    if nodes == MOST_SETS:
        raise TooManySets
    return nodes + 1


def sum_of(sets: Sequence[int]) -> int:
    """The union of sets, each the bits of a number."""
    union = 0
    for each in sets:
        union |= each
    return union


def _lowest(rows: int) -> int:
    return (rows & -rows).bit_length() - 1


class SharesLeft:
    """Shares of values among the rows that have none of some others.

    has, column, limits:  as of :class:`Covers`; values ruled out and inferred count together.
    weights:  how often each row occurs: int64, shape (n_rows,).
    p, q:     of every value its greatest share p/q; 1 or more: nothing is asked.
    """

    def __init__(
        self, has: Bools, weights: Numbers, column: Numbers, limits: Numbers, p: Numbers, q: Numbers
    ) -> None:
        self.nodes = 0
        self._has, self._weights = has.astype(np.float64), weights
        self._column, self._limits, self._p, self._q = column, limits, p, q

    def infers(self, most: int) -> bool:
        """Return True if a share is above its bound for somebody who rules out at most ``most`` values.

        For a value with share p/q the surplus is (q - p) * rows that have it - p * rows that have not. It is positive
        where the bound is broken, and ruling a value out adds at most p * the rows with it that have not the first.
        No value is looked at that is above its bound not even where all its rows are among the fewest that are left.
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
        """Rows that have each value."""
        return np.rint(self._has @ weights).astype(np.int64)

    def _fewest(self, weights: Numbers, used: Numbers, most: int, best: int) -> int:
        """The fewest rows that are left once at most ``most`` values are ruled out, or ``best`` if that is less."""
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
        """Return True if ruling out 1 to ``most`` of the values ``among`` tells too much of one value.

        weights:  of rows, 0 for those that are ruled out. used: by column how many values of it are taken.
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
