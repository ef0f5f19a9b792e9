"""Secure scalar products: output, packing, cost, hostile messages, uniform shares, views."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.paillier import PublicKey
from crypto.rng import Rng
from crypto.scalar_product import (
    ProductShape,
    Words,
    packing,
    scalar_product_holder,
    scalar_product_masker,
)
from tests.support.chi_square import byte_counts, chi_square
from tests.support.examples import examples
from tests.support.keys import short_key
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

SHAPE, VECTORS, MASKED = "scalar_product/shape", "scalar_product/vectors", "scalar_product/masked"


def run(
    x: Words, y: Words, shape: ProductShape, seed: object = 0, key_bits: int = 512, **how: object
) -> tuple[dict[str, Words], Transcript]:
    key = short_key(key_bits=key_bits)
    holder = scalar_product_holder("masker", key, x, shape, SeededRng((seed, "h")))
    masker = scalar_product_masker("holder", key.public, y, shape, SeededRng((seed, "m")))
    return run_local({"holder": holder, "masker": masker}, **how)  # type: ignore[arg-type]


def words(rows: list[list[int]], length: int) -> Words:
    return np.array(rows, dtype=np.uint64).reshape(len(rows), length)


def expected(x: Words, y: Words) -> list[int]:
    return [
        sum(a * b for a, b in zip(p, q, strict=True)) % 2**64
        for p, q in zip(x.tolist(), y.tolist(), strict=True)
    ]


@settings(max_examples=examples(60), deadline=None)
@given(
    data=st.data(),
    count=st.integers(0, 3),
    length=st.integers(0, 20),
    bits=st.tuples(st.integers(1, 64), st.integers(1, 64)),
    key_bits=st.sampled_from([256, 512, 1024]),
)
def test_shares_add_up_to_the_plain_products(
    data: st.DataObject, count: int, length: int, bits: tuple[int, int], key_bits: int
) -> None:
    x, y = (
        words(
            [
                data.draw(st.lists(st.integers(0, 2**b - 1), min_size=length, max_size=length))
                for _ in range(count)
            ],
            length,
        )
        for b in bits
    )
    outputs, _ = run(x, y, ProductShape(count, length, *bits), key_bits=key_bits)
    assert (outputs["holder"] + outputs["masker"]).tolist() == expected(x, y)


@pytest.mark.parametrize("bits", [1, 8, 60])
def test_the_greatest_vectors_overflow_into_nothing(bits: int) -> None:
    """Every product at its maximum: neighbours in a plaintext must not carry into each other."""
    for length in (1, 2, 3, 7, 40):
        x = np.full((1, length), (1 << bits) - 1, dtype=np.uint64)
        for seed in range(5):
            outputs, _ = run(x, x, ProductShape(1, length, bits, bits), seed, 1024)
            assert (outputs["holder"] + outputs["masker"]).tolist() == expected(x, x)


def test_a_product_under_a_real_key() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 2, (2, 1, 500), dtype=np.uint64)
    outputs, transcript = run(x, y, ProductShape(1, 500), key_bits=2048)
    assert (outputs["holder"] + outputs["masker"]).tolist() == expected(x, y)
    slots = 1 + (2048 - 67 - 11) // (2 * 76)
    assert transcript.bytes_sent("holder") == 32 + -(-500 // slots) * 512


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("length", [0, 1, 100])
@pytest.mark.parametrize("bits", [1, 20])
def test_cost_is_as_documented(count: int, length: int, bits: int) -> None:
    x = np.ones((count, length), dtype=np.uint64)
    shape = ProductShape(count, length, bits, bits)
    _, transcript = run(x, x, shape, key_bits=1024)
    width = max(64, shape.sum_bits + 65)
    slots = min(1 + (1024 - 67 - shape.sum_bits) // (2 * width), max(length, 1))
    assert transcript.bytes_sent("holder") == 32 + count * -(-length // slots) * 256
    assert transcript.bytes_sent("masker") == count * 256
    assert transcript.rounds == 2
    assert transcript.steps == ((SHAPE, VECTORS, MASKED) if length else (SHAPE, MASKED))


def test_vectors_of_45222_pack_18_to_a_ciphertext() -> None:
    assert packing(ProductShape(1, 45_222), 3072).slots == 18


def test_golden_transcript(golden: Golden) -> None:
    x, y = words([[1, 0, 3], [9, 9, 9]], 3), words([[0, 5, 7], [1, 2, 3]], 3)
    _, transcript = run(x, y, ProductShape(2, 3, 4, 4), "golden", 1024)
    golden.check("scalar_product", "two products", transcript.digest())


@pytest.mark.some(1)
@pytest.mark.parametrize("element", [0, 1])
@pytest.mark.parametrize("party", ["holder", "masker"])
def test_each_share_is_uniform_whatever_the_input(party: str, element: int) -> None:
    vectors = np.full((25, 3), element, dtype=np.uint64)
    shares = [run(vectors, vectors, ProductShape(25, 3), seed)[0][party] for seed in range(80)]
    assert chi_square(byte_counts(np.concatenate(shares))) < BYTE_LIMIT


@pytest.mark.some(1)
@pytest.mark.parametrize("element", [0, 1])
def test_the_whole_masked_plaintext_is_uniform_to_the_holder(element: int) -> None:
    """Not only the share: the unwanted products on both sides of it must be covered, the last by 64 bits.

    What is counted is the highest of the 8 bytes from each start.
    """
    key, shape = short_key(key_bits=512), ProductShape(20, 8)
    layout = packing(shape, 512)
    assert layout.slots == 4
    starts = {
        "low": 0,
        "middle": layout.middle - 56,
        "above": layout.middle + layout.stride - 60,
        "highest product": 2 * layout.middle - 56,
        "top": 2 * layout.middle + layout.sum_bits + 1,  # all 64 bits that cover it
    }
    vectors = np.full((20, 8), element, dtype=np.uint64)
    masked: list[int] = []
    for seed in range(80):
        _, transcript = run(vectors, vectors, shape, seed, 512)
        (message,) = transcript.view("holder")
        ciphertexts = [message.payload[i : i + 128] for i in range(0, len(message.payload), 128)]
        masked += [key.decrypt(int.from_bytes(c, "little")) for c in ciphertexts]
    for place, start in starts.items():
        seen = np.array([(plaintext >> start) % 2**64 for plaintext in masked], dtype=np.uint64)
        assert chi_square(byte_counts(seen)) < BYTE_LIMIT, place


def randomness_seen(y: Words, seed: object) -> int:
    """Return the rest of the masker's ciphertext when its holder takes the plaintext out, fixed coins at the
    holder.
    """
    key, x = short_key(), words([[1, 0, 1]], 3)
    shape = ProductShape(1, 3)
    holder = scalar_product_holder("masker", key, x, shape, SeededRng("holder"))
    masker = scalar_product_masker("holder", key.public, y, shape, SeededRng(seed))
    _, transcript = run_local({"holder": holder, "masker": masker})
    (message,) = transcript.view("holder")
    c = int.from_bytes(message.payload, "little")
    n_squared = int(key.public.n_squared)
    return c * pow(int(key.public.nude(key.decrypt(c))), -1, n_squared) % n_squared


def test_the_holder_sees_randomness_that_is_fresh_whatever_the_maskers_vector() -> None:
    """The holder knows the randomness of its own ciphertexts: without fresh one it could tell vectors apart."""
    for row in ([0, 0, 0], [1, 0, 0], [1, 1, 1]):
        seen = {randomness_seen(words([row], 3), seed) for seed in range(5)}
        assert len(seen) == 5
        assert 1 not in seen  # what an all-zero vector leaves if nothing is added


def test_the_maskers_randomness_has_the_full_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exponent of key_bits + 64 bits for each product: its own, not one for all."""
    drawn: list[int] = []
    exponent = PublicKey.exponent

    def recording(self: PublicKey, rng: Rng) -> int:
        drawn.append(int(exponent(self, rng)))
        return drawn[-1]

    monkeypatch.setattr(PublicKey, "exponent", recording)
    x = np.ones((40, 1), np.uint64)
    run(x, x, ProductShape(40, 1))
    assert len(set(drawn)) == 2 * 40
    assert 512 + 64 - 12 < max(drawn).bit_length() <= 512 + 64


