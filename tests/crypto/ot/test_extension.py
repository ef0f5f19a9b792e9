"""Extended transfers: output of every kind, an implementation from the paper, cost, views, hostile input."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import hashing
from crypto.blocks import Blocks, bits_of, pack_bits, random_blocks
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.hashing import derive_key
from crypto.local import Message, run_local
from crypto.ot import base, consistency, extension, punctured
from crypto.ot.extension import Bits, OtReceiver, OtSender
from crypto.ot.punctured import BITS, GROUPS
from crypto.rounds import Rounds
from tests.support import ideal
from tests.support.examples import examples
from tests.support.group import INTEGERS
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, transfer_bytes
from tests.support.sessions import ot_sessions as sessions
from tests.support.slow_hash import tmmo
from tests.support.statistics import BYTE_LIMIT, byte_statistic
from tests.support.vectors import Golden

KINDS = ("correlated", "random", "chosen")


def coins(count: int, seed: object = 0) -> Bits:
    return np.frombuffer(SeededRng((seed, "choices")).bytes(count), dtype=np.uint8) & 1


def message_pairs(count: int) -> tuple[Blocks, Blocks]:
    zero, one = random_blocks(SeededRng("pairs"), 2 * count).reshape(2, count, 2)
    return zero, one


def generators(
    kind: str, sender: OtSender, receiver: OtReceiver, choice_bits: Bits
) -> dict[str, Rounds[object]]:
    argument = message_pairs(len(choice_bits)) if kind == "chosen" else len(choice_bits)
    return {
        "s": getattr(extension, f"{kind}_send")(sender, argument),
        "r": getattr(extension, f"{kind}_receive")(receiver, choice_bits),
    }


def check(kind: str, delta: np.ndarray, sent: object, received: Blocks, choice_bits: Bits) -> None:
    """Compare what the receiver holds with the functionality."""
    if kind == "correlated":
        pairs = (sent, sent ^ delta)  # type: ignore[operator]
    else:
        pairs = message_pairs(len(choice_bits)) if kind == "chosen" else sent  # type: ignore[assignment]
    expected = np.where(choice_bits[:, None] == 1, pairs[1], pairs[0])
    assert received.shape == (len(choice_bits), 2)
    assert np.array_equal(received, expected)


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 1000])
def test_any_mixture_of_kinds_in_one_session(count: int) -> None:
    sender, receiver = sessions(count)
    for kind in (*KINDS, *reversed(KINDS)):
        choice_bits = coins(count, kind)
        outputs, _ = run_local(generators(kind, sender, receiver, choice_bits))
        check(kind, sender.delta, outputs["s"], outputs["r"], choice_bits)
    assert sender.position == receiver.position


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 1), max_size=130)), max_size=4))
def test_calls_in_a_row(calls: list[tuple[str, list[int]]]) -> None:
    sender, receiver = sessions()
    for kind, bits in calls:
        choice_bits = np.array(bits, dtype=np.uint8)
        outputs, _ = run_local(generators(kind, sender, receiver, choice_bits))
        check(kind, sender.delta, outputs["s"], outputs["r"], choice_bits)


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_one_window_of_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension, "CHUNK", 64)
    count = 64 * (2 * extension.WINDOW + 1) + 3
    sender, receiver = sessions()
    choice_bits = coins(count)
    outputs, transcript = run_local(generators(kind, sender, receiver, choice_bits))
    check(kind, sender.delta, outputs["s"], outputs["r"], choice_bits)
    assert transcript.bytes_sent("r") == 24 + (count // 64 + 1) * transfer_bytes(64)
    assert transcript.rounds == (6 if kind == "chosen" else 1)
    assert max(len(m.payload) for m in transcript.messages) <= 32 * 64


def test_with_real_base_transfers() -> None:
    outputs, transcript = run_local(
        {
            "s": extension.setup_sender("s", "r", SeededRng("s")),
            "r": extension.setup_receiver("r", "s", SeededRng("r")),
        }
    )
    sender, receiver = outputs["s"], outputs["r"]
    assert (transcript.rounds, transcript.bytes_sent("s"), transcript.bytes_sent("r")) == (2, 4096, 32)
    assert sender.session_key == receiver.session_key
    choice_bits = coins(100)
    results, _ = run_local(generators("correlated", sender, receiver, choice_bits))
    check("correlated", sender.delta, results["s"], results["r"], choice_bits)


def test_the_offset_has_127_uniform_bits_and_its_lowest_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 24 sessions; point-and-permute needs the one, everything else the others. The group has no say in it."""
    for name, operation in INTEGERS.items():
        monkeypatch.setattr(base, name, operation)
    deltas = []
    for seed in range(24):
        sessions_, _ = run_local(
            {
                "s": extension.setup_sender("s", "r", SeededRng((seed, "s"))),
                "r": extension.setup_receiver("r", "s", SeededRng((seed, "r"))),
            }
        )
        assert isinstance(sessions_["s"], OtSender)
        deltas.append(bits_of(sessions_["s"].delta))
    ones = np.sum(deltas, axis=0)
    assert ones[0] == 24
    assert 0 < ones[1:].min() <= ones[1:].max() < 24  # 127 bits, each either way but for 2**-16


