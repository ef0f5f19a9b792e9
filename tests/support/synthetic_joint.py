"""Joint choices and counts with coins that a test knows, and what they come to by the definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from anonymize.dp.noise import Coins
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.dp import circuits
from anonymize.joint.dp.columns import OwnColumns, session_of
from anonymize.joint.dp.noise import Plans
from anonymize.joint.engine import Engine
from anonymize.joint.pair import open_pair
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import open_sessions
from anonymize.joint.synthetic.choice import Contest, chosen_forest
from anonymize.joint.synthetic.holder import JointHolder
from anonymize.joint.synthetic.horizontal import SharedRows
from anonymize.joint.synthetic.vertical import JoinedColumns
from anonymize.synthetic.holder import Holder, Question
from anonymize.synthetic.marginals import Axis, Marginal, leaf_marginals, pairs_of
from anonymize.synthetic.single import SingleHolder
from anonymize.table import CodedTable, Schema
from anonymize.tds import Observer, run_single
from crypto.circuit import Circuit, Held, evaluate
from crypto.circuits.constants import NoisePlan
from crypto.local import Transcript, run_local
from crypto.rounds import Rounds
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.circuits import as_signed
from tests.support.dp_runs import names_of
from tests.support.laws import coins_for
from tests.support.rng import SeededRng
from tests.support.sessions import two_party_sessions


def pairs_between(n_bins: Sequence[int], n_classes: int) -> tuple[Marginal, ...]:
    """Every two of some columns with so many bins."""
    axes = [Axis(i, tuple(range(n))) for i, n in enumerate(n_bins)]
    return tuple(Marginal(two, n_classes) for two in combinations(axes, 2))


def kruskal(pairs: Sequence[Marginal], noisy: Sequence[int], n_edges: int) -> tuple[int, ...]:
    """By the definition: best first, ties to the first, pairs that close a cycle are skipped."""
    trees = {frozenset([column]) for pair in pairs for column in pair.columns}
    chosen: list[int] = []
    for number in sorted(range(len(pairs)), key=lambda i: (-noisy[i], i)):
        met = {tree for tree in trees if tree & set(pairs[number].columns)}
        if len(met) == 2 and len(chosen) < n_edges:
            chosen.append(number)
            trees = (trees - met) | {frozenset().union(*met)}
    return tuple(chosen)


def script_digits(monkeypatch: pytest.MonkeyPatch, plan: NoisePlan, drawn: Sequence[int]) -> None:
    """The next draws of a plan for geometric noise are these."""
    coins = np.array([coins_for(plan, value) for value in drawn], dtype=np.uint8).T

    def scripted(self: object, bits: int, n: int) -> Any:
        assert coins.shape == (bits, n)
        return coins

    zeros = lambda self, bits, n: np.zeros((bits, n), dtype=np.uint8)  # noqa: E731
    monkeypatch.setattr(GarblerSession, "_coins", scripted)
    monkeypatch.setattr(EvaluatorSession, "_coins", zeros)


def shares_of(contest: Contest, counts: Sequence[Any], seed: int = 0) -> list[list[Any]]:
    """Both sides' shares of counts, modulo 2**64."""
    rng = np.random.default_rng(seed)
    masks = [rng.integers(0, 2**64, c.shape, dtype=np.uint64) for c in counts]
    return [masks, [c.astype(np.uint64) - mask for c, mask in zip(counts, masks, strict=True)]]


def forest_at_the_pair(
    contest: Contest, counts: Sequence[Any], plan: NoisePlan, n_edges: int, seed: int = 0, **how: Any
) -> tuple[dict[str, tuple[int, ...]], Transcript]:
    """Choose at both ends of a real session."""
    sessions = two_party_sessions(seed)
    sides = zip(("g", "e"), sessions, shares_of(contest, counts, seed), strict=True)
    return run_local(
        {
            name: chosen_forest(Engine(session, Observer()), contest, shares, plan, n_edges)
            for name, session, shares in sides
        },
        **how,
    )


Openings = tuple[list[list[int]], tuple[int, ...], list[list[int]]]
"""Columns, pairs chosen, their tables."""


