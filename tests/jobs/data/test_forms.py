"""Files as they are: the same table in every form is the same table, and what was found out is told to its owner."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import openpyxl.chart
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import yaml

from anonymize.errors import DataError
from jobs.data.dialect import Dialect
from jobs.data.sources import Csv, Source, source_of_file
from jobs.data.wording import Wording
from jobs.loading import open_task
from jobs.reading import load_table
from jobs.release.report import BY_MAKER
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.network import yaml_of
from tests.support.samples import joint_job, single_job

COLUMNS: Mapping[str, Any] = {
    "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "12.5"}},
    "city": {"role": "qid", "taxonomy": {"Any": {"Süd": ["München", "Köln"], "Nord": ["Kiel", "Bremen"]}}},
    "smoker": {"role": "qid", "taxonomy": {"Any": ["true", "false"]}},
    "ill": {"role": "sensitive", "domain": ["Flu", "Cold"], "C": "1"},
}
CITIES = ("München", "Köln", "Kiel", "Bremen")
ROWS = [
    {
        "age": f"{i * 7 % 90}.{i % 4 * 25:02}" if i % 3 else str(i * 7 % 90),
        "city": CITIES[i * i % 4] if i % 11 else "",
        "smoker": "true" if i % 5 < 2 else "false",
        "ill": "Flu" if i % 2 else "Cold",
    }
    for i in range(120)
]


def text(delimiter: str = ",", *, comma: bool = False, **how: Any) -> str:
    out = io.StringIO()
    writer = csv.writer(out, **{"delimiter": delimiter, "lineterminator": "\n", **how})
    writer.writerow(COLUMNS)
    for row in ROWS:
        age = row["age"].replace(".", ",") if comma else row["age"]
        writer.writerow([age, row["city"], row["smoker"], row["ill"]])
    return out.getvalue()


def arrow() -> pa.Table:
    ages = [float(row["age"]) for row in ROWS]
    others = {name: [row[name] or None for row in ROWS] for name in ("city", "ill")}
    smokers = [row["smoker"] == "true" for row in ROWS]
    return pa.table(
        {
            "age": ages,
            "city": pa.array(others["city"]).dictionary_encode(),
            "smoker": smokers,
            "ill": others["ill"],
        }
    )


def zstd(path: Path) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(text().encode())


def excel(path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(COLUMNS))
    for row in ROWS:
        sheet.append([float(row["age"]), row["city"] or None, row["smoker"] == "true", row["ill"]])
    sheet.append([None, None, None, None])
    book.create_chartsheet("Chart").add_chart(openpyxl.chart.BarChart())
    book.save(path)


def bytes_in(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


FORMS: Mapping[str, tuple[str, Callable[[Path], object], str]] = {
    "plain": ("t.csv", bytes_in(text().encode()), ""),
    "byte order mark": ("t.csv", bytes_in(text().encode("utf-8-sig")), ""),
    "windows line ends": ("t.csv", bytes_in(text(lineterminator="\r\n").encode()), ""),
    "all quoted": ("t.csv", bytes_in(text(quoting=csv.QUOTE_ALL).encode()), ""),
    "semicolons": ("t.csv", bytes_in(text(";").encode()), "separated by `;`"),
    "decimal commas": ("t.csv", bytes_in(text(";", comma=True).encode()), "decimal comma"),
    "quoted decimal commas": ("t.csv", bytes_in(text(comma=True).encode()), "decimal comma"),
    "european": ("t.csv", bytes_in(text(";", comma=True, lineterminator="\r\n").encode("cp1252")), "CP1252"),
    "latin-1": ("t.csv", bytes_in(text().encode("latin-1")), "CP1252"),
    "utf-16": ("t.csv", bytes_in(text("\t").encode("utf-16")), "UTF-16"),
    "tabs": ("t.csv", bytes_in(text("\t").encode()), "separated by tabs"),
    "tsv": ("t.tsv", bytes_in(text("\t").encode()), ""),
    "bars": ("t.csv", bytes_in(text("|").encode()), "separated by `|`"),
    "gzip": ("t.csv.gz", bytes_in(gzip.compress(text().encode())), ""),
    "gzip of tsv": ("t.tsv.gz", bytes_in(gzip.compress(text("\t").encode())), ""),
    "bzip2": ("t.csv.bz2", bytes_in(bz2.compress(text().encode())), ""),
    "zstandard": ("t.csv.zst", zstd, ""),
    "parquet": ("t.parquet", lambda path: pyarrow.parquet.write_table(arrow(), path), ""),
    "feather": ("t.feather", lambda path: pyarrow.feather.write_feather(arrow(), str(path)), ""),
    "excel": ("t.xlsx", excel, ""),
}


def run(folder: Path, name: str, data: object, **changes: Any) -> Ran:
    fields = {
        "goal": "general",
        "columns": COLUMNS,
        "model": {"lkc": {"L": "2", "K": "3"}},
        "data": data,
        **changes,
    }
    (folder / "job.yaml").write_text(yaml_of(single_job(**fields)))
    return invoke("coordinator", "run", folder / "job.yaml", "--out", folder / name)


def released(folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the rows of a release, whose order is random, and its report without costs and digests."""
    report = json.loads((folder / "report.json").read_text())
    for key in ("job_sha256", "files", *BY_MAKER):
        report.pop(key, None)
    return sorted((folder / "anonymized.csv").read_text().splitlines()), report


