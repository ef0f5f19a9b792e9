"""Secure scalar products of two private vectors, with additive shares modulo 2**64 out (SSPP, [T] 7.2.2).

The holder of a Paillier key encrypts its vector; the peer (the masker) combines the ciphertexts by its own vector
and masks the result. The vectors are packed: s elements of x go into a plaintext as sum_j x_j·2**(w·j), and the
masker's elements count as y_j·2**(w·(s-1-j)). So the wanted products meet at bit T = w·(s-1), and all unwanted
products are at least w bits away. This takes s times fewer ciphertexts than a ciphertext per element. The masker
first forms prod_i c_i**y_ij for every slot j and then shifts by Horner's rule. So the masker's cost is at most a
multiplication per set bit of y, plus T squarings in all.

A joint histogram (:mod:`crypto.joint_histogram`) does the work of many products much faster: this module is the
reference, and for small jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass

import gmpy2
import numpy as np

from crypto.encoding import UINT64_MASK, Words, as_words, check_parameters, tell_parameters
from crypto.errors import LocalProtocolError
from crypto.paillier import (
    STATISTICAL_BITS,
    Integer,
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

_MODULUS_BITS = 64
_SHAPE, _VECTORS, _MASKED = "scalar_product/shape", "scalar_product/vectors", "scalar_product/masked"


@dataclass(frozen=True, slots=True)
class ProductShape:
    """The shape of a batch of scalar products, known to both sides.

    count:        number of products.
    length:       elements of each vector.
    holder_bits:  every element of the holder is below 2**holder_bits; 1 for binary vectors.
    masker_bits:  the same for the masker.
    """

    count: int
    length: int
    holder_bits: int = 1
    masker_bits: int = 1

    @property
    def sum_bits(self) -> int:
        """Bits of the greatest possible scalar product."""
        return self.holder_bits + self.masker_bits + self.length.bit_length()


@dataclass(frozen=True, slots=True)
class Packing:
    """The layout of a plaintext: ``slots`` elements, ``stride`` bits apart; sums have ``sum_bits``."""

    slots: int
    stride: int
    sum_bits: int

    @property
    def middle(self) -> int:
        """The first bit of the wanted product."""
        return self.stride * (self.slots - 1)

    @property
    def mask_bounds(self) -> tuple[int, int]:
        """Exclusive bounds of the mask below ``middle`` and of the mask from ``middle`` on.

        The low mask is so far below 2**middle that the sum with the unwanted low products never carries: the result
        is exact. Each mask covers the masked value by STATISTICAL_BITS.
        """
        low = (1 << self.middle) - (1 << max(self.middle - self.stride + self.sum_bits + 1, 0))
        return max(low, 1), 1 << (self.middle + self.sum_bits + 1 + STATISTICAL_BITS)

    @property
    def plaintext_bound(self) -> int:
        """Exclusive bound of every honest masked plaintext."""
        return 1 << (2 * self.middle + self.sum_bits + 2 + STATISTICAL_BITS)


def scalar_product_holder(
    peer: str, key: PrivateKey, vectors: Words, shape: ProductShape, rng: Rng
) -> Rounds[Words]:
    """Play the key holder; ``peer`` plays :func:`scalar_product_masker` with the public key.

    Functionality:  (X, Y) -> (s, Z - s) with Z[k] = sum_i X[k, i] * Y[k, i] mod 2**64 and s uniform.
    Input:          X at the holder, Y at the masker: uint64, shape (count, length), non-negative, elements
                    below 2**holder_bits and 2**masker_bits. ``shape`` is public and equal for both.
    Output, each:   additive shares modulo 2**64: uint64, shape (count,).
    Leakage:        the shape. The masker's vectors are hidden statistically (within 3 * 2**-64 per
                    product), the holder's under DCR.
    Rounds:         2 ("scalar_product/shape" and ".../vectors", streamed; "scalar_product/masked").
    Bytes:          holder: 32 and count * ceil(length / s) ciphertexts of key_bits / 4; masker: count
                    ciphertexts. s = 1 + (key_bits - 67 - b) // (2 w), at most ``length``, with
                    b = shape.sum_bits and w = max(64, b + 65): s = 18 for binary vectors of 45,222 and 3072
                    bits.
    Assumes:        semi-honest parties; private authenticated channel; DCR; the masker has the holder's
                    key.
    Source:         [T] 7.4 (SSPP), Goethals, Laur, Lipmaa, Mielikainen, ICISC 2004, protocol 3; the packing
                    by slots that meet in the middle is ours.

    Raises LocalProtocolError before anything is sent if the vectors have a wrong shape or too wide elements, or if
    the key does not fit a single element per plaintext; RemoteProtocolError if a message is malformed or decrypts
    to a value impossible for a masker, and at the masker if the shapes differ.
    """
    layout = _prepare(key.public, vectors, shape, shape.holder_bits)
    yield from tell_parameters(peer, _SHAPE, astuple(shape))
    plaintexts = (plaintext for row in vectors for plaintext in _pack(row.tolist(), layout))
    yield from send_ciphertexts(key.public, peer, _VECTORS, (key.encrypt(m, rng) for m in plaintexts))
    shares: list[int] = []
    for size in pieces(shape.count):
        for c in (yield from receive_ciphertexts(key.public, peer, _MASKED, size)):
            plaintext = decrypt_below(key, c, layout.plaintext_bound, peer, _MASKED)
            shares.append(plaintext >> layout.middle & UINT64_MASK)
    return as_words(shares)


def scalar_product_masker(
    peer: str, key: PublicKey, vectors: Words, shape: ProductShape, rng: Rng
) -> Rounds[Words]:
    """Play the party without the private key; see :func:`scalar_product_holder`.

    Raises LocalProtocolError also for a key that does not belong to ``peer``.
    """
    check_owner(key, peer)
    layout = _prepare(key, vectors, shape, shape.masker_bits)
    yield from check_parameters(peer, _SHAPE, astuple(shape))
    products = [_Buckets(layout, row.tolist(), key.n_squared) for row in vectors]
    places = ((product, i) for product in products for i in range(_per_vector(shape, layout)))
    for size in pieces(shape.count * _per_vector(shape, layout)):
        for c in (yield from receive_ciphertexts(key, peer, _VECTORS, size)):
            product, place = next(places)
            product.take(place, c)
    masks = [tuple(uniform_below(rng, bound) for bound in layout.mask_bounds) for _ in products]
    masked = (
        product.total() * key.encrypt(low + (high << layout.middle), rng) % key.n_squared
        for product, (low, high) in zip(products, masks, strict=True)
    )
    yield from send_ciphertexts(key, peer, _MASKED, masked)
    return as_words([-high for _, high in masks])


class _Buckets:
    """A scalar product at the masker: ciphertexts multiplied together by the bits of their weights."""

    def __init__(self, layout: Packing, row: list[int], modulus: Integer) -> None:
        self._layout = layout
        self._row = row
        self._modulus = modulus
        self._at: dict[int, Integer] = {}

    def take(self, place: int, ciphertext: Integer) -> None:
        """Multiply in the ``place``-th ciphertext by the elements of its slots."""
        slots, stride = self._layout.slots, self._layout.stride
        for j, element in enumerate(self._row[place * slots : (place + 1) * slots]):
            for bit in _set_bits(element):
                self._multiply(stride * (slots - 1 - j) + bit, ciphertext)

    def _multiply(self, position: int, ciphertext: Integer) -> None:
        known = self._at.get(position)
        self._at[position] = ciphertext if known is None else known * ciphertext % self._modulus

    def total(self) -> Integer:
        """Return the product of all buckets, each raised to 2**position."""
        total, last = gmpy2.mpz(1), 0
        for position in sorted(self._at, reverse=True):
            total = gmpy2.powmod(total, 1 << (last - position), self._modulus) if last else total
            total, last = total * self._at[position] % self._modulus, position
        return gmpy2.powmod(total, 1 << last, self._modulus)


def _set_bits(element: int) -> Iterator[int]:
    while element:
        lowest = element & -element
        yield lowest.bit_length() - 1
        element ^= lowest


def _pack(row: list[int], layout: Packing) -> Iterator[int]:
    """Combine the elements of a vector into plaintexts, ``slots`` to each."""
    for start in range(0, len(row), layout.slots):
        slots = row[start : start + layout.slots]
        yield sum(element << layout.stride * j for j, element in enumerate(slots))


def _per_vector(shape: ProductShape, layout: Packing) -> int:
    """Return the number of ciphertexts per vector."""
    return -(-shape.length // layout.slots)


def _prepare(key: PublicKey, vectors: Words, shape: ProductShape, bits: int) -> Packing:
    """Check our input against the shape, and the shape against the key."""
    if vectors.shape != (shape.count, shape.length) or vectors.dtype != np.uint64:
        raise LocalProtocolError(
            f"{shape.count} vectors of {shape.length} uint64 are prescribed, not {vectors.dtype} of shape "
            f"{vectors.shape}"
        )
    if not 1 <= bits <= _MODULUS_BITS or (vectors.size and int(vectors.max()) >> bits):
        raise LocalProtocolError(f"the vectors' elements do not fit the {bits} bits agreed on")
    return packing(shape, key.bits)


def packing(shape: ProductShape, key_bits: int) -> Packing:
    """Return the packing with the most slots; LocalProtocolError if no slot fits."""
    sum_bits = shape.sum_bits
    stride = max(_MODULUS_BITS, sum_bits + 1 + STATISTICAL_BITS)
    spare = key_bits - 1 - (sum_bits + 2 + STATISTICAL_BITS)
    if spare < 0:
        raise LocalProtocolError(
            f"a scalar product of up to {sum_bits} bits needs {key_bits - spare} bits, the key has {key_bits}"
        )
    return Packing(min(1 + spare // (2 * stride), max(shape.length, 1)), stride, sum_bits)
