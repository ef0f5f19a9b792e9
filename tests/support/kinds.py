"""Tables in each kind of source, for tests that hold for all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import connect
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.jobs import write_csv
from tests.support.postgres import Server
from tests.support.spark import MASTER

VARIABLE = "CANARY_VARIABLE_4711"
HIDDEN = "canary4712"
"""Part of every path, query and table name, and of nothing else."""

Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Places:
    """Folder and server for the tables of a test. The variable holds the connection string."""

    folder: Path
    server: Server

    def csv(self, party: str, rows: Rows) -> dict[str, Any]:
        return {"csv": {"path": str(write_csv(self._own(party) / "table.csv", rows))}}

    def duckdb(self, party: str, rows: Rows) -> dict[str, Any]:
        """Write several files. The last has the rest."""
        size = -(-len(rows) // 3)
        for number in range(3):
            part = pa.Table.from_pylist([dict(row) for row in rows[size * number :][:size]])
            pq.write_table(part, self._own(party) / f"{number}.parquet")
        return {"name": party, "duckdb": {"path": str(self._own(party)), "memory_limit": "200MB"}}

    def sqlite(self, party: str, rows: Rows) -> dict[str, Any]:
        """Write a SQLite file with two tables."""
        file = self._own(party) / "table.sqlite"
        file.unlink(missing_ok=True)
        names, signs = ", ".join(f"{name} TEXT" for name in rows[0]), ", ".join("?" * len(rows[0]))
        with closing(connect(file)) as made:
            made.execute("CREATE TABLE other (a)")
            made.execute(f"CREATE TABLE {HIDDEN} ({names})")
            made.executemany(f"INSERT INTO {HIDDEN} VALUES ({signs})", [tuple(row.values()) for row in rows])  # noqa: S608
            made.commit()
        return {"name": party, "duckdb": {"path": str(file), "table": HIDDEN, "memory_limit": "200MB"}}

    def postgres(self, party: str, rows: Rows) -> dict[str, Any]:
        """Fill a table that the role with a password can read, also while a run reads the table."""
        table = f"{HIDDEN}_{party.replace('-', '_')}_{crc32(bytes(self.folder)):08x}"
        names = ", ".join(f"{name} text" for name in rows[0])
        file = write_csv(self.folder / "for the server.csv", rows)
        self.server.sql(
            "SET client_min_messages = warning",
            f"CREATE TABLE IF NOT EXISTS {table} ({names})",
            f"DELETE FROM {table}",  # noqa: S608  a table of ours
            f"\\copy {table} FROM '{file}' (FORMAT csv, HEADER)",
            f"GRANT SELECT ON {table} TO reader",
        )
        query = f"SELECT * FROM {table}"  # noqa: S608  a table of ours
        return {"name": party, "postgres": {"dsn_env": VARIABLE, "query": query}}

    def spark(self, party: str, rows: Rows) -> dict[str, Any]:
        """Write the files of :meth:`duckdb`, for the cluster of this machine."""
        path = self.duckdb(party, rows)["duckdb"]["path"]
        return {"name": party, "spark": {"master": MASTER, "path": path}}

    def _own(self, party: str) -> Path:
        folder = self.folder / f"{HIDDEN} {party}"
        folder.mkdir(exist_ok=True)
        return folder


Kind = Callable[[Places, str, Rows], dict[str, Any]]
KINDS: Mapping[str, Kind] = {
    "csv": Places.csv,
    "duckdb": Places.duckdb,
    "postgres": Places.postgres,
    "sqlite": Places.sqlite,
}
"""Kinds of sources that are quick to start, each as what makes a table and returns the key `data` of its owner."""
ALL_KINDS: Mapping[str, Kind] = {**KINDS, "spark": Places.spark}
