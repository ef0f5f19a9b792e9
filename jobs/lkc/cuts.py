"""Top-down tables as readers see the tables: labels of nodes, and a single cut of every column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from anonymize.cut import Cut, top
from anonymize.lkc.metrics import measure_loss, measure_partitions
from anonymize.release import Release, cut_labels
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Taxonomy
from jobs.errors import PartyError
from jobs.file.schema import qid_of
from jobs.lkc.forms.form import form_of
from jobs.lkc.joint_stopping import stopped_jointly
from jobs.lkc.report import tells_discarded
from jobs.release.checking import Undetermined, compare
from jobs.release.encoded import MALFORMED
from jobs.release.steps import MOST_READINGS, candidates_told
from jobs.task import Task

_NAME = re.compile(r"[A-Za-z][A-Za-z_ ]{0,31}")
"""Name of a threshold, or of another reason against specializing values."""


def known_labels(column: QidColumn) -> Callable[[str], bool]:
    """Return a test of labels: a node of a taxonomy, the rest of a node, or an interval of a grid."""
    values = column.values
    if isinstance(values, Taxonomy):
        return column.rest_labels.union(values.printed).__contains__
    return lambda label: values.interval(label) is not None


def readings(task: Task, release: Release, report: Mapping[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """Yield the expected content of a report for each cut that its specializations lead to, if the cut fits the
    table.

    Where quasi-identifiers are published unchanged, no table shows specializations and cut. Raises PartyError.
    """
    form, columns = form_of(task.job), qid_of(task.job, task.taxonomies)
    metrics = measure_partitions(release, form.groups(task.job))
    labels: Mapping[str, Any]
    if not form.quasi.generalized(task.job):
        steps = _Steps({column.name: _is_text for column in columns})
        labels = {column.name: Undetermined(_are_texts) for column in columns}
        yield {
            "specializations": Undetermined(steps.are_steps),
            "cut": labels,
            "metrics": metrics,
        } | steps.beside(task)
        return
    steps, schema = _Steps({c.name: known_labels(c) for c in columns}), Schema(columns, None, ("",))
    for cut in _cuts(schema, report.get("specializations"), release, path):
        labels = {c.name: cut_labels(c, cut, number) for number, c in enumerate(columns)}
        yield {
            "specializations": [_of_step(step) for step in report["specializations"]],
            "cut": labels,
            "metrics": metrics | {"generalization_loss": measure_loss(release, schema, cut)},
            **steps.beside(task, labels),
            **(_stopped_jointly(task, cut, release, steps, report) if task.job.roster else {}),
        }


def _stopped_jointly(
    task: Task, cut: Cut, release: Release, steps: _Steps, report: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `stopped` of a joint report, which follows from the table and the told discarded steps."""
    discarded = report.get("discarded") if tells_discarded(task) else None
    if discarded is not None and not steps.are_steps(discarded):
        return {}  # `discarded` itself is then told as wrong
    return {"stopped": stopped_jointly(task, cut, release, discarded)}


def _cuts(schema: Schema, told: Any, release: Release, path: Path) -> list[Cut]:
    """Return the cuts, one or several, that specializations lead to and that fit the values of a table.

    Raises PartyError without a fitting cut.
    """
    found = [top(schema)]
    try:
        for step in told:
            refined = (cut.specialized(way) for cut in found for way in candidates_told(schema, cut, step))
            found = list(dict.fromkeys(refined))[:MOST_READINGS]
    except MALFORMED:
        found = []
    if not found:
        raise PartyError(
            "verification-failed",
            f"{path}: `specializations` do not lead from the most general values to finer ones, step by step",
        )
    for number, column in enumerate(schema.qid):
        values = set(release.columns[column.name].labels)
        found = [cut for cut in found if values <= set(cut_labels(column, cut, number))]
        if not found:
            raise PartyError(
                "verification-failed",
                f"{path}: `specializations` do not lead to the values of column {column.name} in the table",
            )
    return found


def _of_step(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a specialization in the form of reports, with placeholders for fields that no table shows."""
    return {key: step[key] for key in ("attribute", "value", "children")} | _SCORED


_SCORED = {
    "naming": Undetermined(lambda said: said is True, is_optional=True),
    "score": Undetermined(lambda said: type(said) in (int, float), is_optional=True),
    "gain": Undetermined(lambda said: type(said) is int, is_optional=True),
}


@dataclass(frozen=True)
class _Steps:
    """Form of specializations in reports. known: by column the test of its labels."""

    known: Mapping[str, Callable[[str], bool]]

    def beside(self, task: Task, cut: Mapping[str, Sequence[str]] | None = None) -> dict[str, Any]:
        """Return the report's fields of rejected candidates. Nothing in the table determines the fields.

        cut:  the labels of every column, which `stopped` lists by the reason against specializing.
        """
        discarded: Undetermined | list[Any] = Undetermined(self.are_steps) if tells_discarded(task) else []
        return {"discarded": discarded, "stopped": Undetermined(partial(self._are_stopped, cut))}

    def are_steps(self, said: Any) -> bool:
        return isinstance(said, list) and all(map(self._is_step, said))

    def _is_step(self, said: Any) -> bool:
        broken = {
            "violates": Undetermined(_is_name, is_optional=True),
            "columns": Undetermined(lambda n: type(n) is int, is_optional=True),
            "sensitive": Undetermined(_is_text, is_optional=True),
        }
        form = {
            "attribute": Undetermined(lambda name: _is_text(name) and name in self.known),
            "value": Undetermined(_is_text),
            "children": Undetermined(_are_texts),
            **_SCORED,
            **broken,
        }
        if compare(form, said).other is not None:
            return False
        return all(map(self.known[said["attribute"]], (said["value"], *said["children"])))

    def _are_stopped(self, cut: Mapping[str, Sequence[str]] | None, said: Any) -> bool:
        """Return True if every label of a cut has exactly one reason."""
        form = {
            "reason": Undetermined(_is_name),
            "columns": Undetermined(lambda n: type(n) is int, is_optional=True),
            "sensitive": Undetermined(_is_text, is_optional=True),
            "values": Undetermined(_are_texts),
        }
        if not isinstance(said, dict) or said.keys() != self.known.keys():
            return False
        for name, reasons in said.items():
            if not isinstance(reasons, list) or any(
                compare(form, each).other is not None for each in reasons
            ):
                return False
            if cut is not None and sorted(v for each in reasons for v in each["values"]) != sorted(cut[name]):
                return False
        return True


def _is_text(said: Any) -> bool:
    return isinstance(said, str)


def _are_texts(said: Any) -> bool:
    return isinstance(said, list) and all(map(_is_text, said))


def _is_name(said: Any) -> bool:
    return _is_text(said) and _NAME.fullmatch(said) is not None
