"""Sealed local suppression: the single holder's table, bit for bit, and nothing beyond the list of the mode."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.joint import pair
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.trajectory import sealed
from anonymize.table import Ints
from anonymize.tds import Observer
from anonymize.trajectory.sweep import local_alone
from anonymize.verification.sequences import Claim, bound_of, examine
from crypto.circuit import Held, To
from crypto.local import Transcript
from crypto.rng import Rng
from crypto.rounds import Rounds
from tests.support.computations import Computed
from tests.support.examples import examples
from tests.support.horizontal import Revealed
from tests.support.ideal import IdealSession
from tests.support.paths import ITEMS_41, Definition, Record, bounds, local_by_sets, paths_from, table_41
from tests.support.sequences import MODE, MOST, all_records, run_sealed_sequences, split

DOMAIN = 6
RECORDS = st.lists(
    st.tuples(st.frozensets(st.integers(0, DOMAIN - 1)), st.integers(0, 1)), min_size=2, max_size=8
)
EXAMPLE = bounds(2, 2, "1/2", 4, [0])
"""Of the thesis' Table 4.1."""


def open_ideal_garbler(me: str, peer: str, rng: Rng) -> Rounds[Any]:
    return IdealSession(Held.GARBLER, peer, rng)
    yield


def open_ideal_evaluator(me: str, peer: str, rng: Rng) -> Rounds[Any]:
    return IdealSession(Held.EVALUATOR, peer, rng)
    yield


@settings(max_examples=examples(100), deadline=None)
@given(
    records=RECORDS,
    L=st.integers(1, 3),
    K=st.integers(1, 4),
    C=st.sampled_from(["1", "2/3", "1/2"]),
    data=st.data(),
)
def test_equals_the_single_holder(records: list[Record], L: int, K: int, C: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 4))
    owners = data.draw(st.lists(st.integers(0, n - 1), min_size=len(records), max_size=len(records)))
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    asked, tables = bounds(L, K, C), split(records, owners, n, DOMAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair, "open_garbler", open_ideal_garbler)
        patch.setattr(pair, "open_evaluator", open_ideal_evaluator)
        definition = Definition(L, K, C)
        if not definition.keeps((), records):
            with pytest.raises(PrivacyError, match="already violates K") as caught:
                run_sealed_sequences(tables, asked, leader=leader, deputy=deputy)
            assert caught.value.error_id == "requirement-unmet"
            return
        results, _ = run_sealed_sequences(tables, asked, leader=leader, deputy=deputy)
    alone = local_alone(paths_from(records, DOMAIN)[0], asked, MOST)
    expected, _ = local_by_sets(records, DOMAIN, definition)
    for i, result in enumerate(results.values()):
        assert all_records(result.table) == sorted((sorted(path), value) for path, value in expected)
        assert result.sweeps == alone.sweeps
        ours = [record for record, owner in zip(expected, owners, strict=True) if owner == i]
        assert all_records(result.own) == sorted((sorted(path), value) for path, value in ours)
        assert result.ledger.reveals == results["p0"].ledger.reveals


@pytest.mark.parametrize(("n", "L"), [(2, 2), (3, 2), (3, 3)])
def test_the_thesis_example(n: int, L: int) -> None:
    """With real circuits."""
    asked = bounds(L, 2, "1/2", 4, [0])
    tables = split(table_41(), [i % n for i in range(8)], n, len(ITEMS_41))
    results, _ = run_sealed_sequences(tables, asked)
    alone = local_alone(paths_from(table_41(), len(ITEMS_41))[0], asked, MOST)
    for result in results.values():
        assert all_records(result.table) == all_records(alone.paths)
        assert result.table.n_instances == {2: 24, 3: 19}[L]
        assert result.sweeps == alone.sweeps
    held = bound_of("s", [0], np.arange(4), Fraction(1, 2))
    assert examine(results["p0"].table, Claim(L, 2, (held,))).finding is None


def test_all_paths_may_be_lost() -> None:
    """One item each, all different: nobody is left with any, and there is no last sweep with anything to ask."""
    records = [(frozenset({i}), 0) for i in range(4)]
    results, _ = run_sealed_sequences(split(records, [0, 1, 0, 1], 2, 6), bounds(2, 2))
    assert all_records(results["p1"].table) == [([], 0)] * 4
    assert [sweep.tested for sweep in results["p1"].sweeps] == [(6, 0), (0, 0)]


