"""Tags of identifiers, two words each: which of two lists are the same, and lists on their way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from crypto.encoding import decode_words, encode_words
from crypto.rounds import Rounds, receive, send
from crypto.slices import slices

Tags = NDArray[np.uint64]
"""Shape (n, 2)."""
Positions = NDArray[np.int64]

TAG_WORDS = 2
PIECE = 1 << 16
"""Tags in one message."""


def ranking(tags: Tags) -> Positions:
    """The order in which tags ascend, first words first."""
    return np.lexsort(tags.T[::-1])


def ascending(tags: Tags) -> bool:
    """Whether every tag is greater than the one before, first words first."""
    before, after = tags[:-1], tags[1:]
    higher = (after[:, 0] == before[:, 0]) & (after[:, 1] > before[:, 1])
    return bool(((after[:, 0] > before[:, 0]) | higher).all())


def matches(ours: Tags, theirs: Tags) -> tuple[Positions, NDArray[np.uint8]]:
    """Return where in ``ours`` the common tags are, in the order of ``theirs``, and which of ``theirs`` are common.

    ours, theirs:  shapes (n, 2) and (m, 2), different tags; ``theirs`` ascends.
    Returns int64, shape (c,), and bits: uint8, shape (m,).
    """
    order = ranking(ours)
    ranked = ours[order]
    places = np.searchsorted(ranked[:, 0], theirs[:, 0])
    common = np.zeros(len(theirs), dtype=np.uint8)
    # First words of different tags are hardly ever equal; where they are, the next place may be the right one.
    open_ = np.arange(len(theirs))
    while len(open_ := open_[places[open_] < len(ours)]):
        found = ranked[places[open_]]
        equal = found == theirs[open_]
        common[open_[equal.all(axis=1)]] = 1
        open_ = open_[equal[:, 0] & ~equal[:, 1]]
        places[open_] += 1
    return order[places[np.flatnonzero(common)]], common


def send_tags(step: str, told: Mapping[str, Tags]) -> Rounds[None]:
    """Send every party its tags, as many to each, piece by piece: 16 bytes a tag."""
    for piece in slices(len(next(iter(told.values()))), PIECE):
        yield from send(step, {peer: encode_words(tags[piece]) for peer, tags in told.items()})


def receive_tags(step: str, peer: str, count: int) -> Rounds[Tags]:
    """Receive so many tags. Raises RemoteProtocolError for a piece of another length."""
    parts = [np.zeros((0, TAG_WORDS), dtype=np.uint64)]
    for piece in slices(count, PIECE):
        payload = yield from receive(step, peer)
        words = decode_words(payload, TAG_WORDS * (piece.stop - piece.start), peer, step)
        parts.append(words.reshape(-1, TAG_WORDS))
    return np.concatenate(parts)
