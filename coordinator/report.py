"""The released table of a joint run, and `report.json`.

The report says what was asked, what was decided, what it is worth, what was revealed and what it cost.
Everything in it is public in the job, published in the table, or stands in the reveal ledger.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.metrics import Stopped, information_gain, measure
from anonymize.partition import GeneralizedTable
from anonymize.release import LabelledColumn, Release, cut_labels, release_of_counts
from anonymize.table import Ints
from anonymize.tds import Outcome, Step
from coordinator.vertical_report import vertical_fields, vertical_words
from crypto.rng import SystemRng
from party import __version__
from party.bundle import Bundle
from party.errors import PartyError
from party.job import Job
from party.release_file import (
    REPORT,
    asked_fields,
    bounds_of,
    joint_fields,
    printed_candidate,
    read_csv,
    same_rows,
)


def release_of_result(
    bundle: Bundle, outcome: Outcome, generalized: GeneralizedTable, parts: Mapping[str, bytes]
) -> Release:
    """The table of a joint run: its counts written out, with what the parties sent besides where that is needed.

    parts: by party (CSV) its generalized rows, for horizontal jobs with plain columns: their quasi-identifiers,
    class and sensitive values must add up to the counts; or its sensitive and plain columns, for vertical jobs: as
    many values as there are rows, entry by entry. Raises PartyError if they are not.
    """
    counted, names = release_of_counts(outcome.schema, outcome.cut, generalized), bundle.job.published
    if not parts:
        return counted.ordered(names).shuffled(SystemRng())
    if bundle.job.partition == "vertical":
        columns = dict(counted.columns)
        for party in parts:
            columns |= _columns_of(party, parts[party], bundle, counted.n_rows)
        return Release(columns).ordered(names).shuffled(SystemRng())
    release = _stacked([_sent(party, parts[party], names) for party in bundle.job.roster])
    if not same_rows(release, counted, list(counted.columns)):
        raise PartyError(
            "result-mismatch", "the rows the parties sent do not add up to the counts they computed"
        )
    return release.shuffled(SystemRng())


def _columns_of(party: str, content: bytes, bundle: Bundle, n_rows: int) -> dict[str, LabelledColumn]:
    """The columns a party of a vertical job contributes, one value for each row, in their domains."""
    job = bundle.job
    names = [name for name in job.contributed_by(party) if job.columns[name].role != "qid"]
    release = _sent(party, content, names)
    known = all(
        set(release.columns[name].labels) <= set(job.columns[name].domain or ())
        for name in names
        if job.columns[name].role == "sensitive"
    )
    if release.n_rows != n_rows or not known:
        raise PartyError("peer-protocol", "columns that do not fit the table", party=party)
    return dict(release.columns)


def _sent(party: str, content: bytes, names: Sequence[str]) -> Release:
    """Read the table a party sent; what is wrong with it is that party's."""
    try:
        return read_csv(content, names)
    except PartyError as error:
        raise PartyError("peer-protocol", "its part of the table cannot be read", party=party) from error


def _stacked(tables: list[Release]) -> Release:
    columns = {}
    for name in tables[0].columns:
        labels = tuple(dict.fromkeys(label for table in tables for label in table.columns[name].labels))
        place = {label: i for i, label in enumerate(labels)}
        codes = [_renumbered(table.columns[name], place) for table in tables]
        columns[name] = LabelledColumn(labels, np.concatenate(codes))
    return Release(columns)


def _renumbered(column: LabelledColumn, place: Mapping[str, int]) -> Ints:
    return np.array([place[label] for label in column.labels] or [0], dtype=np.int64)[column.codes]


def build_report(
    bundle: Bundle,
    outcome: Outcome,
    release: Release,
    class_counts: Sequence[Ints],
    *,
    reveals: Sequence[Mapping[str, Any]] = (),
    stopped: Mapping[str, Sequence[Stopped]] | None = None,
) -> dict[str, Any]:
    """Describe a run. class_counts: per column, class counts of the published values by first leaf."""
    report = (
        asked_fields(bundle)
        | finished_now()
        | {"sensitive": _protected(bundle, release)}
        | _decided_fields(outcome, release, class_counts)
    )
    report["verified"] = _verified(bundle)
    if stopped is not None:
        report["stopped"] = {name: [_stopped_fields(s) for s in found] for name, found in stopped.items()}
    if bundle.job.partition != "single":
        report |= _joint_fields(bundle)
    if bundle.job.partition == "vertical":
        report |= vertical_fields(bundle, release)
    report["reveals"] = list(reveals)
    report["versions"] = versions()
    return report


def versions() -> dict[str, str]:
    """The software that made a release."""
    return {"jointcut": __version__, "python": platform.python_version(), "numpy": np.__version__}


def finished_now() -> dict[str, str]:
    """When a report is made."""
    return {"finished": datetime.now(UTC).isoformat(timespec="seconds")}


