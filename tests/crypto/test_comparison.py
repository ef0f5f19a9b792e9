"""Secure comparison and maximum: against Python, with real sessions and ideal twins."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import comparison
from crypto.circuit import Circuit
from crypto.comparison import Entrant, EntrantWidths, joint_maximum, secure_compare, secure_maximum
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds
from tests.support.examples import examples
from tests.support.ideal import ideal_sessions, share_vector
from tests.support.sessions import transfer_bytes, two_party_sessions
from tests.support.vectors import Golden

Sessions = Callable[..., tuple[object, object]]
SESSIONS = pytest.mark.parametrize("sessions", [two_party_sessions, ideal_sessions])
WIDTHS = EntrantWidths(numerator=9, denominator=5, tie=3)


def candidates(max_size: int = 3, min_size: int = 0) -> st.SearchStrategy[list[Entrant]]:
    """Small numbers, so that equal fractions and equal ties occur."""
    one = st.builds(
        Entrant,
        st.booleans(),
        st.integers(0, 8) | st.integers(0, 511),
        st.integers(1, 4) | st.integers(1, 31),
        st.integers(0, 2),
    )
    return st.lists(one, min_size=min_size, max_size=max_size)


def best(entries: list[Entrant]) -> int | None:
    ranked = [(Fraction(c.numerator, c.denominator), -c.tie, -i) for i, c in enumerate(entries) if c.valid]
    return -max(ranked)[2] if ranked else None


def compare(
    sessions: tuple[object, object], x: list[int], y: list[int], width: int, **how: object
) -> tuple[np.ndarray, np.ndarray, Transcript]:
    g, e = sessions
    outputs, transcript = run_local(
        {
            "g": secure_compare(g, np.array(x, dtype=np.uint64), width),  # type: ignore[arg-type]
            "e": secure_compare(e, np.array(y, dtype=np.uint64), width),  # type: ignore[arg-type]
        },
        **how,  # type: ignore[arg-type]
    )
    return outputs["g"], outputs["e"], transcript


@SESSIONS
@pytest.mark.parametrize("width", [1, 8, 64])
def test_secure_compare(sessions: Sessions, width: int) -> None:
    rng = np.random.default_rng(width)
    top = (1 << width) - 1
    pairs = [
        (0, 0),
        (0, top),
        (top, 0),
        (top, top),
        *rng.integers(0, top, (50, 2), dtype=np.uint64, endpoint=True).tolist(),
    ]
    x, y = ([p[i] for p in pairs] for i in (0, 1))
    expected = [a > b for a, b in pairs]
    g, e, _ = compare(sessions(), x, y, width)
    assert g.dtype == bool
    assert g.tolist() == e.tolist() == expected
    assert compare(sessions(), [], [], width)[0].tolist() == []


def maximum(
    sessions: tuple[object, object], first: list[Entrant], second: list[Entrant], **how: object
) -> tuple[int | None, int | None, Transcript]:
    g, e = sessions
    counts = (len(first), len(second))
    outputs, transcript = run_local(
        {"g": secure_maximum(g, first, counts, WIDTHS), "e": secure_maximum(e, second, counts, WIDTHS)},  # type: ignore[arg-type]
        **how,  # type: ignore[arg-type]
    )
    return outputs["g"], outputs["e"], transcript


@SESSIONS
@settings(max_examples=examples(40), deadline=None)
@given(candidates(), candidates())
def test_secure_maximum(sessions: Sessions, first: list[Entrant], second: list[Entrant]) -> None:
    if not first and not second:
        first = [Entrant(False, 1, 1, 1)]
    g, e, _ = maximum(sessions(), first, second)
    assert g == e == best(first + second)


TIES = [
    ([(1, 2, 4, 1)], [(1, 1, 2, 0)], 1),  # equal fractions: the smaller tie key
    ([(1, 1, 2, 1)], [(1, 2, 4, 1)], 0),  # equal tie keys, too: the first
    ([(1, 3, 4, 7)], [(1, 2, 4, 0)], 0),  # the fraction decides before the tie key
    ([(0, 9, 1, 0)], [(1, 0, 9, 7)], 1),  # an invalid candidate never wins
    ([(0, 9, 1, 0)], [(0, 9, 1, 0)], None),
]


@pytest.mark.parametrize(("first", "second", "winner"), TIES)
def test_ties_and_invalid_candidates(
    first: list[tuple[int, ...]], second: list[tuple[int, ...]], winner: int | None
) -> None:
    entries = [[Entrant(bool(v), n, d, t) for v, n, d, t in side] for side in (first, second)]
    assert maximum(two_party_sessions(), *entries)[:2] == (winner, winner)


def joint(
    sessions: tuple[object, object],
    entries: list[Entrant],
    pair: tuple[str, str] = ("p0", "p1"),
    **how: object,
) -> tuple[dict[str, int | None], Transcript]:
    names = [f"p{i}" for i in range(len(entries))]
    computations = dict(zip(pair, sessions, strict=True))
    for name, other in (pair, pair[::-1]):
        computations[name].peer = other  # type: ignore[attr-defined]
        if hasattr(computations[name], "_ot"):
            computations[name]._ot.peer = other

    def party(i: int) -> Rounds[int | None]:
        share = lambda words: share_vector(names[i], pair, [n for n in names if n != names[i]], words)  # noqa: E731
        return joint_maximum(names[i], names, pair, entries[i], WIDTHS, share, computations.get(names[i]))  # type: ignore[arg-type]

    return run_local({name: party(i) for i, name in enumerate(names)}, **how)  # type: ignore[arg-type]


@SESSIONS
@settings(max_examples=examples(25), deadline=None)
@given(candidates(5, 2), st.data())
def test_joint_maximum(sessions: Sessions, entries: list[Entrant], data: st.DataObject) -> None:
    names = [f"p{i}" for i in range(len(entries))]
    pair = tuple(data.draw(st.permutations(names))[:2])
    outputs, _ = joint(sessions(), entries, pair)  # type: ignore[arg-type]
    assert set(outputs.values()) == {best(entries)}


ENTRIES = [Entrant(True, 100 + i, 7, i) for i in range(4)]


def output_bytes(circuit: Circuit) -> int:
    return sum(g.bits for g in circuit.outputs.values())


def test_costs_are_as_documented() -> None:
    _, _, transcript = compare(two_party_sessions(), [1] * 20, [2] * 20, 16)
    assert transcript.rounds == 3
    assert transcript.bytes_sent("g") == 16 * (2 * 16 - 1) * 20 + 3 + 16 * 20
    assert transcript.bytes_sent("e") == 16 + transfer_bytes(16 * 20) + 8 * 20
    _, _, transcript = maximum(two_party_sessions(), ENTRIES[:1], ENTRIES[1:3])
    circuit = comparison._private_maximum_circuit((1, 2), WIDTHS)
    assert transcript.rounds == 3
    assert transcript.bytes_sent("g") == 16 * circuit.table_blocks + 1 + 16 * output_bytes(circuit)
    assert transcript.bytes_sent("e") == 16 + transfer_bytes(2 * 18) + 8 * output_bytes(circuit)
    _, transcript = joint(two_party_sessions(), ENTRIES)
    circuit = comparison._shared_maximum_circuit(4, WIDTHS)
    assert (
        transcript.rounds == 4
    )  # the twin's shares go to the garbler, while the evaluator sends its choices
    sent = {
        step: sum(len(m.payload) for m in transcript.messages if m.step == step) for step in transcript.steps
    }
    assert sent == {
        "ideal/share": 3 * 8 * 4 * 4,
        "two_party/choices": 16 + transfer_bytes(4 * 18),
        "two_party/tables": 16 * circuit.table_blocks + 1 + 16 * output_bytes(circuit),
        "two_party/outputs": 8 * output_bytes(circuit),
        "comparison/winner": 4 * 2,
    }


def test_golden_transcripts(golden: Golden) -> None:
    golden.check(
        "comparison", "compare", compare(two_party_sessions("golden"), [3, 5], [4, 4], 8)[2].digest()
    )
    golden.check(
        "comparison", "maximum", maximum(two_party_sessions("golden"), ENTRIES[:2], ENTRIES[2:])[2].digest()
    )
    golden.check("comparison", "joint", joint(two_party_sessions("golden"), ENTRIES)[1].digest())


def test_only_the_pair_sees_more_than_the_winner() -> None:
    """The other parties receive the index and nothing else, whatever the candidates."""
    for numerator in (0, 511):
        entries = [*ENTRIES[:3], Entrant(True, numerator, 31, 0)]
        outputs, transcript = joint(two_party_sessions(), entries)
        view = transcript.view("p3")
        assert [(m.step, len(m.payload)) for m in view] == [("comparison/winner", 4)]
        assert int.from_bytes(view[0].payload, "little") == outputs["p0"]


@pytest.mark.parametrize("payload", [b"", b"\x04\0\0", b"\x05\0\0\0", b"\0\0\0\1"])
def test_a_bad_winner_names_the_culprit(payload: bytes) -> None:
    def tamper(message: Message) -> bytes:
        return payload if message.step == "comparison/winner" else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        joint(two_party_sessions(), ENTRIES, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p0", "comparison/winner")


@pytest.mark.parametrize("step", ["two_party/choices", "two_party/tables", "two_party/outputs"])
def test_a_truncated_message_names_the_culprit(step: str) -> None:
    def tamper(message: Message) -> bytes:
        return message.payload[:-1] if message.step == step else message.payload

    for run in (
        lambda: compare(two_party_sessions(), [1], [2], 8, tamper=tamper),
        lambda: maximum(two_party_sessions(), ENTRIES[:1], ENTRIES[1:2], tamper=tamper),
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            run()
        assert (caught.value.culprit, caught.value.step) == ("g" if step.endswith("tables") else "e", step)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (Entrant(True, 512, 1, 0), "numerator is not an integer of 9 bits"),
        (Entrant(True, -1, 1, 0), "numerator"),
        (Entrant(True, 1, 32, 0), "denominator is not an integer of 5 bits"),
        (Entrant(True, 1, 1, 8), "tie is not an integer of 3 bits"),
        (Entrant(True, 1, 0, 0), "denominator is 0"),
        (Entrant(True, 1.7, 1, 0), "numerator is not an integer"),  # type: ignore[arg-type]
        (Entrant(True, 1, 2, 0.5), "tie is not an integer"),  # type: ignore[arg-type]
        (Entrant(2, 1, 1, 0), "valid is not an integer of 1 bits"),  # type: ignore[arg-type]
    ],
)
def test_candidates_that_do_not_fit_are_refused_without_being_shown(entry: Entrant, reason: str) -> None:
    g, _ = two_party_sessions()
    with pytest.raises(LocalProtocolError, match=reason) as caught:
        next(secure_maximum(g, [entry], (1, 1), WIDTHS))
    assert "512" not in str(caught.value)
    with pytest.raises(LocalProtocolError, match=reason):
        next(
            joint_maximum(
                "a", ["a", "b"], ("a", "b"), entry, WIDTHS, lambda w: share_vector("b", ("a", "b"), [], w), g
            )
        )


def test_our_own_mistakes_are_refused_before_a_byte_is_sent() -> None:
    g, e = two_party_sessions()
    share = lambda words: share_vector("a", ("a", "b"), [], words)  # noqa: E731
    bad: list[tuple[Callable[[], Rounds[object]], str]] = [
        (lambda: secure_maximum(g, [], (1, 1), WIDTHS), "0 candidates, not 1"),
        (lambda: secure_maximum(e, ENTRIES, (1, 1), WIDTHS), "4 candidates, not 1"),
        (lambda: secure_maximum(g, [], (0, 0), WIDTHS), "0 candidates"),
        (lambda: joint_maximum("x", ["a", "b"], ("a", "b"), ENTRIES[0], WIDTHS, share, None), "roster"),
        (lambda: joint_maximum("a", ["a", "b"], ("a", "c"), ENTRIES[0], WIDTHS, share, g), "roster"),
        (lambda: joint_maximum("a", ["a", "a"], ("a", "a"), ENTRIES[0], WIDTHS, share, g), "roster"),
        (lambda: joint_maximum("a", ["a", "b"], ("a", "b"), ENTRIES[0], WIDTHS, share, None), "only they"),
        (lambda: joint_maximum("c", ["a", "b", "c"], ("a", "b"), ENTRIES[0], WIDTHS, share, g), "only they"),
        (lambda: joint_maximum("a", ["a", "b"], ("a", "b"), ENTRIES[0], WIDTHS, share, e), "evaluator"),
        (lambda: secure_compare(g, np.array([256], dtype=np.uint64), 8), "fit 8 bits"),
    ]
    for start, reason in bad:
        with pytest.raises(LocalProtocolError, match=reason):
            next(start())
    with pytest.raises(LocalProtocolError, match="widths from 1 to 64"):
        EntrantWidths(0, 1, 1)


def test_candidates_have_no_repr() -> None:
    assert repr(Entrant(True, 5, 6, 7)) == "Entrant()"
