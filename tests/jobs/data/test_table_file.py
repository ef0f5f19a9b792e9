"""The owner of a table is told when its file is not read as it was meant; others are told none of it."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError, SchemaError
from jobs.data import table_file
from jobs.data.dialect import Dialect
from jobs.data.sources import Csv, Parquet, source_of_file
from jobs.data.table_file import lines_of_rows
from jobs.errors import problem_of
from jobs.file.bundle import Bundle
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job, yaml_of
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, single_job

HEADER = "patient,job,age,transfused,surgery\n"
ROW = "1,Mover,5,Y,Heart\n"


def refused(path: Path, bundle: Bundle | None = None, **how: Any) -> DataError:
    """Return the error of a file; the hint must not be in what others are told."""
    with pytest.raises(DataError) as caught:
        load_table(Csv(path, **how), open_task(bundle or jobs.bundle_of(single_job())))
    shared = json.dumps(problem_of(caught.value).shared())
    assert "line" not in shared
    assert str(path) not in shared
    return caught.value


LONE = (
    'has a quote (") without a closing quote, in the row that begins on line 3; write a quote inside a quoted'
)


def feather() -> bytes:
    out = io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"patient": ["1"]}), out)
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"patient": ["1"]}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            b"PK\x03\x04" + bytes(60),
            "is an Excel workbook (or a different ZIP archive): end the file's name in .xlsx, or save it as",
        ),
        (b"\xd0\xcf\x11\xe0" + bytes(60), "is an old Excel workbook"),
        (b"SQLite format 3\0" + b"\0" * 84, "is a SQLite file: say `duckdb`, not `csv`"),
        (bytes(8) + b"DUCK" + bytes(84), "is a DuckDB file: say `duckdb`, not `csv`"),
        ((HEADER + ROW).encode("utf-32"), "is UTF-32 text: save it as UTF-8"),
        (feather(), "is an Arrow (Feather) file: end the file's name in .feather"),
        (b"FEA1" + bytes(60), "is a Feather file of version 1: save it as Parquet or CSV"),
        (parquet(), "is a Parquet file"),
        (gzip.compress((HEADER + ROW).encode()), "end the file's name in .gz"),
        (
            (HEADER + ROW).encode("utf-16-le"),
            "is UTF-16 text without a mark at the beginning: set `encoding:",
        ),
        ((HEADER + ROW).encode("utf-16-be"), "is UTF-16 text"),
        (
            (HEADER + ROW + "2,Mo\0er,5,Y,Heart\n").encode(),
            "has a zero byte (NUL) on line 3: the file is damaged",
        ),
        ((HEADER + ROW + "\0" * 90).encode(), "has a zero byte (NUL) on line 3: the file is damaged"),
        ((HEADER + ROW * 20_000 + "2,Möver,5,Y,Heart\n").encode("cp1252"), "is not UTF-8 text (line 20002;"),
        ((HEADER + ROW + "2,Mover\n").encode(), "has 2 values on line 3, where the header has 5 names"),
        ((HEADER + ROW + "2,Mover,5,Y,Inj, unknown\n").encode(), "has 6 values on line 3"),
        ((HEADER + ROW + "2\n").encode(), "has 1 value on line 3, where the header has 5 names"),
        ((HEADER + ROW + '2,Mover,5,Y,"Heart\n' + ROW * 9).encode(), LONE),
        ((HEADER + ROW + '2,"Mover,5,Y,Heart\n' + ROW * 9).encode(), LONE),
        ((HEADER + ROW + '2,Mover,5,Y,"Heart\n' + ROW * 9999).encode(), LONE),
        ((HEADER.replace("surgery", '"surgery') + ROW).encode(), LONE.replace("3", "1")),
    ],
    ids=[
        "excel",
        "old-excel",
        "sqlite",
        "duckdb",
        "utf-32",
        "arrow",
        "feather",
        "parquet",
        "gzip",
        "utf-16-le",
        "utf-16-be",
        "zero-byte",
        "zeros",
        "windows-1252",
        "short-row",
        "long-row",
        "lone-value",
        "lone-quote",
        "lone-quote-inside",
        "lone-quote-of-many-rows",
        "lone-quote-in-header",
    ],
)
def test_the_owner_is_told_what_the_file_is(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    error = refused(path)
    assert error.error_id in {"data-unreadable", "data-missing-column"}
    assert says in error.private


def test_a_broken_byte_makes_no_other_encoding(tmp_path: Path) -> None:
    """Read as Windows-1252, every other cell beyond ASCII would be garbled, and published."""
    path = tmp_path / "table.csv"
    path.write_bytes((HEADER + "2,Möver,5,Y,Heart\n" * 9).encode() + b"2,M\xffver,5,Y,Heart\n")
    error = refused(path)
    assert error.error_id == "data-unreadable"
    assert "is not UTF-8 text (line 11;" in error.private


@pytest.mark.parametrize(("stated", "codec"), [({}, "CP1252"), ({"encoding": "ascii"}, "ASCII")])
def test_a_byte_that_the_encoding_lacks(stated: dict[str, str], codec: str, tmp_path: Path) -> None:
    """Windows-1252 has no character 0x81, and is no remedy for a file read as Windows-1252."""
    (tmp_path / "table.csv").write_bytes((HEADER + ROW).encode() + b"2,M\x81ver,5,Y,Heart\n")
    (tmp_path / "job.yaml").write_text(yaml_of(single_job(data={"path": "table.csv", **stated})))
    ran = invoke("coordinator", "check", tmp_path / "job.yaml")
    assert (
        f"is not {codec} text (line 3): set `encoding` to the encoding that the file was saved in" in ran.err
    )
    assert "encoding: cp1252" not in ran.err


@pytest.mark.parametrize(("n", "rest"), [(2, ""), (20, ""), (21, "1 more line"), (35, "15 more lines")])
def test_all_malformed_rows_are_told_at_once(n: int, rest: str, tmp_path: Path) -> None:
    """The first two lines are the header and a good row; every second line after is malformed."""
    bad = [("2,Mover\n", "2 values"), ("2,Mover,5,Y,Inj, unknown\n", "6 values"), ("2\n", "1 value")]
    rows = "".join(ROW + bad[i % 3][0] for i in range(n))
    (tmp_path / "table.csv").write_text(HEADER + ROW + rows)
    (tmp_path / "job.yaml").write_text(yaml_of(single_job()))
    ran = invoke("coordinator", "check", tmp_path / "job.yaml")
    told = [f"{bad[i % 3][1]} on line {4 + 2 * i}" for i in range(min(n, 20))]
    told += [f"a wrong number on {rest}"] if rest else []
    assert f"has {', '.join(told)}, where the header has 5 names; quote values" in ran.err


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_quotes_that_open_nothing_are_values(tmp_path: Path, name: str) -> None:
    """An odd number of quotes in a file whose quoted values all end: one is an inch."""
    path = tmp_path / name
    content = f'{HEADER}{ROW}2,"Mover",5,Y,"Heart"\n3,Mover,5,Y,3"\n'.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    job = single_job(columns=columns(surgery={"role": "sensitive", "domain": ["Heart", '3"']}))
    assert load_table(Csv(path), open_task(jobs.bundle_of(job))).rows.used == 3


def test_two_lone_quotes_swallow_lines_between_them(tmp_path: Path) -> None:
    """A line break in quotes is a value like any other, so only the column that does not list it tells."""
    path = tmp_path / "table.csv"
    path.write_text(f'{HEADER}{ROW}2,Mover,5,Y,"Heart\n{ROW * 20}3,Mover,5,Y,Heart"\n')
    error = refused(path)
    assert error.error_id == "data-unknown-value"
    assert error.private.startswith("table.csv, line 3: 'Heart\\n1,Mover")
    assert error.private.endswith(
        "'...; the value goes over several lines: is a quote (\") unclosed here or on an earlier line?"
    )
    assert len(error.private) < 200


@pytest.mark.parametrize(
    ("separator", "says"),
    [(";", "looks ';'-separated: set `delimiter: \";\"`"), ("\t", "looks tab-separated: set `delimiter: \"\\t\"`"),
     ("|", "looks '|'-separated")],
)  # fmt: skip
def test_another_separator_than_the_stated_one(tmp_path: Path, separator: str, says: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text((HEADER + ROW).replace(",", separator))
    error = refused(path, dialect=Dialect(","))
    assert error.error_id == "data-missing-column"
    assert says in error.private
    assert load_table(Csv(path), open_task(jobs.bundle_of(single_job()))).rows.used == 1


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_line_that_tells_excel_the_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text((f"sep={separator}\n" + HEADER + ROW).replace(",", separator))
    error = refused(path)
    assert error.error_id == "data-missing-column"
    assert "; this line is for Excel alone: remove the line" in error.private


def test_all_missing_columns_and_repeated_names_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text((HEADER + ROW).replace("job", "age").replace("transfused", "t"))
    found = refused(path)
    assert (found.column, found.error_id) == ("job", "data-missing-column")
    assert found.private.endswith("; no column transfused either; more than one column age")


def test_a_header_in_another_case(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text((HEADER + ROW).replace("patient", "Patient"))
    assert "'Patient' differs in blanks, case or Unicode form only" in refused(path).private


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_blanks_around_names_of_columns_do_not_count(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(HEADER.replace("patient", " patient").replace("\n", " \n") + ROW)
    if suffix == ".parquet":
        table = pyarrow.csv.read_csv(path)
        path = tmp_path / "table.parquet"
        pyarrow.parquet.write_table(table, path)
    source = source_of_file(path)
    assert source.column_names() == HEADER.strip().split(",")
    assert load_table(source, open_task(jobs.bundle_of(single_job()))).rows.used == 1


def test_two_columns_that_differ_in_blanks_are_one_name_twice(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(HEADER.replace("patient", "patient,patient ") + "1," + ROW)
    assert "patient" in refused(path).private


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        (
            "age",
            '"1,500"',
            "line 2: '1,500'; write '1.500', with a decimal point (or no thousands separator)",
        ),
        ("age", "NA", "if the value is missing, leave the cell empty or write ?"),
        ("age", "2020-01-31", "a date is no number: give the column `dates:"),
        ("age", "31.1.2020", "a date is no number"),
        ("job", "N/A", "if the value is missing"),
        ("surgery", "NULL", "if the value is missing"),
    ],
)
def test_values_that_mean_something_else(tmp_path: Path, column: str, value: str, says: str) -> None:
    path = tmp_path / "table.csv"
    names = HEADER.strip().split(",")
    path.write_text(
        HEADER
        + ",".join(value if n == column else v for n, v in zip(names, ROW.strip().split(","), strict=True))
    )
    assert says in refused(path).private


# ---- lines


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (HEADER + ROW + "2,Zebra,5,Y,Heart\n", 3),
        ("\n\n" + HEADER + ROW + "\n2,Zebra,5,Y,Heart\n", 6),
        (HEADER.replace("\n", "\r\n") + '"a\r\nb",Mover,5,Y,Heart\r\n2,Zebra,5,Y,Heart\r\n', 4),
        (HEADER + '"a\nb\nc",Zebra,5,Y,Heart\n', 2),
        ('"pat\nient",' + HEADER + "x," + ROW + "y,2,Zebra,5,Y,Heart\n", 4),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_errors_name_the_line_of_the_file(tmp_path: Path, content: str, line: int, packed: bool) -> None:
    path = tmp_path / ("table.csv.gz" if packed else "table.csv")
    path.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    assert refused(path).private == f"{path.name}, line {line}: 'Zebra'"


def test_rows_of_a_parquet_file_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    names = HEADER.strip().split(",")
    rows = [ROW.strip().split(","), ["2", "Zebra", "5", "Y", "Heart"]]
    pyarrow.parquet.write_table(pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
    with pytest.raises(DataError) as caught:
        load_table(Parquet(path), open_task(jobs.bundle_of(single_job())))
    assert caught.value.private == "t.parquet, row 2: 'Zebra'"


def test_a_row_that_is_gone_has_no_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + ROW)
    assert lines_of_rows(tmp_path / "t.csv", Dialect(), [1, 2]) == {1: 2}


# ---- Unicode forms


def nfd(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@pytest.mark.parametrize("in_job", [str, nfd])
@pytest.mark.parametrize("in_data", [str, nfd])
@pytest.mark.parametrize("listed", [True, False])
def test_values_are_compared_in_one_unicode_form(
    tmp_path: Path, in_job: Callable[[str], str], in_data: Callable[[str], str], listed: bool
) -> None:
    """In taxonomies, domains and protected values, whether a domain is listed or taken from the data."""
    domain = {"domain": [in_job("Knie"), in_job("Gefäß")]} if listed else {}
    changed = columns(
        job={"role": "qid", "taxonomy": {"Any": [in_job("Müller"), "Maler"]}},
        surgery={"role": "sensitive", "values": [in_job("Gefäß")], **domain},
    )
    job = write_job(tmp_path, single_job(columns=changed))
    rows = [
        {
            **row,
            "job": in_data("Müller") if i % 2 else "Maler",
            "surgery": in_data("Gefäß") if i % 8 == 0 else "Knie",
        }
        for i, row in enumerate(sample_rows(60))
    ]
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [unicodedata.normalize("NFC", v) for v in report["sensitive"]["surgery"]["values"]] == ["Gefäß"]
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0


def test_a_protected_value_in_another_form_is_protected(tmp_path: Path) -> None:
    """A domain from the data is in NFC; a value that `values` writes in NFD is the same and bound by C."""
    changed = columns(surgery={"role": "sensitive", "values": [nfd("Gefäß")], "C": "0.1"})
    job = write_job(tmp_path, single_job(columns=changed))
    rows = [{**row, "surgery": "Gefäß"} for row in sample_rows(60)]
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out", "--format", "json")
    assert ran.problem["error"] == "requirement-unmet"


def test_a_value_in_two_forms_is_refused(tmp_path: Path) -> None:
    both = ["Müller", nfd("Müller")]
    for changes in (
        {"job": {"role": "qid", "taxonomy": {"Any": both}}},
        {"surgery": {"role": "sensitive", "domain": both}},
        {"transfused": {"role": "class", "domain": both}},
    ):
        with pytest.raises(SchemaError) as caught:
            load_task(write_job(tmp_path, single_job(columns=columns(**changes))))
        assert "in two Unicode forms" in str(caught.value)


def test_the_bytes_of_a_bundle_keep_their_form(tmp_path: Path) -> None:
    for form in (str, nfd):
        tree = {"role": "qid", "taxonomy": {"Any": [form("Müller"), "Maler"]}}
        bundle = load_task(write_job(tmp_path, single_job(columns=columns(job=tree)))).bundle
        assert form("Müller").encode() in bundle.encoded


# ---- delimiter


def test_a_single_job_says_its_delimiter(tmp_path: Path) -> None:
    table = jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    table.write_text(table.read_text().replace(",", ";"))
    assert (
        "delimiter"
        in invoke("coordinator", "run", write_job(tmp_path, single_job()), "--out", tmp_path / "o").err
    )
    job = write_job(tmp_path, single_job(data={"path": "table.csv", "delimiter": ";"}))
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("sample: 60 rows")


def test_who_simulates_says_the_delimiter_of_all_tables(tmp_path: Path) -> None:
    job, options = write_job(tmp_path, joint_job()), []
    for i, name in enumerate(PARTIES):
        table = jobs.write_csv(tmp_path / f"{name}.csv", sample_rows(60)[i::3], COLUMNS)
        table.write_text(table.read_text().replace(",", "\t"))
        options.append(f"--data={name}={table}")
    simulate = ["simulate", job, *options, "--in-process", "--out", tmp_path / "out"]
    assert (
        invoke("coordinator", *simulate, "--delimiter", "ab", "--format", "json").problem["error"] == "usage"
    )
    ran = invoke("coordinator", *simulate, "--delimiter", "\\t")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("sample: 60 rows")


def test_a_column_that_is_gone_when_rows_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("other\n1\n")
    with pytest.raises(DataError) as caught:
        list(Csv(path).batches(["patient"]))
    assert caught.value.error_id == "data-unreadable"


@settings(max_examples=300, deadline=None)
@example(text='a,b\n5" pipe,x\n1,"HIV\n2,Flu\n')
@example(text='a,b\n5" pipe,x\n1,"a ""HIV\n2,Flu\n')
@given(text=st.text(st.sampled_from('a",\n'), max_size=24))
def test_an_unclosed_quote_is_found_beside_any_other_quotes(text: str) -> None:
    """The quick look at a file leaves out no file in which rows would become a value."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text(text, newline="")
        for size in (1, 2, 1 << 20):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(table_file, "_BLOCK_BYTES", size)
                may_be = table_file._may_be_open(path, Dialect(delimiter=",", encoding="utf-8"))
            found = table_file._row_without_end(path, Dialect(delimiter=",", encoding="utf-8"))
            assert may_be or found is None


