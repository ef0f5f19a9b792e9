"""A release as a function of its result: the files that whoever makes it writes, and that every party expects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.options import Options
from jobs.release.csv import REPORT
from jobs.release.folder import write_files
from jobs.release.report import SIGNATURES, finished_now, following, versions
from jobs.release.sums import write_sums
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Rendered, Task


def files_of(rendered: Rendered, made: Mapping[str, Any]) -> dict[str, bytes]:
    """Return tables and report of a release, by file name. made: what the maker alone can say, beside time and
    versions.
    """
    report = {**finished_now(), **following(rendered), "versions": versions(), **made}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    return {**rendered.tables, REPORT: text.encode()}


def write_release(folder: Path, files: Mapping[str, bytes], beside: Mapping[str, bytes]) -> bytes:
    """Write the files of a release and their digests; return the digest of the release."""
    write_files(folder, {**files, **beside})
    return write_sums(folder, (*files, *beside))


def write_joint_release(
    task: Task, folder: Path, collected: Collected, options: Options, watch: Stopwatch
) -> bytes:
    """Make, verify and write the release of a joint run; return the digest of the release."""
    with watch.phase("release"):
        rendered = task.model.made_of(task, collected, options)
    seconds = {"seconds": dict(watch.seconds)} if task.model.tells_seconds else {}
    made = {"cost": {**seconds, "parties": dict(collected.parties)}, SIGNATURES: collected.signatures}
    return write_release(folder, files_of(rendered, made), rendered.beside)
