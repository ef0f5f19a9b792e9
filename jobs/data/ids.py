"""Ids as parties compare them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


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
