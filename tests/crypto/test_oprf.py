"""Tags of identifiers: the definition by hand, bins, cost, what no message tells, and hashes that do not fit."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from crypto import engine, okvs, oprf
from crypto.errors import LocalProtocolError
from crypto.hashing import derive_key
from crypto.local import Transcript, run_local
from crypto.oprf import STEPS, Identifiers, Shape, Tags, oprf_receive, oprf_send
from crypto.ot import code
from crypto.ot.wide import WideReceiver, WideSender
from crypto.rounds import Rounds, abreast
from tests.support import ideal
from tests.support.rng import SeededRng
from tests.support.sessions import wide_sessions

KEY = bytes(16)


def some(start: int, stop: int) -> list[bytes]:
    return [b"id %d" % i for i in range(start, stop)]


def run(
    receivers: list[bytes], senders: list[bytes], seed: object = 0, key: bytes = KEY
) -> tuple[Tags, Tags, Transcript]:
    outputs, transcript = run_local(
        {
            "r": oprf_receive("r", "s", Identifiers(receivers, key), SeededRng((seed, "r"))),
            "s": oprf_send("s", "r", Identifiers(senders, key), len(receivers), SeededRng((seed, "s"))),
        }
    )
    return outputs["r"], outputs["s"], transcript


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> tuple[WideSender, WideReceiver]:
    """The sessions of a run, which take no base transfers."""
    sender, receiver = wide_sessions("oprf", 400)

    def given(session: WideSender | WideReceiver) -> Rounds[WideSender | WideReceiver]:
        return session
        yield

    monkeypatch.setattr(oprf, "setup_wide_sender", lambda *_: given(sender))
    monkeypatch.setattr(oprf, "setup_wide_receiver", lambda *_: given(receiver))
    return sender, receiver


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("size", [1, 2, 30, 200])
def test_both_have_the_same_tags_of_the_same_identifiers_and_no_others(size: int) -> None:
    ours, theirs = some(0, size), some(size // 2, size // 2 + 77)
    received, sent, _ = run(ours, theirs)
    tags = {identifier: tuple(tag) for identifier, tag in zip(theirs, sent.tolist(), strict=True)}
    assert len(set(tags.values())) == len(theirs)
    for identifier, tag in zip(ours, received.tolist(), strict=True):
        assert (tags.get(identifier) == tuple(tag)) == (identifier in tags)
    assert not set(map(tuple, received[: size // 2].tolist())) & set(tags.values())


def test_a_tag_is_what_is_said(
    known: tuple[WideSender, WideReceiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand from the sender's rows: the bytes of the hash, the rows they select, the word, and the hash of all."""
    sender, _ = known
    rows: list[np.ndarray] = []
    extend = sender.extend
    monkeypatch.setattr(sender, "extend", lambda *given: rows.append(extend(*given)) or rows[0])
    _, tags, _ = run(some(0, 20), some(15, 40))
    third = -(-13 * 20 // 30) + 8
    table = [int.from_bytes(row.tobytes(), "little") for row in rows[0]]
    assert len(table) == 3 * third + 40
    words = [int.from_bytes(row.tobytes(), "little") for row in code.generator()]
    for identifier, tag in zip(some(15, 40), tags, strict=True):
        hashed = hashlib.blake2b(KEY + identifier, digest_size=32).digest()
        number = int.from_bytes(hashed, "little")
        total = 0
        for i in range(3):
            total ^= table[i * third + ((number >> 32 * (i + 1) & 0xFFFFFFFF) * third >> 32)]
        for i in range(40):
            total ^= table[3 * third + i] * (number >> 216 + i & 1)
        word = 0
        for i in range(76):
            word ^= words[i] * (number >> 128 + i & 1)
        total ^= word & int.from_bytes(sender.delta.tobytes(), "little")
        text = derive_key(sender.session_key, b"oprf/tag") + hashed + total.to_bytes(64, "little")
        assert hashlib.blake2b(text, digest_size=16).digest() == tag.tobytes()


@pytest.mark.parametrize("piece", [7, 1 << 15])
def test_identifiers_of_every_length_are_hashed_behind_the_key(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oprf, "_PIECE", piece)
    text = SeededRng("lengths").bytes(400)
    ids = [text[i % 97 :][: i * 8 % 301] for i in range(602)]
    assert set(map(len, ids)) == set(range(301))
    key = SeededRng("key").bytes(16)
    for identifier, words in zip(ids, Identifiers(ids, key).hashed.words, strict=True):
        assert hashlib.blake2b(key + identifier, digest_size=32).digest() == words.tobytes()


def test_without_identifiers_there_are_no_hashes() -> None:
    assert oprf._hash_ids([], KEY).words.shape == (0, 4)


def test_digests_count_as_work_for_which_compiling_pays() -> None:
    """Of hashes and of tags."""
    heard: list[str] = []
    engine.after(10, lambda: heard.append("enough"))
    Identifiers(some(0, 19), KEY)
    oprf._Tagging(KEY, 23)
    assert heard == []
    oprf._Tagging(KEY, 4)
    assert heard == ["enough"]


@pytest.mark.usefixtures("known")
def test_bins_change_no_tag_between_the_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oprf, "BIN", 40)
    monkeypatch.setattr(oprf, "_PIECE", 7)
    received, sent, transcript = run(some(0, 100), some(60, 300))
    assert np.array_equal(received[60:], sent[:40])
    tables = [m.payload for m in transcript.messages if m.step == "oprf/table"]
    assert len(tables) == Shape.of(100).bins == 3


