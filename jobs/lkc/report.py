"""`report.json` of an LKC release.

The report states the requirement, the decisions, the worth, the reveals and the cost. Everything in the report is
public in the job, published in the table, or stands in the reveal ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from anonymize.lkc.metrics import measure_loss, measure_partitions, measure_risk
from anonymize.lkc.stopped import Stopped
from anonymize.release import Release, cut_labels
from anonymize.scores.score import Score
from anonymize.table import Ints, Schema
from anonymize.tds import Outcome, Step
from jobs import plain_columns
from jobs.data.counted import noun
from jobs.data.rows_read import RowsRead
from jobs.file.columns import Column
from jobs.lkc.entries import entries_of, greatest_k
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import parts_apart, told_beside_groups
from jobs.lkc.requirement import job_score
from jobs.lkc.sentences import linked_words, notes_on, verified_words
from jobs.lkc.verify import Verified, protected_bounds, told_apart, verified_fields
from jobs.release.report import asked_fields, printed_step
from jobs.task import Shown, Task

_DIGITS = 6
"""Decimal digits of a printed score."""


def build_report(
    task: Task,
    outcome: Outcome,
    release: Release,
    verified: Sequence[Verified],
    class_counts: Sequence[Ints],
    *,
    reveals: Sequence[Mapping[str, Any]] = (),
    stopped: Mapping[str, Sequence[Stopped]] | None = None,
) -> dict[str, Any]:
    """Describe a run.

    verified:      what was found of every entry of the requirement.
    class_counts:  per column, class counts of the published values by first leaf.
    """
    decided = _decided_fields(task, outcome, release, class_counts)
    report = report_of(task, outcome.schema, release, verified, decided, reveals=reveals)
    if stopped is not None:
        report["stopped"] = {name: [_stopped_fields(s) for s in found] for name, found in stopped.items()}
    return report


def report_of(
    task: Task,
    schema: Schema,
    release: Release,
    verified: Sequence[Verified],
    decided: Mapping[str, Any],
    *,
    reveals: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Describe a run of any method; decided: the method's decisions, and the worth of the table."""
    return {
        **told_by_table(task, release, verified),
        "rows": release.n_records,
        **decided,
        **risk_fields(task, release),
        **task.mode.fields(task, None, release),
        "reveals": list(reveals),
    }


def told_by_table(task: Task, release: Release, verified: Sequence[Verified]) -> dict[str, Any]:
    """Return the part of a report that every reader can compare: it follows from job and released table alone."""
    return asked_fields(task) | {
        "requirements": verified_fields(verified),
        "sensitive": protected_fields(task, release),
        "notes": notes_on(task),
        "verified": verified_words(task),
    }


def _decided_fields(
    task: Task, outcome: Outcome, release: Release, class_counts: Sequence[Ints]
) -> dict[str, Any]:
    applied = [step for step in outcome.steps if step.applied]
    discarded = [step for step in outcome.steps if not step.applied]  # the scores are finer than the table
    score = job_score(task.job)
    told = outcome.schema.class_name is not None or not score.needs_class  # else finer than the table

    def scored(step: Step) -> bool:
        return told and not step.naming

    return {
        "specializations": [
            _step_fields(step, outcome)
            | (_score_fields(score, step, class_counts[step.candidate.column]) if scored(step) else {})
            for step in applied
        ],
        "discarded": [_step_fields(step, outcome) for step in discarded],
        "cut": {c.name: list(cut_labels(c, outcome.cut, i)) for i, c in enumerate(outcome.schema.qid)},
        "metrics": _metrics(task, outcome, release),
    }


def _metrics(task: Task, outcome: Outcome, release: Release) -> dict[str, Any]:
    form = form_of(task.job)
    lost = form.quasi.lost(
        lambda: {"generalization_loss": measure_loss(release, outcome.schema, outcome.cut)}
    )
    return {**measure_partitions(release, form.groups(task.job)), **lost}


def _step_fields(step: Step, outcome: Outcome) -> dict[str, Any]:
    fields = printed_step(outcome.schema, step)
    if step.violation is not None:
        fields["violates"] = step.violation.criterion
        fields["columns"] = step.violation.n_columns
        if step.violation.column is not None:
            fields["sensitive"] = step.violation.column
    return fields


