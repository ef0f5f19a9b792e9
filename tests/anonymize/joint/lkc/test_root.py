"""The root check of sealed runs: the same bit as one holder's, in one circuit or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from anonymize.criteria.criterion import Demand
from anonymize.criteria.distinct import DistinctValues
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.criteria.size import Size
from anonymize.joint.engine import Engine
from anonymize.joint.lkc import sealed
from anonymize.joint.lkc.sealed import RootTests
from anonymize.lkc.requirement import Ask, Entry, check_root, criteria_of, most_records
from anonymize.table import Ints, Schema
from anonymize.tds import Observer
from crypto.circuit import Held, To
from crypto.encoding import as_words
from crypto.local import run_local
from crypto.rounds import Rounds
from jobs.lkc.costs import order_of_gates
from tests.support import jobs
from tests.support.computations import Computed, watched
from tests.support.sessions import two_party_sessions


def schema_of(*sensitive: int) -> Schema:
    """Sensitive columns of so many values."""
    columns: dict[str, Any] = {
        "q": {"role": "qid", "taxonomy": {"*": ["a", "b"]}},
        "c": {"role": "class", "domain": ["Y"]},
    }
    for i, n in enumerate(sensitive):
        columns[f"s{i}"] = {"role": "sensitive", "domain": [f"v{k}" for k in range(n)]}
    model = {"lkc": {"L": "1", "K": "2", "C": "1"}}
    fields = {"version": "1", "name": "root", "partition": "single", "model": model, "data": "t.csv"}
    return jobs.request_of(jobs.bundle_of({**fields, "columns": columns})).schema


def entries_of(schema: Schema, *demands: Demand) -> tuple[Entry, ...]:
    return (Ask(1, demands).entry(schema),)


def met_at_the_pair(schema: Schema, entries: Sequence[Entry], cells: Ints) -> bool:
    """The check of a table whose counts are dealt out as shares."""
    tests = RootTests(schema, entries)
    whole = as_words(tests.counts(cells))
    mine = np.random.default_rng(1).integers(0, 1 << 63, whole.shape).astype(np.uint64)
    shares = {"g": mine, "e": whole - mine}

    def protocol(engine: Engine, share: Any) -> Rounds[bool]:
        return (yield from tests.met(engine, share))

    engines = zip("ge", (Engine(session, Observer()) for session in two_party_sessions()), strict=True)
    results, _ = run_local({name: protocol(engine, shares[name]) for name, engine in engines})
    assert results["g"] == results["e"]
    return bool(results["g"])


DEMANDS: dict[str, tuple[Demand, ...]] = {
    "diversity 3": (Size(2), DiverseValues(3)),
    "ruled_out 1": (Size(2), RuledOutValues(1, (("s0", Fraction(2, 3)), ("s1", Fraction(3, 4))))),
    "distinct 2": (Size(2), DistinctValues((("s0", 2),))),
    "diversity 2": (Size(2), DiverseValues(2)),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("many", [0, 1000], ids=["side by side", "in one circuit"])
@pytest.mark.parametrize("asked", DEMANDS)
def test_the_bit_is_that_of_one_holder(asked: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of few records in four cells, no records among them: the whole table is no empty group."""
    monkeypatch.setattr(sealed, "MANY_CASES", many)
    schema = schema_of(3, 3)
    entries = entries_of(schema, *DEMANDS[asked])
    some = np.array([0, 1, 4, 8])  # (v0, v0), (v0, v1), (v1, v1), (v2, v2)
    found = set()
    for counts in [(1, 0, 0, 0), (0, 0, 5, 1), *product((0, 2), repeat=4)]:
        cells = np.zeros(schema.n_cells, dtype=np.int64)
        cells[some] = counts
        alone = check_root(schema, entries, cells) is None
        assert met_at_the_pair(schema, entries, cells) == alone, counts
        found.add(alone)
    assert found == {True, False}


@pytest.mark.parametrize("many", [0, 1000])
def test_a_table_too_large_for_exact_arithmetic_is_refused(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "MANY_CASES", many)
    schema = schema_of(3, 3)
    entries = entries_of(schema, Size(2), RuledOutValues(1, (("s0", Fraction(2, 3)),)))
    cells = np.full(schema.n_cells, most_records(entries) // schema.n_cells, dtype=np.int64)
    cells[0] += most_records(entries) - cells.sum()
    assert met_at_the_pair(schema, entries, cells)
    cells[0] += 1
    assert not met_at_the_pair(schema, entries, cells)


def test_many_cases_are_many_instances_of_a_small_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three columns of 12 values, all protected: 630 pairs. One bit comes out."""
    schema = schema_of(12, 12, 12)
    entries = entries_of(schema, Size(2), DiverseValues(3))
    size, diverse = entries[0].criteria
    assert len(size.cases) <= sealed.MANY_CASES < len(diverse.cases) == 36 + 630
    rng = np.random.default_rng(2)
    cells = np.bincount(rng.integers(0, schema.n_cells, 300), minlength=schema.n_cells)
    computed: list[Computed] = watched(monkeypatch)
    assert met_at_the_pair(schema, entries, cells)
    assert max(entry.circuit.and_gates for entry in computed) < 200
    assert [list(entry.out) for entry in computed if entry.out] == 2 * [[("met", To.BOTH)]]
    one_value = np.where(np.arange(schema.n_cells) % 12 < 2, cells, 0)  # of the last column two values
    assert not met_at_the_pair(schema, entries, one_value)


@pytest.mark.parametrize("asked", ["diversity 3", "ruled_out 1"])
@pytest.mark.parametrize("n_values", [6, 35])
def test_a_group_takes_about_what_is_said_before_a_run(
    asked: str, n_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The root is a group of which all is asked; besides, one circuit says that it is not too large."""
    monkeypatch.setattr(sealed, "MANY_CASES", 0)
    schema = schema_of(n_values, n_values)
    entries = entries_of(schema, *DEMANDS[asked])
    computed: list[Computed] = watched(monkeypatch)
    met_at_the_pair(schema, entries, np.ones(schema.n_cells, dtype=np.int64))
    tests = [entry for entry in computed if entry.role is Held.GARBLER][1:]
    order = order_of_gates(criteria_of(entries))
    taken = sum(entry.batch * entry.circuit.and_gates for entry in tests)
    assert order is not None
    assert 10 ** (order - 1) <= taken <= 10 ** (order + 1)
    assert 16 * taken <= sum(entry.bytes_sent for entry in tests) <= 64 * taken
