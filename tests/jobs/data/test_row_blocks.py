"""Lines in blocks: the rows of a reader of the whole text, for any size of the blocks."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from jobs.data import row_blocks, sources
from jobs.data.dialect import Dialect
from jobs.data.row_blocks import batches_of_lines, has_quote
from jobs.data.sources import Csv
from tests.support.examples import examples
from tests.support.pools import pool_threads

_CONVERT = pa_csv.ConvertOptions(
    include_columns=["a", "b"],
    column_types=dict.fromkeys("ab", pa.dictionary(pa.int32(), pa.string())),
    null_values=[],
    strings_can_be_null=False,
)


def rows_of(path: Path, n_bytes: int) -> list[tuple[str, str]]:
    batches = batches_of_lines(path, Dialect(), _CONVERT, n_bytes)
    return [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]


@settings(max_examples=examples(200), deadline=None)
@example(end="\r", mark=True, blank="\r\r", rows=[("x", "y")], last=False, n_bytes=1)
@given(
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.booleans(),
    blank=st.sampled_from(["", "\n", "\r\n\r\n", "\r\r"]),
    rows=st.lists(st.tuples(*[st.text("xé1 ", max_size=4)] * 2), min_size=1, max_size=9),
    last=st.booleans(),
    n_bytes=st.integers(1, 60),
)
def test_the_size_of_blocks_makes_no_difference(
    tmp_path_factory: pytest.TempPathFactory,
    end: str,
    mark: bool,
    blank: str,
    rows: list[tuple[str, str]],
    last: bool,
    n_bytes: int,
) -> None:
    """Blank lines, a byte order mark, any end of a line, and a last line without an end."""
    lines = ["b,a", *(f"{one},{other}{blank}" for one, other in rows)]
    text = ("\ufeff" if mark else "") + blank + end.join(lines) + (end if last else "")
    folder = tmp_path_factory.mktemp("t")
    (folder / "t.csv").write_bytes(text.encode())
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    whole = pa_csv.read_csv(io.BytesIO(text.encode()), convert_options=_CONVERT).to_pydict()
    assert list(zip(*whole.values(), strict=True)) == [(other, one) for one, other in rows]
    for path in sorted(folder.iterdir()):
        assert rows_of(path, n_bytes) == [(other, one) for one, other in rows]


def test_a_quote_anywhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 100 + "1,'2\n")
    assert not has_quote(path, Dialect())
    assert has_quote(path, Dialect(quote="'"))
    monkeypatch.setattr(row_blocks, "_SEARCHED_BYTES", 7)
    assert has_quote(path, Dialect(quote="'"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("quoted", [False, True])
def test_each_way_of_reading_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, quoted: bool
) -> None:
    """A table with quotes, or not in UTF-8, is read in order by Arrow."""
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 200)
    path = tmp_path / "t.csv"
    value = '"x, é"' if quoted else "é"
    path.write_text("a,b\n" + "".join(f"{i},{value}\n" for i in range(200)), encoding=encoding)
    batches = list(Csv(path).batches(["b", "a"]))
    assert len(batches) > 3
    rows = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]
    assert rows == [(value.strip('"'), str(i)) for i in range(200)]


def test_an_error_in_a_thread_names_file_and_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 64)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 100 + "1,2,3\n" + "1,2\n" * 100)
    batches: list[pa.RecordBatch] = []
    before = pool_threads()
    with pytest.raises(DataError) as caught:
        batches.extend(Csv(path).batches(["a"]))
    assert sum(batch.num_rows for batch in batches) > 50
    assert "t.csv has 3 values on line 102, where the header has 2 names" in caught.value.private
    assert pool_threads() <= before


def test_few_blocks_are_in_memory(tmp_path: Path) -> None:
    path, most = tmp_path / "t.csv", 0
    path.write_text("a,b\n" + "some,text\n" * 500_000)
    for _ in batches_of_lines(path, Dialect(), _CONVERT, 10_000):
        most = max(most, pa.total_allocated_bytes())
    assert 10_000 < most < path.stat().st_size / 8


def test_a_block_is_memory_of_arrow() -> None:
    """A thread of Arrow may let go of a block as the interpreter ends, and must not free memory of Python."""
    before = pa.total_allocated_bytes()
    blocks = list(row_blocks._blocks(io.BytesIO(b"a,b\n" + b"1,2\n" * 1000), 512))
    assert pa.total_allocated_bytes() - before >= sum(block.size for block in blocks) > 4000
