"""Commons of the reports of all models: what was asked, who computed, when and by which software."""

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
"""Keys of every report that nothing follows for."""

SIGNATURES = "signatures"
"""The key of the report of a joint run that has what its parties signed."""

BY_COORDINATOR = frozenset({*BY_MAKER, SIGNATURES})
"""Keys of the report of a joint run that parties do not expect: they compare the signatures by themselves."""


def asked_fields(task: Task) -> dict[str, Any]:
    """Return the report's fields of what the job asked for."""
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
    """Return the keys of a job under `model`, without a model of clusters, which may be large."""
    return job.model.model_dump(mode="json", exclude_none=True, exclude={"lkc": {"clusters"}})


def clusters_fields(job: Job) -> dict[str, Any]:
    """Return the model that tells clusters apart, and the column that publishes them."""
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
    """Return the report's fields of who computed, and of what they could learn."""
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
    """Return everything that the report of a release must say, but for the keys of its maker."""
    return {**rendered.report, "files": file_fields(rendered.tables)}


def printed_candidate(schema: Schema, candidate: Candidate) -> dict[str, Any]:
    """A specialization as reports print it."""
    column = schema.qid[candidate.column]
    return {
        "attribute": column.name,
        "value": column.label(candidate.node),
        "children": [column.label(child) for child in candidate.children],
    }


def printed_step(schema: Schema, step: Step) -> dict[str, Any]:
    """A turn as reports print it: its specialization, and whether it was made because the node has no other value."""
    return printed_candidate(schema, step.candidate) | ({"naming": True} if step.naming else {})


def versions() -> dict[str, str]:
    """The software that made a release."""
    return {"jointcut": __version__, "python": platform.python_version(), "numpy": np.__version__}


def finished_now() -> dict[str, str]:
    """Return the time at which a report is made."""
    return {"finished": datetime.now(UTC).isoformat(timespec="seconds")}


def check_sums(files: Mapping[str, bytes], listed: Mapping[str, bytes]) -> None:
    """Raise PartyError unless the delivered `SHA256SUMS` is that of ``listed``."""
    if files[SUMS] != sums_of(listed):
        raise PartyError("result-mismatch", f"the delivered {SUMS} is not that of the delivered files")


def require_same_fields(ours: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Raise PartyError for the first field of ours that a delivered report says otherwise, or not at all."""
    name = first_other(ours, told)
    if name is not None:
        message = f"the delivered report says of {name} what does not follow from the release"
        raise PartyError("result-mismatch", message)


def require_report(ours: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    """Raise PartyError unless a delivered report says ours, and nothing besides but the keys of its maker."""
    told = {key: said for key, said in report.items() if key not in BY_COORDINATOR}
    if as_text(told) != as_text(ours):
        require_same_fields(ours, told)
        raise PartyError("result-mismatch", "the delivered report says more than follows from the release")


def first_other(ours: Mapping[str, Any], told: Mapping[str, Any]) -> str | None:
    """The first field of ours that a report says otherwise, or not at all; None: it says them all."""
    return next((n for n, value in ours.items() if n not in told or as_text(told[n]) != as_text(value)), None)


def as_text(value: Any) -> str:
    """Values that are the same, as JSON; 1, 1.0 and true are not."""
    return json.dumps(value, sort_keys=True)
