"""Results that the ledger keeps."""

from __future__ import annotations

import pytest

from jobs.errors import BudgetError
from jobs.owner.kept import Kept

WHOLE = (42).to_bytes(4, "big") + b'{"reveals": [], "own_reveals": [{"a": 1}]}' + b"the bytes"


def test_what_was_written_is_read() -> None:
    kept = Kept.read(3, WHOLE)
    assert (kept.number, kept.encoded) == (3, b"the bytes")
    assert kept.told == {"reveals": [], "own_reveals": [{"a": 1}]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        WHOLE[:20],
        b"\xff" * 40,
        (2).to_bytes(4, "big") + b"[]",
        (2).to_bytes(4, "big") + b"{}",
        (30_000).to_bytes(4, "big") + b"[" * 30_000,
        (19).to_bytes(4, "big") + b'{"reveals": [[[[[[[',
        (31).to_bytes(4, "big") + b'{"reveals": 1, "reveals": [{}]}',
    ],
)
def test_a_damaged_ledger_is_told(content: bytes) -> None:
    with pytest.raises(BudgetError) as caught:
        Kept.read(7, content)
    assert caught.value.problem.error_id == "budget-ledger"
    assert "entry 7" in caught.value.problem.message
