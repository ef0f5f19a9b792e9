"""Names of record sets: 64 bits for every leaf partition, added up over a set of partitions.

Two different sets have the same sum with probability about 2**-64. The numbers are public. A party that invents rows
influences the partitions and could search for colliding sets (docs/security.md, N24).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymize.partition import GeneralizedTable, Refinement
from anonymize.table import Ints

Names: TypeAlias = NDArray[np.uint64]

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_ENTRIES = 1 << 62
"""First number of an entry: no partition has a number as large."""


def marks_of(n_entries: int) -> Names:
    """Return the mark of every entry of a requirement, which is added to the names of the entry's groups: uint64."""
    return names_of(_ENTRIES + np.arange(n_entries))


def names_of(partitions: Ints) -> Names:
    """Spread partition numbers over 64 bits (the finalizer of splitmix64): uint64, the shape of ``partitions``."""
    x = (partitions.astype(np.uint64) + np.uint64(1)) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return x ^ (x >> np.uint64(31))


class RecordSets:
    """Lasting names: the names of a refined partition's parts add up to the partition's name.

    So a group keeps its name in a refinement that leaves its records unchanged.

    names:  name of every leaf partition of T_g: uint64, shape (n_partitions,).
    """

    def __init__(self, table: GeneralizedTable) -> None:
        self.names = names_of(np.arange(table.n_partitions))

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> None:
        """Account for a specialization: appended partitions get new names, and their parents keep the remainder."""
        after, n_before = refinement.table, before.n_partitions
        at, child = np.nonzero(refinement.targets >= 0)
        parent = np.empty(after.n_partitions, dtype=np.int64)
        parent[after.partition[refinement.targets[at, child]]] = before.partition[refinement.entries[at]]
        appended = np.arange(n_before, after.n_partitions)
        fresh = names_of(appended)
        self.names = np.concatenate([self.names, fresh])
        np.subtract.at(self.names, parent[appended], fresh)
