"""Paillier: textbook identities, homomorphism, randomness, keys on the wire, hostile messages."""

from __future__ import annotations

from collections.abc import Callable

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import paillier
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.paillier import PrivateKey, PublicKey, generate_key
from crypto.rounds import Rounds
from tests.support.chi_square import chi_square
from tests.support.examples import examples
from tests.support.keys import short_key
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

KEY = short_key()
N = int(KEY.public.n)
plaintexts = st.integers(0, N - 1)


@settings(max_examples=examples(30), deadline=None)
@given(m=plaintexts, seed=st.integers(0, 2**32))
def test_both_ways_of_encrypting_agree_and_decrypt(m: int, seed: int) -> None:
    ciphertext = KEY.encrypt(m, SeededRng(seed))
    assert ciphertext == KEY.public.encrypt(m, SeededRng(seed))
    assert KEY.decrypt(ciphertext) == m


@settings(max_examples=examples(20), deadline=None)
@given(a=plaintexts, b=plaintexts, factor=st.integers(-(2**64), 2**64))
def test_products_and_powers_are_sums_and_multiples(a: int, b: int, factor: int) -> None:
    rng = SeededRng(1)
    square = KEY.public.n_squared
    x, y = KEY.encrypt(a, rng), KEY.encrypt(b, rng)
    assert KEY.decrypt(x * y % square) == (a + b) % N
    assert KEY.decrypt(gmpy2.powmod(x, factor, square)) == a * factor % N


