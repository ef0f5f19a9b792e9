"""Oblivious polynomial evaluation: the sender's integer polynomials at the receiver's private points.

The receiver holds a Paillier key and encrypts the powers of its points; the sender combines the powers by its
coefficients. The receiver learns the values (:func:`value_receiver`), or both get additive shares of the values
modulo 2**64 (:func:`share_receiver`), the form that a circuit takes. Values are signed.

The route of [T] 7.5 through a Taylor series needs plaintexts of thousands of bits already on small tables. Inputs
that do not fit the key are refused with the numbers, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

import gmpy2

from crypto.encoding import Words, as_words, check_parameters, tell_parameters
from crypto.errors import LocalProtocolError
from crypto.paillier import (
    STATISTICAL_BITS,
    PrivateKey,
    PublicKey,
    check_owner,
    decrypt_below,
    pieces,
    receive_ciphertexts,
    send_ciphertexts,
)
from crypto.rng import Rng, uniform_below
from crypto.rounds import Rounds

Polynomial = Sequence[int]
"""Integer coefficients, lowest degree first: degree + 1 coefficients."""


_SHAPE, _POWERS, _VALUES = "polynomial/shape", "polynomial/powers", "polynomial/values"


@dataclass(frozen=True, slots=True)
class PolynomialShape:
    """The shape of a batch of evaluations, known to both sides.

    count:             number of polynomials, each evaluated at a separate point.
    degree:            degree of all; the owner pads lower degrees with zeros.
    point_bits:        every point is below 2**point_bits in absolute value.
    coefficient_bits:  the same for coefficients.
    """

    count: int
    degree: int
    point_bits: int
    coefficient_bits: int

    @property
    def value_bits(self) -> int:
        """Bits of the greatest possible absolute value: below 2**value_bits, whatever the inputs."""
        point, coefficient = (1 << self.point_bits) - 1, (1 << self.coefficient_bits) - 1
        return int(coefficient * sum(point**i for i in range(self.degree + 1))).bit_length()


def value_receiver(
    peer: str, key: PrivateKey, points: Sequence[int], shape: PolynomialShape, rng: Rng
) -> Rounds[list[int]]:
    """Learn a value per point; ``peer`` plays :func:`value_sender` with our public key.

    Functionality:  (points a, polynomials P) -> (P_1(a_1), ..., P_count(a_count)) to the receiver, - to the
                    sender.
    Input:          signed integers within the bounds of ``shape``, which is public and equal for both.
    Output:         ``count`` signed integers at the receiver; None at the sender.
    Leakage:        the shape. The receiver learns only the value of a polynomial (randomness within 2**-64
                    of uniform), the sender nothing (DCR).
    Rounds:         2 ("polynomial/shape" and "polynomial/powers", streamed; "polynomial/values").
    Bytes:          receiver: 32 and count * degree ciphertexts of key_bits / 4; sender: count ciphertexts.
    Assumes:        semi-honest parties (the powers are not proven to be powers); private authenticated
                    channel; DCR; value_bits + 2 <= key_bits.
    Source:         [T] 7.2.2 (OPE); Naor and Pinkas, STOC 1999; from homomorphic encryption, as in
                    Freedman, Nissim, Pinkas, EUROCRYPT 2004, section 3.

    Raises LocalProtocolError before anything is sent if inputs break the shape or the shape does not fit the key;
    RemoteProtocolError if a message is malformed or decrypts to a value impossible for a sender, and at the sender
    if the shapes differ.
    """
    _check_points(points, shape)
    _check_fit(shape.value_bits + 1, shape, key.public)
    offset = 1 << shape.value_bits
    plaintexts = yield from _receive_values(peer, key, points, shape, 2 * offset, rng)
    return [plaintext - offset for plaintext in plaintexts]


def value_sender(
    peer: str, key: PublicKey, polynomials: Sequence[Polynomial], shape: PolynomialShape, rng: Rng
) -> Rounds[None]:
    """Let the receiver learn a value per polynomial; see :func:`value_receiver`.

    Raises LocalProtocolError also for a key that does not belong to ``peer``.
    """
    _check_polynomials(polynomials, shape)
    _check_fit(shape.value_bits + 1, shape, key)
    offsets = [1 << shape.value_bits] * shape.count
    yield from _send_values(peer, key, polynomials, offsets, shape, rng)


def share_receiver(
    peer: str, key: PrivateKey, points: Sequence[int], shape: PolynomialShape, rng: Rng
) -> Rounds[Words]:
    """Get additive shares of a value per point; ``peer`` plays :func:`share_sender` with our public key.

    As :func:`value_receiver`, but:

    Functionality:  (points a, polynomials P) -> (s, P(a) - s) mod 2**64 element-wise, s uniform.
    Output, each:   uint64, shape (count,); values read as two's complement.
    Leakage:        the shape; the receiver's view is within 2**-63 of independent of the values.
    Assumes:        value_bits + 67 <= key_bits.
    """
    _check_points(points, shape)
    _check_fit(_masked_bits(shape), shape, key.public)
    plaintexts = yield from _receive_values(peer, key, points, shape, 1 << _masked_bits(shape), rng)
    return as_words(plaintexts)


def share_sender(
    peer: str, key: PublicKey, polynomials: Sequence[Polynomial], shape: PolynomialShape, rng: Rng
) -> Rounds[Words]:
    """Get additive shares of a value per polynomial; see :func:`share_receiver`."""
    _check_polynomials(polynomials, shape)
    _check_fit(_masked_bits(shape), shape, key)
    bound = 1 << _masked_bits(shape) - 1
    masks = [uniform_below(rng, bound) + (1 << shape.value_bits) for _ in range(shape.count)]
    yield from _send_values(peer, key, polynomials, masks, shape, rng)
    return as_words([-mask for mask in masks])


def _receive_values(
    peer: str, key: PrivateKey, points: Sequence[int], shape: PolynomialShape, bound: int, rng: Rng
) -> Rounds[list[int]]:
    """Send the encrypted powers, decrypt the answers: plaintexts below ``bound``."""
    yield from tell_parameters(peer, _SHAPE, astuple(shape))
    n = int(key.public.n)
    powers = (pow(point, i, n) for point in points for i in range(1, shape.degree + 1))
    ciphertexts = (key.encrypt(power, rng) for power in powers)
    yield from send_ciphertexts(key.public, peer, _POWERS, ciphertexts)
    plaintexts: list[int] = []
    for size in pieces(shape.count):
        for c in (yield from receive_ciphertexts(key.public, peer, _VALUES, size)):
            plaintexts.append(decrypt_below(key, c, bound, peer, _VALUES))
    return plaintexts


def _send_values(
    peer: str,
    key: PublicKey,
    polynomials: Sequence[Polynomial],
    addends: Sequence[int],
    shape: PolynomialShape,
    rng: Rng,
) -> Rounds[None]:
    """Send the encryption of each polynomial's value plus its addend, under fresh randomness."""
    check_owner(key, peer)
    yield from check_parameters(peer, _SHAPE, astuple(shape))
    # The constant terms need no ciphertext: add them to the addends, reduced like every plaintext.
    sums = [
        key.encrypt(int((polynomial[0] + addend) % key.n), rng)
        for polynomial, addend in zip(polynomials, addends, strict=True)
    ]
    places = ((k, i) for k in range(shape.count) for i in range(1, shape.degree + 1))
    for size in pieces(shape.count * shape.degree):
        for c in (yield from receive_ciphertexts(key, peer, _POWERS, size)):
            k, i = next(places)
            # An encryption of the plaintext times a coefficient, possibly negative.
            power = gmpy2.powmod(c, polynomials[k][i], key.n_squared)
            sums[k] = sums[k] * power % key.n_squared
    yield from send_ciphertexts(key, peer, _VALUES, sums)


