"""Comparison of released tables by counting queries: kd, at public places and at medians, and top-down.

A query counts the records that meet one to four conditions. One condition is on a sensitive column: a value of some
record. The remaining conditions are on different quasi-identifiers: a run of leaves, of any length, that holds a
leaf of some record. The answer spreads the records of a group evenly over the leaves of its label. The error is
|answer - truth| / max(truth, N / 1000).

    python -m benchmarks.bench_kd_queries [DATA_SET ...]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.size import Size
from anonymize.cut import Cut
from anonymize.joint.lkc.scores.rows import score_of
from anonymize.kd.boxes import Boxes
from anonymize.kd.median import MedianHolder
from anonymize.kd.single import KdOutcome, anonymize_kd
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable, Ints
from benchmarks.data_sets import DATA_SETS
from benchmarks.kd_tables import adult
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish

N_QUERIES = 3000
MOST_CONDITIONS = 4
SMALLEST = 1000
K = 50

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Query:
    """A counting query.

    runs:       by quasi-identifier, the queried leaves [first, last).
    sensitive:  the number of a sensitive column. value: its place there.
    """

    runs: Mapping[int, tuple[int, int]]
    sensitive: int
    value: int


@dataclass(frozen=True)
class Grouped:
    """A released table.

    group:   of every record: int64, shape (n_records,).
    covered: for every group, the share of its leaves of a column in [first, last): column, first, last;
             float64, shape (n_groups,).
    """

    group: Ints = field(repr=False)
    covered: Callable[[int, int, int], Shares]


def in_boxes(outcome: KdOutcome) -> Grouped:
    boxes: Boxes = outcome.table.boxes

    def covered(column: int, first: int, last: int) -> Shares:
        left, right = boxes.first[column], boxes.last[column]
        common = np.minimum(right, last) - np.maximum(left, first)
        return np.maximum(common, 0) / (right - left)

    return Grouped(outcome.group, covered)


def by_cut(table: CodedTable, cut: Cut) -> Grouped:
    nodes = np.stack([cut.positions(i)[codes] for i, codes in enumerate(table.qid)])
    kinds, group = np.unique(nodes, axis=1, return_inverse=True)

    def covered(column: int, first: int, last: int) -> Shares:
        of_node = np.array([np.mean((n.leaves >= first) & (n.leaves < last)) for n in cut.nodes[column]])
        return of_node[kinds[column]]

    return Grouped(group.reshape(-1), covered)


def queries(table: CodedTable, rng: np.random.Generator) -> list[Query]:
    """Draw queries at random; table: a row per record."""
    found = []
    for _ in range(N_QUERIES):
        n_runs = int(rng.integers(0, MOST_CONDITIONS))
        columns = rng.choice(len(table.qid), min(n_runs, len(table.qid)), replace=False)
        whose = int(rng.integers(0, len(table.cells)))
        runs = {}
        for column in columns.tolist():
            leaf = int(table.qid[column][whose])
            n_leaves = table.schema.qid[column].n_leaves
            runs[column] = int(rng.integers(0, leaf + 1)), int(rng.integers(leaf + 1, n_leaves + 1))
        sensitive = int(rng.integers(0, len(table.schema.sensitive)))
        other = int(rng.integers(0, len(table.cells)))
        found.append(Query(runs, sensitive, int(values_of(table, sensitive)[other])))
    return found


def values_of(table: CodedTable, sensitive: int) -> Ints:
    """Return the place of every row's value in a sensitive column: int64, shape (n_rows,)."""
    return table.schema.axes(table.cells)[1 + sensitive]


def errors_of(table: CodedTable, grouped: Grouped, asked: Sequence[Query]) -> Shares:
    """Return errors: float64, shape (n_queries,)."""
    n_groups = int(grouped.group.max()) + 1
    counts = []
    for i, column in enumerate(table.schema.sensitive):
        keys = grouped.group * len(column.domain) + values_of(table, i)
        counts.append(np.bincount(keys, minlength=n_groups * len(column.domain)).reshape(n_groups, -1))
    errors = np.empty(len(asked))
    for place, query in enumerate(asked):
        share, meets = np.ones(n_groups), values_of(table, query.sensitive) == query.value
        for column, (first, last) in query.runs.items():
            share *= grouped.covered(column, first, last)
            meets &= (table.qid[column] >= first) & (table.qid[column] < last)
        truth = int(meets.sum())
        answer = float(share @ counts[query.sensitive][:, query.value])
        errors[place] = abs(answer - truth) / max(truth, len(table.cells) / SMALLEST)
    return errors


def required(known: int) -> AskedList:
    return AskedList((Ask(known, (Size(K),)),))


def top_down(known: int | None) -> Callable[[CodedTable], Grouped]:
    def grouped(table: CodedTable) -> Grouped:
        asked = required(known or len(table.qid))
        return by_cut(table, anonymize_single(table, asked, score_of("groups", None)).cut)

    return grouped


WAYS: Mapping[str, Callable[[CodedTable], Grouped]] = {
    "kd, public": lambda table: in_boxes(anonymize_kd(table, required(len(table.qid)))),
    "kd, median": lambda table: in_boxes(anonymize_kd(table, required(len(table.qid)), holder=MedianHolder)),
    "top-down, L=all": top_down(None),
    "top-down, L=2": top_down(2),
}


def by_record(table: CodedTable) -> CodedTable:
    """Return the same table with a row for every record."""
    return table.some(np.repeat(np.arange(len(table.cells)), table.weights))


TABLES: Mapping[str, Callable[[], CodedTable]] = {
    "Adult": adult,
    "support2": lambda: DATA_SETS["support2"].load().table().table,
    "diabetes130": lambda: DATA_SETS["diabetes130"].load().table().table,
}


def rows_of(name: str) -> list[Row]:
    table = by_record(TABLES[name]())
    table = CodedTable(table.schema, table.qid, table.cells, np.ones(len(table.cells), dtype=np.int64))
    asked = queries(table, np.random.default_rng(0))
    rows = []
    for way, grouped in WAYS.items():
        errors = errors_of(table, grouped(table), asked)
        title, said = f"{name}, K={K}: {way}", f"mean {errors.mean():.3f}"
        rows.append(
            Row(f"{title}, median error of {N_QUERIES} queries", float(np.median(errors)), "", anchor=said)
        )
    return rows


def main(names: Sequence[str]) -> None:
    rows = [row for name in names or TABLES for row in rows_of(name)]
    publish("kd and queries", rows, OUT.parent / "bench-kd-queries.json")


if __name__ == "__main__":
    main(sys.argv[1:])