def _protected(bundle: Bundle, release: Release) -> dict[str, Any]:
    """Per sensitive column what was protected, and how."""
    return {
        bound.column: {"C": str(bound.confidence), "values": sorted(bound.values)}
        for bound in bounds_of(release, bundle)
    }


def _decided_fields(outcome: Outcome, release: Release, class_counts: Sequence[Ints]) -> dict[str, Any]:
    applied = [step for step in outcome.steps if step.applied]
    discarded = [step for step in outcome.steps if not step.applied]
    return {
        "rows": release.n_rows,
        "specializations": [_step_fields(step, outcome, class_counts) for step in applied],
        "discarded": [_step_fields(step, outcome) for step in discarded],
        "cut": {c.name: list(cut_labels(c, outcome.cut, i)) for i, c in enumerate(outcome.schema.qid)},
        "metrics": asdict(measure(release, outcome.schema, outcome.cut)),
    }


def _step_fields(step: Step, outcome: Outcome, class_counts: Sequence[Ints] | None = None) -> dict[str, Any]:
    candidate = step.candidate
    fields = printed_candidate(outcome.schema, candidate)
    if class_counts is not None:  # a discarded candidate's score is finer than the table
        fields["score"] = step.score or information_gain(candidate, class_counts[candidate.column])
    if step.violation is not None:
        fields["violates"] = step.violation.threshold
        fields["columns"] = step.violation.n_columns
        if step.violation.sensitive is not None:
            fields["sensitive"] = step.violation.sensitive
    return fields


def _stopped_fields(stopped: Stopped) -> dict[str, Any]:
    return {key: value for key, value in asdict(stopped).items() if value is not None}


def _verified(bundle: Bundle) -> str:
    lkc = bundle.lkc
    insider = "; nor in any group on all of them and the class" if bundle.job.insider else ""
    return (
        f"every group of records on every subset of at most L={lkc.L} quasi-identifiers was counted again in the "
        f"released table: at least K={lkc.K} records, and no protected value above its C{insider}"
    )


def _joint_fields(bundle: Bundle) -> dict[str, Any]:
    job = bundle.job
    words = vertical_words(job) if job.partition == "vertical" else _protection(bundle)
    return joint_fields(job, f"{job.partition}/{job.disclosure}") | {"protection": words}


def _protection(bundle: Bundle) -> list[str]:
    """What was protected, from whom, under which assumptions, in plain words."""
    job = bundle.job
    return [
        "No party sent a row or an uncombined count to another party.",
        _origin(job),
        "The parties are assumed to follow the protocol (semi-honest) and the certificates to be the right ones.",
        *(_sealed_words(job) if job.disclosure == "sealed" else _leader_words(job)),
        f"Toward a party, K counts others: it can subtract its own rows from the table. {_colluders(job)}",
    ]


def _origin(job: Job) -> str:
    if not job.names("plain"):
        return "The table is the sum of all parties' counts: no row carries its origin."
    return (
        "Because of plain columns each party sent its generalized rows, shuffled, to the coordinator, who saw which "
        "party each came from; in the table all are shuffled again."
    )


def _sealed_words(job: Job) -> list[str]:
    return [
        f"Every count was split into two shares, one at {job.leader_name}, one at {job.deputy_name} (the compute "
        "pair), and evaluated inside garbled circuits: no count finer than the table was opened to anybody. This "
        "holds as long as these two do not put their shares together.",
        "Finer than the table are only the order and the split points of discarded candidates (`discarded`), and "
        f"that those values of the cut which were never taken are no candidates: {_no_candidate(job)}.",
    ]


def _no_candidate(job: Job) -> str:
    """What it says of a value that can be specialized that it never was taken."""
    if job.goal == "classification":
        return "no specialization of them tells the classes apart"
    return "all records of such an interval lie in one cell of its grid (which one is not told)"


def _leader_words(job: Job) -> list[str]:
    words = [
        f"The leader, {job.leader_name}, learned the global counts of every candidate, also of discarded ones: finer "
        "than the table. `disclosure: sealed` avoids that."
    ]
    if job.secure_sum == "ring":
        words.append("Sums went around a ring: a party's two neighbours together learn its counts.")
    return words


def _colluders(job: Job) -> str:
    if len(job.roster) == 2:
        return "With two parties, what remains is the other's generalized table."
    return f"Any {len(job.roster) - 1} parties together know what the remaining one contributed, in generalized form."


def write_report(
    folder: Path,
    report: Mapping[str, Any],
    seconds: Mapping[str, float],
    parties: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write the report with its account of costs: our seconds by phase, and what each party reported."""
    cost = {"seconds": dict(seconds), "parties": dict(parties or {})}
    text = json.dumps({**report, "cost": cost}, indent=1, ensure_ascii=False)
    (folder / REPORT).write_text(text + "\n", encoding="utf-8")
