"""Random small jobs: taxonomies (jagged, with repeated labels), grids, rows, as YAML-like fields.

One draw gives the job fields, the rows, and the same thing as a problem of the slow reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anonymize.table import CodedTable
from tests.support.jobs import split_among
from tests.support.reference import Categorical, Numeric, Problem, Row
from tests.support.scores import PUBLISHED_NAMES


@dataclass(frozen=True)
class Case:
    """A random job with its rows."""

    fields: dict[str, Any]
    rows: tuple[Row, ...]
    problem: Problem

    def __repr__(self) -> str:
        return f"Case({self.fields}, {self.rows})"


@st.composite
def taxonomies(draw: st.DrawFn, prefix: str) -> tuple[Any, list[str]]:
    """A nested taxonomy and its values; groups may bear the label of another group or of a value."""
    n = draw(st.integers(1, 5))
    values = [f"{prefix}{i}" for i in range(n)]

    def build(part: Sequence[str], depth: int) -> Any:
        if depth == 0 or (len(part) == 1 and draw(st.booleans())):
            return list(part)
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(part) - 1)), max_size=2)))
        pieces = [list(part[a:b]) for a, b in zip([0, *cuts], [*cuts, len(part)], strict=True) if a < b]
        tree = {}
        for i, piece in enumerate(pieces):
            label = draw(st.sampled_from([f"g{i}", piece[0], "same"]))
            if label in tree:
                label = f"g{depth}{i}"
            tree[label] = build(piece, depth - 1)
        return tree

    return {"*": build(values, draw(st.integers(0, 3)))}, values


@st.composite
def columns(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], Any, list[str]]:
    """A qid column: job fields, the reference's column, the cells to draw from."""
    if draw(st.booleans()):
        tree, values = draw(taxonomies(name))
        drop, by_child = draw(st.booleans()), draw(st.booleans())
        refine = {"refine": "child" if by_child else "children"}
        spec = {"role": "qid", "taxonomy": tree, **({"missing": "drop"} if drop else {}), **refine}
        column = Categorical(_paths(tree, []), missing_leaf=not drop, by_child=by_child)
        return spec, column, values if drop else [*values, draw(st.sampled_from(["?", ""]))]
    low = draw(st.integers(-3, 3))
    step = draw(st.sampled_from(["1", "0.5", "2"]))
    n = draw(st.integers(1, 6))
    high = low + Decimal(step) * n
    if draw(st.booleans()):
        spec_numeric: dict[str, Any] = {"min": str(low), "max": str(high), "step": step}
        edges = [low + Decimal(step) * i for i in range(n + 1)]
    else:
        inner = sorted(draw(st.sets(st.integers(1, max(n - 1, 1)), max_size=4)))
        cuts = [low + Decimal(step) * i for i in inner if i < n]
        spec_numeric = {"min": str(low), "max": str(high), "cuts": [str(c) for c in cuts]}
        edges = [Decimal(low), *cuts, high]
    cells = [str(low + Decimal(step) * i / 2) for i in range(2 * n)]
    return {"role": "qid", "numeric": spec_numeric}, Numeric(edges), cells


def _paths(tree: Any, above: list[str]) -> list[list[str]]:
    if isinstance(tree, list):
        return [[*above, leaf] for leaf in tree]
    return [p for label, below in tree.items() for p in _paths(below, [*above, label])]


@st.composite
def cases(draw: st.DrawFn, max_rows: int = 24) -> Case:
    """A random single-holder job."""
    goal = draw(st.sampled_from(["classification", "general"]))
    fields: dict[str, Any] = {}
    qid, cells = {}, {}
    for i in range(draw(st.integers(1, 4))):
        name = f"q{i}"
        fields[name], qid[name], cells[name] = draw(columns(name))
    has_class = goal == "classification" or draw(st.booleans())
    if has_class:
        fields["cls"] = {"role": "class", "domain": ["Y", "N", "M"][: draw(st.integers(1, 3))]}
        cells["cls"] = fields["cls"]["domain"]
    sensitive = {}
    default_c = draw(st.sampled_from(["1", "1/2", "0.7", "2/3"]))
    for i in range(draw(st.integers(0, 2))):
        name = f"s{i}"
        domain = ["a", "b", "c", "d"][: draw(st.integers(1, 4))]
        values = draw(st.lists(st.sampled_from(domain), unique=True, min_size=1))
        own = draw(st.sampled_from([None, "3/4"])) if len(domain) > 1 else "1"
        fields[name] = {
            "role": "sensitive",
            "domain": domain,
            "values": values,
            **({"C": own} if own else {}),
        }
        sensitive[name] = (set(values), Fraction(own or default_c))
        cells[name] = domain
    least_k = 1 if any(bound < 1 for _, bound in sensitive.values()) else 2  # a job asks for something
    model = {"L": str(draw(st.integers(1, 4))), "K": str(draw(st.integers(least_k, 4))), "C": default_c}
    names = list(fields)
    rows = draw(
        st.lists(st.tuples(*(st.sampled_from(cells[name]) for name in names)), min_size=1, max_size=max_rows)
    )
    problem = Problem(qid, "cls" if has_class else None, sensitive, int(model["L"]), int(model["K"]), goal)
    job = {
        "version": "1",
        "name": "random",
        "partition": "single",
        "model": {"lkc": model},
        "goal": goal,
        "score": PUBLISHED_NAMES[goal],
        "columns": fields,
        "data": "table.csv",
    }
    return Case(job, tuple(dict(zip(names, row, strict=True)) for row in rows), problem)


def dealt(data: st.DataObject, whole: CodedTable, n: int) -> list[CodedTable]:
    """The records of a table, dealt to ``n`` holders; one may get none."""
    owners = np.array([data.draw(st.integers(0, n - 1)) for _ in range(whole.n_records)])
    return split_among(whole, owners, n)
