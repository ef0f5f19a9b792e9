"""Removal of a sweep: each sequence to suppress loses an item.

A record drops the item in most of its sequences to suppress; ties: in fewest kept sequences of all sizes, which are
public; then the smallest. This is repeated until it has no such sequence. The result depends only on the record's
path and on public bits, so the split of records among holders does not matter.
"""

from __future__ import annotations

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.table import Codes, Ints


def dropped(going: Ints, items: Codes, whose: Codes, order: Ints) -> Bools:
    """Return the instances that the rows drop: shape (n_instances,).

    going:  found sequences to suppress, as instances, padded to equal length by the last instance: int64, shape (n,
            length).
    items:  item of every instance. whose: row of every instance. Instances of a row stand together.
    order:  of the items (:func:`order_of`).
    """
    drops = np.zeros(len(items), dtype=bool)
    once = np.ones(going.shape, dtype=bool)
    once[:, 1:] = going[:, 1:] != going[:, :-1]
    while len(going):
        times = np.bincount(going[once], minlength=len(items))
        held = np.flatnonzero(times)
        starts = np.flatnonzero(np.diff(whose[held], prepend=-1))
        worth = times[held] * len(order) - order[items[held]]  # different for each instance of a row
        best = np.repeat(np.maximum.reduceat(worth, starts), np.diff(np.append(starts, len(held))))
        drops[held[worth == best]] = True
        left = ~drops[going].any(axis=1)
        going, once = going[left], once[left]
    return drops


def order_of(kept_with: Ints) -> Ints:
    """Return the place of every item in the order of removal for ties.

    kept_with:  number of kept sequences with each item.
    """
    order = np.empty(len(kept_with), dtype=np.int64)
    order[np.lexsort([np.arange(len(kept_with)), kept_with])] = np.arange(len(kept_with))
    return order
