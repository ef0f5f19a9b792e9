"""Tables in a real PostgreSQL server: cells as `COPY` writes them, one snapshot, and no secret in an error."""

from __future__ import annotations

import csv
import gc
import io
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from anonymize.errors import DataError
from jobs.data.coders import BAD, Categorical
from jobs.data.coding import Coding
from jobs.data.postgres import Dsn, Postgres
from jobs.data.sources import Csv
from jobs.data.wording import Wording
from tests.support.postgres import PASSWORD, READER, Server, serving

VARIABLE = "JOINTCUT_TEST_DSN"
TYPES = (
    "i integer, n numeric(20,5), d double precision, day date, at timestamp, zone timestamptz, yes boolean, t text, "
    'u uuid, c char(5), pause interval, ip inet, j jsonb, list text[], money money, bytes bytea, "char" "char"'
)
ROWS = (
    "(1, 1.5, 0.1, '2020-01-02', '2020-01-02 03:04:05.678', '2020-01-02 03:04+00', true, E'a\"b\\n,c; ä ''', "
    "'00000000-0000-0000-0000-000000000001', 'ab', '1 day 2 hours', '10.0.0.1', '{\"a\": 1}', '{a,\"b c\"}', 3.5, "
    "'\\x00ff', 'z')",
    "(-2, 'NaN', 'Infinity', 'infinity', '-infinity', null, false, ' x ', null, '', null, null, null, null, null, "
    "null, null)",
    f"({', '.join(['null'] * 17)})",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def source(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Postgres]:
    """Return what makes a table. dsn: another connection string than the superuser's."""

    def made(
        query: str | None = None, table: str | None = None, dsn: str = server.dsn, **said: Any
    ) -> Postgres:
        monkeypatch.setenv(VARIABLE, dsn)
        return Postgres("visits", Path(), Wording(**said), dsn=Dsn(VARIABLE, None), query=query, table=table)

    return made


def rows_of(table: Postgres, *names: str) -> list[list[str]]:
    columns = list(names) or table.column_names()
    return [list(row.values()) for batch in table.batches(columns) for row in batch.to_pylist()]


def error_of(table: Postgres) -> DataError:
    with pytest.raises(DataError) as caught:
        rows_of(table)
    return caught.value


# ---- cells and columns


def test_a_cell_has_the_text_that_copy_writes(server: Server, source: Callable[..., Postgres]) -> None:
    server.sql(
        "DROP TABLE IF EXISTS types",
        f"CREATE TABLE types ({TYPES})",
        *(f"INSERT INTO types VALUES {row}" for row in ROWS),  # noqa: S608  a table of ours
    )
    header, *rows = csv.reader(io.StringIO(server.csv("types")))
    table = source(table="types")
    assert table.column_names() == header
    assert rows_of(table) == rows
    assert [row[header.index("yes")] for row in rows] == ["t", "f", ""]
    assert rows_of(source("SELECT * FROM types", true=("t",), false=("f",)), "yes") == [
        ["true"],
        ["false"],
        [""],
    ]


def test_settings_of_a_role_change_no_cell(server: Server, source: Callable[..., Postgres]) -> None:
    server.sql(
        f"ALTER ROLE {READER} SET datestyle = 'German'", f"ALTER ROLE {READER} SET extra_float_digits = -10"
    )
    query = "SELECT date '2020-01-31' AS day, 0.1::float8 + 0.2 AS sum"
    assert rows_of(source(query, dsn=server.reader())) == [["2020-01-31", "0.30000000000000004"]]


def test_a_time_with_a_zone_is_in_utc(
    server: Server, source: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    server.sql(f"ALTER ROLE {READER} SET timezone = 'America/New_York'")
    query = "SELECT timestamptz '2020-01-31 23:00+00' AS at"
    for dsn in (server.reader(), server.dsn):
        assert rows_of(source(query, dsn=dsn)) == [["2020-01-31 23:00:00+00"]]


@pytest.mark.parametrize(
    ("query", "names", "rows"),
    [
        ("SELECT 1 AS x;", ["x"], [["1"]]),
        ("SELECT 1 AS x ;\n ", ["x"], [["1"]]),
        ("SELECT 1 AS x -- one", ["x"], [["1"]]),
        ("WITH one AS (SELECT 1 AS x) SELECT * FROM one", ["x"], [["1"]]),
        ("VALUES (1, 'a'), (2, NULL)", ["column1", "column2"], [["1", "a"], ["2", ""]]),
        ("SELECT 1 AS x WHERE false", ["x"], []),
        ('SELECT 1 AS "C""x", 2 AS "c\'x"', ['C"x', "c'x"], [["1", "2"]]),
        ('SELECT 1 AS " x "', ["x"], [["1"]]),
        ("SELECT", [], None),
        ("SELECT 1 AS x, 2 AS x", ["x", "x"], None),
    ],
)
def test_queries(
    source: Callable[..., Postgres], query: str, names: list[str], rows: list[list[str]] | None
) -> None:
    table = source(query)
    assert table.column_names() == names
    if rows is not None:
        assert rows_of(table) == rows


@pytest.mark.more
def test_names_of_tables_are_as_in_sql(server: Server, source: Callable[..., Postgres]) -> None:
    server.sql(
        'CREATE SCHEMA "Clinic"',
        'CREATE TABLE "Clinic".visits AS SELECT 1 AS a',
        'CREATE TABLE "user" AS SELECT 2 AS a',
        'CREATE TABLE "My ""T.b" AS SELECT 3 AS a',
    )
    for name, cell in {'"Clinic".VISITS': "1", "User": "2", "public.user": "2", '"My ""T.b"': "3"}.items():
        assert rows_of(source(table=name)) == [[cell]]
    for name in ("Clinic.visits", '"Clinic"."VISITS"', "nowhere"):
        assert "does not exist" in error_of(source(table=name)).private
    for name in ("a b", "a;b", "a.b.c", '"a', "", "(SELECT 1)"):
        assert "no name of a table" in error_of(source(table=name)).private


@pytest.mark.some(5)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("INSERT INTO kept VALUES (2)", 'ERROR: syntax error at or near "INTO"'),
        ("WITH w AS (INSERT INTO kept VALUES (2) RETURNING *) SELECT * FROM w", "must be at the top level"),
        ("SELECT 1 AS x; DROP TABLE kept", 'syntax error at or near ";"'),
        ("SELECT 1 AS x) AS t; DROP TABLE kept; --", "syntax error"),
        ("SELECT * FROM kept FOR UPDATE", "in a read-only transaction"),
        ("SELECT nextval('counter') AS x", "in a read-only transaction"),
        ("SHOW ALL", "syntax error"),
        ("SELECT nothing FROM kept", 'column "nothing" does not exist'),
        ("SELECT 1/(x - 1) AS x FROM kept", "ERROR: division by zero"),
    ],
)
def test_queries_that_are_refused(
    server: Server, source: Callable[..., Postgres], query: str, words: str
) -> None:
    server.sql(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept AS SELECT 1 AS x",
        "CREATE SEQUENCE IF NOT EXISTS counter",
    )
    error = error_of(source(query))
    assert (error.error_id, str(error), error.remedy) == ("data-unreadable", "the table cannot be read", "")
    assert error.private.startswith("visits: ERROR: ")  # the server's words, without the driver's
    assert words in error.private
    assert server.sql("SELECT * FROM kept") == "1\n"


