"""Curve25519 as a group with commuting encryption: hashing onto the curve, and exponentiation.

A point is the canonical 32-byte u-coordinate (RFC 7748) of a point on the curve v² = u³ + 486662·u² + u over
GF(2**255 - 19), never of the twist. Identifiers are hashed by try-and-increment, so every sent value lies on the
curve and no bit tells twist from curve. X25519 clamps the scalar to a multiple of the cofactor, so
:func:`exponentiate` maps into the subgroup of prime order. P and −P share their u-coordinate, and exponentiate(a,
exponentiate(b, u)) = exponentiate(b, exponentiate(a, u)).

``cryptography`` exponentiates in constant time. Hashing is not constant-time: the number of attempts depends on the
(local) identifier, two on average.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import gmpy2
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from crypto.rng import Rng

Scalar: TypeAlias = X25519PrivateKey

POINT_BYTES = 32
_P = gmpy2.mpz(2**255 - 19)
_A = 486662
_U_BITS = (1 << 255) - 1


def draw_scalar(rng: Rng) -> Scalar:
    """Draw a secret scalar (clamped when used)."""
    return X25519PrivateKey.from_private_bytes(rng.bytes(POINT_BYTES))


def hash_to_curve(prefix: bytes, message: bytes) -> bytes:
    """Hash a message to a point of the curve; ``prefix`` separates uses and is part of the hash's input.

    Try-and-increment over SHA-256: the first u below p, of 255 bits, with a square right-hand side. Modelled
    as a random oracle onto the curve's u-coordinates.
    """
    state = hashlib.sha256(len(prefix).to_bytes(4, "little") + prefix)
    state.update(len(message).to_bytes(8, "little") + message)
    attempt = 0
    while True:
        trial = state.copy()
        trial.update(attempt.to_bytes(4, "little"))
        u = int.from_bytes(trial.digest(), "little") & _U_BITS
        if _is_u_coordinate(u):
            return u.to_bytes(POINT_BYTES, "little")
        attempt += 1


def is_on_curve(point: bytes) -> bool:
    """Return True if 32 bytes are a canonical u-coordinate of the curve (not of the twist, nor of order 2)."""
    return len(point) == POINT_BYTES and _is_u_coordinate(int.from_bytes(point, "little"))


def exponentiate(scalar: Scalar, point: bytes) -> bytes:
    """Return scalar·point as a u-coordinate. Raises ValueError for the neutral element (all zero)."""
    return scalar.exchange(X25519PublicKey.from_public_bytes(point))


def _is_u_coordinate(u: int) -> bool:
    return u < _P and bool(gmpy2.legendre(u * (u * (u + _A) + 1) % _P, _P) == 1)
