"""Sentences for the owner's console: why the columns of a table were not specialized further, and what to try."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from anonymize.criteria.criterion import Demand
from anonymize.lkc.requirement import reliefs
from anonymize.lkc.stopped import Blocked, Stopped
from jobs.data.counted import counted
from jobs.file.job import Job
from jobs.file.makers import ROOT
from jobs.lkc.entries import entries_of, uncovered

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
    """Say what would free detail of a single holder's table: a line for all columns with the same remedy."""
    unpredictive = [name for name, found in stopped.items() if any(e.reason in _WITHOUT_GAIN for e in found)]
    weaker = {name: dict.fromkeys(_weaker(job, name, found)) for name, found in stopped.items()}
    return freeing(job, unpredictive, weaker, lambda names: _further(job, names, blocked))


def freeing(
    job: Job,
    unpredictive: Collection[str],
    weaker: Mapping[str, Iterable[str]],
    further: Callable[[Sequence[str]], Iterable[str]],
) -> list[str]:
    """Return the remedies in lines: a line for all columns with the same remedy.

    unpredictive:  columns whose steps tell nothing more of the class.
    weaker:        by column, the changes of the requirement that may free detail, if any.
    further:       returns the other remedies of some columns.
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, changes in weaker.items():
        if said := tuple(changes):
            alike.setdefault(said, []).append(name)
    lines = [f"{', '.join(unpredictive)}: {KEEP_UNPREDICTIVE}"] if unpredictive and job.names("class") else []
    for said, names in alike.items():
        lines.append(f"{', '.join(names)}: to free detail, {', or '.join([*further(names), *said])}")
    return lines


def weakened(broken: Sequence[Demand], n_columns: int) -> Iterator[str]:
    """Yield the changes of the requirement that may free some values of a column.

    n_columns:  the most columns of a group that breaks the demands.
    """
    yield from reliefs(broken)
    if n_columns > 1:
        yield "lower L"
        yield "ask for coarser values of the neighbours"


def _weaker(job: Job, name: str, found: Sequence[Stopped]) -> Iterator[str]:
    """Yield the changes of the requirement for the values of a column that a threshold stopped, in one order."""
    held = {each.reason for each in found if each.columns is not None}
    entries = [entry for entry in uncovered(entries_of(job)) if name in entry.columns]
    demands = (demand for entry in entries for demand in entry.demands)
    most = max((each.columns or 0 for each in found), default=0)
    yield from weakened([each for each in demands if each.name in held], most)


def _further(job: Job, held: Sequence[str], blocked: Mapping[tuple[str, str], Blocked]) -> Iterator[str]:
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


def one_by_one(job: Job, held: Sequence[str]) -> list[str]:
    """Return the remedy `refine: child`, for the columns whose children leave together; empty without one."""
    together = [
        name
        for name in held
        if job.columns[name].taxonomy is not None and job.columns[name].refine != "child"
    ]
    return [f"let children leave one by one (`refine: child` at {', '.join(together)})"] if together else []
