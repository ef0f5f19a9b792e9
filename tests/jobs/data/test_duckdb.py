"""Tables that DuckDB reads: many files are the one table that they were cut from, and errors are the owner's."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonymize.errors import DataError
from anonymize.table import LeafSets, SetRule
from coordinator.run import run_in_process
from jobs.data import engine
from jobs.data.coders import Categorical, Sets
from jobs.data.coding import Coded, Coding
from jobs.data.duckdb import DuckDb
from jobs.data.engine import Numbered, packed
from jobs.data.sources import Csv, Source
from jobs.data.streaming import Alike
from jobs.data.wording import Wording
from jobs.errors import Exit
from jobs.loading import open_task
from jobs.release.report import BY_MAKER
from party.owner.data import Data
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_single
from tests.support.examples import FEW
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.network import released, yaml_of
from tests.support.parts import (
    CITIES,
    CODING,
    FORMS,
    JOB,
    NAMES,
    ROWS,
    another_kind,
    cut,
    cut_off,
    latin_1,
    no_file,
    no_path,
    other_columns,
    parquet,
    parquet_parts,
    run_with,
    told,
    too_few_values,
    two_kinds,
)
from tests.support.samples import PARTIES, joint_job


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_table_of_the_csv(tmp_path: Path, form: Callable[[Path], str]) -> None:
    (tmp_path / "it").mkdir()
    source = DuckDb("visits", tmp_path, path=tmp_path / "it" / form(tmp_path / "it"))
    whole = Csv(write_csv(tmp_path / "whole.csv", ROWS))
    assert source.column_names() == list(NAMES)
    assert told(source) == told(whole)


def test_folders_named_by_a_value_are_a_column(tmp_path: Path) -> None:
    for city, rows in (("Kiel", ROWS[:5]), ("Bonn", ROWS[5:9])):
        parquet(tmp_path / "visits" / f"place={city}" / "part.parquet", rows)
    source = DuckDb("visits", tmp_path, path=tmp_path / "visits")
    assert source.column_names() == [*NAMES, "place"]
    found = [row for batch in source.batches(["place", "age"]) for row in batch.to_pylist()]
    ages = [row["age"] for row in [*ROWS[5:9], *ROWS[:5]]]
    assert found == [{"place": "Bonn" if i < 4 else "Kiel", "age": age} for i, age in enumerate(ages)]


def test_the_owners_words_hold(tmp_path: Path) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    wording = Wording(missing=("Köln",), rename={"city": "town"}, values={"ill": {"Flu": "flu"}})
    source = DuckDb("visits", tmp_path, wording, tmp_path / "all.parquet")
    plain = Csv(write_csv(tmp_path / "all.csv", ROWS), wording)
    columns = ["town", "ill"]
    assert [batch.to_pylist() for batch in source.batches(columns)] == [
        batch.to_pylist() for batch in plain.batches(columns)
    ]
    assert source.marks(columns) == plain.marks(columns) != {}


def test_only_the_name_identifies_the_table(tmp_path: Path) -> None:
    parquet(tmp_path / "data" / "all.parquet", ROWS)
    source = DuckDb("visits", tmp_path, path=tmp_path / "data" / "all.parquet")
    assert (source.identity, source.ledger) == ("visits", tmp_path / "visits.privacy.sqlite")
    before = source.version()
    parquet(tmp_path / "data" / "all.parquet", ROWS[1:])
    assert DuckDb("visits", tmp_path, path=tmp_path / "data" / "all.parquet").version() != before


def test_nothing_stays_when_the_source_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    parquet(tmp_path / "all.parquet", ROWS)
    source = DuckDb("visits", tmp_path, path=tmp_path / "all.parquet")
    assert len(list(source.batches(["age"]))) == 1
    (spilled,) = (tmp_path / "tmp").iterdir()
    assert spilled.stat().st_mode & 0o777 == 0o700
    del source
    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "error_id", "private"),
    [
        (no_file, "file-missing", "visits: no file fits "),
        (no_path, "file-missing", "nothing.parquet is not there"),
        (two_kinds, "data-unreadable", "holds Parquet and text files; name one kind, as *.parquet"),
        (another_kind, "data-unreadable", "DuckDB is asked for Parquet, CSV and SQLite files only"),
        (other_columns, "data-unreadable", "b.parquet has other columns than"),
        (cut_off, "data-unreadable", "b.parquet"),
        (latin_1, "data-unreadable", "a.csv is CP1252; DuckDB reads UTF-8: convert it"),
        (
            too_few_values,
            "data-unreadable",
            "CSV Error on Line: 3; Expected Number of Columns: 3 Found: 2; file = ",
        ),
    ],
)
def test_what_is_wrong_is_told_to_the_owner(
    tmp_path: Path, wrong: Callable[[Path], str], error_id: str, private: str
) -> None:
    (tmp_path / "it").mkdir()
    source = DuckDb("visits", tmp_path, path=tmp_path / "it" / wrong(tmp_path / "it"))
    with pytest.raises(DataError) as caught:
        source.collapse(CODING)
    assert (caught.value.error_id, str(tmp_path) in str(caught.value)) == (error_id, False)
    assert private in caught.value.private


@pytest.mark.parametrize(
    ("others", "texts"),
    [
        ([1.5, None], ["1.0", "2.0", "1.5", ""]),
        (["old", "3"], ["1", "2", "old", "3"]),
        ([2**40, 3], ["1", "2", "1099511627776", "3"]),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_numbers_keep_their_digits_where_files_differ_in_type(
    tmp_path: Path, others: list[Any], texts: list[str], is_first: bool
) -> None:
    """Pandas writes whole numbers as doubles in a part with a missing cell."""
    parts = [pa.array([1, 2], pa.int32()), pa.array(others)]
    for number, ages in enumerate(parts if is_first else parts[::-1]):
        pq.write_table(pa.table({"age": ages}), tmp_path / f"{number}.parquet")
    source = DuckDb("visits", tmp_path, path=tmp_path)
    found = [text for batch in source.batches(["age"]) for text in batch.column(0).to_pylist()]
    assert found == (texts if is_first else [*texts[2:], *texts[:2]])


def test_equal_rows_are_counted_by_the_engine(tmp_path: Path) -> None:
    parquet(tmp_path / "all.parquet", ROWS * 3)
    source = DuckDb("visits", tmp_path, path=tmp_path / "all.parquet")
    coded = source.collapse(CODING)
    assert coded.weights.sum() == 3 * len(Csv(write_csv(tmp_path / "all.csv", ROWS)).collapse(CODING).weights)
    assert coded.weights.min() >= 3
    assert coded.rows.read == 3 * len(ROWS)


@pytest.mark.parametrize(
    "changes",
    [
        {"matched": True},
        {"outside": True},
        {"ids": ("ill",), "coders": {"age": CODING.coders["age"]}, "persons": True},
    ],
)
def test_rows_are_read_one_by_one_where_the_job_asks_for_more(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    coding = replace(CODING, checked=False, **changes)
    coded = DuckDb("visits", tmp_path, path=tmp_path / "all.parquet").collapse(coding)
    plain = Csv(write_csv(tmp_path / "all.csv", ROWS)).collapse(coding)
    assert coded.weights.tolist() == [1] * len(coded.weights)
    assert [c.codes.tolist() for c in coded.columns.values()] == [
        c.codes.tolist() for c in plain.columns.values()
    ]


def counted_rows(coded: Coded) -> Counter[tuple[Any, ...]]:
    """Return the records of each row, by its codes; sets by their leaves."""
    columns = [
        found.codes.tolist()
        if found.sets is None
        else [sets_of(found.sets)[code] for code in found.codes.tolist()]
        for found in coded.columns.values()
    ]
    rows: Counter[tuple[Any, ...]] = Counter()
    for row, weight in zip(zip(*columns, strict=True), coded.weights.tolist(), strict=True):
        rows[row] += weight
    return rows


def sets_of(sets: LeafSets) -> list[tuple[int, ...]]:
    """Return the leaves of each set."""
    return [tuple(sets.leaves[a:b].tolist()) for a, b in pairwise(sets.starts.tolist())]


CELLS = st.fixed_dictionaries(
    {
        "age": st.sampled_from(["1", "1.0", " 12.5", "99", "?", "", "NA", "-"]),
        "city": st.sampled_from([*CITIES, " Köln ", "Ko\u0308ln", "NA"]),
        "ill": st.sampled_from(["Flu", "Cold", "unwell"]),
        "tags": st.sampled_from(["a", "b,a", "a, b", ",", "", "c"]),
        "key": st.sampled_from(["1", "2", "3", "{}", "'"]),
        "part": st.sampled_from(["a", "b", ""]),
    }
)
OF_CELLS = replace(
    CODING,
    coders={
        **CODING.coders,
        "tags": Sets(Categorical({"a": 0, "b": 1, "c": 2, "?": 3}, 3), SetRule(",", 2)),
    },
)
WORDS = Wording(missing=("NA", "-"), values={"ill": {"unwell": "Flu"}})


FITS = {"age": "1", "city": "Köln", "ill": "Flu", "tags": "a", "key": "1", "part": "a"}


@settings(max_examples=FEW)
@example(rows=[FITS, {**FITS, "city": "", "key": "2"}], ids=("key",), words=replace(WORDS, missing=()))
@given(
    rows=st.lists(CELLS, min_size=1, max_size=30),
    ids=st.sampled_from([(), ("key",), ("key", "part")]),
    words=st.sampled_from([WORDS, replace(WORDS, missing=())]),
)
def test_the_engine_reads_what_a_reader_row_by_row_reads(
    rows: list[dict[str, str]], ids: tuple[str, ...], words: Wording
) -> None:
    coding = replace(OF_CELLS, ids=ids)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        pq.write_table(pa.Table.from_pylist(rows), folder / "all.parquet")
        alone = read_or_refused(Csv(write_csv(folder / "all.csv", rows), words), coding)
        for path in ("all.parquet", "all.csv"):
            assert read_or_refused(DuckDb("visits", folder, words, folder / path), coding) == alone


def read_or_refused(source: Source, coding: Coding) -> Any:
    """Return all that pass 1 finds, or the error."""
    try:
        coded = source.collapse(coding)
    except DataError as error:
        return error.error_id, error.column
    return (
        counted_rows(coded),
        coded.rows,
        coded.n_ids,
        [found.domain for found in coded.columns.values()],
    )


def test_keys_of_many_columns_are_apart() -> None:
    """More than 63 bits of numbers need more than one key."""
    texts = pa.array([str(i) for i in range(1000)])
    found = Alike(np.arange(1000), tuple(texts.to_pylist()))
    columns = packed({f"c{i}": (texts, found) for i in range(13)})
    assert [column.key for column in columns] == [0] * 6 + [1] * 6 + [2]
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 1000, (13, 50))
    keys = np.zeros((3, 50), dtype=np.int64)
    for column, numbers in zip(columns, drawn, strict=True):
        keys[column.key] += np.asarray(column.parts)[numbers]
    for column, numbers in zip(columns, drawn, strict=True):
        assert column.column(keys[column.key]).to_pylist() == [str(n) for n in numbers.tolist()]


def test_rows_are_read_one_by_one_beyond_a_number_of_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    source = DuckDb("visits", tmp_path, path=tmp_path / "all.parquet")
    counted = source.collapse(CODING)
    monkeypatch.setattr(engine, "MOST_TEXTS", 10)
    alone = source.collapse(CODING)
    assert set(alone.weights.tolist()) == {1}
    assert counted_rows(alone) == counted_rows(counted)


def test_a_text_that_comes_between_the_questions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is asked twice: for the texts, and for the rows."""
    parquet(tmp_path / "all.parquet", ROWS)
    source = DuckDb("visits", tmp_path, path=tmp_path / "all.parquet")
    ask = source._counted

    def counted(columns: Sequence[Numbered]) -> Any:
        parquet(tmp_path / "all.parquet", [*ROWS, {"age": "4", "city": "Zebra-4711", "ill": "Flu"}])
        return ask(columns)

    monkeypatch.setattr(DuckDb, "_counted", lambda _, columns: counted(columns))
    with pytest.raises(DataError) as caught:
        source.collapse(CODING)
    assert (caught.value.error_id, str(caught.value)) == (
        "data-unreadable",
        "the table changed while it was read",
    )


