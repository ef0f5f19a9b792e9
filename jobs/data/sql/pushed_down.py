"""Both passes over a table that an SQL engine reads: it counts, and this process says what a cell means.

Pass 1 asks for the different cells of each coded column with how often each occurs, has the coders read their texts,
hands back which cell has which code, and asks for the different rows of codes with how often each occurs. Only these
travel. All else that pass 1 tells of rows follows from how often each cell occurs. Pass 2 joins the same codes and
asks for the rows.

What this process holds of different cells is bounded. Of a column of numbers with too many, the engine tells apart in
which interval of the grid each is, by exact comparison with its edges, and an edge stands for all numbers of its
interval. With too many others the table is streamed, as is what needs the rows themselves. Then, and where a cell is
refused, the code of all streamed sources runs, so that errors are the same to the letter.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.errors import changed
from anonymize.grid import Grid
from anonymize.table import Codes, Ints, narrowest
from jobs.data.arrow import pa, pc
from jobs.data.coders import BAD, DROPPED, Coder, ColumnPass, Numeric
from jobs.data.coding import Coded, Coding, Published
from jobs.data.rows_read import RowsRead
from jobs.data.sql.engine import Session
from jobs.data.streaming import Streamed, compared, labelled, not_too_many, reasons, refused_cell

MANY_CELLS = 1 << 20
"""Different cells of one column; with more they are not asked for one by one."""
_MANY_INTERVALS = 512
"""Of a grid; comparing with the edges of more takes longer than to stream the table."""


class PushedDown(Streamed):
    """A source whose rows an SQL engine reads."""

    many_cells = MANY_CELLS

    @abstractmethod
    def session(self, names: Sequence[str]) -> AbstractContextManager[Session]:
        """A session of the engine, to be ended in any case, that is asked for no other columns. Raises DataError."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self.session(columns) as session:
            yield from _Rows(session, self).batches(columns)

    def collapse(self, coding: Coding) -> Coded:
        """Pass 1. The engine counts rows, but where they must stay apart. Raises DataError."""
        with self.session(coding.names) as session:
            rows = _Rows(session, self)
            if not coding.coders or coding.matched or coding.persons:
                return rows.collapse(coding)
            cells = _all_cells(rows, coding.coders, self.many_cells)
            return rows.collapse(coding) if cells is None else _counted(session, coding, cells)

    def relabel(self, published: Mapping[str, Published], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Pass 2: as of streamed sources, in whatever order the engine gives the rows."""
        with self.session(names) as session:
            rows = _Rows(session, self)
            coders = {name: published[name].coder for name in names if name in published}
            cells = _all_cells(rows, coders, self.many_cells)
            again = (
                rows.relabel(published, names)
                if cells is None
                else _relabelled(session, cells, published, names)
            )
            yield from again


@dataclass(frozen=True)
class _Rows(Streamed):
    """The table as streamed sources are, in a session that has begun."""

    session: Session
    source: PushedDown

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.session.rows(columns):
            texts = [self.session.texts(name, batch.column(i)) for i, name in enumerate(columns)]
            yield pa.RecordBatch.from_arrays(texts, list(columns))

    def place(self, row: int) -> str:
        return self.source.place(row)


@dataclass(frozen=True)
class _Cells:
    """The different cells of a column, n of them.

    key:     the expression that tells them apart.
    begun:   its coder at work.
    keys:    what the engine tells them apart by, shape (n,); null for one of them at most.
    texts:   strings, shape (n,).
    counts:  how many rows have each: int64, shape (n,).
    codes:   int64, shape (n,); none is BAD.
    """

    name: str
    key: str
    begun: ColumnPass
    keys: pa.Array = field(repr=False)
    texts: pa.Array = field(repr=False)
    counts: Ints = field(repr=False)
    codes: Ints = field(repr=False)

    @property
    def dropping(self) -> NDArray[np.bool_]:
        """Which cells drop their row."""
        dropping: NDArray[np.bool_] = self.codes == DROPPED
        return dropping


def _all_cells(rows: _Rows, coders: Mapping[str, Coder], many: int) -> list[_Cells] | None:
    """The cells of every coded column; None if one has too many, or there are no rows. Raises DataError."""
    found = []
    for name, coder in coders.items():
        cells = _cells(rows.session, name, coder, many)
        if cells is None:
            return None
        if (cells.codes == BAD).any():
            raise refused_cell(rows, name, coder)
        found.append(cells)
    if len({int(cells.counts.sum()) for cells in found}) > 1:
        raise changed()
    return found


def _cells(session: Session, name: str, coder: Coder, many: int) -> _Cells | None:
    """The cells of a column, coded in the order of their texts; None if there are more than ``many``, or none."""
    key = session.key(name)
    found = _different(session, key, many)
    texts = None if found is None else session.texts(name, found[0]).cast(pa.string())
    if texts is None and isinstance(coder, Numeric) and coder.grid.n_cells <= _MANY_INTERVALS:
        key = _interval(session, name, coder.grid)
        found = _different(session, key, many) if key else None
        texts = None if found is None else _standing(found[0], coder.grid)
    if found is None or texts is None:
        return None
    order, begun = pc.array_sort_indices(texts), coder.begin()
    keys, counts, texts = found[0].take(order), found[1][order.to_numpy()], texts.take(order)
    return _Cells(name, key, begun, keys, texts, counts, begun.codes(compared(texts)))


def _different(session: Session, key: str, many: int) -> tuple[pa.Array, Ints] | None:
    """The values of an expression, and how many rows have each; None if there are more than ``many``, or none."""
    sql = f"SELECT {key} AS k, count(*) AS n FROM {session.table} GROUP BY 1 LIMIT {many + 1}"  # noqa: S608
    batches = list(session.query(sql))
    if not 0 < sum(batch.num_rows for batch in batches) <= many:
        return None
    found = pa.Table.from_batches(batches).combine_chunks()
    return found.column(0).chunk(0), found.column(1).to_numpy()


def _interval(session: Session, name: str, grid: Grid) -> str:
    """The expression of where a number lies: its cell; -1 below the grid, n above, n + 1 where it is NaN.

    Nothing if the column is none of numbers that the engine can compare as they are.
    """
    found, edges, n = session.number(name), [float(edge) for edge in grid.edges], grid.n_cells
    if found is None:
        return ""
    number, is_nan = found
    outside = [
        (f"{number} IS NULL", "NULL"),
        (is_nan, f"{n + 1}"),
        (f"{number} < {edges[0]:.17e}", "-1"),
        (f"{number} >= {edges[-1]:.17e}", f"{n}"),
    ]
    tests = "".join(f" WHEN {test} THEN {place}" for test, place in outside)
    return f"CASE{tests} ELSE {_search(number, edges, 0, n)} END"


def _search(number: str, edges: Sequence[float], first: int, last: int) -> str:
    """The expression of a number's cell among those from ``first`` to below ``last``, by halving."""
    if last - first == 1:
        return str(first)
    half = (first + last) // 2
    low, high = _search(number, edges, first, half), _search(number, edges, half, last)
    return f"CASE WHEN {number} < {edges[half]:.17e} THEN {low} ELSE {high} END"


def _standing(places: pa.Array, grid: Grid) -> pa.Array:
    """For every place of :func:`_interval` the text of a number there; of null, empty text."""
    texts = ["-inf", *(repr(float(edge)) for edge in grid.edges[:-1]), "inf", "nan", ""]
    return pa.array(texts).take(pc.fill_null(pc.cast(pc.add(places, 1), pa.int64()), len(texts) - 1))


class _Joined:
    """The table with the codes of its cells beside them, in SQL.

    The look-up table of column i is m<i>, its key in the table k<i>, further columns are i<j>.
    """

    def __init__(self, session: Session, cells: Sequence[_Cells], others: Sequence[str]) -> None:
        """``others``: names of columns that are given as they stand."""
        self.codes = [_code(i, each) for i, each in enumerate(cells)]
        self.others = [f"t.o{i}" for i in range(len(others))]
        keys = [f"{each.key} AS k{i}" for i, each in enumerate(cells)]
        keys += [f"{session.key(name)} AS o{i}" for i, name in enumerate(others)]
        joins = [
            f" LEFT JOIN {_looked_up(session, c)} AS m{i} ON t.k{i} = m{i}.cell" for i, c in enumerate(cells)
        ]
        kept = [f"coalesce({self.codes[i]}, 0) >= 0" for i, each in enumerate(cells) if each.dropping.any()]
        self.rows = f"FROM (SELECT {', '.join(keys)} FROM {session.table}) AS t{''.join(joins)}"  # noqa: S608
        self.rows += f" WHERE {' AND '.join(kept)}" if kept else ""
        """The rows that are kept."""


def _code(i: int, cells: _Cells) -> str:
    """The code of a cell: of null, which is equal to nothing, its own; null for a cell that was not there before."""
    of_null = cells.codes[_mask(cells.keys.is_null())].tolist()
    return f"CASE WHEN t.k{i} IS NULL THEN {of_null[0]} ELSE m{i}.code END" if of_null else f"m{i}.code"


def _looked_up(session: Session, cells: _Cells) -> str:
    """Hand the codes of the cells to the engine."""
    given = cells.keys.is_valid()
    least = np.min_scalar_type(-max(int(cells.codes.max()), 0) - 1)  # signed: not every engine knows others
    return session.look_up(cells.keys.filter(given), pa.array(cells.codes.astype(least)[_mask(given)]))


def _mask(values: pa.Array) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False)
    return mask


