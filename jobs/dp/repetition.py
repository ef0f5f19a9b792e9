"""Commons of results of both methods of differential privacy: reveals, and repetition of an earlier result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from anonymize.joint.disclosure import RevealLedger
from jobs.errors import PartyError, printable
from jobs.release.checking import Undetermined, compare_readings, of_any_report
from jobs.release.csv import REPORT
from jobs.release.reveals import repeated_in
from jobs.task import Task

_DATA_SIZES = frozenset({"common_records"})
"""Reveals whose shape is a number of records, known to the parties only."""


@dataclass(frozen=True, kw_only=True)
class Repeatable:
    """Part of a result that is not released.

    reveals:  joint: the reveal ledger, without numbers of records.
    repeated: joint: the release of an earlier run, given again: nothing was computed, opened or charged.
    """

    reveals: tuple[dict[str, Any], ...] = ()
    repeated: bool = False

    @property
    def told(self) -> dict[str, Any]:
        return {"reveals": list(self.reveals), "repeated": self.repeated}

    @property
    def own(self) -> dict[str, Any]:
        """Every party's reveal ledger has the same."""
        return {"repeated": self.repeated, "reveals": list(self.reveals)}

    def completed(self, told: Sequence[Mapping[str, Any]]) -> Self:
        """Return the result, with `repeated` from all parties' words. Raises PartyError if the parties differ."""
        return replace(self, repeated=repeated_in(told))


REPEATED = "repeated"
"""Key of a joint report without an expectation: True if the release repeats an earlier run."""


def require_report(
    task: Task, readings: Iterable[Mapping[str, Any]], report: Mapping[str, Any], tables: Sequence[str]
) -> tuple[str, ...]:
    """Compare a report with the expected reports of job and release. Raises PartyError without a match.

    readings:  one or more expected reports.
    tables:    the files of the release. The expected reports follow from the first file.

    Returns the report's keys without an expectation, which were not compared.
    """
    is_again = {REPEATED: Undetermined(lambda said: isinstance(said, bool))} if task.job.roster else {}
    others = of_any_report(task, tables)
    compared = compare_readings(({**following, **is_again, **others} for following in readings), report)
    if compared.other is not None:
        raise PartyError(
            "verification-failed",
            f"{REPORT}: `{printable(compared.other)}` does not follow from job and {tables[0]}",
        )
    return compared.undetermined


def told_reveals(reveals: RevealLedger) -> list[dict[str, Any]]:
    """Return the reveals that all parties saw happen, in the form of results."""
    return [_reveal_fields(r.name, r.shape, r.iteration) for r in reveals.reveals if r.to == "all"]


def _reveal_fields(name: str, shape: tuple[int, ...], iteration: int) -> dict[str, Any]:
    known = {} if name in _DATA_SIZES else {"shape": list(shape)}
    return {"name": name, **known, "to": "all", "iteration": iteration}


def begun_reveals(task: Task) -> RevealLedger:
    """Return the reveal ledger of a replayed run, with the reveals of the alignment."""
    reveals = RevealLedger(task.mode.name)
    if task.partition.matched:
        reveals.reveal("set_sizes", None, "all", (len(task.job.roster),))
        reveals.reveal("common_records", None, "all", ())
        if task.schema.class_name is not None:
            reveals.reveal("class_agreement", None, "all", ())
    return reveals