def test_a_value_that_fits_nothing_is_told_with_its_row(tmp_path: Path) -> None:
    rows = [*ROWS[:7], {"age": "4", "city": "Zebra-4711", "ill": "Flu"}]
    parquet(tmp_path / "all.parquet", rows)
    with pytest.raises(DataError, match="city") as caught:
        DuckDb("visits", tmp_path, path=tmp_path / "all.parquet").collapse(CODING)
    assert caught.value.private == "row 8: 'Zebra-4711'"


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError) as caught:
        list(DuckDb("visits", tmp_path, path=tmp_path / "all.parquet").batches(["age"]))
    assert (caught.value.error_id, caught.value.remedy) == (
        "extra-missing",
        "pip install 'jointcut[duckdb]'",
    )


# ---- a job


def test_a_job_gives_the_release_of_the_csv(tmp_path: Path) -> None:
    for name in ("engine", "file"):
        (tmp_path / name).mkdir()
    (tmp_path / "engine" / "visits").mkdir()
    parquet_parts(tmp_path / "engine" / "visits")
    write_csv(tmp_path / "file" / "visits.csv", ROWS)
    engine = {"name": "visits-2026", "duckdb": {"path": "visits/*.parquet", "memory_limit": "500MB"}}
    outs = [run_with(tmp_path / "engine", engine), run_with(tmp_path / "file", "visits.csv")]
    tables = [sorted((out / "anonymized.csv").read_text().splitlines()) for out in outs]
    assert tables[0] == tables[1]
    reports = [json.loads((out / "report.json").read_text()) for out in outs]
    for report in reports:
        for key in (*BY_MAKER, "job_sha256", "files"):
            report.pop(key, None)
    assert reports[0] == reports[1]
    everything = "".join(path.read_text(errors="replace") for path in outs[0].iterdir() if path.is_file())
    assert "parquet" not in everything


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"duckdb": {"path": "a.parquet"}}, "give `name`, too"),
        (
            {"name": "a", "duckdb": {"path": "a.parquet", "memory_limit": "2 GB"}},
            "write a whole number with MB or GB, as 500MB or 2GB",
        ),
        ({"name": "a", "duckdb": {"path": "a.parquet", "memory_limit": "64MB"}}, "write 200MB or more"),
        (
            {"name": "a", "duckdb": {"path": "a"}, "postgres": {"dsn_env": "A", "table": "t"}},
            "give exactly one of `duckdb`, `postgres` and `spark`",
        ),
        ({"name": "a", "postgres": {"dsn_env": "A"}}, "give `query` or `table`: neither is there"),
        (
            {"name": "a", "postgres": {"dsn_env": "A", "query": "b", "table": "t"}},
            "give `query` or `table`: query and table is there",
        ),
    ],
)
def test_wrong_keys(tmp_path: Path, data: Any, said: str) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB | {"data": data}))
    done = invoke("coordinator", "validate", tmp_path / "job.yaml")
    assert done.code == 2
    assert said in done.err


