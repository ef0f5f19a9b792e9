"""Released tables as files: what is written is what is read back, and same_rows compares multisets."""

from __future__ import annotations

import csv
import hashlib
import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.errors import PartyError
from jobs.release import csv as release_csv
from jobs.release.csv import (
    csv_bytes,
    csv_digest,
    most_csv_bytes,
    read_csv,
    rows_to_csv,
    same_rows,
    write_csv,
)
from jobs.release.sums import fields_of_file
from tests.support import jobs
from tests.support.examples import examples
from tests.support.pools import pool_threads
from tests.support.samples import release_of

NASTY = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "  a",
            "a  ",
            ",",
            '"',
            '""',
            "\n",
            "\r\n",
            "a\rb",
            "\t",
            "?",
            "NA",
            "null",
            "1",
            "é",
            "\x85",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, ...]]]:
    names = draw(st.lists(NASTY, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*(NASTY for _ in names)), min_size=1, max_size=8))
    return names, rows


@settings(max_examples=examples(200), deadline=None)
@given(table=tables(), chunk=st.integers(1, 5), most=st.sampled_from([0, 3, 8, 100]))
def test_whatever_the_labels_are_they_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[list[str], list[tuple[str, ...]]],
    chunk: int,
    most: int,
) -> None:
    names, rows = table
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_csv, "_CHUNK_ROWS", chunk)
        patch.setattr(release_csv, "_MOST_TEXTS", most)  # columns are joined alone, by some or all together
        write_csv(release_of(names, rows), path)
    content = path.read_bytes()
    assert list(csv.reader(io.StringIO(content.decode(), newline=""))) == [names, *map(list, rows)]
    for source in (path, content):
        back = read_csv(source, names)
        assert jobs.multiset(back) == Counter(rows)
        assert same_rows(back, release_of(names, rows), names)


def test_values_are_quoted_only_where_they_need_it(tmp_path: Path) -> None:
    rows = [("plain", "[1,2)"), ("", " x"), ('say "so"', "2\n3"), ("ü", "a b")]
    write_csv(release_of(["a", "b,c"], rows), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (
        'a,"b,c"\nplain,"[1,2)"\n""," x"\n"say ""so""","2\n3"\nü,a b\n'
    )


@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), chunk=st.integers(1, 5), most=st.sampled_from([0, 3, 100]), data=st.data())
def test_a_row_may_be_written_on_several_lines(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[list[str], list[tuple[str, ...]]],
    chunk: int,
    most: int,
    data: st.DataObject,
) -> None:
    """The digest is that of the file; threads change nothing."""
    names, rows = table
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20))
    path = tmp_path_factory.mktemp("t") / "t.csv"
    expected = csv_bytes(release_of(names, [rows[0], *(rows[i] for i in order)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_csv, "_CHUNK_ROWS", chunk)
        patch.setattr(release_csv, "_MOST_JOINED", most)
        told = write_csv(release_of(names, rows), path, np.array([0, *order], dtype=np.int32))
        patch.setattr(release_csv, "mapped", lambda work, items, threads: map(work, items))
        given = release_of(names, rows), np.array([0, *order], dtype=np.int32)
        assert csv_bytes(*given) == expected
        assert csv_digest(*given) == hashlib.sha256(expected).hexdigest()
    assert path.read_bytes() == expected
    assert told == fields_of_file(path)


def test_a_full_disk_stops_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_csv, "_CHUNK_ROWS", 1)
    before = pool_threads()
    with pytest.raises(OSError, match="No space left"):
        write_csv(release_of(["a"], [(str(i),) for i in range(5000)]), Path("/dev/full"))
    assert pool_threads() <= before


def test_rows_of_batches_are_written_alike(tmp_path: Path) -> None:
    rows = [("a,b", "1"), ("", "2"), ("a,b", "3")]
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array(c).dictionary_encode() for c in zip(*part, strict=True)], ["x", "y"]
        )
        for part in (rows[:2], rows[2:])
    ]
    write_csv(release_of(["x", "y"], rows), tmp_path / "t.csv")
    assert rows_to_csv(batches, ["x", "y"]) == (tmp_path / "t.csv").read_bytes()
    assert rows_to_csv([], ["x", "y"]) == b"x,y\n"


@pytest.mark.parametrize("content", [b"", b"a,b\n1\n", b"a,b\n\xff,1\n", b"\xff,b\n1,2\n", b"a,b\n1,2,3\n"])
def test_a_table_that_cannot_be_read(content: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        read_csv(content, ["a", "b"])
    problem = caught.value.problem
    assert problem.error_id == "verification-failed"
    assert problem.message.startswith("the released table cannot be read as a table")
    assert not problem.private
    with pytest.raises(PartyError, match=r"counts\.csv cannot be read"):
        read_csv(content, ["a", "b"], "counts.csv")


def test_threads_of_arrow_hold_no_memory_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread may outlive the interpreter, and would abort the process that ends."""
    content = b"a,b\n" + b"1,2\n" * 1000
    before, held = sys.getrefcount(content), []
    read = release_csv.pa_csv.read_csv

    def seen(*given: Any, **named: Any) -> Any:
        held.append(sys.getrefcount(content) - before)
        return read(*given, **named)

    monkeypatch.setattr(release_csv.pa_csv, "read_csv", seen)
    assert read_csv(content, ["a", "b"]).n_rows == 1000
    calm = held.pop()
    monkeypatch.setattr(release_csv, "_owned", pa.py_buffer)
    assert read_csv(content, ["a", "b"]).n_rows == 1000
    assert held == [calm + 1]


def test_a_table_that_is_cut_off_names_the_line() -> None:
    with pytest.raises(PartyError) as caught:
        read_csv(b'a,b\n"x\ny",2\n3', ["a", "b"])
    assert caught.value.problem.message == (
        "the released table cannot be read as a table: line 4 has 1 value, and the header 2 names; a file that ends "
        "there may be cut off"
    )


@pytest.mark.parametrize("header", ["a", "a,b,c", "b,a", "a,a", "a, b", "A,b"])
def test_a_table_with_other_columns(header: str) -> None:
    content = f"{header}\n{','.join('1' for _ in header.split(','))}\n".encode()
    with pytest.raises(PartyError) as caught:
        read_csv(content, ["a", "b"])
    assert caught.value.problem.error_id == "verification-failed"


@given(table=tables(), data=st.data())
def test_same_rows_compares_multisets(
    table: tuple[list[str], list[tuple[str, ...]]], data: st.DataObject
) -> None:
    names, rows = table
    other = data.draw(st.permutations(rows))
    assert same_rows(release_of(names, rows), release_of(names, other), names)
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = [*rows[:at], tuple(value + "x" for value in rows[at]), *rows[at + 1 :]]
    assert not same_rows(release_of(names, rows), release_of(names, changed), names)
    assert not same_rows(release_of(names, rows), release_of(names, [*rows, rows[0]]), names)


def test_same_rows_tells_multiplicities_apart() -> None:
    one, other = [("a",), ("a",), ("b",)], [("a",), ("b",), ("b",)]
    assert not same_rows(release_of(["x"], one), release_of(["x"], other), ["x"])


# ---- verification


@given(st.lists(NASTY, min_size=1, max_size=4, unique=True), st.integers(0, 5))
def test_no_table_is_larger_than_its_labels_let_it_be(labels: list[str], n_rows: int) -> None:
    longest = max(labels, key=lambda text: len(csv_bytes(release_of(["c"], [(text,)]))))
    release = release_of(["c"], [(longest,)] * n_rows)
    assert len(csv_bytes(release)) == most_csv_bytes({"c": labels}, n_rows)
