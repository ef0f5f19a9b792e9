"""Intersection of three sets and more: pieces, hostile messages, and what collector and coalitions see.

Most tests run over the ideal twin of the pseudo-random functions; test_intersection.py has the real functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crypto import intersection, okvs, oprf, several_sets
from crypto.encoding import decode_words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message
from crypto.oprf import Identifiers, Shape
from crypto.rounds import Rounds
from crypto.tags import Tags
from tests.support import ideal
from tests.support.examples import examples
from tests.support.intersections import (
    AGREE,
    COMMON,
    SHARES,
    SIZE,
    TABLE,
    Sets,
    changing,
    common_ids,
    flipped,
    named,
    run,
)
from tests.support.statistics import BYTE_LIMIT, byte_statistic

identifiers = st.binary(max_size=3)


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("oprf_receive", "oprf_send", "oprf_first", "oprf_second"):
        monkeypatch.setattr(several_sets, name, getattr(ideal, name))
    monkeypatch.setattr(several_sets, "STEPS", ("ideal/oprf",))


@pytest.mark.usefixtures("twin")
@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), n=st.integers(3, 6))
def test_the_common_identifiers_of_several(data: st.DataObject, n: int) -> None:
    pool = data.draw(st.lists(identifiers, unique=True, min_size=1, max_size=12))
    sets = {f"p{i}": data.draw(st.lists(st.sampled_from(pool), unique=True, min_size=1)) for i in range(n)}
    outputs, _ = run(sets, collector=data.draw(st.sampled_from(list(sets))))
    assert sorted(common_ids(sets, outputs)) == sorted(set.intersection(*map(set, sets.values())))


@pytest.mark.usefixtures("twin")
def test_the_common_order_is_drawn_by_the_collector() -> None:
    """Of four common identifiers every order appears, whatever the order of the lists."""
    sets = named("abcd", "dcba", "bdac")
    seen = {tuple(common_ids(sets, run(sets, seed=seed)[0])) for seed in range(12)}
    assert len(seen) > 6


@pytest.mark.usefixtures("twin")
def test_large_sets_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_sets, "PIECE", 3)
    sets = named("abcdefghijk", "zyxkjih", "kjihgfw")
    outputs, transcript = run(sets)
    assert sorted(common_ids(sets, outputs)) == [b"h", b"i", b"j", b"k"]
    assert [len(m.payload) for m in transcript.view("p1") if m.step == COMMON] == [8, 48, 16]


def test_several_bins_of_different_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oprf, "BIN", 4)
    sets = named("abcdefghijklm", "mlkxy", "zlmkabcdefghwxyv")
    outputs, transcript = run(sets, collector="p1")
    assert sorted(common_ids(sets, outputs)) == [b"k", b"l", b"m"]
    shares = [m.sender for m in transcript.messages if m.step == SHARES]
    assert {me: shares.count(me) for me in sets} == {"p0": 4, "p1": 0, "p2": 4}


# ---- what is seen


def shares_read(
    sets: Sets, monkeypatch: pytest.MonkeyPatch, seed: object = 0
) -> dict[str, dict[bytes, Tags]]:
    """Return, by party, the shares that the collector p0 reads for each of its identifiers, and the masks used."""
    masks: dict[str, Tags] = {}
    real = several_sets.oprf_receive

    def noted(me: str, peer: str, *rest: Any) -> Rounds[Tags]:
        tags = yield from real(me, peer, *rest)
        if me == "p0":
            masks[peer] = tags
        return tags

    monkeypatch.setattr(several_sets, "oprf_receive", noted)
    _, transcript = run(sets, seed=seed)
    monkeypatch.setattr(several_sets, "oprf_receive", real)
    read = {}
    for peer, tags in masks.items():
        (payload,) = [m.payload for m in transcript.view("p0") if (m.sender, m.step) == (peer, SHARES)]
        shape = Shape.of(len(sets[peer]))
        table = decode_words(payload, 2 * shape.rows, peer, SHARES).reshape(-1, 2)
        found = okvs.decode(table, several_sets._hashed(tags).keys(shape)) ^ tags
        read[peer] = dict(zip(sets["p0"], found, strict=True))
    return read


@pytest.mark.usefixtures("twin")
def test_shares_add_up_to_zero_for_common_identifiers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identifiers of all, of two and of one party: no sum over some parties tells one from the other."""
    sets = named("abcdefgh", "abcdxyz", "abefxz", "aceg")
    for seed in range(4):
        read = shares_read(sets, monkeypatch, seed)
        for identifier in sets["p0"]:
            for size in (1, 2, 3):
                for some in itertools.combinations(read, size):
                    total = np.bitwise_xor.reduce([read[peer][identifier] for peer in some])
                    assert (not total.any()) == (identifier == b"a" and size == 3)


