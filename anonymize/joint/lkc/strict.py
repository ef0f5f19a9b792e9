"""`disclosure: strict`: horizontal LKC that opens only values implied by the released table (semantics §6).

A sealed run takes the best candidate and opens its validity, so discarded candidates become known, with their split
points. A strict run tests, in every turn, every node of the cut that could be specialized, at a split inside the
circuits, and opens the best *valid* candidate. Order and split points of discarded candidates, and the nodes that are
no candidates, stay inside.

A group with unchanged records is not tested again; the set of these groups is public. Validity is closed under union,
so an invalid node stays invalid, and its verdict is the conjunction of all its tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.candidates import Prospect
from anonymize.criteria.criterion import sides_of
from anonymize.cut import Candidate
from anonymize.errors import SchemaError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import Engine, carried
from anonymize.joint.grids import refuse_wide_grids
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.horizontal import Holder, Profile, anonymize_horizontally
from anonymize.joint.lkc.judging import RuleTests, are_zero, judged_each
from anonymize.joint.lkc.questions import GroupTests
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import Bench, JudgedPool, Profiled, StrictScore, Turns, joined
from anonymize.joint.lkc.sealed import SealedReferee
from anonymize.joint.lkc.selection import Options, Selector
from anonymize.joint.lkc.turns import HiddenTurns
from anonymize.joint.party import begin
from anonymize.joint.roster import Roster
from anonymize.lkc.plan import GroupPlan
from anonymize.lkc.requirement import Entry, criteria_of
from anonymize.scores.score import Followed
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.circuit import To
from crypto.encoding import Words
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.two_party import CarriedWords

MAX_GRID_CELLS = 1 << 10
"""Most grid cells of a column: every cell is an option for every count of every tested group."""


def anonymize_strict(
    roster: Roster,
    table: CodedTable,
    request: Request,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables. All opened values follow from the result and the public request.

    Functionality:  the LKC table of the union from ``anonymize.lkc.single.anonymize_alone``, to every party in
                    counted form; its turns are the applied specializations.
    Input, each:    ``table``; request, roster and ``mode``, whose list bounds the reveals, are public and equal for
                    all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the best valid candidate with its split
                    point, or its absence, and the counts of the refined leaf partitions; before these a bit for the
                    equality with the judged counts, 0 only if a party deviates; at the end, for nodes whose children
                    leave separately, the child with all records, if any. All except a failed root check can be
                    computed from the result and the request. Every candidate taken later was already valid and live,
                    so the best of these came first, at the best of the later split points of it or its parts
                    (semantics §6). Sizes of circuits follow from T_g. Leader and deputy together could open
                    everything.
    Rounds:         at most 15, and 10 more for every applied candidate; with two parties 12 and 8. Large batches and
                    openings take more, and so do look-ups and `refine: child`, as in a sealed run.
    Bytes:          as a sealed run. In each iteration every sum (records, or records with a protected value, of an
                    untested group) is shared once for every possible split of its node, and multiplied by the line of
                    the split (:func:`crypto.label_products.products`).
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         semantics §6; [T] Definition 5.2 (3).

    Raises SchemaError for a request refused by :func:`check_strict`, before anything is sent; PrivacyError if the
    root check fails; RemoteProtocolError for a malformed message or for counts different from the judged counts;
    LocalProtocolError for a roster without two different parties as the pair.
    """
    check_strict(request)
    party = yield from begin(roster, request.job_hash, rng, RevealLedger(mode, observer=observer), observer)
    referee = StrictReferee(party, request, table.schema)
    return (yield from anonymize_horizontally(table, request, referee, party.observer))


def check_strict(request: Request) -> None:
    """Refuse requests that a strict run must open or keeps inside only at excessive cost. Raises SchemaError."""
    if request.goal.wants_sums or not isinstance(request.goal, StrictScore):
        raise SchemaError(
            "job-invalid",
            "`disclosure: strict` hides split points until a candidate is taken, but the score needs split points",
            remedy="say `goal: classification` or `general` and leave `score` out, or say `disclosure: sealed`",
        )
    if sides := sides_of(criteria_of(request.requirement.entries(request.schema))):
        raise SchemaError(
            "job-invalid",
            f"`disclosure: strict` counts records only, not {', '.join(side.name for side in sides)}",
            remedy="say `disclosure: sealed`",
        )
    refuse_wide_grids(
        request.schema,
        MAX_GRID_CELLS,
        "at which a strict job can keep split points inside a circuit",
        remedy="choose a larger `step` or fewer `cuts`, or say `disclosure: sealed`",
    )


