"""Tables that a cluster of Spark reads: Parquet and CSV files wherever Spark finds them, and tables of a catalog.

Spark reads and counts in its own SQL, this program codes: no code of ours runs in the cluster. Each cell is the text
of `CAST(... AS STRING)`, and an empty text for NULL. The rows come as Arrow batches, so many partitions at a time as
fit into the driver; the partitions that follow are not computed yet.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from anonymize.errors import DataError
from jobs.data.arrow import pa, pc
from jobs.data.cluster import Cluster, Unavailable, cluster
from jobs.data.database import missing_engine, unreadable
from jobs.data.dialect import separator_of
from jobs.data.engine import MOST_TEXTS, Engine, Numbered, kept_as_sql, keys_as_sql
from jobs.data.table_file import AS_UTF_8, missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.legacy.castComplexTypesToString.enabled": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Each header and each row is checked, whatever columns are asked for.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    # Files are cut into the same partitions in each pass, also after the loss of an executor.
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.files.maxPartitionBytes": str(32 << 20),
    "spark.sql.files.openCostInBytes": str(4 << 20),
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.arrow.compression.codec": "none",
}
"""Settings of the session, against other settings of the cluster."""
_WHOLE_BYTES = 32 << 20
"""Largest text file in one partition. Spark cannot cut a text file, because a value may hold ends of lines."""
_DRIVER_BYTES = 128 << 20
"""Bytes of batches that the driver fetches at a time, if a partition is no larger."""
_FORMS = {
    "parquet": (".parquet",),
    "csv": (".csv", ".csv.gz", ".csv.bz2", ".tsv", ".tsv.gz", ".tsv.bz2", ".txt", ".txt.gz"),
}
_CSV = {
    "header": "true",
    "inferSchema": "false",
    "enforceSchema": "false",  # each header is compared with the first
    "quote": '"',
    "escape": '"',
    "multiLine": "true",
    "unescapedQuoteHandling": "RAISE_ERROR",
    "mode": "FAILFAST",
    "encoding": "UTF-8",
}
_HEAD_LINES = 200
_LINES = "`jointcut lines`"
"""Lines of text files, under the names that `_unclosed` writes."""
_NO_TEXT = "\ufffd"
_VIEW = "`jointcut table`"
_PAIRS = pa.schema([pa.field("i", pa.int32()), pa.field("t", pa.string())])
_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART})*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PATTERN = re.compile(r"[*?\[\]{}\\]")
_ABSENT = frozenset({"PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"})
_SECRET = re.compile(r"(?i)((?:password|secret|token|key)\w*\s*[=:]\s*)[^\s;&,]+|(?<=//)[^/@\s]+(?=@)")
_RECORD = re.compile(r"(?i)(malformed csv record|malformed records are detected in record parsing): .*")
"""Message that quotes a row."""
_AROUND = re.compile(
    r"^(?:Job aborted.*?most recent failure: Lost task .*?\): )?(?:[\w$]+\.)+[\w$]+(?::| -) "
)
_MOST_CAUSES, _MOST_SAID = 8, 500
_SCAN = "FileSourceScanExec"


@dataclass(frozen=True)
class Spark(Engine):
    """Table that a cluster of Spark reads.

    Spark promises no order of rows. A plain scan of files has the same order in each pass: the files are listed once,
    and the settings fix the partitions. All other plans are sorted by all columns wherever rows are not counted.

    master:  the cluster: `local[2]`, or spark://HOST:PORT.
    table:   name in the catalog, as in SQL.
    path:    files, instead of ``table``: a file, a folder, or a pattern of Hadoop. Without a scheme: local files.
    """

    master: str = "local[*]"
    table: str | None = None
    path: str | None = None

    KIND: ClassVar[str] = "spark"

    def _asked(self) -> Mapping[str, Any]:
        return {"table": self.table} if self.path is None else {"path": self.path}

    def _limits(self) -> Mapping[str, Any]:
        return {"master": self.master}

    def place(self, row: int) -> str:
        """Return words without the number: the owner could not find a row by its place in Spark's order."""
        return "a row"

    def version(self) -> str:
        """Return a digest of name, size and time of writing of the files. A table without files has one version."""
        with self._readable():
            if self.path is None:
                self._catalogued()  # a refresh has no words for a table that is refused
                self._session.catalog.refreshTable(self._in_catalog)
                files = sorted(_escaped(unquote(name)) for name in self._catalogued().inputFiles())
                listed = self._listing(files) if files else []
            else:
                listed = self._listing([self._place])
        return hashlib.sha256(repr(listed).encode()).hexdigest()

    def _names(self) -> list[str]:
        return list(self._frame.columns)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Stream rows one by one, in the same order each time."""
        order = "" if self._is_in_order else f" ORDER BY {', '.join(map(_text, self._names()))}"
        query = f"SELECT {_texts(columns)} FROM {self._from}{order}"  # noqa: S608 (quoted)
        schema = pa.schema([pa.field(name, pa.string()) for name in columns])
        for batch in self._asked_for(query, schema):
            texts = [each.dictionary_encode() for each in batch.columns]
            for each in texts:
                self._require_text(each.dictionary)
            yield pa.RecordBatch.from_arrays(texts, list(columns))

    def _distinct(self, columns: Sequence[str]) -> Sequence[pa.Array] | None:
        cells = ", ".join(f"{i}, {_text(name)}" for i, name in enumerate(columns))
        pairs = f"SELECT stack({len(columns)}, {cells}) AS (i, t) FROM {self._from}"  # noqa: S608 (quoted)
        found: list[list[pa.Array]] = [[pa.array([], pa.string())] for _ in columns]
        for batch in self._asked_for(f"SELECT i, t FROM ({pairs}) GROUP BY i, t", _PAIRS):  # noqa: S608 (quoted)
            for i, texts in enumerate(found):
                texts.append(batch.column("t").filter(pc.equal(batch.column("i"), i)))
            if max(sum(map(len, texts)) for texts in found) > MOST_TEXTS:
                return None
        joined = [pa.concat_arrays(texts) for texts in found]
        for texts in joined:
            self._require_text(texts)
        return joined

    def _counted(self, columns: Sequence[Numbered]) -> Iterator[tuple[Sequence[pa.Array], pa.Array]]:
        sums = keys_as_sql(columns)
        keys = range(len(sums))
        named = ", ".join(f"{words} AS k{key}" for key, words in enumerate(sums))
        names = ", ".join(f"k{key}" for key in keys)
        query = f"SELECT {names}, count(*) AS n FROM (SELECT {self._joined(columns, named)}) GROUP BY {names}"  # noqa: S608 (quoted)
        schema = pa.schema([pa.field(name, pa.int64()) for name in (*(f"k{key}" for key in keys), "n")])
        for batch in self._asked_for(query, schema):
            *found, counts = batch.columns
            yield found, counts

    def _count_ids(self, columns: Sequence[Numbered], ids: Sequence[str]) -> int:
        joined = self._joined(columns, f"DISTINCT {_texts(ids)}")
        different = f"SELECT {joined} WHERE {kept_as_sql(columns)}"
        schema = pa.schema([pa.field("n", pa.int64())])
        query = f"SELECT count(*) AS n FROM ({different})"  # noqa: S608 (quoted)
        return sum(batch.column(0)[0].as_py() for batch in self._asked_for(query, schema))

    def _joined(self, columns: Sequence[Numbered], asked: str) -> str:
        """Return SQL behind SELECT: what is asked for of the table, joined to the parts of columns, m0 and so on.

        The numbers go to all executors, so that no row of the table moves.
        """
        joins = []
        for i, column in enumerate(columns):
            numbers = pa.table({"text": column.texts, "part": column.parts})
            self._session.createDataFrame(numbers).createOrReplaceTempView(f"`jointcut m{i}`")
            joins.append(f"LEFT JOIN `jointcut m{i}` AS m{i} ON m{i}.text = {_text(column.name)}")
        hint = ", ".join(f"m{i}" for i in range(len(columns)))
        return f"/*+ BROADCAST({hint}) */ {asked} FROM {self._from} {' '.join(joins)}"

    @property
    def _from(self) -> str:
        """Table as in a FROM clause."""
        return f"{_VIEW if self.path is not None else self._in_catalog} AS source"

    @property
    def _in_catalog(self) -> str:
        """Name of the table with every part in backticks. Raises DataError."""
        name = str(self.table)
        if not _TABLE.fullmatch(name):
            raise unreadable(
                self.name,
                f"table: {name!r} is no name of a table; write table or schema.table, and a name with other "
                "characters in backticks: '`My table`'",
            )
        return ".".join(part if part.startswith("`") else f"`{part}`" for part in re.findall(_PART, name))

    @cached_property
    def _frame(self) -> DataFrame:
        """Table of both passes: its files are listed once. Raises DataError."""
        _ = self._state  # a write after the listing is a change
        if self.path is None:
            return self._catalogued()
        frame = self._files_read()
        frame.createOrReplaceTempView(_VIEW)
        return frame

    def _catalogued(self) -> DataFrame:
        """Return the table of the catalog as the catalog has the table now.

        Raises DataError for a table in CSV files: the catalog's options let a quote stay open.
        """
        frame = self._session.table(self._in_catalog)
        leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
        for relation in (leaves.apply(i) for i in range(leaves.size())):
            if relation.getClass().getSimpleName() != "LogicalRelation":
                continue
            files = relation.relation()
            if (
                files.getClass().getSimpleName() == "HadoopFsRelation"
                and files.fileFormat().toString() == "CSV"
            ):
                raise unreadable(
                    self.name,
                    f"{self.table} stands in CSV files, whose quotes the catalog does not check: name the files "
                    "with `path`",
                )
        return frame

    def _files_read(self) -> DataFrame:
        form, names = self._form, [name for name, _, _ in self._listed]
        reader = self._session.read.format(form)
        if form == "csv":
            separator = self._separator(names[0])
            self._refuse_unclosed(separator)
            reader = reader.options(**_CSV, sep=separator)
        return self._in_parts(reader, names).load(self._place)

    def _in_parts(self, reader: DataFrameReader, names: Sequence[str]) -> DataFrameReader:
        """Return a reader for which folders KEY=VALUE are columns, and all other folders are looked through."""
        base = self._base
        if not any("=" in part for name in names for part in _below(name, base).split("/")[:-1]):
            return reader.option("recursiveFileLookup", "true")
        return reader if base == self._place else reader.option("basePath", base)

    def _separator(self, file: str) -> str:
        lines = self._session.read.text(_escaped(file)).limit(_HEAD_LINES).collect()
        return separator_of([f"{row.value}\n" for row in lines], '"')

    def _refuse_unclosed(self, separator: str) -> None:
        """Refuse a quote that never closes: Spark would take all that follows for a single value. Raises DataError.

        A line that begins within a quoted value, or outside, ends within a quoted value, or outside. So the last line
        for which the beginning makes no difference, and the number of later lines that change sides, decide.
        """
        reader = self._session.read.format("text").options(lineSep="\n", recursiveFileLookup="true")
        lines = reader.load(self._place).selectExpr(
            "value",
            "_metadata.file_path AS file",
            "struct(_metadata.file_block_start, monotonically_increasing_id()) AS place",
        )
        lines.where("contains(value, '\"')").createOrReplaceTempView(_LINES)
        sql = self._session.sql
        (has_return,) = sql(f"SELECT bool_or(contains(value, '\r\"')) FROM {_LINES}").first()  # noqa: S608 (quoted)
        if has_return is None:
            return  # no line has a quote
        # A carriage return alone ends lines of some files, and is a part of values in others.
        for before in (separator, separator + "\r") if has_return else (separator,):
            found = sql(_unclosed(before)).first()
            if found is not None:
                words = (
                    'has a quote (") without a closing quote; write a quote inside a quoted value twice ("")'
                )
                raise unreadable(self.name, f"{found.file} {words}")

    @property
    def _place(self) -> str:
        """Path or pattern for Spark."""
        path = str(self.path)
        if _SCHEME.match(path):
            return path
        return "file:" + (_escaped(path) if os.path.exists(path) else path)

    @property
    def _base(self) -> str:
        """Folder, or file, below which folders may be columns."""
        is_local = not _SCHEME.match(str(self.path)) and os.path.exists(str(self.path))
        return f"file:{self.path}" if is_local else _fixed(self._place)

    @cached_property
    def _form(self) -> str:
        """Format of the files. Raises DataError."""
        names = [name for name, _, _ in self._listed]
        kinds = {name: _kind(name) for name in names}
        if not names:
            raise self._missing(f"no file fits {self.path}")
        if "" in kinds.values():
            strange = next(name for name in names if not kinds[name])
            raise unreadable(self.name, f"{strange}: Spark is asked for Parquet and CSV files only")
        if len({*kinds.values()}) > 1:
            raise unreadable(
                self.name, f"{self.path} holds Parquet and text files; name one kind, as *.parquet"
            )
        return kinds[names[0]]

    @cached_property
    def _listed(self) -> list[tuple[str, int, int]]:
        """Files of the path: name, size and time of writing, in order."""
        return self._listing([self._place])

    def _listing(self, places: Sequence[str]) -> list[tuple[str, int, int]]:
        # Spark's source of binary files lists files, and reads a file only if its content is asked for.
        found = self._session.read.format("binaryFile").option("recursiveFileLookup", "true").load([*places])
        facts = found.selectExpr("path", "length", "unix_micros(modificationTime) AS time").collect()
        return sorted((row.path, row.length, row.time) for row in facts)

    @cached_property
    def _is_in_order(self) -> bool:
        """True if Spark has no choice in the order of rows, and parts of the table fit into the driver."""
        if (
            self.path is not None
            and self._form == "csv"
            and max(size for _, size, _ in self._listed) > _WHOLE_BYTES
        ):
            return False  # a sort gives partitions of a fraction of the file
        leaves = self._frame._jdf.queryExecution().executedPlan().collectLeaves()
        found = {leaves.apply(i).getClass().getSimpleName() for i in range(leaves.size())}
        # A plan with a shuffle is a single leaf of another kind.
        return found == {_SCAN}

    def _asked_for(self, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Stream the answer to a query."""
        _ = self._frame  # the view is there before a query
        yield from _streamed(self._session, query, schema)

    def _require_text(self, texts: pa.Array) -> None:
        """Raise DataError for text in another encoding: in text files Spark replaces what it cannot read."""
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise unreadable(
                self.name, f"{self.path or self.table} holds text that is no UTF-8; {AS_UTF_8}"
            ) from None
        if (
            self.path is not None
            and self._form == "csv"
            and pc.any(pc.match_substring(texts, _NO_TEXT)).as_py()
        ):
            raise unreadable(self.name, f"{self.path} holds text that is no UTF-8; convert the file")

    @cached_property
    def _cluster(self) -> Cluster:
        try:
            return cluster(self.master)
        except Unavailable as error:
            raise unreadable(self.name, str(error)) from None

    @cached_property
    def _session(self) -> SparkSession:
        return self._cluster.session(_SETTINGS)

    def _missing(self, private: str) -> DataError:
        return missing(f"{self.name}: {private}", named="`path` or `table`")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of Spark into DataError, with the message for the owner, without Java's calls and secrets."""
        try:
            import_module("pyspark")
        except ImportError as error:
            raise missing_engine("pyspark", "spark") from error
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            yield
        except PySparkException as error:
            if error.getCondition() in _ABSENT:
                raise self._missing(f"{self.path or self.table} is not there") from None
            raise unreadable(self.name, _said(error)) from None
        except (Py4JError, OSError, EOFError, pa.ArrowException) as error:
            raise unreadable(self.name, _said(error)) from None


