"""Comparison of a report with job and release, for the verification of a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.data.counted import counted
from jobs.errors import PartyError, json_object, printable
from jobs.release.csv import REPORT
from jobs.release.report import BY_MAKER, SIGNATURES, as_text
from jobs.task import Task

_PLACES = re.compile(r"\[\d+\]")


@dataclass(frozen=True)
class Undetermined:
    """Value of a report that does not follow from the readers' knowledge.

    has_form:      returns True if a value has the form of reports.
    is_optional:   True if a report may lack the value.
    is_elsewhere:  True if another check compares the value. The value is then not listed as uncompared.
    """

    has_form: Callable[[Any], bool] = lambda _: True
    is_optional: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True)
class Compared:
    """Compared report.

    other:   the path of the first different, missing or added value, or None.
    untold:  the paths of the values without expectation, without places in lists.
    """

    other: str | None
    undetermined: tuple[str, ...]


def compare(following: Any, said: Any) -> Compared:
    """Compare a report, or a part, with the expected content: the same keys and JSON types at every depth.

    following:  a value as JSON. :class:`Undetermined` stands for each value without expectation.
    """
    undetermined: list[str] = []
    other = next(_differing(following, said, "", undetermined), None)
    return Compared(other, tuple(dict.fromkeys(_PLACES.sub("", path) for path in undetermined)))


def compare_readings(readings: Iterable[Mapping[str, Any]], report: Mapping[str, Any]) -> Compared:
    """Compare a report with each reading; return the first fitting comparison, else the last."""
    for following in readings:
        found = compare(following, report)
        if found.other is None:
            break
    return found


def _differing(following: Any, said: Any, path: str, undetermined: list[str]) -> Iterator[str]:
    """Yield the paths of differences in a report; add the paths of values without expectation."""
    if isinstance(following, Undetermined):
        if not following.is_elsewhere:
            undetermined.append(path)
        if not following.has_form(said):
            yield path
    elif isinstance(following, Mapping) and isinstance(said, dict):
        for key, value in following.items():
            below = f"{path}.{key}" if path else key
            if key in said:
                yield from _differing(value, said[key], below, undetermined)
            elif not (isinstance(value, Undetermined) and value.is_optional):
                yield below
        yield from (f"{path}.{key}" if path else key for key in said if key not in following)
    elif isinstance(following, list | tuple) and isinstance(said, list) and len(following) == len(said):
        for place, (value, own) in enumerate(zip(following, said, strict=True)):
            yield from _differing(value, own, f"{path}[{place}]", undetermined)
    elif isinstance(following, Mapping | list | tuple) or as_text(following) != as_text(said):
        yield path


def of_any_report(task: Task, files: Iterable[str]) -> dict[str, Any]:
    """Return the fields of every report of a job without expectation; files: the names of the tables.

    Digests, signatures and the form of the maker's fields are compared elsewhere for all models
    (:mod:`coordinator.verify`).
    """
    names = set(files)
    of_joint = {SIGNATURES: Undetermined(is_optional=True, is_elsewhere=True)} if task.job.roster else {}
    return {
        "files": Undetermined(
            lambda said: isinstance(said, dict) and said.keys() == names, is_optional=True, is_elsewhere=True
        ),
        **of_joint,
        **dict.fromkeys(BY_MAKER, Undetermined(is_optional=True)),
    }


def read_report(content: bytes) -> dict[str, Any]:
    """Read a report. Raises PartyError (verification-failed) unless a JSON object without repeated keys."""
    report = json_object(content)
    if report is None:
        raise PartyError(
            "verification-failed", f"{REPORT} is not a report: the file must hold a single JSON object"
        )
    return report


def require_this_job(task: Task, report: Mapping[str, Any], made: str) -> None:
    """Raise PartyError for a report of another job. made: the name of the report's companion."""
    if report.get("job_sha256") != task.digest.hex():
        raise PartyError(
            "verification-failed",
            "the report is about a different job (or a different version of the job)",
            remedy=f"verify against the job file of the {made}",
        )


def met_words(task: Task, path: Path, n: int, one: str, many: str) -> str:
    """Return the beginning of a verification's sentence: the number of requirements counted again."""
    meet = counted(n, f"{one} meets", f"{many} meet")
    return f"{path}: {meet} the requirement of {task.job.name}, counted again from the rows"


def report_beside(task: Task, out: Path) -> dict[str, Any] | None:
    """Return the report beside a table, or None without a report. Raises PartyError for another job's report."""
    path = out / REPORT
    if not out.is_dir() or not path.is_file():
        return None
    report = read_report(path.read_bytes())
    require_this_job(task, report, "table")
    return report


def require_same(compared: Compared, path: Path) -> tuple[str, ...]:
    """Raise PartyError unless a report agrees with job and table; return the uncompared fields."""
    if compared.other is not None:
        raise PartyError(
            "verification-failed", f"{path}: `{printable(compared.other)}` is not as job and table say"
        )
    return compared.undetermined