def released_from(form: str, folder: Path) -> Any:
    """Run the job on a form of the table; return the release."""
    file, write, says = FORMS[form]
    write(folder / file)
    ran = run(folder, "out", file)
    assert ran.code == 0, ran.err
    assert says in ran.err
    assert bool(says) == ("found in its first lines" in ran.err)
    return released(folder / "out")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return released_from("plain", tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
def test_every_form_of_a_table_gives_the_same_release(form: str, plain: Any, tmp_path: Path) -> None:
    """The note names what was found out, and nothing is said of a form that needs no guess."""
    assert released_from(form, tmp_path) == plain


@pytest.mark.parametrize(
    ("file", "content", "stated"),
    [
        ("t.csv", text("/"), {"delimiter": "/"}),
        ("t.csv", text(quoting=csv.QUOTE_ALL, quotechar="'"), {"quote": "'"}),
        ("t.csv", text().encode("cp437"), {"encoding": "cp437"}),
        ("t.csv", text("\t").encode("utf-16-le"), {"encoding": "utf-16-le", "delimiter": "\t"}),
        ("t.csv", text(";", comma=True), {"delimiter": ";", "decimal": ","}),
    ],
    ids=["separator", "quote", "encoding", "utf-16 without a mark", "decimal"],
)
def test_a_stated_form(file: str, content: str | bytes, stated: dict[str, str], tmp_path: Path) -> None:
    """Nothing is guessed."""
    (tmp_path / "p.csv").write_text(text())
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, data in {"plain": "p.csv", "stated": {"path": file, **stated}}.items():
        ran = run(tmp_path, name, data)
        assert ran.code == 0, ran.err
        assert "first lines" not in ran.err
    assert released(tmp_path / "plain") == released(tmp_path / "stated")


def test_words_of_a_table(tmp_path: Path) -> None:
    """Names, values, truth values and marks of missing values as their owner writes them; the file stays as it is."""
    (tmp_path / "p.csv").write_text(text())
    own = text().replace("age,city,smoker,ill", "Alter,Ort,raucht,krank")
    own = (
        own.replace("Flu", "J11")
        .replace(",,", ",k. A.,")
        .replace("true", "ja")
        .replace("false", "nein")
        .replace("Köln", "Cologne")
    )
    (tmp_path / "own.csv").write_text(own)
    words = {
        "path": "own.csv",
        "rename": {"Alter": "age", "Ort": "city", "raucht": "smoker", "krank": "ill"},
        "map": {"ill": {"J11": "Flu"}, "city": {"Cologne": "Köln"}},
        "missing": ["k. A."],
        "true": ["ja"],
        "false": ["nein"],
    }
    for name, data in {"plain": "p.csv", "own": words}.items():
        ran = run(tmp_path, name, data)
        assert ran.code == 0, ran.err
    assert released(tmp_path / "plain") == released(tmp_path / "own")


def read(path: Path, **how: Any) -> Any:
    return load_table(
        source_of_file(path, **how), open_task(jobs.bundle_of(single_job(columns=COLUMNS, goal="general")))
    )


def test_a_mark_of_a_missing_value_drops_a_row_like_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,city,smoker,ill\nNA,Kiel,true,Flu\n-9,Kiel,true,Flu\n5,NA,true,Flu\n")
    rows = read(path, wording=Wording(missing=("NA", "-9"))).rows
    assert (rows.read, rows.used, rows.dropped) == (3, 1, {"age": {"missing": 2}})


@pytest.mark.parametrize(("end", "name"), [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bzip2"), ("lz4", "lz4")])
def test_a_file_that_is_not_compressed(end: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.csv.{end}"
    path.write_text("age,city\n5,Kiel\n")
    with pytest.raises(DataError) as caught:
        source_of_file(path).column_names()
    words = f"is no {name} file: take .{end} off the end of its name, or compress the file"
    assert caught.value.private == f"{path} {words}"


@pytest.mark.parametrize("form", ["t.csv", "t.parquet"])
def test_a_missing_cell_is_told_with_the_text_of_the_file(form: str, tmp_path: Path) -> None:
    rows = [{"age": "5", "city": "Kiel", "smoker": "true", "ill": each} for each in ("Flu", "k. A.", "k. A.")]
    if form == "t.csv":
        jobs.write_csv(tmp_path / form, rows, list(COLUMNS))
    else:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), tmp_path / form)
    ran = run(tmp_path, "out", {"path": form, "missing": ["k. A."]})
    place = "line 3" if form == "t.csv" else "row 2"
    assert f"[{form}, {place}: 'k. A.' (counts as missing) (2 of 3 rows)]" in ran.err


@pytest.mark.parametrize(
    "words", [{"map": {"city": {"a": "zz"}}}, {"true": ["a"]}, {"dates": {"city": "DD.MM.YYYY"}}]
)
def test_a_replaced_value_is_told_with_the_text_of_the_file(words: dict[str, Any], tmp_path: Path) -> None:
    own, job = ("1.2.2024", "2024-02-01") if "dates" in words else ("a", "true" if "true" in words else "zz")
    rows = [
        {"age": "5", "city": each, "smoker": "true", "ill": "Flu"} for each in ("Kiel", own, own, "nowhere")
    ]
    jobs.write_csv(tmp_path / "t.csv", rows, list(COLUMNS))
    ran = run(tmp_path, "out", {"path": "t.csv", **words})
    assert f"line 3: {own!r}, read as {job!r}" in ran.err
    assert "line 5: 'nowhere' (1 row)" in ran.err


def test_a_missing_id_is_told_with_the_text_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("nr,age,city,smoker,ill\n1,5,Kiel,true,Flu\nNN,5,Kiel,true,Flu\n")
    model = {"lkc": {"L": "2", "K": "2", "unit": "person"}}
    columns = {"nr": {"role": "id"}, **COLUMNS}
    ran = run(tmp_path, "out", {"path": "t.csv", "missing": ["NN"]}, model=model, columns=columns)
    assert "data-missing-id: id column nr has a missing cell [line 3: 'NN' (counts as missing)]" in ran.err


K2 = {"lkc": {"L": "2", "K": "2"}}
LETTERS = {
    "letter": {"role": "qid", "suppress": ["a", "b"]},
    "n": {"role": "qid", "numeric": {"min": "-10", "max": "10", "step": "10"}, "missing": "leaf"},
    "ill": {"role": "sensitive", "domain": ["Flu", "Cold"], "C": "1"},
}
"""Rows stay under `?`."""
MARKED = [
    "missing cells of letter: 'b' in 20 rows",
    "missing cells of n: '-9' in 4 rows",
    "warning: the job lists 'b' as a value of letter, and `missing` or `map` under `data` makes the cells missing",
    "warning: the job lists '-9' as a value of n, and `missing` or `map` under `data` makes the cells missing",
]


def letters() -> str:
    rows = [f"{'ab'[i % 2]},{-9 if i % 10 == 0 else i % 10},{'Flu' if i % 3 else 'Cold'}" for i in range(40)]
    return "\n".join(["letter,n,ill", *rows, ""])


@pytest.mark.parametrize("command", ["check", "run"])
def test_marks_of_rows_that_stay_are_told(command: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(letters())
    fields = single_job(columns=LETTERS, goal="general", data={"path": "t.csv", "missing": ["b", "-9"]})
    (tmp_path / "job.yaml").write_text(yaml_of(fields))
    more = ["--out", tmp_path / "out"] if command == "run" else []
    ran = invoke("coordinator", command, tmp_path / "job.yaml", *more)
    assert ran.code == 0, ran.err
    told = [line for line in (ran.out + ran.err).splitlines() if "missing" in line]
    assert [line.removeprefix("note: ") for line in told] == MARKED


def test_marks_are_told_to_a_party(tmp_path: Path) -> None:
    made = invoke("party", "init", "--name", "hospital-a", "--dir", tmp_path, "--data", "t.csv")
    assert made.code == 0
    config = tmp_path / "party.yaml"
    words = 'csv: {path: "t.csv", missing: [b, "-9"]}'
    config.write_text(config.read_text().replace('csv: {path: "t.csv"}', words))
    (tmp_path / "t.csv").write_text(letters())
    (tmp_path / "job.yaml").write_text(yaml_of(joint_job(columns=LETTERS, goal="general")))
    ran = invoke("party", "check", "--config", config, "--job", tmp_path / "job.yaml")
    for words in MARKED:
        assert f"  table        {words}" in ran.out


def test_marks_of_other_columns_are_not_told(tmp_path: Path) -> None:
    """Without cells of a mark, and with a domain from the data, there is nothing to warn of."""
    path = tmp_path / "t.csv"
    path.write_text("age,city,smoker,ill\n5,NA,true,Flu\n6,?,true,Flu\n7,,true,NA\n")
    open_domain = {"ill": {"role": "sensitive", "values": ["Flu"], "missing": "leaf", "C": "1"}}
    fields = single_job(columns={**COLUMNS, **open_domain}, goal="general")
    source = source_of_file(path, wording=Wording(missing=("NA", "?", "-")))
    rows = load_table(source, open_task(jobs.bundle_of(fields))).rows
    assert rows.marks == {"city": {"NA": 1, "?": 1}, "ill": {"NA": 1}}
    assert rows.listed == {}


def test_values_mapped_to_a_missing_cell_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("city,age\nKiel,3\nk. A.,4\nx,-9\n?,5\n")
    words = {"city": {"k. A.": "", "x": "?", "Kiel": "Bonn"}, "age": {"-9": ""}}
    source = source_of_file(path, wording=Wording(values=words))
    assert source.marks(["city", "age"]) == {"city": {"k. A.": 1, "x": 1}, "age": {"-9": 1}}


def test_a_map_comes_before_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,city,smoker,ill\n5,NA,true,Flu\n")
    wording = Wording(missing=("NA",), values={"city": {"NA": "Kiel"}})
    assert read(path, wording=wording).table.qid[1].tolist() == read_kiel(tmp_path)


def read_kiel(folder: Path) -> list[int]:
    (folder / "kiel.csv").write_text("age,city,smoker,ill\n5,Kiel,true,Flu\n")
    leaves: list[int] = read(folder / "kiel.csv").table.qid[1].tolist()
    return leaves


@pytest.mark.parametrize(
    ("number", "cell"), [("1.012,5", None), ("12,5", 1), ("99", 7), ("1,5", 0), ("+12,50", 1), (",5", 0)]
)
def test_numbers_with_a_decimal_comma(number: str, cell: int | None, tmp_path: Path) -> None:
    """Cells of 12.5; a number of a thousand is outside the domain."""
    path = tmp_path / "t.csv"
    path.write_text(f"age;city;smoker;ill\n{number};Kiel;true;Flu\n")
    wording = Wording(decimal=",")
    if cell is None:
        with pytest.raises(DataError) as caught:
            read(path, wording=wording)
        assert number in caught.value.private
    else:
        assert read(path, wording=wording).table.qid[0].tolist() == [cell]


def test_decimal_commas_beside_points_are_told_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text(";", comma=True))
    ran = run(tmp_path, "out", {"path": "t.csv", "decimal": "."})
    written = [row["age"] for row in ROWS if "." in row["age"]]
    first, n = written[0].replace(".", ","), len(set(written))
    decimal = 'say `decimal: ","` under `data`'
    assert (
        f"[t.csv, {n} different values in {len(written)} of 120 rows: line 3: '{first}' and {n - 1} more values "
        f"with a decimal comma; write '{written[0]}', with a decimal point (or no thousands separator), or {decimal} "
        f"({len(written)} rows)]. What to do: {decimal}, or write numbers with a point\n"
    ) in ran.err


@pytest.mark.parametrize(
    ("number", "says"),
    [
        ("1.234,56", 'points separate thousands: say `decimal: ","` under `data`, which reads such numbers'),
        ("1,234.56", "commas separate thousands: write numbers without them"),
    ],
)
def test_thousands_are_told(number: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'age,city,smoker,ill\n5.5,Kiel,true,Flu\n"{number}",Kiel,true,Flu\n')
    with pytest.raises(DataError) as caught:
        read(path)
    assert f"line 3: '{number}'; {says}" in caught.value.private


def test_a_number_outside_the_domain_of_a_table_with_decimal_commas(tmp_path: Path) -> None:
    """No decimal comma is unexpected."""
    (tmp_path / "t.csv").write_text("age;city;smoker;ill\n101,5;Kiel;true;Flu\n102,5;Kiel;true;Flu\n")
    ran = run(tmp_path, "out", {"path": "t.csv", "decimal": ","})
    assert (
        "line 2: '101,5' (1 row) | line 3: '102,5' (1 row) | smallest number 101.5, greatest 102.5 |"
        in ran.err
    )
    assert "What to do: correct the value, or widen `min`" in ran.err


@pytest.mark.parametrize(
    ("column", "cells", "ends"),
    [
        ({"numeric": {"min": "0", "max": "100", "step": "10"}}, ["5", "-9", "-9", "999"], "`min` and `max`"),
        (
            {"dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}},
            ["2024-02-01", "9999-12-31", "9999-12-31"],
            "`from` and `to`",
        ),
    ],
)
def test_a_code_for_missing_outside_the_domain(
    column: dict[str, Any], cells: list[str], ends: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["x", *cells, ""]))
    job = single_job(
        columns={"x": {"role": "qid", **column}}, goal="general", model={"lkc": {"L": "1", "K": "2"}}
    )
    (tmp_path / "job.yaml").write_text(yaml_of({**job, "data": "t.csv"}))
    ran = invoke("coordinator", "check", tmp_path / "job.yaml")
    assert "data-outside-domain" in ran.err
    remedy = ran.err.split("What to do: ")[1]
    assert remedy.startswith(f"correct the value, or widen {ends}")
    assert remedy.endswith(
        "if the value means a missing cell, list the value in `missing`, beside the path or query in `data`\n"
    )


@pytest.mark.parametrize("number", ["12.5", "1.5", "1.0125", "1.000.5", "12,5,5"])
def test_a_point_is_no_decimal_sign_beside_decimal_commas(number: str, tmp_path: Path) -> None:
    """Read as a fraction it would be another number than its owner means."""
    path = tmp_path / "t.csv"
    path.write_text(f"age;city;smoker;ill\n{number};Kiel;true;Flu\n")
    with pytest.raises(DataError) as caught:
        read(path, wording=Wording(decimal=","))
    assert caught.value.error_id == "data-outside-domain"


def test_columns_that_are_no_numbers_keep_their_commas(tmp_path: Path) -> None:
    columns = {**COLUMNS, "dose": {"role": "qid", "taxonomy": {"Any": ["0,5", "1,5"]}}}
    path = tmp_path / "t.csv"
    path.write_text("age;city;smoker;ill;dose\n12,5;Kiel;true;Flu;1,5\n")
    task = open_task(jobs.bundle_of(single_job(columns=columns, goal="general")))
    loaded = load_table(source_of_file(path), task)
    assert (loaded.table.qid[0].tolist(), loaded.table.qid[3].tolist()) == ([1], [1])


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        ("a;b\n1,5;2,5\n", ";"),
        ("a,b\n1;5,2;5\n", ","),
        ("a b\n1\n", ","),
        ("", ","),
        ("a;b,c;d\n", ";"),
        ('"a;b",c\n"1;2",3\n', ","),
        ("a|b|c\n1|2|3\n", "|"),
        ("a,b\n1\n2,3\n", ","),
    ],
)
def test_the_separator_that_is_found(content: str, separator: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(content)
    assert Dialect().sniffed(tmp_path / "t.csv").separator == separator


@pytest.mark.parametrize(
    ("values", "decimal"),
    [
        ("12,5", ","),
        ("12,500", "."),
        ("12,5;1.5", "."),
        ("12,5;1", ","),
        ("a,b", "."),
        ("1,2,3", "."),
        ("0,1234", ","),
    ],
)
def test_the_decimal_sign_that_is_found(values: str, decimal: str, tmp_path: Path) -> None:
    """Three digits may follow a thousands separator."""
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{each};x\n" for each in values.split(";")))
    assert Dialect(";").decimal_of(tmp_path / "t.csv") == decimal


def test_dates_have_no_decimal_sign(tmp_path: Path) -> None:
    """Decimal commas in one column change no points of dates in another."""
    (tmp_path / "t.csv").write_text("day;weight\n05.03.2021;79,5\n06.03.2021;80,5\n")
    dates = {"from": "2021-03-01", "to": "2021-04-01", "step": "1d", "form": "DD.MM.YYYY"}
    columns = {
        "day": {"role": "qid", "dates": dates},
        "weight": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "50"}},
    }
    fields = {"goal": "general", "model": {"lkc": {"L": "1", "K": "2"}}, "columns": columns}
    loaded = load_table(Csv(tmp_path / "t.csv"), jobs.task_of(single_job(**fields)))
    assert sorted(loaded.table.qid[0].tolist()) == [4, 5]


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(
        text(";", comma=True, lineterminator="\r\n").replace("Flu", "Grippe", 1).encode("utf-16")
    )
    with pytest.raises(DataError) as caught:
        read(path)
    assert "line 3: 'Grippe'" in caught.value.private


