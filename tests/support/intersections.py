"""Runs of set intersections between small sets, and what is done to their messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from crypto.intersection import intersect
from crypto.local import Message, Transcript, run_local
from crypto.tags import Positions
from tests.support.rng import SeededRng

JOB = bytes(32)
SIZE, AGREE = "intersection/size", "intersection/agree"
TAGS, COMMON = "intersection/tags", "intersection/common"
SHARES, TABLE = "intersection/shares", "oprf/table"
Sets = dict[str, list[bytes]]


def run(
    sets: Sets, collector: str = "p0", seed: object = 0, job: bytes = JOB, **how: object
) -> tuple[dict[str, Positions], Transcript]:
    parties = {me: intersect(me, list(sets), collector, sets[me], job, SeededRng((seed, me))) for me in sets}
    return run_local(parties, **how)  # type: ignore[arg-type]


def named(*lists: str) -> Sets:
    return {f"p{i}": [character.encode() for character in members] for i, members in enumerate(lists)}


def changing(number: int, harm: Callable[[bytes], bytes]) -> Callable[[Message], bytes]:
    """Change one message of a run, by its place in the honest transcript."""
    places = itertools.count()
    return lambda message: harm(message.payload) if next(places) == number else message.payload


def flipped(payload: bytes, bit: int) -> bytes:
    changed = bytearray(payload)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def common_ids(sets: Sets, outputs: dict[str, Positions]) -> list[bytes]:
    """Return the common identifiers in the common order, which must be the same at all parties."""
    found = [[sets[me][i] for i in outputs[me]] for me in sets]
    assert all(ids == found[0] for ids in found)
    return found[0]