@settings(max_examples=examples(300), deadline=None)
@given(
    length=st.one_of(st.integers(0, 2000), st.integers(0, 2**40)),
    bits=st.tuples(st.integers(1, 64), st.integers(1, 64)),
    key_bits=st.sampled_from([512, 1024, 2048, 3072, 4096]),
)
def test_masks_cover_every_product_by_64_bits_and_never_carry(
    length: int, bits: tuple[int, int], key_bits: int
) -> None:
    """From the definition: slot j of x and slot s-1-k of y meet at w * (s-1 + j-k); the greatest vectors."""
    shape = ProductShape(1, length, *bits)
    layout = packing(shape, key_bits)
    w, s = layout.stride, layout.slots
    middle = w * (s - 1)
    greatest = length * (2 ** bits[0] - 1) * (2 ** bits[1] - 1)  # of all pairs at one place
    below = sum(greatest << w * place for place in range(s - 1))
    above = sum(greatest << w * place for place in range(s))  # from the middle on
    low, high = layout.mask_bounds
    assert layout.middle == middle
    assert w >= 64  # the share's 64 bits hold nothing but the wanted product, modulo 2**64
    assert below << 64 <= low
    assert above << 64 <= high
    assert high % 2**64 == 0  # so the share is exactly uniform
    assert below + low - 1 < 1 << middle
    assert below + low - 1 + (above + high - 1 << middle) < layout.plaintext_bound <= 1 << key_bits - 1