def test_what_is_opened(revealed: Revealed, computed: list[Computed]) -> None:
    """The ledger holds what leaves circuits and mix, and nothing that the mode does not list."""
    tables = split(table_41(), [i % 3 for i in range(8)], 3, len(ITEMS_41))
    results, _ = run_sealed_sequences(tables, EXAMPLE)
    assert {name for name, _, _ in revealed[0]} == {row.name for row in ALLOWED[MODE]} - {"earlier_run"}
    assert all(seen == revealed[0] for seen in revealed)
    out = [
        value
        for c in computed
        for (_, to), value in c.out.items()
        if to is To.BOTH and c.role is Held.GARBLER
    ]
    bits = [value for name, value, _ in revealed[0] if name == "kept"]
    (root,), *of_sequences = out
    assert root == [1]
    assert [[bit == 1 for (bit,) in batch] for batch in of_sequences] == bits
    assert all(to is To.BOTH for c in computed for _, to in c.out)
    tested = [n for sweep in results["p0"].sweeps for n in sweep.tested if n]
    assert [len(batch) for batch in bits] == tested
    iterations = [r.iteration for r in results["p0"].ledger.reveals if r.name == "kept"]
    assert iterations == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(("n", "rounds"), [(2, 23), (3, 39)])
def test_rounds_and_bytes_are_those_of_its_parts(n: int, rounds: int) -> None:
    tables = split(table_41(), [i % n for i in range(8)], n, len(ITEMS_41))
    results, transcript = run_sealed_sequences(tables, EXAMPLE)
    sizes = sum(m > 0 for sweep in results["p0"].sweeps for m in sweep.tested)
    of_root, of_size, of_mix = (4, 2, 4) if n == 2 else (6, 4, 6)
    assert sizes == 6
    assert transcript.rounds == rounds <= 3 + of_root + of_size * sizes + of_mix
    tested = sum(sum(sweep.tested) for sweep in results["p0"].sweeps)
    assert sent(transcript, "shares/share") == (n - 2) * (8 * 2 + 4 * 4 + 2 * 2 * tested)
    width = 8 * 1 + 1
    assert sent(transcript, "mix/told") == (n - 1) * 8 * (width + 16)
    assert sent(transcript, "mix/sheet") == (n - 1) * 8 * (width + 32)


def sent(transcript: Transcript, step: str) -> int:
    return sum(len(m.payload) for m in transcript.messages if m.step == step)


class Watching(Observer):
    def __init__(self) -> None:
        self.own: list[list[int]] = []

    def opening_groups(self, own: Ints) -> None:
        self.own.append(own.tolist())


def test_an_owner_hears_how_many_of_its_records_have_what_is_published() -> None:
    """Before they leave: of all its records, then of every sequence that is kept in the end."""
    tables = split(table_41(), [i % 2 for i in range(8)], 2, len(ITEMS_41))
    watching = Watching()
    results, _ = run_sealed_sequences(tables, EXAMPLE, observers={"p1": watching})
    definition = Definition(2, 2, "1/2", [0])
    ours = [(frozenset(path), value) for path, value in all_records(results["p1"].own)]
    everybody = [(frozenset(path), value) for path, value in all_records(results["p1"].table)]
    singles, pairs = (
        [definition.counts(q, ours)[0] for q in sorted(definition.occurring(everybody)) if len(q) == i]
        for i in (1, 2)
    )
    assert watching.own == [[4], [4, *singles, *pairs]]


class Refusing(Observer):
    def opening_groups(self, own: Ints) -> None:
        if len(own) > 1:
            raise ValueError("too few of ours")


def test_who_refuses_sends_no_row() -> None:
    tables = split(table_41(), [i % 3 for i in range(8)], 3, len(ITEMS_41))
    sent: list[tuple[str, str]] = []

    def tamper(message: Any) -> Any:
        sent.append((message.sender, message.step))
        return message.payload

    with pytest.raises(ValueError, match="too few of ours"):
        run_sealed_sequences(tables, EXAMPLE, observers={"p2": Refusing()}, tamper=tamper)
    assert ("p2", "sequences/kept") not in sent
    assert not any(party == "p2" and step.startswith("mix/") for party, step in sent)


def test_too_many_sequences_of_a_size_are_refused_by_all() -> None:
    """Before they are counted: 21 pairs follow from the opened bits."""
    tables = split(table_41(), [i % 2 for i in range(8)], 2, len(ITEMS_41))
    run_sealed_sequences(tables, EXAMPLE, max_candidates=21)
    with pytest.raises(PrivacyError) as caught:
        run_sealed_sequences(tables, EXAMPLE, max_candidates=20)
    assert caught.value.error_id == "too-many-sequences"


def test_more_than_can_be_mixed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "MAX_BYTES", 8 * (8 + 1 + 32) - 1)
    tables = split(table_41(), [i % 2 for i in range(8)], 2, len(ITEMS_41))
    with pytest.raises(PrivacyError, match="more than 1 GiB") as caught:
        run_sealed_sequences(tables, EXAMPLE)
    assert caught.value.error_id == "too-many-rows"
