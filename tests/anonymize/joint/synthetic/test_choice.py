"""The joint noisy Kruskal: circuits as their integers, choices as the definition, laws over all coins, its costs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from anonymize.joint.dp import circuits
from anonymize.joint.dp.noise import revealed
from anonymize.joint.engine import Engine
from anonymize.joint.standings import SLOT, Entry, Standings
from anonymize.joint.synthetic import choice
from anonymize.joint.synthetic.choice import BLOCK, Contest, distance_circuit, n_blocks
from anonymize.synthetic.marginals import score
from anonymize.tds import Observer
from crypto.circuit import Held, Region, evaluate
from crypto.circuits.constants import geometric_plan
from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds
from tests.support.computations import watched
from tests.support.laws import exact_law
from tests.support.sessions import two_party_sessions
from tests.support.synthetic_joint import (
    forest_at_the_pair,
    kruskal,
    pairs_between,
    script_digits,
)


@pytest.mark.parametrize(("n_cells", "width"), [(1, 2), (3, 4), (16, 18), (5, 33)])
def test_distances_are_their_integers(n_cells: int, width: int) -> None:
    """Edges in all places, then random ones; of one width, and of one more than the sum needs."""
    half, rng = 1 << (width - 1), np.random.default_rng(width)
    edges = [-half, 1 - half, -1, 0, 1, half - 1]
    rows = [[edge] * n_cells for edge in edges] + rng.integers(-half, half, (40, n_cells)).tolist()
    values = np.array(rows, dtype=np.int64)
    expected = np.abs(values).sum(axis=1)
    given = {"difference": values.astype(np.uint64) & np.uint64(2 * half - 1)}
    for score_width in (int(half * n_cells).bit_length(), int(half * n_cells).bit_length() + 1):
        circuit = distance_circuit(n_cells, width, score_width)
        assert evaluate(circuit, len(rows), given)["score"][:, 0].tolist() == expected.tolist()


def test_a_cell_takes_two_gates_a_bit() -> None:
    circuit = distance_circuit(BLOCK, 18, 24)
    assert circuit.and_gates <= 2 * 18 * BLOCK


def contest_of(rng: Any, n_bins: tuple[int, ...], n_classes: int, most: int) -> tuple[Contest, list[Any]]:
    """Random counts, and what is expected of them, not of the same number of records."""
    pairs = pairs_between(n_bins, n_classes)
    expected = tuple(rng.integers(-3, 2 * most + 1, pair.shape) for pair in pairs)
    penalties = tuple(rng.integers(0, 30, len(pairs)).tolist())
    counts = [
        np.bincount(rng.integers(0, pair.size, most), minlength=pair.size).reshape(pair.shape)
        for pair in pairs
    ]
    return Contest(pairs, expected, penalties, most), counts


@pytest.mark.some(7)
@pytest.mark.parametrize(
    ("n_bins", "n_classes"), [((2, 2), 1), ((2, 1, 3), 2), ((3, 2, 4, 5), 2), ((2, 3, 2, 2, 17, 1), 3)]
)
@pytest.mark.parametrize("most", [0, 7, 900])
def test_choices_are_those_of_the_definition(
    n_bins: tuple[int, ...], n_classes: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of edges there can be, with noise that is known; all of it agrees at both ends."""
    rng = np.random.default_rng(most + len(n_bins))
    contest, counts = contest_of(rng, n_bins, n_classes, most)
    plan = geometric_plan(Fraction(1, 5), len(contest.pairs), Fraction(1, 2**20))
    for n_edges in range(len(n_bins)):
        drawn = rng.geometric(0.2, len(contest.pairs)) - 1
        script_digits(monkeypatch, plan, drawn.tolist())
        exact = map(score, counts, contest.expected, contest.penalties)
        noisy = [s + g for s, g in zip(exact, drawn.tolist(), strict=True)]
        found, _ = forest_at_the_pair(contest, counts, plan, n_edges)
        assert found["g"] == found["e"] == kruskal(contest.pairs, noisy, n_edges)