@dataclass(frozen=True)
class _Check:
    """Tests of a node in a turn.

    plan:  untested groups that could break a rule; the children are those of any option.
    own:   a party's sums, a row for each option of the specialization: int64, shape (n_options, size of plan.shape).
    """

    profiled: Profiled
    plan: GroupPlan
    own: Ints = field(repr=False)


class _Live:
    """Prospect that was not taken yet, with its tested groups.

    is_due:  True if a group may be untested.
    """

    def __init__(self, profiled: Profiled) -> None:
        self.profiled = profiled
        self.is_due = True
        self._refined: int | None = None
        self._tested = self._judged = np.zeros(0, dtype=np.uint64)

    def _untested(self, holder: Holder) -> GroupPlan:
        """Return the node's untested groups with a possible failure, from public state alone.

        A specialization leaves the records of all groups on columns without its own column.
        """
        plan = holder.plan(self.profiled.prospect.specialized(1), self._refined)
        fresh = plan.among(~np.isin(plan.names, self._tested))
        self._tested = np.union1d(self._tested, fresh.names)
        at_stake = [fresh.at_stake(criterion).any(axis=1) for criterion in fresh.criteria]
        judged = fresh.among(np.logical_or.reduce([np.zeros(fresh.n_groups, dtype=bool), *at_stake]))
        self._judged = np.concatenate([self._judged, judged.names])
        return judged

    def judged_among(self, plan: GroupPlan) -> tuple[Ints, Ints]:
        """Return the judged groups of a plan: their numbers, and the place of each among all groups judged so far."""
        _, groups, places = np.intersect1d(plan.names, self._judged, return_indices=True)
        return groups, places

    def follow(self, taken: Candidate) -> None:
        """Account for a specialization. It refines no leaf partition in another node of its column."""
        self.is_due = taken.column != self.profiled.column
        self._refined = taken.column

    def is_of(self, candidate: Candidate) -> bool:
        return self.profiled.prospect.admits(candidate)

    def is_beside(self, candidate: Candidate) -> bool:
        """Return True for a prospect of the candidate's node."""
        return self.profiled.prospect.specialized(1).is_beside(candidate)

    def check(self, holder: Holder) -> _Check | None:
        """Return the due tests, or None. Their existence is public."""
        plan = self._untested(holder)
        self.is_due = False
        return _Check(self.profiled, plan, self._sums(plan, holder)) if plan.n_groups else None

    def _sums(self, plan: GroupPlan, holder: Holder) -> Ints:
        """Return own sums at every option, of its first child; with fixed children, of all but the last."""
        prospect = self.profiled.prospect
        parts = Candidate(prospect.column, prospect.node, prospect.parts)
        rows, n_columns = holder.placed(parts), len(parts.children)
        sums = plan.tallied(rows.entry, rows.child, rows.weight, n_columns)
        if not prospect.n_options:
            return sums[:, :-1].reshape(1, -1)
        return prospect.lefts(np.moveaxis(sums, 1, 0)).reshape(prospect.n_options, -1)


