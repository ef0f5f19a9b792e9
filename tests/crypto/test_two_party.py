"""Two-party computation: every form of input and output, sessions, cost, secrecy, hostile messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import batch as batches
from crypto import hashing, two_party
from crypto.builder import Builder, add
from crypto.circuit import BLOCKS, Circuit, Held, Kind, To, evaluate
from crypto.circuits.arithmetic import equal, less, multiply
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds, send
from crypto.two_party import CarriedWords, EvaluatorSession, GarblerSession, Outputs, Value
from tests.support.examples import examples
from tests.support.ideal import ideal_sessions
from tests.support.rng import SeededRng
from tests.support.sessions import ot_sessions, transfer_bytes, two_party_sessions
from tests.support.statistics import BYTE_LIMIT, byte_statistic
from tests.support.vectors import Golden

FORMS = [held for held in Held if held not in (Held.MASK, Held.CARRIED, Held.COINS)]
Inputs = Mapping[str, Value]


def comparison(width: int = 8, to: To = To.BOTH) -> Circuit:
    b = Builder("compare")
    (x,), (y,) = b.input("x", Held.GARBLER, width), b.input("y", Held.EVALUATOR, width)
    b.output("less", to, [[less(b, x, y)]])
    return b.build()


def rich(width: int = 7, count: int = 2) -> Circuit:
    """All forms in, all forms out: (Σ inputs) and (Σ inputs) · public, word by word."""
    b = Builder("rich")
    words = {held: b.input(held.value, held, width, count) for held in FORMS}
    sums = words[Held.GARBLER]
    for held in FORMS[1:]:
        sums = [add(b, x, y) for x, y in zip(sums, words[held], strict=True)]
    products = [multiply(b, x, p)[:width] for x, p in zip(sums, words[Held.PUBLIC], strict=True)]
    for to in To:
        b.output(to.value, to, [*sums, *products, words[Held.PUBLIC][0], [1] * width])
    return b.build()


def split(circuit: Circuit, batch: int, seed: int = 0) -> tuple[dict[str, np.ndarray], Inputs, Inputs]:
    """Random values for every input, and what either side passes for them."""
    rng = np.random.default_rng(seed)
    values, mine, theirs = {}, {}, {}
    for name, g in circuit.inputs.items():
        if g.held is Held.MASK:
            continue
        x, y = (rng.integers(0, 1 << g.width, (batch, g.count), dtype=np.uint64) for _ in range(2))
        mask = np.uint64((1 << g.width) - 1)
        values[name] = {Held.XOR_SHARED: x ^ y, Held.ADDITIVE_SHARED: (x + y) & mask}.get(g.held, x)
        if g.held is not Held.EVALUATOR:
            mine[name] = x
        if g.held is not Held.GARBLER:
            theirs[name] = x if g.held in (Held.PUBLIC, Held.EVALUATOR) else y
    theirs |= {n: values[n] for n, g in circuit.inputs.items() if g.held is Held.EVALUATOR}
    return values, mine, theirs


def run(
    sessions: tuple[object, object], circuit: Circuit, batch: int, mine: Inputs, theirs: Inputs, **how: object
) -> tuple[Outputs, Outputs, Transcript]:
    g, e = sessions
    outputs, transcript = run_local(
        {"g": g.run(circuit, batch, mine), "e": e.run(circuit, batch, theirs)},  # type: ignore[attr-defined]
        **how,  # type: ignore[arg-type]
    )
    return outputs["g"], outputs["e"], transcript


def opened(circuit: Circuit, name: str, g: Outputs, e: Outputs) -> np.ndarray:
    """The value that both sides' outputs stand for."""
    group = circuit.outputs[name]
    if group.to is To.XOR_SHARED:
        return g[name] ^ e[name]  # type: ignore[operator, return-value]
    if group.to is To.ADDITIVE_SHARED:
        return (g[name] + e[name]) & np.uint64((1 << group.width) - 1)  # type: ignore[operator, return-value]
    if group.to is To.BOTH:
        assert np.array_equal(g[name], e[name])  # type: ignore[arg-type]
    return (e if group.to is To.EVALUATOR else g)[name]  # type: ignore[return-value]


def check(circuit: Circuit, values: dict[str, np.ndarray], batch: int, g: Outputs, e: Outputs) -> None:
    expected = evaluate(circuit, batch, values)
    for name, group in circuit.outputs.items():
        assert (name in g) == (group.to is not To.EVALUATOR)
        assert (name in e) == (group.to is not To.GARBLER)
        if group.to is not To.CARRIED:
            assert np.array_equal(opened(circuit, name, g, e), expected[name])


SESSIONS = [two_party_sessions, ideal_sessions]


@pytest.mark.parametrize("sessions", SESSIONS)
@pytest.mark.parametrize("batch", [0, 1, 2, 63, 64, 65, 300])
def test_all_forms_in_and_out(sessions: Callable[[], tuple[object, object]], batch: int) -> None:
    circuit = rich()
    values, mine, theirs = split(circuit, batch)
    g, e, _ = run(sessions(), circuit, batch, mine, theirs)
    check(circuit, values, batch, g, e)


