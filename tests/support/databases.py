"""A real PostgreSQL server for tests: on a socket in a folder of its own, without TCP, a database for each test."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

DSN_ENV = "JOINTCUT_DSN"
"""The variable that has the address of a test's database."""
PASSWORD = "s3cr3t/of the:owner@'x'"
"""Of the superuser: with all that has a meaning in an address."""
_USER = "postgres"
"""Of the database, and of the machine where we are root, whom the server refuses to serve."""
_START_S = 60
_WATCHED = '"$@" & server=$!; cat; kill -INT "$server"; wait "$server"'
"""A shell that ends the server with us, however we end: it reads the other end of our pipe until there is none."""


def binaries() -> Path | None:
    """The folder of the server's programs, the newest that is here."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    beside = shutil.which("initdb")
    if not found and beside is not None:
        return Path(beside).resolve().parent
    return found[-1].parent if found else None


@dataclass
class Server:
    """A server that runs while it is used. ``folder``: its own, readable by the user that it runs as."""

    programs: Path
    folder: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _made: int = 0

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    def make(self) -> None:
        """Make the files of a server that asks everybody for a password."""
        password = self.folder / "password"
        password.write_text(PASSWORD)
        self.socket.mkdir()
        for path in (self.folder, self.socket, password):
            shutil.chown(path, **self._owner) if self._owner else None
        options = ["--username", _USER, "--pwfile", str(password), "--auth", "scram-sha-256", "--no-sync"]
        options += ["--encoding", "UTF8", "--no-locale", "--pgdata", str(self.folder / "data")]
        subprocess.run([self.programs / "initdb", *options], check=True, capture_output=True, **self._as_user)

    @property
    def _owner(self) -> dict[str, Any]:
        return {"user": _USER, "group": _USER} if os.geteuid() == 0 else {}

    @property
    def _as_user(self) -> dict[str, Any]:
        home = {"cwd": self.folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}}
        return home | self._owner | ({"extra_groups": []} if self._owner else {})

    def start(self) -> None:
        """Start serving and wait until it answers."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket),
            "fsync": "off",
            "max_connections": "20",
            "shared_buffers": "64MB",
            "log_min_error_statement": "panic",
        }
        words = [f"--{name}={value}" for name, value in settings.items()]
        serve = ["sh", "-c", _WATCHED, "sh", str(self.programs / "postgres"), "-D", str(self.folder / "data")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*serve, *words], stdin=subprocess.PIPE, stdout=log, stderr=log, **self._as_user
            )
        until = time.monotonic() + _START_S
        while not self._answers():
            if time.monotonic() > until or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        ready = [self.programs / "pg_isready", "--quiet", "--host", self.socket]
        return subprocess.run(ready, check=False).returncode == 0

    def stop(self) -> None:
        """Cut all connections and end."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def database(self) -> Database:
        """A new empty database."""
        self._made += 1
        name = f"test_{self._made}"
        self.run(f"CREATE DATABASE {name}")
        return Database(self, name)

    def run(self, sql: str, database: str = _USER) -> str:
        """Run statements as the superuser; return what they say. Raises RuntimeError."""
        with self.client(database, stdin=subprocess.PIPE) as client:
            out, errors = client.communicate(sql.encode())
        if client.returncode:
            raise RuntimeError(errors.decode())
        return out.decode().strip()

    def client(self, database: str, stdin: int) -> subprocess.Popen[bytes]:
        """The server's own client, which reads statements of the superuser."""
        words = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
        where = ["--host", str(self.socket), "--username", _USER, "--dbname", database]
        given = {"PATH": os.environ["PATH"], "PGPASSWORD": PASSWORD}
        psql, pipe = self.programs / "psql", subprocess.PIPE
        return subprocess.Popen([psql, *words, *where], stdout=pipe, stderr=pipe, env=given, stdin=stdin)


@dataclass(frozen=True)
class Database:
    """A database of a server."""

    server: Server
    name: str

    def dsn(self, user: str = _USER, password: str = PASSWORD) -> str:
        """Its address with a password, as a URI."""
        host = quote(str(self.server.socket), safe="")
        return f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@{host}/{self.name}"

    def run(self, sql: str) -> str:
        """Run statements as the superuser; return what they say."""
        return self.server.run(sql, self.name)

    def load(self, table: Path, **types: str) -> None:
        """Make `public.patients` of a CSV; ``types``: of columns that are no text. Empty cells are null."""
        with table.open(newline="") as file:
            names = next(csv.reader(file))
        columns = ", ".join(f'"{name}" {types.get(name, "text")}' for name in names)
        self.run(f"DROP TABLE IF EXISTS patients; CREATE TABLE patients ({columns})")
        self.run(f"\\copy patients FROM '{table}' (FORMAT csv, HEADER)")

    def cut(self) -> None:
        """Cut all connections but our own."""
        self.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


@contextmanager
def serving() -> Iterator[Server]:
    """A server in a new folder, or a skipped test where PostgreSQL is not installed."""
    programs = binaries()
    if programs is None:
        pytest.skip("needs a PostgreSQL server (Debian: postgresql), which is not here")
    # Not in the test's own folder: the user that the server runs as may not read that.
    with tempfile.TemporaryDirectory(prefix="jointcut-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(programs, Path(folder))
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def holding(database: Database, sql: str) -> Iterator[None]:
    """Another transaction that has run a statement and does not end before the block does."""
    with database.server.client(database.name, stdin=subprocess.PIPE) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(f"BEGIN; {sql}; SELECT 'held';\n".encode())
        client.stdin.flush()
        assert client.stdout.readline() == b"held\n"
        yield
        client.stdin.close()
