"""Description of a job as printed by `coordinator validate`: everything of importance for an approval.

Two jobs with an important difference print differently, not by the hash alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from anonymize.dates import DateGrid
from anonymize.grid import Grid
from anonymize.shallow_taxonomy import depths_of
from anonymize.taxonomy import Taxonomy
from jobs.owner.domains import digest_of, domains_of
from jobs.release.report import clusters_fields, model_fields
from jobs.task import Described, Task

_NOT_LINES = frozenset({"columns", "revealed", "addresses", "model", "costs", "notes"})
"""Fields with separate lines."""


def description_fields(task: Task) -> dict[str, Any]:
    """Return the job as fields, without absent settings."""
    return _fields(task, task.model.described(task))


def _fields(task: Task, described: Described) -> dict[str, Any]:
    job = task.job
    fields: dict[str, Any] = {
        "job": job.name,
        "job_sha256": task.digest.hex(),
        "partition": job.partition,
        "requirement": described.requirement,
        "model": model_fields(job),
        "goal": job.goal,
        **clusters_fields(job),
        "data": _told_of_table(job.data),
        **task.partition.described(job),
        **{role: list(job.names(role)) for role in ("qid", "sensitive", "class", "plain", "party")},
        "columns": {
            name: _column_fields(task, name, described.columns.get(name, {})) for name in job.columns
        },
        "parties": list(job.roster),
        "addresses": {name: entry.address for name, entry in (job.parties or {}).items()},
        "revealed": _revealed(task),
        **task.partition.described_columns(job),
        "costs": task.mode.costs(task),
        "notes": list(described.notes),
    }
    return {key: value for key, value in fields.items() if value not in (None, [], {})}


def _told_of_table(data: Any) -> Any:
    """Return the place of a single holder's table: a path, or the stated keys."""
    return data.model_dump(mode="json", exclude_unset=True) if isinstance(data, BaseModel) else data


def _column_fields(task: Task, name: str, of_model: Mapping[str, Any]) -> dict[str, Any]:
    """Return the role of a column, the public domain, and the model's fields."""
    column = task.job.columns[name]
    fields: dict[str, Any] = {
        "role": column.role,
        "set": column.set and column.set.model_dump(mode="json", exclude_none=True, exclude={"taxonomy"}),
        "hierarchy": _hierarchy_fields(task.taxonomies[name]) if name in task.taxonomies else None,
        "clock": {"cells": column.clock.n_cells, "sha256": domains_of(task)[name]} if column.clock else None,
        "level": column.level,
        "publish": column.publish,
        "distance": column.distance,
        "refine": column.refine,
        "weight": column.weight and str(column.weight),
        "suppress": list(column.suppress) if column.suppress else None,
        "domain": list(column.domain) if column.domain else None,
        "spellings": column.spellings,
        "publish_as_is": column.publish_as_is,
        "missing": column.missing,
        "other": column.other,
        "outside": column.outside,
        "from_data": column.from_data,
        "shared_by": column.shared_by,
        "normalize": column.normalize and column.normalize.model_dump(mode="json", exclude_none=True),
        **of_model,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _hierarchy_fields(values: Taxonomy | Grid) -> dict[str, Any]:
    """Return size and digest of a value hierarchy. An owner's policy may pin the digest (`policy.domains`)."""
    sha256 = digest_of(values)
    if isinstance(values, Grid):
        first, last = values.edge_label(0), values.edge_label(values.n_cells)
        dates = {"form": values.form, "timed": values.timed} if isinstance(values, DateGrid) else {}
        return {"from": first, "below": last, "cells": values.n_cells, **dates, "sha256": sha256}
    return {"leaves": len(values.leaves), "height": max(depths_of(values)), "sha256": sha256}


def _revealed(task: Task) -> list[dict[str, Any]]:
    """List the values that become known during the run, and to whom; return an empty list for a single holder."""
    return [
        {"name": a.name, "to": a.to, "meaning": a.meaning, "finer_than_result": a.finer} for a in task.reveals
    ]


def description_lines(task: Task) -> list[str]:
    """Return the job as text."""
    described = task.model.described(task)
    fields = _fields(task, described)
    return [
        *(f"  {key:12} {_listed(value)}" for key, value in fields.items() if key not in _NOT_LINES),
        *_settings_lines(described.settings),
        "  columns",
        *(f"    {name}: {_words(column)}" for name, column in fields["columns"].items()),
        *_party_lines(task),
        *_revealed_lines(fields.get("revealed", [])),
        *(f"  {'cost':12} {cost}" for cost in fields.get("costs", [])),
        *(f"  {'note':12} {note}" for note in fields.get("notes", [])),
    ]


def _listed(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_listed(of)}" for key, of in value.items() if of is not None)
    return ", ".join(map(_word, value)) if isinstance(value, list) else _word(value)


def _word(value: Any) -> str:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _words(fields: Mapping[str, Any]) -> str:
    """Return a column in one line: the role, then the rest by name."""
    parts = [str(fields["role"])]
    for key, value in fields.items():
        if isinstance(value, Mapping):
            parts.append(f"{key} ({', '.join(f'{k} {_word(v)}' for k, v in value.items())})")
        elif key != "role":
            parts.append(f"{key} {' | '.join(value) if isinstance(value, list) else _word(value)}")
    return "; ".join(parts)


def _settings_lines(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for every setting of the model, unless the requirement says all settings."""
    if settings:
        yield "  model"
        yield from (f"    {key}: {_word(value)}" for key, value in settings.items() if value is not None)


def _party_lines(task: Task) -> Iterator[str]:
    job = task.job
    if not job.roster:
        return
    yield "  reached at (unless the caller's own configuration has another address)"
    for name, entry in (job.parties or {}).items():
        yield f"    {name}: {entry.address}"
    if task.mode.shared:
        yield (
            f"  compute pair: {job.leader_name} and {job.deputy_name} evaluate circuits for all; together they could "
            "read all counts"
        )
    if task.mode.mixed(task):
        which = "rows with plain columns" if task.job.names("plain") else "rows"
        yield (
            f"  {which}: mixed by {job.leader_name} and {job.deputy_name}; together they could tell "
            "whose each is"
        )
    yield (
        "  delivered to: every party and the coordinator"
        if job.deliver == "all"
        else "  delivered to: the coordinator only"
    )


def _revealed_lines(revealed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if revealed:
        yield "  becomes known on the way (! is finer than the published result)"
    for each in revealed:
        mark = "!" if each["finer_than_result"] else " "
        yield f"  {mark} to {each['to']}: {each['meaning']}"
