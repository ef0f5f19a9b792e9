"""Passes that an engine carries out tell what streaming the same table tells: DuckDB over small hostile tables."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from anonymize.grid import Grid
from jobs.data.coders import BAD, DROPPED, Categorical, Coder, Numeric, Unlisted
from jobs.data.coding import Coding, Published
from jobs.data.kept import keeping
from jobs.data.sql.duck import started
from jobs.data.sql.engine import Session
from jobs.data.sql.pushed_down import PushedDown
from tests.support.pushed import CODERS, GRID, InMemory, meaning, same_pass_1, same_pass_2


@dataclass(frozen=True)
class File(PushedDown):
    """A Parquet file that DuckDB reads."""

    path: Path
    many_cells: int = 100

    @contextmanager
    def session(self, names: Sequence[str]) -> Iterator[Session]:
        with started([self.path], "500MB") as duck:
            yield duck.parquet([self.path], pa.parquet.read_schema(self.path), by_folder=False)

    def place(self, row: int) -> str:
        return f"row {row}"


TEXTS = st.sampled_from(
    ["", "?", " ? ", "a", "b", "é", "e\u0301", "a;b", "b; a;;a", "x'\"", "5", "-7", "1e1", "n\n"]
)
FLOATS = st.sampled_from([0.1, float("nan"), -0.0, 0.0, 1e300, 5e-324, float("-inf"), 2.5, 1e15, 1e16, 99.5])
CELLS: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): TEXTS,
    pa.dictionary(pa.int32(), pa.string()): TEXTS,
    pa.float64(): FLOATS | st.floats(),
    pa.float32(): st.floats(width=32),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 103),
    pa.uint8(): st.integers(0, 255),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(list(CELLS)), min_size=2, max_size=4))
    size = draw(st.integers(1, 40))
    columns = {}
    for i, kind in enumerate(kinds):
        cells = st.lists(st.none() | CELLS[kind], min_size=1, max_size=5)
        pool = draw(cells)
        columns[f'c"{i}'] = pa.array([pool[draw(st.integers(0, len(pool) - 1))] for _ in range(size)], kind)
    return pa.table(columns)


@contextmanager
def in_a_file(table: pa.Table, **changes: Any) -> Iterator[File]:
    with tempfile.TemporaryDirectory() as folder:
        pa.parquet.write_table(table, Path(folder) / "t.parquet")
        yield File(Path(folder) / "t.parquet", **changes)


@pytest.mark.parametrize("many_cells", [100, 3])
@settings(max_examples=40)
@given(data=st.data())
def test_the_engine_tells_what_streaming_tells(many_cells: int, data: st.DataObject) -> None:
    table = data.draw(tables())
    names = table.column_names
    how = st.sampled_from(sorted(set(CODERS) - {"numeric"}))
    coders = {name: CODERS[data.draw(how)] for name in names[1:]}
    coding = Coding(coders, (names[0],), checked=True, outside=True)
    with in_a_file(table, many_cells=many_cells) as source:
        coded = same_pass_1(source, InMemory(table), coding)
    if many_cells == 100:
        assert len(coded.weights) == len(meaning(coded))


NAN = float("nan")
TABLE = pa.table(
    {
        "id": [1, 2, 2, None, None, 7],
        "real": [-0.0, 0.0, NAN, NAN, None, 5.0],
        "text": ["a", "", None, "e\u0301", "é", "a"],
        "whole": [5, 5, None, 200, -1, 5],
        "plain": ["p", None, "", "?", "é", "e\u0301"],
    }
)
EDGES = [-1e300, -0.1, 5e-324, 0.1, 0.30000000000000004, 1.0, 2.0**53, 9007199254740993.0, 1e17]
NEAR = [np.nextafter(e, to) for e in EDGES for to in (-np.inf, np.inf)]
NUMBERS: dict[str, list[Any]] = {
    "reals": [*EDGES, *NEAR, -0.0, 0.0, NAN, float("inf"), float("-inf"), 1.7976931348623157e308, None],
    "whole": [
        2**53 - 1,
        2**53,
        2**53 + 1,
        2**53 + 2,
        2**63 - 1,
        -(2**63),
        0,
        1,
        -1,
        10**17,
        10**17 - 7,
        None,
    ],
    "unsigned": [2**64 - 1, 2**63 + 1, 2**53 + 1, 0, 1, None],
}
KINDS = {"reals": pa.float64(), "whole": pa.int64(), "unsigned": pa.uint64()}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("n_edges", [2, 3, len(EDGES)])
@pytest.mark.parametrize("missing", [DROPPED, 0, 9])
def test_numbers_lie_between_the_edges_where_their_texts_do(kind: str, n_edges: int, missing: int) -> None:
    """In SQL, where they are too many to be asked for one by one."""
    edges = tuple(Decimal(repr(edge)) for edge in EDGES[-n_edges:])
    coder = Numeric(Grid(edges), clamp=True, missing=missing)
    table = pa.table({"x": pa.array(NUMBERS[kind], KINDS[kind]), "y": pa.array([1] * len(NUMBERS[kind]))})
    coding = Coding({"x": coder, "y": CODERS["unlisted"]}, (), checked=False, outside=True)
    many = n_edges + 3  # places: the cells, below, above, NaN and null
    with in_a_file(table, many_cells=many) as source:
        coded = same_pass_1(source, InMemory(table), coding)
        assert len(coded.weights) == len(meaning(coded)) < coded.rows.read


def test_too_many_numbers_of_a_column_that_are_refused() -> None:
    table = pa.table({"x": [float(i) for i in range(30)], "y": ["a"] * 30})
    coding = Coding(
        {"x": Numeric(Grid((Decimal(0), Decimal(9), Decimal(20))))}, (), checked=True, outside=False
    )
    with in_a_file(table, many_cells=5) as source, pytest.raises(DataError) as caught:
        source.collapse(coding)
    assert (caught.value.column, caught.value.private) == ("x", "row 21: '20'")


MANY: dict[str, Coder] = {
    "real": Unlisted(None),
    "text": CODERS["taxonomy"],
    "whole": CODERS["clamped"],
}


@pytest.mark.parametrize("many_cells", [100, 2])
@pytest.mark.parametrize("per_row", ["matched", "persons", ""])
def test_cells_that_are_equal_in_sql_and_different_texts(per_row: str, many_cells: int) -> None:
    ids = {"matched": True} if per_row == "matched" else {"persons": True} if per_row else {}
    coding = Coding(MANY, ("id",), checked=not per_row, outside=True, **ids)
    with in_a_file(TABLE, many_cells=many_cells) as source:
        coded = same_pass_1(source, InMemory(TABLE), coding)
    assert coded.columns["real"].domain == ("-0", "0", "5", "?", "nan")
    assert coded.rows.dropped["text"] == {"missing": 2}
    assert coded.rows.outside == {"whole": 2}


def test_numbers_that_are_kept() -> None:
    coding = keeping(Coding({"real": CODERS["numeric"]}, (), checked=True, outside=False), ["real"])
    table = TABLE.slice(0, 2)
    with in_a_file(table) as source:
        coded = same_pass_1(source, InMemory(table), coding)
    assert coded.columns["real"].domain == ("0",)


@pytest.mark.parametrize("many_cells", [100, 2])
def test_pass_2_gives_the_same_rows(many_cells: int) -> None:
    labels = pa.array([f"label {i}" for i in range(12)])
    coders = {"text": CODERS["taxonomy"], "whole": CODERS["clamped"]}
    published = {n: Published(c, np.arange(12, dtype=np.int64)[::-1], labels) for n, c in coders.items()}
    for names in (["plain", "text", "real", "whole"], ["plain"], ["whole", "text"]):
        with in_a_file(TABLE, many_cells=many_cells) as source:
            same_pass_2(source, InMemory(TABLE), published, names)


def test_a_table_without_rows() -> None:
    empty = TABLE.slice(0, 0)
    coding = Coding(MANY, (), checked=True, outside=False)
    with in_a_file(empty) as source:
        coded = source.collapse(coding)
    assert (coded.rows.read, coded.rows.used, len(coded.weights)) == (0, 0, 0)


@pytest.mark.parametrize("many_cells", [100, 2])
@pytest.mark.parametrize(
    ("name", "coder"),
    [
        ("whole", Numeric(GRID)),
        ("text", Categorical({"a": 0}, 0)),
        ("text", Categorical({"a": 0, "é": 1}, BAD)),
        ("real", Numeric(GRID, missing=BAD)),
    ],
)
def test_a_refused_cell_is_named_as_by_streaming(name: str, coder: Coder, many_cells: int) -> None:
    told = []
    coding = Coding({"plain": Unlisted(None), name: coder}, (), checked=True, outside=False)
    with in_a_file(TABLE, many_cells=many_cells) as source:
        for each in (source, InMemory(TABLE)):
            with pytest.raises(DataError) as caught:
                each.collapse(coding)
            told.append((str(caught.value), caught.value.private, caught.value.column, caught.value.error_id))
    assert told[0] == told[1]


class Changing(File):
    """A file that is another one at every look: a row less, as long as there are some."""

    @contextmanager
    def session(self, names: Sequence[str]) -> Iterator[Session]:
        with super().session(names) as session:
            yield _Changing(session, self.path)


@dataclass
class _Changing:
    inner: Any
    path: Path
    n: int = 6

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def query(self, sql: str) -> Sequence[pa.RecordBatch]:
        found = list(self.inner.query(sql))
        self.n -= 1
        pa.parquet.write_table(TABLE.slice(0, self.n), self.path)
        return found


@pytest.mark.parametrize("names", [["whole"], ["whole", "text"], ["real"]])
def test_a_table_that_changes_between_queries_is_refused(names: Sequence[str]) -> None:
    coding = Coding({name: MANY[name] for name in names}, (), checked=True, outside=False)
    with in_a_file(TABLE) as source, pytest.raises(DataError, match="changed while it was read"):
        Changing(source.path).collapse(coding)