def test_a_text_in_no_encoding_is_refused(server: Server, source: Callable[..., Postgres]) -> None:
    server.sql("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0")
    dsn = server.dsn.replace("dbname=postgres", "dbname=bytes")
    error = error_of(source("SELECT convert_from('\\xff', 'SQL_ASCII') AS x", dsn=dsn))
    assert error.error_id == "data-unreadable"
    assert "UTF8" in error.private


# ---- both passes


def test_both_passes_see_one_snapshot(server: Server, source: Callable[..., Postgres]) -> None:
    """The snapshot outlasts every write, and TRUNCATE, which no snapshot outlasts, has to wait."""
    server.sql(
        "DROP TABLE IF EXISTS many",
        "CREATE TABLE many AS SELECT g AS a, -g AS b FROM generate_series(1, 20000) g",
    )
    table = source(table="many")
    first = rows_of(table)
    version = table.version()
    server.sql(
        "UPDATE many SET b = 0 WHERE a % 3 = 0",
        "DELETE FROM many WHERE a < 100",
        "INSERT INTO many VALUES (0, 0)",
        "CREATE INDEX ON many (b)",
        "VACUUM ANALYZE many",
    )
    assert rows_of(table) == first
    assert [[b] for _, b in first] == rows_of(table, "b")
    assert table.version() == version
    with pytest.raises(subprocess.CalledProcessError):
        server.sql("SET lock_timeout = '50ms'", "TRUNCATE many")
    assert len(rows_of(source(table="many"))) == 20000 - 99 + 1