def _score_fields(score: Score, step: Step, class_counts: Ints) -> dict[str, Any]:
    """Return the score in its unit, rounded, and the exact integer for comparing candidates (docs/report.md)."""
    in_its_unit, exact = score.published(step, class_counts)
    return {"score": round(in_its_unit, _DIGITS), "gain": exact}


def _stopped_fields(stopped: Stopped) -> dict[str, Any]:
    return {key: value for key, value in asdict(stopped).items() if value is not None}


def protected_fields(task: Task, release: Release) -> dict[str, Any]:
    """Return the report's fields of every sensitive column: the protected values, and how."""
    return {
        bound.column: {"C": str(bound.confidence), "values": sorted(bound.values)}
        | _tested_fields(task.job.columns[bound.column])
        for bound in protected_bounds(told_apart(release, task), task)
    }


def _tested_fields(column: Column) -> dict[str, Any]:
    """Return the level of the categories in a taxonomy, the published detail, and the distance, where stated."""
    of_level = {} if column.level is None else {"level": column.level, "publish": column.publish or "value"}
    return of_level if column.distance is None else {**of_level, "distance": column.distance}


def risk_fields(task: Task, release: Release) -> dict[str, Any]:
    """Count the records in small groups on all quasi-identifiers."""
    return {"risk": risk_of(task, release)}


def risk_of(
    task: Task, release: Release, further: Mapping[str, Any] = MappingProxyType({}), without: str = ""
) -> dict[str, Any]:
    """Return the risk of a release.

    further:  additional fields.
    without:  a sentence on records outside the release.
    """
    risk = measure_risk(release, task.job.names("qid"), greatest_k(entries_of(task.job)))
    meaning = form_of(task.job).quasi.risk(task, risk) + without
    plain = plain_columns.measure(task.job.columns, release)
    further = {**further, **({"as_it_is": plain} if plain.get("meaning") else {})}
    linked = _linked(task, release)
    if linked is None:
        return {**asdict(risk), **further, "meaning": meaning}
    meaning = f"{meaning} {linked_words(task, linked, release.n_records)}"
    return {**asdict(risk), "linked": linked, **further, "meaning": meaning}


def _linked(task: Task, release: Release) -> int | None:
    """Count records with values of a block, or a class, that no order hides; None where the release links all."""
    job, parts = task.job, parts_apart(task.job)
    if not parts:
        return None
    from anonymize.lkc.linked_columns import count_linked, groups_of

    shuffled_among = (*form_of(job).groups(job), *told_beside_groups(job))
    return count_linked(release, groups_of(release, shuffled_among), parts)


def tells_discarded(task: Task) -> bool:
    """Return True if a report has the discarded candidates: not in a joint mode that hides validity."""
    told = [(each.name, each.to) for each in task.reveals]
    return not told or ("valid", "all") in told


def shown_fields(task: Task, report: Mapping[str, Any]) -> Shown:
    """Return the fields for the console: a single holder's left-out rows, records below K, settings without effect.

    If a joint mode does not tell everybody the validity of candidates, a report knows no discarded candidates.
    """
    discarded = f", {len(report['discarded'])} discarded" if tells_discarded(task) else ""
    rows, made = report["rows"], len(report["specializations"])
    size = f"{rows} {noun(rows, 'row', 'rows')}, {made} {noun(made, 'specialization', 'specializations')}{discarded}"
    risk = report.get("risk", {})
    worth = [risk["meaning"]] if risk.get("below_k") or risk.get("linked") else []
    worth += [risk["as_it_is"]["meaning"]] if "as_it_is" in risk else []
    withheld = [report["withheld"]["meaning"]] if "withheld" in report else []
    notes = [*report.get("notes", []), *(_stopped_jointly(task, report) if task.job.roster else ())]
    return Shown(size, {"rows": rows}, [*left_out(report), *withheld, *worth, *notes])


def _stopped_jointly(task: Task, report: Mapping[str, Any]) -> list[str]:
    """Say why a joint table is no finer, and what would free detail."""
    from jobs.lkc.joint_stopping import advice_jointly, reasons_jointly

    return [*reasons_jointly(task, report), *advice_jointly(task, report)]


def left_out(report: Mapping[str, Any]) -> list[str]:
    """Say how many rows of a single holder were left out, and why."""
    rows = RowsRead(**report["data"]) if "data" in report else None
    return rows.words() if rows is not None and rows.n_dropped else []
