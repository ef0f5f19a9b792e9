"""Small kd runs: random cases as jobs of one entry, and groups in a form that can be compared."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonymize.joint.kd.sealed import JointKd, KdRequest, anonymize_kd_sealed
from anonymize.joint.roster import Roster
from anonymize.kd.table import BoxedTable, release_of_boxes
from anonymize.linked_columns import Blocks, CountedBlock, relinked
from anonymize.lkc.requirement import AskedList, Requirement
from anonymize.table import CodedTable, Schema
from anonymize.tds import Observer
from crypto.local import Transcript, run_local
from tests.support import jobs
from tests.support.reference import Categorical, Numeric, Problem, nested_paths
from tests.support.rng import SeededRng
from tests.support.tables import Case, cases

Printed = list[tuple[tuple[str, ...], list[tuple[str, ...]]]]


@st.composite
def kd_cases(draw: st.DrawFn, max_rows: int = 60) -> Case:
    """A random job whose attackers know all quasi-identifiers."""
    case = draw(cases(max_rows))
    columns = len(case.problem.qid)
    return dataclasses.replace(
        case,
        fields=with_l(case.fields, columns),
        problem=dataclasses.replace(case.problem, L=columns),
    )


def with_l(fields: Mapping[str, Any], columns: int) -> dict[str, Any]:
    return {**fields, "model": {"lkc": {**fields["model"]["lkc"], "L": str(columns)}}}


def loaded(case: Case) -> tuple[CodedTable, AskedList]:
    bundle = jobs.bundle_of(case.fields)
    return jobs.coded(bundle, case.rows), jobs.requirement_of(bundle)


def printed(schema: Schema, table: BoxedTable) -> Printed:
    """Every group: its printed quasi-identifiers, and what is published of each record."""
    n_qid, found = len(schema.qid), {}
    for number in range(table.n_groups):
        own = table.group == number
        box = table.boxes.some(np.array([number]))
        one = BoxedTable(box, np.zeros_like(table.group[own]), table.cell[own], table.count[own])
        rows = sorted(jobs.multiset(release_of_boxes(schema, one)).elements())
        found[number] = rows[0][:n_qid], [row[n_qid:] for row in rows]
    return sorted(found.values())


def expect_same_table(one: BoxedTable, other: BoxedTable) -> None:
    """The same boxes and counts, in the same order."""
    for a, b in (
        (one.boxes.first, other.boxes.first),
        (one.boxes.last, other.boxes.last),
        (one.group, other.group),
        (one.cell, other.cell),
        (one.count, other.count),
    ):
        assert np.array_equal(a, b)


def relinked_boxes(schema: Schema, blocks: Sequence[CountedBlock], table: BoxedTable) -> BoxedTable:
    """A table as a joint run writes it where only its blocks are told."""
    return BoxedTable(table.boxes, *relinked(schema, blocks, (table.group, table.cell, table.count)))


def wide_case(n_rows: int) -> Case:
    """Four columns with long families, deep taxonomies and a fine grid; one sensitive column; K = 3, C = 2/3."""
    coins = random.Random(1)  # noqa: S311
    letters = [chr(97 + i) for i in range(11)]
    deep: Any = {"*": {g: {f"{g}{i}": [f"{g}{i}{j}" for j in range(3)] for i in range(4)} for g in "XYZ"}}
    leaves = [leaf for g in deep["*"].values() for family in g.values() for leaf in family]
    fields: dict[str, Any] = {
        "q0": {"role": "qid", "taxonomy": {"*": letters}, "missing": "drop"},
        "q1": {"role": "qid", "taxonomy": deep, "missing": "drop"},
        "n0": {"role": "qid", "numeric": {"min": "0", "max": "97", "step": "1"}},
        "n1": {"role": "qid", "numeric": {"min": "0", "max": "1000", "step": "3"}},
        "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x", "y"]},
    }
    rows = tuple(
        {
            "q0": coins.choices(letters, range(1, 12))[0],
            "q1": coins.choice(leaves),
            "n0": str(int(coins.triangular(0, 97, 10))),
            "n1": str(int(coins.triangular(0, 400, 30))),
            "s": coins.choices("xyz", [3, 2, 1])[0],
        }
        for _ in range(n_rows)
    )
    qid: dict[str, Any] = {
        "q0": Categorical(nested_paths(fields["q0"]["taxonomy"], []), missing_leaf=False),
        "q1": Categorical(nested_paths(deep, []), missing_leaf=False),
        "n0": Numeric([Decimal(i) for i in range(98)]),
        "n1": Numeric([*(Decimal(i) for i in range(0, 1000, 3)), Decimal(1000)]),
    }
    model = {"lkc": {"L": "4", "K": "3", "C": "2/3"}}
    job = {"version": "1", "name": "wide", "partition": "single", "model": model, "goal": "general"}
    problem = Problem(qid, None, {"s": ({"x", "y"}, Fraction(2, 3))}, 4, 3, "general")
    return Case({**job, "columns": fields, "data": "t.csv"}, rows, problem)


def run_sealed_kd(
    tables: Sequence[CodedTable],
    requirement: Requirement,
    *,
    leader: int = 0,
    deputy: int = 1,
    linked: Blocks = (),
    observers: Mapping[str, Observer] | None = None,
    **how: Any,
) -> tuple[dict[str, JointKd], Transcript]:
    """A sealed run in this process; linked: the blocks, if several; how: of :func:`crypto.local.run_local`."""
    names = tuple(f"p{i}" for i in range(len(tables)))
    request = KdRequest(tables[0].schema, requirement, bytes(32), linked)
    return run_local(
        {
            me: anonymize_kd_sealed(
                Roster(me, names, names[leader], names[deputy]),
                table,
                request,
                SeededRng(me),
                mode="horizontal/sealed/kd",
                observer=(observers or {}).get(me),
            )
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )
