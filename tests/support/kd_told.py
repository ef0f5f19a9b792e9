"""Reveals of a sealed kd run, computed from what it released, and boxes read from printed labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from anonymize.criteria.criterion import RECORDS, Bools, Tally, tallies_of
from anonymize.criteria.size import Size, least_size
from anonymize.grid import Grid
from anonymize.joint.kd import cells, sealed
from anonymize.kd.boxes import Boxes
from anonymize.kd.fronts import NONE
from anonymize.kd.replay import replay
from anonymize.kd.table import BoxedTable
from anonymize.lkc.requirement import Requirement
from anonymize.release import Release
from anonymize.table import Ints, QidColumn, Schema, tally


def told_by(
    schema: Schema, table: BoxedTable, least: int, asked: Mapping[str, Fraction]
) -> list[tuple[str, Any, str]]:
    """Everything that a run reveals, computed from what it released, its job, and public numbers of the program.

    least:  K. asked: C by sensitive column.
    """
    K = least
    bounds = [
        (i, value, asked[column.name])
        for i, column in enumerate(schema.sensitive)
        for value in column.protected
        if asked[column.name] < 1
    ]
    axes = np.unravel_index(table.cell, schema.cell_shape)

    def counts(of: Ints, n: int) -> list[Ints]:
        """By measure, of groups of final groups; of: of every final one, NONE for none."""
        own = of[table.group]
        rows = [own[axes[i + 1] == value] for i, value, _ in bounds] + [own]
        chosen = [table.count[axes[i + 1] == value] for i, value, _ in bounds] + [table.count]
        return [tally(g[g != NONE], w[g != NONE], n) for g, w in zip(rows, chosen, strict=True)]

    def width(group: Ints) -> int:
        n = int(group.max()) + 1
        if n == 0:
            return 1
        *protected, _ = counts(group, n)
        broken = [np.ones(n, dtype=int)]
        for (_, _, c), own in zip(bounds, protected, strict=True):
            broken.append(own * c.denominator > c.numerator * K)
        return min(max(sealed.MANY_TESTS // int(np.sum(broken)), 1), sealed.WIDE_FRONT)

    whole = tally(table.cell, table.count, schema.n_cells)
    told: list[tuple[str, Any, str]] = [("root_check", True, "all"), ("root_counts", whole.tolist(), "all")]
    for front in replay(schema, table, K, width):
        taken = front.verdict.taken
        told.append(("cut_taken", taken.tolist(), "all"))
        cut = np.flatnonzero(taken != NONE)
        left = counts(np.where(front.left, front.group, NONE), front.front.n_groups)
        if len(cut):
            told.append(("group_counts", [own[cut].tolist() for own in left], "all"))
    return told + told_of_cells(schema, table, is_judged=bool(bounds))


def told_of_blocks(
    schema: Schema, table: BoxedTable, requirement: Requirement, blocks: Sequence[Sequence[int]]
) -> list[tuple[str, Any, str]]:
    """The same of any requirement, and where only blocks of columns are told: from the counts of each block.

    blocks:  by block axes of cells, 0 being the class; one of them all where they are linked. A front is as wide as
             the tests allow that a side of a cut could break.
    """
    (entry,) = requirement.entries(schema)
    tallies = list(dict.fromkeys(t for t in tallies_of(entry.criteria) if t != RECORDS))
    # As they are opened: those of the same columns one after the other.
    by_columns = {t.columns: [u for u in tallies if u.columns == t.columns] for t in tallies}
    told_of = [t for own in by_columns.values() for t in own]
    axes = [axis.tolist() for axis in schema.axes(table.cell)]

    def held(t: Tally, row: int) -> bool:
        tested = {c: int(schema.sensitive[c].tests(np.array([axes[c + 1][row]]))[0]) for c in t.columns}
        return all(tested[c] == v for c, v in t.holding) and all(tested[c] != v for c, v in t.lacking)

    def counts(some: Bools) -> list[int]:
        """Of final groups together."""
        rows = [row for row in range(len(table.cell)) if some[table.group[row]]]
        of_tallies = [sum(int(table.count[r]) for r in rows if held(t, r)) for t in told_of]
        return [*of_tallies, sum(int(table.count[r]) for r in rows)]

    def tests_of(group: Ints) -> int:
        """Tests of one side of a cut of every open group."""
        groups = [counts(group == number) for number in range(int(group.max()) + 1)]
        totals = dict(zip([*told_of, RECORDS], np.array(groups).T, strict=True))
        found = 0
        for criterion in entry.criteria:
            if isinstance(criterion, Size):
                found += len(groups) * len(criterion.cases)
            else:
                found += int(criterion.at_stake(totals, least_size(entry.criteria)).sum())
        return max(found, 1)

    def width(group: Ints) -> int:
        if group.max() == NONE:
            return 1
        return min(max(sealed.MANY_TESTS // tests_of(group), 1), sealed.WIDE_FRONT)

    own_tables = [_of_block(schema, table, block) for block in blocks]
    whole = [tally(own.cell, own.count, part.n_cells).tolist() for part, own in own_tables]
    flat = [count for own in whole for count in own]
    told: list[tuple[str, Any, str]] = [("root_check", True, "all"), ("root_counts", flat, "all")]
    for front in replay(schema, table, least_size(entry.criteria), width):
        taken = front.verdict.taken
        told.append(("cut_taken", taken.tolist(), "all"))
        cut = np.flatnonzero(taken != NONE).tolist()
        left = [counts(front.left & (front.group == number)) for number in cut]
        if cut:
            told.append(("group_counts", [list(own) for own in zip(*left, strict=True)], "all"))
    for block, (part, own) in zip(blocks, own_tables, strict=True):
        is_judged = any(_block_of(t, blocks) == block for t in told_of)
        told += told_of_cells(part, own, is_judged=is_judged)
    return told


def _block_of(counted: Tally, blocks: Sequence[Sequence[int]]) -> Sequence[int] | None:
    return next((block for block in blocks if all(c + 1 in block for c in counted.columns)), None)


def _of_block(schema: Schema, table: BoxedTable, block: Sequence[int]) -> tuple[Schema, BoxedTable]:
    """The counts of a block, with a schema of its cells."""
    part = replace(
        schema,
        classes=schema.classes if 0 in block else ("",),
        sensitive=tuple(schema.sensitive[axis - 1] for axis in block if axis),
    )
    codes = [axis for number, axis in enumerate(schema.axes(table.cell)) if number in block]
    cell = np.ravel_multi_index(codes, [schema.cell_shape[axis] for axis in block])
    found, place = np.unique(np.stack([table.group, cell]), axis=1, return_inverse=True)
    counts = tally(place.reshape(-1), table.count, found.shape[1])
    return part, BoxedTable(table.boxes, found[0], found[1], counts)


def told_of_cells(schema: Schema, table: BoxedTable, *, is_judged: bool) -> list[tuple[str, Any, str]]:
    """The last openings, of all cells at once or of runs of them."""
    if schema.n_cells == 1:
        return []
    told: list[tuple[str, Any, str]] = []
    at_once = table.n_groups * schema.n_cells <= cells.MOST_AT_ONCE
    radix = schema.n_cells if at_once else 16
    span = radix
    while span < schema.n_cells:
        span *= radix
    padded = np.zeros((table.n_groups, span), dtype=np.int64)
    padded[table.group, table.cell] = table.count
    runs = padded.sum(axis=1).reshape(-1, 1)
    while span > 1:
        span //= radix
        some = np.flatnonzero(runs.reshape(-1))
        runs = padded.reshape(-1, radix, span).sum(axis=2)
        if span == 1 and is_judged:
            told.append(("same_counts", True, "all"))
        told.append(("group_cells", runs[some, :-1].tolist(), "all"))
    return told


def table_of_release(schema: Schema, release: Release) -> BoxedTable:
    """The groups and counts of a table, from its printed labels alone."""
    columns = [release.columns[column.name] for column in schema.qid]
    runs = [[_run(c, label) for label in own.labels] for c, own in zip(schema.qid, columns, strict=True)]
    rows = [
        [end for of, own in zip(runs, columns, strict=True) for end in of[own.codes[row]]]
        for row in range(release.n_rows)
    ]
    domains = [(schema.class_name, schema.classes), *((c.name, c.domain) for c in schema.sensitive)]
    cell = np.zeros(release.n_rows, dtype=np.int64)
    for name, domain in domains:
        if name is not None:
            own = release.columns[name]
            places = np.array([domain.index(label) for label in own.labels])
            cell = cell * len(domain) + places[own.codes]
    boxes, group = np.unique(np.array(rows), axis=0, return_inverse=True)
    entries, counts = np.unique(np.stack([group.reshape(-1), cell]), axis=1, return_counts=True)
    return BoxedTable(Boxes(boxes[:, ::2].T, boxes[:, 1::2].T), entries[0], entries[1], counts)


def _run(column: QidColumn, label: str) -> tuple[int, int]:
    """First leaf, and the one behind the last."""
    values = column.values
    if isinstance(values, Grid):
        edges = [values.edge_label(i) for i in range(len(values.edges))]
        low, high = label[1:-1].split(",")
        return edges.index(low), edges.index(high)
    parts = [next(n for n in reversed(values.nodes) if column.label(n) == part) for part in label.split("|")]
    return parts[0].first, parts[-1].last
