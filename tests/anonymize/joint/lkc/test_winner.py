"""The winner: the sealed maximum, the open one, and Fractions agree; ties go in candidate order."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate
from anonymize.grid import from_step
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import Engine
from anonymize.joint.lkc.winner import OpenMaximum, Scale, SealedMaximum, scale_for
from anonymize.joint.roster import Roster
from anonymize.scores.score import Ranked
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node
from anonymize.tds import Observer
from crypto.local import run_local
from crypto.rounds import Rounds
from crypto.shares import ComputePair, setup_shares
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.scores import PUBLISHED
from tests.support.sessions import two_party_sessions

SCHEMA = Schema(
    tuple(QidColumn(name, from_step(Decimal(0), Decimal(10), Decimal(1), name)) for name in "pqr"),
    "c",
    ("Y", "N"),
)


def run_sealed(entrants: dict[str, Any], scale: Scale, leader: str, deputy: str) -> set[str | None]:
    names = tuple(entrants)
    garbler, evaluator = two_party_sessions()
    garbler.peer, evaluator.peer = deputy, leader
    garbler._ot.peer, evaluator._ot.peer = deputy, leader
    engines = {leader: Engine(garbler, Observer()), deputy: Engine(evaluator, Observer())}

    def party(me: str) -> Rounds[str | None]:
        shares = None
        if len(names) > 2:
            shares = yield from setup_shares(me, names, ComputePair(leader, deputy), bytes(32), SeededRng(me))
        maximum = SealedMaximum(Roster(me, names, leader, deputy), scale.widths, engines.get(me), shares)
        return (yield from maximum.winner(entrants[me]))

    return set(run_local({me: party(me) for me in names})[0].values())


def run_open(entrants: dict[str, Any], scale: Scale) -> set[str | None]:
    names = tuple(entrants)
    parties = {
        me: OpenMaximum(
            Roster(me, names, names[0], names[1]), scale.widths, RevealLedger("vertical/leader")
        ).winner(entrant)
        for me, entrant in entrants.items()
    }
    return set(run_local(parties)[0].values())


def ranked(draw: Any, goal: str, n_records: int) -> Ranked | None:
    if draw(st.booleans()) and draw(st.booleans()):
        return None
    first, size = draw(st.integers(0, 9)), draw(st.integers(1, n_records))
    candidate = Candidate(draw(st.integers(0, 2)), Node(first, 10), ())
    if goal == "general":
        return Ranked(candidate, draw(st.integers(1, n_records**2)), 1)
    # Gains that collide: few different fractions.
    return Ranked(candidate, size * draw(st.integers(1, 3)), size)


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), goal=st.sampled_from(["classification", "general"]), n=st.integers(2, 4))
def test_the_best_of_all_wins(data: st.DataObject, goal: str, n: int) -> None:
    n_records = data.draw(st.sampled_from([3, 50, 2**31 - 1]))
    scale = scale_for(SCHEMA, PUBLISHED[goal], n_records)
    names = [f"p{i}" for i in range(n)]
    entered = {name: ranked(data.draw, goal, n_records) for name in names}
    order = {r.candidate.order for r in entered.values() if r}
    if len(order) < sum(r is not None for r in entered.values()):
        return  # a node belongs to one party
    value = {name: (Fraction(r.numerator, r.denominator), r) for name, r in entered.items() if r}
    best = min(value, key=lambda name: (-value[name][0], value[name][1].candidate.order), default=None)
    entrants = {name: scale.entrant(r) for name, r in entered.items()}
    leader, deputy = data.draw(st.permutations(names))[:2]
    assert run_sealed(entrants, scale, leader, deputy) == {best}
    assert run_open(entrants, scale) == {best}


@pytest.mark.parametrize("n_records", [1, 2, 1000, 2**31 - 1])
def test_widths_hold_the_greatest_numbers(n_records: int) -> None:
    widths = scale_for(SCHEMA, PUBLISHED["classification"], n_records).widths
    assert n_records < 1 << widths.denominator
    assert widths.tie == 5  # 30 leaves
    general = scale_for(SCHEMA, PUBLISHED["general"], n_records).widths
    assert n_records**2 < 1 << general.numerator
    assert general.denominator == 1


def test_tie_keys_are_candidate_order() -> None:
    scale = scale_for(SCHEMA, PUBLISHED["classification"], 10)
    nodes = [(column, first) for column in range(3) for first in range(10)]
    keys = [scale.entrant(Ranked(Candidate(c, Node(f, 10), ()), 1, 1)).tie for c, f in nodes]
    assert keys == sorted(set(keys))
    assert max(keys) < 1 << scale.widths.tie
