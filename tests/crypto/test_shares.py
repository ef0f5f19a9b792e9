"""Shares to the compute pair and openings: output, cost, hostile messages, uniform shares and views."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import shares
from crypto.comparison import Entrant, EntrantWidths, joint_maximum
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds, send
from crypto.shares import ComputePair, Shares, ShareSession, open_vector, setup_shares, share_vector
from tests.support.chi_square import byte_counts, chi_square
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.sessions import two_party_sessions
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

JOB = bytes(range(32))
PAIR = ComputePair("p0", "p1")
Vectors = dict[str, list[Shares]]


def words(values: list[int], width: int = 64) -> Shares:
    return np.array(values, dtype=f"u{width // 8}")


def names(n: int) -> list[str]:
    return [f"p{i}" for i in range(n)]


def sharer(me: str, inputs: Vectors, seed: object) -> Rounds[list[Shares | None]]:
    """Share several vectors in a row and return this party's shares."""
    session = yield from setup_shares(me, list(inputs), PAIR, JOB, SeededRng((seed, me)))
    held = []
    for vector in inputs[me]:
        held.append((yield from share_vector(session, vector)))
    return held


def opener(
    me: str, inputs: Vectors, seed: object, recipients: list[str] | None = None
) -> Rounds[list[Shares | None]]:
    """Share several vectors, then open them."""
    session = yield from setup_shares(me, list(inputs), PAIR, JOB, SeededRng((seed, me)))
    opened = []
    for vector in inputs[me]:
        held = yield from share_vector(session, vector)
        width = 8 * vector.dtype.itemsize
        opened.append((yield from open_vector(session, len(vector), width, held, recipients)))
    return opened


def run(
    kind: Callable[..., Rounds[list[Shares | None]]], inputs: Vectors, seed: object = 0, **how: object
) -> tuple[dict[str, list[Shares | None]], Transcript]:
    return run_local({me: kind(me, inputs, seed) for me in inputs}, **how)  # type: ignore[arg-type]


