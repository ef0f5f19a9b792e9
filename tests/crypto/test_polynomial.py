"""Oblivious polynomial evaluation: output, cost, refusals, hostile messages, shares and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.polynomial import (
    Polynomial,
    PolynomialShape,
    share_receiver,
    share_sender,
    value_receiver,
    value_sender,
)
from tests.support.chi_square import byte_counts, chi_square
from tests.support.examples import examples
from tests.support.keys import short_key
from tests.support.rng import SeededRng
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

PAIRS = {"value": (value_receiver, value_sender), "share": (share_receiver, share_sender)}
SHAPE_STEP, POWERS, VALUES = "polynomial/shape", "polynomial/powers", "polynomial/values"


def run(
    kind: str,
    points: Sequence[int],
    polynomials: Sequence[Polynomial],
    shape: PolynomialShape,
    seed: object = 0,
    key_bits: int = 512,
    **how: Any,
) -> tuple[dict[str, Any], Transcript]:
    key = short_key(key_bits=key_bits)
    receiver, sender = PAIRS[kind]
    return run_local(
        {
            "holder": receiver("sender", key, points, shape, SeededRng((seed, "r"))),
            "sender": sender("holder", key.public, polynomials, shape, SeededRng((seed, "s"))),
        },
        **how,
    )


def evaluate(polynomial: Polynomial, point: int) -> int:
    return sum(c * point**i for i, c in enumerate(polynomial))


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[int], list[list[int]], PolynomialShape]:
    shape = PolynomialShape(
        draw(st.integers(0, 3)), draw(st.integers(0, 5)), draw(st.integers(0, 12)), draw(st.integers(0, 60))
    )
    a, c = (1 << shape.point_bits) - 1, (1 << shape.coefficient_bits) - 1
    points = draw(st.lists(st.integers(-a, a), min_size=shape.count, max_size=shape.count))
    coefficients = st.lists(st.integers(-c, c), min_size=shape.degree + 1, max_size=shape.degree + 1)
    return points, draw(st.lists(coefficients, min_size=shape.count, max_size=shape.count)), shape


@settings(max_examples=examples(50), deadline=None)
@given(batch=batches())
def test_values_and_shares_equal_the_plain_values(
    batch: tuple[list[int], list[list[int]], PolynomialShape],
) -> None:
    points, polynomials, _ = batch
    plain = [evaluate(p, a) for p, a in zip(polynomials, points, strict=True)]
    outputs, _ = run("value", *batch)
    assert outputs == {"holder": plain, "sender": None}
    outputs, _ = run("share", *batch)
    assert (outputs["holder"] + outputs["sender"]).tolist() == [value % 2**64 for value in plain]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_greatest_values_fit(kind: str, sign: int) -> None:
    shape = PolynomialShape(1, 4, 10, 20)
    polynomial, point = [sign * (2**20 - 1)] * 5, 2**10 - 1
    plain = evaluate(polynomial, point)
    assert shape.value_bits == abs(plain).bit_length()
    key_bits = 192  # the least of the sizes that holds 61 + 67 bits
    outputs, _ = run(kind, [point], [polynomial], shape, key_bits=key_bits)
    if kind == "value":
        assert outputs["holder"] == [plain]
    else:
        assert (outputs["holder"] + outputs["sender"]).tolist() == [plain % 2**64]


@pytest.mark.parametrize(("kind", "more"), [("value", 1), ("share", 66)])
def test_values_up_to_the_keys_limit_fit_and_one_bit_more_is_refused(kind: str, more: int) -> None:
    """A value of v bits needs v + 1 bits of a plaintext to be signed, 65 more to be masked; a key holds 511."""
    most = 511 - more
    for coefficient in (2**most - 1, 1 - 2**most):
        shape = PolynomialShape(1, 0, 1, most)
        assert shape.value_bits == most
        outputs, _ = run(kind, [1], [[coefficient]], shape)
        if kind == "value":
            assert outputs["holder"] == [coefficient]
        else:
            assert (outputs["holder"] + outputs["sender"]).tolist() == [coefficient % 2**64]
    shape, key = PolynomialShape(1, 0, 1, most + 1), short_key()
    receiver, sender = PAIRS[kind]
    for protocol in (
        receiver("sender", key, [1], shape, SeededRng(0)),
        sender("holder", key.public, [[1]], shape, SeededRng(0)),
    ):
        with pytest.raises(
            LocalProtocolError, match="needs plaintexts of 512 bits; a key of 512 bits holds 511"
        ):
            next(protocol)


@pytest.mark.parametrize("kind", PAIRS)
def test_cost_is_as_documented(kind: str) -> None:
    for count, degree in ((1, 0), (3, 4), (0, 2)):
        shape = PolynomialShape(count, degree, 8, 8)
        _, transcript = run(kind, [1] * count, [[1] * (degree + 1)] * count, shape)
        assert transcript.bytes_sent("holder") == 32 + count * degree * 128
        assert transcript.bytes_sent("sender") == count * 128
        assert transcript.rounds == (2 if count else 1)
        powers = {POWERS} if count and degree else set()
        assert set(transcript.steps) == {SHAPE_STEP} | powers | ({VALUES} if count else set())


@pytest.mark.parametrize("kind", PAIRS)
def test_golden_transcripts(kind: str, golden: Golden) -> None:
    shape = PolynomialShape(2, 3, 8, 8)
    _, transcript = run(kind, [3, -5], [[1, 2, 3, 4], [-1, 0, 7, -9]], shape, "golden")
    golden.check("polynomial", kind, transcript.digest())


@pytest.mark.some(1)
@pytest.mark.parametrize("party", ["holder", "sender"])
@pytest.mark.parametrize("coefficient", [-255, 255])
def test_each_share_is_uniform_whatever_the_input(party: str, coefficient: int) -> None:
    shape = PolynomialShape(30, 1, 8, 8)
    shares = [run("share", [200] * 30, [[coefficient] * 2] * 30, shape, seed)[0][party] for seed in range(60)]
    assert chi_square(byte_counts(np.concatenate(shares))) < BYTE_LIMIT


def test_the_receiver_sees_nothing_but_the_value() -> None:
    """Two polynomials that agree at the point: the same plaintext, under randomness that does not repeat."""
    shape, key = PolynomialShape(1, 2, 8, 8), short_key()
    seen = []
    for polynomial in ([10, 0, 0], [0, 1, 2]):  # both 10 at 2
        for seed in range(3):
            _, transcript = run("value", [2], [polynomial], shape, seed)
            (message,) = transcript.view("holder")
            seen.append(int.from_bytes(message.payload, "little"))
    assert len(set(seen)) == 6
    assert len({key.decrypt(c) for c in seen}) == 1


def test_the_senders_view_does_not_depend_on_its_polynomials() -> None:
    shape = PolynomialShape(1, 2, 8, 8)
    views = [
        [m.payload for m in run("value", [7], [p], shape)[1].view("sender")] for p in ([0, 0, 0], [1, -2, 3])
    ]
    assert views[0] == views[1]


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize(
    ("step", "culprit"), [(SHAPE_STEP, "holder"), (POWERS, "holder"), (VALUES, "sender")]
)
@pytest.mark.parametrize(
    "harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"", lambda p: bytes(len(p))]
)
def test_a_malformed_message_names_the_culprit(
    kind: str, step: str, culprit: str, harm: Callable[[bytes], bytes]
) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run(kind, [1, 2], [[1, 2, 3]] * 2, PolynomialShape(2, 2, 8, 8), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("other", [(2, 1, 8, 8), (1, 2, 8, 8), (1, 1, 9, 8), (1, 1, 8, 9)])
def test_shapes_that_differ_are_noticed(kind: str, other: tuple[int, int, int, int]) -> None:
    receiver, sender = PAIRS[kind]
    shape, key = PolynomialShape(*other), short_key()
    polynomials = [[1] * (shape.degree + 1)] * shape.count
    parties: dict[str, Any] = {
        "holder": receiver("sender", key, [1], PolynomialShape(1, 1, 8, 8), SeededRng(0)),
        "sender": sender("holder", key.public, polynomials, shape, SeededRng(0)),
    }
    with pytest.raises(RemoteProtocolError, match="parameters") as caught:
        run_local(parties)
    assert (caught.value.culprit, caught.value.step) == ("holder", SHAPE_STEP)


@pytest.mark.parametrize("kind", PAIRS)
def test_a_flipped_bit_in_the_values_is_noticed(kind: str) -> None:
    def tamper(message: Message) -> bytes:
        flipped = bytes([message.payload[0] ^ 1]) + message.payload[1:]
        return flipped if message.step == VALUES else message.payload

    with pytest.raises(RemoteProtocolError, match="plaintext out of range") as caught:
        run(kind, [1], [[1, 2, 3]], PolynomialShape(1, 2, 8, 8), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("sender", VALUES)


SHAPE = PolynomialShape(1, 2, 8, 8)


@pytest.mark.parametrize("receiver", [value_receiver, share_receiver])
@pytest.mark.parametrize(
    ("points", "match"),
    [
        ([1, 2], "1 points are prescribed, not 2"),
        ([256], "does not fit the 8 bits"),
        ([-256], "does not fit the 8 bits"),
    ],
)
def test_bad_points_are_refused(receiver: Callable[..., Any], points: list[int], match: str) -> None:
    with pytest.raises(LocalProtocolError, match=match):
        next(receiver("sender", short_key(), points, SHAPE, SeededRng(0)))


@pytest.mark.parametrize("sender", [value_sender, share_sender])
@pytest.mark.parametrize(
    ("polynomials", "match"),
    [
        ([[1, 2]], r"1 polynomials with 3 coefficients are prescribed, not 1 with \[2\]"),
        ([[1, 2, 3]] * 2, "not 2 with"),
        ([[1, 2, 256]], "does not fit the 8 bits"),
    ],
)
def test_bad_polynomials_are_refused(sender: Callable[..., Any], polynomials: Any, match: str) -> None:
    with pytest.raises(LocalProtocolError, match=match):
        next(sender("holder", short_key().public, polynomials, SHAPE, SeededRng(0)))


@pytest.mark.parametrize(("kind", "bits"), [("value", 8065), ("share", 8130)])
def test_what_overflows_the_key_is_refused_with_the_numbers(kind: str, bits: int) -> None:
    """The Taylor route on Adult: degree 400."""
    shape = PolynomialShape(1, 400, 20, 64)
    receiver, sender = PAIRS[kind]
    key = short_key(key_bits=3072)
    match = f"degree 400 with coefficients of 64 bits at points of 20 bits needs plaintexts of {bits} bits"
    with pytest.raises(LocalProtocolError, match=match):
        next(receiver("sender", key, [1], shape, SeededRng(0)))
    with pytest.raises(LocalProtocolError, match=match):
        next(sender("holder", key.public, [[1] * 401], shape, SeededRng(0)))


@pytest.mark.parametrize("sender", [value_sender, share_sender])
def test_a_key_of_another_party_is_refused(sender: Callable[..., Any]) -> None:
    with pytest.raises(LocalProtocolError, match="belongs to holder, the peer is c"):
        next(sender("c", short_key().public, [[1, 2, 3]], SHAPE, SeededRng(0)))
