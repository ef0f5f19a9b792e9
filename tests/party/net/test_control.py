"""Values that cross the network: pieces, and payloads that no repr shows."""

from __future__ import annotations

import pytest

import party.net.control
from party.net.control import PIECE_BYTES, Envelope, Piece, ResultPart, Submit, pieces


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES])
def test_pieces_are_bounded_and_add_up(size: int) -> None:
    content = bytes(i % 251 for i in range(1000)) * (size // 1000 + 1)
    cut = pieces("x", content[:size])
    assert b"".join(piece.content for piece in cut) == content[:size]
    assert all(len(piece.content) <= PIECE_BYTES for piece in cut)
    assert [piece.last for piece in cut] == [False] * (len(cut) - 1) + [True]
    assert {piece.name for piece in cut} == {"x"}


def test_payloads_stay_below_what_grpc_takes() -> None:
    assert party.net.control.PIECE_BYTES + (64 << 10) < 4 << 20  # gRPC's default limit


def test_no_repr_shows_a_payload() -> None:
    piece = Piece("rows", b"Zebra", True)
    envelope = Envelope(b"j", b"r", "a", "b", 0, "x", b"Zebra", True)
    for value in (piece, envelope, ResultPart(piece), Submit(b"r", piece)):
        assert "Zebra" not in repr(value)
