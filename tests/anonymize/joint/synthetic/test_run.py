"""Whole joint runs: the single holder's openings with the same coins; δ, costs, refusals, charges."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.errors import DataError, PrivacyError, SchemaError
from anonymize.joint.columns import Columns, Holding
from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.dp.circuits import noisy_count_circuit
from anonymize.joint.dp.noise import COIN_DISTANCE, DELTA, Plans
from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.costs import Joined, Rows, Spread
from anonymize.joint.synthetic.run import MOST_DISTANCE, SyntheticRequest, cost_at_most
from anonymize.joint.synthetic.vertical import synthesize_vertically
from anonymize.synthetic.loop import Synthesis, SyntheticOutcome
from anonymize.table import CodedTable, Schema
from anonymize.tds import Observer, run_single
from crypto.circuits.constants import delta_of
from crypto.errors import LocalProtocolError
from crypto.local import run_local
from tests.support.computations import watched
from tests.support.dp_runs import own_columns, rows_of, split_columns, thirds
from tests.support.dp_tables import hospital, people, table_of
from tests.support.rng import SeededRng
from tests.support.synthetic_joint import FixedHolder, fix_coins
from tests.support.synthetic_runs import Results, request_for, run_columns, run_rows


def alone(table: CodedTable, request: SyntheticRequest) -> SyntheticOutcome:
    holder = FixedHolder(table, request.plans())
    return run_single(Synthesis(table.schema, request.requirement, holder, Observer()).run())


def openings(outcome: SyntheticOutcome) -> list[Any]:
    opened = outcome.opened
    measured = [*opened.leaves, *opened.bins, *opened.pairs]
    return [(m.marginal, m.counts.tolist(), m.rate) for m in measured]


@pytest.mark.some(1)
@pytest.mark.parametrize("edges", [0, 1, 2, None])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(8)])
def test_with_the_same_coins_it_is_the_single_holders_run(
    edges: int | None, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaves, bins that follow from them, pairs and their tables, charges: two and three holders, and columns."""
    fix_coins(monkeypatch)
    table = people()
    request = request_for(table.schema, edges=edges, epsilon=epsilon)
    expected = alone(table, request)
    runs = [run_rows(thirds(table, n), request)[0] for n in (2, 3)]
    runs += [run_columns(split_columns(table, first), request)[0] for first in ([0], [1, 2], [])]
    for results in runs:
        for result in results.values():
            assert openings(result.outcome) == openings(expected)
            assert result.outcome.accountant.charges == expected.accountant.charges
            assert result.outcome.accountant.spent == epsilon