class StrictReferee(SealedReferee):
    """Sealed referee that judges every candidate inside before the best valid one is taken."""

    def start(self, n_records: int, entries: Sequence[Entry], followed: Followed) -> None:
        super().start(n_records, entries, followed)
        self._live: list[_Live] = []

    def _new_turns(self, bench: Bench) -> Turns:
        goal = self._request.goal
        assert isinstance(goal, StrictScore)  # else check_strict has refused the job
        self._verdicts = _Verdicts(bench, goal.strict(bench), self._n_records)
        return HiddenTurns(self._verdicts.pool, bench)

    def propose(
        self, nodes: Sequence[Profiled], present: Sequence[Candidate], holder: Holder
    ) -> Rounds[Sequence[Candidate]]:
        self._live += [_Live(profiled) for profiled in nodes]
        parts = yield from self._own_parts(nodes)
        self._observer.phase("score")
        yield from self._verdicts.pool.add(nodes, parts)
        return ()

    def best(self, holder: Holder) -> Rounds[Candidate | None]:
        self._observer.phase("count")
        checks = [live.check(holder) for live in self._live if live.is_due]
        yield from self._judge([check for check in checks if check is not None])
        candidate = next(iter((yield from self._turns.next(holder.cut))), None)
        if candidate is None:
            yield from self._pair.confirmed()
        else:
            self._taken = next(live for live in self._live if live.is_of(candidate))
            for live in self._live:
                live.follow(candidate)
        return candidate

    def drop(self, applied: Candidate) -> None:
        super().drop(applied)
        self._live = [live for live in self._live if not live.is_beside(applied)]

    def _judge(self, checks: Sequence[_Check]) -> Rounds[None]:
        """Test the untested groups."""
        if not checks:
            return
        shares = yield from self._share_each([check.own for check in checks], self._share_bits)
        self._observer.phase("validity")
        if self._engine is not None:
            yield from self._verdicts.judge(self._engine, checks, shares)

    def is_valid(self, candidate: Candidate, holder: Holder) -> Rounds[bool]:
        """Return True: the taken candidate was judged valid."""
        self._plan = holder.counted(candidate).plan
        return True
        yield

    def open_judged(self, counts: Ints, totals: Ints, children: Sequence[Profile]) -> Rounds[Ints]:
        """Compare the counts to be opened with the judged counts inside circuits, shared once the split is known."""
        share = yield from self._share_told(counts, totals)
        groups, places = self._taken.judged_among(self._plan)
        if len(groups):  # public, as the groups are
            same = False
            if self._engine is not None and share is not None:
                sums = self._plan.sums_of_cells(share.astype(np.uint64).reshape(len(counts), -1))[groups]
                same = yield from self._verdicts.same(self._engine, self._taken.profiled, places, sums)
            same = yield from self._tell_bit("strict/same", same)
            if not self.ledger.reveal("same_counts", same, "all"):
                suspects = self._roster.suspects
                raise RemoteProtocolError(
                    suspects, "strict/same", "the counts to be opened differ from the judged counts"
                )
        return (yield from self._open(share, counts, totals))


class _Verdicts:
    """Verdicts of the pair on the nodes that were not taken yet."""

    def __init__(self, bench: Bench, pool: JudgedPool, n_records: int) -> None:
        self.pool = pool
        self._leads = bench.pair.roster.leads
        self._widths = bench.widths
        self._n_records = n_records
        self._kept: dict[Prospect, list[Words]] = {}
        self._selector = Selector(bench.widths, pool)

    def judge(self, engine: Engine, checks: Sequence[_Check], shares: Sequence[Words]) -> Rounds[None]:
        """Test nodes, each in some groups; shares: of :attr:`_Check.own`, summed over the parties."""
        sums = yield from self._sums(engine, checks, shares)
        for check, own in zip(checks, sums, strict=True):
            self._kept.setdefault(check.profiled.prospect, []).append(own)
        tests = [self._tests(check.plan, own) for check, own in zip(checks, sums, strict=True)]
        met, owner = yield from judged_each(engine, tests)
        yield from self._conclude(engine, [check.profiled for check in checks], met, owner)

    def same(self, engine: Engine, node: Profiled, places: Ints, sums: Words) -> Rounds[bool]:
        """Open if a node's sums equal its judged sums.

        places:  of the groups among all judged groups of the node, in their order.
        """
        judged = np.concatenate(self._kept[node.prospect])[places]
        difference = (judged - sums).reshape(-1)
        outputs = yield from are_zero(engine, self._widths.count, difference, To.CARRIED)
        return (yield from engine.all_met([carried(outputs, "met")]))

    def _sums(self, engine: Engine, checks: Sequence[_Check], shares: Sequence[Words]) -> Rounds[list[Words]]:
        """Return own shares of the sums at the split, for every node in the shape of its plan."""
        wide = max(GroupTests(check.plan, self._n_records).bits for check in checks)
        options = [
            Options(check.profiled, share)
            for check, share in zip(checks, shares, strict=True)
            if len(share) > 1
        ]
        selected = iter((yield from self._selector.selected(engine, options, wide)))
        flat = [next(selected) if len(share) > 1 else share for share in shares]
        return [sums.reshape(check.plan.shape) for sums, check in zip(flat, checks, strict=True)]

    def _tests(self, plan: GroupPlan, sums: Words) -> list[RuleTests]:
        tests = GroupTests(plan, self._n_records)
        return list(tests.tests(tests.by_child(sums, leads=self._leads)))

    def _conclude(
        self, engine: Engine, nodes: Sequence[Profiled], met: CarriedWords, owner: Ints
    ) -> Rounds[None]:
        """Keep a valid node valid only if all its tests are met; owner: node of every test."""
        before = self.pool.words("valid", nodes)
        owners = np.concatenate([np.arange(len(nodes)), owner])
        order = np.argsort(owners, kind="stable")
        bits = {"met": joined([before, met]).take(order)}
        after = yield from engine.reduce(circuits.both_circuit(), bits, np.bincount(owners).tolist())
        self.pool.judge(nodes, after["met"])
