"""The curve: RFC 7748's vectors, an independent ladder, hashing, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.curve import draw_scalar, exponentiate, hash_to_curve, is_on_curve
from tests.support.chi_square import chi_square
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
"""Order of the prime subgroup; the curve has 8 times as many points, the twist 4 times another prime."""


def ladder(scalar: int, u: int) -> int:
    """Scalar·point by RFC 7748's Montgomery ladder, without clamping; 0 for the neutral element."""
    x1, x2, z2, x3, z3 = u, 1, 0, u, 1
    for bit in reversed(range(scalar.bit_length())):
        swap = scalar >> bit & 1
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a % P, c * b % P, a * a % P, b * b % P
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, (aa - bb) * (aa + 121665 * (aa - bb)) % P
        if swap:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, P - 2, P) % P


def clamped(raw: bytes) -> int:
    return int.from_bytes(raw, "little") & ~7 & (2**254 - 1) | 2**254


def integer(point: bytes) -> int:
    return int.from_bytes(point, "little")


@given(st.binary(max_size=40), st.binary(max_size=40))
@settings(max_examples=examples(40), deadline=None)
def test_hashes_lie_on_the_curve_and_not_on_its_twist(prefix: bytes, message: bytes) -> None:
    u = integer(hash_to_curve(prefix, message))
    assert u < P
    assert pow(u**3 + 486662 * u**2 + u, (P - 1) // 2, P) == 1  # Euler's criterion
    assert ladder(8 * ORDER, u) == 0  # a point of the twist would not vanish


def test_hashes_separate_prefix_and_message() -> None:
    pairs = [(b"a", b"b"), (b"ab", b""), (b"", b"ab"), (b"a", b"b\0"), (b"b", b"b")]
    assert len({hash_to_curve(*pair) for pair in pairs}) == len(pairs)


def test_hashes_are_uniform() -> None:
    payload = b"".join(hash_to_curve(b"", str(i).encode())[:31] for i in range(500))
    assert chi_square(np.bincount(np.frombuffer(payload, np.uint8), minlength=256)) < BYTE_LIMIT


def test_exponentiation_is_the_independent_ladder() -> None:
    for seed in range(10):
        raw = SeededRng(seed).bytes(32)
        point = hash_to_curve(b"", raw)
        assert integer(exponentiate(draw_scalar(SeededRng(seed)), point)) == ladder(
            clamped(raw), integer(point)
        )


def test_exponentiation_meets_rfc_7748() -> None:
    class Fixed:
        def bytes(self, n: int) -> bytes:
            return bytes.fromhex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")

    point = bytes.fromhex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    expected = "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"
    assert exponentiate(draw_scalar(Fixed()), point).hex() == expected


def test_exponentiation_commutes_into_the_prime_subgroup() -> None:
    a, b = draw_scalar(SeededRng("a")), draw_scalar(SeededRng("b"))
    point = hash_to_curve(b"", b"x")
    both = exponentiate(a, exponentiate(b, point))
    assert both == exponentiate(b, exponentiate(a, point))
    assert is_on_curve(both)
    assert ladder(ORDER, integer(both)) == 0


@pytest.mark.parametrize(
    "u", [0, 1, 325606250916557431795983626356110631294008115727848805560023387167927233504]
)
def test_points_of_small_order_vanish(u: int) -> None:
    """0 has order 2, 1 order 4, the third order 8."""
    with pytest.raises(ValueError, match="shared key"):
        exponentiate(draw_scalar(SeededRng(0)), u.to_bytes(32, "little"))


@pytest.mark.parametrize(
    "point",
    [
        b"",
        bytes(31),
        bytes(33),
        bytes(32),  # order 2
        (2).to_bytes(32, "little"),  # on the twist
        (P + 4).to_bytes(32, "little"),  # 4 is on the curve, this is not canonical
        b"\xff" * 32,
    ],
)
def test_what_is_not_on_the_curve_is_told(point: bytes) -> None:
    assert not is_on_curve(point)


def test_the_neighbours_of_the_refused_are_on_the_curve() -> None:
    assert is_on_curve((4).to_bytes(32, "little"))
    assert is_on_curve((9).to_bytes(32, "little"))