def test_the_holders_messages_do_not_depend_on_the_maskers_vectors() -> None:
    x = words([[1, 0, 1]], 3)
    views = [
        [m.payload for m in run(x, words([y], 3), ProductShape(1, 3))[1].view("masker")]
        for y in ([0, 0, 0], [1, 1, 1])
    ]
    assert views[0] == views[1]


@pytest.mark.parametrize(("step", "culprit"), [(SHAPE, "holder"), (VECTORS, "holder"), (MASKED, "masker")])
@pytest.mark.parametrize(
    "harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"", lambda p: bytes(len(p))]
)
def test_a_malformed_message_names_the_culprit(
    step: str, culprit: str, harm: Callable[[bytes], bytes]
) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload

    x = words([[1, 1], [1, 0]], 2)
    with pytest.raises(RemoteProtocolError) as caught:
        run(x, x, ProductShape(2, 2), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def test_a_flipped_bit_in_the_masked_products_is_noticed() -> None:
    """A changed ciphertext decrypts to a uniform plaintext: out of range but for a chance of 2**-100."""

    def tamper(message: Message) -> bytes:
        flipped = bytes([message.payload[0] ^ 1]) + message.payload[1:]
        return flipped if message.step == MASKED else message.payload

    x = words([[1, 1]], 2)
    with pytest.raises(RemoteProtocolError, match="plaintext out of range") as caught:
        run(x, x, ProductShape(1, 2), tamper=tamper, key_bits=512)
    assert (caught.value.culprit, caught.value.step) == ("masker", MASKED)


@pytest.mark.parametrize(
    "other", [ProductShape(1, 3), ProductShape(2, 2), ProductShape(1, 2, 2), ProductShape(1, 2, 1, 2)]
)
def test_shapes_that_differ_are_noticed(other: ProductShape) -> None:
    key, shape = short_key(), ProductShape(1, 2)
    holder = scalar_product_holder("masker", key, np.zeros((1, 2), np.uint64), shape, SeededRng(0))
    vectors = np.zeros((other.count, other.length), np.uint64)
    masker = scalar_product_masker("holder", key.public, vectors, other, SeededRng(0))
    with pytest.raises(RemoteProtocolError, match="parameters") as caught:
        run_local({"holder": holder, "masker": masker})
    assert (caught.value.culprit, caught.value.step) == ("holder", SHAPE)


@pytest.mark.parametrize(
    ("vectors", "shape", "match"),
    [
        (np.zeros((1, 3), np.uint64), ProductShape(1, 4), "1 vectors of 4 uint64"),
        (np.zeros((2, 3), np.uint64), ProductShape(1, 3), "of shape"),
        (np.zeros((1, 3), np.int64), ProductShape(1, 3), "not int64"),
        (np.full((1, 3), 2, np.uint64), ProductShape(1, 3), "do not fit the 1 bits"),
        (np.zeros((1, 3), np.uint64), ProductShape(1, 3, 65, 65), "do not fit the 65 bits"),
        (np.zeros((1, 3), np.uint64), ProductShape(1, 3, 0, 0), "do not fit the 0 bits"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    vectors: Words, shape: ProductShape, match: str
) -> None:
    key = short_key()
    for protocol in (
        scalar_product_holder("masker", key, vectors, shape, SeededRng(0)),
        scalar_product_masker("holder", key.public, vectors, shape, SeededRng(0)),
    ):
        with pytest.raises(LocalProtocolError, match=match):
            next(protocol)


def test_a_product_that_overflows_the_key_is_refused_with_the_numbers() -> None:
    vectors, shape = np.zeros((1, 3), np.uint64), ProductShape(1, 3, 64, 63)
    key = short_key(key_bits=192)
    with pytest.raises(LocalProtocolError, match="up to 129 bits needs 196 bits, the key has 192"):
        next(scalar_product_holder("masker", key, vectors, shape, SeededRng(0)))


def test_a_key_of_another_party_is_refused() -> None:
    protocol = scalar_product_masker(
        "somebody", short_key().public, words([[1]], 1), ProductShape(1, 1), SeededRng(0)
    )
    with pytest.raises(LocalProtocolError, match="belongs to holder, the peer is somebody"):
        next(protocol)
