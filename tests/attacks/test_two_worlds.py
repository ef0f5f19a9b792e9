"""The view of a party is alike in two worlds that it must not tell apart.

`python -m tests.attacks.worlds` also compares all means.
"""

from __future__ import annotations

import numpy as np
import pytest

from crypto.local import Message
from tests.attacks.worlds import CASES, MOST_Z, Seen, seen

SHORT, LONG = 2, 40
EVERY = [(mode, looks) for mode, parties in CASES.items() for looks in parties]


@pytest.mark.some(1)
@pytest.mark.parametrize(("mode", "looks"), EVERY)
def test_messages_are_alike_and_fresh(mode: str, looks: str) -> None:
    assert seen(mode, looks, SHORT).tells(float("inf")) == []


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "looks"), EVERY)
def test_no_byte_tells_the_worlds_apart(mode: str, looks: str) -> None:
    assert seen(mode, looks, LONG).tells(MOST_Z) == []


def views(*payloads: bytes) -> Seen:
    found = Seen()
    for i, payload in enumerate(payloads):
        found.add(i % 2, [Message("b", "a", "x", payload, 1)])
    return found


def test_what_would_tell() -> None:
    """Another length, a block used again, a byte that leans: each is noticed."""
    rng = np.random.default_rng(0)
    fresh = [rng.bytes(64) for _ in range(40)]
    assert views(*fresh).tells(MOST_Z) == []
    no_means = float("inf")
    assert views(*fresh[:3], fresh[3] + b"x").tells(no_means) == ["lengths or order of messages"]
    assert views(*fresh[:3], fresh[0]).tells(no_means) == ["8 blocks seen twice, in x"]
    leaning = [bytes([payload[0] // 8 + 128 * (i % 2)]) + payload[1:] for i, payload in enumerate(fresh)]
    assert "a byte with z" in views(*leaning).tells(MOST_Z)[0]
