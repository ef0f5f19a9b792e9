"""A slow reference of kd that follows semantics §11 literally, on rows of text, without any code of the product."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.support.reference import Categorical, Known, Numeric, Problem, Row, Tree, group_ok

Run = Any
"""Of a numeric column two edges; of a categorical one neighbouring children of one node, or one node alone."""


def lowest(run: list[Tree]) -> list[Tree]:
    """The parts between which a categorical run is cut; a single one that has no children cannot be."""
    while len(run) == 1 and run[0].children:
        run = run[0].children
    return run


def leaves_of(column: Categorical | Numeric, run: Run) -> int:
    if isinstance(column, Numeric):
        return sum(run[0] <= edge < run[1] for edge in column.edges[:-1])
    return sum(len(node.values) for node in run)


def halves(column: Categorical | Numeric, run: Run) -> dict[int, tuple[Run, Run]]:
    """Every place to cut, by the number of leaves on its left."""
    if isinstance(column, Numeric):
        inside = [edge for edge in column.edges if run[0] < edge < run[1]]
        return {i + 1: ((run[0], edge), (edge, run[1])) for i, edge in enumerate(inside)}
    parts = lowest(run)
    found = {}
    for i in range(1, len(parts)):
        found[sum(len(part.values) for part in parts[:i])] = (parts[:i], parts[i:])
    return found


def holds(column: Categorical | Numeric, run: Run, value: str) -> bool:
    if isinstance(column, Numeric):
        return bool(run[0] <= Decimal(value) < run[1])
    return any(column.holds(node, value) for node in run)


def label(column: Categorical | Numeric, run: Run) -> str:
    if isinstance(column, Numeric):
        return column.label(run)
    printed = []
    for part in run:
        while len(part.children) == 1:
            part = part.children[0]
        printed.append(column.label(part))
    return "|".join(printed)


def medians(rows: list[Row], boxes: dict[str, Run], problem: Problem) -> list[tuple[str, Run, Run]]:
    """The same where records are halved: one place for each column, with records on both sides."""
    found = []
    for number, (name, column) in enumerate(problem.qid.items()):
        places = []
        for p, sides in halves(column, boxes[name]).items():
            n_left = sum(holds(column, sides[0], row[name]) for row in rows)
            if 0 < n_left < len(rows):
                places.append((abs(2 * n_left - len(rows)), p, sides))
        if places:
            _, _, (left, right) = min(places, key=lambda place: place[:2])
            spread = Fraction(leaves_of(column, boxes[name]) - 1, leaves_of(column, root(column)) - 1)
            found.append(((-spread, number), (name, left, right)))
    return [candidate for _, candidate in sorted(found, key=lambda each: each[0])]


def candidates(boxes: dict[str, Run], problem: Problem) -> list[tuple[str, Run, Run]]:
    """Column and both sides, in the order in which they are tried."""
    found = []
    for number, (name, column) in enumerate(problem.qid.items()):
        run = boxes[name]
        w = leaves_of(column, run)
        whole = leaves_of(column, root(column))
        cuts, seen = halves(column, run), set()
        for t in (1, 2, 3):
            for k in range(1, 2**t, 2):
                if not cuts:
                    continue
                p = min(cuts, key=lambda p, t=t, k=k, w=w: (abs(2**t * p - w * k), p))  # type: ignore[misc]
                if p not in seen:
                    seen.add(p)
                    found.append(((t, -Fraction(w - 1, whole - 1), number, k), (name, *cuts[p])))
    return [candidate for _, candidate in sorted(found, key=lambda each: each[0])]


def root(column: Categorical | Numeric) -> Run:
    return column.root if isinstance(column, Numeric) else [column.root]


def cut(rows: list[Row], boxes: dict[str, Run], problem: Problem, entry: Known, median: bool) -> list[Any]:
    if len(rows) >= 2 * entry.K:
        tried = medians(rows, boxes, problem) if median else candidates(boxes, problem)
        for name, left, right in tried:
            column = problem.qid[name]
            parts = [[row for row in rows if holds(column, side, row[name])] for side in (left, right)]
            if all(not part or group_ok(part, entry, problem) for part in parts):
                return [
                    group
                    for side, part in zip((left, right), parts, strict=True)
                    if part
                    for group in cut(part, {**boxes, name: side}, problem, entry, median)
                ]
    return [(boxes, rows)]


def anonymize(
    rows: list[Row], problem: Problem, median: bool = False
) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]] | None:
    """The groups: printed quasi-identifiers, and what is published of each record; None if the root fails."""
    (entry,) = problem.asked()
    if not group_ok(rows, entry, problem):
        return None
    kept = ([problem.class_name] if problem.class_name else []) + list(problem.sensitive)
    groups = cut(rows, {name: root(column) for name, column in problem.qid.items()}, problem, entry, median)
    return sorted(
        (
            tuple(label(problem.qid[name], run) for name, run in boxes.items()),
            sorted(tuple(row[name] for name in kept) for row in part),
        )
        for boxes, part in groups
    )