@pytest.mark.parametrize(
    ("file", "data", "says"),
    [
        ("t.xlsx", {"sheet": "Other"}, "has no sheet 'Other' with cells; it has 'Sheet'"),
        ("t.xlsx", {"sheet": "Chart"}, "has no sheet 'Chart' with cells; it has 'Sheet'"),
        ("t.csv", {"encoding": "klingon"}, "write the name of a text encoding"),
        ("t.csv", {"quote": "''"}, "`data.quote`"),
        ("t.csv", {"decimal": ";"}, "`data.decimal`"),
        ("t.csv", {"missing": "NA"}, "`data.missing`"),
        ("t.csv", {"map": {"ill": "Flu"}}, "`data.map.ill`"),
        (
            "t.csv",
            {"rename": {"ill": "age"}},
            "`rename` has `ill: age`, and the table has another column age",
        ),
        (
            "t.csv",
            {"rename": {"Alter": "years"}},
            "`rename` has `Alter: years`, and the table has no column Alter",
        ),
        ("t.csv", {"encoding": "ascii"}, "is not ASCII text (line"),
        ("t.csv", {"separator": ";"}, "separator"),
        ("broken.xlsx", {}, "is no Excel workbook"),
        ("t.csv", {"sheet": "Sheet"}, "`sheet` is for Excel workbooks (.xlsx), and t.csv is none"),
        ("t.xlsx", {"delimiter": ";"}, "`delimiter` is for text files, and t.xlsx is none"),
        ("t.parquet", {"encoding": "cp1252"}, "`encoding` is for text files, and t.parquet is none"),
    ],
)
def test_wrong_ones(file: str, data: dict[str, Any], says: str, tmp_path: Path) -> None:
    excel(tmp_path / "t.xlsx")
    (tmp_path / "t.csv").write_text(text())
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 and no workbook")
    ran = run(tmp_path, "out", {"path": file, **data})
    assert ran.code in (2, 7)
    assert says in ran.err
    assert ran.err.count("error: ") == 1


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/styles.xml"])
@pytest.mark.parametrize("harm", ["cut", "bent"])
def test_a_damaged_workbook(tmp_path: Path, part: str, harm: str) -> None:
    """A part ends early, or its packed bytes are others."""
    excel(tmp_path / "whole.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "whole.xlsx") as whole,
        zipfile.ZipFile(tmp_path / "t.xlsx", "w") as damaged,
    ):
        for name in whole.namelist():
            content = whole.read(name)
            damaged.writestr(name, content[: len(content) // 2] if (name, harm) == (part, "cut") else content)
        place = damaged.getinfo(part).header_offset + 60 + len(part)
    if harm == "bent":
        content = bytearray((tmp_path / "t.xlsx").read_bytes())
        content[place] ^= 1
        (tmp_path / "t.xlsx").write_bytes(content)
    ran = run(tmp_path, "out", {"path": "t.xlsx"})
    assert ran.code == 7
    assert "Excel workbook" in ran.err


def test_a_rename_to_a_name_of_two_columns_is_no_fault_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text())
    ran = run(tmp_path, "out", {"path": "t.csv", "rename": {"ill": "age"}})
    assert "What to do: give the column another name under `rename`, or leave the entry out" in ran.err


def test_a_rename_of_an_already_renamed_column_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text())
    assert run(tmp_path, "out", {"path": "t.csv", "rename": {"Alter": "age"}}).code == 0


