"""Ids in the form for comparison between parties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymize.table import Ints, pack
from jobs.data.arrow import pa, pc

_WITHOUT = ("", "?")
"""Texts of a missing id."""


@dataclass(frozen=True)
class IdForm:
    """Further form of the ids of a column, the same at all parties.

    ignore_case:   upper and lower case are the same.
    strip_prefix:  text that is left out at the beginning, if there.
    digits:        only the digits 0 to 9 count.
    zfill:         number of characters up to which zeros are put in front; 0: no zeros.
    """

    ignore_case: bool = False
    strip_prefix: str = ""
    digits: bool = False
    zfill: int = 0

    def applied(self, ids: pa.Array) -> pa.Array:
        """Return ids in this form. An id without a character left is missing, and stays missing."""
        found = pc.utf8_lower(ids) if self.ignore_case else ids
        if self.strip_prefix:
            prefix = self.strip_prefix.lower() if self.ignore_case else self.strip_prefix
            rest = pc.utf8_slice_codeunits(found, start=len(prefix))
            found = pc.if_else(pc.starts_with(found, pattern=prefix), rest, found)
        if self.digits:
            found = pc.replace_substring_regex(found, pattern="[^0-9]+", replacement="")
        if self.zfill:
            missing = pc.is_in(found, pa.array(_WITHOUT, pa.string()))
            found = pc.if_else(missing, found, pc.utf8_lpad(found, width=self.zfill, padding="0"))
        return found


def normalized_ids(column: pa.Array) -> pa.Array:
    """Return ids in the form for comparison: Unicode NFKC, then without blanks around; case matters."""
    return pc.utf8_trim_whitespace(pc.utf8_normalize(column, form="NFKC"))


def id_bytes(columns: Sequence[pa.ChunkedArray]) -> list[bytes]:
    """Return the ids of each record as bytes: every normalized id in UTF-8 behind its length.

    The lengths keep ("a", "bc") apart from ("ab", "c").
    """
    encoded = [pc.cast(column, pa.binary()).to_pylist() for column in columns]
    return [
        b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        for parts in zip(*encoded, strict=True)
    ]


def numbered_ids(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """Number the records by id in the order of ids, the same for equal ids: int64, shape (n,), from 0."""
    ranks = [_ranks(column.combine_chunks().dictionary_encode()) for column in columns]
    if len(ranks) == 1:
        return ranks[0]
    keys = pack(ranks, [int(rank.max(initial=-1)) + 1 for rank in ranks])
    number: Ints = np.unique(keys, return_inverse=True)[1]
    return number


def _ranks(column: pa.DictionaryArray) -> Ints:
    """Return the rank of every value among the different values."""
    order = pc.array_sort_indices(column.dictionary).to_numpy()
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ranks: Ints = place[column.indices.to_numpy()]
    return ranks