@pytest.mark.parametrize("batch", [1, 100, 1000])
def test_many_chunks(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BLOCK_GATES", 64)
    circuit = rich()
    values, mine, theirs = split(circuit, batch)
    g, e, _ = run(two_party_sessions(), circuit, batch, mine, theirs)
    check(circuit, values, batch, g, e)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_random_circuits(data: st.DataObject) -> None:
    b = Builder("random")
    held = data.draw(st.lists(st.sampled_from(FORMS), min_size=1, max_size=4))
    literals = [0, *(x for i, h in enumerate(held) for (x,) in b.input(f"x{i}", h, 1, 2))]
    for _ in range(data.draw(st.integers(0, 20))):
        x, y = (data.draw(st.sampled_from(literals)) ^ data.draw(st.integers(0, 1)) for _ in range(2))
        literals.append(b.and_(x, y) if data.draw(st.booleans()) else b.xor(x, y))
    for to in data.draw(st.sets(st.sampled_from(sorted(To, key=lambda t: t.value)), min_size=1)):
        b.output(
            to.value,
            to,
            [[x] for x in data.draw(st.lists(st.sampled_from(literals), min_size=1, max_size=4))],
        )
    circuit = b.build()
    batch = data.draw(st.sampled_from([0, 1, 3, 70]))
    values, mine, theirs = split(circuit, batch)
    g, e, transcript = run(two_party_sessions(), circuit, batch, mine, theirs)
    check(circuit, values, batch, g, e)
    assert transcript.rounds <= 3


KNOWN: dict[str, tuple[Kind, Callable[[Builder, Callable[[Held], int]], int]]] = {
    "garbler": (Kind.AND_GARBLER, lambda b, of: of(Held.GARBLER)),
    "not the garbler's": (Kind.AND_GARBLER, lambda b, of: of(Held.GARBLER) ^ 1),
    "two of the garbler": (Kind.AND_GARBLER, lambda b, of: b.xor(of(Held.GARBLER), of(Held.GARBLER))),
    "garbler, public": (Kind.AND_GARBLER, lambda b, of: b.xor(of(Held.GARBLER), of(Held.PUBLIC))),
    "not garbler, public": (Kind.AND_GARBLER, lambda b, of: b.xor(of(Held.GARBLER), of(Held.PUBLIC)) ^ 1),
    "evaluator": (Kind.AND_EVALUATOR, lambda b, of: of(Held.EVALUATOR)),
    "not the evaluator's": (Kind.AND_EVALUATOR, lambda b, of: of(Held.EVALUATOR) ^ 1),
    "two of the evaluator": (
        Kind.AND_EVALUATOR,
        lambda b, of: b.xor(of(Held.EVALUATOR), of(Held.EVALUATOR)) ^ 1,
    ),
    "evaluator, public": (Kind.AND, lambda b, of: b.xor(of(Held.EVALUATOR), of(Held.PUBLIC))),
    "of both": (Kind.AND, lambda b, of: b.xor(of(Held.GARBLER), of(Held.EVALUATOR))),
    "shared": (Kind.AND, lambda b, of: of(Held.XOR_SHARED)),
    "summands of one bit": (Kind.AND, lambda b, of: of(Held.ADDITIVE_SHARED)),
}


@pytest.mark.parametrize(("kind", "operand"), [*KNOWN.values()], ids=[*KNOWN])
@pytest.mark.parametrize("flip", [0, 1])
def test_a_gate_with_a_bit_that_a_side_knows(
    kind: Kind, operand: Callable[[Builder, Callable[[Held], int]], int], flip: int
) -> None:
    """It is of its kind, and right for every value; the same with the operands exchanged."""
    b, names = Builder("known"), iter("abcdef")

    def of(held: Held) -> int:
        ((literal,),) = b.input(next(names), held, 1)
        return literal

    (coin,) = b.input("coin", Held.XOR_SHARED, 1)
    known = operand(b, of)
    b.output("known", To.BOTH, [[known]])
    b.output("coin", To.BOTH, [coin])
    b.output("and", To.BOTH, [[b.and_(known, coin[0] ^ flip)]])
    circuit = b.build()
    assert {each: circuit.gates(each) for each in BLOCKS} == {**dict.fromkeys(BLOCKS, 0), kind: 1}
    assert circuit.table_blocks == BLOCKS[kind]
    _, mine, theirs = split(circuit, 200)
    g, e, _ = run(two_party_sessions(), circuit, 200, mine, theirs)
    found = [opened(circuit, name, g, e).astype(int) for name in ("known", "coin", "and")]
    assert np.array_equal(found[2], found[0] & (found[1] ^ flip))
    assert {*zip(*(words.ravel().tolist() for words in found[:2]), strict=True)} == {
        *product((0, 1), repeat=2)
    }


def test_the_shares_of_a_word_are_known_to_their_sides() -> None:
    b = Builder("shares")
    (bit,) = b.input("bit", Held.XOR_SHARED, 1)[0]
    ((garblers, evaluators),) = b.shares("x", 3)
    kept = [[b.and_(bit, x) for x in share] for share in (garblers, evaluators)]
    b.output("sum", To.BOTH, [add(b, *kept)])
    circuit = b.build()
    assert [circuit.gates(kind) for kind in (Kind.AND_GARBLER, Kind.AND_EVALUATOR)] == [3, 3]
    values, mine, theirs = split(circuit, 100)
    g, e, _ = run(two_party_sessions(), circuit, 100, mine, theirs)
    assert np.array_equal(opened(circuit, "sum", g, e), values["bit"] * values["x"])


# --- sessions and carried words ---------------------------------------------------------------------------


def keep(width: int = 6, count: int = 3) -> Circuit:
    b = Builder("keep")
    words = b.input("x", Held.ADDITIVE_SHARED, width, count)
    b.output("kept", To.CARRIED, [[bit ^ 1 for bit in word] for word in words])
    return b.build()


def show(width: int = 6, count: int = 4) -> Circuit:
    b = Builder("show")
    words = b.input("carried", Held.CARRIED, width, count)
    (y,) = b.input("y", Held.EVALUATOR, width)
    b.output("sums", To.BOTH, [add(b, word, y) for word in words])
    b.output("plain", To.GARBLER, words)
    return b.build()


@pytest.mark.parametrize("sessions", SESSIONS)
def test_carried_words_go_from_run_to_run(sessions: Callable[[], tuple[object, object]]) -> None:
    """2 instances of 3 words and 1 of 3 are put in a row, picked from, and fed as 2 instances of 4 words."""
    pair, first = sessions(), keep()
    kept: list[list[object]] = [[], []]
    plain: list[int] = []
    for batch, seed in ((2, 1), (1, 2)):
        values, mine, theirs = split(first, batch, seed)
        outputs = run(pair, first, batch, mine, theirs)
        plain += [63 - int(v) for v in values["x"].reshape(-1)]
        for side in (0, 1):
            kept[side].append(outputs[side]["kept"])
    assert len(kept[0][0]) == 6  # type: ignore[arg-type]
    picked = [8, 0, 0, 3, 5, 7, 1, 2]
    joined = [type(side[0]).concatenate(side).take(picked) for side in kept]  # type: ignore[attr-defined]
    y = np.array([[9], [60]], dtype=np.uint64)
    g, e, _ = run(pair, show(), 2, {"carried": joined[0]}, {"carried": joined[1], "y": y})
    expected = np.array([plain[i] for i in picked], dtype=np.uint64).reshape(2, 4)
    assert np.array_equal(g["plain"], expected)  # type: ignore[arg-type]
    assert np.array_equal(g["sums"], (expected + y) % 64)  # type: ignore[arg-type]
    assert np.array_equal(g["sums"], e["sums"])  # type: ignore[arg-type]


def test_carried_words_become_longer_and_shorter() -> None:
    """Zeros above; or the low bits alone. In both the words that there were."""
    pair, first = two_party_sessions(), keep()
    values, mine, theirs = split(first, 2, 3)
    plain = 63 - values["x"].reshape(-1)
    g, e, _ = run(pair, first, 2, mine, theirs)
    for width in (3, 6, 11):
        words = [side["kept"].resized(width) for side in (g, e)]  # type: ignore[union-attr]
        assert [word.width for word in words] == [width] * 2
        inputs = {"carried": words[1], "y": np.ones((2, 1), dtype=np.uint64)}
        shown, sums, _ = run(pair, show(width, 3), 2, {"carried": words[0]}, inputs)
        expected = (plain % 2**width).reshape(2, 3)
        assert np.array_equal(shown["plain"], expected)  # type: ignore[arg-type]
        assert np.array_equal(sums["sums"], (expected + 1) % 2**width)  # type: ignore[arg-type]


def test_carried_words_cost_nothing() -> None:
    b = Builder("open")
    b.output("o", To.BOTH, b.input("x", Held.CARRIED, 6, 3))
    circuit, pair = b.build(), two_party_sessions()
    _, mine, theirs = split(keep(), 1)
    g, e, first = run(pair, keep(), 1, mine, theirs)
    assert first.bytes_sent("g") == 16 * keep().table_blocks  # nothing to open the kept words with
    _, _, second = run(pair, circuit, 1, {"x": g["kept"]}, {"x": e["kept"]})
    assert second.bytes_sent("g") == 16 + 3 + 16 * 18  # digest, 18 bits, hashes of both labels of each
    assert second.bytes_sent("e") == 8 * 18


def test_words_of_the_sides_must_have_one_origin() -> None:
    pair = two_party_sessions()
    _, mine, theirs = split(keep(), 2)
    g, e, _ = run(pair, keep(), 2, mine, theirs)
    carried = (g["kept"].take([0, 1, 2, 3]), e["kept"].take([0, 1, 2, 4]))  # type: ignore[union-attr, arg-type]
    y = np.zeros((1, 1), dtype=np.uint64)
    with pytest.raises(RemoteProtocolError, match="another run"):
        run(pair, show(), 1, {"carried": carried[0]}, {"carried": carried[1], "y": y})


def test_carried_words_belong_to_their_session() -> None:
    pair, other = two_party_sessions(1), two_party_sessions(2)
    _, mine, theirs = split(keep(), 1)
    kept = run(pair, keep(), 1, mine, theirs)[0]["kept"]
    strange = run(other, keep(), 1, mine, theirs)[0]["kept"]
    assert isinstance(kept, CarriedWords)
    assert isinstance(strange, CarriedWords)
    with pytest.raises(LocalProtocolError, match="this session"):
        next(pair[0].run(show(count=3), 1, {"carried": strange}))
    with pytest.raises(LocalProtocolError, match="one session"):
        CarriedWords.concatenate([kept, strange])
    with pytest.raises(LocalProtocolError, match="needs 4 words of 6 bits"):
        next(pair[0].run(show(), 1, {"carried": kept}))
    with pytest.raises(LocalProtocolError, match="needs 3 words of 5 bits"):
        next(pair[0].run(show(5, 3), 1, {"carried": kept}))
    with pytest.raises(LocalProtocolError, match="held as carried"):
        next(pair[0].run(show(count=3), 1, {"carried": np.zeros((1, 3), dtype=np.uint64)}))
    with pytest.raises(LocalProtocolError, match="outside of the 3"):
        kept.take([3])
    with pytest.raises(LocalProtocolError, match="outside of the 3"):
        kept.take([-1])
    assert repr(kept) == "CarriedWords(3 words of 6 bits, <secret>)"


def test_coins_are_the_sum_of_both_sides_coins() -> None:
    """With one side's coins fixed, the other side's decide: neither alone knows the sum."""
    b = Builder("coins")
    b.output("coins", To.BOTH, b.input("c", Held.COINS, 64, 4))
    circuit = b.build()
    seen = {}
    for mine, theirs in ((1, 1), (1, 2), (2, 1)):
        g, e = two_party_sessions(0)
        g._rng, e._rng = SeededRng(("g", mine)), SeededRng(("e", theirs))
        out, _, _ = run((g, e), circuit, 3, {}, {})
        seen[mine, theirs] = np.asarray(out["coins"]).copy()
    assert len({v.tobytes() for v in seen.values()}) == 3
    words = [np.frombuffer(SeededRng((who, 1)).bytes(96), dtype=np.uint8) for who in "ge"]
    bits = (np.unpackbits(words[0], bitorder="little") ^ np.unpackbits(words[1], bitorder="little")).reshape(
        256, 3
    )
    assert np.array_equal(
        seen[1, 1],
        np.packbits(bits.reshape(4, 64, 3), axis=1, bitorder="little")
        .transpose(2, 0, 1)
        .copy()
        .view(np.uint64)[:, :, 0],
    )


def test_a_session_is_opened_by_base_transfers() -> None:
    sessions, transcript = run_local(
        {
            "g": two_party.open_garbler("g", "e", SeededRng("g")),
            "e": two_party.open_evaluator("e", "g", SeededRng("e")),
        }
    )
    assert (transcript.rounds, transcript.bytes_sent("g"), transcript.bytes_sent("e")) == (2, 4096, 32)
    g, e = sessions["g"], sessions["e"]
    assert isinstance(g, GarblerSession)
    assert isinstance(e, EvaluatorSession)
    assert (repr(g), repr(e)) == (
        "GarblerSession(peer='e', <secret>)",
        "EvaluatorSession(peer='g', <secret>)",
    )
    assert (g.role, e.role) == (Held.GARBLER, Held.EVALUATOR)


def opened_sessions(seed: object) -> tuple[GarblerSession, EvaluatorSession]:
    sessions, _ = run_local(
        {
            "g": two_party.open_garbler("g", "e", SeededRng((seed, "g"))),
            "e": two_party.open_evaluator("e", "g", SeededRng((seed, "e"))),
        }
    )
    g, e = sessions["g"], sessions["e"]
    assert isinstance(g, GarblerSession)
    assert isinstance(e, EvaluatorSession)
    return g, e


@pytest.mark.parametrize("seed", range(8))
def test_opened_sessions_compute_whatever_the_coins(seed: int) -> None:
    """The offset comes out of the coins here, not from the test: its lowest bit must be 1 all the same."""
    circuit = rich()
    values, mine, theirs = split(circuit, 20, seed)
    g, e, _ = run(opened_sessions(seed), circuit, 20, mine, theirs)
    check(circuit, values, 20, g, e)


# --- cost -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "rounds", "decoded", "returned"),
    [
        (To.GARBLER, 3, 0, 1),
        (To.EVALUATOR, 2, 1, 0),
        (To.BOTH, 3, 1, 1),
        (To.XOR_SHARED, 2, 0, 0),
        (To.ADDITIVE_SHARED, 2, 1, 0),
        (To.CARRIED, 2, 0, 0),
    ],
)
@pytest.mark.parametrize("batch", [1, 100])
def test_cost_is_as_documented(to: To, rounds: int, decoded: int, returned: int, batch: int) -> None:
    circuit = comparison(8, to)
    _, mine, theirs = split(circuit, batch)
    _, _, transcript = run(two_party_sessions(), circuit, batch, mine, theirs)
    assert transcript.rounds == rounds
    proof = returned * 16 * batch
    assert transcript.bytes_sent("g") == 16 * batch * circuit.table_blocks + decoded * -(-batch // 8) + proof
    assert transcript.bytes_sent("e") == 16 + transfer_bytes(8 * batch) + returned * 8 * batch
    assert transcript.bytes_sent() == batches.Run(circuit, batch, {}, b"").total_bytes
    steps = ("two_party/choices", "two_party/tables", "two_party/outputs")
    assert transcript.steps == steps[:rounds]


def test_without_choices_the_garbler_opens() -> None:
    b = Builder("own")
    x, y = b.input("x", Held.GARBLER, 4, 2)
    b.output("less", To.EVALUATOR, [[less(b, x, y)]])
    circuit = b.build()
    values, mine, _ = split(circuit, 3)
    g, e, transcript = run(two_party_sessions(), circuit, 3, mine, {})
    check(circuit, values, 3, g, e)
    assert (transcript.rounds, transcript.bytes_sent("e")) == (1, 0)
    assert transcript.bytes_sent("g") == 16 + 16 * 3 * circuit.table_blocks + 1


def test_an_empty_batch_costs_a_digest() -> None:
    _, mine, theirs = split(comparison(), 0)
    _, _, transcript = run(two_party_sessions(), comparison(), 0, mine, theirs)
    assert (transcript.rounds, transcript.bytes_sent("g"), transcript.bytes_sent("e")) == (1, 0, 16)
    assert batches.Run(comparison(), 0, {}, b"").total_bytes == 16


def test_rounds_of_many_chunks_and_bounded_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later chunks wait for earlier ones, LOOKAHEAD at a time; no message is longer than a piece."""
    monkeypatch.setattr(batches, "BLOCK_GATES", 64)
    batch = 64 * (2 * batches.LOOKAHEAD + 1)
    _, mine, theirs = split(comparison(), batch)
    _, _, transcript = run(two_party_sessions(), comparison(), batch, mine, theirs)
    assert transcript.rounds == 3 * 2 + 1
    cut = batches.Run(comparison(), batch, {}, b"")
    assert (transcript.bytes_sent(), transcript.rounds) == (cut.total_bytes, 3 + cut.more_rounds)
    assert max(len(m.payload) for m in transcript.messages) <= 32 * 8 * 64 + 64 + 16 * 64


def test_batches_side_by_side_cost_the_rounds_of_one() -> None:
    """Small ones of different circuits; each gives what it gives alone, to the byte but for the coins."""
    asked = [(comparison(8, To.BOTH), 3), (rich(), 20), (keep(), 2), (comparison(), 0)]
    cases = [split(circuit, batch, number) for number, (circuit, batch) in enumerate(asked)]
    pair = two_party_sessions()
    outputs, transcript = run_local(
        {
            side: session.run_all([(*each, case[place]) for each, case in zip(asked, cases, strict=True)])
            for place, (side, session) in enumerate(zip("ge", pair, strict=True), 1)
        }
    )
    for number, ((circuit, batch), (values, _, _)) in enumerate(zip(asked, cases, strict=True)):
        check(circuit, values, batch, outputs["g"][number], outputs["e"][number])
    assert transcript.rounds == 3
    alone = [batches.Run(circuit, batch, {}, b"").total_bytes for circuit, batch in asked]
    assert transcript.bytes_sent() == sum(alone)


def test_rounds_of_several_large_batches_are_as_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BLOCK_GATES", 64)
    sizes = [64 * (batches.LOOKAHEAD + 1), 10, 64 * batches.LOOKAHEAD, 0, 64]
    cases = [split(comparison(), size) for size in sizes]
    _, transcript = run_local(
        {
            side: session.run_all(
                [(comparison(), n, case[place]) for n, case in zip(sizes, cases, strict=True)]
            )
            for place, (side, session) in enumerate(zip("ge", two_party_sessions(), strict=True), 1)
        }
    )
    more = batches.more_rounds([batches.Run(comparison(), n, {}, b"") for n in sizes])
    assert more == 4
    assert transcript.rounds == 3 + more


@pytest.mark.some(2)
@pytest.mark.parametrize("window", [1, 16 * 8 * 64, 16 * 8 * 200])
def test_choices_ahead_are_bounded(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the window: beyond the chunk that is due, no more than it holds is under way."""
    monkeypatch.setattr(batches, "BLOCK_GATES", 64)
    monkeypatch.setattr(batches, "WINDOW_BYTES", window)
    circuit = comparison(8, To.XOR_SHARED)
    values, mine, theirs = split(circuit, 320)
    g, e, transcript = run(two_party_sessions(), circuit, 320, mine, theirs)
    check(circuit, values, 320, g, e)
    under_way: list[int] = []
    beyond = []
    for message in transcript.messages:  # one message of choices and one of tables for each chunk here
        if message.step == "two_party/choices":
            under_way.append(len(message.payload))
            beyond.append(sum(under_way[1:]))
        elif message.step == "two_party/tables":
            under_way.pop(0)
    assert under_way == []
    assert max(beyond) <= window
    assert window == 1 or max(beyond) > 0


def test_golden_transcripts(golden: Golden) -> None:
    circuit, pair = rich(), two_party_sessions("golden")
    _, mine, theirs = split(circuit, 70)
    for name in ("first", "second"):
        golden.check("two_party", name, run(pair, circuit, 70, mine, theirs)[2].digest())
    opened_pair = opened_sessions("golden 0")
    golden.check("two_party", "opened", run(opened_pair, circuit, 70, mine, theirs)[2].digest())


# --- secrecy ----------------------------------------------------------------------------------------------


def share_only(to: To, held: Held) -> Circuit:
    b = Builder("share")
    b.output("o", to, b.input("x", held, 8, 4))
    return b.build()


@pytest.mark.parametrize("to", [To.XOR_SHARED, To.ADDITIVE_SHARED])
@pytest.mark.parametrize("held", [Held.GARBLER, Held.EVALUATOR, Held.XOR_SHARED, Held.ADDITIVE_SHARED])
@pytest.mark.parametrize("value", [0, 255])
def test_shares_are_uniform_on_either_side(to: To, held: Held, value: int) -> None:
    """Also of bits that a side knows, and of sums of bits of both sides: a third party may see a share."""
    circuit, batch = share_only(to, held), 3000
    x = np.full((batch, 4), value, dtype=np.uint64)
    mine = {} if held is Held.EVALUATOR else {"x": x}
    theirs = {} if held is Held.GARBLER else {"x": x if held is Held.EVALUATOR else x * 0}
    g, e, _ = run(two_party_sessions(value), circuit, batch, mine, theirs)
    assert set(opened(circuit, "o", g, e).reshape(-1).tolist()) == {value}
    for side in (g, e):
        assert byte_statistic(np.asarray(side["o"]).astype(np.uint8).tobytes()) < BYTE_LIMIT


@pytest.mark.parametrize("party", ["g", "e"])
def test_views_are_uniform_whatever_the_others_input(party: str) -> None:
    """Choices and tables, for two extreme inputs of the party that sends them; sizes and steps are equal."""
    shapes = []
    for value in (0, 255):
        x = np.full((500, 1), value, dtype=np.uint64)
        _, _, transcript = run(two_party_sessions(value), comparison(), 500, {"x": x}, {"y": x})
        view = transcript.view(party)
        shapes.append([(m.step, len(m.payload)) for m in view])
        data = b"".join(m.payload for m in view if m.step != "two_party/outputs")
        assert byte_statistic(data) < BYTE_LIMIT
    assert shapes[0] == shapes[1]


def test_the_garbler_could_have_written_what_it_gets_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output labels are a function of the garbler's own labels and the output: they tell no more."""
    zeros: list[np.ndarray] = []
    plain = GarblerSession._receive_outputs

    def watch(self: GarblerSession, run_: object, chunk: slice, zero: np.ndarray, results: object) -> object:
        zeros.append(zero)
        return plain(self, run_, chunk, zero, results)  # type: ignore[arg-type]

    monkeypatch.setattr(GarblerSession, "_receive_outputs", watch)
    circuit, pair = comparison(8, To.GARBLER), two_party_sessions()
    _, mine, theirs = split(circuit, 100)
    g, _, transcript = run(pair, circuit, 100, mine, theirs)
    (payload,) = [m.payload for m in transcript.view("g") if m.step == "two_party/outputs"]
    inverted = circuit.outputs["less"].inverted
    value = np.asarray(g["less"])[:, 0] ^ inverted[0]
    assert np.array_equal(np.frombuffer(payload, dtype=np.uint64), zeros[0][0] ^ value * pair[0]._ot.delta[1])


def test_no_pair_of_labels_leaves_the_garbler() -> None:
    """No two aligned blocks of what the evaluator receives and derives differ by the offset."""
    circuit, pair = rich(), two_party_sessions("pairs")
    _, mine, theirs = split(circuit, 40)
    g, e, transcript = run(pair, circuit, 40, mine, theirs)
    tables = b"".join(m.payload[: len(m.payload) // 16 * 16] for m in transcript.view("e"))
    carried = e["carried"]
    assert isinstance(carried, CarriedWords)
    blocks = np.concatenate([np.frombuffer(tables, np.uint64), carried.labels.reshape(-1)]).reshape(-1, 2)
    seen = {(int(low), int(high)) for low, high in blocks}
    low, high = (int(word) for word in pair[0]._ot.delta)
    assert (low, high) not in seen
    # Words that are public or constant have the label 0, as said in crypto.garbling.
    assert not any((x ^ low, y ^ high) in seen for x, y in seen)
    zero = g["carried"]
    assert isinstance(zero, CarriedWords)
    difference = (zero.labels ^ carried.labels).reshape(-1, 2)
    assert {(int(x), int(y)) for x, y in difference} == {(0, 0), (low, high)}


Seeds = tuple[list[bytes], list[bytes]]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Seeds:
    """Record the keys that gates and output labels were hashed under, and the seeds of the garbler's input labels, at
    both sides.
    """
    monkeypatch.setattr(batches, "BLOCK_GATES", 64)
    keys: list[bytes] = []
    seeds: list[bytes] = []
    plain, draw = hashing.fixed_key_aes, two_party._draw_labels
    monkeypatch.setattr(hashing, "fixed_key_aes", lambda key: keys.append(key) or plain(key))
    monkeypatch.setattr(
        two_party, "_draw_labels", lambda seed, *rest: seeds.append(seed) or draw(seed, *rest)
    )
    return keys, seeds


def each_on_both_sides_once(used: Seeds, chunks: int) -> bool:
    both = [*used[0], *used[1]]
    return len(both) == 6 * chunks and {both.count(key) for key in both} == {2}


def test_no_key_tweak_or_label_seed_is_used_twice(used: Seeds) -> None:
    """Over two sessions, several runs and chunks: every chunk has its own, on both sides the same."""
    for seed in (1, 2):
        pair = two_party_sessions(seed)
        for batch in (1, 200, 1):
            _, mine, theirs = split(comparison(), batch)
            run(pair, comparison(), batch, mine, theirs)
    assert each_on_both_sides_once(used, 2 * (1 + 4 + 1))


def test_sessions_that_share_their_transfers_share_no_key(used: Seeds) -> None:
    sender, receiver = ot_sessions("shared", "g", "e")
    values, mine, theirs = split(comparison(), 70)
    for _ in range(3):
        pair = GarblerSession(sender, SeededRng("g")), EvaluatorSession(receiver, SeededRng("e"))
        g, e, _ = run(pair, comparison(), 70, mine, theirs)
        check(comparison(), values, 70, g, e)
    assert each_on_both_sides_once(used, 3 * 2)


def test_two_runs_of_the_same_inputs_share_no_block() -> None:
    pair = two_party_sessions()
    _, mine, theirs = split(comparison(), 20)
    seen: list[bytes] = []
    for _ in range(2):
        _, _, transcript = run(pair, comparison(), 20, mine, theirs)
        seen += [
            m.payload[i : i + 16] for m in transcript.messages for i in range(0, len(m.payload) - 15, 16)
        ]
    assert len(set(seen)) == len(seen)


# --- bad input --------------------------------------------------------------------------------------------


def test_our_own_mistakes_are_refused_before_a_byte_is_sent() -> None:
    g, e = two_party_sessions()
    circuit = comparison()
    one = np.ones((1, 1), dtype=np.uint64)
    bad: list[tuple[Rounds[Outputs], str]] = [
        (g.run(circuit, 1, {}), "inputs"),
        (g.run(circuit, 1, {"x": one, "y": one}), r"this side passes \['x'\]"),
        (e.run(circuit, 1, {"x": one}), r"this side passes \['y'\]"),
        (g.run(circuit, 2, {"x": one}), r"shape \(1, 1\), not \(2, 1\)"),
        (g.run(circuit, -1, {"x": one}), "batch of -1"),
        (g.run(circuit, 1, {"x": one * np.uint64(256)}), "do not fit 8 bits"),
        (g.run(circuit, 1, {"x": one.astype(np.int64) * -1}), "negative"),
    ]
    for generator, reason in bad:
        with pytest.raises(LocalProtocolError, match=reason):
            next(generator)
    values, mine, theirs = split(circuit, 1)  # and the session is still good
    check(circuit, values, 1, *run((g, e), circuit, 1, mine, theirs)[:2])


DISAGREEMENTS = {
    "circuit": lambda x: (comparison(8), 2, comparison(9), 2),
    "destination": lambda x: (comparison(8), 2, comparison(8, To.EVALUATOR), 2),
    "batch": lambda x: (comparison(8), 2, comparison(8), 3),
    "empty batch": lambda x: (comparison(8), 2, comparison(8), 0),
    "empty batch here": lambda x: (comparison(8), 0, comparison(8), 2),
}


@pytest.mark.parametrize("case", DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_sides_that_disagree_part_before_a_table_is_sent(
    case: Callable[[int], tuple[Circuit, int, Circuit, int]],
) -> None:
    mine, n, theirs, m = case(0)
    g, e = two_party_sessions()
    sent: list[str] = []

    def watch(message: Message) -> bytes:
        sent.append(message.step)
        return message.payload

    with pytest.raises(RemoteProtocolError, match="another run") as caught:
        run_local(
            {
                "g": g.run(mine, n, {"x": np.zeros((n, 1), dtype=np.uint64)}),
                "e": e.run(theirs, m, {"y": np.zeros((m, 1), dtype=np.uint64)}),
            },
            tamper=watch,
        )
    assert (caught.value.culprit, caught.value.step) == ("e", "two_party/choices")
    assert set(sent) == {"two_party/choices"}


def public_circuit() -> Circuit:
    b = Builder("public")
    (x,), (p,) = b.input("x", Held.GARBLER, 4), b.input("p", Held.PUBLIC, 4)
    b.output("less", To.EVALUATOR, [[less(b, x, p)]])
    return b.build()


def test_public_inputs_must_agree() -> None:
    g, e = two_party_sessions()
    x, p = np.zeros((1, 1), dtype=np.uint64), np.ones((1, 1), dtype=np.uint64)
    with pytest.raises(RemoteProtocolError, match="another run") as caught:
        run((g, e), public_circuit(), 1, {"x": x, "p": p}, {"p": p + p})
    assert (caught.value.culprit, caught.value.step) == ("g", "two_party/tables")


def test_another_run_that_the_garbler_opens_is_refused_whatever_its_length() -> None:
    """Carried words of another number: the digest is compared before the length."""
    pair = two_party_sessions()
    _, mine, theirs = split(keep(), 1)
    g, e, _ = run(pair, keep(), 1, mine, theirs)
    circuits = []
    for count in (3, 2):
        b = Builder("open")
        b.output("o", To.EVALUATOR, b.input("x", Held.CARRIED, 6, count))
        circuits.append(b.build())
    kept = e["kept"].take([0, 1])  # type: ignore[union-attr]
    with pytest.raises(RemoteProtocolError, match="another run") as caught:
        run_local(
            {
                "g": pair[0].run(circuits[0], 1, {"x": g["kept"]}),
                "e": pair[1].run(circuits[1], 1, {"x": kept}),
            }
        )
    assert (caught.value.culprit, caught.value.step) == ("g", "two_party/tables")


@pytest.mark.parametrize("batches_", [(0, 2), (2, 0), (0, 0)])
def test_an_empty_batch_of_a_circuit_without_choices(batches_: tuple[int, int]) -> None:
    """The garbler opens whatever the batch, so sides that differ in it do not wait for each other."""
    n, m = batches_
    g, e = two_party_sessions()
    x, y = (np.zeros((batch, 1), dtype=np.uint64) for batch in batches_)
    parties = {
        "g": g.run(public_circuit(), n, {"x": x, "p": x}),
        "e": e.run(public_circuit(), m, {"p": y}),
    }
    if n == m:
        _, transcript = run_local(parties)
        assert [(msg.sender, msg.step, len(msg.payload)) for msg in transcript.messages] == [
            ("g", "two_party/tables", 16)
        ]
        return
    with pytest.raises(RemoteProtocolError, match="another run") as caught:
        run_local(parties)
    assert (caught.value.culprit, caught.value.step) == ("g", "two_party/tables")


def test_an_empty_batch_takes_a_digest_and_no_more() -> None:
    _, mine, theirs = split(comparison(), 0)
    with pytest.raises(RemoteProtocolError, match="1 bytes where 0") as caught:
        run(two_party_sessions(), comparison(), 0, mine, theirs, tamper=lambda m: m.payload + b"\0")
    assert (caught.value.culprit, caught.value.step) == ("e", "two_party/choices")


def test_runs_must_come_in_the_same_order() -> None:
    g, e = two_party_sessions()
    x = np.zeros((1, 1), dtype=np.uint64)
    next(g.run(public_circuit(), 1, {"x": x, "p": x}))
    g._usable = True  # as if a run had ended well on one side only
    with pytest.raises(RemoteProtocolError, match="another run"):
        run((g, e), comparison(), 1, {"x": x}, {"y": x})


def test_a_session_that_broke_off_is_not_used_again() -> None:
    g, e = two_party_sessions()
    x = np.zeros((1, 1), dtype=np.uint64)
    with pytest.raises(RemoteProtocolError):
        run((g, e), comparison(), 1, {"x": x}, {"y": x}, tamper=lambda m: m.payload[:-1])
    for session, name in ((g, "x"), (e, "y")):
        with pytest.raises(LocalProtocolError, match="broke off"):
            next(session.run(comparison(), 1, {name: x}))


def test_two_runs_at_once_are_refused() -> None:
    g, _ = two_party_sessions()
    x = np.zeros((1, 1), dtype=np.uint64)
    first = g.run(comparison(), 1, {"x": x})
    next(first)
    with pytest.raises(LocalProtocolError, match="a run of the session is not finished"):
        next(g.run(comparison(), 1, {"x": x}))


@pytest.mark.parametrize(
    ("step", "culprit"), [("two_party/choices", "e"), ("two_party/tables", "g"), ("two_party/outputs", "e")]
)
@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"", lambda p: p[:20]])
def test_a_wrong_length_names_the_culprit(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload

    _, mine, theirs = split(comparison(), 9)
    with pytest.raises(RemoteProtocolError) as caught:
        run(two_party_sessions(), comparison(), 9, mine, theirs, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("step", ["two_party/choices", "two_party/tables", "two_party/outputs"])
def test_a_dropped_message_is_an_error_not_a_hang(step: str) -> None:
    _, mine, theirs = split(comparison(), 1)
    with pytest.raises(LocalProtocolError, match="every party waits"):
        run(
            two_party_sessions(),
            comparison(),
            1,
            mine,
            theirs,
            tamper=lambda m: None if m.step == step else m.payload,
        )


def test_another_step_is_the_peers_fault() -> None:
    g, e = two_party_sessions()
    x = np.zeros((1, 1), dtype=np.uint64)
    for session, name in ((g, "x"), (e, "y")):
        with pytest.raises(RemoteProtocolError, match="a message of step other") as caught:
            run_local({"me": _renamed(session, name, x), session.peer: send("other", {"me": b""})})
        assert caught.value.culprit == session.peer


def _renamed(session: GarblerSession | EvaluatorSession, name: str, x: np.ndarray) -> Rounds[object]:
    return session.run(comparison(), 1, {name: x})  # type: ignore[return-value]


def flip(step: str, byte: int, bit: int = 0) -> Callable[[Message], bytes]:
    def tamper(message: Message) -> bytes:
        if message.step != step:
            return message.payload
        flipped = bytearray(message.payload)
        flipped[byte] ^= 1 << bit
        return bytes(flipped)

    return tamper


def test_a_flipped_bit_in_the_digest_is_refused() -> None:
    _, mine, theirs = split(comparison(), 9)
    for byte in (0, 15):
        with pytest.raises(RemoteProtocolError, match="another run"):
            run(two_party_sessions(), comparison(), 9, mine, theirs, tamper=flip("two_party/choices", byte))


def test_a_flipped_bit_in_an_output_label_is_refused() -> None:
    _, mine, theirs = split(comparison(), 9)
    for byte in range(0, 72, 7):
        with pytest.raises(RemoteProtocolError, match="differs from both labels of the wire") as caught:
            run(two_party_sessions(), comparison(), 9, mine, theirs, tamper=flip("two_party/outputs", byte))
        assert (caught.value.culprit, caught.value.step) == ("e", "two_party/outputs")


@pytest.mark.parametrize("to", [To.GARBLER, To.BOTH])
def test_no_label_of_a_bent_table_goes_back(to: To) -> None:
    """A label there would tell the garbler all bits of the evaluator that it depends on."""
    b = Builder("equal")
    (x,), (y,) = b.input("x", Held.GARBLER, 12), b.input("y", Held.EVALUATOR, 12)
    b.output("equal", to, [[equal(b, x, y)]])
    circuit = b.build()
    rng = np.random.default_rng(0)
    told = []
    for own in range(24):
        bent = rng.integers(0, 256, 16 * circuit.table_blocks, dtype=np.uint8)
        steps = []

        def tamper(message: Message, bent: np.ndarray = bent, steps: list[str] = steps) -> bytes:
            steps.append(message.step)
            if message.step != "two_party/tables":
                return message.payload
            payload = np.frombuffer(message.payload, dtype=np.uint8).copy()
            payload[: len(bent)] ^= bent
            return payload.tobytes()

        inputs = {"x": np.full((1, 1), own, np.uint64)}, {"y": np.full((1, 1), 170 * own, np.uint64)}
        with pytest.raises(
            RemoteProtocolError, match="an output label is neither label of the wire"
        ) as caught:
            run(two_party_sessions(own), circuit, 1, *inputs, tamper=tamper)
        told.append((caught.value.culprit, caught.value.step, steps))
    assert told == [("g", "two_party/tables", ["two_party/choices", "two_party/tables"])] * 24


@pytest.mark.parametrize("place", [0, 7, 8, 15])
def test_a_flipped_bit_of_a_proof_is_refused_or_without_effect(place: int) -> None:
    """A word of two belongs to the evaluator's label."""
    circuit = comparison(8, To.GARBLER)
    outcomes = set()
    for seed in range(12):
        _, mine, theirs = split(circuit, 1, seed)
        bent = flip("two_party/tables", 16 * circuit.table_blocks + place)
        try:
            run(two_party_sessions(seed), circuit, 1, mine, theirs, tamper=bent)
        except RemoteProtocolError as error:
            outcomes.add((error.culprit, error.step))
        else:
            outcomes.add(("", ""))
    assert outcomes == {("g", "two_party/tables"), ("", "")}


@pytest.mark.some(1)
@pytest.mark.parametrize("step", ["two_party/choices", "two_party/tables"])
def test_a_flipped_bit_elsewhere_is_refused_or_without_effect(step: str) -> None:
    """One gate, output to the garbler: a damaged label that is used is neither of its wire's, unless the check of the
    transfers has found the damage before.
    """
    b = Builder("and")
    (x,), (y,) = b.input("x", Held.GARBLER, 1), b.input("y", Held.EVALUATOR, 1)
    b.output("and", To.GARBLER, [[b.and_(x[0], y[0])]])
    circuit = b.build()
    outcomes = set()
    for byte in range(32):
        for value in (0, 1):
            inputs = {"x": np.full((1, 1), value, dtype=np.uint64)}, {"y": np.ones((1, 1), dtype=np.uint64)}
            # choices: one row of 32 bytes for every four bits of the label, one transfer in its lowest bit
            place = 16 + 32 * byte if step.endswith("choices") else byte
            try:
                ends = two_party_sessions((byte, value))
                g, _, _ = run(ends, circuit, 1, *inputs, tamper=flip(step, place))
            except RemoteProtocolError as error:
                outcomes.add(f"{error.culprit} refused at {error.step}")
            else:
                assert int(np.asarray(g["and"])[0, 0]) == value
                outcomes.add("no effect")
    expected = {"g refused at two_party/tables", "no effect"}  # a table's block may be one that no label uses
    assert outcomes == ({f"e refused at {step}"} if step.endswith("choices") else expected)


def test_a_flipped_decoding_bit_changes_an_output_of_the_evaluator() -> None:
    """Semi-honest means: nothing vouches for the bits that the garbler sends for decoding."""
    circuit = comparison(8, To.EVALUATOR)
    values, mine, theirs = split(circuit, 1)
    _, e, _ = run(two_party_sessions(), circuit, 1, mine, theirs, tamper=flip("two_party/tables", -1))
    assert np.asarray(e["less"])[0, 0] == 1 - evaluate(circuit, 1, values)["less"][0, 0]


def test_set_padding_bits_are_refused() -> None:
    circuit = comparison(8, To.EVALUATOR)
    _, mine, theirs = split(circuit, 1)
    with pytest.raises(RemoteProtocolError, match="padding") as caught:
        run(two_party_sessions(), circuit, 1, mine, theirs, tamper=flip("two_party/tables", -1, 3))
    assert (caught.value.culprit, caught.value.step) == ("g", "two_party/tables")
