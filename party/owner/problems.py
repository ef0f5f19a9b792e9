"""Owner's private details of a failed job: a file for each job, readable by the owner alone.

Logs and shared errors hold no data value. An explanation with a value, a row number or a count from the data stands
here, and is shown by `party problems`; on a terminal also at once.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.errors import Problem, json_object, printable
from jobs.release.folder import as_json, place_for_owner

log = logging.getLogger("party")

FOLDER = "problems"
MOST = 100
"""Largest number of kept files; the oldest go first."""
_OF_THE_SITE = {"config-changed", "file-missing", "identity-mismatch", "peer-unreachable", "tls-failed"}
"""Errors with a private part about the site's files and addresses, never about data."""


@dataclass(frozen=True)
class FailedJob:
    """Failed job, as far as known. run: hexadecimal."""

    job: str = "no-job"
    job_sha256: str = ""
    run: str = ""
    coordinator: str = ""


class ProblemBook:
    """Problems of a party, in a folder of its state."""

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / FOLDER

    def keep(self, problem: Problem, failed: FailedJob, place: str = "") -> Path:
        """Write down a problem with its private part; return the file. Raises OSError.

        place:  the place in our code, for bugs.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        now = datetime.now(UTC)
        fields = {
            "time": now.isoformat(timespec="seconds"),
            **failed.__dict__,
            **problem.shared(),
            "remedy": problem.advice(to_owner=True),
            "cause": problem.cause,
            "private": problem.private,
            "place": place,
        }
        name = f"{failed.job}-{failed.run[:12] or now.strftime('%Y%m%dT%H%M%S%f')}.json"
        path = place_for_owner(
            self._folder / name, as_json({key: value for key, value in fields.items() if value})
        )
        # The new file stays, whatever the clock said when the others were written.
        for old in [file for file in self._files() if file != path][: 1 - MOST]:
            old.unlink(missing_ok=True)
        return path

    def _files(self) -> list[Path]:
        """Return the files, oldest first."""
        return sorted(self._folder.glob("*.json"), key=lambda path: (path.stat().st_mtime_ns, path.name))

    def entries(self, last: int) -> list[tuple[Path, dict[str, Any]]]:
        """Return the last problems, oldest first, with their files. Raises OSError."""
        found = [(path, json_object(path.read_bytes())) for path in self._files()[-last:]]
        return [(path, fields) for path, fields in found if fields is not None]


def tell_owner(lines: Sequence[str]) -> None:
    """Show the owner's own numbers, if somebody watches: on a terminal only, never in a log file."""
    if sys.stderr.isatty():
        with suppress(OSError):  # the terminal is gone
            sys.stderr.write("".join(f"{printable(line, None)}\n" for line in lines))  # in one piece
            sys.stderr.flush()


def note_problem(problem: Problem, error: Exception, failed: FailedJob | None, book: ProblemBook) -> None:
    """Log a problem for the owner: the shared part, and the operating system's message. The private part goes into
    the book.

    failed:  the job, if known.
    error:   the problem's error.
    """
    fields = {
        "job": failed.job if failed else None,
        "error_id": problem.error_id,
        "party": problem.party,
        "phase": problem.phase,
    }
    place = _place_of(error) if problem.is_bug_here else ""
    site = problem.private if problem.error_id in _OF_THE_SITE else ""
    cause = f" [{problem.cause or site}]" if problem.cause or site else ""
    log.error("%s: %s%s", problem.error_id, problem.message, cause, extra=fields)
    if place:
        log.error("at %s", place)
    if problem.private or problem.cause or place:
        _keep(problem, failed or FailedJob(), book, place)


def _place_of(error: Exception) -> str:
    """Return the place in our code, without the error's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))


def _keep(problem: Problem, failed: FailedJob, book: ProblemBook, place: str) -> None:
    """Write down the private part for the owner, and log the place."""
    tell_owner([f"  {part}" for part in (problem.private, problem.advice(to_owner=True)) if part])
    try:
        path = book.keep(problem, failed, place)
    except OSError as error:
        log.error("the details of this problem, for the owner alone, could not be kept: %s", error)
        return
    log.error("for the owner of the data: row, value or cause stand in %s; shown by `party problems`", path)