def _codes(column: pa.Array, most: int) -> Codes:
    """Codes from the engine, in the least type for ``most`` different ones. Raises DataError where one is missing."""
    if column.null_count:
        raise changed()
    codes: Codes = column.to_numpy().astype(narrowest(most))
    return codes


def _counted(session: Session, coding: Coding, cells: Sequence[_Cells]) -> Coded:
    """Pass 1, of rows that need not stay apart."""
    joined = _Joined(session, cells, ())
    places = range(1, len(cells) + 1)
    sql = f"SELECT {', '.join(joined.codes)}, count(*) {joined.rows} GROUP BY {', '.join(map(str, places))}"
    columns: list[list[Codes]] = [[np.zeros(0, np.uint8)] for _ in cells]
    weights = [np.zeros(0, np.int64)]
    for batch in session.query(sql):
        for i, each in enumerate(cells):
            columns[i].append(_codes(batch.column(i), int(each.codes.max()) + 1))
        weights.append(batch.column(len(cells)).to_numpy())
    counts = np.concatenate(weights)
    not_too_many(int(counts.sum()))
    return Coded(
        {c.name: c.begun.finished(np.concatenate(columns.pop(0))) for c in cells},
        counts,
        _rows_read(coding, cells, int(counts.sum())),
        _n_ids(session, coding, cells) if coding.ids and coding.checked else None,
    )


