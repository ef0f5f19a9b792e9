"""Paths of the records of a table, with equal records collapsed.

A record's path is the set of its items. An item includes its time, so a path is written in the order of its items. A
known sequence of the path is a subset (a subsequence of [T] 4.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anonymize.table import Codes, Ints, pack, tally

Items = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Paths:
    """Records of a table, collapsed: distinct (path, sensitive cell) pairs with their numbers of records.

    items:    items of path after path, ascending within a path: int32, shape (n_instances,).
    starts:   path r is ``items[starts[r]:starts[r + 1]]``, possibly empty: int64, shape (n_paths + 1,).
    cells:    sensitive cell of each path, as in :mod:`anonymize.table`: int32, shape (n_paths,).
    weights:  records of each path, at least 1: int64, shape (n_paths,).
    domain:   number of items (codes are 0 … domain − 1), public.
    """

    items: Items = field(repr=False)
    starts: Ints = field(repr=False)
    cells: NDArray[np.int32] = field(repr=False)
    weights: Ints = field(repr=False)
    domain: int

    @property
    def n_paths(self) -> int:
        return len(self.cells)

    @property
    def n_records(self) -> int:
        return int(self.weights.sum())

    @property
    def lengths(self) -> Ints:
        """Items of every path: int64, shape (n_paths,)."""
        return np.diff(self.starts)

    @property
    def n_instances(self) -> int:
        """Items of all records."""
        return int(self.lengths @ self.weights)

    @property
    def n_empty(self) -> int:
        """Records without an item."""
        return int(self.weights[self.lengths == 0].sum())

    def path(self, r: int) -> tuple[int, ...]:
        """Return the items of a path."""
        return tuple(self.items[self.starts[r] : self.starts[r + 1]].tolist())


def paths_of(records: Codes, items: Codes, cells: Codes, domain: int) -> tuple[Paths, Ints]:
    """Collapse records given by their items, in any order. A repeated item of a record counts once.

    records:  record of each item: numbers below ``len(cells)``, shape (n,). A record may have no item.
    items:    below ``domain``, shape (n,).
    cells:    sensitive cell of every record, shape (n_records,).

    Returns the paths, and the path number of every record: int64, shape (n_records,).
    """
    keys = np.sort(records.astype(np.int64) * domain + items)
    keys = keys[np.diff(keys, prepend=-1) > 0]  # np.unique takes ten times as long
    whose, own = np.divmod(keys, domain)
    starts = np.concatenate([[0], np.cumsum(np.bincount(whose, minlength=len(cells)))])
    return collapsed(own.astype(np.int32), starts, cells, domain)


def collapsed(items: Items, starts: Ints, cells: Codes, domain: int) -> tuple[Paths, Ints]:
    """Collapse records given path after path, as in :class:`Paths`, each of weight 1.

    Returns the paths and the path of every record, as :func:`paths_of`.
    """
    n_cells = int(cells.max(initial=0)) + 1
    lengths = np.diff(starts)
    number = np.zeros(len(cells), dtype=np.int64)
    firsts = []
    n_paths = 0
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        columns = [items[starts[rows] + i] for i in range(length)]
        keys = pack([*columns, cells[rows]], [*[domain] * length, n_cells])
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        number[rows] = n_paths + inverse
        firsts.append(rows[first])
        n_paths += len(first)
    chosen = np.concatenate([np.zeros(0, dtype=np.int64), *firsts])
    own, own_starts = rows_of(items, starts, chosen)
    weights = tally(number, None, n_paths)
    return Paths(own, own_starts, cells[chosen].astype(np.int32), weights, domain), number


def without(paths: Paths, dropped: NDArray[np.bool_]) -> Paths:
    """Return the paths, in order, without some instances: shape (n_instances of different paths,)."""
    left = np.concatenate([[0], np.cumsum(~dropped)])
    return replace(paths, items=paths.items[~dropped], starts=left[paths.starts])


def lost(before: Paths, after: Paths) -> NDArray[np.bool_]:
    """Return the lost instances of paths, path by path: shape (n_instances,)."""
    gone = np.ones(len(before.items), dtype=bool)
    gone[np.searchsorted(_keys(before), _keys(after))] = False
    return gone


def _keys(paths: Paths) -> Ints:
    """Return a number for every instance, ascending."""
    return np.repeat(np.arange(paths.n_paths), paths.lengths) * paths.domain + paths.items


def rows_of(items: Items, starts: Ints, chosen: Ints) -> tuple[Items, Ints]:
    """Return the items of the chosen paths, path after path, and their starts."""
    lengths = np.diff(starts)[chosen]
    own = np.concatenate([[0], np.cumsum(lengths)])
    return items[np.arange(own[-1]) + np.repeat(starts[chosen] - own[:-1], lengths)], own


def ends_by_item(items: Items, domain: int) -> Ints:
    """Return the ends of sorted items, by item: int64, shape (domain + 1,); the first is 0, the start of item 0."""
    return np.concatenate([[0], np.cumsum(np.bincount(items, minlength=domain))])
