"""LKC releases of a data set, taken together: `policy.own_k` holds for all releases together, not only for each.

Sums and differences of two tables give counts of groups that neither table has. On columns in both tables, these
groups are unions of groups of their common refinement. So a party notes in its ledger the publications of each
charged run, before counts are opened. Before a later run opens counts, the party refines its new groups by the
earlier groups, on at most L columns, and counts its own records there, without a message.

A release says nothing of its missing columns. So on given columns, groups are refined by the releases with all of
these columns.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Protocol, Self

import numpy as np

from anonymize.grouping import BoxesOfRows, CellsOfColumns, Grouping, boxes_of
from anonymize.table import Ints, tally
from anonymize.tds import Observer
from jobs.data.counted import counted
from jobs.data.tables import Loaded, Table
from jobs.errors import BudgetError, PolicyError
from jobs.owner.domains import domains_of
from jobs.owner.observing import PassedOn
from jobs.task import Task

Known = tuple[tuple[str, ...], int]
"""Columns of a requirement, by name, and its L."""


@dataclass(frozen=True)
class Published:
    """Public part of a charged run: domains of its columns, and the opened groups.

    domains:  by column, the digest of its domain (:mod:`jobs.owner.domains`).
    columns:  the quasi-identifiers, in the order of ``groups``.
    known:    of each requirement, its columns and its L.
    groups:   as readers see the groups; None: not noted.
    """

    domains: Mapping[str, str]
    columns: tuple[str, ...]
    known: tuple[Known, ...]
    groups: Grouping | None = field(default=None, repr=False)

    @classmethod
    def of_task(cls, task: Task, known: tuple[Known, ...], me: str | None = None) -> Self:
        """Return the public part of a job before the run: for a horizontal table a single group of everybody.

        me:  the party; None: not yet known, and then no column of a vertical job counts as ours.
        """
        held = (
            task.held_by(me) if me is not None else () if task.partition.matched else tuple(task.job.columns)
        )
        domains = {name: digest for name, digest in domains_of(task).items() if name in held}
        whole = CellsOfColumns(tuple(np.zeros(column.n_leaves, dtype=np.int64) for column in task.qid))
        columns = tuple(column.name for column in task.qid)
        return cls(domains, columns, known, whole if columns and not task.partition.matched else None)

    def encoded(self) -> bytes:
        """Return the bytes for the ledger."""
        fields = {"domains": dict(self.domains), "columns": self.columns, "known": self.known}
        return json.dumps(fields | {"groups": _fields_of(self.groups)}).encode()

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Read the bytes of :meth:`encoded`. Raises BudgetError for other content of the ledger."""
        try:
            fields = json.loads(content)
            known = tuple((tuple(columns), int(most)) for columns, most in fields["known"])
            return cls(dict(fields["domains"]), tuple(fields["columns"]), known, _groups_of(fields["groups"]))
        except (ValueError, LookupError, TypeError, zlib.error) as error:
            raise BudgetError(
                "budget-ledger",
                "an entry of the privacy ledger lacks the published groups of its run",
                remedy="restore the ledger from a copy",
            ) from error


def _fields_of(groups: Grouping | None) -> dict[str, Any] | None:
    if groups is None:
        return None
    if isinstance(groups, BoxesOfRows):
        return {
            "first": list(map(_text_of, groups.first)),
            "last": list(map(_text_of, groups.last)),
        }
    return {"cells": list(map(_text_of, groups.cells))}


def _groups_of(fields: Mapping[str, Any] | None) -> Grouping | None:
    if fields is None:
        return None
    if "cells" in fields:
        return CellsOfColumns(tuple(map(_numbers_of, fields["cells"])))
    first, last = (np.stack(list(map(_numbers_of, fields[key]))) for key in ("first", "last"))
    return BoxesOfRows(first, last)


def _text_of(numbers: Ints) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(numbers, dtype="<i4").tobytes())).decode()


def _numbers_of(text: str) -> Ints:
    return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype="<i4").astype(np.int64)


class Notes(Protocol):
    """Place for a run's notes on its next publications."""

    def note(self, content: bytes) -> None:
        """Keep a note, on disk, in place of the run's earlier note."""
        ...

    def earlier(self) -> list[bytes]:
        """Return the notes of all other charged runs of the data set with openings, or openings about to happen."""
        ...


def check_tested(earlier: Sequence[Published], now: Published) -> None:
    """Raise PolicyError if groups over all releases cannot be formed from our table."""
    reason = _untested(earlier, now)
    if reason:
        raise PolicyError(
            "policy-refused",
            f"our policy's `own_k` cannot be tested over all releases of this data set: {reason} (`policy.own_k`)",
            remedy="ask for the columns, domains and method of the earlier release",
        )


def _untested(earlier: Sequence[Published], now: Published) -> str:
    """Return the reason against forming the groups, in public words; empty if the groups can be formed."""
    if earlier and not now.columns:
        return "groups of sequences cannot be set beside an earlier release"
    for each in earlier:
        shared = [name for name in each.columns if name in now.columns]
        if each.groups is None:
            return "the groups of an earlier release are not noted, as for sequences and for vertical jobs"
        other = [name for name in shared if each.domains[name] != now.domains[name]]
        if other:
            return f"column {other[0]} has a different domain than in an earlier release"
        if isinstance(each.groups, BoxesOfRows) and shared and len(shared) < len(each.columns):
            return "an earlier release of method kd has quasi-identifiers that the job lacks"
    return ""