def located(path: str, home: Path) -> str:
    """Return a path for Spark: absolute, in a folder, if the path has no scheme."""
    return path if _SCHEME.match(path) else os.path.abspath(home / path)


def _streamed(session: SparkSession, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Run a query; fetch as many partitions at a time as the cluster has cores, within the driver's bytes.

    The public `toArrow` has the batches of all partitions in the driver at once, and `toLocalIterator` makes a Python
    object of each row. Here `toArrowBatchRdd`, which both of Spark's own clients use, is asked for some partitions.
    """
    from pyspark.serializers import NoOpSerializer
    from pyspark.util import _load_from_socket

    context = session.sparkContext
    parts = session.sql(query)._jdf.toArrowBatchRdd().toJavaRDD()
    first, at_once, largest = 0, 1, 1
    while first < (n_parts := parts.getNumPartitions()):
        some = list(range(first, min(first + at_once, n_parts)))
        n_bytes = 0
        served = context._jvm.PythonRDD.runJob(context._jsc.sc(), parts, some)
        with _load_from_socket(served, NoOpSerializer()) as messages:
            for message in messages:
                n_bytes += len(message)
                yield pa.ipc.read_record_batch(pa.py_buffer(message), schema)
        largest = max(largest, n_bytes // len(some))
        first += len(some)
        at_once = max(1, min(context.defaultParallelism, _DRIVER_BYTES // largest))


def _unclosed(before: str) -> str:
    """Return SQL for the files that end within a quoted value. before: signs after which a quote begins a value."""
    signs = "".join(f"\\x{ord(sign):02x}" for sign in before)
    whole = f'r\'(?:\\G|[{signs}])"[^"]*+"\''
    within = [
        # A doubled quote is the end of a value, and begins the value again.
        f"regexp_replace({text}, {whole}, '{before[0]}') RLIKE r'(?:^|[{signs}])\"'"
        for text in ("value", "concat('\"', value)")
    ]
    return f"""
        WITH lines AS (SELECT file, place, {within[0]} AS outer, {within[1]} AS inner FROM {_LINES}),
        fixed AS (SELECT file, max(struct(place, outer)) AS last FROM lines WHERE outer = inner GROUP BY file)
        SELECT file FROM lines LEFT JOIN fixed USING (file) GROUP BY file
        HAVING (count_if(outer AND NOT inner AND (last IS NULL OR place > last.place)) % 2 = 1)
            <> coalesce(bool_or(last.outer), false)
    """  # noqa: S608 (quoted)


def _said(error: Exception) -> str:
    """Return the words of an error and of its first cause: one line, without secrets."""
    said = [_AROUND.sub("", each.strip().splitlines()[0]) for each in _messages(error) if each.strip()]
    said = [_RECORD.sub(r"\1: more or fewer values than the header has names", each) for each in said]
    words = ": ".join(dict.fromkeys([*said[:1], *said[-1:]])) or type(error).__name__
    return _SECRET.sub(lambda found: f"{found[1] or ''}***", words)[:_MOST_SAID]


def _messages(error: Exception) -> list[str]:
    """Return the messages of an error and of its causes, as far as Java still answers."""
    from py4j.protocol import Py4JError, Py4JJavaError

    if not isinstance(error, Py4JJavaError):
        return [str(error)]
    found: list[str] = []
    cause = error.java_exception
    try:
        while cause is not None and len(found) < _MOST_CAUSES:
            found.append(str(cause.getMessage() or cause.getClass().getSimpleName()))
            cause = cause.getCause()
    except (Py4JError, OSError):
        found.append("Spark ended")
    return found


def _kind(name: str) -> str:
    """Return the format of a file by its name; an empty text for another file."""
    return next((form for form, ends in _FORMS.items() if name.endswith(ends)), "")


def _fixed(place: str) -> str:
    """Return the folder before the first sign of a pattern."""
    found = _PATTERN.search(place)
    return place if found is None else place[: found.start()].rpartition("/")[0]


def _below(name: str, base: str) -> str:
    """Return the part of a file's name behind a folder."""
    return name.partition(base.partition(":")[2].lstrip("/"))[2]


def _escaped(path: str) -> str:
    """Return a path in which no sign is a sign of a pattern."""
    return _PATTERN.sub(lambda found: f"\\{found[0]}", path)


def _alias(number: int) -> str:
    """Return a name that no column of a table has: an alias with a column's name would be sorted by, instead."""
    return f"`jointcut {number}`"


def _quoted(name: str) -> str:
    """Return a name as an identifier of Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def _text(name: str) -> str:
    """Return SQL for a column as text, with an empty text for NULL."""
    return f"coalesce(CAST(source.{_quoted(name)} AS STRING), '')"


def _texts(columns: Sequence[str]) -> str:
    """Return SQL for columns as text, named by number: a table may have names that differ in case alone."""
    return ", ".join(f"{_text(name)} AS {_alias(i)}" for i, name in enumerate(columns))
