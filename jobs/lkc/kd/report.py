"""Fields of a kd report beside the fields of all LKC reports: the cuts, and the worth of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from anonymize.kd.metrics import Groups, measure_loss
from anonymize.kd.table import BoxedTable
from anonymize.release import Release
from anonymize.table import Ints, Schema
from jobs.data.counted import noun
from jobs.lkc.forms.form import form_of
from jobs.lkc.linked_columns import blocks_of
from jobs.lkc.report import left_out, report_of
from jobs.lkc.verify import Verified, protected_bounds, told_apart
from jobs.task import Shown, Task

_DIGITS = 6
"""Decimal digits of shares. Rounding lets everybody compute the same shares again."""


def build_report(
    task: Task,
    schema: Schema,
    table: BoxedTable,
    cuts: Ints,
    release: Release,
    verified: Sequence[Verified],
    *,
    reveals: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Describe a run.

    cuts:      numbers of groups cut, by column and earlier cuts.
    verified:  findings on the requirement.
    """
    lost = form_of(task.job).quasi.lost(lambda: asdict(measure_loss(schema, table)))
    decided = cut_fields(schema, cuts) | {"metrics": metrics_of(task, release) | lost}
    return report_of(task, schema, release, verified, decided, reveals=reveals)


def cut_fields(schema: Schema, cuts: Ints) -> dict[str, Any]:
    """Count the groups cut at each depth: groups after no cut, after one cut, two, ..., by column; not each cut."""
    return {"cuts": {column.name: own.tolist() for column, own in zip(schema.qid, cuts, strict=True)}}


def metrics_of(task: Task, release: Release) -> dict[str, Any]:
    """Measure the groups of the table, and the disclosure of sensitive columns, as every reader can."""
    tested = told_apart(release, task)
    blocks = blocks_of(task.job)
    columns = form_of(task.job).groups(task.job)
    groups = Groups(tested, columns, protected_bounds(tested, task), blocks)
    inferences = {name: _rounded(asdict(found)) for name, found in groups.inferences.items()}
    told: dict[str, Any] = {"inference": inferences} if inferences else {}
    if len(blocks) == 1 or any(len(block) > 1 for block in blocks):
        told["linked_exposure"] = groups.linked_exposure
    return _rounded(asdict(groups.metrics)) | told


def _rounded(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: round(value, _DIGITS) if isinstance(value, float) else value for key, value in fields.items()
    }


def shown_fields(task: Task, report: Mapping[str, Any]) -> Shown:
    """Return the fields for the console: rows and groups, a holder's left-out rows, settings without effect."""
    rows, groups = report["rows"], report["metrics"]["groups"]
    size = f"{rows} {noun(rows, 'row', 'rows')}, {groups} {noun(groups, 'group', 'groups')}"
    risk = report.get("risk", {})
    worth = [_worth(report["metrics"]), *([risk["meaning"]] if risk.get("linked") else [])]
    return Shown(
        size, {"rows": rows, "groups": groups}, [*left_out(report), *worth, *report.get("notes", [])]
    )


def _worth(metrics: Mapping[str, Any]) -> str:
    size = (
        f"a record's group has {metrics['average_group']:,.1f} records on average, the smallest "
        f"{metrics['smallest']:,}"
    )
    if "ncp" not in metrics:
        return size
    return f"{size}; {metrics['ncp']:.1%} of what quasi-identifiers say is generalized away (NCP)"