def test_the_law_of_a_choice_over_all_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pairs, two of them chosen, every outcome of the coins: the law that the definition gives, with ties."""
    pairs = pairs_between((2, 1, 1), 1)
    counts = [
        np.array(c, dtype=np.int64).reshape(p.shape) for c, p in zip([(2, 0), (1, 1), 2], pairs, strict=True)
    ]
    contest = Contest(pairs, tuple(np.zeros(p.shape, dtype=np.int64) for p in pairs), (1, 0, 1), 2)
    plan = geometric_plan(Fraction(3, 2), 3, Fraction(1, 4))
    outcomes = {k: p for k, p in exact_law(plan).items() if p}
    assert plan.width == 2
    found: Counter[tuple[int, ...]] = Counter()
    expected: Counter[tuple[int, ...]] = Counter()
    for drawn in product(outcomes, repeat=3):
        p = outcomes[drawn[0]] * outcomes[drawn[1]] * outcomes[drawn[2]]
        script_digits(monkeypatch, plan, drawn)
        found[forest_at_the_pair(contest, counts, plan, 2)[0]["e"]] += p  # type: ignore[assignment]
        expected[kruskal(pairs, [1 + drawn[0], 2 + drawn[1], 1 + drawn[2]], 2)] += p  # type: ignore[assignment]
    assert found == expected
    assert sum(found.values()) == 1
    assert len(found) == 6


def test_only_what_an_entry_stood_below_is_played_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven entries: six matches for the first winner; then those above the entries that fall out, with byes."""
    noisy = [5, 9, 9, 1, 0, 3, 4]
    played = watched(monkeypatch)

    def protocol(engine: Engine) -> Rounds[list[int]]:
        fields = yield from carried_words(engine, {"noisy": noisy, "tag": list(range(7))}, 4)
        standings = Standings(lambda bits: circuits.better_circuit((("noisy", 4), (SLOT, bits))))
        entries = [Entry(i, i, {"noisy": fields["noisy"].take([i])}) for i in range(7)]
        found = []
        for left in [range(7), [0, 2, 3, 4, 5, 6], [0, 3, 4, 5, 6], [0, 3, 4, 6], [4]]:
            best = yield from standings.best(engine, [entries[i] for i in left], fields["tag"])
            found.append((yield from revealed(engine, {SLOT: best[SLOT]}))[SLOT])
        return found

    g, e = (Engine(session, Observer()) for session in two_party_sessions())
    results, _ = run_local({"g": protocol(g), "e": protocol(e)})
    assert results == {"g": [1, 2, 0, 0, 4], "e": [1, 2, 0, 0, 4]}
    batches = [run.batch for run in played if run.role is Held.GARBLER and "better" in run.circuit.name]
    assert batches == [3, 2, 1, 1, 1, 1, 1, 1, 1]


def carried_words(engine: Engine, values: dict[str, list[int]], width: int) -> Rounds[Any]:
    """Public numbers as carried words."""
    found = {}
    for name, numbers in values.items():
        found[name] = yield from engine.carry(numbers, width)
    return found


def some_choice(n_edges: int, **how: Any) -> Any:
    contest, counts = contest_of(np.random.default_rng(1), (3, 2, 4, 5), 2, 200)
    plan = geometric_plan(Fraction(1, 5), len(contest.pairs), Fraction(1, 2**20))
    return forest_at_the_pair(contest, counts, plan, n_edges, **how)


@pytest.mark.parametrize(("n_edges", "rounds"), [(0, 4), (1, 5), (2, 7), (3, 9)])
def test_rounds_are_what_the_docstring_says(n_edges: int, rounds: int) -> None:
    assert some_choice(n_edges)[1].rounds == rounds


def test_bytes_are_those_of_the_gates_the_coins_and_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = watched(monkeypatch)
    _, transcript = some_choice(3)
    garbled = [run for run in computed if run.role is Held.GARBLER]
    assert transcript.bytes_sent() == sum(run.bytes_sent for run in garbled)
    blocks = sum(run.circuit.table_blocks * run.batch for run in garbled)
    choices = sum(run.circuit.region_rows[Region.EVALUATOR] * run.batch for run in garbled)
    assert 16 * blocks + 4 * choices < transcript.bytes_sent() < 1.2 * (16 * blocks + 4 * choices)


def test_cells_are_filled_up_to_whole_blocks() -> None:
    contest, _ = contest_of(np.random.default_rng(1), (4, 2, 4, 5), 2, 5)
    assert [pair.size for pair in contest.pairs] == [16, 32, 40, 16, 20, 40]
    assert n_blocks(contest.pairs) == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("number", [0, 6, 7])
def test_a_winner_that_is_not_left_names_the_peer(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As bent tables would make it: the winner of before, or a pair that there is not."""

    def bent(engine: Engine, fields: Any) -> Rounds[dict[str, int]]:
        return {SLOT: number}
        yield

    monkeypatch.setattr(choice, "revealed", bent)
    with pytest.raises(RemoteProtocolError) as caught:
        some_choice(2)
    assert (caught.value.culprit, caught.value.step) == ("e", "two_party/outputs")
