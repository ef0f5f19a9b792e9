"""Ids as parties compare them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymize.table import Ints, pack
from jobs.data.arrow import pa, pc


def normalized_ids(column: pa.Array) -> pa.Array:
    """Ids as they are compared: Unicode NFKC, then without blanks around them; upper and lower case differ."""
    return pc.utf8_trim_whitespace(pc.utf8_normalize(column, form="NFKC"))


def id_bytes(columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
    """One byte string for each record: every normalized id in UTF-8 behind its length, so that ("a", "bc") is
    not ("ab", "c").
    """
    encoded = [pc.cast(column, pa.binary()).to_pylist() for column in columns]
    return [
        b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        for parts in zip(*encoded, strict=True)
    ]


def numbered_ids(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """Number the records by their ids, equal ones alike, in the order of the ids: int64, shape (n,), from 0."""
    ranks = [_ranks(column.combine_chunks().dictionary_encode()) for column in columns]
    if len(ranks) == 1:
        return ranks[0]
    keys = pack(ranks, [int(rank.max(initial=-1)) + 1 for rank in ranks])
    number: Ints = np.unique(keys, return_inverse=True)[1]
    return number


def _ranks(column: pa.DictionaryArray) -> Ints:
    """Of every value its place among the different ones, in order."""
    order = pc.array_sort_indices(column.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ranks: Ints = place[column.indices.to_numpy()]
    return ranks