@pytest.mark.parametrize("m", [0, 1, N // 2, N - 1])
def test_a_ciphertext_is_the_textbooks(m: int) -> None:
    """(1 + n)^m · r^n mod n² for r = base^e: computed from the definition."""
    e = int(KEY.public.exponent(SeededRng(5)))
    r = pow(int(KEY.public.base), e, N)
    assert KEY.encrypt(m, SeededRng(5)) == pow(1 + N, m, N * N) * pow(r, N, N * N) % (N * N)


def test_randomness_covers_the_full_range() -> None:
    exponents = [KEY.public.exponent(SeededRng(i)) for i in range(200)]
    assert max(exponents).bit_length() == KEY.public.bits + paillier.STATISTICAL_BITS
    rng = SeededRng(0)
    assert len({KEY.encrypt(0, rng) for _ in range(50)}) == 50


def test_ciphertexts_of_any_plaintext_look_alike() -> None:
    """Bytes of ciphertexts below the top one are uniform for 0 and for n - 1."""
    for m in (0, N - 1):
        rng = SeededRng(m)
        payload = b"".join(int(KEY.encrypt(m, rng)).to_bytes(128, "little")[:-2] for _ in range(60))
        assert chi_square(np.bincount(np.frombuffer(payload, np.uint8), minlength=256)) < BYTE_LIMIT


@pytest.mark.parametrize("m", [-1, N])
def test_plaintexts_outside_the_ring_are_refused(m: int) -> None:
    for key in (KEY, KEY.public):
        with pytest.raises(LocalProtocolError, match="does not fit the 512-bit key"):
            key.encrypt(m, SeededRng(0))


@pytest.mark.parametrize("key_bits", [192, 512, 2048])
def test_keys_have_the_size_asked_for(key_bits: int) -> None:
    key = generate_key("a", SeededRng(key_bits), key_bits, unsafe_short=True)
    assert int(key.public.n).bit_length() == key.public.bits == key_bits
    assert key.decrypt(key.public.encrypt(7, SeededRng(0))) == 7


def test_primes_are_tested_in_40_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No composite is known that passes fewer, so the number itself is looked at."""
    rounds: dict[int, int] = {}
    plain = gmpy2.is_prime

    def recording(x: int, n: int = 25) -> bool:
        rounds[x] = n
        return bool(plain(x, n))

    monkeypatch.setattr(paillier.gmpy2, "is_prime", recording)
    key = generate_key("a", SeededRng("rounds"), 512, unsafe_short=True)
    for prime in (int(key._p), int(key._q)):
        assert rounds[prime] >= 40
        assert plain(prime, 64)


def test_the_same_coins_give_the_same_key(golden: Golden) -> None:
    first, second = (generate_key("a", SeededRng("key"), 2048) for _ in range(2))
    assert first.public.n == second.public.n
    golden.check("paillier", "modulus", hex(first.public.n))
    golden.check("paillier", "ciphertext", hex(first.encrypt(1, SeededRng(0)) % 2**256))


@pytest.mark.parametrize("key_bits", [1024, 1984, 2049, 2050])
def test_short_keys_are_refused(key_bits: int) -> None:
    with pytest.raises(LocalProtocolError, match="at least 2048 bits"):
        generate_key("a", SeededRng(0), key_bits)
    with pytest.raises(LocalProtocolError, match="at least 2048 bits"):
        next(paillier.receive_key("a", key_bits))


def sender() -> Rounds[None]:
    yield from paillier.send_key("b", KEY.public)


def receiver(key_bits: int = 512) -> Rounds[PublicKey]:
    return (yield from paillier.receive_key("holder", key_bits, unsafe_short=True))


def exchange(
    tamper: Callable[[Message], bytes] | None = None, key_bits: int = 512
) -> tuple[PublicKey, Transcript]:
    parties: dict[str, Rounds[PublicKey | None]] = {"holder": sender(), "b": receiver(key_bits)}
    outputs, transcript = run_local(parties, tamper=tamper)
    key = outputs["b"]
    assert key is not None
    return key, transcript


def test_a_key_travels(golden: Golden) -> None:
    key, transcript = exchange()
    assert (key.owner, key.n, key.base) == ("holder", KEY.public.n, KEY.public.base)
    assert transcript.rounds == 1
    assert transcript.steps == ("paillier/key",)
    assert transcript.bytes_sent("holder") == 512 // 4
    assert transcript.bytes_sent("b") == 0
    golden.check("paillier", "key", transcript.digest())


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda p: p[:-1], "bytes"),
        (lambda p: p + b"\0", "bytes"),
        (lambda p: b"", "bytes"),
        (lambda p: bytes([p[0] ^ 1]) + p[1:], "no modulus"),  # even
        (lambda p: p[:63] + b"\0" + p[64:], "no modulus"),  # too short
        (lambda p: int(gmpy2.next_prime(2**511 + 2**510)).to_bytes(64, "little") + p[64:], "no modulus"),
        (lambda p: p[:64] + bytes(64), "not a unit"),
        (lambda p: p[:64] + p[:64], "not a unit"),
        (lambda p: p[:64] + b"\xff" * 64, "not a unit"),
    ],
)
def test_a_malformed_key_names_the_culprit(harm: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        exchange(lambda message: harm(message.payload))
    assert (caught.value.culprit, caught.value.step) == ("holder", "paillier/key")


def test_a_key_of_another_size_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="128 bytes where 256 are prescribed"):
        exchange(key_bits=1024)


def test_a_key_of_another_owner_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="belongs to holder, the peer is c"):
        paillier.check_owner(KEY.public, "c")


@pytest.mark.parametrize("value", [0, N, int(KEY._p), N * N])
def test_what_is_no_ciphertext_is_refused(value: int) -> None:
    def send() -> Rounds[None]:
        yield from paillier.send_ciphertexts(KEY.public, "b", "s", [value])

    def receive() -> Rounds[None]:
        yield from paillier.receive_ciphertexts(KEY.public, "a", "s", 1)

    with pytest.raises(RemoteProtocolError) as caught:
        run_local({"a": send(), "b": receive()})
    assert (caught.value.culprit, caught.value.step) == ("a", "s")


@pytest.mark.parametrize("count", [0, 1, paillier.PIECE, 2 * paillier.PIECE + 1])
def test_ciphertexts_travel_in_bounded_pieces(count: int) -> None:
    def receive() -> Rounds[list[int]]:
        got: list[int] = []
        for size in paillier.pieces(count):
            got += yield from paillier.receive_ciphertexts(KEY.public, "a", "s", size)
        return got

    def send() -> Rounds[list[int]]:
        yield from paillier.send_ciphertexts(KEY.public, "b", "s", range(1, count + 1))
        return []

    outputs, transcript = run_local({"a": send(), "b": receive()})
    assert outputs["b"] == list(range(1, count + 1))
    assert len(transcript.messages) == -(-count // paillier.PIECE)
    assert transcript.bytes_sent("a") == count * 128


def test_secrets_have_no_repr() -> None:
    assert repr(KEY) == "PrivateKey(owner='holder', bits=512, <secret>)"
    assert repr(KEY.public) == "PublicKey(owner='holder', bits=512)"
    assert isinstance(KEY, PrivateKey)
