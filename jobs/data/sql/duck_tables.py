"""Tables that DuckDB reads: files, folders of files, tables of databases; they need not fit into memory.

Parquet files and DuckDB's own databases are counted where they are. CSV files are read by the reader of all other CSV
files, and SQLite's databases by Python's library, into a copy that lives as long as the pass: what these refuse is
refused here, and cells have the same texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from anonymize.errors import changed
from jobs.data.arrow import pa, pq
from jobs.data.coding import Coded, Coding
from jobs.data.errors import not_there, unreadable
from jobs.data.ledger_places import beside
from jobs.data.sources import Csv, FileSource, Parquet
from jobs.data.sql.duck import Duck, DuckSession, started
from jobs.data.sql.engine import Session
from jobs.data.sql.matching import WILD, matching
from jobs.data.sql.pushed_down import PushedDown
from jobs.data.sql.sqlite import MAGIC, Sqlite
from jobs.data.streaming import Streamed
from jobs.data.table_file import about_header

MEMORY_LIMIT = "2GB"
PARQUET, CSV = (".parquet",), (".csv", ".csv.gz")
_NULL = "__HIVE_DEFAULT_PARTITION__"


def is_many(path: Path) -> bool:
    """Whether a path is that of a folder, or a pattern: of no file that is there itself."""
    return path.is_dir() or (not path.exists() and bool(WILD & set(str(path))))


@dataclass(frozen=True)
class DuckDb(PushedDown):
    """A table by its path.

    path:          a file; a folder, with all Parquet or all CSV files in it and in its folders; or a pattern (`*`,
                   `?`, `[...]`, `**`). Folders NAME=VALUE below the folder, or the fixed part of a pattern, are
                   columns. Nothing is left out without a word: :mod:`jobs.data.sql.matching`.
    memory_limit:  how much DuckDB may hold, as `2GB`; this process holds its part besides.
    table:         the path is a database of DuckDB or SQLite, and this a table or a view in it.
    """

    path: Path
    memory_limit: str = MEMORY_LIMIT
    delimiter: str = ","
    table: str | None = None

    @property
    def identity(self) -> str:
        """The path behind all links; with `#` and the table in a database."""
        return str(self.path.resolve()) + ("" if self.table is None else f"#{self.table}")

    @property
    def ledger(self) -> Path:
        """Beside the file or the folder; for a pattern beside its fixed part."""
        return beside(self._top.resolve())

    def settings(self) -> dict[str, Any]:
        given = {
            "path": str(self.path.resolve()),
            "memory_limit": self.memory_limit,
            "delimiter": self.delimiter,
        }
        return {"duckdb": given | ({} if self.table is None else {"table": self.table})}

    def version(self) -> str:
        return self._version_of(self._files())

    def _version_of(self, files: Sequence[FileSource]) -> str:
        """A digest over the versions of all files, with their names."""
        beside = [Parquet(path) for path in self._beside if path.exists()]
        versions = [f"{file.path}\0{file.version()}" for file in (*files, *beside)]
        return hashlib.sha256("\n".join(versions).encode()).hexdigest()

    @contextmanager
    def _unchanged(self) -> Iterator[list[FileSource]]:
        """The files of the table. Raises DataError if they are others at the end."""
        files = self._files()
        before = self._version_of(files)
        yield files
        if self.version() != before:
            raise changed()

    def column_names(self) -> list[str]:
        files = self._files()
        files[0].version()
        if self._is_duckdb:
            with self.session(()) as session:
                assert isinstance(session, DuckSession)
                return list(session.found.names)
        return [*files[0].column_names(), *self._folders(files[0])]

    def about_names(self, names: Sequence[str], wanted: str) -> str:
        return about_header(names, wanted, self.delimiter)

    def place(self, row: int) -> str:
        """By file and place in it, where rows stand in files."""
        if self._is_duckdb:
            return f"row {row}"
        for file in self._files():
            n_rows = sum(batch.num_rows for batch in file.batches(file.column_names()[:1]))
            if row <= n_rows:
                return file.place(row) + (f" of {file.path}" if is_many(self.path) else "")
            row -= n_rows
        return f"row {row}"

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._read(columns) if self._is_copied(self._files()) else super().batches(columns)

    def collapse(self, coding: Coding) -> Coded:
        """Pass 1. Raises DataError."""
        of_no_use = coding.matched or coding.persons  # a copy, as no rows are counted
        if of_no_use and self._is_copied(self._files()):
            return Streamed.collapse(self, coding)
        return super().collapse(coding)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._unchanged() as files:
            yield from self._rows_of(files, columns)

    def _rows_of(self, files: Sequence[FileSource], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of all files, as their own readers give them."""
        self._same_columns([(file, tuple(file.column_names())) for file in files])
        for file in files:
            yield from self._batches_of(file, columns)

    @contextmanager
    def session(self, names: Sequence[str]) -> Iterator[Session]:
        with self._unchanged() as files:
            paths = [file.path for file in files]
            with started([*paths, *self._beside], self.memory_limit) as duck:
                yield self._session(duck, files, names)

    def _session(self, duck: Duck, files: Sequence[FileSource], names: Sequence[str]) -> DuckSession:
        if self.table is not None and self._is_duckdb:
            return duck.attached(files[0].path, self.table)
        if self._is_copied(files):
            return duck.loaded(names, self._rows_of(files, names))
        return self._parquet(duck, files)

    def _parquet(self, duck: Duck, files: Sequence[FileSource]) -> DuckSession:
        schemas = [pq.read_schema(file.path) for file in files]
        self._same_columns([(f, _columns(schema)) for f, schema in zip(files, schemas, strict=True)])
        folders = self._folders(files[0])
        names = [*schemas[0].names, *folders]
        if len({name.lower() for name in names}) < len(names):
            raise unreadable("two columns differ in upper and lower case alone, which SQL takes for one name")
        if folders and set(names) & {name for name, _ in _named(self._top.resolve())}:
            raise unreadable("a folder above the table has the name of a column")
        schema = pa.schema([*schemas[0], *((name, pa.string()) for name in folders)])
        return duck.parquet([f.path for f in files], schema, by_folder=bool(folders))

    def _same_columns(self, found: Sequence[tuple[FileSource, object]]) -> None:
        """Refuse files that are not of one table. Raises DataError."""
        first = (found[0][1], list(self._folders(found[0][0])))
        for file, columns in found:
            if (columns, list(self._folders(file))) != first:
                raise unreadable(f"{file.path} has other columns, or of other types, than {found[0][0].path}")

    def _batches_of(self, file: FileSource, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of one file, with those that its folders are."""
        folders = self._folders(file)
        own = [name for name in names if name not in folders]
        for batch in file.batches(own or file.column_names()[:1]):
            given = {name: batch.column(i) for i, name in enumerate(own)}
            for name, value in folders.items():
                given[name] = pa.array([value]).dictionary_encode().take(pa.array([0] * batch.num_rows))
            yield pa.RecordBatch.from_arrays([given[name] for name in names], list(names))

    # ---- which files

    def _is_copied(self, files: Sequence[FileSource]) -> bool:
        """Whether DuckDB does not read the files itself: it takes some of their names for patterns, too."""
        odd = self.table is None and any(WILD & set(str(file.path)) for file in files)
        return odd or not isinstance(files[0], Parquet)

    @property
    def _beside(self) -> list[Path]:
        """Where databases keep what they have not yet written into their file."""
        return [] if self.table is None else [Path(f"{self.path}{suffix}") for suffix in (".wal", "-wal")]

    @property
    def _is_duckdb(self) -> bool:
        return self.table is not None and not self._is_sqlite

    @property
    def _is_sqlite(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    @property
    def _top(self) -> Path:
        """The file or folder, or the fixed part of a pattern."""
        if not is_many(self.path) or self.path.is_dir():
            return self.path
        parts = self.path.parts
        wild = next(i for i, part in enumerate(parts) if WILD & set(part))
        return Path(*parts[:wild])

    def _files(self) -> list[FileSource]:
        """The files of the table, in order of their names. Raises DataError."""
        if self.table is not None:
            return [Sqlite(self.path, self.table) if self._is_sqlite else Parquet(self.path)]
        paths = self._paths()
        if len({path.suffix.lower() in PARQUET for path in paths}) > 1:
            raise unreadable(f"{self.path}: some files are Parquet, and some are not")
        make = Parquet if paths[0].suffix.lower() in PARQUET else partial(Csv, delimiter=self.delimiter)
        return [make(path) for path in paths]

    def _paths(self) -> list[Path]:
        if not is_many(self.path):
            return [self.path.resolve()]
        if self.path.is_dir():
            found = matching(self.path, ("**", "*"))
            files = sorted({path for path in found if path.name.lower().endswith((*PARQUET, *CSV))})
        else:
            files = sorted(set(matching(self._top, self.path.parts[len(self._top.parts) :])))
        if not files:
            raise not_there(cause=f"{self.path}: no such files")
        return [path.resolve() for path in files]

    def _folders(self, file: FileSource) -> dict[str, str]:
        """The columns that are folders, of the rows of a file; a value that is missing is empty text."""
        if self.table is not None or not is_many(self.path):
            return {}
        try:
            inside = file.path.parent.relative_to(self._top.resolve())
        except ValueError:  # a link to elsewhere
            return {}
        return dict(_named(inside))


def _columns(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns with their types, however they are encoded."""
    kinds = {f.name: f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in schema}
    return {name: pa.string() if pa.types.is_large_string(kind) else kind for name, kind in kinds.items()}


def _named(folders: Path) -> list[tuple[str, str]]:
    """NAME=VALUE of every folder that is called so."""
    parts = [part.partition("=") for part in folders.parts if "=" in part]
    return [(name, "" if value == _NULL else unquote(value)) for name, _, value in parts]
