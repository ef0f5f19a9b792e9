"""Benchmark of a test against a holder's columns in a vertical run, by requirement and number of values.

python -m benchmarks.bench_vertical_checks
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.joint.lkc.confidence import CheckPlan, Protected, answer, ask, protected_labels
from anonymize.joint.sessions import CircuitSessions, open_sessions
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import Codes, Ints, QidColumn, Schema, SensitiveColumn
from anonymize.taxonomy import from_nested
from anonymize.tds import Observer
from benchmarks.support import Row, publish
from crypto.local import run_local
from crypto.rng import SystemRng
from crypto.rounds import Rounds

RECORDS, GROUPS = 20_000, 100
SIZES = ((7, 7), (16, 16), (85, 3))
_C = Fraction(4, 5)


class _Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


def schema_of(sizes: tuple[int, int]) -> Schema:
    """Return a schema: a quasi-identifier of two values, and two sensitive columns of these sizes, all values
    protected.
    """
    qid = QidColumn("q", from_nested({"*": ["a", "b"]}, "q", missing_leaf=False))
    sensitive = tuple(
        SensitiveColumn(f"s{i}", tuple(map(str, range(n))), tuple(range(n))) for i, n in enumerate(sizes)
    )
    return Schema((qid,), "c", ("Y", "N"), sensitive)


def asked() -> Mapping[str, Demand]:
    bounds = (("s0", _C), ("s1", _C))
    return {
        "C": Confidences(bounds=bounds),
        "`diversity: 2`": DiverseValues(2),
        "`ruled_out: 1`": RuledOutValues(1, bounds),
        "`diversity: 3`": DiverseValues(3),
    }


def plan_of(requirement: AskedList, schema: Schema) -> CheckPlan:
    """Return a plan with a leaf partition of equally many records for every group."""
    sizes, of_all = np.full(GROUPS, RECORDS // GROUPS), np.ones((1, GROUPS), dtype=bool)
    entries = requirement.entries(schema)
    return CheckPlan(np.arange(RECORDS), sizes, (np.arange(GROUPS),), GROUPS, 2, entries, of_all, RECORDS)


def run(sizes: tuple[int, int], demand: Demand) -> tuple[float, int, int]:
    """Return CPU seconds of both roles, bytes, AND gates of the owner's side."""
    schema, requirement, coins = schema_of(sizes), AskedList((Ask(1, (demand,)),)), np.random.default_rng(0)
    plan, gates = plan_of(requirement, schema), _Gates()
    protected = Protected.of(requirement, schema, (0, 1))
    values = [coins.integers(0, n, RECORDS) for n in sizes]
    ends, _ = run_local(
        {me: open_sessions(me, [("h", "o")], SystemRng(), gates_of(me, gates)) for me in "ho"}
    )
    began = time.process_time()
    _, transcript = run_local(
        {
            "o": _owner(ends["o"], plan, coins.integers(0, 2, RECORDS), protected),
            "h": _holder(ends["h"], plan, protected_labels(schema, protected, values), protected),
        }
    )
    seconds = time.process_time() - began
    return seconds, sum(len(m.payload) for m in transcript.messages), gates.total


def gates_of(me: str, gates: _Gates) -> Observer:
    return gates if me == "o" else Observer()


def _owner(sessions: CircuitSessions, plan: CheckPlan, child: Codes, protected: Protected) -> Rounds[None]:
    yield from ask(sessions.evaluating["h"], plan, child, protected)


def _holder(
    sessions: CircuitSessions, plan: CheckPlan, labels: list[Ints], protected: Protected
) -> Rounds[None]:
    yield from answer(sessions.garbling["o"], plan, labels, protected, SystemRng())


def rows() -> list[Row]:
    found = []
    for sizes in SIZES:
        for name, demand in asked().items():
            seconds, sent, gates = run(sizes, demand)
            said = f"{sent / 1e6:.1f} MB; {gates / 1e6:.2f} M AND"
            found.append(Row(f"{sizes[0]} x {sizes[1]}, {name}", seconds, "CPU s", anchor=said))
    return found


def main() -> None:
    title = f"One vertical test: {RECORDS:,} records in {GROUPS} groups, two children, both roles"
    publish(title, rows(), Path("out/bench-vertical-checks.json"))


if __name__ == "__main__":
    main()
