"""A group in which base transfers cost nothing: the integers modulo the order of the real one, under addition.

Discrete logarithms are known here, so nothing is hidden. All else is as in the real group: points are 32 bytes,
points that are not canonical are refused, and sender and receiver come to the same keys. Tests of joint runs take
this group, because base transfers in the real one would take a fifth of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_ORDER = 2**252 + 27742317777372353535851937790883648493
_BYTES = 32


def _point(value: int) -> bytes:
    return (value % _ORDER).to_bytes(_BYTES, "little")


def _value(point: bytes) -> int:
    return int.from_bytes(point, "little")


def _is_valid(point: bytes) -> bool:
    return 0 < _value(point) < _ORDER


INTEGERS: Mapping[str, Callable[..., bytes | bool]] = {
    "crypto_core_ed25519_add": lambda p, q: _point(_value(p) + _value(q)),
    "crypto_core_ed25519_is_valid_point": _is_valid,
    "crypto_core_ed25519_scalar_reduce": lambda scalar: _point(_value(scalar)),
    "crypto_core_ed25519_sub": lambda p, q: _point(_value(p) - _value(q)),
    "crypto_scalarmult_ed25519_base_noclamp": lambda scalar: scalar,
    "crypto_scalarmult_ed25519_noclamp": lambda scalar, p: _point(_value(scalar) * _value(p)),
}
"""By the name that :mod:`crypto.ot.base` calls, the same operation on integers."""