@pytest.mark.usefixtures("twin")
def test_a_share_is_uniform_whoever_has_the_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector cannot tell an identifier of a partial intersection from one that no other party has."""
    letters = "abcdefghijklmnop"
    sets = named(letters, letters[:8] + "zyxwvuts", letters[4:12])
    groups: dict[str, list[bytes]] = {}
    for seed in range(30):
        for peer, shares in shares_read(sets, monkeypatch, seed).items():
            for identifier, share in shares.items():
                both = identifier in sets["p1"] and identifier in sets["p2"]
                kind = "common" if both else "one" if identifier in sets[peer] else "none"
                if kind != "common" or peer == "p1":  # of three parties both shares of these are equal
                    groups.setdefault(kind, []).append(share.tobytes())
    for kind, seen in groups.items():
        assert byte_statistic(b"".join(seen)) < BYTE_LIMIT, kind


@pytest.mark.usefixtures("twin")
def test_a_coalition_of_collector_and_party_knows_no_secret_outside_its_sets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """p0 and p2 together evaluate all they can at identifiers of p0 and p1 that p2 does not have.

    p2 knows its own function everywhere. With shares from one function of each pair, or from seeds, this would tell
    the coalition which identifiers p1 has.
    """
    sets = named("abcd", "abcx", "ayz")
    anywhere: dict[str, dict[bytes, Tags]] = {}
    real = several_sets.oprf_second
    more = [*sets["p2"], *(each for each in sets["p0"] if each not in sets["p2"])]
    hashed: list[Identifiers] = []

    def noted(ids: Sequence[bytes], key: bytes) -> Identifiers:
        hashed[:] = [Identifiers(more, key)]
        return Identifiers(ids, key)

    def everywhere(me: str, peer: str, own: Identifiers, *rest: Any) -> Rounds[list[Tags]]:
        """As an honest party, and note our function at the identifiers of the coalition, too."""
        assert me == "p2"
        given, taken = yield from real(me, peer, hashed[0], *rest)
        anywhere[peer] = dict(zip(more, given, strict=True))
        return [given[: len(own)], taken[: len(own)]]

    monkeypatch.setattr(intersection, "Identifiers", noted)
    monkeypatch.setattr(several_sets, "oprf_second", everywhere)
    read = shares_read(sets, monkeypatch)
    for identifier in (b"b", b"c", b"d"):
        known = anywhere["p1"][identifier]
        assert (read["p1"][identifier] ^ known).any()
        assert (read["p1"][identifier] ^ read["p2"][identifier] ^ known).any()


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("members", ["abcdefgh", "stuvwxyz"])
def test_tables_are_uniform_whatever_the_identifiers(members: str) -> None:
    """No row is left empty."""
    seen = b"".join(
        m.payload
        for seed in range(20)
        for m in run(named("st", members, "ab"), seed=(members, seed))[1].view("p0")
        if m.step == SHARES
    )
    assert byte_statistic(seen) < BYTE_LIMIT


@pytest.mark.usefixtures("twin")
def test_nobody_beside_the_collector_sees_anything_of_a_table_of_shares() -> None:
    _, transcript = run(named("abc", "bcd", "cde", "cxy"), collector="p2")
    assert {m.recipient for m in transcript.messages if m.step == SHARES} == {"p2"}
    assert {m.sender for m in transcript.messages if m.step == COMMON} == {"p2"}


# ---- hostile messages


@pytest.mark.parametrize("culprit", ["p0", pytest.param("p1", marks=pytest.mark.more)])
def test_choices_that_are_no_words_of_the_code_name_the_culprit(culprit: str) -> None:
    """Of the collector, and of a party that reads the function of an equal."""

    def tamper(message: Message) -> bytes:
        hit = (message.step, message.sender) == (TABLE, culprit)
        return flipped(message.payload, 8 * 5000) if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="no words of the code") as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, TABLE)


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize(
    ("step", "culprit", "harm", "reason"),
    [
        (SIZE, "p1", lambda p: p[:-1], "bytes"),
        (SIZE, "p1", lambda p: b"\xff" * 8 + p[8:], "out of range"),
        (AGREE, "p2", lambda p: bytes(16) + p[16:], "are not ours"),
        (AGREE, "p2", lambda p: p[:16] + bytes(16), "not the committed coin"),
        (SHARES, "p1", lambda p: p[:-1], "bytes"),
        (SHARES, "p2", lambda p: p + b"\0", "bytes"),
        (SHARES, "p2", lambda p: b"", "bytes"),
        (COMMON, "p0", lambda p: p[:-1], "bytes"),
        (COMMON, "p0", lambda p: b"\xff" * len(p), "out of range"),
        (COMMON, "p0", lambda p: p if len(p) == 8 else flipped(p, 3), "not of ours"),
        (COMMON, "p0", lambda p: p if len(p) == 8 else p[:16] * (len(p) // 16), "repeated"),
        (COMMON, "p0", lambda p: p if len(p) == 8 else p[16:], "bytes"),
    ],
)
def test_a_hostile_message_names_the_culprit(
    step: str, culprit: str, harm: Callable[[bytes], bytes], reason: str
) -> None:
    def tamper(message: Message) -> bytes:
        hit = (message.step, message.sender) == (step, culprit)
        return harm(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        run(named("abcde", "bcdef", "cdefg"), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.usefixtures("twin")
def test_a_changed_table_of_shares_takes_identifiers_away_and_adds_none() -> None:
    """The sender of a table decides about its own identifiers, as with another set; the parties end alike."""
    sets = named("abcdefgh", "abcdefgx", "abcdefgy")
    honest = len(run(sets)[0]["p0"])
    fewer = 0
    for bit in range(0, 8 * 400, 97):

        def tamper(message: Message, bit: int = bit) -> bytes:
            hit = (message.step, message.sender) == (SHARES, "p1")
            return flipped(message.payload, bit) if hit else message.payload

        found = common_ids(sets, run(sets, tamper=tamper)[0])
        assert set(found) <= {b"%c" % c for c in b"abcdefg"}
        fewer += len(found) < honest
    assert fewer


def numbers(message: Message) -> int:
    """Count the bytes of a message that all parties must hold alike: sizes, digest, coins, count."""
    if message.step in (SIZE, AGREE):
        return len(message.payload)
    return 8 if message.step == COMMON and len(message.payload) == 8 else 0


@pytest.mark.usefixtures("twin")
def test_no_flipped_bit_leaves_a_party_waiting() -> None:
    """Every bit of every size and digest, and of the count: somebody refuses."""
    sets = named("abcd", "dcbx", "ybcd")
    for number, message in enumerate(run(sets)[1].messages):
        for bit in range(8 * numbers(message)):
            with pytest.raises((RemoteProtocolError, LocalProtocolError)):
                run(sets, tamper=changing(number, lambda p, bit=bit: flipped(p, bit)))
