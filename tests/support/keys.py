"""Short Paillier keys for tests: drawn once per size, insecure by their size alone."""

from __future__ import annotations

from functools import cache

from crypto.paillier import PrivateKey, generate_key
from tests.support.rng import SeededRng


@cache
def short_key(owner: str = "holder", key_bits: int = 512) -> PrivateKey:
    return generate_key(owner, SeededRng(("key", owner, key_bits)), key_bits, unsafe_short=True)
