"""Tables in PostgreSQL, on a real server: read as a file would be, and what is said where they cannot be read."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from jobs.data import postgres_session
from jobs.data.coding import Coding
from jobs.data.postgres import Postgres
from jobs.data.sources import Csv, Parquet, Source
from jobs.errors import Problem, problem_of
from jobs.reading import load_columns, load_table
from jobs.task import Task
from tests.support import jobs
from tests.support.csv_tables import lines
from tests.support.databases import DSN_ENV, PASSWORD, Database, holding
from tests.support.pushed import CODERS, InMemory, same_pass_1
from tests.support.samples import columns, single_job, vertical_job

TABLE = Postgres(DSN_ENV, table="public.patients")
JOBS, SURGERIES = ("Janitor", "Mover", "Lawyer", "?"), ("Heart", "Knee", "Rare")


def query(text: str) -> Postgres:
    return Postgres(DSN_ENV, query=text)


def many(n: int, seed: int = 0) -> str:
    """A table that the sample jobs take, with cells that are missing."""
    rng = np.random.default_rng(seed)
    ages = [*map(str, range(100)), "", " 7", "5.50"]
    rows = (
        [str(i), _any(rng, JOBS), _any(rng, ages), _any(rng, "YN"), _any(rng, SURGERIES)] for i in range(n)
    )
    return lines(*rows)


def _any(rng: np.random.Generator, values: Sequence[str]) -> str:
    return values[int(rng.integers(len(values)))]


def in_both(folder: Path, database: Database, content: str, **types: str) -> tuple[Csv, Postgres]:
    """The same table in a file and in the database."""
    path = folder / "table.csv"
    path.write_text(content)
    database.load(path, **types)
    return Csv(path), TABLE


def refused(source: Source, task: Task | None = None) -> Problem:
    """How reading a table fails."""
    with pytest.raises(DataError) as caught:
        load_table(source, task or jobs.task_of(single_job()))
    return problem_of(caught.value)


# ---- the same as a file


@pytest.mark.parametrize(
    "sql", [None, "SELECT * FROM patients", "TABLE patients; ", "SELECT * FROM patients -- all"]
)
def test_a_table_is_what_its_csv_is(tmp_path: Path, database: Database, sql: str | None) -> None:
    file, table = in_both(tmp_path, database, many(3000))
    task = jobs.task_of(single_job())
    expected, found = load_table(file, task), load_table(query(sql) if sql else table, task)
    assert found.canonical() == expected.canonical()
    assert found.rows == expected.rows
    assert found.rows.n_dropped > 0


def test_columns_of_a_vertical_job_come_in_the_order_of_their_ids(tmp_path: Path, database: Database) -> None:
    """The same order at any time, whatever the rows lie like."""
    file, table = in_both(tmp_path, database, many(500))
    task = jobs.task_of(vertical_job())
    first = load_columns(table, task, "bank")
    assert first.canonical() == load_columns(file, task, "bank").canonical()
    database.run("CREATE TABLE again AS SELECT * FROM patients ORDER BY random()")
    other = load_columns(Postgres(DSN_ENV, table="public.again"), task, "bank")
    assert first.holding.same_as(other.holding)
    assert first.holding.ids != load_columns(file, task, "bank").holding.ids


HOSTILE = pa.table(
    {
        "text": ["", None, "?", " ? ", "a", "b", "é", "e\u0301", "a;b", "b; a;;a", "5", "0", "-0", "true"],
        "float8": [
            0.0,
            -0.0,
            None,
            float("nan"),
            1e15,
            1e300,
            5e-324,
            5.0,
            99.5,
            -7.0,
            float("inf"),
            0.1,
            1e16,
            2.5,
        ],
        "float4": pa.array(
            [0.0, -0.0, None, 0.1, 16777216.0, 5.0, 7.5, 1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 6.0], pa.float32()
        ),
        "int4": pa.array([0, 5, None, -7, 100, 99, 1, 2, 3, 4, 6, 7, 8, 9], pa.int32()),
        "bool": [True, False, None, True, False, True, False, True, False, True, False, True, False, True],
    }
)


@pytest.mark.parametrize("coder", CODERS)
@pytest.mark.parametrize("kind", HOSTILE.column_names)
def test_rows_counted_at_the_server_tell_what_each_row_does(
    database: Database, kind: str, coder: str
) -> None:
    cells = HOSTILE.column(kind)
    expected = InMemory(pa.table({"c": pa.concat_arrays([cells.combine_chunks()] * 3)}))
    database.run(f"CREATE TABLE patients (c {kind})")
    rows = ", ".join(f"({_literal(cell)})" for cell in cells.to_pylist() * 3)
    database.run(f"INSERT INTO patients VALUES {rows}")  # noqa: S608
    coding = Coding({"c": CODERS[coder]}, (), True, True)
    if (why := refusal(expected, coding)) is not None:
        assert refusal(TABLE, coding) == why
        return
    found = same_pass_1(TABLE, expected, coding)
    assert len(found.weights) <= len(cells)
    assert (found.weights % 3 == 0).all()


@pytest.mark.parametrize("kind", ["text", "varchar", "char(2)"])
def test_texts_that_a_collation_takes_for_equal_are_counted_apart(database: Database, kind: str) -> None:
    database.run("CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
    database.run(f"CREATE TABLE patients (c {kind} COLLATE loose)")
    cells = ["a", "A", "é", "e"] * 3
    database.run(f"INSERT INTO patients VALUES {', '.join(f'({_literal(cell)})' for cell in cells)}")  # noqa: S608
    assert database.run("SELECT count(DISTINCT c) FROM patients") == "2"
    coding = Coding({"c": CODERS["unlisted"]}, (), True, True)
    found = same_pass_1(TABLE, InMemory(pa.table({"c": cells})), coding)
    assert found.weights.tolist() == [3, 3, 3, 3]


def refusal(source: Any, coding: Coding) -> str | None:
    """The error of pass 1, if there is one."""
    try:
        source.collapse(coding)
    except DataError as error:
        return error.error_id
    return None


VALUES: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "int2": (pa.int16(), [0, -7, None, 32767]),
    "int4": (pa.int32(), [0, -7, None, 2**31 - 1]),
    "int8": (pa.int64(), [0, -7, None, 2**63 - 1]),
    "float4": (pa.float32(), [0.1, None, -0.0, 16777216.0]),
    "float8": (
        pa.float64(),
        [0.1, None, -0.0, 1e300, 5e-324, float("nan"), float("-inf"), 123456789012345680.0],
    ),
    "numeric(12,2)": (
        pa.decimal128(12, 2),
        [Decimal("15.50"), None, Decimal("-0.01"), Decimal("1234567890.00")],
    ),
    "bool": (pa.bool_(), [True, None, False]),
    "text": (pa.string(), ["", None, "?", " 5", "a\nb", "ü", '"', "\\", "a"]),
    "varchar": (pa.string(), ["", None, "x"]),
    "date": (pa.date32(), [date(2020, 1, 31), None, date(1969, 12, 31)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime(2020, 1, 31, 10), None, datetime(2020, 1, 31, 10, 0, 0, 500_000)],
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_of_any_type_has_the_texts_of_a_parquet_file(
    tmp_path: Path, database: Database, kind: str
) -> None:
    arrow, values = VALUES[kind]
    table = pa.table({"n": pa.array(range(len(values))), "c d": pa.array(values, arrow)})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    rows = ", ".join(f"({i}, {_literal(value)}::{kind})" for i, value in enumerate(values))
    source = query(f'SELECT column2 AS "c d" FROM (VALUES {rows}) AS v ORDER BY column1')  # noqa: S608
    assert texts(source) == texts(Parquet(tmp_path / "t.parquet"))


def _literal(value: object) -> str:
    text = str(value).replace("'", "''")
    return "NULL" if value is None else f"'{text}'"


def texts(source: Any, name: str = "c d") -> list[str]:
    return [cell for batch in source.batches([name]) for cell in batch.column(0).to_pylist()]


def test_types_that_files_lack_are_what_the_server_writes(database: Database) -> None:
    database.run("CREATE TYPE mood AS ENUM ('ok', 'sad'); CREATE DOMAIN age AS int CHECK (value > 0)")
    cells = ["'sad'::mood", "7::age", "'ab'::char(5)", "'10:00'::time", "1.50::numeric", "'NaN'::numeric"]
    cells += ["'9a5f1f26-3b1f-4b6e-8f1a-0a4b7b9d3c11'::uuid", "NULL::mood"]
    source = query("SELECT " + ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(cells)))
    names = source.column_names()
    (batch,) = source.batches(names)
    (row,) = pa.Table.from_batches([batch]).to_pylist()
    uuid = "9a5f1f26-3b1f-4b6e-8f1a-0a4b7b9d3c11"
    assert list(row.values()) == ["sad", "7", "ab", "10:00:00", "1.50", "NaN", uuid, ""]


@pytest.mark.parametrize(
    "cell",
    ["ARRAY[1, 2]", "ARRAY['a']", "'{}'::json", "'{}'::jsonb", "'a'::bytea", "now()", "'1 day'::interval"],
)
def test_a_column_whose_cells_are_no_single_value_is_refused(database: Database, cell: str) -> None:
    """Where it is asked for; a column that no job names may be of any type."""
    row = f"SELECT '1' AS patient, 'Mover' AS job, {cell} AS age, 'Y' AS transfused, 'Heart' AS surgery"
    problem = refused(query(row))
    assert (problem.error_id, problem.column) == ("data-unreadable", "age")
    assert "cast it in the query" in problem.private
    assert texts(query(row), "job") == ["Mover"]


def test_a_bad_value_is_told_to_the_owner_alone(tmp_path: Path, database: Database) -> None:
    _, table = in_both(
        tmp_path, database, lines(["1", "Mover", "5", "Y", "Heart"], ["2", "Astronaut", "5", "Y", "Knee"])
    )
    problem = refused(table)
    assert (problem.error_id, problem.column) == ("data-unknown-value", "job")
    assert "'Astronaut'" in problem.private
    assert "Astronaut" not in json.dumps(problem.shared()) + problem.cause


def test_a_column_in_another_case_is_pointed_out(database: Database) -> None:
    database.run("CREATE TABLE patients (patient text, job text, Age text, transfused text, surgery text)")
    bent = columns(age=None, Age=columns()["age"])
    problem = refused(TABLE, jobs.task_of(single_job(columns=bent)))
    assert problem.error_id == "data-missing-column"
    assert "'age' differs in blanks, case or Unicode form only: PostgreSQL folds" in problem.private


def test_names_with_quotes_and_blanks(database: Database) -> None:
    table, column = '"My Data"."a ""b"""', '"x ""y"""'
    database.run(f'CREATE SCHEMA "My Data"; CREATE TABLE {table} ({column} text)')
    database.run(f"INSERT INTO {table} VALUES ('z')")  # noqa: S608
    assert texts(Postgres(DSN_ENV, table='My Data.a "b"'), 'x "y"') == ["z"]


