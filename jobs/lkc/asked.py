"""What an LKC job asks: of its file, of the owners' policies, and of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction
from typing import Any

from anonymize.criteria.criterion import Demand
from anonymize.criteria.persons import Persons
from anonymize.criteria.remainder import check_colluders
from anonymize.criteria.size import Size
from anonymize.errors import DataError, SchemaError
from anonymize.joint.lkc.scores.rows import OF_GOAL, SCORES, has_contexts, is_strict, score_of
from anonymize.joint.lkc.scores.score import JointScore
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import SensitiveColumn
from jobs.data.table_file import nfc
from jobs.fields import DEFAULT_LEVEL, PERSON
from jobs.job import Job
from jobs.lkc.settings import LkcModel
from jobs.policy import Policy
from jobs.schema import Domains
from jobs.task import Task


def settings(job: Job) -> LkcModel:
    """What the job file says under `model.lkc`."""
    assert job.model.lkc is not None
    return job.model.lkc


def demands(job: Job) -> tuple[Demand, ...]:
    """What every group must meet, in the order in which it is told; K counts what the job says."""
    asked = settings(job).demands
    if job.model.unit != PERSON:
        return asked
    return tuple(Persons(demand.least) if isinstance(demand, Size) else demand for demand in asked)


def confidence(job: Job, name: str) -> Fraction:
    """The C of a sensitive column: its own, or that of the job."""
    own = job.columns[name].C
    return settings(job).C if own is None else own


def check(job: Job) -> None:
    """Refuse what the job file alone shows to be wrong. Raises ValueError."""
    unbound = [name for name in job.names("sensitive") if job.columns[name].C is None]
    if unbound and "C" not in settings(job).model_fields_set:
        raise ValueError(f"sensitive column {unbound[0]} needs a C, its own or in `model.lkc` (1: no bound)")
    _check_colluders(job)
    _check_unit(job)
    _check_score(job)
    _check_withhold(job)
    for demand in demands(job):
        for name in demand.columns:
            if name not in job.names("sensitive"):
                raise ValueError(f"model.lkc: {demand.name} names {name!r}, which is no sensitive column")
    for name, column in job.columns.items():
        for key in ("set", "other"):
            if getattr(column, key) is not None:
                raise ValueError(f"columns.{name}.{key} is for DP jobs")


def _check_withhold(job: Job) -> None:
    if job.withhold is not None and job.names("plain"):
        raise ValueError(
            f"columns.{job.names('plain')[0]}: plain columns are read after rows were withheld, without knowing "
            "which; leave out `withhold` or the column"
        )


def _check_unit(job: Job) -> None:
    """Whose records are whose must be known where people are counted, and to nobody who must not know it."""
    if job.model.unit != PERSON:
        return
    if job.partition == "vertical":
        raise ValueError(
            "model.unit: a vertical job has one record of each id, so records are people already"
        )
    if not job.names("id"):
        raise ValueError(
            "model.unit: person needs a column with `role: id`, which says whose record a row is"
        )
    if job.disclosure == "strict":
        raise ValueError(
            "model.unit: a strict run counts records only; `disclosure: sealed` or `leader` counts people"
        )
    if settings(job).colluders:
        raise ValueError(
            "model.unit: `colluders` counts what remains of a group in records, so it is for `unit: record`"
        )


def _check_colluders(job: Job) -> None:
    """Whose records are whose must be known, and to nobody who must not know it."""
    most, named = settings(job).colluders, job.names("party")
    if most is None:
        if named:
            raise ValueError(f"columns.{named[0]}: `role: party` is for `colluders` in `model.lkc`")
        return
    if job.partition == "vertical":
        raise ValueError(
            "model.lkc.colluders is for rows: parties of a vertical job hold columns of the same records, and none "
            "has rows of its own to subtract"
        )
    if job.partition == "horizontal" and job.disclosure != DEFAULT_LEVEL:
        raise ValueError(
            f"model.lkc.colluders needs `disclosure: {DEFAULT_LEVEL}`: a leader would learn each party's own counts, "
            "and a strict run counts all parties' records together"
        )
    if job.partition == "single" and not named:
        raise ValueError("model.lkc.colluders needs a column with `role: party`: whose record a row is")
    try:
        check_colluders(most, len(job.record_holders))
    except SchemaError as error:
        raise ValueError(f"model.lkc.{error}") from None


def job_score(job: Job) -> JointScore:
    """What the choice of specializations optimizes."""
    assert job.score is not None
    return score_of(job.score, job.contexts)


def _check_score(job: Job) -> None:
    """A score is for one goal, and not for every way to compute it."""
    assert job.score is not None
    names, score = OF_GOAL[job.goal], f"`score: {job.score}`"
    if job.score not in names:
        goals = " or ".join(goal for goal, known in OF_GOAL.items() if job.score in known)
        raise ValueError(
            f"{score} is for `goal: {goals}`; with `goal: {job.goal}` say {' or '.join(names)}, or none"
        )
    if job.disclosure == "strict" and not is_strict(job.score):
        raise ValueError(
            f"{score} needs candidates that all parties know, with their split points, before one is taken; "
            f"`disclosure: strict` tells none: say `score: {next(filter(is_strict, names))}`, or "
            f"`disclosure: {DEFAULT_LEVEL}`"
        )
    if job.contexts is not None and not has_contexts(job.score):
        raise ValueError(
            f"`contexts` is for `score: {' or '.join(filter(has_contexts, SCORES))}`; {score} has none"
        )
    if job.contexts == "cells" and job.partition == "vertical":
        raise ValueError(
            "`contexts: cells` tells sensitive values apart, which in a vertical job their holder alone knows; say "
            "`contexts: partitions`"
        )


def requirement(task: Task) -> AskedList:
    """One entry of all quasi-identifiers, and whether parties are held to what bounds inferences, too."""
    asked = settings(task.job)
    return AskedList((Ask(asked.L, demands(task.job)),), bool(task.job.insider))


def sensitive_columns(job: Job, found: Domains) -> tuple[SensitiveColumn, ...]:
    """The sensitive columns of the schema. Raises DataError if a protected value is not in a domain ``found``."""
    return tuple(_sensitive_column(job, name, found) for name in job.names("sensitive"))


def _sensitive_column(job: Job, name: str, found: Domains) -> SensitiveColumn:
    domain = job.columns[name].domain or found[name]
    protected = job.columns[name].protected or domain
    for value in sorted(set(protected) - set(domain)):  # only where the data gave the domain
        raise DataError(
            "data-unknown-value",
            f"column {name}: the protected value {value!r} is in no row, so nothing would protect it",
            column=name,
            remedy="correct `values` or the data; or list all values of the column in `domain`",
        )
    places = tuple(domain.index(value) for value in protected)
    return SensitiveColumn(name, domain, places, confidence(job, name))


def requirement_words(job: Job) -> str:
    """L and what groups must meet, in a line."""
    asked = settings(job)
    return " ".join([f"L={asked.L}", *(demand.setting for demand in demands(job))])


def described_column(job: Job, name: str) -> dict[str, Any]:
    """What becomes of a row with a missing cell; what of a sensitive column is protected, and its C."""
    column = job.columns[name]
    told = {"missing": column.missing or _MISSING.get(column.role)}
    if column.numeric is not None:
        told = {"missing": "drop"}
    if column.role != "sensitive":
        return told
    protected = list(column.protected) or "every value found in the data"
    return {**told, "protected": protected, "C": str(confidence(job, name))}


_MISSING = {"qid": "leaf", "class": "error", "sensitive": "error", "party": "error"}
"""What becomes of a row with a missing cell in a column of this role, unless the job says; numbers: dropped."""


def objections(job: Job, policy: Policy, held: Collection[str]) -> Iterator[str]:
    """What a policy does not allow of L and K, and of C and the protected values in the columns ``held``."""
    yield from _sizes(settings(job), policy)
    if job.partition == "horizontal" and (settings(job).colluders or 0) < policy.min_colluders:
        yield f"colluders must be at least {policy.min_colluders}"
    if policy.per_person and job.partition != "vertical" and job.model.unit != PERSON:
        yield "K must count people: the job must say `unit: person`"
    if (sums := _sums(job)) not in (None, *policy.secure_sum):
        yield f"counts may not be summed by secure_sum {sums}"
    for name in job.published_clusters:
        if not policy.cluster_labels:
            yield f"clusters of records may not be published (as {name})"
    for name in _sensitive(job, held):
        yield from _confidence(name, confidence(job, name), policy.max_c)
        if set(map(nfc, policy.protected.get(name, ()))) - set(map(nfc, job.columns[name].protected)):
            yield f"sensitive column {name}: values that must be protected are not"


def _sums(job: Job) -> str | None:
    """How counts are summed where a leader learns the sums; None elsewhere."""
    return (
        (job.secure_sum or "masked") if job.disclosure == "leader" and job.partition == "horizontal" else None
    )


def _sensitive(job: Job, held: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in job.names("sensitive") if name in held)


def _sizes(asked: LkcModel, policy: Policy) -> Iterator[str]:
    if policy.min_k is None:
        yield "no LKC job is allowed"
    elif asked.K < policy.min_k:
        yield f"K must be at least {policy.min_k}"
    if asked.L < policy.min_l:
        yield f"L must be at least {policy.min_l}"


def _confidence(name: str, asked: Fraction, allowed: Fraction | None) -> Iterator[str]:
    if allowed is None:
        yield f"sensitive column {name}: no C is allowed"
    elif asked > allowed:
        yield f"sensitive column {name}: C must be at most {allowed}"


def allowance(job: Job, held: Collection[str]) -> dict[str, Any]:
    """The settings of a policy that allows just this."""
    bounds = [confidence(job, name) for name in _sensitive(job, held)]
    largest = {"max_c": str(max(bounds))} if bounds else {}
    sums = {"secure_sum": ["ring"]} if _sums(job) == "ring" else {}
    colluders = {"min_colluders": most} if (most := settings(job).colluders) else {}
    people = {"per_person": True} if job.model.unit == PERSON else {}
    clusters = {"cluster_labels": True} if job.published_clusters else {}
    bounds_asked = {"min_l": settings(job).L, "min_k": settings(job).K}
    return {**bounds_asked, **people, **largest, **colluders, **sums, **clusters}
