"""A real PostgreSQL server of the tests' own: in a temporary folder, behind a socket there, on no port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.bare import bare

_INSTALLED = Path("/usr/lib/postgresql")
_RULES = "local all all trust\n"
_BY_PASSWORD = "local all {role} scram-sha-256\n"
_START = "-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=20"
SUPERUSER = "owner"
READER, PASSWORD = "reader", "geheim p@ss:wort/1#"
"""A role that the server asks for a password."""


@dataclass(frozen=True)
class Server:
    """A running server. binaries: its programs. user: who runs it; None: we."""

    folder: Path
    binaries: Path
    user: str | None

    @property
    def dsn(self) -> str:
        """Connection string of the superuser."""
        return f"host={self.folder} user={SUPERUSER} dbname=postgres"

    def reader(self, password: str = PASSWORD) -> str:
        """Return the connection string of the role with a password, as a URI."""
        return f"postgresql://{READER}:{quote(password, safe='')}@/postgres?host={self.folder}"

    def sql(self, *statements: str) -> str:
        """Run statements, each on its own, in a connection of psql; return what psql prints."""
        return self._psql(*(word for each in statements for word in ("-c", each)))

    def sql_file(self, file: Path) -> str:
        """Run a script of psql; return what psql prints."""
        return self._psql("-f", str(file))

    def _psql(self, *words: str) -> str:
        psql = [str(self.binaries / "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1", "-d", self.dsn]
        return subprocess.run(
            [*psql, *words], check=True, stdout=subprocess.PIPE, text=True, env=bare()
        ).stdout

    def csv(self, table: str) -> str:
        """Return a table as the server itself writes CSV, with times in UTC."""
        return self.sql("SET timezone = 'UTC'", f"COPY {table} TO STDOUT (FORMAT csv, HEADER)")

    def load(self, table: str, columns: str, file: Path) -> None:
        """Make a table, with the rows of a CSV file with a header."""
        copied = f"\\copy {table} FROM '{file}' (FORMAT csv, HEADER)"
        self.sql(
            f"SET client_min_messages = warning; DROP TABLE IF EXISTS {table}",
            f"CREATE TABLE {table} ({columns})",
            copied,
        )

    def start(self) -> None:
        options = _START.format(folder=self.folder)
        self._ctl("start", "-w", "-l", self.folder / "log", "-o", options)

    def stop(self) -> None:
        """Stop the server at once: connections are cut."""
        self._ctl("stop", "-w", "-m", "immediate")

    def _ctl(self, *words: str | Path) -> None:
        self.run("pg_ctl", "-D", self.folder / "data", "-s", *words)

    def run(self, program: str, *words: str | Path) -> None:
        """Run a program of the server as its user."""
        given = [str(self.binaries / program), *map(str, words)]
        if self.user is not None:
            to = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", "--"]
            given = [*to, *given]
        subprocess.run(
            given, check=True, stdout=subprocess.DEVNULL, cwd="/", env=bare()
        )  # no pipe: the server would keep it


def _binaries() -> Path:
    """Return the folder of the newest server's programs, or skip the test."""
    found = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    return found[-1].parent


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server, or skip the test where Debian's package is missing."""
    binaries = _binaries()
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses root
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 bytes
    server = Server(folder, binaries, user)
    try:
        if user is not None:
            found = pwd.getpwnam(user)
            os.chown(folder, found.pw_uid, found.pw_gid)
        data = folder / "data"
        server.run(
            "initdb", "-D", data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"
        )
        (data / "pg_hba.conf").write_text(_BY_PASSWORD.format(role=READER) + _RULES)
        server.start()
        try:
            quoted = PASSWORD.replace("'", "''")
            server.sql(f"CREATE ROLE {READER} LOGIN PASSWORD '{quoted}'")
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)
