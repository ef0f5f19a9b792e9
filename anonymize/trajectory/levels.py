"""Sequences size by size, and the search for them in paths.

A level holds sequences of the same size, each as a *prefix*, a sequence of the level below, with a later item behind
it. So the search of a path goes from its prefixes to longer sequences. The sequences with all their subsets in a
level are the candidates of the next level ([T] Algorithm 4.1, lines 12 to 17, where line 14 forgets the smaller
violating sequences).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import PrivacyError
from anonymize.table import Ints
from anonymize.trajectory.paths import Items

Numbers = NDArray[np.int32]

NONE = -1
_DENSE = 1 << 24
_AT_ONCE = 1 << 20
TOO_MANY = "too-many-sequences"
_REMEDY = "take a coarser time, fewer locations or a smaller L, or raise `max_candidates`"
PAIRS = 16
"""Most examined pairs of sequences per sequence that may be found."""


@dataclass(frozen=True, eq=False)
class Level:
    """Sequences of the same size i.

    items:    items of every sequence, ascending: int32, shape (m, i).
    subsets:  numbers in the level below of the sequence without its first, …, last item: int32, shape (m, i); in the
              first level 0, the empty sequence.
    """

    items: Items = field(repr=False)
    subsets: Numbers = field(repr=False)

    @property
    def size(self) -> int:
        """Items of a sequence."""
        return int(self.items.shape[1])

    def __len__(self) -> int:
        return len(self.items)

    def some(self, numbers: Ints | slice) -> Level:
        """Return the sequences with the given numbers."""
        return Level(self.items[numbers], self.subsets[numbers])


class Index:
    """Search index for sequences of a level by prefix, a number in the level below, and last item.

    The items behind a prefix are mostly close together. So each prefix has a window of a table, from its first item
    to its last. If the windows are too wide, sorted codes are searched instead.
    """

    def __init__(self, level: Level, domain: int) -> None:
        """Build the index. ``level``: sequences in any order. domain: number of items."""
        prefix, item = level.subsets[:, -1], level.items[:, -1]
        n_prefixes = int(prefix.max(initial=-1)) + 1
        self._domain = domain
        self._low = np.full(n_prefixes + 1, domain, dtype=np.int32)
        self._high = np.zeros(n_prefixes + 1, dtype=np.int32)
        np.minimum.at(self._low, prefix, item)
        np.maximum.at(self._high, prefix, item + 1)
        width = np.maximum(self._high - self._low, 0).astype(np.int64)
        self._base = np.cumsum(width) - width - self._low
        numbers = np.arange(len(level), dtype=np.int32)
        self._table: Numbers | None = None
        if width.sum() <= _DENSE:
            self._table = np.full(int(width.sum()) + 1, NONE, dtype=np.int32)
            self._table[self._base[prefix] + item] = numbers
            return
        codes = self._code(prefix, item)
        order = np.argsort(codes)
        self._codes = np.append(codes[order], (n_prefixes + 1) * domain)
        self._numbers = np.append(numbers[order], np.int32(NONE))

    def find(self, prefix: Numbers, item: Items) -> Numbers:
        """Return the number of every sequence, NONE if the level lacks it: int32, shape as the arguments."""
        prefix = np.minimum(prefix, len(self._low) - 1)  # the last one has nothing behind it
        inside = (item >= self._low[prefix]) & (item < self._high[prefix])
        if self._table is not None:
            return self._table[np.where(inside, self._base[prefix] + item, -1)]
        code = self._code(prefix, item)
        place = np.searchsorted(self._codes, code)
        return np.where(self._codes[place] == code, self._numbers[place], np.int32(NONE))

    def _code(self, prefix: Numbers, item: Items) -> Ints:
        found: Ints = prefix.astype(np.int64) * self._domain + item
        return found


def singles(domain: int) -> Level:
    """Return all sequences of a single item."""
    items = np.arange(domain, dtype=np.int32)[:, None]
    return Level(items, np.zeros_like(items))


def joined(level: Level, index: Index, most: int) -> Level:
    """Return the sequences, one item longer, with every subset in the level, in the order of their items.

    level:  in the order of the items. index: of the level's sequences, possibly with further sequences behind.

    Raises PrivacyError for more than ``most`` sequences or more than PAIRS · ``most`` pairs.
    """
    prefix = level.subsets[:, -1]
    end = np.searchsorted(prefix, prefix, side="right")
    pairs = end - np.arange(len(level)) - 1  # with later sequences of the same prefix
    before = np.concatenate([[0], np.cumsum(pairs)])
    if level.size == 1:
        require_few(int(before[-1]), most)
    _require_few_pairs(int(before[-1]), most)
    parts = []
    found = start = 0
    while start < len(level):
        stop = max(start + 1, int(np.searchsorted(before, before[start] + _AT_ONCE, side="right")) - 1)
        parts.append(_joined(level, index, np.arange(start, stop), pairs[start:stop]))
        found += len(parts[-1])
        require_few(found, most)
        start = stop
    shape = (0, level.size + 1)
    nothing = Level(np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32))
    return Level(
        np.concatenate([nothing.items, *(part.items for part in parts)]),
        np.concatenate([nothing.subsets, *(part.subsets for part in parts)]),
    )


def _joined(level: Level, index: Index, first: Ints, pairs: Ints) -> Level:
    """Join each sequence of ``first`` with the ``pairs`` sequences behind it."""
    one = np.repeat(first, pairs)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    subsets = np.empty((len(one), level.size + 1), dtype=np.int32)
    subsets[:, -1], subsets[:, -2] = one, other
    last = level.items[other, -1]
    whole = np.ones(len(one), dtype=bool)
    for i in range(level.size - 1):
        subsets[:, i] = index.find(level.subsets[one, i], last)
        whole &= (subsets[:, i] != NONE) & (subsets[:, i] < len(level))
    items = np.column_stack([level.items[one[whole]], last[whole]])
    return Level(items, subsets[whole])


def _require_few_pairs(found: int, most: int) -> None:
    """Raise PrivacyError for too many pairs of sequences, before any is examined."""
    if found > PAIRS * most:
        raise PrivacyError(
            TOO_MANY,
            f"{found:,} pairs of sequences are to be looked at, more than {PAIRS} for each of `max_candidates`, "
            f"{most:,}",
            remedy=_REMEDY,
        )


def require_few(found: int, most: int) -> None:
    """Raise PrivacyError for more than ``most`` sequences of a size."""
    if found > most:
        raise PrivacyError(
            TOO_MANY,
            f"at least {found:,} sequences of one size are to be counted, more than `max_candidates`, {most:,}",
            remedy=_REMEDY,
        )