class Together:
    """Groups of our records over earlier releases and a further release.

    table:    ours, as read by the present job.
    earlier:  comparable earlier releases.
    """

    def __init__(self, table: Loaded, now: Published, earlier: Sequence[Published]) -> None:
        self._table = table
        self._now = now
        self._earlier = tuple(earlier)
        self._tested = shared_columns(earlier, now)
        self._labels = [self._by_column(each) for each in earlier]

    def own(self, groups: Grouping) -> Ints:
        """Count our records, or people, in every group with any of ours: int64, shape (n_groups,).

        groups:  about to be opened; compared with the earlier releases.
        """
        labels = [*self._labels, self._by_column(replace(self._now, groups=groups))]
        found = [self._own(_refined(labels, names)) for names in self._tested]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    def records_below(self, least: int) -> int:
        """Return how many of our records, or people, are in some group of fewer than ``least`` of ours."""
        below = np.zeros(len(self._table.table.weights), dtype=np.bool_)
        for names in self._tested:
            group = _refined(self._labels, names)
            below |= self._own(group)[group] < least
        if self._table.person is not None:
            return len(np.unique(self._table.person[below]))
        return int(self._table.table.weights[below].sum())

    def _by_column(self, release: Published) -> Mapping[str, Ints]:
        """Return the label of every row by the columns of a release; boxes have the same label for all columns."""
        qid = dict(zip(self._now.columns, self._table.table.qid, strict=True))
        shared = [name for name in release.columns if name in qid]
        groups = release.groups
        assert groups is not None, "what is not noted is not tested"
        if isinstance(groups, BoxesOfRows):
            return dict.fromkeys(shared, boxes_of(groups, [qid[name] for name in shared])) if shared else {}
        return {name: groups.cells[release.columns.index(name)][qid[name]] for name in shared}

    def _own(self, group: Ints) -> Ints:
        """Count our records, or people, by group: int64, shape (n_groups,)."""
        people = self._table.person
        if people is None:
            return tally(group, self._table.table.weights, int(group.max(initial=-1)) + 1)
        pairs = np.unique(np.stack([group, people]), axis=1)
        return tally(pairs[0], None, int(group.max(initial=-1)) + 1)


def _refined(labels: Sequence[Mapping[str, Ints]], names: Sequence[str]) -> Ints:
    """Return the group of every row on some columns, over all releases with the columns: int64, shape (n_rows,)."""
    parts = [by_column[name] for by_column in labels if set(names) <= set(by_column) for name in names]
    group = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        _, group = np.unique(group * (int(part.max(initial=0)) + 2) + part + 1, return_inverse=True)
    return group


def shared_columns(earlier: Sequence[Published], now: Published) -> tuple[tuple[str, ...], ...]:
    """Return the sets of columns for common groups: as many shared columns of the releases as L allows.

    Groups on fewer columns are unions of tested groups.
    """
    shared: set[frozenset[str]] = set()
    for each in earlier:
        common = frozenset(each.columns).intersection(now.columns)
        shared |= {common} | {common & other for other in shared}
    asked = [*now.known, *(known for each in earlier for known in each.known)]
    found: set[tuple[str, ...]] = set()
    for names in shared:
        for columns, most in asked:
            inside = [name for name in now.columns if name in names and name in columns]
            found |= set(combinations(inside, min(most, len(inside))))
    return tuple(sorted(each for each in found if each))


class Composed(PassedOn):
    """Observer that ends a run before it opens groups with too few of our records beside earlier releases.

    Groups are noted before the test, so that of two simultaneous runs one sees the groups of the other.
    """

    def __init__(
        self, shown: Observer, least: int, table: Table | None, now: Published, notes: Notes
    ) -> None:
        """``least``: the policy's `own_k`. ``table``: ours, as read by the job."""
        super().__init__(shown)
        self._least = least
        self._table = table
        self._now = self._next = now
        self._notes = notes
        self._earlier: list[bytes] = []
        self._together: Together | None = None

    def grouping(self, groups: Grouping) -> None:
        self._next = replace(self._now, groups=groups)
        self._notes.note(self._next.encoded())
        if self._least > 1:
            self._test(groups)
        super().grouping(groups)

    def opening_groups(self, own: Ints) -> None:
        super().opening_groups(own)
        self._now = self._next

    def withdraw(self) -> None:
        """Note again the last opened groups: our policy ended the run before the next groups."""
        self._notes.note(self._now.encoded())

    def _test(self, groups: Grouping) -> None:
        earlier = self._notes.earlier()
        if not earlier:
            return
        if self._together is None or earlier != self._earlier:
            self._earlier, self._together = (
                earlier,
                self._beside([Published.read(content) for content in earlier]),
            )
        own = self._together.own(groups)
        least = int(own.min(initial=self._least))
        if least < self._least:
            raise PolicyError(
                "policy-refused",
                "the next release, compared with earlier releases of this data set, leaves groups with fewer of "
                "our records than our policy demands (`policy.own_k`)",
                private=f"the smallest has {counted(least, 'record', 'records')}, or people where the job counts "
                f"people, and `policy.own_k` is {self._least}",
                remedy="ask for coarser columns or a greater K, or ask the party's owner about `own_k`",
            )

    def _beside(self, earlier: Sequence[Published]) -> Together:
        check_tested(earlier, self._now)
        assert isinstance(self._table, Loaded), "groups of these releases can be formed"
        return Together(self._table, self._now, earlier)
