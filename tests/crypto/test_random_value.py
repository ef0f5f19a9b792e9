"""Random values: exact uniformity by enumeration, shares, restarts, refusals, hostile messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.circuit import Circuit, evaluate
from crypto.encoding import Words
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.random_value import CANDIDATES, TRIES, random_value, random_value_circuit
from crypto.rounds import Rounds
from crypto.two_party import Computation, Inputs, Outputs
from tests.support.chi_square import byte_counts, chi_square
from tests.support.examples import examples
from tests.support.ideal import ideal_sessions
from tests.support.rng import SeededRng
from tests.support.sessions import two_party_sessions
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

Bounds = Sequence[int]
FOUND = "random_value/found"


def split(bounds: Bounds, bits: int, seed: object) -> tuple[Words, Words]:
    """Additive shares modulo 2**bits."""
    mask = np.uint64((1 << bits) - 1)
    first = np.frombuffer(SeededRng((seed, "split")).bytes(8 * len(bounds)), np.uint64) & mask
    return first, (np.array(bounds, np.uint64) - first) & mask


def run(
    bounds: Bounds,
    bits: int,
    tries: int = TRIES,
    seed: object = 0,
    sessions: Callable[[object], tuple[Computation, Computation]] = two_party_sessions,
    **how: Any,
) -> tuple[dict[str, Words], Transcript]:
    garbler, evaluator = sessions(seed)
    first, second = split(bounds, bits, seed)
    return run_local(
        {
            "g": random_value(garbler, first, bits, tries),
            "e": random_value(evaluator, second, bits, tries),
        },
        **how,
    )


def opened(outputs: dict[str, Words], bits: int) -> Words:
    return (outputs["g"] + outputs["e"]) & np.uint64((1 << bits) - 1)


@pytest.mark.parametrize(("bits", "tries"), [(1, 1), (1, 3), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (8, 1)])
def test_uniform_below_every_bound_by_enumeration(bits: int, tries: int) -> None:
    """Over all coins, every value below the bound comes equally often, and no other comes."""
    size = 1 << bits * tries
    coins = np.arange(size, dtype=np.uint64)
    candidates = np.stack(
        [coins >> np.uint64(bits * i) & np.uint64((1 << bits) - 1) for i in range(tries)], 1
    )
    circuit = random_value_circuit(bits, tries)
    for bound in range(1 << bits):
        bounds = np.full((size, 1), bound, np.uint64)
        outputs = evaluate(circuit, size, {"bounds": bounds, "coins": candidates})
        values = outputs["values"][outputs["found"] == 1]
        counts = np.bincount(values.astype(np.int64), minlength=bound)
        assert len(counts) == bound
        assert len(set(counts.tolist())) <= 1
        rejected = (1 << bound.bit_length()) - bound  # of 2**(bit length) candidates
        assert len(values) * (1 << bound.bit_length() * tries) == size * (
            (1 << bound.bit_length() * tries) - rejected**tries
        )


@pytest.mark.parametrize("sessions", [two_party_sessions, ideal_sessions])
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data(), bits=st.integers(1, 64), count=st.integers(0, 4))
def test_shares_add_up_below_the_bounds(
    sessions: Callable[[object], tuple[Computation, Computation]],
    data: st.DataObject,
    bits: int,
    count: int,
) -> None:
    bounds = data.draw(st.lists(st.integers(1, (1 << bits) - 1), min_size=count, max_size=count))
    outputs, _ = run(bounds, bits, sessions=sessions)
    values = opened(outputs, bits)
    assert values.shape == outputs["g"].shape == (count,)
    assert all(value < bound for value, bound in zip(values.tolist(), bounds, strict=True))
    assert all(int(share.max(initial=0)) >> bits == 0 for share in outputs.values())


def test_values_are_uniform_through_restarts() -> None:
    """One try per run, so most instances restart; 5 is the worst of its length."""
    outputs, transcript = run([5] * 4_000, 8, tries=1)
    counts = Counter(opened(outputs, 8).tolist())
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert chi_square(np.array([counts[i] for i in range(5)])) < 33.4  # 4 degrees of freedom, p = 1e-6
    assert transcript.rounds > run([5], 8)[1].rounds


@pytest.mark.some(1)
@pytest.mark.parametrize("bound", [1, 2**63 + 1])
@pytest.mark.parametrize("party", ["g", "e"])
def test_each_share_is_uniform_whatever_the_bound(party: str, bound: int) -> None:
    outputs, _ = run([bound] * 2_000, 64, tries=2)
    assert chi_square(byte_counts(outputs[party])) < BYTE_LIMIT


def test_no_bounds_cost_nothing() -> None:
    assert run([], 64)[1].messages == []


def test_cost_is_that_of_one_run_of_the_circuit_and_an_exchange() -> None:
    """The same messages as running the circuit itself, then one byte each; about 3 gates per bit and try."""
    circuit = random_value_circuit(64, TRIES)
    assert 0.95 < circuit.and_gates / (3 * 64 * TRIES) < 1.05
    garbler, evaluator = two_party_sessions(0)
    first, second = split([7] * 3, 64, 0)
    parties: dict[str, Rounds[Any]] = {
        "g": garbler.run(circuit, 3, {"bounds": first.reshape(3, 1)}),
        "e": evaluator.run(circuit, 3, {"bounds": second.reshape(3, 1)}),
    }
    transcript = run([7] * 3, 64)[1]
    told = [m for m in transcript.messages if m.step == FOUND]
    assert sorted((m.sender, m.payload) for m in told) == [("e", b"\7"), ("g", b"\7")]
    assert transcript.rounds == 4
    transcript.messages = [m for m in transcript.messages if m.step != FOUND]
    assert transcript.digest() == run_local(parties)[1].digest()


def test_golden_transcript(golden: Golden) -> None:
    golden.check("random_value", "two bounds", run([1000, 77], 16, 4, "golden")[1].digest())


class Counted:
    """A computation that stands for so many runs and no more, so that a loop without end fails."""

    def __init__(self, computation: Computation, runs: int) -> None:
        self.peer, self.role = computation.peer, computation.role
        self._computation = computation
        self.left = runs

    def run(self, circuit: Circuit, batch: int, inputs: Inputs) -> Rounds[Outputs]:
        assert self.left, "more runs than it takes to try all candidates"
        self.left -= 1
        return (yield from self._computation.run(circuit, batch, inputs))


@pytest.mark.parametrize(("tries", "runs"), [(TRIES, 2), (CANDIDATES, 1), (50, 3)])
def test_a_bound_of_zero_ends_with_an_error(tries: int, runs: int) -> None:
    def counted(seed: object) -> tuple[Computation, Computation]:
        garbler, evaluator = two_party_sessions(seed)
        return Counted(garbler, runs), Counted(evaluator, runs)

    with pytest.raises(
        LocalProtocolError, match=rf"{runs * tries} candidates rejected: a bound is not in \[1, 2\*\*16\)"
    ):
        run([5, 0], 16, tries, sessions=counted)


@pytest.mark.some(1)
@pytest.mark.parametrize("bounds", [[9], [5] * 9])
def test_no_flipped_bit_of_an_outcome_leaves_a_party_waiting(bounds: Bounds) -> None:
    """Each bit of the decoding bits that the evaluator reads its outcome off, and of what either then tells."""
    honest = run(bounds, 8, 2)[1].messages
    steps = [message.step for message in honest]
    tables = [i for i in range(steps.index(FOUND)) if steps[i].endswith("tables")]
    proof = 8 * 16 * len(bounds)  # of the labels that go back: after the decoding bits
    for number in (tables[-1], *(i for i, step in enumerate(steps) if step == FOUND)):
        end = -proof if number == tables[-1] else 0
        for place in range(end - -(-len(bounds) // 8) * 8, end):  # the outcomes come last
            seen = iter(range(len(honest) + 1))

            def tamper(m: Message, seen: object = seen, at: int = number, bit: int = place) -> bytes:
                return flipped(m.payload, bit) if next(seen) == at else m.payload  # type: ignore[call-overload]

            with pytest.raises(RemoteProtocolError):
                run(bounds, 8, 2, tamper=tamper)


def flipped(payload: bytes, bit: int) -> bytes:
    """Flip a bit, counted from the end if negative."""
    value = int.from_bytes(payload, "little") ^ 1 << bit % (8 * len(payload))
    return value.to_bytes(len(payload), "little")


def test_another_outcome_is_the_peers_fault() -> None:
    def tamper(message: Message) -> bytes:
        return b"\0" if message.step == FOUND and message.sender == "e" else message.payload

    with pytest.raises(RemoteProtocolError, match="other accepted candidates than ours") as caught:
        run([9], 8, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("e", FOUND)


@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
def test_a_wrong_length_names_the_culprit(harm: Callable[[bytes], bytes]) -> None:
    """Harm every message of the computation, whatever its steps are."""
    _, honest = run([9], 8, 2)
    for number in range(len(honest.messages)):
        seen = iter(range(len(honest.messages)))

        def tamper(message: Message, at: int = number, seen: object = seen) -> bytes:
            return harm(message.payload) if next(seen) == at else message.payload  # type: ignore[call-overload]

        with pytest.raises(RemoteProtocolError) as caught:
            run([9], 8, 2, tamper=tamper)
        assert (caught.value.culprit, caught.value.step) == (
            honest.messages[number].sender,
            honest.messages[number].step,
        )


@pytest.mark.parametrize(
    ("bounds", "bits", "tries", "match"),
    [
        (np.ones(1, np.uint64), 0, 1, "values of 0 bits by 1 tries"),
        (np.ones(1, np.uint64), 65, 1, "values of 65 bits"),
        (np.ones(1, np.uint64), 8, 0, "by 0 tries"),
        (np.ones(1, np.int64), 8, 1, "not int64"),
        (np.ones((1, 1), np.uint64), 8, 1, "of shape"),
        (np.full(1, 256, np.uint64), 8, 1, r"shares modulo 2\*\*8"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(
    bounds: Words, bits: int, tries: int, match: str
) -> None:
    class Nobody:
        peer = "e"

    with pytest.raises(LocalProtocolError, match=match):
        next(random_value(Nobody(), bounds, bits, tries))  # type: ignore[arg-type]
