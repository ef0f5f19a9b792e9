"""One holder's synthetic table, from the records to the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from anonymize.dp.noise import Noise
from anonymize.synthetic.single import synthesize_alone
from anonymize.table import CodedTable
from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.dp.alone import Made, made_in_folder
from jobs.options import Noted, Options
from jobs.stopwatch import Stopwatch
from jobs.synthetic.asked import requirement
from jobs.synthetic.files import release_files, write_release
from jobs.synthetic.result import SyntheticResult
from jobs.task import Task


def synthesize_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Make one holder's synthetic table in a new folder, as :func:`jobs.dp.alone.made_in_folder`."""
    return made_in_folder(task, source, out, options, watch, shown, _SYNTHETIC)


def _files(task: Task, table: CodedTable, noise: Noise, observer: Observer) -> Mapping[str, bytes]:
    outcome = synthesize_alone(table, requirement(task), noise, observer)
    return release_files(task, SyntheticResult(b"", outcome), {})


def _written(folder: Path, task: Task, files: Mapping[str, bytes], options: Options) -> bytes:
    return write_release(folder, task, files)


_SYNTHETIC = Made(_files, _written)
