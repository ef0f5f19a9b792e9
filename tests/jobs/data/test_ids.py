"""Ids as parties compare them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet
from hypothesis import given
from hypothesis import strategies as st

from jobs.data.ids import id_bytes, normalized_ids


def test_ids_are_normalized() -> None:
    """NFKC, then trimmed; case kept; each behind its length."""

    def normalized(*ids: str) -> list[bytes]:
        return id_bytes([pa.chunked_array([normalized_ids(pa.array([text]))]) for text in ids])

    assert normalized("\uff21\uff11 ") == normalized("A1") == [b"\0\0\0\x02A1"]
    assert normalized("\u00a0e\u0301\t") == normalized("\u00e9")
    assert normalized("ab") != normalized("AB")
    assert normalized("a b") != normalized("ab")


@given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), min_size=2, max_size=2, unique=True))
def test_several_ids_are_joined_unambiguously(pairs: list[tuple[str, str]]) -> None:
    columns_of_ids = [
        pa.chunked_array([pa.array(list(column), pa.string())]) for column in zip(*pairs, strict=True)
    ]
    one, other = id_bytes(columns_of_ids)
    assert one != other
