"""Sentences of a DP report: the guarantee toward each audience, and the disclosures outside ε."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol

from crypto.circuits.constants import delta_of
from jobs.data.counted import counted
from jobs.dp.budget import settings
from jobs.dp.result import delta_text
from jobs.dp.settings import MAX_EPSILON
from jobs.file.job import Job
from jobs.task import Sentences, Task


class Guaranteed(Protocol):
    """Part of a result behind the sentences. delta: δ in words."""

    @property
    def delta(self) -> str: ...


def of_single_holder(task: Task, result: Guaranteed) -> Sentences:
    """Return the sentences on a single holder's release."""
    words = (
        f"Toward everybody but the holder: pure ε-differential privacy, ε = {_epsilon(task)}, for adding or "
        f"removing {unit_words(task.job)}, for any background knowledge. The noise is exact: no float, no "
        "truncation."
    )
    return {"guarantees": [words], "not_covered": _not_covered(task.job)}


def of_horizontal_runs(task: Task, result: Guaranteed) -> Sentences:
    """Return the sentences on horizontal runs in circuits."""
    return _joint_words(task, result, _toward_parties(task.job), [])


def of_published_horizontal_runs(task: Task, result: Guaranteed) -> Sentences:
    """Return the sentences on horizontal runs by published protocols: no ring hides their integer shares
    perfectly.
    """
    shares = "Between the pair, shares of scores are hidden up to a total statistical distance of 2^−40."
    return _joint_words(task, result, [*_toward_parties(task.job), shares], [])


def of_vertical_runs(task: Task, result: Guaranteed) -> Sentences:
    """Return the sentences on vertical runs by either engine."""
    return _joint_words(task, result, [_toward_the_other(task, result.delta)], _of_the_alignment(task.job))


def _joint_words(task: Task, result: Guaranteed, toward_parties: list[str], told: list[str]) -> Sentences:
    """Say which guarantee holds toward the public and toward each party, and what epsilon does not cover."""
    return {
        "guarantees": [*_toward_the_public(task, result.delta), *toward_parties],
        "not_covered": [*_not_covered(task.job), *told],
    }


def _toward_the_public(task: Task, delta: str) -> list[str]:
    if delta == "0":
        bound = f"pure ε-differential privacy, ε = {_epsilon(task)}"
        return [f"Toward the public: {bound}, for adding or removing {unit_words(task.job)}."]
    bound = f"(ε, δ)-differential privacy, ε = {_epsilon(task)}, δ = {delta}"
    return [
        f"Toward the public: {bound}, for adding or removing {unit_words(task.job)}.",
        "δ is computed, not assumed: noise inside circuits has finitely many binary digits, made of finitely many "
        "coins. δ covers the distance of all draws of the run from ideal noise.",
    ]


def _toward_parties(job: Job) -> list[str]:
    pair = f"{job.leader_name} and {job.deputy_name}"
    whom = "record" if settings(job).max_records_per_person is None else "person"
    return [
        f"Toward each party: the same guarantee for every {whom} of the remaining parties, even after the party "
        "subtracts its own records and noise. The guarantee is computational, for parties that follow the protocol "
        "(semi-honest).",
        f"This holds as long as {pair}, which evaluate circuits for all parties, do not put their shares together.",
    ]


def _toward_the_other(task: Task, delta: str) -> str:
    epsilon = settings(task.job).epsilon
    # Replacing a record is a removal and an addition: 2ε, and δ + e^ε·δ.
    doubled = delta_text(delta_of(Fraction(delta), epsilon))
    extra = "" if doubled == "0" else f" and δ = {doubled}"
    return (
        "Toward each party, which knows the ids and the number of common records: for replacing a record, twice "
        f"the ε, ε = {_number(2 * epsilon)}{extra}. The guarantee is computational, for parties that follow the "
        "protocol (semi-honest)."
    )


def warned(task: Task) -> list[str]:
    """Return the warnings of a weak job, for the console."""
    return [f"warning: {words}" for words in weakness_of(settings(task.job).epsilon, unit_words(task.job))]


def unit_words(job: Job) -> str:
    """Return the protected unit of ε in words."""
    return "one record" if settings(job).max_records_per_person is None else "one person at one holder"


def promises_of(task: Task) -> list[str]:
    """Say what ε promises every reader of a release."""
    return [f"ε = {_epsilon(task)}: {times_as_likely(settings(task.job).epsilon, unit_words(task.job))}"]


def times_as_likely(epsilon: Fraction, unit: str) -> str:
    """Say what ε bounds. unit: the protected unit in words."""
    factor = math.exp(min(float(epsilon), 700))
    return f"with or without {unit}, every release is at most e^ε = {factor:.4g} times as likely"


def weakness_of(epsilon: Fraction, unit: str) -> list[str]:
    """Say that ε protects very little, if the job had to accept its ε. unit: the protected unit in words."""
    if epsilon <= MAX_EPSILON:
        return []
    factor = math.exp(float(epsilon))
    times = f"{factor:,.0f}" if factor < _MOST_PRINTED else "more than a billion"
    return [
        f"ε = {_number(epsilon)} protects very little, so the job had to accept it (`accept_large_epsilon`): the "
        f"release may be {times} times as likely with {unit} as without, and whoever knows all other records may be "
        "almost certain of the missing values; the literature mostly asks for ε of 1 or less"
    ]


_MOST_PRINTED = 1e9


def _not_covered(job: Job) -> list[str]:
    return [
        *_of_the_unit(settings(job).max_records_per_person),
        "Everything in the job is public: columns, taxonomies, domains, grids, limits.",
        "ε adds up over all releases of a data set; the privacy ledger of each holder has the sum.",
    ]


def _of_the_unit(most: int | None) -> list[str]:
    if most is None:
        return ["The unit is the record: a person with m records gets mε."]
    return [
        f"Each holder keeps at most {counted(most, 'record', 'records')} of a person, chosen at random "
        "(`max_records_per_person`), and draws noise for this number. The unit is the person at a single holder: a "
        "person with records at h holders gets hε, and so does a person with h ids. The sum in a ledger is per "
        "person only over jobs with this limit."
    ]


def _of_the_alignment(job: Job) -> list[str]:
    classes = [
        f"Both parties hold the class ({name}) of every common record: the class is not hidden between the parties."
        for name in job.names("class")
    ]
    return [
        "The alignment told the parties, not the public: how many ids each party has; which of its own ids are "
        "common, and so the number of records; and in one bit whether the parties have the same class for all "
        "common ids. A job that ends there costs no ε.",
        *classes,
    ]


def sensitive_words(job: Job) -> list[str]:
    """Return sentences on columns with roles outside differential privacy."""
    return [
        f"{name}: generalized like every column, with its values below one root; no confidence bound applies"
        for name in job.names("sensitive")
    ]


def _epsilon(task: Task) -> str:
    return _number(settings(task.job).epsilon)


def _number(x: Fraction) -> str:
    return f"{float(x):g}"