def test_entries_of_a_map_that_change_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text().replace("Köln", "K"))
    words = {"city": {"K": "Köln", "L": "Kiel"}, "town": {"K": "Kiel"}}
    ran = run(tmp_path, "out", {"path": "t.csv", "map": words})
    assert ran.code == 0
    assert "t.csv: entries of `map.city` change nothing, since no cell has the value: `L: Kiel`\n" in ran.err
    assert "t.csv: `map.town` is for no column of the table: write the column's name in the job\n" in ran.err


def test_a_map_that_fits_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text().replace("Köln", "K"))
    ran = run(tmp_path, "out", {"path": "t.csv", "map": {"city": {"K": "Köln"}}})
    assert "`map" not in ran.err


def test_a_workbook_without_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    excel(tmp_path / "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    ran = run(tmp_path, "out", "t.xlsx")
    assert "extra-missing" in ran.err
    assert "pip install openpyxl" in ran.err


DATED = {
    "day": {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}},
    "city": {"role": "qid", "suppress": ["Kiel", "Bremen"]},
}
STATED = "{day: DD.MM.YYYY, city: DD.MM.YYYY, extra: YYYYMMDD, dya: DD.MM.YYYY}"
STRANGE = [
    "`dates.dya` is for no column of the table: write the column's name in the job",
    "`dates.city` under `data` is for a column without `dates` in the job: its dates are read as YYYY-MM-DD",
    "`dates.extra` under `data` is for no column of the job",
]


