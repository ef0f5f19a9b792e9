"""Commons of the reports of all models: the requirement, the computing parties, the time and the software."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from anonymize.cut import Candidate
from anonymize.table import Schema
from anonymize.tds import Step
from jobs.errors import PartyError
from jobs.file.job import Job
from jobs.release.sums import SUMS, file_fields, sums_of
from jobs.task import Rendered, Task
from jobs.version import __version__

BY_MAKER = ("finished", "versions", "cost")
"""Keys of every report without an expectation."""

SIGNATURES = "signatures"
"""Key of a joint run's report for the parties' signatures."""

BY_COORDINATOR = frozenset({*BY_MAKER, SIGNATURES})
"""Keys of a joint run's report that parties do not expect. Parties compare the signatures separately."""


def asked_fields(task: Task) -> dict[str, Any]:
    """Return the report's fields of the job's request."""
    job = task.job
    return {
        "format": 1,
        "job": job.name,
        "job_sha256": task.digest.hex(),
        "partition": job.partition,
        "model": model_fields(job),
        **({} if job.goal is None else {"goal": job.goal}),
        **clusters_fields(job),
    }


def model_fields(job: Job) -> dict[str, Any]:
    """Return the keys of a job under `model`, without a possibly large model of clusters."""
    return job.model.model_dump(mode="json", exclude_none=True, exclude={"lkc": {"clusters"}})


def clusters_fields(job: Job) -> dict[str, Any]:
    """Return the model of clusters, and the column for publishing the clusters."""
    if job.clusters is None:
        return {}
    model = job.clusters.opened
    told = {
        "count": model.count,
        "method": model.method,
        "columns": list(model.names),
        "sha256": model.digest,
    }
    return {"clusters": told | {"publish": job.clusters.publish}}


def joint_fields(task: Task) -> dict[str, Any]:
    """Return the report's fields of the computing parties and their possible knowledge."""
    job = task.job
    pair = {"deputy": job.deputy_name} if task.paired else {}
    return {
        "parties": list(job.roster),
        "leader": job.leader_name,
        **pair,
        "disclosure": job.disclosure,
        "revealed_by_design": [
            {"name": a.name, "to": a.to, "meaning": a.meaning, "finer_than_result": a.finer}
            for a in task.reveals
        ],
    }


def following(rendered: Rendered) -> dict[str, Any]:
    """Return the expected content of the report of a release, without the keys of its maker."""
    return {**rendered.report, "files": file_fields(rendered.tables)}


def printed_candidate(schema: Schema, candidate: Candidate) -> dict[str, Any]:
    """Return a specialization as printed in reports."""
    column = schema.qid[candidate.column]
    return {
        "attribute": column.name,
        "value": column.label(candidate.node),
        "children": [column.label(child) for child in candidate.children],
    }


def printed_step(schema: Schema, step: Step) -> dict[str, Any]:
    """Return a turn as printed in reports: its specialization, and True if the node has a single value."""
    return printed_candidate(schema, step.candidate) | ({"naming": True} if step.naming else {})


def versions() -> dict[str, str]:
    """Return the software that made a release."""
    return {"jointcut": __version__, "python": platform.python_version(), "numpy": np.__version__}


def finished_now() -> dict[str, str]:
    """Return the time of making a report."""
    return {"finished": datetime.now(UTC).isoformat(timespec="seconds")}


def check_sums(files: Mapping[str, bytes], listed: Mapping[str, bytes]) -> None:
    """Raise PartyError unless the delivered `SHA256SUMS` is that of the release that we expect, ``listed``."""
    if files[SUMS] == sums_of(listed):
        return
    lines = set(files[SUMS].splitlines(keepends=True))
    others = [name for name, content in sorted(listed.items()) if sums_of({name: content}) not in lines]
    if others:
        fault = f"the {others[0]} of the delivered {SUMS} is not the one that was computed"
    else:
        fault = f"the delivered {SUMS} is not that of the computed files"
    raise PartyError("result-mismatch", fault)


def require_same_fields(ours: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Raise PartyError for the first field of ours that is different or missing in a delivered report."""
    name = first_other(ours, told)
    if name is not None:
        message = f"the delivered report says of {name} what does not follow from the release"
        raise PartyError("result-mismatch", message)


def require_report(ours: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Raise PartyError unless a delivered report has our fields, and nothing else except its maker's keys."""
    told = {key: said for key, said in report.items() if key not in BY_COORDINATOR}
    if as_text(told) != as_text(ours):
        require_same_fields(ours, told)
        raise PartyError("result-mismatch", "the delivered report says more than follows from the release")


def first_other(ours: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """Return the first field of ours that is different or missing in a report, or None."""
    return next((n for n, value in ours.items() if n not in told or as_text(told[n]) != as_text(value)), None)


def as_text(value: Any) -> str:
    """Return a value as JSON text, equal for equal values; 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)
