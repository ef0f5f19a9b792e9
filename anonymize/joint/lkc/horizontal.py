"""LKC-privacy of horizontally partitioned data (semantics §6; [T] 5.4, Algorithms 5.2 and 5.3).

Every party holds some records over the same columns. All follow the same public state: the cut, the leaf partitions
and their global counts, a coarsening of the result. The counts *after* a candidate are protected until its
application. A :class:`Referee` adds counts up, chooses and judges; the rest is here.

The judged counts are the opened counts: a party counts a candidate only once. Every party also judges the opened
counts, as far as public counts allow, so a wrong judge is detected at the first wrong opening. Before an opening, a
party's observer receives the number of own records in each group, and may end the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from anonymize.candidates import Prospect, Prospects
from anonymize.criteria.criterion import PERSONS, Bools, SideInputs, sides_of
from anonymize.cut import Candidate, Cut, top
from anonymize.errors import PrivacyError
from anonymize.grouping import Grouping, grouping_of_cut
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.opened_table import OpenedTable
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import Profiled
from anonymize.linked_columns import check_apart, counted_blocks
from anonymize.lkc.plan import GroupPlan, plan_groups
from anonymize.lkc.requirement import (
    Entry,
    check_root_of_cells,
    check_sizes,
    criteria_of,
    given,
    terms_of,
    whole_table,
)
from anonymize.lkc.validity import SidesOfGroups
from anonymize.naming import Naming, named_by
from anonymize.partition import GeneralizedTable
from anonymize.qid_groups import RecordSets
from anonymize.scores.score import Followed, Wanted
from anonymize.table import CodedTable, Codes, Ints
from anonymize.taxonomy import Node
from anonymize.tds import ROOT, Observer, Outcome, Step, specialize_top_down
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds


@dataclass(frozen=True)
class Placed:
    """Records of a party in a node: place of the refined entry, child and weight of each row.

    Integers, shape (n_rows,) each.
    """

    entry: Ints = field(repr=False)
    child: Codes = field(repr=False)
    weight: Ints = field(repr=False)


@dataclass(frozen=True)
class Counted:
    """Candidate with a party's counts after its specialization.

    counts:  own records per (refined entry, child).
    sides:   makes own side counts, if any.
    """

    plan: GroupPlan
    counts: Ints = field(repr=False)
    sides: SidesOfGroups | None

    @property
    def sums(self) -> Ints:
        """Own sums of the plan's groups: int64, of the plan's shape."""
        return self.plan.sums(self.counts, self.sides)


Profile: TypeAlias = tuple[Prospect, Ints]
"""Prospect with a party's deciding class counts, as :meth:`Prospect.profile`."""


class Holder(Protocol):
    """Party, as its referee sees it: answers about nodes of the cut."""

    @property
    def cut(self) -> Cut: ...

    def plan(self, candidate: Candidate, within: int | None = None) -> GroupPlan:
        """Return the groups of a specialization of the current T_g. A group with unchanged records keeps its name.

        within:  further column; only groups on columns that include this column count.
        """
        ...

    def counted(self, candidate: Candidate) -> Counted:
        """Return the plan of a specialization of the current T_g, with own counts."""
        ...

    def counted_in(self, asked: Sequence[tuple[Candidate, Bools]]) -> list[Ints]:
        """Return own records per (refined entry, child) of candidates, each in some of its refined entries."""
        ...

    def stamps(self, candidate: Candidate) -> Ints:
        """Return public numbers of the refined entries; see :meth:`OpenedTable.stamps`."""
        ...

    def placed(self, candidate: Candidate) -> Placed:
        """Return own records of the candidate's node."""
        ...


