"""Joint runs of DiffGen in process: splitting tables, running all parties, silencing noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.dp.accounting import Dp
from anonymize.joint.dp.columns import OwnColumns
from anonymize.joint.dp.horizontal import release_horizontally
from anonymize.joint.dp.run import DpRequest, JointDpOutcome
from anonymize.joint.dp.thesis.horizontal import release_horizontally_as_published
from anonymize.joint.dp.thesis.vertical import release_aligned_as_published
from anonymize.joint.dp.vertical import release_aligned
from anonymize.joint.roster import Roster
from anonymize.table import CodedTable, Schema
from crypto.local import Transcript, run_local
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.coins import Quiet
from tests.support.rng import SeededRng

Results = dict[str, JointDpOutcome]
Release = Callable[..., Any]

MODES: dict[Release, str] = {
    release_horizontally: "dp/horizontal/circuit",
    release_aligned: "dp/vertical/circuit",
    release_horizontally_as_published: "dp/horizontal/thesis",
    release_aligned_as_published: "dp/vertical/thesis",
}
"""By protocol, the mode whose list its reveals are held to."""


def request_for(schema: Schema, **settings: Any) -> DpRequest:
    own = {k: settings.pop(k) for k in ("noise",) if k in settings}
    requirement = Dp(**{"epsilon": Fraction(1), "specializations": 3, "max_rows": 1000, **settings})
    return DpRequest(schema, requirement, bytes(32), **own)


def names_of(n: int) -> tuple[str, ...]:
    return tuple(f"p{i}" for i in range(n))


def rows_of(table: CodedTable, rows: Any) -> CodedTable:
    return CodedTable(table.schema, tuple(c[rows] for c in table.qid), table.cells[rows], table.weights[rows])


def split_rows(table: CodedTable, owners: Sequence[int], n: int) -> list[CodedTable]:
    """Share the rows of a table out among ``n`` parties."""
    return [rows_of(table, np.flatnonzero(np.array(owners) == i)) for i in range(n)]


def own_columns(table: CodedTable, numbers: Sequence[int]) -> OwnColumns:
    """Some columns of a table, one row per record, in order."""
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    schema = Schema(
        tuple(table.schema.qid[i] for i in numbers), table.schema.class_name, table.schema.classes
    )
    columns = tuple(table.qid[i][rows] for i in numbers)
    own = CodedTable(schema, columns, table.cells[rows], np.ones(len(rows), dtype=np.int64))
    return OwnColumns(own, tuple(numbers))


def split_columns(table: CodedTable, first: Sequence[int]) -> list[OwnColumns]:
    rest = [i for i in range(len(table.qid)) if i not in first]
    return [own_columns(table, sorted(first)), own_columns(table, rest)]


def run_horizontal(
    tables: Sequence[CodedTable],
    request: DpRequest,
    *,
    leader: int = 0,
    deputy: int = 1,
    seed: object = 0,
    release: Release = release_horizontally,
    observer: Any = None,
    options: dict[str, Any] | None = None,
    **how: Any,
) -> tuple[Results, Transcript]:
    names = names_of(len(tables))
    return run_local(
        {
            me: release(
                Roster(me, names, names[leader], names[deputy]),
                table,
                request,
                SeededRng((seed, me)),
                mode=MODES[release],
                observer=observer if me == names[leader] else None,
                **(options or {}),
            )
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )


def run_vertical(
    columns: Sequence[OwnColumns], request: DpRequest, *, release: Release = release_aligned, **how: Any
) -> tuple[Results, Transcript]:
    return run_horizontal(columns, request, release=release, **how)  # type: ignore[arg-type]


def silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins of the circuits are all 0, which make 0 of every variable; local noise is 0."""
    zeros = lambda self, bits, n: np.zeros((bits, n), dtype=np.uint8)  # noqa: E731
    monkeypatch.setattr(GarblerSession, "_coins", zeros)
    monkeypatch.setattr(EvaluatorSession, "_coins", zeros)
    for module in ("dp.horizontal", "dp.vertical"):
        monkeypatch.setattr(f"anonymize.joint.{module}.exact_noise", lambda rng: Quiet())


def thirds(table: CodedTable, n: int = 3) -> list[CodedTable]:
    return split_rows(table, [i % n for i in range(len(table.cells))], n)


def expect_agreement(results: Results) -> None:
    first = results["p0"]
    for result in results.values():
        assert result.released.outcome == first.released.outcome
        assert result.released.table.counts.tolist() == first.released.table.counts.tolist()
        assert result.released.accountant.charges == first.released.accountant.charges
        assert result.ledger.reveals == first.ledger.reveals
        assert (result.delta, result.noise) == (first.delta, first.noise)


def convolved(law: dict[int, float]) -> dict[int, float]:
    keys = sorted(law)
    p = np.array([law[k] for k in keys])
    q = np.convolve(p, p)
    return {2 * keys[0] + i: float(x) for i, x in enumerate(q)}


def assert_mean_of_absolute(errors: list[int], law: dict[int, float]) -> None:
    """Within five standard deviations."""
    mean = sum(abs(k) * p for k, p in law.items())
    variance = sum((abs(k) - mean) ** 2 * p for k, p in law.items())
    found = float(np.abs(errors).mean())
    assert len(errors) > 200
    assert abs(found - mean) < 5 * math.sqrt(variance / len(errors))
