"""Groups that hold a column back: each is a group of the raw table, of the named size, that breaks the criterion."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.errors import PrivacyError
from anonymize.lkc.stopped import Blocked, Excess, blocked
from anonymize.table import CodedTable
from anonymize.tds import Outcome
from tests.support import jobs
from tests.support.samples import single_job

COLUMNS = {
    "a": {
        "role": "qid",
        "refine": "children",
        "taxonomy": {"Any": {"P": ["p1", "p2"], "Q": ["q1", "q2", "q3"]}},
    },
    "b": {"role": "qid", "refine": "children", "taxonomy": {"Any": ["b1", "b2", "b3"]}},
    "c": {"role": "qid", "refine": "children", "taxonomy": {"Any": {"X": ["x1", "x2"], "Y": ["y1"]}}},
    "ill": {"role": "sensitive", "domain": ["HIV", "Flu"], "values": ["HIV"]},
}
GROUP_OF = {"p1": "P", "p2": "P", "q1": "Q", "q2": "Q", "q3": "Q", "x1": "X", "x2": "X", "y1": "y1"}


def case(seed: int, n: int, lkc: Mapping[str, str]) -> tuple[Any, CodedTable, list[dict[str, str]]]:
    rng = np.random.default_rng(seed)
    values = {
        "a": ["p1", "p2", "q1", "q2", "q3"],
        "b": ["b1", "b2", "b3"],
        "c": ["x1", "x2", "y1"],
        "ill": ["HIV", "Flu"],
    }
    rows = [{name: of[int(len(of) * rng.random() ** 2)] for name, of in values.items()} for _ in range(n)]
    bundle = jobs.bundle_of(single_job(goal="general", model={"lkc": lkc}, columns=COLUMNS))
    return bundle, jobs.coded(bundle, rows), rows


def groups_of(bundle: Any, table: CodedTable) -> tuple[Outcome, Mapping[tuple[str, str], Blocked]]:
    outcome, _ = jobs.run_single(bundle, table)
    return outcome, blocked(table, outcome, jobs.requirement_of(bundle).entries(table.schema))


def printed(value: str) -> set[str]:
    """Return all values that a cell may print as."""
    return {value, GROUP_OF.get(value, value), "Any"}


def in_group(row: Mapping[str, str], group: Blocked) -> bool:
    return all(label in printed(row[name]) for name, label in group.values)


def held_back(table: CodedTable, outcome: Outcome) -> set[tuple[str, str]]:
    """Return column and value of each node of the cut with a discarded step."""
    return {
        (table.schema.qid[number].name, table.schema.qid[number].label(step.candidate.node))
        for step in outcome.steps
        if step.violation is not None
        and step.candidate.node in outcome.cut.nodes[number := step.candidate.column]
    }


@given(
    seed=st.integers(0, 10**6),
    known=st.integers(1, 3),
    size=st.integers(2, 9),
    c=st.sampled_from(["1", "0.6"]),
)
def test_a_group_of_the_raw_table_holds_each_column_back(seed: int, known: int, size: int, c: str) -> None:
    bundle, table, rows = case(seed, 40, {"L": str(known), "K": str(size), "C": c})
    try:
        outcome, found = groups_of(bundle, table)
    except PrivacyError:
        return  # the whole table does not meet the requirement
    assert set(found) == held_back(table, outcome)
    for (name, _), group in found.items():
        assert group.values[0][0] == name
        assert len({column for column, _ in group.values}) == len(group.values) <= known
        own = [row for row in rows if in_group(row, group)]
        assert len(own) == group.records > 0
        ill = sum(row["ill"] == "HIV" for row in own)
        assert len(own) < size or ill > float(c) * len(own)
        if group.excess is not None:
            assert (group.excess.value, group.excess.records) == ("HIV", ill)
            assert ill > group.excess.bound * len(own)


def test_the_smallest_group_on_the_fewest_columns_is_named() -> None:
    """K = 8 and one column: the smallest of its groups, found by counting."""
    for seed in range(20):
        bundle, table, rows = case(seed, 40, {"L": "1", "K": "8", "C": "1"})
        _, found = groups_of(bundle, table)
        for (name, value), group in found.items():
            below = [row[name] for row in rows if value in printed(row[name])]
            level = (lambda cell: cell) if value != "Any" else (lambda cell: GROUP_OF.get(cell, cell))
            sizes = {label: [level(cell) for cell in below].count(label) for label in map(level, below)}
            assert group.records == min(sizes.values())


def test_of_several_protected_values_the_most_frequent_is_named() -> None:
    """A single column and C = 1/2; K is met by every group."""
    columns = {"b": COLUMNS["b"], "ill": {"role": "sensitive", "domain": ["HIV", "Flu", "Cold"]}}
    lkc = {"L": "1", "K": "1", "C": "0.5"}
    bundle = jobs.bundle_of(single_job(goal="general", model={"lkc": lkc}, columns=columns))
    ills = {"b1": ["Flu"] * 5 + ["HIV"] * 2, "b2": ["HIV"] * 5 + ["Cold"] * 5, "b3": ["Cold", "HIV"]}
    table = jobs.coded(bundle, [{"b": b, "ill": ill} for b, found in ills.items() for ill in found])
    _, found = groups_of(bundle, table)
    (group,) = found.values()
    assert group == Blocked((("b", "b1"),), 7, Excess("Flu", 5, Fraction(1, 2)))


def test_few_sets_of_columns_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, table, _ = case(1, 40, {"L": "1", "K": "9", "C": "1"})
    assert groups_of(bundle, table)[1]
    monkeypatch.setattr("anonymize.lkc.stopped._MOST_SUBSETS", 0)
    assert groups_of(bundle, table)[1] == {}
