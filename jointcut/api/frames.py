"""Tables given in Python: paths, and tables in memory, which runs read from a file that lives as long as the run."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from anonymize.errors import AnonymizeError, DataError
from coordinator.arguments import table_at, table_of_job
from jobs.data.arrow import pa, pc
from jobs.data.sources import Feather, FileSource, Source
from jobs.data.wording import AS_WRITTEN, Wording
from jobs.errors import BudgetError, ConfigError, PartyError, problem_of
from jointcut.api.errors import Error, path_of
from jointcut.api.job import Job
from jointcut.api.wording import TABLE_FILE, in_memory

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """Table in memory that Arrow can read: of pandas, polars, DuckDB, or Arrow itself."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class Interchange(Protocol):
    """DataFrame of pandas, as the stubs of pandas show the class."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


Uses: TypeAlias = Callable[[str], bool]
Data: TypeAlias = str | Path | ArrowStream | Interchange
"""Table of a run: a path, or a table in memory."""
_BATCH_ROWS = 1 << 16
_LEDGER = ".privacy.sqlite"
_NO_TABLE = "give a path, a DataFrame of pandas or polars, or an Arrow table"


@dataclass(frozen=True)
class Frame(Feather):
    """Table in memory, in a file for both passes.

    kept:  the privacy ledger that the caller names for the table, if any.
    """

    kept: Path | None = None

    @property
    def identity(self) -> str:
        """Name of the data set: the table beside the ledger if there is one, else the same name for all tables.

        So several tables of one ledger share a budget.
        """
        ledger = None if self.kept is None else self.kept.resolve()
        if ledger is not None and ledger.name.endswith(_LEDGER):
            table = ledger.with_name(ledger.name.removesuffix(_LEDGER))
            if table.is_file():
                return str(table)
        return "a table given in Python"

    @property
    def ledger(self) -> Path:
        """Place of the ledger; without a named ledger no file, as a table in memory has no place."""
        return self.path.with_name("no-ledger") if self.kept is None else self.kept

    def settings(self) -> dict[str, Any]:
        return {"feather": {"path": str(self.path), **self.wording.settings()}}


def require_ledger(job: Job, source: Source) -> None:
    """Refuse a run with differential privacy that no ledger would count. Raises BudgetError."""
    if job.settings.model.dp is not None:
        require_place(source, "and every run of a DP job is charged")


def require_place(source: Source, consequence: str) -> None:
    """Refuse a table without a place for a ledger. Raises BudgetError."""
    if isinstance(source, Frame) and source.kept is None:
        raise BudgetError(
            "budget-ledger",
            f"a table given in Python has no place for a privacy ledger, {consequence}",
            remedy="name the ledger of the table, the same in each run: ledger='patients.privacy.sqlite'",
        )


@contextmanager
def source_of_data(data: Data | None, job: Job, ledger: Path | None = None) -> Iterator[Source]:
    """Yield the table of a run; without data the job's own table. Raises ConfigError, DataError or Error."""
    with _told_of(_in_memory({None: data})), _source(data, job, ledger) as source:
        yield source


@contextmanager
def _source(data: Data | None, job: Job, ledger: Path | None = None) -> Iterator[Source]:
    like = job.settings.table
    if data is None:
        if like is None:
            raise ConfigError("usage", "a joint job names no table", remedy=_NO_TABLE)
        if not job.names_table:
            raise ConfigError(
                "usage",
                "no table is given, and the job names none",
                remedy=f"{_NO_TABLE}; or name the file of the table in the job: data='visits.csv'",
            )
        yield table_of_job(str(job), job.folder, like)
    elif isinstance(data, str | Path):
        yield table_at(path_of(data), like=like)
    else:
        wording = AS_WRITTEN if like is None else like.wording
        columns = job.settings.columns
        with frame_of(data, wording, ledger, lambda name: wording.name(name) in columns) as frame:
            yield frame


def _in_memory(tables: Mapping[Any, object]) -> dict[str | None, object]:
    """Return the tables that are no files."""
    return {
        name: data for name, data in tables.items() if data is not None and not isinstance(data, str | Path)
    }