def test_without_a_class_it_is_the_single_holders_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal general: one class value, which nobody has to hold."""
    fix_coins(monkeypatch)
    whole = people()
    schema = Schema(whole.schema.qid, None, ("",))
    table = CodedTable(schema, whole.qid, np.zeros_like(whole.cells), whole.weights)
    request = request_for(schema, epsilon=Fraction(4))
    expected = openings(alone(table, request))
    for results in (run_rows(thirds(table), request)[0], run_columns(split_columns(table, [0]), request)[0]):
        assert all(openings(result.outcome) == expected for result in results.values())


def test_the_revealed_values_are_the_listed_ones() -> None:
    table = people()
    request = request_for(table.schema)
    for mode, (results, _) in (
        ("horizontal", run_rows(thirds(table), request)),
        ("vertical", run_columns(split_columns(table, [0]), request)),
    ):
        opened = results["p0"].outcome.opened
        for result in results.values():
            shapes = [(r.name, r.shape, r.iteration) for r in result.ledger.reveals]
            assert shapes == [
                *[("noisy_marginal", m.marginal.shape, 0) for m in (*opened.leaves, *opened.bins)],
                *[("edge", (), i) for i in (1, 2)],
                *[("noisy_marginal", m.marginal.shape, 2) for m in opened.pairs],
            ]
        assert {name for name, *_ in shapes} <= {row.name for row in ALLOWED[f"dp/{mode}/synthetic"]}


@pytest.mark.some(1)
@pytest.mark.parametrize("edges", [0, 1, 2])
def test_rounds_are_what_the_docstrings_say(edges: int) -> None:
    table = people()
    request = request_for(table.schema, edges=edges)
    for n in (2, 3, 4):
        most = 8 + 3 * (n > 2) if edges == 0 else 12 + 5 * (n > 2) + 2 * edges
        assert run_rows(thirds(table, n), request)[1].rounds == most
    for first in ([0], [0, 1]):
        most = 7 if edges == 0 else 11 + 2 * edges + 2 * (3 - len(first))
        assert most - 2 <= run_columns(split_columns(table, first), request)[1].rounds <= most


@pytest.mark.parametrize("edges", [0, 2])
def test_a_run_costs_at_most_what_is_said_before(edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates, bytes, rounds; and not much more is said than tables with the most bins take."""
    computed, table = watched(monkeypatch), people()
    request = request_for(table.schema, edges=edges, max_rows=300, epsilon=Fraction(20))
    cases: list[tuple[Spread, Any]] = [
        (Rows(3, 300), lambda: run_rows(thirds(table), request)),
        (Joined([0], 300), lambda: run_columns(split_columns(table, [0]), request)),
    ]
    for spread, run in cases:
        computed.clear()
        _, transcript = run()
        gates = sum(each.circuit.and_gates * each.batch for each in computed) // 2
        said = cost_at_most(request, spread)
        assert gates <= said.gates <= 1.25 * gates
        assert transcript.bytes_sent() <= said.bytes <= 1.25 * transcript.bytes_sent()
        assert transcript.rounds <= said.rounds <= transcript.rounds + 2


# ---- δ


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10), Fraction(1), Fraction(5, 2), Fraction(3), Fraction(10), Fraction(40)]
)
def test_delta_is_computed_from_what_was_drawn(epsilon: Fraction) -> None:
    """Below 2^−40 for every ε and the most draws, as many as the plans reach, not as asked for."""
    table = people()
    plans = request_for(table.schema, epsilon=epsilon).plans()
    drawn = [plans.laplace(epsilon / 100, 1 << 15), plans.laplace(epsilon / 30, 1 << 13)]
    drawn += [plans.geometric(epsilon / 180, 1225), plans.laplace(epsilon / 90, 1 << 14)]
    assert plans.distance == sum(plan.distance for plan in drawn)
    assert plans.distance <= MOST_DISTANCE
    assert plans.delta == delta_of(plans.distance, epsilon) < DELTA


def test_delta_of_a_run_is_that_of_its_plans() -> None:
    table = people()
    request = request_for(table.schema)
    for results, _ in (run_rows(thirds(table), request), run_columns(split_columns(table, [0]), request)):
        deltas = {result.delta for result in results.values()}
        assert len(deltas) == 1
        assert 0 < deltas.pop() < DELTA


def test_coins_are_twenty_bits_shorter_than_those_of_diffgen() -> None:
    rate, cells = Fraction(7, 140), 910
    short, long = (
        Plans(Fraction(1), 4, most).laplace(rate, cells) for most in (MOST_DISTANCE, COIN_DISTANCE)
    )
    assert long.coin_bits - short.coin_bits == 20
    width = 19
    gates = [noisy_count_circuit(width, plan).and_gates for plan in (short, long)]
    assert gates[0] <= gates[1] - 20 * len(short.tables)


# ---- refused, and charged


