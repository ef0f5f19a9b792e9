"""LKC-privacy of horizontally partitioned data (DESIGN §6; [T] 5.4, Algorithms 5.2 and 5.3).

Every party holds some records over the same columns. All follow the same public state: the cut, the leaf
partitions and their global counts, which are a coarsening of the result. Protected are the counts *after* a
candidate, until it is applied. Who adds them up, chooses and judges is a :class:`Referee`; the rest is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from anonymize.candidates import GroupSizes, profile, profile_length
from anonymize.cut import Candidate, Cut, top
from anonymize.errors import PrivacyError
from anonymize.group_plan import GroupPlan, plan_groups
from anonymize.joint.disclosure import RevealLedger
from anonymize.partition import GeneralizedTable, LocalRecords, fully_generalized, refine
from anonymize.privacy import Lkc, check_sizes
from anonymize.score import Goal
from anonymize.table import CodedTable, Ints, Schema
from anonymize.taxonomy import Node
from anonymize.tds import Observer, Outcome, Step, specialize_top_down
from crypto.rounds import Rounds


@dataclass(frozen=True)
class Roster:
    """Who takes part. ``parties`` is in job order, the same at every party.

    deputy: evaluates circuits with the leader (sealed runs).
    """

    me: str
    parties: tuple[str, ...]
    leader: str
    deputy: str = ""

    @property
    def leads(self) -> bool:
        return self.me == self.leader

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(party for party in self.parties if party != self.me)

    @property
    def suspects(self) -> str:
        """Whom to name where what all others sent adds up to nonsense: with three or more parties any of them."""
        return " or ".join(self.others)


@dataclass(frozen=True)
class Request:
    """What all parties have agreed to compute."""

    schema: Schema
    requirement: Lkc
    goal: Goal
    job_hash: bytes


@dataclass(frozen=True)
class JointOutcome:
    """The result as every party knows it: what was decided, T_g with its counts, and what was revealed."""

    outcome: Outcome
    generalized: GeneralizedTable
    ledger: RevealLedger


@dataclass(frozen=True)
class Profiled:
    """A node that may become a candidate, with one party's own profile of it.

    totals:  its class counts in the union, which T_g makes public: int64, shape (n_classes,).
    """

    column: int
    node: Node
    counts: Ints
    totals: Ints


class Referee(Protocol):
    """Who adds up what the parties hold, chooses and judges; one object per party, all in step."""

    @property
    def ledger(self) -> RevealLedger: ...

    def meets_root(self, cell_counts: Ints) -> Rounds[bool]:
        """Say whether the whole table meets the requirement, from everybody's counts per cell."""
        ...

    def root_error(self) -> PrivacyError:
        """What it means if it does not."""
        ...

    def start(self, n_records: int) -> None:
        """The root is met, and the number of records public."""
        ...

    def open(self, counts: Ints, totals: Ints | None) -> Rounds[Ints]:
        """Add up everybody's counts and tell all; int64, shape as given.

        totals: public row sums, or None. With them the last column follows and is not told. Sums that cannot be
        are somebody's fault and refused.
        """
        ...

    def propose(self, nodes: Sequence[Profiled]) -> Rounds[None]:
        """Enter nodes as candidates."""
        ...

    def best(self, cut: Cut, sizes: GroupSizes | None) -> Rounds[Candidate | None]:
        """Take out the best candidate."""
        ...

    def is_valid(self, plan: GroupPlan, sums: Ints) -> Rounds[bool]:
        """Judge everybody's sums."""
        ...


def anonymize_horizontally(
    table: CodedTable, request: Request, referee: Referee, observer: Observer
) -> Rounds[JointOutcome]:
    """Run one party of a horizontal job; the referee says with whom and what it reveals.

    Raises PrivacyError if the root check fails.
    """
    party = _Party(table, request, referee, observer)
    yield from party.start()
    steps = yield from specialize_top_down(party, observer)
    return JointOutcome(Outcome(request.schema, party.cut, steps), party.generalized, referee.ledger)


class _Party:
    """One holder of records, as a :class:`anonymize.tds.Specializer`."""

    generalized: GeneralizedTable

    def __init__(self, table: CodedTable, request: Request, referee: Referee, observer: Observer) -> None:
        self._table = table
        self._request = request
        self._referee = referee
        self._observer = observer
        self._histograms = [table.class_histogram(c) for c in range(len(request.schema.qid))]
        self.cut = top(request.schema)

    def start(self) -> Rounds[None]:
        """Check the root; open the counts of the whole table; enter every column's root."""
        self._observer.phase("root")
        schema, ledger = self._request.schema, self._referee.ledger
        own = np.bincount(self._table.cells, self._table.weights, schema.n_cells).astype(np.int64)
        met = yield from self._referee.meets_root(own)
        if not ledger.reveal("root_check", met, "all"):
            raise self._referee.root_error()
        counts = yield from self._referee.open(own, None)
        ledger.reveal("root_counts", counts, "all")
        check_sizes(schema, int(counts.sum()))
        self._referee.start(int(counts.sum()))
        self.generalized = fully_generalized(len(schema.qid), counts)
        self._records = LocalRecords(self._table, self._table.cells, self.generalized)
        self._sizes = GroupSizes(schema, self.generalized) if self._request.goal == "general" else None
        yield from self._propose([(column, root) for column, (root,) in enumerate(self.cut.nodes)])

    def choose(self) -> Rounds[Candidate | None]:
        self._observer.phase("score")
        self._referee.ledger.iteration += 1
        candidate = yield from self._referee.best(self.cut, self._sizes)
        self._referee.ledger.reveal("candidate", candidate, "all")
        return candidate

    def verdict(self, candidate: Candidate) -> Rounds[Step]:
        self._observer.phase("count")
        request = self._request
        plan = plan_groups(request.schema, request.requirement, self.generalized, candidate)
        self._counts = self._records.counts(candidate, self.generalized.entries_of(candidate))
        valid = yield from self._referee.is_valid(plan, plan.sums(self._counts))
        self._referee.ledger.reveal("valid", valid, "all")
        score = self._sizes.score(candidate) if self._sizes is not None else 0
        return Step(candidate, valid, score)

    def apply(self, candidate: Candidate) -> Rounds[None]:
        self._observer.phase("integrate")
        before = self.generalized
        totals = before.count[before.entries_of(candidate)]
        counts = yield from self._referee.open(self._counts, totals)
        self._referee.ledger.reveal("partition_counts", counts[:, :-1], "all")
        refinement = refine(before, candidate, counts)
        self._records.follow(candidate, refinement)
        self.generalized = refinement.table
        if self._sizes is not None:
            self._sizes.follow(before, refinement)
        self.cut = self.cut.specialized(candidate)
        yield from self._propose([(candidate.column, child) for child in candidate.children])

    def _propose(self, nodes: Sequence[tuple[int, Node]]) -> Rounds[None]:
        """Hand the referee our profiles of the nodes that can be candidates at all."""
        self._observer.phase("count")
        profiled = []
        for number, node in nodes:
            column = self._request.schema.qid[number]
            totals = self.generalized.class_counts(number, node.first, self._request.schema)
            if totals.any() and profile_length(column, node) > 1:
                own = profile(column, node, self._histograms[number])
                profiled.append(Profiled(number, node, own, totals))
        yield from self._referee.propose(profiled)
