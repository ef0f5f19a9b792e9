"""Removal of one sweep: of the sequences that must go, each loses an item.

A record drops the item that is in most of its sequences that must go; ties: in fewest of the kept sequences of all
sizes, which are public; then the smallest. Then again, until none of these sequences is left. That depends on its own
path and on public bits only, so it is the same however the records are split among holders.
"""

from __future__ import annotations

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.table import Codes, Ints


def dropped(going: Ints, items: Codes, whose: Codes, order: Ints) -> Bools:
    """Return the instances that the rows drop: shape (n_instances,).

    going:  found sequences that must go, as the instances of each, the last one repeated to make them of one length:
            int64, shape (n, length).
    items:  the item of every instance. whose: its row. Instances of a row stand together.
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
    """The place of every item in the order in which items are dropped, all else being equal.

    kept_with:  by item in how many kept sequences it is.
    """
    order = np.empty(len(kept_with), dtype=np.int64)
    order[np.lexsort([np.arange(len(kept_with)), kept_with])] = np.arange(len(kept_with))
    return order
