"""Checks of a job of sequences: on its file, on the owners' policies, and on a table."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from anonymize.errors import SchemaError
from anonymize.lkc.requirement import Ask
from jobs.errors import ConfigError
from jobs.file.fields import DEFAULT_LEVEL
from jobs.file.job import Job, check_domains
from jobs.file.values import values_of
from jobs.owner.rules import AT_LEAST, AT_MOST, REQUIRED, Rule, Setting, confidence_rule, protection_rule
from jobs.sequences.domains import is_wide, place_column, places_of, time_column, times_of, vocabulary_of
from jobs.sequences.reading import settings
from jobs.sequences.release import published
from jobs.sequences.settings import GLOBAL, REPORT, SequencesModel
from jobs.task import Task


def check_partition(job: Job) -> None:
    """Raise ConfigError for a vertical job."""
    if job.partition == "vertical":
        raise ConfigError(
            "sequences-vertical",
            "model.sequences: a party would find its people in the release by its half of their paths, and read "
            "the second half, because nothing in the release is generalized",
        )


def check(job: Job) -> None:
    """Refuse errors that the job file alone shows. Raises ValueError."""
    _check_keys(job)
    _check_roles(job)
    _check_settings(job)
    _check_sensitive(job)
    if job.roster:
        _check_joint(job)
    columns = published(job)
    for name in columns:
        if columns.count(name) > 1:
            raise ValueError(f"columns.{name}: the release has a column {name}; rename the job's column")


def _check_keys(job: Job) -> None:
    if job.goal is not None:
        raise ValueError(
            "`goal` is for jobs that generalize: in a job of sequences items are removed, and nothing is "
            "generalized; leave `goal` out"
        )
    if job.disclosure not in (None, DEFAULT_LEVEL):
        why = (
            "this would open how many records have each sequence to be suppressed"
            if job.disclosure == "leader"
            else "a run tells only which sequences are kept"
        )
        raise ValueError(f"`disclosure: {job.disclosure}` is not for sequences: {why}; say `{DEFAULT_LEVEL}`")
    if job.deliver != "all":
        raise ValueError(
            f"`deliver: {job.deliver}` is not for sequences: each party checks the table before it is released"
        )


_NOT_HERE: Mapping[str, str] = {
    "qid": "fewer than K records may share quasi-identifiers and a sequence; leave the column out, or publish the "
    "column in a separate table",
    "class": "nothing is generalized, so nothing is predicted; say `plain` or `sensitive`",
    "party": "`colluders` is for LKC jobs",
}
"""Reasons against roles in a job of sequences, by role."""


def _check_roles(job: Job) -> None:
    for role, why in _NOT_HERE.items():
        for name in job.names(role):
            raise ValueError(f"columns.{name}: `role: {role}` is not for sequences: {why}")
    if len(job.names("location", "items")) != 1:
        raise ValueError(
            "columns: sequences need one column with `role: location` (each row is a reading) or `role: items` "
            "(each row is a record with a set of values)"
        )
    if is_wide(job) and job.names("time"):
        raise ValueError(
            f"columns.{time_column(job)}: a set has no times; `role: time` goes with `role: location`"
        )
    if not is_wide(job) and not job.names("id"):
        raise ValueError(
            "columns: `role: location` needs a column with `role: id`, the person of each reading"
        )


def _check_settings(job: Job) -> None:
    asked = settings(job)
    for key, default in (("places", "several"), ("stays", "keep")):
        if getattr(asked, key) != default and time_column(job) is None:
            raise ValueError(f"model.sequences.{key}: {getattr(asked, key)} needs a column with `role: time`")
    if job.roster and asked.suppress == GLOBAL:
        raise ValueError(
            "model.sequences.suppress: global is for a single holder: the choice of an item would open secret "
            "counts; say `local`, which loses less"
        )
    if job.roster and asked.exclusion != REPORT:
        raise ValueError(
            f"model.sequences.exclusion: {asked.exclusion} needs the raw readings of all records, and no party has "
            f"all; say `{REPORT}`: each owner is told about its own records"
        )
    if asked.K == 1 and all(bound == 1 for bound in bounds(job).values()):
        raise ValueError("model.sequences asks for nothing: give a K above 1, or a C below 1")


def _check_sensitive(job: Job) -> None:
    asked = settings(job)
    said = asked.C if isinstance(asked.C, Mapping) else {}
    for name in said:
        if name not in job.names("sensitive"):
            raise ValueError(f"model.sequences.C names {name!r}, which is not a sensitive column")
    of_all = "C" in asked.model_fields_set and not isinstance(asked.C, Mapping)
    for name in job.names("sensitive"):
        column = job.columns[name]
        if not of_all and column.C is None and name not in said:
            raise ValueError(
                f"sensitive column {name} needs a C, at the column or in `model.sequences` (1: no bound): add e.g. "
                "`C: 1/2` under `model.sequences`"
            )
        for key in ("at_most", "other"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is not for sequences")


def _check_joint(job: Job) -> None:
    for name in job.names("plain"):
        raise ValueError(f"columns.{name}: `role: plain` is for sequences of a single holder")
    name = place_column(job)
    if job.columns[name].domain is None and job.columns[name].domain_file is None:
        raise ValueError(
            f"columns.{name}: a joint job needs `domain` or `domain_file`, the same for all parties"
        )
    check_domains(job)


def check_opened(task: Task) -> None:
    """Refuse errors that the domains show. Raises SchemaError."""
    job, places = task.job, places_of(task)
    vocabulary_of(1 if places is None else len(places), times_of(task))
    for name in job.names("sensitive"):
        if job.columns[name].is_listed:
            values, bound = values_of(task, name), bounds(job)[name]
            if bound * len(values.tested) < 1 and set(values.tested) <= set(values.protected):
                raise SchemaError(
                    "job-invalid",
                    f"C={bound} of {name} cannot be met: all {len(values.tested)} values are protected, and in any "
                    f"group some value has a share of 1/{len(values.tested)} or more; raise C, or protect fewer "
                    "values",
                    column=name,
                )


def bounds(job: Job) -> dict[str, Fraction]:
    """Return C by sensitive column; 1 is no bound."""
    return settings(job).bounds({name: job.columns[name].C for name in job.names("sensitive")})


def requirement(job: Job) -> Ask:
    """Return the requirement on the records of every sequence."""
    asked = settings(job)
    return Ask(asked.L, asked.demands(bounds(job)), None, f"{requirement_words(job)} (model.sequences)")


def least_frequent(asked: SequencesModel, n_records: int) -> int:
    """Return the least number of records of a frequent sequence."""
    return max(ceil(asked.frequent * n_records), 1)


def requirement_words(job: Job) -> str:
    """Return L and the demands on the records of every sequence, in a line."""
    asked = settings(job)
    return " ".join([f"L={asked.L}", *(d.setting for d in asked.demands(bounds(job)) if d.setting)])


def described_column(task: Task, name: str) -> dict[str, Any]:
    """Describe a column: the part that is read, and for a sensitive column the protected values."""
    column = task.job.columns[name]
    if column.role in ("location", "items"):
        places = places_of(task)
        if places is None:
            return {"domain": "every value found in the data"}
        told: dict[str, Any] = {"values": len(places), "sha256": _digest(places)}
        return told | ({} if column.separator is None else {"separator": column.separator})
    if column.role == "time":
        times = times_of(task)
        assert times is not None
        clock = {} if column.clock is None else {"clock": column.clock.model_dump(mode="json")}
        return {"cells": len(times.labels), **clock, "relative": bool(column.relative)}
    if column.role == "sensitive":
        protected = list(values_of(task, name).protected) or "every value found in the data"
        told = {"missing": column.missing or "error", "protected": protected}
        return told | {"C": str(bounds(task.job)[name])}
    return {}


def _digest(values: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(values).encode()).hexdigest()[:16]


def notes(task: Task) -> list[str]:
    """Return a sentence for each setting with less effect than the author may think."""
    asked, found = settings(task.job), []
    if task.job.roster:
        names = "values" if is_wide(task.job) else "locations and times"
        found.append(
            f"sequences are counted across parties by the names of {names}: the names must mean the same at all "
            f"parties; if every party has different {names}, each party should anonymize alone"
        )
    if asked.L > asked.max_items:
        found.append(f"L={asked.L} is more than the {asked.max_items} items of any record")
    if not task.job.names("sensitive") and any(d.without_effect(()) for d in asked.demands({})):
        found += [note for d in asked.demands({}) if (note := d.without_effect(())) is not None]
    return found


_WORK = ("max_items", "max_candidates")
"""Keys that bound the work of a run, in a job and in a policy."""


def rules(task: Task, held: Collection[str]) -> Iterator[Rule]:
    """Yield a job's requirements on a policy: for L, K, C and the protected values in the columns ``held``."""
    job, asked = task.job, settings(task.job)
    names = [name for name in job.names("sensitive") if name in held]
    yield Setting(
        "min_k", AT_LEAST, asked.K, "K", unset="no sequences job is allowed (`policy.min_k` is unset)"
    )
    yield Setting("min_l", AT_LEAST, asked.L, "L", stated=True)
    for key in _WORK:
        yield Setting(key, AT_MOST, getattr(asked, key), key)
    yield Setting("min_colluders", AT_LEAST, 0, "colluders", more=": jobs of sequences have no `colluders`")
    words = "K must count people: the job must have a column with `role: id`"
    yield Setting("per_person", REQUIRED, bool(job.names("id")), words, stated=False)
    if names:
        diverse = 1 if any(bounds(job)[name] == 1 for name in names) else 2
        yield Setting("min_diversity", AT_LEAST, diverse, "diversity", stated=False)
    for name in names:
        yield confidence_rule(name, bounds(job)[name])
        yield protection_rule(name, values_of(task, name).protects)