# ---- one snapshot


def changes(database: Database) -> None:
    database.run(
        "UPDATE patients SET surgery = 'Knee'; INSERT INTO patients SELECT * FROM patients; ANALYZE patients"
    )


def test_both_passes_see_one_snapshot(tmp_path: Path, database: Database) -> None:
    _, table = in_both(tmp_path, database, many(100))
    task = jobs.task_of(single_job())
    with table.snapshot() as steady:
        before = load_table(steady, task).canonical()
        changes(database)
        assert load_table(steady, task).canonical() == before
        assert sum(batch.num_rows for batch in steady.relabel({}, ["patient"])) == 100
    assert refused(table, task).error_id == "data-duplicate-id"


def test_the_version_is_another_after_whatever_is_written(tmp_path: Path, database: Database) -> None:
    _, table = in_both(tmp_path, database, many(10))
    first = table.version()
    load_table(table, jobs.task_of(single_job()))
    assert table.version() == first
    database.run("UPDATE patients SET age = '7' WHERE patient = '3'")
    assert table.version() != first


def test_nothing_can_be_written(database: Database) -> None:
    database.run(
        "CREATE TABLE patients (a int); CREATE FUNCTION add() RETURNS int LANGUAGE sql AS "
        "'INSERT INTO patients VALUES (1) RETURNING a'"
    )
    for sql in ("SELECT add() AS a", "WITH w AS (DELETE FROM patients RETURNING a) SELECT a FROM w"):
        with pytest.raises(DataError) as caught:
            texts(query(sql), "a")
        assert caught.value.error_id == "data-unreadable"
    assert database.run("SELECT count(*) FROM patients") == "0"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS a; SELECT 2 AS a",
        "SELECT 1 AS a; DROP TABLE patients",
        "SELECT 1 AS a) AS x; DROP TABLE patients; --",
        "SELECT 1 AS a) AS x, (SELECT 2 AS b",
        "DROP TABLE patients",
        "SELEC 1",
        "",
        "-- nothing",
        "COMMIT",
    ],
)
def test_a_query_is_one_statement_that_gives_rows(database: Database, sql: str) -> None:
    database.run("CREATE TABLE patients (a int)")
    with pytest.raises(DataError) as caught:
        texts(query(sql), "a")
    assert caught.value.error_id == "data-unreadable"
    assert database.run("SELECT count(*) FROM patients") == "0"