def some_bins(schema: Schema) -> list[Axis]:
    """Bins of every column, neither all leaves nor one bin where there are more than two leaves."""
    return [Axis(i, tuple((np.arange(c.n_leaves) * 2 // 3).tolist())) for i, c in enumerate(schema.qid)]


def some_pairs(schema: Schema) -> tuple[Marginal, ...]:
    """Every pair; the last leaves the class out."""
    *pairs, last = pairs_of(some_bins(schema), schema.n_classes)
    return (*pairs, Marginal(last.axes, 1))


def one_run(schema: Schema, holder: Holder, n_edges: int, *, again: bool = False) -> Rounds[Openings]:
    """Ask as a run does, over fixed bins: all columns, a choice, the pairs chosen (all columns once more)."""
    leaves, pairs = leaf_marginals(schema), some_pairs(schema)
    first = yield from holder.measure(leaves, Fraction(7, 10 * len(leaves)))
    expected = [np.full(pair.shape, 5 + i) for i, pair in enumerate(pairs)]
    penalties = [7 * i % 13 for i in range(len(pairs))]
    chosen = yield from holder.choose(Question(pairs, expected, penalties), Fraction(1, 5), n_edges)
    last = yield from holder.measure([pairs[i] for i in chosen], Fraction(1, 5))
    if again:
        last += yield from holder.measure(leaves, Fraction(1, 7))
    return [t.tolist() for t in first], chosen, [t.tolist() for t in last]


@dataclass
class Joint:
    """A joint run in process: what every party has of it, and what was sent and revealed."""

    openings: dict[str, Openings]
    transcript: Transcript
    ledgers: dict[str, RevealLedger]

    @property
    def opened(self) -> Openings:
        """The same at all parties."""
        first, *others = self.openings.values()
        assert all(each == first for each in others)
        return first


def _run(protocol: Any, parts: Sequence[Any], mode: str, leader: int, deputy: int, **how: Any) -> Joint:
    names = names_of(len(parts))
    ledgers = {me: RevealLedger(mode) for me in names}
    rosters = {me: Roster(me, names, names[leader], names[deputy]) for me in names}
    parties = {me: protocol(rosters[me], part, ledgers[me]) for me, part in zip(names, parts, strict=True)}
    return Joint(*run_local(parties, **how), ledgers)


def horizontal(
    tables: Sequence[CodedTable],
    n_edges: int,
    *,
    again: bool = False,
    max_rows: int = 1000,
    leader: int = 0,
    deputy: int = 1,
    **how: Any,
) -> Joint:
    """Rows of several parties."""

    def protocol(roster: Roster, table: CodedTable, reveals: RevealLedger) -> Rounds[Openings]:
        pair = yield from open_pair(roster, bytes(32), SeededRng(roster.me), Observer())
        holder = JointHolder(SharedRows(pair, table, max_rows), Plans(Fraction(1), 4), reveals)
        return (yield from one_run(table.schema, holder, n_edges, again=again))

    return _run(protocol, tables, "dp/horizontal/synthetic", leader, deputy, **how)


def vertical(
    schema: Schema,
    columns: Sequence[OwnColumns],
    n_edges: int,
    *,
    again: bool = False,
    leader: int = 0,
    **how: Any,
) -> Joint:
    """Columns of two parties."""

    def protocol(roster: Roster, own: OwnColumns, reveals: RevealLedger) -> Rounds[Openings]:
        rng = SeededRng(roster.me)
        pairs = [(roster.leader, roster.deputy)]
        session = session_of(roster, (yield from open_sessions(roster.me, pairs, rng, Observer())))
        holder = JointHolder(JoinedColumns(roster, own, session, rng), Plans(Fraction(1), 4), reveals)
        return (yield from one_run(schema, holder, n_edges, again=again))

    return _run(protocol, columns, "dp/vertical/synthetic", leader, 1 - leader, **how)


def fix_coins(monkeypatch: pytest.MonkeyPatch, seed: object = 0) -> None:
    """All coins of circuits are the same in every run, whoever takes part: draws in order, from one seed."""
    streams: WeakKeyDictionary[object, SeededRng] = WeakKeyDictionary()

    def seeded(self: object, bits: int, n: int) -> Any:
        return _coins(streams.setdefault(self, SeededRng(("coins", seed))), bits, n)

    zeros = lambda self, bits, n: np.zeros((bits, n), dtype=np.uint8)  # noqa: E731
    monkeypatch.setattr(GarblerSession, "_coins", seeded)
    monkeypatch.setattr(EvaluatorSession, "_coins", zeros)


def _coins(rng: SeededRng, bits: int, n: int) -> Any:
    return np.frombuffer(rng.bytes(bits * n), dtype=np.uint8).reshape(bits, n) & 1


class FixedNoise:
    """Noise that circuits make of the coins of :func:`fix_coins`, as noise of a single holder.

    A joint run draws for all marginals of a call at once: so many as are announced.
    """

    def __init__(self, plans: Plans, seed: object = 0) -> None:
        self._plans = plans
        self._rng = SeededRng(("coins", seed))
        self._announced = 0
        self._drawn: list[int] = []

    def announce(self, n: int) -> None:
        self._announced = n

    def geometric(self, rate: Fraction, count: int) -> list[int]:
        plan = self._plans.geometric(rate, count)
        public = {"score": np.zeros((count, 1)), "tag": np.zeros((count, 1))}
        return self._evaluated(circuits.noisy_score_circuit(Held.XOR_SHARED, 1, plan, 1), plan, public, count)

    def laplace(self, rate: Fraction, count: int) -> list[int]:
        if not self._drawn:
            n = self._announced
            plan = self._plans.laplace(rate, n)
            circuit, zeros = circuits.noisy_count_circuit(1, plan), {"count": np.zeros((n, 1))}
            bits = circuits.noisy_count_width(1, plan)
            self._drawn = [as_signed(x, bits) for x in self._evaluated(circuit, plan, zeros, n)]
        given, self._drawn = self._drawn[:count], self._drawn[count:]
        return given

    def _evaluated(self, circuit: Circuit, plan: NoisePlan, inputs: dict[str, Any], n: int) -> list[int]:
        given = {name: values.astype(np.uint64) for name, values in inputs.items()}
        coins = _coins(self._rng, plan.bits, n).T.astype(np.uint64)
        found: list[int] = evaluate(circuit, n, {**given, "coins": coins})["noisy"][:, 0].tolist()
        return found

    @property
    def coins(self) -> Coins:
        raise AssertionError("noise alone")


class FixedHolder(SingleHolder):
    """The single holder with the noise of a joint run."""

    def __init__(self, table: CodedTable, plans: Plans) -> None:
        self._fixed = FixedNoise(plans)
        super().__init__(table, self._fixed)

    def measure(self, marginals: Sequence[Marginal], rate: Fraction) -> Rounds[list[Any]]:
        self._fixed.announce(sum(marginal.size for marginal in marginals))
        return super().measure(marginals, rate)


def alone(table: CodedTable, n_edges: int, *, again: bool = False) -> Openings:
    """The single holder with the same noise."""
    holder = FixedHolder(table, Plans(Fraction(1), 4))
    return run_single(one_run(table.schema, holder, n_edges, again=again))