def _masked_bits(shape: PolynomialShape) -> int:
    """Return the bits of a value, made non-negative, plus a mask that covers the value by STATISTICAL_BITS."""
    return shape.value_bits + 1 + STATISTICAL_BITS + 1


def _check_points(points: Sequence[int], shape: PolynomialShape) -> None:
    if len(points) != shape.count:
        raise LocalProtocolError(f"{shape.count} points are prescribed, not {len(points)}")
    if not _within(points, shape.point_bits):
        raise LocalProtocolError(f"a point does not fit the {shape.point_bits} bits agreed on")


def _check_polynomials(polynomials: Sequence[Polynomial], shape: PolynomialShape) -> None:
    if [len(polynomial) for polynomial in polynomials] != [shape.degree + 1] * shape.count:
        raise LocalProtocolError(
            f"{shape.count} polynomials with {shape.degree + 1} coefficients are prescribed, not "
            f"{len(polynomials)} with {sorted({len(p) for p in polynomials})}"
        )
    if not all(_within(polynomial, shape.coefficient_bits) for polynomial in polynomials):
        raise LocalProtocolError(f"a coefficient does not fit the {shape.coefficient_bits} bits agreed on")


def _within(values: Iterator[int] | Sequence[int], bits: int) -> bool:
    return all(abs(value) >> bits == 0 for value in values)


def _check_fit(bits: int, shape: PolynomialShape, key: PublicKey) -> None:
    """Raise LocalProtocolError, with the numbers, if values would overflow the plaintext space."""
    if bits > key.bits - 1:
        raise LocalProtocolError(
            f"a polynomial of degree {shape.degree} with coefficients of {shape.coefficient_bits} bits at "
            f"points of {shape.point_bits} bits needs plaintexts of {bits} bits; a key of {key.bits} bits "
            f"holds {key.bits - 1}"
        )