# ---- names


def test_a_data_set_is_the_database_and_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT *  FROM patients\n WHERE ward = 'A';\n"
    digest = hashlib.sha256(b"SELECT * FROM patients WHERE ward = 'A'").hexdigest()
    for user in ("reader:one", "owner:other"):
        monkeypatch.setenv(DSN_ENV, f"postgresql://{user}@db:5433/clinic")
        assert TABLE.identity == "postgresql://db:5433/clinic?table=public.patients"
        assert query(sql).identity == f"postgresql://db:5433/clinic?query={digest}"


def test_the_ledger_is_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert TABLE.ledger == tmp_path / "jointcut" / "privacy.sqlite"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TABLE.ledger == tmp_path / ".local" / "state" / "jointcut" / "privacy.sqlite"


def test_a_repr_has_neither_query_nor_address(database: Database) -> None:
    with query("SELECT 'hush' AS a").snapshot() as steady:
        assert "hush" not in repr(steady)
        assert PASSWORD not in repr(steady)


# ---- faults


def said(problem: Problem) -> str:
    """All that is ever told of a problem, to anybody."""
    return json.dumps(problem.shared()) + problem.private + problem.cause + repr(problem)


def test_a_wrong_password_is_not_repeated(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN_ENV, database.dsn(password="wr0ng"))
    problem = refused(TABLE)
    assert problem.error_id == "data-unreachable"
    assert "password authentication failed" in problem.cause
    assert "wr0ng" not in said(problem)
    assert str(database.server.socket) not in json.dumps(problem.shared())