@pytest.mark.parametrize(
    ("kind", "rounds", "from_sender"), [("correlated", 1, 0), ("random", 1, 0), ("chosen", 2, 32 * 65)]
)
def test_cost_is_as_documented(kind: str, rounds: int, from_sender: int) -> None:
    _, transcript = run_local(generators(kind, *sessions(), coins(65)))
    assert transcript.rounds == rounds
    assert transcript.bytes_sent("r") == 24 + transfer_bytes(65)
    assert transcript.bytes_sent("s") == from_sender
    _, empty = run_local(generators(kind, *sessions(), coins(0)))
    assert (empty.rounds, empty.bytes_sent()) == (1, 24)


def test_a_session_for_the_other_direction() -> None:
    """Its transfers are right, its offset's lowest bit is 0, and it costs 128 random transfers and no base ones."""
    sender, receiver = sessions()
    ends, transcript = run_local(
        {
            "r": extension.reverse_sender(receiver, SeededRng("reverse")),
            "s": extension.reverse_receiver(sender),
        }
    )
    assert (transcript.rounds, transcript.bytes_sent("s")) == (1, 0)
    assert transcript.bytes_sent("r") == 24 + transfer_bytes(128)
    reverse, back = ends["r"], ends["s"]
    assert isinstance(reverse, OtSender)
    assert isinstance(back, extension.OtReceiver)
    assert bits_of(reverse.delta)[0] == 0
    assert 40 < bits_of(reverse.delta).sum() < 88
    assert reverse.session_key == back.session_key != sender.session_key
    choice_bits = coins(130)
    results, _ = run_local(
        {"r": extension.correlated_send(reverse, 130), "s": extension.correlated_receive(back, choice_bits)}
    )
    check("correlated", reverse.delta, results["r"], results["s"], choice_bits)


def test_golden_transcripts(golden: Golden) -> None:
    for kind in KINDS:
        _, transcript = run_local(generators(kind, *sessions("golden"), coins(70, "golden")))
        golden.check("ot", kind, transcript.digest())


# --- an implementation from the paper, one bit at a time -------------------------------------------------