class Referee(Protocol):
    """Referee that adds counts up, chooses and judges. Each party has a referee, and all keep in step."""

    @property
    def ledger(self) -> RevealLedger: ...

    def open_root(self, counts: Ints, told: Ints) -> Rounds[Ints | None]:
        """Judge the whole table. If it meets the requirement, add up its counts and open them to all; otherwise
        return None.

        counts:  own counts per cell, then side counts.
        told:    own part of the opened counts: int64, shape (n_told,).

        Raises RemoteProtocolError for impossible sums.
        """
        ...

    def root_error(self) -> PrivacyError:
        """Return the error for a table that violates the requirement."""
        ...

    def start(self, n_records: int, entries: Sequence[Entry], followed: Followed) -> None:
        """Start after the root check, with a public number of records.

        entries:   of the requirement, given the whole table.
        followed:  figures of T_g for the score.
        """
        ...

    def propose(
        self, nodes: Sequence[Profiled], present: Sequence[Candidate], holder: Holder
    ) -> Rounds[Sequence[Candidate]]:
        """Enter nodes as candidates, and prepare for any candidate to be judged. Return the public ones: opened by
        the score, otherwise those with fixed children, and of every interval the candidate of all its cells.

        present:  public candidates from earlier calls. holder: ourselves.
        """
        ...

    def renew(self, wanted: Sequence[Wanted], sums: Sequence[Ints]) -> Rounds[None]:
        """Add up all parties' sums wanted by the score, for the choosing parties."""
        ...

    def best(self, holder: Holder) -> Rounds[Candidate | None]:
        """Take out the best candidate; holder: ourselves."""
        ...

    def drop(self, applied: Candidate) -> None:
        """Remove the candidates of a specialized node, which is no longer in the cut."""
        ...

    def is_valid(self, candidate: Candidate, holder: Holder) -> Rounds[bool]:
        """Judge a candidate by all parties' counts per (refined entry, child), reveal the result, and keep the judged
        counts. holder: ourselves.
        """
        ...

    def open_judged(self, counts: Ints, totals: Ints, children: Sequence[Profile]) -> Rounds[Ints]:
        """Add up all parties' last judged counts and open them to all; int64, shape as given.

        totals:    public row sums. The last column follows and is not opened. Impossible sums are refused.
        children:  own profiles of all prospects that may be proposed next, if the counts are as expected.

        A call is a party's consent; nothing is opened before all parties consent.
        """
        ...

    def only_children(self, own: Sequence[Ints], sizes: Sequence[int]) -> Rounds[Sequence[int | None]]:
        """Open to all, for each node, the child with all records over all holders; None without such a child.

        own:    own records of the children of every node: int64, shape (n_children,) each.
        sizes:  public number of records of every node.

        Raises RemoteProtocolError for an answer that contradicts own records.
        """
        ...

    @property
    def suspects(self) -> str:
        """Parties to name for impossible opened sums."""
        ...

    @property
    def judges(self) -> str:
        """Parties to name for opened counts that are not valid."""
        ...


def anonymize_horizontally(
    table: CodedTable,
    request: Request,
    referee: Referee,
    observer: Observer,
    side_inputs: SideInputs | None = None,
) -> Rounds[JointOutcome]:
    """Run a party of a horizontal job. The referee determines the peers and the reveals.

    beside:  data per row of the table for own side counts, if the requirement takes any.

    Raises PrivacyError if the root check fails, SchemaError for criteria on several blocks.
    """
    party = _Party(table, request, referee, observer, side_inputs or {})
    yield from party.start()
    steps = yield from specialize_top_down(party, observer)
    return JointOutcome(Outcome(request.schema, party.cut, steps), party.generalized, referee.ledger)


