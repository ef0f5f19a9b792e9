"""Paillier encryption: keys, ciphertexts, and the sending of both.

Paillier, EUROCRYPT 1999: with n = p·q and g = 1 + n, a ciphertext of m in [0, n) is c = (1 + m·n)·ρ mod n² for a
random n-th residue ρ; products of ciphertexts are ciphertexts of sums. Key classes and decryption come from ``phe``
(GPL-3.0; no other file imports ``phe``), arithmetic from gmpy2. Primes and encryption randomness come from the Rng
argument, never from ``phe``'s own generator.

**Randomness.** The key carries a random unit ``base``. Everybody forms h = base**n mod n² and uses ρ = h**e with e
uniform in [0, 2**(key_bits + 64)), so that fixed-base tables apply. This is *full-range* randomness: e mod the
order of h is within 2**-64 of uniform. The decisional composite residuosity assumption (DCR) suffices; the proof is
in docs/proofs.md.

A party without the private key that multiplies by a fresh ρ hides from the *holder* the origin of a ciphertext,
statistically (2**-64), because all honest ciphertexts are (1 + n)**m times a power of h.

**Sizes.** The default of 3072 bits is reckoned as 128 bits of security; the accepted size of 2048 as 112 (NIST SP
800-57 part 1, table 2).

**Not claimed.** Nothing here runs in constant time: neither Python integers nor GMP's, nor table look-ups by secret
digits. An observer of timing or caches on the holder's machine is outside the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

import gmpy2
from phe import paillier as phe

from crypto.encoding import decode_integers, encode_integers, expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import Rng, uniform_below
from crypto.rounds import Rounds, receive, send

Integer: TypeAlias = Any
"""A gmpy2.mpz (gmpy2 ships no types)."""

DEFAULT_KEY_BITS = 3072
MIN_KEY_BITS = 2048
STATISTICAL_BITS = 64
PIECE = 256
"""Number of ciphertexts in a message."""

_HOLDER_WINDOW, _PUBLIC_WINDOW = 8, 4
_PRIMALITY_ROUNDS = 40


class PublicKey:
    """The public key, for encryption and computation by all but the holder.

    owner:  name of the holder.
    n:      the modulus.
    base:   the unit whose n-th power generates the randomness of ciphertexts.
    """

    def __init__(self, owner: str, n: int, base: int) -> None:
        self.owner = owner
        self.phe = phe.PaillierPublicKey(n)
        self.n: Integer = gmpy2.mpz(n)
        self.n_squared: Integer = self.n * self.n
        self.base: Integer = gmpy2.mpz(base)

    def __repr__(self) -> str:
        return f"PublicKey(owner={self.owner!r}, bits={self.bits})"

    @property
    def bits(self) -> int:
        """Bits of the modulus. Plaintexts below 2**(bits - 1) always fit."""
        return int(self.n.bit_length())

    @property
    def ciphertext_bytes(self) -> int:
        return self.bits // 4

    def encrypt(self, plaintext: int, rng: Rng) -> Integer:
        """Encrypt an integer in [0, n) under fresh randomness."""
        return self.nude(plaintext) * self._powers.of(self.exponent(rng)) % self.n_squared

    def nude(self, plaintext: int) -> Integer:
        """Return 1 + plaintext·n: a ciphertext without randomness, so without secrecy."""
        if not 0 <= plaintext < self.n:
            raise LocalProtocolError(f"a plaintext does not fit the {self.bits}-bit key")
        return 1 + plaintext * self.n

    def exponent(self, rng: Rng) -> Integer:
        """Draw the exponent e of a ciphertext's randomness."""
        return gmpy2.mpz(int.from_bytes(rng.bytes((self.bits + STATISTICAL_BITS) // 8), "little"))

    @cached_property
    def _powers(self) -> _FixedBase:
        h = gmpy2.powmod(self.base, self.n, self.n_squared)
        return _FixedBase(h, self.n_squared, self.bits + STATISTICAL_BITS, _PUBLIC_WINDOW)


class PrivateKey:
    """The holder's key. Encrypts by Chinese remainders: same ciphertexts for the same coins, in less time."""

    def __init__(self, public: PublicKey, p: int, q: int) -> None:
        self.public = public
        self._phe = phe.PaillierPrivateKey(public.phe, p, q)
        self._p, self._q = gmpy2.mpz(self._phe.p), gmpy2.mpz(self._phe.q)

    def __repr__(self) -> str:
        return f"PrivateKey(owner={self.public.owner!r}, bits={self.public.bits}, <secret>)"

    def encrypt(self, plaintext: int, rng: Rng) -> Integer:
        """Encrypt an integer in [0, n) under fresh randomness."""
        nude, e = self.public.nude(plaintext), self.public.exponent(rng)
        modulo_p, modulo_q, p_inverse = self._powers
        # The orders of h modulo p² and q² divide p - 1 and q - 1.
        at_p = nude * modulo_p.of(e % (self._p - 1)) % modulo_p.modulus
        at_q = nude * modulo_q.of(e % (self._q - 1)) % modulo_q.modulus
        return at_p + modulo_p.modulus * ((at_q - at_p) * p_inverse % modulo_q.modulus)

    def decrypt(self, ciphertext: Integer) -> int:
        """Return the plaintext in [0, n)."""
        return int(self._phe.raw_decrypt(int(ciphertext)))

    @cached_property
    def _powers(self) -> tuple[_FixedBase, _FixedBase, Integer]:
        squares = self._p * self._p, self._q * self._q
        at_p, at_q = (
            _FixedBase(
                gmpy2.powmod(self.public.base, self.public.n, square),
                square,
                self.public.bits // 2,
                _HOLDER_WINDOW,
            )
            for square in squares
        )
        return at_p, at_q, gmpy2.invert(*squares)


class _FixedBase:
    """Powers of a base by table: a multiplication per window of the exponent (Brickell et al. 1992)."""

    def __init__(self, base: Integer, modulus: Integer, exponent_bits: int, window: int) -> None:
        self.modulus = modulus
        self._window = window
        self._rows: list[list[Integer]] = []
        for _ in range(0, exponent_bits, window):
            row = [gmpy2.mpz(1)]
            for _ in range(1 << window):
                row.append(row[-1] * base % modulus)
            base = row.pop()
            self._rows.append(row)

    def of(self, exponent: Integer) -> Integer:
        """Return base**exponent mod modulus."""
        power, modulus, mask = gmpy2.mpz(1), self.modulus, (1 << self._window) - 1
        for row in self._rows:
            digit = exponent & mask
            if digit:
                power = power * row[digit] % modulus
            exponent >>= self._window
        assert exponent == 0, "the exponent is longer than the table"
        return power


def generate_key(
    owner: str, rng: Rng, key_bits: int = DEFAULT_KEY_BITS, *, unsafe_short: bool = False
) -> PrivateKey:
    """Draw a key: two primes of key_bits / 2 bits, both with the two top bits set, and a random unit.

    ``unsafe_short`` lets tests use keys below 2048 bits. Raises LocalProtocolError for a size not offered.
    """
    _check_bits(key_bits, unsafe_short)
    p = q = _prime(rng, key_bits // 2)
    while q == p:
        q = _prime(rng, key_bits // 2)
    base = 1 + uniform_below(rng, p * q - 1)
    return PrivateKey(PublicKey(owner, p * q, base), p, q)


def send_key(peer: str, key: PublicKey) -> Rounds[None]:
    """Give ``peer`` the public key; the peer calls :func:`receive_key`.

    Functionality:  (key, -) -> (-, key).
    Leakage:        the public key.
    Rounds:         1 ("paillier/key").
    Bytes:          key_bits / 4: modulus and base.
    Assumes:        authenticated channel. The holder does not prove that the key is well formed.
    Source:         Paillier, EUROCRYPT 1999; the base as in Damgard, Jurik and Nielsen, IJIS 2010, section
                    4.
    """
    yield from send("paillier/key", {peer: encode_integers((int(key.n), int(key.base)), key.bits // 8)})


def receive_key(
    peer: str, key_bits: int = DEFAULT_KEY_BITS, *, unsafe_short: bool = False
) -> Rounds[PublicKey]:
    """Receive the public key of ``peer``, of exactly ``key_bits`` bits. Cost as :func:`send_key`.

    Raises LocalProtocolError for a size not offered, RemoteProtocolError for a modulus of a wrong size, an even or
    prime modulus, or a base that is not a unit.
    """
    _check_bits(key_bits, unsafe_short)
    step = "paillier/key"
    payload = yield from receive(step, peer)
    n, base = decode_integers(payload, key_bits // 8, 2, 1 << key_bits, peer, step)
    if n.bit_length() != key_bits or n % 2 == 0 or gmpy2.is_prime(n):
        raise RemoteProtocolError(peer, step, f"no modulus of {key_bits} bits")
    if base >= n or gmpy2.gcd(base, n) != 1:
        raise RemoteProtocolError(peer, step, "the base is not a unit")
    return PublicKey(peer, n, base)


def send_ciphertexts(key: PublicKey, peer: str, step: str, ciphertexts: Iterable[Integer]) -> Rounds[None]:
    """Send ciphertexts in messages of at most PIECE, encrypting only as far as the next message needs."""
    source = iter(ciphertexts)
    while piece := list(islice(source, PIECE)):
        payload = encode_integers((int(c) for c in piece), key.ciphertext_bytes)
        yield from send(step, {peer: payload})


def receive_ciphertexts(key: PublicKey, peer: str, step: str, count: int) -> Rounds[list[Integer]]:
    """Receive a message of ``count`` ciphertexts: units modulo n². PIECE bounds ``count``; see pieces()."""
    payload = yield from receive(step, peer)
    expect_length(payload, count * key.ciphertext_bytes, peer, step)
    values = decode_integers(payload, key.ciphertext_bytes, count, int(key.n_squared), peer, step)
    ciphertexts = [gmpy2.mpz(value) for value in values]
    if any(gmpy2.gcd(c, key.n) != 1 for c in ciphertexts):
        raise RemoteProtocolError(peer, step, "no ciphertext: not a unit")
    return ciphertexts


def pieces(count: int) -> Iterator[int]:
    """Yield the sizes of the messages for ``count`` ciphertexts."""
    return (min(PIECE, count - start) for start in range(0, count, PIECE))


def decrypt_below(key: PrivateKey, ciphertext: Integer, bound: int, peer: str, step: str) -> int:
    """Decrypt a peer's result; a plaintext impossible in an honest computation is the peer's fault."""
    plaintext = key.decrypt(ciphertext)
    if plaintext >= bound:
        raise RemoteProtocolError(peer, step, "plaintext out of range")
    return plaintext


def check_owner(key: PublicKey, peer: str) -> None:
    """Raise LocalProtocolError if the key does not belong to ``peer``."""
    if key.owner != peer:
        raise LocalProtocolError(f"the key belongs to {key.owner}, the peer is {peer}")


def _check_bits(key_bits: int, unsafe_short: bool) -> None:
    if key_bits % 64 or key_bits < (128 if unsafe_short else MIN_KEY_BITS):
        raise LocalProtocolError(f"keys have at least {MIN_KEY_BITS} bits, a multiple of 64, not {key_bits}")


def _prime(rng: Rng, bits: int) -> int:
    """Draw integers of exactly ``bits`` bits, odd and with the two top bits set, until one is prime."""
    while True:
        drawn = int.from_bytes(rng.bytes(bits // 8), "little") | 3 << (bits - 2) | 1
        if gmpy2.is_prime(drawn, _PRIMALITY_ROUNDS):
            return drawn