def test_the_version_changes_with_the_table_the_query_and_the_server(
    server: Server, source: Callable[..., Postgres]
) -> None:
    server.sql("DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT 1 AS x")
    before = source(table="kept").version()
    assert source(table="kept").version() == before
    assert source("SELECT * FROM kept").version() != before
    server.sql("UPDATE kept SET x = 2")
    after = source(table="kept").version()
    assert after != before
    server.stop()
    server.start()
    assert source(table="kept").version() not in (before, after)


def test_the_transaction_ends_with_the_object(server: Server, source: Callable[..., Postgres]) -> None:
    def open_ones() -> str:
        return server.sql(
            "SELECT pg_sleep(0.05)",
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jointcut'",
        ).strip()

    gc.collect()
    table = source("SELECT g AS a FROM generate_series(1, 1000000) g")
    rows = table.batches(["a"])
    next(rows)
    assert open_ones() == "1"
    del rows, table  # in the middle of the rows
    assert open_ones() == "0"


def test_unfit_cells_are_told_as_of_a_csv(
    tmp_path: Path, server: Server, source: Callable[..., Postgres]
) -> None:
    """The owner's text of a missing cell is looked up while the pass is under way."""
    server.sql(
        "DROP TABLE IF EXISTS kept",
        "CREATE TABLE kept AS SELECT g AS n, CASE WHEN g = 70000 THEN '-9' WHEN g = 70001 THEN 'z' ELSE 'a' END AS x "
        "FROM generate_series(1, 100000) g",
    )
    file = tmp_path / "kept.csv"
    file.write_text(server.csv("kept"))
    wording = Wording(missing=("-9",))
    coding = Coding({"x": Categorical({"a": 0}, BAD)}, (), checked=False, outside=False)
    told = []
    for table in (Csv(file, wording), source(table="kept", missing=("-9",))):
        with pytest.raises(DataError) as caught:
            table.collapse(coding)
        told.append((str(caught.value), caught.value.private))
    (said, of_csv), (same, of_server) = told
    assert said == same
    assert (
        of_csv.removeprefix("kept.csv, ")
        .replace("line 70001", "row 70000")
        .replace("line 70002", "row 70001")
        == of_server
    )
    assert "'-9'" in of_server


@pytest.mark.some(1)
@pytest.mark.parametrize("again", [False, True])
def test_a_server_that_stops_between_passes(
    server: Server, source: Callable[..., Postgres], again: bool
) -> None:
    """With the connection the snapshot is lost: a server that runs again does not help."""
    table = source("SELECT 1 AS x", dsn=server.reader())
    assert rows_of(table) == [["1"]]
    server.stop()
    try:
        if again:
            server.start()
        error = error_of(table)
    finally:
        if not again:
            server.start()
    assert error.error_id == "data-unreadable"
    assert "the connection to the server was lost" in error.private
    assert secretless(error, server)
    assert rows_of(source("SELECT 1 AS x")) == [["1"]]


def test_a_connection_that_is_cut_within_a_pass(server: Server, source: Callable[..., Postgres]) -> None:
    table = source("SELECT g AS a, repeat('x', 100) AS b FROM generate_series(1, 1000000) g")
    batches = table.batches(["a", "b"])
    next(batches)
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jointcut'")
    with pytest.raises(DataError) as caught:
        list(batches)
    assert "the connection to the server was lost" in caught.value.private


# ---- connection strings


def secretless(error: DataError, server: Server, password: str = PASSWORD) -> bool:
    """Return whether no spelling of a password, and no connection string, is in an error or its traceback."""
    text = " ".join(
        [*traceback.format_exception(error), repr(error), error.private, error.cause, error.remedy]
    )
    pieces = [password, *password.split(), *password.replace("@", " ").replace("/", " ").split()]
    return not any(piece in text for piece in [*pieces, str(server.folder)] if len(piece) > 2)


def test_a_role_with_a_password(server: Server, source: Callable[..., Postgres]) -> None:
    assert rows_of(source("SELECT current_user AS who", dsn=server.reader())) == [[READER]]