def test_sessions_abreast_share_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table a bin, whatever the number of functions read; the tags of each function are its own."""
    monkeypatch.setattr(oprf, "BIN", 40)
    made: list[int] = []
    encode = okvs.encode
    monkeypatch.setattr(okvs, "encode", lambda keys, values: made.append(len(keys)) or encode(keys, values))
    own, others = Identifiers(some(0, 100), KEY), Identifiers(some(60, 120), KEY)
    senders = ("a", "b", "c")
    reading = abreast(STEPS, [oprf_receive("r", peer, own, SeededRng(peer)) for peer in senders])
    sending = {peer: oprf_send(peer, "r", others, 100, SeededRng((peer, 1))) for peer in senders}
    parties: dict[str, Rounds[Any]] = {"r": reading, **sending}
    outputs, _ = run_local(parties)
    for peer, read in zip(senders, outputs["r"], strict=True):
        assert np.array_equal(read[60:], outputs[peer][:40])
    assert len({tuple(tag) for read in outputs["r"] for tag in read.tolist()}) == 300
    assert len(made) == Shape.of(100).bins == 3
    assert repr(own) == "Identifiers(<secret>)"


@pytest.mark.usefixtures("known")
def test_no_length_says_how_many_identifiers_a_bin_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oprf, "BIN", 40)
    lengths = {tuple(len(m.payload) for m in run(some(i, i + 100), some(0, 1))[2].messages) for i in range(2)}
    assert len(lengths) == 1
    assert len(set(*lengths)) == 1


def test_tags_differ_from_run_to_run_and_key_to_key() -> None:
    runs = [
        run(some(0, 9), some(0, 9)),
        run(some(0, 9), some(0, 9), seed=1),
        run(some(0, 9), some(0, 9), key=b"x"),
    ]
    tags = [set(map(tuple, sent.tolist())) for _, sent, _ in runs]
    assert len(set.union(*tags)) == 27


def test_cost_is_as_documented() -> None:
    _, _, transcript = run(some(0, 100), some(0, 3))
    rows = 3 * (-(-13 * 100 // 30)) + 64
    words = -(-rows // 64) + 4
    assert transcript.rounds == 4
    assert transcript.bytes_sent("s") == 6_792
    assert transcript.bytes_sent("r") == 4096 + 4096 * (words + words % 2) + 2464


@pytest.mark.parametrize("count", [2**15 + 1, 2**16, 10**6, 2**25])
def test_a_bin_overflows_with_probability_below_two_to_the_minus_42_in_all(count: int) -> None:
    """By Chernoff's bound in fractions, which is below Bernstein's: (n/c · p)^c · (n/(n−c) · (1−p))^(n−c)."""
    shape = Shape.of(count)
    c, p = shape.capacity + 1, 1 / shape.bins
    log = c * np.log2(count * p / c) + (count - c) * np.log2(count * (1 - p) / (count - c))
    assert log + np.log2(shape.bins) < -42
    assert shape.capacity < 1.08 * count / shape.bins


def test_a_small_bin_overflows_as_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole binomial law."""
    monkeypatch.setattr(oprf, "BIN", 40)
    shape, p = Shape.of(300), Fraction(1, 8)
    assert shape.bins == 8
    tail = sum(comb(300, k) * p**k * (1 - p) ** (300 - k) for k in range(shape.capacity + 1, 301))
    assert shape.bins * tail < Fraction(1, 2**42)


def test_up_to_a_bin_nothing_can_overflow() -> None:
    assert Shape.of(2**15) == Shape(1, 2**15)
    assert Shape.of(1) == Shape(1, 1)


@pytest.mark.usefixtures("known")
def test_hashes_that_do_not_fit_end_the_run_before_a_table_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(okvs, "encode", lambda *_: None)
        with pytest.raises(LocalProtocolError, match="do not fit") as caught:
            next(oprf_receive("r", "s", Identifiers([b"secret"], KEY), SeededRng(0)))
        assert "secret" not in str(caught.value)
    monkeypatch.setattr(Shape, "of", lambda count: Shape(1, count - 1))
    with pytest.raises(LocalProtocolError, match="do not fit"):
        next(oprf_receive("r", "s", Identifiers(some(0, 9), KEY), SeededRng(0)))


def test_the_ideal_twin_has_the_same_functionality() -> None:
    outputs, _ = run_local(
        {
            "r": ideal.oprf_receive("r", "s", Identifiers(some(0, 9), KEY), SeededRng("r")),
            "s": ideal.oprf_send("s", "r", Identifiers(some(5, 19), KEY), 9, SeededRng("s")),
        }
    )
    assert np.array_equal(outputs["r"][5:], outputs["s"][:4])
    assert len({tuple(tag) for tags in outputs.values() for tag in tags.tolist()}) == 19
