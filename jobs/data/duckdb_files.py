"""Parquet and CSV files as SQL of DuckDB."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from glob import glob
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from jobs.data.arrow import pq
from jobs.data.database import quoted, unreadable
from jobs.data.dialect import SNIFFED, UTF_8, Dialect
from jobs.data.sources import Csv, Parquet
from jobs.data.table_file import missing

if TYPE_CHECKING:
    import duckdb

_TEXTS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
_PATTERN = frozenset("*?[")
_SIGN = re.compile(r"[*?\[]")
_FILE_NAME = "jointcut file"
_FILE = f'"{_FILE_NAME}"'
_VALUE = r"/\Q{}\E=([^/]*)/"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OTHER_KIND = "give Parquet, CSV or SQLite; for an encrypted SQLite file give a plain copy"
_ENCODINGS = {UTF_8: "utf-8", "utf-8-sig": "utf-8", "utf-16": "utf-16"}


class Reading(ABC):
    """Form of a table for DuckDB: the names of its columns, and SQL.

    name:  of the table, for errors.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    @abstractmethod
    def watched(self) -> Sequence[Path]:
        """Files of the table. A file that changes is a change of the table."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Columns of the table, in order. Raises DataError."""

    @property
    @abstractmethod
    def sql(self) -> str:
        """The table in a FROM clause, with the name `source`."""

    @abstractmethod
    def column(self, name: str) -> str:
        """Return the name of a column in :attr:`sql`, without quotes. Raises DataError."""

    def n_rows_about(self) -> int | None:
        """Return the number of rows; None if unknown."""
        return None

    def fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Copy the rows into a new connection, if DuckDB cannot read the rows itself. Raises DataError."""
        return


class Files(Reading):
    """Table in files that DuckDB reads.

    files:  sorted by path, at least one.
    base:   folder of the table: all files are below.
    """

    def __init__(self, name: str, files: Sequence[Path], base: Path) -> None:
        super().__init__(name)
        self._files, self._base = files, base

    @property
    def watched(self) -> Sequence[Path]:
        return self._files

    @property
    def names(self) -> list[str]:
        return [*self._of_files, *self._of_folders]

    @cached_property
    def _of_files(self) -> list[str]:
        """Columns that stand in the files. Raises DataError."""
        first, *others = self._files
        names = self._header(first)
        for path in others:
            if self._header(path) != names:
                raise unreadable(self._name, f"{path} has other columns than {first}, or in another order")
        return names

    @cached_property
    def _of_folders(self) -> list[str]:
        """Columns that folders named KEY=VALUE below the table's own folder give. Raises DataError."""
        first, *others = self._files
        keys = list(self._keys(first))
        for path in others:
            if list(self._keys(path)) != keys:
                raise unreadable(
                    self._name, f"the folders of {path} name other columns than those of {first}"
                )
        if keys:
            self._require_apart([*self._of_files, *keys], f"{first} and its folders have")
        return keys

    def _require_apart(self, names: Sequence[str], who: str) -> None:
        """Raise DataError for names that DuckDB takes for the same name."""
        first: dict[str, str] = {}
        for name in names:
            if (other := first.setdefault(name.casefold(), name)) is not name:
                raise unreadable(
                    self._name,
                    f"{who} the columns {other} and {name}, which DuckDB takes for one: rename one of them",
                )

    def _keys(self, path: Path) -> Mapping[str, str]:
        """Return the columns that the folders of a file give, each with its text in the folder's name."""
        below = path.parent.relative_to(self._base).parts
        return {unquote(key): key for key, equals, _ in (part.partition("=") for part in below) if equals}

    @property
    def sql(self) -> str:
        if not self._of_folders:
            return f"{self._call('hive_partitioning = false')} AS source"
        folders = f"substr({_FILE}, {len(str(self._base)) + 1})"
        values = ", ".join(
            f"nullif(url_decode(regexp_extract({folders}, {_text(_VALUE.format(key))}, 1)), {_text(_NO_VALUE)}) "
            f"AS {quoted(name)}"
            for name, key in self._keys(self._files[0]).items()
        )
        call = self._call(f"hive_partitioning = false, filename = {_text(_FILE_NAME)}")
        return f"(SELECT *, {values} FROM {call}) AS source"  # noqa: S608 (quoted)

    @abstractmethod
    def _header(self, path: Path) -> list[str]:
        """Return the names of the columns of a file. Raises DataError."""

    @abstractmethod
    def _call(self, options: str) -> str:
        """Return the call of DuckDB's function that reads the files. options: more arguments of the call."""


