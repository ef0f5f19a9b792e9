"""Synthetic tables of several holders: the real protocol, all parties in turn in a single process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.joint.roster import Roster
from anonymize.joint.synthetic.horizontal import synthesize_horizontally
from anonymize.joint.synthetic.run import JointSyntheticOutcome, SyntheticRequest
from anonymize.joint.synthetic.vertical import synthesize_aligned
from anonymize.synthetic.requirement import Synthetic
from benchmarks.bench_dp import own_columns, part_of
from benchmarks.synthetic_methods import MAX_ROWS, Method
from benchmarks.synthetic_tables import Coded
from benchmarks.synthetic_utility import drawn_rows
from crypto.local import run_local
from crypto.rng import Prg
from crypto.rounds import Rounds


def by_rows(train: Coded, epsilon: Fraction, seed: int) -> Coded:
    """Run three holders, a third of the rows each."""
    table, names = train.table, ("p0", "p1", "p2")
    parts = [part_of(table, np.arange(i, len(table.weights), len(names))) for i in range(len(names))]
    request = _request(train, epsilon)
    runs: dict[str, Rounds[JointSyntheticOutcome]] = {
        name: synthesize_horizontally(
            _roster(name, names), part, request, _coins(seed, i), mode="dp/horizontal/synthetic"
        )
        for i, (name, part) in enumerate(zip(names, parts, strict=True))
    }
    return _drawn(runs, train, seed)


def by_columns(train: Coded, epsilon: Fraction, seed: int) -> Coded:
    """Run two holders, half of the columns each, records already aligned."""
    table, names = train.table, ("p0", "p1")
    order, n = np.repeat(np.arange(len(table.weights)), table.weights), len(table.qid)
    request = _request(train, epsilon)
    runs: dict[str, Rounds[JointSyntheticOutcome]] = {
        name: synthesize_aligned(
            _roster(name, names),
            own_columns(table, order, columns),
            request,
            _coins(seed, i),
            mode="dp/vertical/synthetic",
        )
        for i, (name, columns) in enumerate(zip(names, (range(n // 2), range(n // 2, n)), strict=True))
    }
    return _drawn(runs, train, seed)


def _request(train: Coded, epsilon: Fraction) -> SyntheticRequest:
    return SyntheticRequest(train.schema, Synthetic(epsilon, max_rows=MAX_ROWS), bytes(32))


def _roster(me: str, names: Sequence[str]) -> Roster:
    return Roster(me, tuple(names), *names[:2])


def _coins(seed: int, party: int) -> Prg:
    """Return coins known to all, so that a figure can be reproduced: the records are public."""
    return Prg((seed + (party + 2 << 32)).to_bytes(16, "little"))


def _drawn(runs: Mapping[str, Rounds[Any]], train: Coded, seed: int) -> Coded:
    results, _ = run_local(runs, record=False)
    return drawn_rows(next(iter(results.values())).outcome, train, seed)


JOINT: Mapping[str, Method] = {"three by rows": by_rows, "two by columns": by_columns}
