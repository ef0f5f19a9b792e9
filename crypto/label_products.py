"""Products of carried bits and shared words: additive shares of b·x, from labels of b and additive shares of x.

Let x = g + e, and let the bit be b = p ⊕ c, where the garbler knows the lowest bit p of the zero label, and the
evaluator the lowest bit c of the active label.

The garbler's part b·g needs no transfer. With K_c the label of lowest bit c, the evaluator knows H(K_c) alone. The
garbler sends T = H(K_0) − H(K_1) + (1 − 2p)·g. The evaluator's share is H(K_c) + c·T, the garbler's p·g − H(K_0).

The evaluator's part is b·e = c·e + p·(1 − 2c)·e. The garbler chooses by p from the evaluator's pair of a transfer, as
if p·y for a word y of the evaluator.

A bit has many words: a pad has as many blocks as its words take. So a word costs its bytes each way, and a bit a
transfer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crypto.blocks import Blocks
from crypto.circuit import Held
from crypto.encoding import Words, expect_length
from crypto.errors import LocalProtocolError
from crypto.hashing import BlockHash
from crypto.pieces import PIECE_BYTES, slices
from crypto.point_function import Transfers
from crypto.rounds import Rounds, receive, send
from crypto.two_party import CarriedWords

_TOLD, _CHOSEN = "label_products/told", "label_products/chosen"
_BLOCK_BITS = 128
_ONE = np.uint64(1)

Numbers: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Words of the width of the products."""

DTYPES: Mapping[int, str] = {16: "<u2", 32: "<u4", 64: "<u8"}
"""Types of words by width."""


def products(
    transfers: Transfers, factors: Sequence[tuple[CarriedWords, Words]], width: int
) -> Rounds[list[Words]]:
    """Multiply carried bits by shared words.

    Functionality:  additive shares of b_i · x_ij modulo 2**width, for every bit b_i and its words x_ij.
    Input, each:    ``factors``, each with n carried bits and own shares of their words, uint64, shape (n, m); the
                    shapes and ``width``, 16, 32 or 64, are public and equal. The labels of the bits have the offset
                    of the garbler's ``transfers``.
    Output, each:   own shares, in the shapes of the words.
    Leakage:        the shapes.
    Rounds:         2 ("ot/extend" and "label_products/told" from the garbler, "label_products/chosen" from the
                    evaluator); 0 without words.
    Bytes:          width / 8 for each word, by each, in pieces of at most 1 MiB; from the garbler the
                    transfers of all bits as :func:`crypto.ot.extension.correlated_send`.
    Assumes:        semi-honest parties; private authenticated channels; AES-128 an ideal cipher; the transfers.
    Source:         half gates (Zahur et al. 2015) with words in place of labels; Gilboa (CRYPTO 1999).

    Raises LocalProtocolError for words of a wrong shape, RemoteProtocolError for a message of a wrong length, and as
    the transfers do.
    """
    for bits, words in factors:
        if bits.width != 1 or words.ndim != 2 or len(words) != len(bits):
            raise LocalProtocolError(f"{len(bits)} words of {bits.width} bits, with {words.shape} words")
    if not sum(words.size for _, words in factors):
        return [np.zeros(words.shape, dtype=np.uint64) for _, words in factors]
    labels = np.concatenate([bits.labels[0] for bits, _ in factors])
    sizes = np.repeat([words.shape[1] for _, words in factors], [len(words) for _, words in factors])
    flat = np.concatenate([words.reshape(-1) for _, words in factors]).astype(DTYPES[width])
    side = _garbler if transfers.role is Held.GARBLER else _evaluator
    shares = yield from side(transfers, labels, _Pads(sizes, width), flat)
    parts = np.split(shares.astype(np.uint64), np.cumsum([words.size for _, words in factors])[:-1])
    return [part.reshape(words.shape) for part, (_, words) in zip(parts, factors, strict=True)]


class _Pads:
    """Pads of the words of each bit. sizes: words of each bit. width: bits of a word."""

    def __init__(self, sizes: NDArray[np.intp], width: int) -> None:
        self.sizes = sizes
        self._type = DTYPES[width]
        of_block = _BLOCK_BITS // width
        self._blocks = -(-sizes // of_block)
        room = self._blocks * of_block
        place = np.arange(room.sum()) - np.repeat(np.cumsum(room) - room, room)
        self._taken = place < np.repeat(sizes, room)

    def of(self, key: bytes, *labels: Blocks) -> list[Numbers]:
        """Return the pads of one or two labels of each bit, shape (n, 2) each; key: fresh."""
        tiled = np.stack([np.repeat(each, self._blocks, axis=0) for each in labels]).reshape(len(labels), -1)
        hashed = BlockHash(key, tiled.size // 2).hash(tiled).astype("<u8").view(self._type)
        return [row[self._taken] for row in hashed]

    def spread(self, bits: Words) -> NDArray[np.bool_]:
        """Return a bit of each label for each of its words."""
        return np.repeat(bits == _ONE, self.sizes)


def _garbler(transfers: Transfers, zero: Blocks, pads: _Pads, own: Numbers) -> Rounds[Numbers]:
    of_labels, of_transfers = transfers.key(b"labels"), transfers.key(b"products")
    p = zero[:, 0] & _ONE
    first = zero ^ p[:, None] * transfers.offset
    h_0, h_1 = pads.of(of_labels, first, first ^ transfers.offset)
    is_one, none = pads.spread(p), np.zeros_like(own)
    told = h_0 - h_1 + np.where(is_one, none - own, own)
    t = yield from transfers.choose(p.astype(np.uint8))
    yield from _sent(transfers.peer, _TOLD, told)
    theirs = yield from _received(transfers.peer, _CHOSEN, own)
    (h,) = pads.of(of_transfers, t)
    return np.where(is_one, own + theirs, none) - h_0 + h


def _evaluator(transfers: Transfers, active: Blocks, pads: _Pads, own: Numbers) -> Rounds[Numbers]:
    of_labels, of_transfers = transfers.key(b"labels"), transfers.key(b"products")
    is_one, none = pads.spread(active[:, 0] & _ONE), np.zeros_like(own)
    (h,) = pads.of(of_labels, active)
    q = yield from transfers.offer(len(active))
    theirs = yield from _received(transfers.peer, _TOLD, own)
    h_0, h_1 = pads.of(of_transfers, q, q ^ transfers.offset)
    offered = h_0 - h_1 + np.where(is_one, none - own, own)
    yield from _sent(transfers.peer, _CHOSEN, offered)
    return np.where(is_one, own + theirs, none) + h - h_0


def _sent(peer: str, step: str, words: Numbers) -> Rounds[None]:
    """Send words piece by piece."""
    for piece in _pieces(words):
        yield from send(step, {peer: words[piece].tobytes()})


def _received(peer: str, step: str, like: Numbers) -> Rounds[Numbers]:
    """Receive as many words as there are own."""
    words = np.empty_like(like)
    for piece in _pieces(like):
        payload = yield from receive(step, peer)
        expect_length(payload, like[piece].nbytes, peer, step)
        words[piece] = np.frombuffer(payload, dtype=like.dtype)
    return words


def _pieces(words: Numbers) -> Iterator[slice]:
    """Cut words into slices of at most PIECE_BYTES."""
    return slices(len(words), PIECE_BYTES // words.itemsize)
