"""Release as a function of its result: the files that the maker writes and every party expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.options import Options
from jobs.page.page import page_of, place_page, write_page
from jobs.page.parts import Section
from jobs.release.checking import read_report
from jobs.release.csv import REPORT
from jobs.release.folder import write_files
from jobs.release.report import SIGNATURES, finished_now, following, versions
from jobs.release.sums import fields_of_file, place_sums, write_sums
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Rendered, Task


def files_of(rendered: Rendered, made: Mapping[str, Any]) -> dict[str, bytes]:
    """Return tables and report of a release, by file name. made: the maker's statements, beside time and versions."""
    return {**rendered.tables, REPORT: _report(following(rendered), made)}


def _report(following: Mapping[str, Any], made: Mapping[str, Any]) -> bytes:
    """Return the content of a report. made: as of :func:`files_of`."""
    report = {**finished_now(), **following, "versions": versions(), **made}
    return (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode()


def write_report(
    task: Task,
    folder: Path,
    tables: Mapping[str, Mapping[str, Any]],
    report: Mapping[str, Any],
    seconds: Mapping[str, float],
    sections: Callable[[Mapping[str, Any]], Iterable[Section]],
) -> bytes:
    """Write the report of a single holder's tables, which are in the folder, the page and the digests; return the
    release's digest.

    tables: digest and size of each table, by name.
    seconds: of each phase of the run.
    sections: of the page, from the report.
    """
    cost = {"cost": {"seconds": dict(seconds), "parties": {}}}
    content = _report({**report, "files": tables}, cost)
    (folder / REPORT).write_bytes(content)
    told = read_report(content)
    digests = {name: fields["sha256"] for name, fields in tables.items()}
    release = place_sums(folder, {**digests, REPORT: fields_of_file(folder / REPORT)["sha256"]})
    place_page(page_of(task, told, tuple(sections(told)), release), folder)
    return release


def write_release(
    task: Task, folder: Path, files: Mapping[str, bytes], beside: Mapping[str, bytes], seen: Any = None
) -> bytes:
    """Write the files of a release with page and digests; return the digest of the release.

    seen:  as in :class:`Rendered`.
    """
    write_files(folder, {**files, **beside})
    release = write_sums(folder, (*files, *beside))
    write_page(task, folder, seen)
    return release


@dataclass(frozen=True)
class Written:
    """Release in its folder.

    digest:  of the release.
    seen:    as in :class:`Rendered`.
    """

    digest: bytes
    seen: Any = field(repr=False)


def write_joint_release(
    task: Task, folder: Path, collected: Collected, options: Options, watch: Stopwatch
) -> Written:
    """Make, verify and write the release of a joint run."""
    with watch.phase("release"):
        rendered = task.model.made_of(task, collected, options)
    seconds = {"seconds": dict(watch.seconds)} if task.model.tells_seconds else {}
    made = {"cost": {**seconds, "parties": dict(collected.parties)}, SIGNATURES: collected.signatures}
    digest = write_release(task, folder, files_of(rendered, made), rendered.beside, rendered.seen)
    return Written(digest, rendered.seen)