def dated(folder: Path, *days: str) -> None:
    rows = [f"{day},{'Kiel' if i % 2 else 'Bremen'},1" for i, day in enumerate(days)]
    (folder / "t.csv").write_text("\n".join(["day,city,extra", *rows, ""]))


@pytest.mark.parametrize("command", ["check", "run"])
def test_forms_of_dates_for_other_columns_are_told(command: str, tmp_path: Path) -> None:
    dated(tmp_path, *["3.2.2024"] * 8)
    stated = {"path": "t.csv", "dates": yaml.safe_load(STATED)}
    (tmp_path / "job.yaml").write_text(
        yaml_of(single_job(columns=DATED, goal="general", data=stated, model=K2))
    )
    more = ["--out", tmp_path / "out"] if command == "run" else []
    ran = invoke("coordinator", command, tmp_path / "job.yaml", *more)
    assert ran.code == 0, ran.err
    told = [line for line in ran.err.splitlines() if "`dates." in line]
    assert told == [f"t.csv: {STRANGE[0]}", *STRANGE[1:]]


def test_forms_of_dates_are_told_to_a_party(tmp_path: Path) -> None:
    made = invoke("party", "init", "--name", "hospital-a", "--dir", tmp_path, "--data", "t.csv")
    assert made.code == 0
    config = tmp_path / "party.yaml"
    words = f'csv: {{path: "t.csv", dates: {STATED}}}'
    config.write_text(config.read_text().replace('csv: {path: "t.csv"}', words))
    dated(tmp_path, "3.2.2024", "4.2.2024")
    (tmp_path / "job.yaml").write_text(yaml_of(joint_job(columns=DATED, goal="general", model=K2)))
    ran = invoke("party", "check", "--config", config, "--job", tmp_path / "job.yaml")
    for words in (f"t.csv: {STRANGE[0]}", *STRANGE[1:]):
        assert f"  table        {words}" in ran.out


