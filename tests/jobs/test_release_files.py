"""Tables of releases in parts: the same rows as in the CSV, and nothing else is taken for a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.release import Release
from jobs import release_files
from jobs.errors import PartyError
from jobs.release_csv import TABLE, read_csv
from jobs.release_files import place_of, read_csv_counted, read_table, write_table
from tests.support import jobs
from tests.support.samples import release_of

TEXT = st.one_of(
    st.sampled_from(["", " ", '"', "\n", "NA", "null", "1", "é", "a.b"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
NAMES = ["job", "age"]
ROWS = [("Any", "[0,5)"), ("Any", "[0,5)"), ("Any", "[5,9)"), ("Blue", "[0,5)"), ("Blue", "[5,9)")]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, ...]]]:
    names = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True))
    return names, draw(st.lists(st.tuples(*(TEXT for _ in names)), min_size=1, max_size=12))


def table() -> Release:
    return release_of(NAMES, ROWS).in_label_order()


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(1, 5), st.integers(1, 4))
def test_parts_have_the_rows_of_the_csv(
    tmp_path_factory: pytest.TempPathFactory,
    made: tuple[list[str], list[tuple[str, ...]]],
    part_rows: int,
    group_rows: int,
) -> None:
    names, rows = made
    folder, release = tmp_path_factory.mktemp("out"), release_of(names, rows).in_label_order()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_files, "_GROUP_ROWS", group_rows)
        files = write_table(release, folder, TABLE, part_rows)
    assert list(files) == [f"anonymized/part-{i:05d}.parquet" for i in range(-(-len(rows) // part_rows))]
    back = read_table(folder, TABLE, names)
    assert jobs.multiset(back) == Counter(rows)
    assert back.n_entries == len(set(rows))
    read = [pq.ParquetFile(folder / name).read().to_pydict() for name in files]
    found = [list(zip(*part.values(), strict=True)) for part in read]
    assert all(len(part) == part_rows for part in found[:-1])
    assert [row for part in found for row in part] == sorted(rows)


def test_columns_of_parts_are_text_that_is_always_there(tmp_path: Path) -> None:
    (name,) = write_table(table(), tmp_path, TABLE, 100)
    schema = pq.read_schema(tmp_path / name)
    assert schema.names == NAMES
    assert all(field.type == pa.string() and not field.nullable for field in schema)


def test_a_csv_is_one_file(tmp_path: Path) -> None:
    assert write_table(table(), tmp_path, TABLE, None) == (TABLE,)
    assert place_of(tmp_path, TABLE) == tmp_path / TABLE
    for back in (read_table(tmp_path, TABLE, NAMES), read_csv_counted(tmp_path / TABLE, NAMES)):
        assert jobs.multiset(back) == Counter(ROWS)
        assert back.n_entries == len(set(ROWS))
    assert read_csv(tmp_path / TABLE, NAMES).n_entries == len(ROWS)


@pytest.mark.parametrize("part_rows", [None, 2])
def test_of_columns_that_are_not_wanted_nothing_is_kept(tmp_path: Path, part_rows: int | None) -> None:
    """Rows that differ in them alone are one; what is wanted is there all the same, in its order."""
    write_table(table(), tmp_path, TABLE, part_rows)
    back = read_table(tmp_path, TABLE, NAMES, NAMES[1:])
    assert list(back.columns) == NAMES[1:]
    assert jobs.multiset(back) == Counter(row[1:] for row in ROWS)
    assert back.n_entries == len({row[1:] for row in ROWS})
    with pytest.raises(PartyError):  # what is not wanted has to be there
        read_table(tmp_path, TABLE, [*NAMES, "another"], NAMES[1:])


PART = "anonymized/part-00001.parquet"


def rewritten(path: Path, columns: dict[str, pa.Array]) -> None:
    path.unlink()
    pq.write_table(pa.table(columns), path)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "both forms": (lambda out: write_table(table(), out, TABLE, None), "there are two tables"),
    "a CSV among parts": (lambda out: (out / "anonymized" / "a.csv").write_text("x"), "a.csv is no part"),
    "another Parquet": (
        lambda out: (out / PART).rename(out / "anonymized" / "part-1.parquet"),
        "part-1.parquet is no part",
    ),
    "a folder": (lambda out: (out / "anonymized" / "part-00009.parquet").mkdir(), "is no part"),
    "no parts": (
        lambda out: [path.unlink() for path in (out / "anonymized").iterdir()],
        "no part of a table",
    ),
    "other columns": (
        lambda out: rewritten(out / PART, {"job": pa.array(["a"]), "year": pa.array(["b"])}),
        "part-00001.parquet has columns job, year where the job publishes job, age",
    ),
    "numbers": (lambda out: rewritten(out / PART, {"job": pa.array(["a"]), "age": pa.array([1])}), "no text"),
    "bytes": (
        lambda out: rewritten(out / PART, {"job": pa.array(["a"]), "age": pa.array([b"\xff"])}),
        "no text",
    ),
    "nulls": (
        lambda out: rewritten(out / PART, {"job": pa.array(["a"]), "age": pa.array([None], pa.string())}),
        "no text",
    ),
    "nested": (
        lambda out: rewritten(out / PART, {"job": pa.array(["a"]), "age": pa.array([["b"]])}),
        "no text",
    ),
    "no Parquet": (
        lambda out: (out / PART).write_bytes(b"job,age\na,b\n"),
        "part-00001.parquet cannot be read",
    ),
    "cut off": (lambda out: (out / PART).write_bytes((out / PART).read_bytes()[:-9]), "cannot be read"),
    "empty": (lambda out: (out / PART).write_bytes(b""), "cannot be read"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_table_of_ours(tmp_path: Path, wrong: str) -> None:
    write_table(table(), tmp_path, TABLE, 2)
    assert place_of(tmp_path, TABLE) == tmp_path / "anonymized"
    change, says = WRONG[wrong]
    change(tmp_path)
    with pytest.raises(PartyError, match=says) as caught:
        read_table(tmp_path, TABLE, NAMES)
    assert "[0,5)" not in str(caught.value)


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PartyError, match="there is no table at") as caught:
        read_table(tmp_path, TABLE, NAMES)
    assert caught.value.problem.error_id == "file-missing"
