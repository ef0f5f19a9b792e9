"""`report.json` of a DP release: what was asked, decided and spent, and which guarantee holds toward whom.

It holds only public or released values: no row numbers, scores, timings or sizes that depend on data. All here
follows from the job and the release, so every party can tell whether a report says what it must; the coordinator
adds when it was made, by which software, and what it cost.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from anonymize.accounting import PrivacyLedger
from anonymize.diffgen import barred
from anonymize.release import cut_labels
from crypto.circuits.constants import delta_of
from party.bundle import Bundle
from party.dp_result import DpResult, delta_text
from party.job import Job
from party.release_file import asked_fields, joint_fields, printed_candidate


def dp_report_fields(bundle: Bundle, result: DpResult) -> dict[str, Any]:
    """Describe a DP release."""
    job, table, outcome = bundle.job, result.table, result.outcome
    report = asked_fields(bundle) | {
        "rows": table.cells.n_rows,
        "cells": table.n_cells,
        "threshold": table.threshold,
        "specializations": [printed_candidate(outcome.schema, step.candidate) for step in outcome.steps],
        "discarded": [],
        "cut": {c.name: list(cut_labels(c, outcome.cut, i)) for i, c in enumerate(outcome.schema.qid)},
        "privacy": privacy_fields(bundle, result),
    }
    if job.partition != "single":
        report |= {"repeated": result.repeated} | _joint_fields(bundle, result)
    return report


def privacy_fields(bundle: Bundle, result: DpResult) -> dict[str, Any]:
    """ε, δ, the itemized account, and the guarantee in words."""
    return {
        "epsilon": str(bundle.dp.epsilon),
        "delta": result.delta,
        "unit": "one record",
        "relation": "adding or removing one record",
        "account": account_fields(result.account),
        "utility": bundle.dp.utility,
        "noise": result.noise,
        "engine": bundle.dp.engine if bundle.job.partition != "single" else "single holder",
        "guarantees": guarantees(bundle, result.delta),
        "not_covered": not_covered(bundle.job),
        "sensitive_columns": sensitive_words(bundle.job),
    }


def account_fields(account: PrivacyLedger) -> list[dict[str, Any]]:
    """Every charge, in order; they add up to ε."""
    return [{"for": c.purpose, "epsilon": str(c.epsilon), "iteration": c.iteration} for c in account.charges]


def guarantees(bundle: Bundle, delta: str) -> list[str]:
    """Which guarantee holds toward the public and toward each party (dp-notes, section 1)."""
    job, epsilon = bundle.job, bundle.dp.epsilon
    if job.partition == "single":
        return [
            f"Toward everybody but the holder: pure ε-differential privacy, ε = {_number(epsilon)}, for adding or "
            "removing one record, whatever else is known. The noise is exact: no float, no truncation."
        ]
    pure = delta == "0"
    bound = (
        f"pure ε-differential privacy, ε = {_number(epsilon)}"
        if pure
        else f"(ε, δ)-differential privacy, ε = {_number(epsilon)}, δ = {delta}"
    )
    words = [f"Toward the public: {bound}, for adding or removing one record."]
    if not pure:
        words.append(
            "δ is computed, not assumed: noise inside circuits has finitely many binary digits, each a coin of "
            "finite width; δ covers the distance of all draws of the run from ideal noise."
        )
    return words + (_vertical_words(bundle, delta) if job.partition == "vertical" else _horizontal_words(job))


def _horizontal_words(job: Job) -> list[str]:
    pair = f"{job.leader_name} and {job.deputy_name}"
    return [
        "Toward each party: the same for every record of the others, also after it subtracts its own records and its "
        "own noise; computational, for parties that follow the protocol (semi-honest).",
        f"This holds as long as {pair}, who evaluate circuits for all, do not put their shares together.",
        *_share_words(job),
    ]


def _share_words(job: Job) -> list[str]:
    """What the published protocols add: shares over the integers, which no ring hides perfectly."""
    if job.model.dp is None or job.model.dp.engine != "thesis":
        return []
    return ["Between the two, shares of scores hide them up to a statistical distance of 2^−40 in all."]


def _vertical_words(bundle: Bundle, delta: str) -> list[str]:
    epsilon = bundle.dp.epsilon
    # Replacing a record is removing one and adding one: 2ε, and δ + e^ε·δ.
    doubled = delta_text(delta_of(Fraction(delta), epsilon))
    extra = "" if doubled == "0" else f" and δ = {doubled}"
    return [
        "Toward each party, which knows the ids and the number of common records: for replacing one record by "
        f"another, twice that, ε = {_number(2 * epsilon)}{extra}; computational, for parties that follow the "
        "protocol (semi-honest)."
    ]


def not_covered(job: Job) -> list[str]:
    """What ε does not cover, said so."""
    words = [
        "The unit is the record: a person with m records gets mε.",
        "Everything in the job is public: columns, taxonomies, domains, grids, limits.",
        "ε adds up over all releases of a data set; the privacy ledger of each holder has the sum.",
    ]
    if job.partition == "vertical":
        (name,) = job.names("class")
        words += [
            "What the alignment told the parties, not the public: how many ids each has, which of its own ids are "
            "common, and so how many records there are; and in one bit whether they have the same class for all of "
            "these. A job that ends there costs no ε.",
            f"Both parties hold the class ({name}) of every common record; it is not hidden between them.",
        ]
    return words


def sensitive_words(job: Job) -> list[str]:
    """What became of columns with a role that differential privacy does not know."""
    return [
        f"{name}: generalized like any other column, its values below one root; no confidence bound applies"
        for name in job.names("sensitive")
    ]


def _joint_fields(bundle: Bundle, result: DpResult) -> dict[str, Any]:
    job = bundle.job
    mode = f"dp/{job.partition}/{bundle.dp.engine}"
    schema = result.outcome.schema
    return {
        "barred_by_max_cells": [
            {
                "attribute": schema.qid[place.column].name,
                "value": schema.qid[place.column].label(place.node),
                "from_iteration": turn,
            }
            for place, turn in barred(schema, bundle.dp_requirement, result.outcome.steps).items()
        ],
        **joint_fields(job, mode),
        "reveals": list(result.reveals),
    }


def _number(x: Fraction) -> str:
    return f"{float(x):g}"