def _rows_read(coding: Coding, cells: Sequence[_Cells], used: int) -> RowsRead:
    read, lost = int(cells[0].counts.sum()), [int(c.counts[c.dropping].sum()) for c in cells]
    if not max(lost) <= read - used <= sum(lost):
        raise changed()
    dropped = {c.name: reasons(c.texts, c.counts * c.dropping) for c in cells if c.dropping.any()}
    outside = {c.name: _n_outside(c) for c in cells} if coding.outside else {}
    return RowsRead(read, used, dropped, {name: n for name, n in outside.items() if n})


def _n_outside(cells: _Cells) -> int:
    return int(cells.counts[cells.begun.outside(compared(cells.texts))].sum())


def _n_ids(session: Session, coding: Coding, cells: Sequence[_Cells]) -> int:
    """How many different ids the rows that are kept have."""
    joined = _Joined(session, [each for each in cells if each.dropping.any()], coding.ids)
    ids = f"SELECT DISTINCT {', '.join(joined.others)} {joined.rows}"
    (batch,) = session.query(f"SELECT count(*) FROM ({ids}) AS d")  # noqa: S608
    return int(batch.column(0)[0].as_py())


def _relabelled(
    session: Session, cells: Sequence[_Cells], published: Mapping[str, Published], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Pass 2."""
    plain = [name for name in names if name not in published]
    joined = _Joined(session, cells, plain)
    for batch in session.query(f"SELECT {', '.join([*joined.codes, *joined.others])} {joined.rows}"):
        given = {}
        for i, each in enumerate(cells):
            codes = _codes(batch.column(i), int(each.codes.max()) + 1)
            given[each.name] = labelled(codes, published[each.name])
        for i, name in enumerate(plain, len(cells)):
            given[name] = session.texts(name, batch.column(i))
        yield pa.RecordBatch.from_arrays([given[name] for name in names], list(names))
