"""Batches at the compute pair: conjunctions of any length, and tournaments of groups of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.confidence import NotNegative
from anonymize.joint.conjunction import CONJUNCTION
from anonymize.joint.engine import Engine, carried
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.circuits import open_circuit
from anonymize.joint.lkc.scores.contenders import SharedLosses
from crypto.circuit import To
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords
from tests.support.computations import numbers_of, watched
from tests.support.pairs import at_the_pair


def signs(engine: Engine, values: Sequence[int]) -> Rounds[CarriedWords]:
    """Return carried bits: 1 where a value is not negative; the garbler has the values as they are."""
    shares = np.array(values, dtype=np.int64).astype(np.uint64).reshape(-1, 1)
    if engine.role.value != "garbler":
        shares = np.zeros_like(shares)
    return carried(
        (
            yield from engine.run(
                circuits.criterion_circuit(NotNegative(), 64), len(shares), {"difference": shares}
            )
        ),
        "met",
    )


@pytest.mark.parametrize("n", [1, 2, CONJUNCTION - 1, CONJUNCTION, CONJUNCTION + 1, 2 * CONJUNCTION + 1])
def test_all_are_met_only_if_each_is(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit comes out, whichever is 0."""
    computed = watched(monkeypatch)
    for wrong in (None, 0, n // 2, n - 1):
        values = [-1 if i == wrong else 1 for i in range(n)]

        def protocol(engine: Engine, values: Sequence[int] = values) -> Rounds[bool]:
            parts = [values[:1], values[1:]] if len(values) > 1 else [values]
            bits = []
            for part in parts:
                bits.append((yield from signs(engine, part)))
            return (yield from engine.all_met(bits))

        computed.clear()
        assert at_the_pair(protocol) == [wrong is None] * 2
        outs = [entry.out for entry in computed if entry.out]
        assert outs == [{("met", To.BOTH): [[int(wrong is None)]]}] * 2


def test_tournaments_of_groups_of_any_size() -> None:
    """The least of every group, the first of equal ones; groups of one stay as they are."""
    losses = [[5], [3, 2], [4, 4, 1], [9, 8, 8, 9], [7, 7, 7, 7, 7, 6, 6], [0], [2, 1, 0, 3, 0]]
    flat = np.array([loss for group in losses for loss in group], dtype=np.uint64).reshape(-1, 1)
    index = np.array([i for group in losses for i in range(len(group))], dtype=np.uint64).reshape(-1, 1)

    def protocol(engine: Engine) -> Rounds[list[int]]:
        mine = flat if engine.role.value == "garbler" else np.zeros_like(flat)
        sides = np.concatenate([mine, np.zeros_like(mine)], axis=1)
        inputs = {"sides": sides, "index": index}
        entries = yield from engine.run(circuits.imbalance_circuit(4, 3), len(flat), inputs)
        words = {name: carried(entries, name) for name in ("loss", "index")}
        words["valid"] = yield from signs(engine, [1] * len(flat))
        best = yield from engine.reduce(
            circuits.better_split_circuit(5, 3), words, [len(group) for group in losses]
        )
        chosen = {name: best[name] for name in ("valid", "index")}
        opened = yield from engine.run(circuits.open_circuit((("index", 3),)), len(losses), chosen)
        return numbers_of(opened, "index")

    assert at_the_pair(protocol) == [[group.index(min(group)) for group in losses]] * 2


@pytest.mark.parametrize("greatest", [1, 2, 7])
def test_a_tournament_makes_the_index_level_by_level(greatest: int) -> None:
    """A group of any size up to 33, with a loss of 0 at any place, also twice; the first of the least is found."""
    sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17, 31, 32, 33]
    losses = [
        [0 if place in (least, least + 2) else 1 + place * place % greatest for place in range(size)]
        for size in sizes
        for least in range(size)
    ]
    flat = np.array([loss for group in losses for loss in group], dtype=np.uint64).reshape(-1, 1)

    def protocol(engine: Engine) -> Rounds[list[int]]:
        mine = flat if engine.role.value == "garbler" else np.zeros_like(flat)
        entries = yield from engine.run(circuits.enter_circuit(3), len(flat), {"loss": mine})
        loss = carried(entries, "loss")
        best = yield from engine.join(
            lambda level: circuits.least_loss_circuit(3, level),
            {"loss": loss, "index": loss.resized(0)},
            [len(group) for group in losses],
        )
        chosen = {"valid": (yield from signs(engine, [1] * len(losses))), "index": best["index"]}
        opened = yield from engine.run(circuits.open_circuit((("index", 6),)), len(losses), chosen)
        return numbers_of(opened, "index")

    assert at_the_pair(protocol) == [[group.index(min(group)) for group in losses]] * 2


@pytest.mark.parametrize("greatest", [1, 2, 7])
@pytest.mark.parametrize(
    "sizes", [[1], [1, 1], [2], [3, 1], [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 17, 33]], ids=str
)
def test_a_tournament_of_shares_is_that_of_their_sums(sizes: list[int], greatest: int) -> None:
    """The least loss, its place, and the option's mark: the first of the least is found, at any place."""
    groups = [
        [0 if place in (least, least + 2) else 1 + place * place % greatest for place in range(size)]
        for size in sizes
        for least in range(size)
    ]
    flat = np.array([loss for group in groups for loss in group], dtype=np.uint64)
    marked = flat + np.where(flat > 0, 0, 1 << 4).astype(np.uint64)
    masks = np.random.default_rng(greatest).integers(0, 1 << 63, len(flat), dtype=np.uint64)

    def protocol(engine: Engine) -> Rounds[list[Any]]:
        own = marked - masks if engine.role.value == "garbler" else masks
        losses = SharedLosses(own, [len(group) for group in groups], 3, 2)
        options = yield from losses.contenders(engine, (yield from engine.run_all(losses.asked)), ())
        best = yield from engine.join(
            lambda level: circuits.least_loss_circuit(3, level, ("large",)),
            options.fields,
            options.sizes,
            options.level,
        )
        shown = {"valid": (yield from signs(engine, [1] * len(groups)))}
        shown |= {name: words.resized(6) for name, words in best.items()}
        widths = tuple((name, 6) for name in best)
        opened = yield from engine.run(circuits.open_circuit(widths), len(groups), shown)
        return [numbers_of(opened, name) for name in ("loss", "index", "large")]

    expected = [[min(group), group.index(min(group)), int(min(group) > 0)] for group in groups]
    assert at_the_pair(protocol) == [[*map(list, zip(*expected, strict=True))]] * 2


@pytest.mark.parametrize("sizes", [[1], [4, 1, 5], [17, 2, 1]])
def test_the_bits_of_each_group_are_joined(sizes: list[int]) -> None:
    """Group by group: the one whose turn it is has a bit that is 0, or none has."""
    for wrong in [None, *range(sum(sizes))]:
        values = [-1 if i == wrong else 1 for i in range(sum(sizes))]

        def protocol(engine: Engine, values: Sequence[int] = values) -> Rounds[Any]:
            bits = yield from signs(engine, values)
            met = yield from engine.all_of_each(bits, np.array(sizes))
            outputs = yield from engine.run(open_circuit(()), len(met), {"valid": met})
            return np.asarray(outputs["valid"]).reshape(-1).tolist()

        owner = np.repeat(np.arange(len(sizes)), sizes)
        expected = [int(wrong is None or owner[wrong] != group) for group in range(len(sizes))]
        assert at_the_pair(protocol) == [expected, expected]