def test_a_stray_quote_hides_no_unclosed_quote(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text('age,note,ill\n1,5" pipe,Flu\n2,x,"HIV\n3,y,Flu\n')
    with pytest.raises(DataError) as caught:
        list(Csv(tmp_path / "table.csv").batches(["ill"]))
    assert "without a closing quote, in the row that begins on line 3" in caught.value.private


_FORMS = {
    "table.csv.gz": "gzip",
    "table.csv.zst": "zstd",
    "table.parquet": "Parquet",
    "table.feather": "Arrow (Feather)",
}


@pytest.mark.parametrize(("name", "form"), _FORMS.items())
@pytest.mark.parametrize("harm", ["cut", "garbled"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, form: str, harm: str) -> None:
    table, path = pa.table({"a": [str(n * n) for n in range(20_000)]}), tmp_path / name
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(table, path)
    elif name.endswith(".feather"):
        pyarrow.feather.write_feather(table, path)
    else:
        with pa.CompressedOutputStream(str(path), _FORMS[name]) as packed:
            pyarrow.csv.write_csv(table, packed)
    whole = path.read_bytes()
    middle = len(whole) // 2
    garbled = whole[: middle - 500] + b"\x07" * 1000 + whole[middle + 500 :]
    path.write_bytes(whole[:middle] if harm == "cut" else garbled)
    with pytest.raises(DataError) as caught:
        list(source_of_file(path).relabel({}, ["a"]))
    said = f"{path} is a damaged or incomplete {form} file, or of another kind: save or copy the file again, whole"
    assert caught.value.private == said


def test_a_column_of_lists_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pyarrow.parquet.write_table(pa.table({"a": [[1], [2]]}), path)
    with pytest.raises(DataError) as caught:
        list(source_of_file(path).relabel({}, ["a"]))
    assert "damaged" not in caught.value.private
    assert "list" in caught.value.private