WRONG = "fälsch @secret:x/y#'\"z"


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("postgresql://reader:{quoted}@/postgres?host={folder}", "password authentication failed"),
        ("postgresql://reader@/postgres?host={folder}&password={quoted}", "password authentication failed"),
        ("host={folder} dbname=postgres user=reader password='{escaped}'", "password authentication failed"),
        ("postgresql://reader:{password}@/postgres?host={folder}", "the connection string names no server"),
        ("host={folder} dbname=postgres user=reader password={password}", "the connection string names no"),
        ("host={folder} dbname=secret user=owner", 'database "..." does not exist'),
        (
            "postgresql://reader:secret@localhost:1/postgres",
            "no connection to the server: Connection refused",
        ),
        ("postgresql://reader:secret@[::secret/postgres", "the connection string names no server"),
        ("secret", "the connection string names no server"),
    ],
)
def test_no_error_about_a_connection_has_a_secret(
    server: Server, source: Callable[..., Postgres], form: str, words: str
) -> None:
    escaped = WRONG.replace("\\", "\\\\").replace("'", "\\'")
    dsn = form.format(folder=server.folder, password=WRONG, quoted=quote(WRONG, safe=""), escaped=escaped)
    table = source("SELECT 1 AS x", dsn=dsn)
    error = error_of(table)
    assert str(error) == "the table cannot be read"
    assert words in error.private
    assert secretless(error, server, WRONG)
    assert "secret" not in error.private
    assert "secret" not in repr(table)


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "form",
    [
        "postgresql://reader:{quoted}@/postgres?host={folder}",
        "postgresql://reader@/postgres?host={folder}&password={quoted}",
        "host={folder} dbname=postgres user=reader password = '{password}'",
    ],
)
def test_no_word_of_the_server_has_a_secret(
    server: Server, source: Callable[..., Postgres], form: str
) -> None:
    """A query may hold the password again, and the server quotes what it does not understand."""
    dsn = form.format(folder=server.folder, password=PASSWORD, quoted=quote(PASSWORD, safe=""))
    for text in (PASSWORD, quote(PASSWORD, safe=""), dsn):
        literal = text.replace("'", "''")
        error = error_of(source(f"SELECT '{literal}'::integer AS x", dsn=dsn))
        assert 'invalid input syntax for type integer: "***"' in error.private
        assert secretless(error, server)


def test_a_missing_variable(source: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch) -> None:
    table = source("SELECT 1 AS x")
    monkeypatch.delenv(VARIABLE)
    assert f"{VARIABLE} (`dsn_env`) is not set: write the connection string" in error_of(table).private
    monkeypatch.setenv(VARIABLE, " \n")
    assert "write the connection string there" in error_of(table).private


def test_a_file_with_the_connection_string(tmp_path: Path, server: Server) -> None:
    file = tmp_path / "dsn"
    table = Postgres("visits", tmp_path, dsn=Dsn(None, file), query="SELECT 1 AS x")
    assert f"{file} (`dsn_file`) is not there" in error_of(table).private
    file.write_text(server.reader() + "\n")
    for mode in (0o640, 0o604, 0o620, 0o644):
        file.chmod(mode)
        assert f"chmod 600 {file}" in error_of(table).private
    for mode in (0o600, 0o400):
        file.chmod(mode)
        assert rows_of(Postgres("visits", tmp_path, dsn=Dsn(None, file), query="SELECT 1 AS x")) == [["1"]]
    assert table.settings() == {
        "name": "visits",
        "postgres": {"dsn_file": str(file), "query": "SELECT 1 AS x"},
    }
    folder = Postgres("visits", tmp_path, dsn=Dsn(None, tmp_path), query="SELECT 1 AS x")
    assert error_of(folder).error_id == "data-unreadable"


def test_identity_ledger_and_settings(source: Callable[..., Postgres]) -> None:
    table = source(table="clinic.visits", missing=("-9",))
    assert table.identity == "visits"
    assert table.ledger == Path("visits.privacy.sqlite").resolve()
    assert table.settings() == {
        "name": "visits",
        "postgres": {"dsn_env": VARIABLE, "table": "clinic.visits", "missing": ["-9"]},
    }


def test_without_the_driver(source: Callable[..., Postgres], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_manager", None)
    error = error_of(source("SELECT 1 AS x"))
    assert (error.error_id, error.remedy) == ("extra-missing", "pip install 'jointcut[postgres]'")