class ParquetFiles(Files):
    """Parquet files, which may differ in the types of columns."""

    def _header(self, path: Path) -> list[str]:
        names = Parquet(path).column_names()
        self._require_apart(names, f"{path} has")
        return names

    def _call(self, options: str) -> str:
        # Files may differ in types: pandas writes whole numbers with a missing cell as doubles. Without
        # `union_by_name` all files take the types of the first, and 1.5 becomes 2.
        return f"read_parquet({files_as_sql(self._files)}, {options}, union_by_name = true)"

    def column(self, name: str) -> str:
        return name

    def n_rows_about(self) -> int:
        return sum(int(pq.read_metadata(path).num_rows) for path in self._files)


class TextFiles(Files):
    """CSV files. All columns are text.

    Columns are named by number. DuckDB would take names that differ in case alone for one.
    """

    def _header(self, path: Path) -> list[str]:
        return Csv(path).column_names()

    @cached_property
    def _form(self) -> Dialect:
        """Form of the files: that of the first. Raises DataError."""
        form = SNIFFED.sniffed(self._files[0])
        if form.codec not in _ENCODINGS:
            raise unreadable(
                self._name, f"{self._files[0]} is {form.codec.upper()}; DuckDB reads UTF-8: convert it"
            )
        return form

    def _call(self, options: str) -> str:
        form = self._form
        columns = ", ".join(f"{_text(numbered(i))}: 'VARCHAR'" for i in range(len(self._of_files)))
        facts = {
            "delim": _text(form.separator),
            "quote": _text(form.quote),
            "escape": _text(form.quote),
            "encoding": _text(_ENCODINGS[form.codec]),
            "header": "true",
            "all_varchar": "true",
            "auto_detect": "false",
            "columns": "{" + columns + "}",
        }
        said = ", ".join(f"{key} = {value}" for key, value in facts.items())
        return f"read_csv({files_as_sql(self._files)}, {options}, {said})"

    def column(self, name: str) -> str:
        return numbered(self._of_files.index(name)) if name in self._of_files else name


def files_at(place: Path, name: str) -> tuple[Path, ...]:
    """Return the files of a path, a pattern or a folder, sorted. Raises DataError. name: the table, for errors."""
    if place.is_dir():
        found = [path for path in place.rglob("*") if _kind(path) and not _hidden(path, place)]
    elif _PATTERN & set(str(place)) and not place.exists():
        found = [Path(text) for text in glob(str(place), recursive=True)]
    else:
        found = [place]
    if not found:
        raise missing(f"{name}: no file fits {place}")
    if gone := [path for path in found if not path.is_file()]:
        wrong = f"{gone[0]} is not there" if len(gone) == 1 else f"{place} is no table"
        raise missing(f"{name}: {wrong}")
    return tuple(sorted(found))


_FORMS = {"parquet": ParquetFiles, "text": TextFiles}
"""Form of files by their kind."""


def reading_of(name: str, place: Path, files: Sequence[Path]) -> Reading:
    """Return the form of Parquet or CSV files. Raises DataError for files of other kinds.

    name:   of the table, for errors.
    place:  path, pattern or folder of the files.
    """
    kinds = {_kind(path) for path in files}
    if "" in kinds:
        strange = next(path for path in files if not _kind(path))
        raise unreadable(
            name, f"{strange}: DuckDB is asked for Parquet, CSV and SQLite files only", remedy=_OTHER_KIND
        )
    if len(kinds) > 1:
        raise unreadable(name, f"{place} holds Parquet and text files; name one kind, as *.parquet")
    return _FORMS[kinds.pop()](name, files, _base_of(place))


def _base_of(place: Path) -> Path:
    """Return the folder of a table: all files are below."""
    if place.is_dir():
        return place
    if place.exists():
        return place.parent
    return Path(*takewhile(lambda part: not _PATTERN & set(part), place.parent.parts))


def files_as_sql(files: Sequence[Path]) -> str:
    """Return files as a list of SQL. DuckDB takes each for a pattern, so signs of a pattern stand for themselves."""
    return "[" + ", ".join(_text(_SIGN.sub(r"[\g<0>]", str(file))) for file in files) + "]"


def numbered(number: int) -> str:
    """Return the name of a column by its number."""
    return f"jointcut {number}"


def _kind(path: Path) -> str:
    """Return "parquet", "text", or an empty text for other files."""
    if path.suffix == ".parquet":
        return "parquet"
    return "text" if path.name.endswith(_TEXTS) else ""


def _hidden(path: Path, place: Path) -> bool:
    """Return True for files that writers of folders leave: _SUCCESS, .crc, parts still being written."""
    return any(part.startswith((".", "_")) for part in path.relative_to(place).parts)


def _text(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
