"""Sentences for the owner's console: why the columns of a table were not specialized further, and what to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from anonymize.lkc.stopped import Blocked, Stopped
from jobs.data.counted import counted
from jobs.file.job import Job
from jobs.file.makers import ROOT

NO_NEED = frozenset({"leaf", "empty"})
"""Ends of a column that need no sentence: values without a finer value, and values without a record."""
_MISSING = "?"
_MOST_NAMED = 3
_WITHOUT_GAIN = frozenset({"no gain", "adds nothing"})
KEEP_UNPREDICTIVE = "`goal: general` keeps detail that predicts no class"
"""Remedy for columns whose steps predict no class."""


def reasons(
    job: Job, stopped: Mapping[str, Sequence[Stopped]], blocked: Mapping[tuple[str, str], Blocked]
) -> dict[str, str]:
    """Return the reasons of each column in a line; columns with nothing but leaves have no reason.

    Several reasons are told with their values.

    blocked:  forbidden groups, by column and printed value. The sentences name a group of each reason.
    """
    lines = {}
    for name, found in stopped.items():
        values: dict[str, list[str]] = {}
        for each in found:
            if each.reason not in NO_NEED:
                values.setdefault(_reason(job, name, each, blocked), []).extend(each.values)
        if len(values) == 1:
            (lines[name],) = values
        elif values:
            lines[name] = "; ".join(
                f"{named(job, name, those)}: {reason}" for reason, those in values.items()
            )
    return lines


def named(job: Job, column: str, values: Sequence[str]) -> str:
    """Return the first printed values of a column in words, and the number of more values."""
    more = f" and {len(values) - _MOST_NAMED:,} more" if len(values) > _MOST_NAMED else ""
    return ", ".join(_value_words(job, column, value) for value in values[:_MOST_NAMED]) + more


def _value_words(job: Job, column: str, value: str) -> str:
    """Return a printed value; the sign of suppressed values with its meaning."""
    asked = job.columns.get(column)
    is_suppressed = asked is not None and asked.suppress is not None and value == ROOT
    return f"the suppressed values ({ROOT})" if is_suppressed else value


def _reason(job: Job, name: str, stopped: Stopped, blocked: Mapping[tuple[str, str], Blocked]) -> str:
    if stopped.reason in _WITHOUT_GAIN:
        classes = [*job.names("class"), "the clusters"]
        return f"a step tells nothing more of {classes[0]}"
    if stopped.reason == "one value":
        return "all records have the same finer value"
    threshold = stopped.reason if stopped.sensitive is None else f"{stopped.reason} of {stopped.sensitive}"
    groups = [blocked[name, value] for value in stopped.values if (name, value) in blocked]
    if not groups:
        return threshold if stopped.columns in (None, 1) else f"{threshold} on {stopped.columns} columns"
    least = min(groups, key=lambda group: (len(group.values), group.records))
    values = ", ".join(f"{column} = {_value_words(job, column, value)}" for column, value in least.values)
    return f"{threshold}: {values} would have {counted(least.records, 'record', 'records')}{_excess_words(least)}"


def _excess_words(group: Blocked) -> str:
    """Return the frequent protected value of a group, with the share that C allows; empty for other criteria."""
    if group.excess is None:
        return ""
    value, n, bound = group.excess.value, group.excess.records, group.excess.bound
    return f", {n:,} of them ({n / group.records:.1%}) with {value}, and C={bound} allows {float(bound):.1%}"


def advice(
    job: Job, stopped: Mapping[str, Sequence[Stopped]], blocked: Mapping[tuple[str, str], Blocked]
) -> list[str]:
    """Return what frees the columns that stayed whole; empty if no column did."""
    whole = {name: found[0] for name, found in stopped.items() if _is_whole(found)}
    useless = [name for name, found in whole.items() if found.reason in _WITHOUT_GAIN]
    held = [name for name, found in whole.items() if found.columns is not None]
    lines = []
    if useless and job.names("class"):
        lines.append(f"{', '.join(useless)}: {KEEP_UNPREDICTIVE}")
    if held:
        lines.append(f"{', '.join(held)}: to free detail, {', or '.join(_remedies(job, held, blocked))}")
    return lines


def _is_whole(found: Sequence[Stopped]) -> bool:
    """Return True for a column with a single value in the cut that could be finer."""
    return len(found) == 1 and len(found[0].values) == 1 and found[0].reason not in NO_NEED


def _remedies(job: Job, held: Sequence[str], blocked: Mapping[tuple[str, str], Blocked]) -> Iterator[str]:
    """Yield the settings of a job that keep rare values from holding a column back."""
    missing = [
        name
        for name in held
        if any(column == name and (name, _MISSING) in group.values for (column, _), group in blocked.items())
    ]
    if missing:
        yield f"leave out the rows without a value (`missing: drop` at {', '.join(missing)})"
    yield from one_by_one(job, held)
    if job.lkc.withhold is None and not job.names("plain"):
        yield "suppress a few rows of rare groups (`withhold: 1/50`)"
    yield "ask for a smaller K or L, or for coarser values of the neighbours"


def one_by_one(job: Job, held: Sequence[str]) -> list[str]:
    """Return the remedy `refine: child`, for the columns whose children leave together; empty without one."""
    together = [
        name
        for name in held
        if job.columns[name].taxonomy is not None and job.columns[name].refine != "child"
    ]
    return [f"let children leave one by one (`refine: child` at {', '.join(together)})"] if together else []