@pytest.mark.parametrize(
    ("stated", "form"),
    [({"dates": {"day": "DD.MM.YYYY"}}, "DD.MM.YYYY (`dates` under `data`)"), ({}, "YYYY-MM-DD")],
)
def test_a_wrong_date_is_told_in_the_form_of_the_table(
    stated: dict[str, Any], form: str, tmp_path: Path
) -> None:
    dated(tmp_path, *["3.2.2024"] * 3 if stated else ["2024-02-03"] * 3, "13.14.2024")
    job = single_job(columns=DATED, goal="general", data={"path": "t.csv", **stated}, model=K2)
    (tmp_path / "job.yaml").write_text(yaml_of(job))
    ran = invoke("coordinator", "check", tmp_path / "job.yaml")
    assert f"line 5: '13.14.2024'; the value is not a date written as {form}]" in ran.err


@pytest.mark.parametrize(
    "text", ["2024-02-03 00:00:00+00", "2024-02-03 00:00:00.000000Z", "2024-02-03T01:00+01:00"]
)
def test_a_time_with_a_zone_is_told_as_one(text: str, tmp_path: Path) -> None:
    """As PostgreSQL and DuckDB, Arrow, and ISO write such times."""
    dated(tmp_path, *["2024-02-03"] * 3, text)
    job = single_job(columns=DATED, goal="general", data={"path": "t.csv"}, model=K2)
    (tmp_path / "job.yaml").write_text(yaml_of(job))
    ran = invoke("coordinator", "check", tmp_path / "job.yaml")
    assert f"line 5: '{text}'; the time has a zone, which no job reads" in ran.err


