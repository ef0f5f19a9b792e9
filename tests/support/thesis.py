"""The published DP protocols in process."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonymize.joint.dp.thesis.horizontal import release_horizontally_as_published
from anonymize.joint.dp.thesis.ranges import KeySize, Ranges
from anonymize.joint.dp.thesis.vertical import release_aligned_as_published
from anonymize.joint.engine import Engine
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSession
from anonymize.table import CodedTable
from anonymize.tds import Observer
from crypto.circuit import Held
from crypto.rng import Rng
from crypto.rounds import Rounds
from tests.support import ideal_arithmetic
from tests.support.dp_runs import request_for, run_horizontal, run_vertical, split_columns, split_rows
from tests.support.dp_tables import categorical, numeric, schema_of, table_of
from tests.support.ideal import IdealCarried, IdealSession
from tests.support.keys import short_key

SHORT = {"key_size": KeySize(1536, unsafe_short=True)}


def small(n: int = 24, seed: int = 1) -> CodedTable:
    schema = schema_of(numeric("age", 3), categorical("job", {"*": {"A": ["a", "b"], "B": ["c"]}}))
    rng = np.random.default_rng(seed)
    age, job = rng.integers(0, 3, n), rng.integers(0, 3, n)
    return table_of(schema, list(zip(age, job, (age > 1).astype(int), strict=True)))


def published(partition: str, table: CodedTable, seed: object = 0, **settings: Any) -> Any:
    how = {k: settings.pop(k) for k in ("tamper", "leader", "deputy", "options") if k in settings}
    request = request_for(
        table.schema,
        **{"noise": "each", "epsilon": Fraction(1, 2), "specializations": 2, "max_rows": 24, **settings},
    )
    how = {"options": SHORT, "seed": seed, **how}
    if partition == "vertical":
        columns = split_columns(table, [0])
        return run_vertical(columns, request, release=release_aligned_as_published, **how)
    rows = split_rows(table, [i % 2 for i in range(len(table.cells))], 2)
    return run_horizontal(rows, request, release=release_horizontally_as_published, **how)


def idealize(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twins in place of circuits, polynomials and scalar products; keys of any size will do."""
    for module in ("dp.columns", "dp.thesis.horizontal"):
        monkeypatch.setattr(f"anonymize.joint.{module}.open_session", ideal_session)
    for name in ("value_receiver", "value_sender"):
        monkeypatch.setattr(f"anonymize.joint.dp.thesis.horizontal.{name}", getattr(ideal_arithmetic, name))
    for name in ("scalar_product_holder", "scalar_product_masker"):
        monkeypatch.setattr(f"anonymize.joint.dp.thesis.vertical.{name}", getattr(ideal_arithmetic, name))
    monkeypatch.setattr(Ranges, "check_key", lambda self, bits: None)
    monkeypatch.setattr("anonymize.joint.dp.thesis.horizontal.CarriedWords", IdealCarried)
    for module in ("dp.thesis.choice", "engine"):
        monkeypatch.setattr(f"anonymize.joint.{module}.CarriedWords", IdealCarried)
    key = short_key("p0"), short_key("p1")
    for module in ("dp.thesis.vertical", "dp.thesis.horizontal"):
        monkeypatch.setattr(f"anonymize.joint.{module}.generate_key", lambda me, *_, **__: key[me == "p1"])
        monkeypatch.setattr(f"anonymize.joint.{module}.send_key", no_key)
        monkeypatch.setattr(f"anonymize.joint.{module}.receive_key", lambda peer, *_, **__: no_key(peer))


def no_key(*_: object) -> Rounds[None]:
    return None
    yield


def ideal_session(roster: Roster, rng: Rng, observer: Observer) -> Rounds[Any]:
    """Make a session in the clear, with the coins of our own."""
    role = Held.GARBLER if roster.leads else Held.EVALUATOR
    return CircuitSession(Engine(IdealSession(role, roster.others[0], rng), observer), None)
    yield