class Charging(Observer):
    """Notes when the charge becomes final, and what was sent before."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.before: list[str] | None = None

    def opening(self) -> None:
        if self.before is None:
            self.before = list(self.sent)


def test_the_charge_is_final_before_anything_but_keys_is_sent() -> None:
    table = people()
    request = request_for(table.schema)
    for run, parts in ((run_rows, thirds(table)), (run_columns, split_columns(table, [0]))):
        charging = Charging()
        run(
            parts, request, observer=charging, tamper=lambda m, c=charging: c.sent.append(m.step) or m.payload
        )  # type: ignore[operator]
        assert charging.before is not None
        assert set(charging.before) <= {"shares/seed", "ot/base/offer", "ot/base/answer", "shares/share"}


def refusal(run: Any, parts: Any, request: SyntheticRequest, kind: type[Exception]) -> Exception:
    sent: list[Any] = []
    with pytest.raises(kind) as caught:
        run(parts, request, tamper=lambda m: sent.append(m) or m.payload)
    assert sent == []
    return caught.value


def test_set_valued_columns_and_too_many_rows_are_refused_before_anything_is_sent() -> None:
    sets, table = hospital(), people(n=300)
    few = request_for(table.schema, max_rows=99)
    assert "set-valued" in str(refusal(run_rows, thirds(sets), request_for(sets.schema), SchemaError))
    assert getattr(refusal(run_rows, thirds(table), few, PrivacyError), "error_id", "") == "too-many-rows"
    columns = [own_columns(sets, [1]), own_columns(sets, [2])]
    assert "set-valued" in str(refusal(run_columns, columns, request_for(sets.schema), SchemaError))
    error = refusal(run_columns, split_columns(table, [0]), few, PrivacyError)
    assert getattr(error, "error_id", "") == "too-many-rows"


def test_columns_are_of_two_parties_with_records() -> None:
    table = people()
    request = request_for(table.schema)
    refusal(run_columns, [own_columns(table, [i]) for i in range(3)], request, LocalProtocolError)
    refusal(run_columns, split_columns(table_of(table.schema, []), [0]), request, LocalProtocolError)


# ---- from ids on


MODE = "dp/vertical/synthetic"


def holdings(table: CodedTable, first: list[int], **swapped: Any) -> list[Holding]:
    """Both parties' columns, each with 10 records that the other has not, in another order."""
    found = []
    for side in (0, 1):
        n = table.n_records
        own = [i for i in range(len(table.qid)) if (i in first) == (side == 0)]
        rows = np.random.default_rng(side).permutation(n)
        rows = rows[rows % 20 != side]
        ids = [f"id{row}".encode() for row in rows]
        qid = tuple(table.qid[i][rows] if i in own else None for i in range(len(table.qid)))
        classes = None if table.schema.class_name is None else table.axis(0)[rows]
        found.append(Holding(ids, qid, swapped.get(f"p{side}", classes), ()))
    return found


def run_from_ids(table: CodedTable, parts: list[Holding], request: SyntheticRequest) -> Results:
    columns = Columns(("p0", "p1", "p1"), (), None)
    return run_local(
        {
            me: synthesize_vertically(
                Roster(me, ("p0", "p1"), "p0", "p1"),
                columns,
                part,
                request,
                SeededRng(me),
                mode="dp/vertical/synthetic",
            )
            for me, part in zip(("p0", "p1"), parts, strict=True)
        }
    )[0]


@pytest.mark.parametrize("has_class", [True, False])
def test_records_are_found_by_their_ids(has_class: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The common records, and no others; without a class nothing is compared."""
    table = people()
    if not has_class:
        table = CodedTable(Schema(table.schema.qid, None, ("",)), table.qid, table.cells * 0, table.weights)
    request = request_for(table.schema, epsilon=Fraction(4))
    fix_coins(monkeypatch)
    common = rows_of(table, [row for row in range(table.n_records) if row % 20 > 1])
    expected = openings(alone(common, request))
    found = run_from_ids(table, holdings(table, [0]), request)
    assert all(openings(result.outcome) == expected for result in found.values())
    named = {r.name for r in found["p1"].ledger.reveals}
    compared = {"class_agreement"} if has_class else set[str]()
    assert named == {"set_sizes", "common_records", "noisy_marginal", "edge"} | compared


def test_different_classes_end_the_run() -> None:
    table = people()
    parts = holdings(table, [0])
    wrong = parts[1].classes
    assert wrong is not None
    parts = holdings(table, [0], p1=1 - wrong)
    with pytest.raises(DataError, match="different class values"):
        run_from_ids(table, parts, request_for(table.schema))