def test_dates_and_whole_numbers_of_a_workbook(tmp_path: Path) -> None:
    from datetime import date, datetime

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["a", "b", "c", "d"])
    sheet.append([3.0, date(2024, 1, 31), datetime(2024, 1, 31, 14, 5), 0.5])
    book.save(tmp_path / "t.xlsx")
    source: Source = source_of_file(tmp_path / "t.xlsx")
    (batch,) = source.batches(["a", "b", "c", "d"])  # type: ignore[attr-defined]  # every file has batches
    assert [column.to_pylist() for column in batch.columns] == [
        ["3"],
        ["2024-01-31"],
        ["2024-01-31 14:05:00"],
        ["0.5"],
    ]


def test_names_in_single_quotes(tmp_path: Path) -> None:
    """A note where the table is opened, and a cure where a column is missing."""
    path = tmp_path / "t.csv"
    path.write_text("'a','b'\n'1','2'\n")
    assert source_of_file(path).notes() == [
        't.csv: its names are in single quotes (`quote: "\'"` under `data`)'
    ]
    assert source_of_file(path, Dialect(quote="'")).notes() == []
    assert 'say `quote: "\'"` under `data`' in source_of_file(path).about_names(["'a'", "'b'"], "a")
    path.write_text("a,'b'\n1,2\n")
    assert source_of_file(path).notes() == []


