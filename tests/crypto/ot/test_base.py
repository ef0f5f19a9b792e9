"""Base transfers: output, cost, hostile points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_scalar_reduce,
    crypto_scalarmult_ed25519_noclamp,
)

from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.ot.base import ChosenSeeds, SentSeeds, base_receive, base_send
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.vectors import Golden

P = 2**255 - 19
IDENTITY = (1).to_bytes(32, "little")
ORDER_TWO = (P - 1).to_bytes(32, "little")  # the point (0, −1)
BASE_POINT = bytes.fromhex("58" + "66" * 31)


def run(choice_bits: list[int], seed: object = 0, **how: object) -> tuple[SentSeeds, ChosenSeeds, Transcript]:
    outputs, transcript = run_local(
        {
            "s": base_send("s", "r", len(choice_bits), SeededRng((seed, "s"))),
            "r": base_receive("r", "s", choice_bits, SeededRng((seed, "r"))),
        },
        **how,  # type: ignore[arg-type]
    )
    return outputs["s"], outputs["r"], transcript  # type: ignore[return-value]


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(0, 1), max_size=6))
def test_the_receiver_gets_the_seed_of_its_choice(choice_bits: list[int]) -> None:
    sent, chosen, _ = run(choice_bits)
    assert chosen.seeds == tuple(pair[bit] for pair, bit in zip(sent.pairs, choice_bits, strict=True))
    seeds = [seed for pair in sent.pairs for seed in pair]
    assert len(set(seeds)) == 2 * len(choice_bits)
    assert sent.binding == chosen.binding


def test_cost_is_as_documented() -> None:
    _, _, transcript = run([0, 1, 1])
    assert transcript.steps == ("ot/base/offer", "ot/base/answer")
    assert (transcript.rounds, transcript.bytes_sent("s"), transcript.bytes_sent("r")) == (2, 32, 96)


def test_golden_transcript(golden: Golden) -> None:
    golden.check("ot", "base", run([0, 1, 1, 0], "golden")[2].digest())


def test_the_binding_is_fresh() -> None:
    assert run([0], 1)[0].binding != run([0], 2)[0].binding


def test_the_sender_sees_the_same_kind_of_points_whatever_the_choice() -> None:
    """x·G and x·G + S are both valid; which one was sent shows only to who knows x."""
    for bit in (0, 1):
        (answer,) = [m.payload for m in run([bit], "view")[2].view("s")]
        assert crypto_core_ed25519_is_valid_point(answer)
    offer = run([0], "view")[2].view("r")[0].payload
    zero, one = (run([bit], "view")[2].view("s")[0].payload for bit in (0, 1))
    assert crypto_core_ed25519_add(zero, offer) == one


def off_curve() -> bytes:
    """The least y for which (y² − 1) / (d·y² + 1) has no square root."""
    d = -121665 * pow(121666, -1, P) % P
    for y in range(2, 100):
        ratio = (y * y - 1) * pow(d * y * y + 1, -1, P) % P
        if pow(ratio, (P - 1) // 2, P) == P - 1:
            return y.to_bytes(32, "little")
    raise AssertionError


BAD_POINTS = {
    "identity": IDENTITY,
    "small order": ORDER_TWO,
    "outside the subgroup": crypto_core_ed25519_add(BASE_POINT, ORDER_TWO),
    "off the curve": off_curve(),
    "not canonical": (P + 1).to_bytes(32, "little"),
    "all zero": bytes(32),
    "all one": b"\xff" * 32,
}


@pytest.mark.parametrize("step", ["ot/base/offer", "ot/base/answer"])
@pytest.mark.parametrize("point", BAD_POINTS.values(), ids=BAD_POINTS)
def test_bad_points_are_refused(step: str, point: bytes) -> None:
    def tamper(message: Message) -> bytes:
        return point + message.payload[32:] if message.step == step else message.payload

    with pytest.raises(RemoteProtocolError, match="prime-order") as caught:
        run([0, 1], tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ({"ot/base/offer": "s"}.get(step, "r"), step)


@pytest.mark.parametrize("step", ["ot/base/offer", "ot/base/answer"])
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + p, lambda p: b""])
def test_a_wrong_length_names_the_culprit(step: str, harm: object) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload  # type: ignore[operator, no-any-return]

    with pytest.raises(RemoteProtocolError) as caught:
        run([0, 1], tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ({"ot/base/offer": "s"}.get(step, "r"), step)


def test_a_flipped_bit_is_refused_or_changes_a_seed() -> None:
    """A flipped bit that leaves a valid point cannot be told from another scalar: the seeds differ then."""

    def flip(index: int) -> Callable[[Message], bytes]:
        def tamper(message: Message) -> bytes:
            flipped = bytearray(message.payload)
            flipped[index] ^= 1
            return bytes(flipped) if message.step == "ot/base/answer" else message.payload

        return tamper

    refused = changed = 0
    for index in range(32):
        try:
            sent, chosen, _ = run([1], tamper=flip(index))
        except RemoteProtocolError:
            refused += 1
        else:
            changed += sent.pairs[0][1] != chosen.seeds[0] and sent.binding != chosen.binding
    assert refused > 0
    assert refused + changed == 32


def test_our_own_mistakes_are_refused_before_a_byte_is_sent() -> None:
    with pytest.raises(LocalProtocolError, match="-1 transfers"):
        next(base_send("s", "r", -1, SeededRng(0)))
    with pytest.raises(LocalProtocolError, match="0 or 1"):
        next(base_receive("r", "s", [0, 2], SeededRng(0)))


def test_seeds_have_no_repr() -> None:
    sent, chosen, _ = run([1])
    assert repr(sent) == "SentSeeds()"
    assert repr(chosen) == "ChosenSeeds()"


def test_seeds_are_hashed_as_documented() -> None:
    """Each with its number, so that equal answers would not give equal seeds."""
    choices = [0, 1, 1, 0]
    sent, chosen, transcript = run(choices)
    offer, answers = (transcript.messages[i].payload for i in (0, 1))
    rng = SeededRng((0, "r"))
    for i, bit in enumerate(choices):
        scalar = crypto_core_ed25519_scalar_reduce(rng.bytes(64))
        point = crypto_scalarmult_ed25519_noclamp(scalar, offer)
        answer = answers[32 * i : 32 * i + 32]
        text = b"jointcut/ot/base" + i.to_bytes(8, "little") + offer + answer + point
        assert sent.pairs[i][bit] == chosen.seeds[i] == hashlib.sha256(text).digest()[:16]