def test_an_address_that_is_not_there_or_not_understood(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (
        "",
        "hush",
        "postgresql://u:hush@x@h/d",
        database.dsn().replace("socket", "hole"),
        database.dsn() + "x",
    ):
        monkeypatch.setenv(DSN_ENV, text)
        problem = refused(TABLE)
        assert problem.error_id == "data-unreachable"
        assert problem.cause
        assert "hush" not in said(problem)
        assert PASSWORD not in said(problem)
    monkeypatch.delenv(DSN_ENV)
    assert DSN_ENV in refused(TABLE).cause


def test_a_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv(DSN_ENV, f"postgresql://127.0.0.1:{silent.getsockname()[1]}/d?connect_timeout=2")
        assert "timeout expired" in refused(TABLE).cause


def test_who_may_not_read_the_table_is_told_so(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_both(tmp_path, database, many(10))
    database.run("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN PASSWORD 'x'")
    monkeypatch.setenv(DSN_ENV, database.dsn("stranger", "x"))
    problem = refused(TABLE)
    assert problem.error_id == "data-unreadable"
    assert "permission denied for table patients" in problem.private


def test_what_the_server_says_of_values_is_for_the_owner(database: Database) -> None:
    problem = refused(
        query(
            "SELECT '1' AS patient, 'Mover' AS job, ('hu' || 'sh')::int AS age, 'Y' AS transfused, "
            "'Heart' AS surgery FROM generate_series(1, 3)"
        )
    )
    assert problem.error_id == "data-unreadable"
    assert '"hush"' in problem.private
    assert "hush" not in json.dumps(problem.shared()) + problem.cause
    assert "SELECT" not in said(problem)


def test_a_connection_that_is_cut_midway(database: Database) -> None:
    source = query("SELECT i::text AS a, repeat('hush', 500) AS b FROM generate_series(1, 100000) AS i")
    rows = source.batches(["a", "b"])
    next(rows)
    database.cut()
    with pytest.raises(DataError) as caught:
        list(rows)
    problem = problem_of(caught.value)
    assert problem.error_id == "data-unreachable"
    assert "hush" not in said(problem)


@pytest.mark.parametrize("fault", ["cut", "restart"])
def test_a_server_restarted_between_passes(tmp_path: Path, database: Database, fault: str) -> None:
    _, table = in_both(tmp_path, database, many(100))
    task = jobs.task_of(single_job())
    with table.snapshot() as steady:
        before = load_table(steady, task)
        database.cut() if fault == "cut" else database.server.restart()
        assert refused(steady, task).error_id == "data-unreachable"
    assert load_table(table, task).canonical() == before.canonical()


def test_a_lock_is_not_waited_for_without_end(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, table = in_both(tmp_path, database, many(10))
    monkeypatch.setitem(postgres_session._SETTINGS, "lock_timeout", "50ms")
    with holding(database, "LOCK TABLE patients"):
        problem = refused(table)
    assert problem.error_id == "data-unreadable"
    assert "lock timeout" in problem.private


def test_a_query_may_not_take_for_ever(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(postgres_session._SETTINGS, "statement_timeout", "50ms")
    with pytest.raises(DataError) as caught:
        texts(query("SELECT pg_sleep(60)::text AS a"), "a")
    assert "statement timeout" in caught.value.private


def test_whoever_stops_reading_leaves_nothing_open(database: Database) -> None:
    source = query("SELECT i::text AS a, repeat('x', 900) AS b FROM generate_series(1, 100000) AS i")
    rows: Iterator[Any] = source.batches(["a", "b"])
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    with suppress(RuntimeError), source.snapshot() as steady:
        next(iter(steady.batches(["a"])))
        raise RuntimeError
    open_ = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    assert database.run(f"SELECT pg_sleep(0.1); {open_}") == "0"


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN_ENV, "postgresql://h/d")
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql.dbapi", None)
    problem = refused(TABLE)
    assert problem.error_id == "extra-missing"
    assert "jointcut[postgres]" in problem.remedy
