"""Single holder's synthetic table, from the records to the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from anonymize.dp.noise import Noise
from anonymize.synthetic.single import synthesize_single
from anonymize.table import CodedTable
from anonymize.tds import Observer
from jobs.data.sources import Source
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.dp.single import Made, made_in_folder
from jobs.options import Noted, Options
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.stopwatch import Stopwatch
from jobs.synthetic.files import render
from jobs.synthetic.requirement import requirement
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.verify import require_verified
from jobs.task import Rendered, Task


def synthesize_to_folder(
    task: Task, source: Source, out: Path, options: Options, watch: Stopwatch, shown: Observer
) -> Noted:
    """Make a single holder's synthetic table in a new folder, as :func:`jobs.dp.single.made_in_folder`."""
    return made_in_folder(task, source, out, options, watch, shown, _SYNTHETIC)


def _rendered(task: Task, table: CodedTable, noise: Noise, observer: Observer) -> Rendered:
    return render(task, SyntheticResult(b"", synthesize_single(table, requirement(task), noise, observer)))


def _beside(task: Task, files: Mapping[str, bytes], options: Options) -> dict[str, bytes]:
    require_verified(task, files[MARGINALS], files[SYNTHETIC_TABLE], read_report(files[REPORT]))
    return {}


_SYNTHETIC = Made(_rendered, _beside)
