"""Tables in a cluster that Spark reads: a table or view of its catalog, or Parquet files where it finds them.

Spark reads CSV files by rules of its own (quotes, blanks, encodings), so it is not asked to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from anonymize.errors import changed
from jobs.data.ledger_places import beside, of_the_user
from jobs.data.sql.engine import Session
from jobs.data.sql.pushed_down import PushedDown
from jobs.data.sql.spark import quoted, reading
from jobs.data.sql.spark_process import PROCESS, is_local, told

_FILE = ("file_path", "file_size", "file_modification_time")
"""What Spark says of the file that a row is from."""


@dataclass(frozen=True)
class Spark(PushedDown):
    """A table by its name or path.

    master:  the cluster: `spark://HOST:PORT`, `yarn`, `k8s://…`; or `local[N]`, N threads of this machine.
    table:   of the catalog that Spark's own configuration names, `database.name`. path: or a Parquet file or a folder
             of such files, absolute or an URI. One of the two.
    """

    master: str
    table: str | None = None
    path: str | None = None

    @property
    def identity(self) -> str:
        """A path here as any source has it, an URI as it is, all else with the cluster."""
        if self._local_path is not None:
            return str(self._local_path)
        if self.path is not None and ":" in self.path:
            return self.path.rstrip("/")
        cluster = "local" if is_local(self.master) else self.master
        return f"{cluster}?table={self.table}" if self.path is None else f"{cluster}?path={self.path}"

    @property
    def ledger(self) -> Path:
        """Beside a path here; else one file for all data sets, which it tells apart by their names."""
        return of_the_user() if self._local_path is None else beside(self._local_path)

    @property
    def _local_path(self) -> Path | None:
        here = self.path is not None and ":" not in self.path and is_local(self.master)
        return Path(str(self.path)).resolve() if here else None

    def settings(self) -> dict[str, Any]:
        given = {"master": self.master, "table": self.table, "path": self.path}
        return {"spark": {key: value for key, value in given.items() if value is not None}}

    def version(self) -> str:
        """Which files, their sizes and when they were written; where there are none, a digest of all rows."""
        return self._version(PROCESS.session(self.master))

    def column_names(self) -> list[str]:
        with told():
            return list(self._frame(PROCESS.session(self.master)).columns)

    def place(self, row: int) -> str:
        """Rows have no number in a cluster; the value finds it."""
        return "in a row"

    @contextmanager
    def session(self, names: Sequence[str]) -> Iterator[Session]:
        spark = PROCESS.session(self.master)
        before = self._version(spark)
        with told():
            frame = self._frame(spark)
        with reading(spark, frame) as session:
            yield session
        if self._version(spark) != before:
            raise changed()

    def _frame(self, spark: Any) -> Any:
        """The table as it stands now, not as it was listed once."""
        if self.path is not None:
            return spark.read.parquet(self.path)
        name = ".".join(map(quoted, str(self.table).split(".")))
        spark.sql(f"REFRESH TABLE {name}")
        return spark.table(name)

    def _version(self, spark: Any) -> str:
        with told():
            frame = self._frame(spark)
            files = _files(frame)
        if files is None:
            with reading(spark, frame) as session:
                files = session.version()
        return hashlib.sha256(files.encode()).hexdigest()


def _files(frame: Any) -> str | None:
    """The files that rows are from; None for a view, or a table that is not made of files."""
    try:
        found = frame.select(*(f"_metadata.{name}" for name in _FILE)).distinct()
    except import_module("pyspark.errors").AnalysisException:
        return None
    return "\n".join(sorted("\0".join(map(str, row)) for row in found.collect()))
