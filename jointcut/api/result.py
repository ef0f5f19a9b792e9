"""Release of a run: its table, its report and its page."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.data.arrow import pa, pc
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.errors import ConfigError
from jobs.page.page import PAGE
from jobs.release.csv import PARTS_OF_TABLE, REPORT, TABLE
from jobs.release.folder import OWN, OWN_PAGE, refuse_existing
from jobs.release.stores import store_of
from jobs.release.sums import SUMS, release_digest
from jobs.task import Task
from jointcut.api.errors import path_of, told

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Result:
    """Release in a folder. `repr` and the page in a notebook show what anybody with the release may see."""

    def __init__(self, task: Task, folder: Path, notes: tuple[str, ...]) -> None:
        self._task, self._folder, self._notes = task, folder.absolute(), notes

    @property
    def folder(self) -> Path:
        """Folder of the release. Without `out` the folder is temporary: it lives as long as this object."""
        return self._folder

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the owner of the table alone, such as rows that were left out; no part of the release."""
        return self._notes

    @cached_property
    def report(self) -> dict[str, Any]:
        """Report of the release (docs/report.md)."""
        found: dict[str, Any] = json.loads(self._read(REPORT))
        return found

    @property
    def page(self) -> str:
        """Page of the release for people, as HTML text."""
        return self._read(PAGE).decode("utf-8")

    @property
    def owner_page(self) -> str | None:
        """Page with figures of raw rows for the owner of the table alone, as HTML text; None where no page is."""
        page = self._folder / OWN_PAGE
        return page.read_text(encoding="utf-8") if page.is_file() else None

    @property
    def digest(self) -> str:
        """Digest of the release, hexadecimal; `verify` compares a folder with the digest."""
        return release_digest(self._read(SUMS)).hex()

    @told()
    def _read(self, name: str) -> bytes:
        """Return a file of the release. Raises Error if the folder is gone."""
        self._require_folder()
        return (self._folder / name).read_bytes()

    def _require_folder(self) -> None:
        if not self._folder.is_dir():
            raise ConfigError(
                "file-missing",
                "the folder of the release is gone",
                cause=str(self._folder),
                remedy="run the job again; `result.save(FOLDER)` keeps a release elsewhere",
            )

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the release; the first is the main table."""
        made = [name for name in self._task.model.made if (self._folder / name).exists()]
        return tuple(sorted(made, key=lambda name: name not in (TABLE, PARTS_OF_TABLE)))

    @property
    def table(self) -> pd.DataFrame:
        """Main table, as :meth:`to_pandas`."""
        return self.to_pandas()

    def to_pandas(self, name: str | None = None) -> pd.DataFrame:
        """Return a table of the release. Labels are texts; counts, and numbers of synthetic rows, are numbers."""
        import pandas as pd

        table = self.to_arrow(name)
        return pd.DataFrame({each: _pandas_column(table.column(each)) for each in table.column_names})

    def to_polars(self, name: str | None = None) -> pl.DataFrame:
        """Return a table of the release for polars. Raises Error without `jointcut[polars]`."""
        with told():
            try:
                import polars as pl
            except ModuleNotFoundError:
                raise ConfigError(
                    "extra-missing", "polars is not installed", remedy="pip install 'jointcut[polars]'"
                ) from None
        return pl.DataFrame(self.to_arrow(name))

    @told()
    def to_arrow(self, name: str | None = None) -> pa.Table:
        """Return a table of the release for Arrow. name: one of `tables`; default the first. Raises Error."""
        self._require_folder()
        name = self.tables[0] if name is None else name
        if name not in self.tables:
            raise ConfigError(
                "usage", f"the release has no table {name}", remedy=f"name one of {', '.join(self.tables)}"
            )
        table = store_of(name).in_arrow(self._folder / name)
        typed = [self._typed(each, name, table.column(each)) for each in table.column_names]
        return pa.table(typed, names=table.column_names)

    def _typed(self, column: str, name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column with numbers instead of texts, if the column has numbers by the job."""
        if name == MARGINALS:
            return _numbers(values) if column in _NUMBERS_OF_MARGINALS else values
        known = self._task.job.columns.get(column)
        is_drawn = name == SYNTHETIC_TABLE and known is not None and known.numeric is not None
        return _numbers(values) if known is None or is_drawn else values

    @told()
    def save(self, folder: str | Path) -> Path:
        """Copy the release into a new folder, without the files for owners alone; return the folder.

        Raises Error if the folder exists.
        """
        target = path_of(folder)
        self._require_folder()
        refuse_existing(target)
        shutil.copytree(self._folder, target, ignore=shutil.ignore_patterns(OWN, OWN_PAGE))
        return target

    def __repr__(self) -> str:
        return (
            f"Result(job={self._task.job.name!r}, tables={list(self.tables)}, folder={str(self._folder)!r})"
        )

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, for a notebook."""
        return (
            f'<iframe srcdoc="{escape(self.page)}" title="release {escape(self._task.job.name)}" sandbox="" '
            'width="100%" height="600" style="border: 0"></iframe>'
        )


_NUMBERS_OF_MARGINALS = ("table", "count", "scale")
"""Columns of noisy marginals with numbers; a label such as 0101 is a text, whatever the job names its columns."""


class Place:
    """Place of a release: the folder that the caller names, or a temporary folder of mode 0700."""

    def __init__(self, out: str | Path | None) -> None:
        self._hidden = None if out is not None else Path(tempfile.mkdtemp(prefix="jointcut-"))
        self.folder = path_of(out) if out is not None else Path(str(self._hidden)) / "release"

    def bind(self, result: Result) -> Result:
        """Let a temporary folder live as long as the result."""
        if self._hidden is not None:
            weakref.finalize(result, shutil.rmtree, self._hidden, ignore_errors=True)
        return result

    def __enter__(self) -> Place:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._hidden is not None:
            shutil.rmtree(self._hidden, ignore_errors=True)


def _numbers(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts as whole numbers, else as numbers, else unchanged. An empty text is a missing number."""
    given = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
    for kind in (pa.int64(), pa.float64()):
        try:
            return given.cast(kind)
        except pa.ArrowInvalid:
            continue
    return values


def _pandas_column(values: pa.ChunkedArray) -> Any:
    """Return a column for pandas. Arrow's own way needs pandas to be known to Arrow (:mod:`jobs.data.arrow`)."""
    if pa.types.is_string(values.type):
        return values.to_pylist()
    return values.to_numpy()
