"""Tags of identifiers: values of an oblivious pseudo-random function (:mod:`crypto.oprf`), compared by sorting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Tags = NDArray[np.uint64]
"""Shape (n, TAG_WORDS)."""
Positions = NDArray[np.int64]

TAG_WORDS = 2


def ascending_order(tags: Tags) -> Positions:
    """Return the order that sorts tags, first words first: int64, shape (n,)."""
    order = np.argsort(tags[:, 0])
    firsts = tags[order, 0]
    # First words of different tags are hardly ever equal; only then do the second words count.
    return np.lexsort(tags.T[::-1]) if (firsts[1:] == firsts[:-1]).any() else order


def ascend(tags: Tags) -> bool:
    """Return True if every tag is greater than the tag before, first words first."""
    before, after = tags[:-1], tags[1:]
    higher = (after[:, 0] == before[:, 0]) & (after[:, 1] > before[:, 1])
    return bool(((after[:, 0] > before[:, 0]) | higher).all())


def matches(ours: Tags, theirs: Tags) -> tuple[Positions, NDArray[np.uint8]]:
    """Return the positions in ``ours`` of the common tags, in the order of ``theirs``, and a bit for each of theirs.

    ours, theirs:  shapes (n, 2) and (m, 2); the tags of ``ours`` are different.
    Returns int64, shape (c,), and uint8, shape (m,): 1 for a common tag.
    """
    order = ascending_order(ours)
    ranked = ours[order]
    places = np.searchsorted(ranked[:, 0], theirs[:, 0])
    common = np.zeros(len(theirs), dtype=np.uint8)
    # First words of different tags are hardly ever equal; if they are, try the next place.
    open_ = np.arange(len(theirs))
    while len(open_ := open_[places[open_] < len(ours)]):
        found = ranked[places[open_]]
        equal = found == theirs[open_]
        common[open_[equal.all(axis=1)]] = 1
        open_ = open_[equal[:, 0] & ~equal[:, 1]]
        places[open_] += 1
    return order[places[np.flatnonzero(common)]], common