class _Party:
    """Holder of records, as a :class:`anonymize.tds.Specializer`."""

    def __init__(
        self,
        table: CodedTable,
        request: Request,
        referee: Referee,
        observer: Observer,
        side_inputs: SideInputs,
    ) -> None:
        self._table = table
        self._side_inputs = side_inputs
        self._entries: tuple[Entry, ...] = request.requirement.entries(request.schema)
        self._request = request
        blocks = counted_blocks(request.schema, request.linked)
        check_apart(blocks, criteria_of(self._entries))
        self._told = OpenedTable(request.schema, blocks, table)
        self._referee = referee
        self._observer = observer
        self._histograms = [table.class_histogram(c) for c in range(len(request.schema.qid))]
        self.cut = top(request.schema)
        self._open: list[Candidate] = []
        self._counted: dict[Candidate, Counted] = {}
        self._prospects = Prospects(request.schema, each_child=request.goal.needs_class)
        self._naming = Naming(request.schema)

    @property
    def generalized(self) -> GeneralizedTable:
        """T_g, in the end."""
        return self._told.linked

    def start(self) -> Rounds[None]:
        """Check the root; open the counts of the whole table; enter every column's root."""
        self._observer.phase(ROOT)
        schema, ledger = self._request.schema, self._referee.ledger
        own = whole_table(self._table, self._entries, self._side_inputs)
        self._observer.grouping(self._grouping(self.cut))
        self._observer.opening_groups(self._own_of_the_whole(own))
        opened = yield from self._referee.open_root(own, self._told.own_root)
        if not ledger.reveal("root_check", opened is not None, "all") or opened is None:
            raise self._referee.root_error()
        ledger.reveal("root_counts", opened, "all")
        self._require_same_records(self._told.agree_in_all(opened))
        of_root, counts = self._told.root(opened)
        self._entries = given(self._entries, of_root, counts)
        check_sizes(self._entries, int(counts.sum()))
        self._require(check_root_of_cells(of_root, self._entries, counts) is None)
        self._told.start(opened)
        self._record_sets = RecordSets(self._told.table)
        terms = terms_of(schema, self._entries)
        self._followed = self._request.goal.followed(self._told.schema, self._told.table, terms)
        self._referee.start(int(counts.sum()), self._entries, self._followed)
        yield from self._propose([(column, root) for column, (root,) in enumerate(self.cut.nodes)])

    def _grouping(self, cut: Cut) -> Grouping:
        return grouping_of_cut(cut, [column.n_leaves for column in self._request.schema.qid])

    def _own_of_the_whole(self, own: Ints) -> Ints:
        """Return the number of own records, or of people if people count; ``own``: from :func:`whole_table`."""
        n_cells, sides = self._table.schema.n_cells, sides_of(criteria_of(self._entries))
        whole = own[[n_cells + sides.index(PERSONS)]] if PERSONS in sides else own[:n_cells]
        return np.array([whole.sum()], dtype=np.int64)

    @staticmethod
    def _own_of_groups(own: Counted) -> Ints:
        """Return the own records or people of every (group, child) of the plan."""
        if own.sides is not None and PERSONS in own.plan.sides:
            return own.plan.own_count(PERSONS, own.sides)
        return own.plan.own_records(own.counts)

    def choose(self) -> Rounds[Candidate | None]:
        self._observer.phase("score")
        self._referee.ledger.iteration += 1
        if wanted := self._followed.wants(self._open):
            counted = self._told.records.counts_of_each([(each.candidate, each.entries) for each in wanted])
            sums = [each.of(counts) for each, counts in zip(wanted, counted, strict=True)]
            yield from self._referee.renew(wanted, sums)
        candidate = yield from self._referee.best(self)
        if candidate is not None:
            self._open = [other for other in self._open if other.order != candidate.order]
        self._referee.ledger.reveal("candidate", candidate, "all")
        return candidate

    def verdict(self, candidate: Candidate) -> Rounds[Step]:
        self._observer.phase("count")
        valid = yield from self._referee.is_valid(candidate, self)
        if not valid:
            self._prospects.discard(candidate)
        return Step(candidate, valid)

    def plan(self, candidate: Candidate, within: int | None = None) -> GroupPlan:
        return plan_groups(self._told.parts, self._entries, candidate, self._record_sets.names, within)

    def counted(self, candidate: Candidate) -> Counted:
        """Return what :meth:`Holder.counted` says, kept until T_g changes."""
        if candidate not in self._counted:
            own = self._told.own_counts(candidate)
            self._counted[candidate] = Counted(self.plan(candidate), own, self._sides(candidate))
        return self._counted[candidate]

    def counted_in(self, asked: Sequence[tuple[Candidate, Bools]]) -> list[Ints]:
        return self._told.own_counts_of_each(asked)

    def stamps(self, candidate: Candidate) -> Ints:
        return self._told.stamps(candidate)

    def placed(self, candidate: Candidate) -> Placed:
        told = self._told
        return Placed(*told.records.placed(candidate, told.table.entries_of(candidate)))

    def _sides(self, candidate: Candidate) -> SidesOfGroups | None:
        if not sides_of(criteria_of(self._entries)):
            return None
        return SidesOfGroups(self._side_inputs, self._told.records, self._told.table, candidate)

    def apply(self, candidate: Candidate) -> Rounds[int]:
        self._observer.phase("integrate")
        own = self.counted(candidate)
        nodes = [(candidate.column, child) for child in candidate.children]
        ways = [each for node in nodes for each in self._profiles(*node)]
        self._observer.grouping(self._grouping(self.cut.specialized(candidate)))
        self._observer.opening_groups(self._own_of_groups(own))
        counts = yield from self._referee.open_judged(own.counts, self._told.totals(candidate), ways)
        self._referee.ledger.reveal("partition_counts", counts[:, :-1], "all")
        self._require_same_records(self._told.agree_on(candidate, counts))
        self._require(own.plan.violation_of_cells(counts) is None)
        score = self._replace(candidate, counts)
        yield from self._propose(nodes)
        return score

    def name(self) -> Rounds[Sequence[Candidate]]:
        self._observer.phase("count")
        unnamed = self._naming.due(self.cut, self._size)
        if not unnamed:
            return ()
        own = [each.sizes(self._histograms[each.column]) for each in unnamed]
        sizes = [self._size(each.column, each.node) for each in unnamed]
        places = yield from self._referee.only_children(own, sizes)
        self._referee.ledger.reveal("only_child", places, "all", (len(places),))
        made = named_by(unnamed, places)
        for named in made:
            self._replace(named.candidate, named.counts(self._told.totals(named.candidate)))
        if made:
            yield from self._propose([(m.candidate.column, m.child) for m in made])
        return [named.candidate for named in made]

    def _size(self, column: int, node: Node) -> int:
        """Return the records of a node of the cut, over all holders."""
        return int(self._class_counts(column, node).sum())

    def _class_counts(self, column: int, node: Node) -> Ints:
        """Return the records of a node of the cut by class value: int64, shape (n_classes,)."""
        return self._told.table.class_counts(column, node.first, self._told.schema)

    def _replace(self, candidate: Candidate, counts: Ints) -> int:
        """Refine T_g by all parties' counts per (refined entry, child). Return the score."""
        before = self._told.table
        self._counted = {}
        refinement = self._told.refine(candidate, counts)
        score = self._followed.follow(before, refinement)
        self._record_sets.follow(before, refinement)
        self.cut = self.cut.specialized(candidate)
        self._referee.drop(candidate)
        self._open = [other for other in self._open if not other.is_beside(candidate)]
        return score

    def _require(self, met: bool) -> None:
        """Raise RemoteProtocolError if opened counts are not valid."""
        if not met:
            message = "counts were opened that do not meet the requirement"
            raise RemoteProtocolError(self._referee.judges, "horizontal/opened", message)

    def _require_same_records(self, agree: bool) -> None:
        """Raise RemoteProtocolError if opened counts of several blocks do not belong to the same table."""
        if not agree:
            message = "blocks of one table with different numbers of records"
            raise RemoteProtocolError(self._referee.suspects, "horizontal/opened", message)

    def _propose(self, nodes: Sequence[tuple[int, Node]]) -> Rounds[None]:
        """Give the referee own profiles of all possible candidates."""
        self._observer.phase("count")
        profiled = []
        for number, node in nodes:
            totals = self._class_counts(number, node)
            profiles = self._profiles(number, node) if totals.any() else []
            profiled += [Profiled(way, own, totals) for way, own in profiles]
        self._open += yield from self._referee.propose(profiled, tuple(self._open), self)

    def _profiles(self, number: int, node: Node) -> list[Profile]:
        """Return own profiles of all ways to specialize a node."""
        own = self._histograms[number]
        return [(way, way.profile(own)) for way in self._prospects.of(number, node)]
