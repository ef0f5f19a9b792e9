"""Requirement of an LKC table, counted again from its labels, for a table of any maker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anonymize.grid import Grid
from anonymize.release import Release, only_found
from anonymize.taxonomy import Taxonomy
from anonymize.verification.tables import (
    Bound,
    Claim,
    Examined,
    Finding,
    examine,
    in_test_values,
    verify_cells,
)
from jobs.errors import PartyError
from jobs.file.values import require_one_spelling, values_of
from jobs.lkc.entries import Entry, covering, entries_of, entries_read
from jobs.lkc.forms.form import form_of
from jobs.lkc.options.option import ByRow, Figure
from jobs.lkc.requirement import bounds_of
from jobs.task import Task


@dataclass(frozen=True)
class Verified:
    """Entry of a requirement, with the findings on its groups."""

    entry: Entry
    examined: Examined

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures of the worst groups, by key."""
        return {**_FIGURES, **{key: f for option in self.entry.options for key, f in option.figures.items()}}

    @property
    def worst(self) -> str:
        """Clauses on the worst groups."""
        told = (self.figures[key].told(f, column) for (key, column), f in self.examined.worst.items())
        return ", ".join(told)


_FIGURES: Mapping[str, Figure] = {
    "K": Figure("smallest_group", "smallest group {}"),
    "C": Figure("largest_share", "largest share of a protected value of {column} {:.1%}", is_share=True),
}
"""Figures of every entry."""


def verify_release(release: Release, task: Task, held: Sequence[str] | None = None) -> Finding | None:
    """Check a table against its job's requirement, from its labels alone.

    held:  the own sensitive columns of a party of a vertical job; None: all.
    """
    return next(
        (
            found.examined.finding
            for found in _verified(release, task, entries_read(task.job), held)
            if found.examined.finding
        ),
        None,
    )


def _verified(
    release: Release, task: Task, entries: Sequence[Entry], held: Sequence[str] | None
) -> Iterator[Verified]:
    """Yield the findings entry by entry, redundant entries included."""
    names = task.job.names("sensitive", "class")
    require_one_spelling(task.job, {n: release.columns[n].labels for n in names if n in release.columns})
    release = told_apart(release, task)
    for entry in entries:
        claim = claim_of(release, task, entry, held)
        examined = examine(release, claim)
        if examined.finding is None and task.job.lkc.insider:
            cells = verify_cells(release, (*entry.columns, *task.job.names("class")), claim)
            examined = replace(examined, finding=cells)
        yield Verified(entry, examined)


def told_apart(release: Release, task: Task) -> Release:
    """Return a table with the categories of its sensitive columns, in the terms of a requirement.

    The categories come from the taxonomies alone, not from the run.
    """
    columns = {name: task.job.columns[name] for name in task.job.names("sensitive")}
    coarse = {n: c.level for n, c in columns.items() if c.level is not None and c.publish is None}
    return in_test_values(release, {n: _ancestors(task.taxonomies[n], level) for n, level in coarse.items()})


def _ancestors(taxonomy: Taxonomy | Grid, level: int) -> dict[str, str]:
    """Map every value of a taxonomy to its ancestor ``level`` steps below the root; a higher value to itself."""
    assert isinstance(taxonomy, Taxonomy), "a grid has no levels"
    parent = {child: place for place, children in enumerate(taxonomy.children) for child in children}
    found = {}
    for place, children in enumerate(taxonomy.children):
        if not children:
            path = [place]
            while path[0] in parent:
                path.insert(0, parent[path[0]])
            found[taxonomy.printed[place]] = taxonomy.printed[path[min(level, len(path) - 1)]]
    return found


def claim_of(release: Release, task: Task, entry: Entry, held: Sequence[str] | None = None) -> Claim:
    """Return the job file's claim about its table for an entry, word for word; C by column.

    release:  in categories (:func:`told_apart`).
    held:     the visible sensitive columns; None: all.
    """
    job = task.job
    looked_at = job.names("sensitive") if held is None else held
    asked: dict[str, Any] = {"K": entry.said.K, "C": {name: entry.bounds[name] for name in looked_at}}
    for option in entry.options:
        asked |= option.claim(task, looked_at)
    protected = _protected_of(release, task, looked_at)
    form = form_of(job)
    return Claim(*form.quasi.known(entry, form.groups(job)), asked, protected)


def _protected_of(release: Release, task: Task, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the protected categories of some sensitive columns; all of the table's where the job lists none.

    A label without a row is no value of the table: rows that were left out may have the value.
    """
    return {n: frozenset(values_of(task, n, only_found(release.columns[n]).labels).protected) for n in names}


def protected_bounds(release: Release, task: Task) -> list[Bound]:
    """Return the protected categories and the smallest C of every sensitive column.

    release:  in categories.
    """
    values = _protected_of(release, task, task.job.names("sensitive"))
    return [Bound(name, values[name], bound) for name, bound in bounds_of(task.job).items()]


def require_verified(release: Release, task: Task, held: Sequence[str] | None = None) -> tuple[Verified, ...]:
    """Raise PartyError unless the table meets its requirement; return the findings.

    This check is the last gate before anything is written, and before the columns ``held`` by a party leave the
    party.
    """
    return _required(release, task, entries_read(task.job), held)


def require_linked(release: Release, task: Task) -> None:
    """Raise PartyError unless linked rows meet all requirements, also on values that a release does not link."""
    entries = entries_of(task.job)
    if entries != entries_read(task.job):
        _required(release, task, entries, None)


def _required(
    release: Release, task: Task, entries: Sequence[Entry], held: Sequence[str] | None
) -> tuple[Verified, ...]:
    verified = []
    for found in _verified(release, task, entries, held):
        if found.examined.finding is not None:
            raise PartyError("verification-failed", str(found.examined.finding))
        verified.append(found)
    return tuple(verified)


def verified_fields(verified: Sequence[Verified]) -> list[dict[str, Any]]:
    """Return the report's fields of every entry: its demands, the entry that implies it, and the table's figures."""
    by_place = covering([found.entry for found in verified])
    return [
        asked_of(found.entry)
        | ({"covered_by": by_place[found.entry.place]} if found.entry.place in by_place else {})
        | _worst_fields(found)
        for found in verified
    ]


def asked_of(entry: Entry) -> dict[str, Any]:
    """Return the demands of an entry, with defaults spelled out."""
    said = entry.said
    return {
        "columns": list(entry.columns),
        "L": entry.known,
        "K": said.K,
        "C": {name: str(bound) for name, bound in entry.bounds.items()},
        **{key: told for option in entry.options for key, told in option.fields().items()},
    }


def _worst_fields(found: Verified) -> dict[str, Any]:
    """Return the figure of the worst group for each demand; shares rounded."""
    fields: dict[str, Any] = {}
    for (key, column), figure in found.examined.worst.items():
        of_key = found.figures[key]
        name, value = of_key.name, of_key.rounded(figure)
        fields |= {name: value} if column is None else {name: {**fields.get(name, {}), column: value}}
    return fields


def require_counted(known: ByRow, task: Task) -> None:
    """Raise PartyError unless the table meets the demands that need the party or person of each row."""
    tested = replace(known, release=told_apart(known.release, task))
    for entry in entries_of(task.job):
        for option in entry.options:
            option.require_counted(tested, claim_of(tested.release, task, entry))