@settings(max_examples=examples(40), deadline=None)
@given(
    data=st.data(),
    n=st.integers(2, 5),
    shapes=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([16, 32, 64])), min_size=1, max_size=3),
)
def test_shares_add_up_and_open_to_the_plain_sum(
    data: st.DataObject, n: int, shapes: list[tuple[int, int]]
) -> None:
    plain = {
        me: [data.draw(st.lists(st.integers(0, 2**width - 1), min_size=m, max_size=m)) for m, width in shapes]
        for me in names(n)
    }
    inputs = {me: [words(v, w) for v, (_, w) in zip(plain[me], shapes, strict=True)] for me in plain}
    held, _ = run(sharer, inputs)
    opened, _ = run(opener, inputs)
    for k, (m, width) in enumerate(shapes):
        expected = [sum(plain[me][k][i] for me in plain) % 2**width for i in range(m)]
        leader, deputy = held["p0"][k], held["p1"][k]
        assert leader is not None
        assert deputy is not None
        assert leader.dtype == deputy.dtype == f"u{width // 8}"
        assert (leader + deputy).tolist() == expected
        assert all(held[me][k] is None for me in names(n)[2:])
        for me in names(n):
            total = opened[me][k]
            assert total is not None
            assert total.tolist() == expected


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("n", [2, 4])
def test_cost_is_as_documented(n: int, width: int) -> None:
    m = 7
    inputs = {me: [words([1] * m, width)] for me in names(n)}
    _, sharing = run(sharer, inputs)
    assert sharing.rounds == 1
    assert [sharing.bytes_sent(me) for me in names(n)] == [16, 0, *[16 + m * width // 8] * (n - 2)]
    _, opening = run(opener, inputs)
    sent = {
        me: sum(len(m.payload) for m in opening.messages if (m.sender, m.step) == (me, "shares/open"))
        for me in names(n)
    }
    assert list(sent.values()) == [(n - 1) * m * width // 8] * 2 + [0] * (n - 2)
    assert opening.rounds == 2  # contributors send seed and vector without waiting
    assert set(opening.steps) == {"shares/seed", "shares/open"} | ({"shares/share"} if n > 2 else set())


@pytest.mark.parametrize("recipients", [["p0"], ["p1"], ["p3"], ["p0", "p1"], ["p1", "p2"], []])
def test_only_the_named_recipients_learn_the_sum(recipients: list[str]) -> None:
    inputs = {me: [words([3, 2**64 - 1])] for me in names(4)}
    outputs, transcript = run_local({me: opener(me, inputs, 0, recipients) for me in inputs})
    for me in inputs:
        if me in recipients:
            assert outputs[me][0].tolist() == [12, 2**64 - 4]  # type: ignore[union-attr]
        else:
            assert outputs[me][0] is None
            assert not [x for x in transcript.view(me) if x.step == "shares/open"]


def test_large_vectors_travel_in_bounded_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "PIECE_BYTES", 64)
    inputs = {me: [words(list(range(100)), 32), words([], 16)] for me in names(3)}
    outputs, transcript = run(opener, inputs)
    assert outputs["p2"][0].tolist() == [3 * i for i in range(100)]  # type: ignore[union-attr]
    assert max(len(m.payload) for m in transcript.messages) == 64
    assert len([m for m in transcript.messages if m.step == "shares/share"]) == 7
    assert transcript.rounds == 1 + 7  # pieces of an opening are exchanged one by one


def test_golden_transcripts(golden: Golden) -> None:
    for n in (2, 4):
        inputs = {me: [words([i, 2**63 + i]), words([5, 6, 7], 16)] for i, me in enumerate(names(n))}
        golden.check("shares", f"{n} parties", run(opener, inputs, "golden")[1].digest())


@pytest.mark.parametrize("width", [16, 64])
@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("holder", ["p0", "p1"])
def test_each_share_is_uniform_whatever_the_input(holder: str, n: int, width: int) -> None:
    for value in (0, 2**width - 1):
        seen = np.zeros(256)
        for seed in range(40):
            inputs = {me: [words([value] * 64, width)] for me in names(n)}
            share = run(sharer, inputs, seed)[0][holder][0]
            assert share is not None
            seen += byte_counts(share)
        assert chi_square(seen) < BYTE_LIMIT


@pytest.mark.parametrize("leader_input", [0, 2**64 - 1])
def test_openings_to_an_outsider_do_not_show_the_leaders_vector(leader_input: int) -> None:
    """p2 knows all it contributed; what it sees from the leader must still be uniform."""
    seen = np.zeros(256)
    for seed in range(40):
        inputs = {"p0": [words([leader_input] * 64)], "p1": [words([1] * 64)], "p2": [words([2] * 64)]}
        _, transcript = run(opener, inputs, seed)
        (shared,) = [m for m in transcript.view("p0") if m.sender == "p2"]
        (opened,) = [m for m in transcript.view("p2") if m.sender == "p0"]
        seen += byte_counts(np.frombuffer(opened.payload, "<u8") - np.frombuffer(shared.payload, "<u8"))
    assert chi_square(seen) < BYTE_LIMIT


def test_an_opening_hides_how_the_sum_is_split() -> None:
    """Fixed coins, two splits of the same sum: an outsider's view is the sum plus the same fresh zero."""

    def opening(me: str, split: tuple[int, int]) -> Rounds[Shares | None]:
        session = yield from setup_shares(me, names(3), PAIR, JOB, SeededRng(me))
        own = {"p0": words([split[0]]), "p1": words([split[1]])}.get(me)
        return (yield from open_vector(session, 1, 64, own, ["p2"]))

    seen = []
    for split in ((5, 0), (0, 5)):
        outputs, transcript = run_local({me: opening(me, split) for me in names(3)})
        assert outputs["p2"].tolist() == [5]  # type: ignore[union-attr]
        seen.append([m.payload for m in transcript.view("p2")])
    masks = [np.frombuffer(view[0], "<u8") - words([part]) for view, part in zip(seen, (5, 0), strict=True)]
    assert masks[0] == masks[1] != 0


def test_the_pairs_view_does_not_depend_on_the_others_input() -> None:
    """The deputy receives seeds only; the leader's view is checked by distribution above."""
    views = []
    for value in (0, 9):
        inputs = {me: [words([value if me == "p2" else 1] * 3)] for me in names(3)}
        views.append([m.payload for m in run(sharer, inputs)[1].view("p1")])
    assert views[0] == views[1]


def test_shares_feed_a_circuit() -> None:
    """The secure maximum of four parties over real shares and a real pair."""
    garbler, evaluator = two_party_sessions()
    sessions = {"g": garbler, "e": evaluator}
    roster, pair = ["x", "g", "e", "y"], ComputePair("g", "e")
    scores = {"x": 50, "g": 7, "e": 51, "y": 3}

    def party(me: str) -> Rounds[int | None]:
        session = yield from setup_shares(me, roster, pair, JOB, SeededRng(me))
        candidate = Entrant(True, scores[me], 4, 0)
        share = partial(share_vector, session)
        computation = sessions.get(me)
        return (
            yield from joint_maximum(
                me,
                roster,
                ("g", "e"),
                candidate,
                EntrantWidths(8, 3, 1),
                share,
                computation,  # type: ignore[arg-type]
            )
        )

    outputs, _ = run_local({me: party(me) for me in roster})
    assert set(outputs.values()) == {2}


def test_no_keystream_is_used_twice() -> None:
    inputs = {me: [words([0] * 8)] * 3 for me in names(3)}
    _, transcript = run(opener, inputs)
    from_p2 = [m.payload for m in transcript.view("p0") if m.step == "shares/share"]
    opened = [m.payload for m in transcript.view("p2") if m.step == "shares/open" and m.sender == "p0"]
    assert len({*from_p2, *opened}) == 6


def test_equal_openings_look_different() -> None:
    def twice(me: str) -> Rounds[list[Shares | None]]:
        session = yield from setup_shares(me, names(3), PAIR, JOB, SeededRng(me))
        own = words([7]) if me in PAIR else None
        first = yield from open_vector(session, 1, 64, own)
        second = yield from open_vector(session, 1, 64, own)
        return [first, second]

    outputs, transcript = run_local({me: twice(me) for me in names(3)})
    assert [vector.tolist() for vector in outputs["p2"]] == [[14], [14]]  # type: ignore[union-attr]
    seen = {m.payload for m in transcript.view("p2")}
    assert len(seen) == 4


def test_another_job_gives_other_masks_for_the_same_seed() -> None:
    def one(me: str, job: bytes) -> Rounds[Shares | None]:
        session = yield from setup_shares(me, names(2), PAIR, job, SeededRng(me))
        return (yield from share_vector(session, words([0])))

    first, second = (run_local({me: one(me, job) for me in names(2)})[0]["p0"] for job in (JOB, b"other"))
    assert first.tolist() != second.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("step", "culprit"), [("shares/seed", "p2"), ("shares/share", "p2"), ("shares/open", "p1")]
)
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_a_wrong_length_names_the_culprit(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> None:
    def tamper(message: Message) -> bytes:
        hit = message.step == step and message.sender == culprit
        return harm(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run(opener, {me: [words([1, 2])] for me in names(3)}, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def test_who_opened_other_numbers_is_among_those_named() -> None:
    """The deputy opens a 3 to the leader and a 2 to the third, who then shares fewer words, as it must."""

    def party(me: str) -> Rounds[Shares | None]:
        session = yield from setup_shares(me, names(3), PAIR, JOB, SeededRng(me))
        count = yield from open_vector(session, 1, 64, words([1]) if me in PAIR else None)
        return (yield from share_vector(session, words([5] * int(count[0]))))  # type: ignore[index]

    def tamper(message: Message) -> bytes:
        if (message.step, message.sender, message.recipient) != ("shares/open", "p1", "p0"):
            return message.payload
        (word,) = np.frombuffer(message.payload, "<u8")
        return ((int(word) + 1) % (1 << 64)).to_bytes(8, "little")

    with pytest.raises(RemoteProtocolError) as caught:
        run_local({me: party(me) for me in names(3)}, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p2 or p1", "shares/share")


def test_a_wrong_step_names_the_culprit() -> None:
    inputs = {me: [words([1])] for me in names(3)}

    def confused() -> Rounds[list[Shares | None]]:
        yield from send("shares/seed", {"p1": bytes(16), "p0": bytes(8)})
        return []

    parties = {me: sharer(me, inputs, 0) for me in names(2)}
    with pytest.raises(RemoteProtocolError) as caught:
        run_local(parties | {"p2": confused()})
    assert (caught.value.culprit, caught.value.step) == ("p2", "shares/share")


@pytest.mark.parametrize(
    ("me", "parties", "pair", "match"),
    [
        ("p0", ["p0"], PAIR, "2 or more"),
        ("p0", ["p0", "p1", "p1"], PAIR, "3 names, 2 different"),
        ("p0", ["p0", "p1"], ComputePair("p0", "p0"), "must differ"),
        ("p0", ["p0", "p1"], ComputePair("p0", "p9"), "p9 is not"),
        ("p9", ["p0", "p1"], PAIR, "p9 is not"),
    ],
)
def test_impossible_rosters_are_refused(me: str, parties: list[str], pair: ComputePair, match: str) -> None:
    with pytest.raises(LocalProtocolError, match=match):
        next(setup_shares(me, parties, pair, JOB, SeededRng(0)))


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros(3, np.int64), np.zeros((2, 2), np.uint64)])
def test_only_vectors_of_unsigned_words_are_shared(values: Shares) -> None:
    session = ShareSession("p0", names(2), PAIR, b"", {"p0": bytes(16)})
    with pytest.raises(LocalProtocolError, match="a vector of uint16, uint32 or uint64"):
        next(share_vector(session, values))


@pytest.mark.parametrize(
    ("me", "count", "width", "share", "recipients", "match"),
    [
        ("p0", 1, 64, None, None, "holds a share"),
        ("p2", 1, 64, words([1]), None, "holds no share"),
        ("p0", 2, 64, words([1]), None, "2 words of uint64"),
        ("p0", 1, 32, words([1]), None, "1 words of uint32"),
        ("p0", 1, 24, words([1]), None, "not 24"),
        ("p0", 1, 64, words([1]), ["p7"], "p7 not in the roster"),
    ],
)
def test_impossible_openings_are_refused(
    me: str, count: int, width: int, share: Shares | None, recipients: list[str] | None, match: str
) -> None:
    session = ShareSession(me, names(3), PAIR, b"", {"p0": bytes(16)})
    with pytest.raises(LocalProtocolError, match=match):
        next(open_vector(session, count, width, share, recipients))


def test_width_for() -> None:
    bounds = [0, 2**16 - 1, 2**16, 2**32 - 1, 2**32, 2**64 - 1]
    assert [shares.width_for(bound) for bound in bounds] == [16, 16, 32, 32, 64, 64]
    with pytest.raises(LocalProtocolError):
        shares.width_for(2**64)


def test_secrets_have_no_repr() -> None:
    session = ShareSession("p0", names(2), PAIR, b"context", {"p0": b"0123456789abcdef"})
    assert repr(session) == "ShareSession(me='p0', pair=ComputePair(leader='p0', deputy='p1'), <secret>)"