def test_another_path_under_a_name_is_told_and_has_the_same_budget(tmp_path: Path) -> None:
    rows = sample_rows(60)
    job = dp_single()
    for i, place in enumerate(("a", "a", "b")):
        texts = {name: [row[name] for row in rows] for name in job["columns"]}
        (tmp_path / place).mkdir(exist_ok=True)
        pq.write_table(pa.table(texts), tmp_path / place / "all.parquet")
        job["data"] = {"name": "visits", "duckdb": {"path": f"{place}/*.parquet"}}
        job["name"] = f"visits-{i}"
        (tmp_path / "job.yaml").write_text(yaml_of(job))
        done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / f"out-{i}")
        assert done.code == 0, done.err
        assert ("the path or query of visits is not that of the last run" in done.err) == (i == 2)
    said = invoke("coordinator", "budget", tmp_path / "job.yaml", "--format", "json").out
    assert [entry["job"] for entry in json.loads(said)["releases"]] == ["visits-0", "visits-1", "visits-2"]
    assert (tmp_path / "visits.privacy.sqlite").exists()


def test_a_party_reads_its_table_with_an_engine(tmp_path: Path) -> None:
    """One party on each kind of files; its configuration alone says where the table is."""
    job = joint_job()
    bundle = jobs.bundle_of(job)
    rows = sample_rows(60)
    sources: dict[str, Source] = {}
    for i, name in enumerate(PARTIES):
        sources[name] = Csv(write_csv(tmp_path / f"{name}.csv", rows[i::3], job["columns"]))
    task = open_task(bundle)
    run_in_process(task, sources, tmp_path / "files")
    (tmp_path / "parts").mkdir()
    for number, part in enumerate(cut(rows[1::3], 4)):
        texts = {name: [row[name] for row in part] for name in job["columns"]}
        pq.write_table(pa.table(texts), tmp_path / "parts" / f"{number}.parquet")
    sources[PARTIES[1]] = DuckDb("surgeries", tmp_path, path=tmp_path / "parts")
    run_in_process(task, sources, tmp_path / "engine")
    tables = [released(tmp_path / out, bundle) for out in ("files", "engine")]
    assert tables[0] == tables[1]
    settings = Data.model_validate(sources[PARTIES[1]].settings())
    assert (settings.source, settings.data_set) == (replace(sources[PARTIES[1]], home=Path()), "surgeries")
    assert b"parts" not in bundle.encoded


def test_files_that_change_between_the_passes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    relabel = DuckDb.relabel

    def later(source: DuckDb, *given: Any) -> Any:
        parquet(tmp_path / "all.parquet", [*ROWS[:60], *ROWS[:60]])
        return relabel(source, *given)

    monkeypatch.setattr(DuckDb, "relabel", later)
    data = {"name": "visits", "duckdb": {"path": "all.parquet"}}
    columns = JOB["columns"] | {"ill": {"role": "plain"}}  # only plain columns need a second pass
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB | {"data": data, "columns": columns}))
    done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert done.code == Exit.DATA, done.err
    assert "the table changed while it was read" in done.err
    assert not (tmp_path / "out").exists()