def test_a_day_that_does_not_exist_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day\n2024-02-30\n2024-03-01\n")
    dates = {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}
    task = jobs.task_of(
        single_job(
            goal="general",
            model={"lkc": {"L": "1", "K": "2"}},
            columns={"day": {"role": "qid", "dates": dates}},
        )
    )
    with pytest.raises(DataError) as caught:
        load_table(Csv(tmp_path / "t.csv"), task)
    assert "line 2: '2024-02-30'; the calendar has no such day" in caught.value.private


def workbook(path: Path, *sheets: Sequence[Sequence[Any]]) -> None:
    """Write sheets A, B, ... ; openpyxl stores no values of formulas."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in zip("ABCDEFGHIJKLMN", sheets, strict=False):
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)


def test_further_sheets_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    workbook(path, [["a"], [1]], [["a"], [2]], [["b"], [3]])
    assert source_of_file(path).notes() == ["t.xlsx: the table is on sheet 'A'; not read: 'B', 'C' (`sheet`)"]
    assert source_of_file(path, sheet="A").notes() == []
    workbook(path, *[[["a"], [1]]] * 14)
    (note,) = source_of_file(path).notes()
    assert note.endswith("'J', 'K' and 3 more (`sheet`)")
    workbook(path, [["a"], [1]])
    assert source_of_file(path).notes() == []


def test_a_formula_without_a_stored_value_is_refused(tmp_path: Path) -> None:
    """The cell would count as empty. Formulas of other columns stay unread."""
    path = tmp_path / "t.xlsx"
    workbook(path, [[None, "a", "b"], ["x", 1, "=B2+1"], ["y", 2, 5], [], ["z", "=1+1", "=B5+1"]])
    with pytest.raises(DataError) as caught:
        list(source_of_file(path).batches(["a", "b"]))
    assert "formulas without a stored value in C2, B5, C5: open the workbook" in caught.value.private
    with pytest.raises(DataError) as caught:
        list(source_of_file(path).batches(["a"]))
    assert "value in B5: " in caught.value.private
    workbook(path, [["a", "b"], *([n, f"=A{n}"] for n in range(2, 40))])
    (batch,) = source_of_file(path).batches(["a"])
    assert batch.num_rows == 38
    with pytest.raises(DataError) as caught:
        list(source_of_file(path).batches(["b"]))
    assert "B2, B3, " in caught.value.private
    assert "B21 and 18 more: " in caught.value.private


def test_stored_values_of_formulas_are_read(tmp_path: Path) -> None:
    """A workbook that Excel saved has a value beside each formula; empty cells of such a workbook are empty."""
    path = tmp_path / "t.xlsx"
    workbook(path, [["a", "b"], [1, "=A2+1"], [None, 7]])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = re.sub(rb"<f>A2\+1</f><v ?/?>(?:</v>)?", b"<f>A2+1</f><v>2</v>", parts[sheet])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    (batch,) = source_of_file(path).batches(["a", "b"])
    assert [column.to_pylist() for column in batch.columns] == [["1", ""], ["2", "7"]]


def test_a_source_with_words_is_told_to_a_daemon(tmp_path: Path) -> None:
    source = Csv(tmp_path / "t.csv", Wording(("NA",), decimal=","), Dialect(";", encoding="cp1252"))
    given = {
        "path": str(tmp_path / "t.csv"),
        "delimiter": ";",
        "encoding": "cp1252",
        "missing": ["NA"],
        "decimal": ",",
    }
    assert source.settings() == {"csv": given}
