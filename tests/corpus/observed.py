"""Observations of a job without knowing how the program is arranged: by its commands alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from crypto.rng import Prg, SystemRng
from jobs.loading import load_task
from jobs.owner.objections import allowance
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS
from tests.corpus.cases import Case
from tests.support.commands import Ran, invoke
from tests.support.jobs import write_csv
from tests.support.network import write_job

NOT_COMPARED = frozenset({"finished", "versions", "cost", "files"})
"""Keys of a report that are another each time, or follow from the order of rows."""


def fixed_coins(patch: pytest.MonkeyPatch) -> None:
    """Let each generator of the system draw what the one that was made at its place drew before."""
    made: dict[int, Prg] = {}
    kept: list[SystemRng] = []  # else another may get its id

    def drawn(self: SystemRng, n: int) -> bytes:
        if id(self) not in made:
            kept.append(self)
            made[id(self)] = Prg(len(made).to_bytes(16))
        return made[id(self)].bytes(n)

    patch.setattr(SystemRng, "bytes", drawn)


def observe(case: Case, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, str]:
    """Run everything that a user runs of a job; return what is seen, by its name."""
    job, tables = write_job(folder, case.fields), case.tables()
    paths = {name: write_csv(folder / f"{name}.csv", rows, rows[0]) for name, rows in tables.items()}
    task = load_task(job)
    found = {
        "hash": task.digest.hex(),
        "canonical": task.job.canonical(),
        "validate": _shown(invoke("coordinator", "validate", job), folder),
        "fields": _shown(invoke("coordinator", "validate", job, "--format", "json"), folder),
    }
    for me in task.job.roster[:1] if task.job.roster else ():
        found["allowance"] = json.dumps(allowance(task, me, "coordinator"), default=str, sort_keys=True)
    fixed_coins(patch)
    out = folder / "out"
    ran = invoke("coordinator", *_arguments(job, paths, bool(task.job.roster)), "--out", out, *case.more)
    found["run"] = _without_digests(_shown(ran, folder))
    if ran.code == 0:
        found |= _files(out)
        found["verify"] = _without_digests(_shown(invoke("coordinator", "verify", job, out), folder))
    return found


def _arguments(job: Path, tables: Mapping[str, Path], is_joint: bool) -> list[str | Path]:
    if not is_joint:
        return ["run", job]
    given = [word for name, path in tables.items() for word in ("--data", f"{name}={path}")]
    return ["simulate", job, "--in-process", *given]


def _files(out: Path) -> dict[str, str]:
    """The files of a release: rows of tables of records in no order, as their order tells nothing.

    The page follows from the files, with times (tests/jobs/page).
    """
    found = {}
    for path in sorted(
        path for path in out.iterdir() if path.is_file() and path.name not in (SUMS, PAGE, OWN_PAGE)
    ):
        text = path.read_text(encoding="utf-8")
        if path.name == REPORT:
            fields: dict[str, Any] = json.loads(text)
            told = {key: value for key, value in fields.items() if key not in NOT_COMPARED}
            text = json.dumps(told, indent=1, sort_keys=True)
        elif path.name in (TABLE, "groups.csv"):
            header, *rows = text.splitlines(keepends=True)
            text = "".join([header, *sorted(rows)])
        found[path.name] = text
    return found


def _shown(ran: Ran, folder: Path) -> str:
    """Say how a command ended and what it printed, without places and times of this run."""
    text = f"{ran.code}\n{ran.out}".replace(str(folder), "FOLDER")
    return text + (ran.problem["error"] if ran.code and ran.err.startswith("{") else "")


def _without_digests(text: str) -> str:
    """Return a text without digests of the release, which are others each time."""
    return re.sub(r"[0-9a-f]{16,}", "DIGEST", text)


def digest(text: str) -> str:
    """Return the first 16 digits of the SHA-256 of what was seen."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
