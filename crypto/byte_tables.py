"""Products of bit vectors with bit matrices, eight rows of the matrix at a time ("four Russians").

A vector times a matrix over GF(2) is the exclusive or of the rows that the vector's ones select. For every eight rows
a table holds all 256 sums of some of them: so eight rows cost one look-up. Arlazarov, Dinic, Kronrod and Faradzhev
(1970).

Which entries are looked up depends on the vectors, so the time may, too: Python is not constant-time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crypto.encoding import Words

Octets = NDArray[np.uint8]
BYTE = 8


def tables_of(rows: Words) -> Words:
    """All sums of every eight rows: uint64, shape (ceil(n / 8), 256, w), of rows of shape (n, w)."""
    groups = -(-len(rows) // BYTE)
    padded = np.zeros((groups, BYTE, rows.shape[1]), dtype=np.uint64)
    padded.reshape(-1, rows.shape[1])[: len(rows)] = rows
    tables = np.zeros((groups, 1 << BYTE, rows.shape[1]), dtype=np.uint64)
    for i in range(BYTE):
        np.bitwise_xor(tables[:, : 1 << i], padded[:, i, np.newaxis], out=tables[:, 1 << i : 2 << i])
    return tables


def add_products(sums: Words, tables: Words, vectors: Octets) -> None:
    """Add to every row of ``sums`` the product of a vector with the matrix of ``tables``, in place.

    sums:     uint64, shape (n, w).
    vectors:  uint8, shape (n, groups): bit i of byte g selects row 8 g + i.
    """
    looked_up = np.empty_like(sums)
    for table, octets in zip(tables, vectors.T, strict=True):
        np.take(table, octets, axis=0, out=looked_up, mode="clip")
        np.bitwise_xor(sums, looked_up, out=sums)