@contextmanager
def _told_of(tables: Mapping[str | None, object]) -> Iterator[None]:
    """Word errors about a table in memory for its owner: rows of the table instead of lines of a file.

    tables:  by party; of a single holder under None. Errors of a run in this process name no party.
    """
    try:
        yield
    except (PartyError, AnonymizeError) as error:
        found = problem_of(error)
        is_of_file = found.named is not None and found.named not in tables
        if not tables or is_of_file or not found.error_id.startswith("data-"):
            raise
        label = partial(_row_words, tables.get(found.named))
        advice = found.advice(to_owner=found.party is None and not found.hops)
        message, remedy, private = (in_memory(text, label) for text in (found.message, advice, found.private))
        raise Error(replace(found, message=message, remedy=remedy, private=private)) from None


def _row_words(table: object, row: int) -> str:
    """Return the words for a row, by its position from 0, and by its label in a DataFrame of pandas."""
    place = f"row {row + 1:,} (position {row})"
    if not _is_of_pandas(table):
        return place
    labels = cast("pd.DataFrame", table).index[row : row + 1].tolist()  # numbers of Python, not of NumPy
    return f"row with the label {labels[0]!r} (position {row})" if labels else place


@contextmanager
def sources_of_data(tables: Mapping[str, Data], job: Job) -> Iterator[dict[str, Source]]:
    """Yield a table for each party of a joint job. Raises ConfigError or DataError."""
    roster = job.settings.roster
    if not isinstance(tables, Mapping):
        raise ConfigError(
            "usage",
            f"tables is a {type(tables).__name__}",
            remedy='write a dict with a table for each party: {"north": table, ...}',
        )
    if not roster:
        raise ConfigError("usage", "the job has a single holder", remedy="call jointcut.anonymize")
    if unknown := [name for name in tables if name not in roster]:
        raise ConfigError(
            "usage", f"the job has no party {unknown[0]}", remedy=f"the parties are {', '.join(roster)}"
        )
    if missing := [name for name in roster if name not in tables]:
        raise ConfigError("usage", f"no table for {', '.join(missing)}", remedy="give a table for each party")
    with ExitStack() as stack:
        stack.enter_context(_told_of(_in_memory(tables)))
        yield {name: stack.enter_context(_source(tables[name], job)) for name in roster}


@contextmanager
def file_source(data: Data) -> Iterator[FileSource]:
    """Yield a table without a job. Raises ConfigError or DataError."""
    if isinstance(data, str | Path):
        yield table_at(path_of(data))
    else:
        with _told_of({None: data}), frame_of(data, AS_WRITTEN, None) as frame:
            yield frame


