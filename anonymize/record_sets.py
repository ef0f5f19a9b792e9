"""Numbers by which sets of records are told apart: 64 bits for every leaf partition, added up over a set of them.

Two different sets share a sum with probability about 2**-64. The numbers are public: who makes rows up, and so has a
say in which partitions there are, could look for sets that collide (docs/security.md, N24).
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
    """Of every entry of a requirement what is added to the names of groups that it asks for: uint64."""
    return names_of(_ENTRIES + np.arange(n_entries))


def names_of(partitions: Ints) -> Names:
    """Spread partition numbers over 64 bits (the finalizer of splitmix64): uint64, the shape of ``partitions``."""
    x = (partitions.astype(np.uint64) + np.uint64(1)) * _MIX[0]
    x = (x ^ (x >> np.uint64(30))) * _MIX[1]
    x = (x ^ (x >> np.uint64(27))) * _MIX[2]
    return x ^ (x >> np.uint64(31))


class RecordSets:
    """Names that last: those of the partitions which one is refined into add up to its own.

    So a group has the same name before and after a refinement that leaves its records as they are.

    names:  of every leaf partition of T_g: uint64, shape (n_partitions,).
    """

    def __init__(self, table: GeneralizedTable) -> None:
        self.names = names_of(np.arange(table.n_partitions))

    def follow(self, before: GeneralizedTable, refinement: Refinement) -> None:
        """Account for a specialization: appended partitions get new names, those they come from keep the rest."""
        after, n_before = refinement.table, before.n_partitions
        at, child = np.nonzero(refinement.targets >= 0)
        parent = np.empty(after.n_partitions, dtype=np.int64)
        parent[after.partition[refinement.targets[at, child]]] = before.partition[refinement.entries[at]]
        appended = np.arange(n_before, after.n_partitions)
        fresh = names_of(appended)
        self.names = np.concatenate([self.names, fresh])
        np.subtract.at(self.names, parent[appended], fresh)
