"""One bit of every sequence, from shared supports: against integers, and against parties that deviate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.criterion import RECORDS, Bools, Form, Tally
from anonymize.joint.pair import open_pair
from anonymize.joint.roster import Roster
from anonymize.joint.trajectory import kept
from anonymize.joint.trajectory.kept import STEP, Thresholds, kept_sequences
from anonymize.table import Ints
from anonymize.tds import Observer
from crypto.errors import RemoteProtocolError
from crypto.local import Transcript, run_local
from crypto.rng import Rng
from crypto.rounds import Rounds
from tests.support.computations import Computed
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, transfer_bytes
from tests.support.tamper import first_harmed, vouched


def asked_of(least: int, bounds: Sequence[tuple[int, int]], n_records: int) -> Thresholds:
    """K, and by protected value p and q of its C = p/q."""
    held = [Tally(holding=((0, value),)) for value in range(len(bounds))]
    forms = tuple(Form(((RECORDS, p), (t, -q))) for t, (p, q) in zip(held, bounds, strict=True))
    return Thresholds(least, forms, (RECORDS, *held), n_records)


EDGES = ((3, 5), (1, 4))
ASKED = asked_of(5, EDGES, (1 << 17) - 1)


def run(asked: Thresholds, own: Sequence[Ints], **how: Any) -> tuple[dict[str, Bools], Transcript]:
    """p0 leads, p1 is the deputy."""
    names = tuple(f"p{i}" for i in range(len(own)))
    roster = [Roster(me, names, "p0", "p1") for me in names]
    runs = {r.me: one_party(r, asked, counts, SeededRng(r.me)) for r, counts in zip(roster, own, strict=True)}
    return run_local(runs, **how)


def one_party(roster: Roster, asked: Thresholds, counts: Ints, rng: Rng) -> Rounds[Bools]:
    pair = yield from open_pair(roster, bytes(32), rng, Observer())
    return (yield from kept_sequences(pair, asked, counts, Observer()))


def counts_at(seed: int, n_parties: int, n_sequences: int, n_bounds: int, most: int) -> list[Ints]:
    coins = np.random.default_rng(seed)
    n = coins.integers(0, most + 1, (n_parties, 1, n_sequences))
    return list(np.concatenate([n, coins.integers(0, n + 1, (n_parties, n_bounds, n_sequences))], axis=1))


def by_definition(K: int, bounds: Sequence[tuple[int, int]], own: Sequence[Ints]) -> list[bool]:
    totals = np.sum(own, axis=0).T.tolist()
    return [
        n >= K and all(Fraction(s, n) <= Fraction(*c) for s, c in zip(held, bounds, strict=True))
        for n, *held in totals
    ]


@pytest.mark.parametrize("n_parties", [2, 3, 4])
@pytest.mark.parametrize("bounds", [(), ((3, 5),), ((1, 2), (2, 3), (999, 1000))])
def test_equals_the_definition(n_parties: int, bounds: tuple[tuple[int, int], ...]) -> None:
    asked = asked_of(4, bounds, 40)
    own = counts_at(n_parties, n_parties, 200, len(bounds), 4)
    expected = by_definition(4, bounds, own)
    assert {True, False} == set(expected)
    results, _ = run(asked, own)
    assert all(result.tolist() == expected for result in results.values())


def test_at_the_edges() -> None:
    """K − 1, K, all records; a share that is C, and one record more; nobody; everybody at one party."""
    n, most = 131_071, 131_071 * 3 // 5
    totals = [
        (4, 0, 0),
        (5, 3, 1),
        (5, 4, 0),
        (5, 3, 2),
        (n, most, 0),
        (n, most + 1, 0),
        (n, 0, n // 4),
        (0, 0, 0),
    ]
    whole = np.array(totals, dtype=np.int64).T
    for own in (
        [whole, np.zeros_like(whole)],
        [np.zeros_like(whole), whole],
        [whole // 2, whole - whole // 2],
    ):
        results, _ = run(ASKED, own)
        assert (
            results["p0"].tolist()
            == results["p1"].tolist()
            == [False, True, False, False, True, False, True, False]
        )


def test_k_above_the_number_of_records() -> None:
    results, _ = run(asked_of(1000, (), 3), [np.full((1, 1), 2), np.full((1, 1), 1)])
    assert results["p0"].tolist() == [False]


def test_gates_and_shared_bits_of_a_sequence() -> None:
    """Fewer than 2^17 records, C = 3/5, one protected value."""
    circuit = asked_of(30, ((3, 5),), 131_071).circuit
    assert sum(group.bits for group in circuit.inputs.values()) == 38
    assert circuit.and_gates == 37
    assert asked_of(20, (), 131_071).circuit.and_gates == 17


@pytest.mark.parametrize("n_parties", [2, 3, 4])
@pytest.mark.parametrize("batches", [1, 3])
def test_rounds_and_bytes(
    n_parties: int, batches: int, computed: list[Computed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_AT_ONCE", 64)
    m = 64 * batches
    own = counts_at(1, n_parties, m, 2, 9)
    _, setup = run(ASKED, [part[:, :0] for part in own])
    computed.clear()
    _, transcript = run(ASKED, own)
    assert transcript.rounds - setup.rounds == (2 * batches + 1 if n_parties == 2 else 4 * batches)
    width = 18 + 20 + 20
    between = sum(c.bytes_sent for c in computed[::2])
    assert between == m * (32 * (width - 1) - 16 * 3 + 24) + m // 8 + batches * (
        transfer_bytes(64 * width) + 16
    )
    for party in [f"p{i}" for i in range(2, n_parties)]:
        assert transcript.bytes_sent(party) - setup.bytes_sent(party) == 4 * 3 * m
        assert sum(len(x.payload) for x in transcript.view(party) if x.step == STEP) == m // 8 + 16 * batches
    told = (n_parties - 2) * (m // 8 + 16 * batches)
    pair = sum(transcript.bytes_sent(p) - setup.bytes_sent(p) for p in ("p0", "p1"))
    assert pair == between + OPENING_BYTES + told


def test_absent_and_violating_look_the_same() -> None:
    """To the party that has neither: with fixed coins its own messages, and all that it receives, are equal."""
    nobody, few, many = np.array([[0], [0]]), np.array([[2], [0]]), np.array([[9], [7]])
    asked = asked_of(4, ((3, 5),), 40)
    views = []
    for others in (nobody, few, many):
        results, transcript = run(asked, [others, nobody, nobody])
        assert not results["p2"][0]
        views.append([(m.sender, m.step, m.payload) for m in transcript.view("p2")])
    assert views[0] == views[1] == views[2]


@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        (STEP, "p0", lambda p: p[:-1]),
        (STEP, "p0", lambda p: p + b"\0"),
        (STEP, "p0", lambda p: p[:-1] + b"\xff"),
        ("shares/share", "p2", lambda p: p[:-4]),
        ("shares/share", "p2", lambda p: p + b"\0\0\0\0"),
        ("two_party/choices", "p1", lambda p: p[:-1]),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", lambda p: p[:-1] + bytes([p[-1] ^ 1])),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    own = counts_at(3, 3, 10, 2, 9)
    _, honest = run(ASKED, own)
    with pytest.raises(RemoteProtocolError) as caught:
        run(ASKED, own, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.parametrize("sender", ["p0", "p1"])
def test_a_pair_that_tells_two_things_is_found_out(sender: str) -> None:
    own = counts_at(3, 3, 8, 2, 9)
    with pytest.raises(RemoteProtocolError, match="different things") as caught:
        run(ASKED, own, tamper=first_harmed(STEP, sender, lambda p: bytes([p[0] ^ 1]) + p[1:]))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", STEP)


def test_a_bit_that_our_records_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair says of a sequence that K of our records have that fewer do; nothing else is asked."""

    def lying(engine: Any, circuit: Any, shared: Any) -> Any:
        return np.zeros(len(shared), dtype=np.uint8)
        yield

    monkeypatch.setattr(kept, "_judged", lying)
    with pytest.raises(RemoteProtocolError, match="what K records of ours have") as caught:
        run(asked_of(3, (), 20), [np.array([[0]]), np.array([[1]]), np.array([[3]])])
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", STEP)