@contextmanager
def frame_of(
    data: object, wording: Wording, ledger: Path | None, uses: Uses = lambda name: True
) -> Iterator[Frame]:
    """Yield a table in memory as a source; its file is removed afterwards. Raises ConfigError or DataError."""
    table = arrow_of(data, uses)
    if any(_is_number(column.type) for column in table.columns):
        wording = replace(wording, decimal=None)  # numbers have no sign before a fraction, texts have
    folder = Path(tempfile.mkdtemp(prefix="jointcut-"))  # mode 0700
    try:
        path = folder / TABLE_FILE
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_BATCH_ROWS)
        yield Frame(path, wording, ledger)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def arrow_of(data: Any, uses: Uses = lambda name: True) -> pa.Table:
    """Return a table in memory as an Arrow table of scalar columns. Raises ConfigError or DataError.

    uses:  returns True for a column that is read. Other columns keep their names alone, for advice.
    """
    if _is_of_pandas(data):
        names, columns = _of_pandas(data, uses)
    elif _is_series(data):
        raise ConfigError(
            "usage",
            f"a {type(data).__name__} is a single column, not a table",
            remedy="make a table of the column: series.to_frame(), or give the whole table",
        )
    elif hasattr(data, "__arrow_c_stream__"):
        table = _streamed(data)
        names, columns = table.column_names, table.columns
    else:
        raise ConfigError("usage", f"no table can be read from a {type(data).__name__}", remedy=_NO_TABLE)
    _check_names(names)
    found = [
        _plain(name, column) if uses(name) else pa.nulls(len(column), pa.string())
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.table(found, names=list(names))


def _streamed(data: ArrowStream) -> pa.Table:
    try:
        return pa.table(data)
    except pa.ArrowException:
        raise _unreadable(
            "the table has a column of a type that Arrow does not know",
            "make texts or numbers of the values, or leave the column out",
        ) from None


def _is_of_pandas(data: object) -> bool:
    """Return True for a DataFrame of pandas. If nobody imported pandas, nothing is."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _is_series(data: object) -> bool:
    """Return True for a single column of pandas or polars."""
    found = [sys.modules.get(name) for name in ("pandas", "polars")]
    return any(library is not None and isinstance(data, library.Series) for library in found)


def _check_names(names: Sequence[object]) -> None:
    """Refuse names of columns that no job can name."""
    for name in names:
        if not isinstance(name, str):
            raise _unreadable(
                f"the name of a column is of type {type(name).__name__}, not a text",
                "name the columns by texts: df.columns = df.columns.map(str)",
            )
    if len(set(names)) < len(names):
        twice = next(str(name) for name in names if names.count(name) > 1)
        raise _unreadable(f"two columns have the name {twice}", "rename one of the columns", column=twice)


def _of_pandas(frame: pd.DataFrame, uses: Uses) -> tuple[list[Any], list[pa.Array]]:
    """Return names and columns. The index is left out, as in a CSV without index."""
    if frame.columns.nlevels > 1:
        raise _unreadable(
            "the columns of the DataFrame have names of several levels",
            "name each column by one text: df.columns = ['_'.join(map(str, name)) for name in df.columns]",
        )
    if frame.index.nlevels > 1:
        raise _unreadable(
            "the DataFrame has an index of several levels",
            "make columns of the levels: df.reset_index()",
        )
    names = list(frame.columns)
    _check_names(names)
    empty = pa.nulls(len(frame))
    return names, [_of_series(name, frame[name]) if uses(name) else empty for name in names]


def _of_series(name: str, column: pd.Series[Any]) -> pa.Array:
    """Return a column of pandas. Arrow may not know pandas: :mod:`jobs.data.arrow` hides pandas in runs."""
    values = column.array
    try:
        if column.dtype.name == "category":
            codes = pa.array(column.cat.codes.to_numpy(), mask=column.isna().to_numpy())
            texts = _of_series(name, column.cat.categories.to_series())
            return pa.DictionaryArray.from_arrays(codes, texts)
        if hasattr(values, "__arrow_array__"):
            found = values.__arrow_array__()
            return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return pa.array(column.to_numpy(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise _unreadable(
            f"column {name} has values of no type, or of several types, that a table can have",
            f"make texts of the values: df[{name!r}] = df[{name!r}].astype('string')",
            column=name,
        ) from None


def _plain(name: str, column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in a type that the passes read. Raises DataError for other types."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunk, or of too many bytes for one
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(column.indices, _plain(name, column.dictionary))
    if types.is_timestamp(kind):
        return _stamps(name, column)
    if types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return column.cast(pa.string())
    if types.is_floating(kind):
        return pa.array(column.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN becomes null
    if _is_number(kind) or any(
        is_a(kind) for is_a in (types.is_string, types.is_boolean, types.is_date, types.is_time)
    ):
        return column
    raise _unreadable(
        f"column {name} has values of type {kind}, which no table can have",
        "make texts or numbers of the values, or leave the column out",
        column=name,
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _stamps(name: str, column: pa.Array) -> pa.Array:
    """Return moments as days if all are at midnight, else with seconds, as a CSV has them."""
    if column.type.tz is not None:
        raise _unreadable(
            f"column {name} has moments with a time zone",
            f"make local times: df[{name!r}] = df[{name!r}].dt.tz_localize(None)",
            column=name,
        )
    # A cast rounds moments before 1970 up, and so the last second of a day to the next day.
    seconds = pc.floor_temporal(column, unit="second").cast(pa.timestamp("s"), safe=False)
    days = seconds.cast(pa.date32(), safe=False)
    is_day = pc.all(pc.equal(days.cast(pa.timestamp("s")), seconds)).as_py()
    return days if is_day is not False else seconds


def _unreadable(message: str, remedy: str, column: str | None = None) -> DataError:
    return DataError("data-unreadable", message, remedy=remedy, column=column)