def keystream(seed: bytes, skip: int, n_bits: int) -> list[int]:
    """Bits of AES-128-CTR under the seed."""
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor().update(bytes(skip + n_bits // 8))
    return [stream[skip + i // 8] >> (i % 8) & 1 for i in range(n_bits)]


class Slow:
    """Roy 2022, the extension over groups of columns: a number of BITS bits for each group and transfer."""

    def __init__(self, leaves: list[list[bytes]], delta: list[int]) -> None:
        """leaves: by group and number. delta: the number of the leaf that the sender lacks, by group."""
        self.leaves, self.delta, self.used = leaves, delta, 0

    def run(self, r: list[int], coins: list[int]) -> tuple[list[int], list[list[int]], list[int]]:
        """Return t_1..t_m, the rows that the receiver sends, and q_1..q_m; ``coins`` fill the rows."""
        m = -(-len(r) // 64) * 64 + len(coins)
        padded = r + [0] * (m - len(r) - len(coins)) + coins
        t, sent, q = [0] * len(r), [], [0] * len(r)
        for group, (seeds, delta) in enumerate(zip(self.leaves, self.delta, strict=True)):
            streams = [keystream(seed, self.used, m) for seed in seeds]
            u = [sum(bits) % 2 for bits in zip(*streams, strict=True)]
            sent.append([a ^ b for a, b in zip(u, padded, strict=True)])
            for j in range(len(r)):
                # v = Σ x·r_x, w = Σ (x ⊕ Δ)·r_x without the missing x = Δ, and then w ⊕ Δ·c
                v = w = 0
                for number, stream in enumerate(streams):
                    v ^= number * stream[j]
                    w ^= (number ^ delta) * stream[j] if number != delta else 0
                t[j] |= spread(v, group)
                q[j] |= spread(w ^ delta * sent[-1][j], group)
        self.used += m // 8
        return t, sent, q


def spread(number: int, group: int) -> int:
    """Return the bits of a group's number at their columns."""
    return sum((number >> b & 1) << (b * GROUPS + group) for b in range(BITS))


def as_integers(blocks: Blocks) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in blocks.tolist()]


def the_receivers_coins(seeds: list[bytes], skip: int, payload: bytes, count: int) -> list[int]:
    """Return the coins behind the choices, read off the first group with all of its seeds."""
    n_bits = len(payload[:-48]) // GROUPS * 8
    sent = np.unpackbits(np.frombuffer(payload[: n_bits // 8], np.uint8), bitorder="little").tolist()
    streams = [keystream(seed, skip, n_bits) for seed in seeds]
    choices = [sum(bits) % 2 for bits in zip(sent, *streams, strict=True)]
    return choices[-(-count // 64) * 64 :]


@pytest.mark.parametrize("counts", [[1], [64, 3], [100, 130, 7]])
def test_softspoken_follows_the_paper(counts: list[int]) -> None:
    rng = SeededRng("paper")
    zero, one = random_blocks(rng, 2 * 128).reshape(128, 2, 2).swapaxes(0, 1)
    delta = random_blocks(rng, 1)[0]
    bits = bits_of(delta)
    leaves, _ = punctured.grow((zero, one), bytes(16))
    numbers = [sum(int(bits[b * GROUPS + group]) << b for b in range(BITS)) for group in range(GROUPS)]
    slow = Slow([[seed.tobytes() for seed in leaves[:, group]] for group in range(GROUPS)], numbers)
    receiver = OtReceiver("s", (zero, one), bytes(16))
    sender = OtSender("r", delta, np.where(bits[:, np.newaxis] == 1, one, zero), bytes(16))
    sender.open(receiver.opening(), "step")
    for count in counts:
        r = coins(count, count)
        payload, t = receiver.extend(pack_bits(r), count)
        coins_ = the_receivers_coins(slow.leaves[0], slow.used, payload, count)
        expected_t, expected_sent, expected_q = slow.run(r.tolist(), coins_)
        rows = b"".join(np.packbits(row, bitorder="little").tobytes() for row in expected_sent)
        assert payload[:-48] == rows
        assert as_integers(t) == expected_t
        assert as_integers(sender.extend(payload, count, "step")) == expected_q
        offset = int(delta[0]) | int(delta[1]) << 64
        assert expected_q == [x ^ (b * offset) for x, b in zip(expected_t, r.tolist(), strict=True)]


def first_ends(seed: object = "first") -> tuple[OtSender, OtReceiver]:
    """A session without trees at the sender."""
    rng = SeededRng(seed)
    zero, one = random_blocks(rng, 2 * 128).reshape(128, 2, 2).swapaxes(0, 1)
    delta = random_blocks(rng, 1)[0]
    chosen = np.where(bits_of(delta)[:, np.newaxis] == 1, one, zero)
    return OtSender("r", delta, chosen, bytes(16)), OtReceiver("s", (zero, one), bytes(16))


def first_messages() -> tuple[OtSender, OtReceiver, bytes, Blocks]:
    """A session without trees at the sender, and the receiver's first message."""
    sender, receiver = first_ends()
    payload, t = receiver.extend(pack_bits(coins(70)), 70)
    return sender, receiver, payload, t


def test_the_first_message_brings_the_trees() -> None:
    sender, receiver, payload, t = first_messages()
    assert len(payload) == OPENING_BYTES + transfer_bytes(70)
    check("correlated", sender.delta, sender.extend(payload, 70, "step"), t, coins(70))
    assert receiver.opening() == b""
    payload, t = receiver.extend(pack_bits(coins(70)), 70)
    assert len(payload) == transfer_bytes(70)
    check("correlated", sender.delta, sender.extend(payload, 70, "step"), t, coins(70))


def test_no_transfer_without_the_trees() -> None:
    """Neither left out, nor cut, nor changed; and a session that refused them makes no transfer."""
    for harm in (
        lambda p: p[OPENING_BYTES:],
        lambda p: p[:OPENING_BYTES],
        lambda p: p[:-1],
        lambda p: p[: OPENING_BYTES - 1] + bytes([p[OPENING_BYTES - 1] ^ 1]) + p[OPENING_BYTES:],
    ):
        sender, _, payload, _ = first_messages()
        for _ in range(2):
            with pytest.raises(RemoteProtocolError) as caught:
                sender.extend(harm(payload), 70, "step")
            assert (caught.value.culprit, caught.value.step) == ("r", "step")
        with pytest.raises(RemoteProtocolError, match="bytes"):
            sender.extend(payload[OPENING_BYTES:], 70, "step")
        assert sender.position == 0


@pytest.mark.parametrize("messages", [1, 2])
def test_every_challenge_is_of_the_trees_too(messages: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that made its trees after a later message could fit the streams to the challenge of this message."""
    seen = []
    plain = consistency.AESGCM
    monkeypatch.setattr(consistency, "AESGCM", lambda key: seen.append(key) or plain(key))
    for seed in (0, 1):
        sender, receiver = first_ends(seed)
        for number in range(messages):
            payload, _ = receiver.extend(pack_bits(coins(70)), 70)
            if number == messages - 1:
                payload = payload[: -transfer_bytes(70)] + bytes(transfer_bytes(70))
            with contextlib.suppress(RemoteProtocolError):
                sender.extend(payload, 70, "step")
        assert sender.position == 4 * (messages - 1)
    first, second = seen[2 * messages - 1 :: 2 * messages]
    assert first != second


@pytest.mark.parametrize("side", [0, 1])
def test_a_changed_sum_of_a_tree_is_refused_even_if_it_is_not_used(side: int) -> None:
    sender, _, payload, _ = first_messages()
    place = 16 * GROUPS * side
    with pytest.raises(RemoteProtocolError):
        sender.extend(payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :], 70, "step")


def test_random_messages_are_hashes_of_the_correlated_ones() -> None:
    choice_bits = coins(5)
    correlated, _ = run_local(generators("correlated", *sessions(), choice_bits))
    sender, receiver = sessions()
    outputs, _ = run_local(generators("random", sender, receiver, choice_bits))
    key = derive_key(sender.session_key, b"ot/messages", 0)
    offset = as_integers(sender.delta.reshape(1, 2))[0]
    for position in (0, 1):
        expected = [tmmo(key, q ^ position * offset, j) for j, q in enumerate(as_integers(correlated["s"]))]
        assert as_integers(outputs["s"][position]) == expected


# --- secrecy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_sender_sees_is_uniform_whatever_the_choices(kind: str) -> None:
    for choice in (0, 1):
        choice_bits = np.full(640, choice, dtype=np.uint8)
        _, transcript = run_local(generators(kind, *sessions("uniform"), choice_bits))
        seen = b"".join(m.payload for m in transcript.view("s") if m.step == "ot/extend")
        assert byte_statistic(seen) < BYTE_LIMIT


def test_what_the_receiver_sees_does_not_depend_on_the_message_it_did_not_choose() -> None:
    """Fixed coins: changing the other messages changes only the part that their masks hide."""
    choice_bits = np.zeros(64, dtype=np.uint8)
    views = []
    for filling in (0, 1):
        sender, receiver = sessions()
        zero, one = message_pairs(64)
        one = np.full_like(one, filling)
        _, transcript = run_local(
            {
                "s": extension.chosen_send(sender, (zero, one)),
                "r": extension.chosen_receive(receiver, choice_bits),
            }
        )
        (payload,) = [m.payload for m in transcript.view("r")]
        views.append(payload)
        assert byte_statistic(payload[1024:] + payload[:1024]) < BYTE_LIMIT
    assert views[0][:1024] == views[1][:1024]


def test_masks_of_two_calls_differ() -> None:
    """The same transfers twice in one session: nothing on the wire repeats."""
    sender, receiver = sessions()
    seen = []
    for _ in range(2):
        _, transcript = run_local(generators("chosen", sender, receiver, coins(64)))
        seen += [m.payload[i : i + 16] for m in transcript.messages[1:] for i in range(0, len(m.payload), 16)]
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("kind", ["random", "chosen"])
def test_every_call_hashes_under_a_key_of_its_own(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    plain = hashing.fixed_key_aes
    monkeypatch.setattr(hashing, "fixed_key_aes", lambda key: keys.append(key) or plain(key))
    for seed in (1, 2):
        pair = sessions(seed)
        for count in (1, 64, 1):
            run_local(generators(kind, *pair, coins(count)))
    assert len(keys) == 12
    assert sorted(keys.count(key) for key in set(keys)) == [2] * 6  # the same on both sides


def test_delta_stays_with_the_sender() -> None:
    sender, receiver = sessions()
    _, transcript = run_local(generators("chosen", sender, receiver, coins(500)))
    view = b"".join(m.payload for m in transcript.view("r"))
    assert sender.delta.tobytes() not in view
    blocks = np.frombuffer(view, dtype=np.uint64).reshape(-1, 2)
    assert not (blocks[:500] ^ blocks[500:] == sender.delta).all(axis=1).any()


def test_sessions_have_no_repr() -> None:
    sender, receiver = sessions()
    assert repr(sender) == "OtSender(peer='r', <secret>)"
    assert repr(receiver) == "OtReceiver(peer='s', <secret>)"


# --- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("step", "culprit"), [("ot/begin", "r"), ("ot/extend", "r"), ("ot/messages", "s")])
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_a_wrong_length_names_the_culprit(
    kind: str, step: str, culprit: str, harm: Callable[[bytes], bytes]
) -> None:
    if step == "ot/messages" and kind != "chosen":
        return  # that kind has no such step

    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run_local(generators(kind, *sessions(), coins(70)), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("byte", [0, 8, 16, 23])
def test_a_flipped_bit_in_the_header_is_refused(byte: int) -> None:
    def tamper(message: Message) -> bytes:
        flipped = bytearray(message.payload)
        flipped[byte] ^= 4
        return bytes(flipped) if message.step == "ot/begin" else message.payload

    with pytest.raises(RemoteProtocolError, match="kind, position and count") as caught:
        run_local(generators("random", *sessions(), coins(70)), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("r", "ot/begin")


def test_sides_that_disagree_are_told_apart() -> None:
    sender, receiver = sessions()
    other_count = {
        "s": extension.random_send(sender, 4),
        "r": extension.random_receive(receiver, coins(5)),
    }
    other_kind = {
        "s": extension.random_send(sender, 4),
        "r": extension.correlated_receive(receiver, coins(4)),
    }
    for generators_ in (other_count, other_kind):
        with pytest.raises(RemoteProtocolError, match="kind, position and count"):
            run_local(generators_)
    payload, _ = receiver.extend(pack_bits(coins(1)), 1)
    run_ahead, _ = sessions()
    run_ahead.extend(payload, 1, "step")
    for ends in ((run_ahead, sessions()[1]), (sender, receiver)):
        with pytest.raises(RemoteProtocolError, match="kind, position and count"):
            run_local(generators("random", *ends, coins(4)))


def test_our_own_mistakes_are_refused_before_a_byte_is_sent() -> None:
    sender, receiver = sessions()
    bad: list[Rounds[object]] = [
        extension.correlated_send(sender, -1),
        extension.random_send(sender, -1),
        extension.chosen_send(sender, (np.zeros((2, 2), np.uint64), np.zeros((3, 2), np.uint64))),
        extension.chosen_send(sender, (np.zeros(2, np.uint64), np.zeros(2, np.uint64))),
        extension.correlated_receive(receiver, np.array([0, 2], dtype=np.uint8)),
        extension.random_receive(receiver, np.zeros((2, 2), dtype=np.uint8)),
        extension.chosen_receive(receiver, np.array([0, 1])),  # type: ignore[arg-type]
    ]
    for generator in bad:
        with pytest.raises(LocalProtocolError):
            next(generator)


@pytest.mark.parametrize("kind", KINDS)
def test_the_ideal_twin_has_the_same_functionality(kind: str) -> None:
    sessions_, _ = run_local(
        {
            "s": ideal.setup_sender("s", "r", SeededRng(1)),
            "r": ideal.setup_receiver("r", "s", SeededRng(2)),
        }
    )
    choice_bits = coins(9)
    argument = message_pairs(9) if kind == "chosen" else 9
    outputs, _ = run_local(
        {
            "s": getattr(ideal, f"{kind}_send")(sessions_["s"], argument),
            "r": getattr(ideal, f"{kind}_receive")(sessions_["r"], choice_bits),
        }
    )
    check(kind, sessions_["s"].delta, outputs["s"], outputs["r"], choice_bits)
