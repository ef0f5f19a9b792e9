"""`method: kd`, `disclosure: sealed`: horizontal kd that opens nothing which does not follow from the release.

All parties follow the same fronts (semantics §11.3). Of every candidate the pair gets shares of what the criteria
count on its left; circuits judge both sides; opened is, for each open group, the number of its first valid candidate,
and then the counts on its left: the very shares that were judged. The cells of the final groups come last. Whoever
replays the released table computes all of that from it (semantics §11.5). Two or more parties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import (
    RECORDS,
    Bools,
    Criterion,
    Form,
    Measure,
    Rule,
    Tally,
    alike,
    tallies_of,
)
from anonymize.criteria.size import Size
from anonymize.criteria.views import count_by, measures_of, views_of
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import Engine, carried, low_bits
from anonymize.joint.kd import circuits
from anonymize.joint.kd.cells import open_cells
from anonymize.joint.lkc.circuits import both_circuit
from anonymize.joint.lkc.sealed import RootTests
from anonymize.joint.messages import checked_counts, decode_bit, encode_bit
from anonymize.joint.pair import Pair, open_pair
from anonymize.joint.roster import Roster
from anonymize.kd.boxes import PublicSplit
from anonymize.kd.fronts import NONE, Front, Fronts, Verdict, cut_fronts
from anonymize.kd.replay import replay
from anonymize.kd.rows import OpenRows
from anonymize.kd.single import check_labels, least_size, the_entry
from anonymize.kd.table import BoxedTable, in_box_order
from anonymize.lkc.requirement import (
    Requirement,
    check_root_of_cells,
    check_sizes,
    given,
    root_refused,
    whole_table,
)
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema
from anonymize.tds import Observer
from crypto.blocks import WORD_BITS
from crypto.encoding import Words, as_words, decode_words, encode_words
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import Shares, dtype, open_vector, share_vector, width_for
from crypto.two_party import CarriedWords, expect_outcome

_ROOT, _TAKEN, _OPENED, _CONSENT = "kd/root", "kd/taken", "kd/opened", "kd/consent"
_CELL_BITS = width_for(MAX_RECORDS)

WIDE_FRONT, MANY_TESTS = 8, 16
"""Candidates of a group in one front, where no group has more than so many tests on a side; else one."""
_WIDTH_STEP = 4
"""Tests of groups whose numbers have about as many bits go through one circuit."""


@dataclass(frozen=True)
class KdRequest:
    """What all parties have agreed to compute."""

    schema: Schema
    requirement: Requirement
    job_hash: bytes


@dataclass(frozen=True)
class JointKd:
    """The result as every party knows it, and what was revealed.

    group:  our own: of every row of our table: int64, shape (n_rows,).
    """

    schema: Schema
    table: BoxedTable
    ledger: RevealLedger
    group: Ints = field(repr=False)


def anonymize_kd_sealed(
    roster: Roster,
    table: CodedTable,
    request: KdRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointKd]:
    """Cut the union of the parties' tables into groups; nothing is opened that the release does not tell.

    Functionality:  the table of the union as ``anonymize.kd.single.anonymize_kd`` makes it, to every party in
                    counted form.
    Input, each:    ``table``; request, roster and ``mode`` are public and equal for all.
    Output, each:   the same :class:`JointKd`, but for the groups of its own rows.
    Leakage:        to all: root check bit; counts of the whole table; for every front which candidate of each open
                    group was taken, and what the criteria count left of it; the cells of the final groups. All but a
                    root check that fails follow from the output, as do the sizes of circuits. Leader and deputy
                    together could open everything.
    Rounds:         3 for the pair, 6 for the root; for every front at most 6, 2 for every batch of tests of one rule
                    and width, and 1 for every level of a tree over the tests of one candidate; those of
                    :func:`open_cells`. An opening of more than 1 MiB takes 1 more for every further MiB.
    Bytes:          between the pair as :func:`anonymize.joint.lkc.sealed.anonymize_sealed`; from each other party 2,
                    4 or 8, by their width, for every count of every candidate, and those of :func:`open_cells`.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         semantics §11; [MSA] Fig. 5, corrected.

    Raises PrivacyError if the root check fails, SchemaError for what kd does not take, RemoteProtocolError for a
    malformed message, or counts opened that should not have been found valid, and what the observer raises where it
    is told of groups about to be opened, before any of our part in them is.
    """
    observer = observer or Observer()
    the_entry(request.requirement, request.schema)
    check_labels(request.schema.qid)
    observer.phase("setup")
    pair = yield from open_pair(roster, request.job_hash, rng, observer)
    party = _Party(pair, table, request, RevealLedger(mode), observer)
    yield from party.start()
    yield from cut_fronts(party, observer)
    return (yield from party.finish())


class _Party:
    """One holder of records, as a :class:`anonymize.kd.fronts.Cutter`."""

    def __init__(
        self, pair: Pair, table: CodedTable, request: KdRequest, ledger: RevealLedger, observer: Observer
    ) -> None:
        self._pair = pair
        self._table = table
        self._schema = request.schema
        self._entries = request.requirement.entries(request.schema)
        self._ledger = ledger
        self._observer = observer

    def start(self) -> Rounds[None]:
        """Check the root, open its counts, and begin with one group."""
        self._observer.phase("root")
        schema, ledger, roster = self._schema, self._ledger, self._pair.roster
        own = whole_table(self._table, self._entries, {})
        self._observer.opening_groups(own.sum(keepdims=True))
        tests = RootTests(schema, self._entries)
        share = yield from share_vector(self._pair.shares, as_words(tests.counts(own)))
        met = False
        if self._pair.engine is not None and share is not None:
            met = yield from tests.met(self._pair.engine, share.astype(np.uint64))
        payload = yield from self._pair.tell(_ROOT, encode_bit(met))
        if not ledger.reveal("root_check", decode_bit(payload, roster.leader, _ROOT), "all"):
            raise root_refused(self._entries)
        share = yield from share_vector(self._pair.shares, own.astype(dtype(_CELL_BITS)))
        total = yield from open_vector(self._pair.shares, len(own), _CELL_BITS, share)
        assert total is not None
        counts = checked_counts(total.astype(np.int64), own, None, roster.suspects, "shares/open")
        ledger.reveal("root_counts", counts, "all")
        self._entries = given(self._entries, schema, counts)
        check_sizes(self._entries, int(counts.sum()))
        self._require(check_root_of_cells(schema, self._entries, counts) is None)
        self._begin(counts)

    def _begin(self, counts: Ints) -> None:
        schema, (entry,) = self._schema, self._entries
        criteria = entry.criteria
        self._least = least_size(criteria)
        self._tests = _Tests(criteria, self._least)
        self._views = views = views_of(schema, tallies_of(criteria))
        self._measures = measures_of(views)
        self._judge = Judge(criteria, self._measures)
        labels = [view.of_cells(schema) for view in views]
        self._rows = OpenRows(self._table, [label[self._table.cells] for label in labels])
        self._fronts = Fronts(schema, PublicSplit(schema), int(counts.sum()), self._least)
        root = np.zeros(schema.n_cells, dtype=np.int64)
        self._totals = count_by(views, labels, root, 1, counts)
        self._records = self._measures.index(RECORDS)
        self._final = [self._totals] if self._fronts.next() is None else []
        self._widths: list[int] = []
        self._cuts: list[Ints] = []

    def next(self) -> Front | None:
        most = self._tests.most_of_a_group(self._by_measure(self._totals))
        front = self._fronts.next(WIDE_FRONT if most <= MANY_TESTS else 1)
        if front is not None:
            self._widths.append(front.at.shape[1])
        return front

    def verdict(self, front: Front) -> Rounds[Verdict]:
        self._ledger.iteration += 1
        self._observer.phase("count")
        own = self._rows.measured(front, self._views)
        bits = self._tests.share_bits(int(front.sizes.max()))
        self._observer.phase("share")
        share = yield from share_vector(self._pair.shares, own[:, 0].reshape(-1).astype(dtype(bits)))
        judged = None if share is None else share.reshape(own[:, 0].shape)
        self._observer.phase("validity")
        taken = yield from self._taken(front, judged)
        self._observer.phase("integrate")
        self._left = self._totals.copy()
        cut = np.flatnonzero(taken != NONE)
        if len(cut):
            chosen = None if judged is None else judged[:, cut, taken[cut]]
            self._left[:, cut] = yield from self._open(
                own[:, :, cut, taken[cut]], self._totals[:, cut], bits, chosen
            )
        self._cuts.append(taken)
        return Verdict(taken, self._left[self._records])

    def apply(self, front: Front, verdict: Verdict) -> None:
        move = self._fronts.follow(front, verdict)
        self._rows.follow(front, verdict.taken, move)
        sides = np.stack([self._left, self._totals - self._left])
        moved = sides[move.is_right.astype(np.int64), :, move.parent].T
        self._final.append(moved[:, move.is_final])
        self._totals = moved[:, ~move.is_final]

    def finish(self) -> Rounds[JointKd]:
        """Open the cells of the final groups, and see that all that was told follows from them."""
        boxes, _ = self._fronts.final
        order = in_box_order(boxes)
        rank = np.argsort(order)
        counts = self._by_measure(np.concatenate(self._final, axis=1)[:, order])
        self._observer.phase("integrate")
        group = rank[self._rows.group]
        entries = yield from open_cells(self._pair, self._table, group, counts, self._ledger)
        result = BoxedTable(boxes.some(order), *entries)
        widths = iter(self._widths)
        again = replay(self._schema, result, self._least, lambda _: next(widths, None))
        replayed = [front.verdict.taken for front in again]
        self._require(all(map(np.array_equal, replayed, self._cuts)) and len(replayed) == len(self._cuts))
        return JointKd(self._schema, result, self._ledger, group)

    def _taken(self, front: Front, judged: Shares | None) -> Rounds[Ints]:
        """The first valid candidate of every group, or NONE, as the pair finds it."""
        engine, (n_groups, width) = self._pair.engine, front.at.shape
        first = np.zeros(n_groups, dtype=np.uint64)
        if engine is not None and judged is not None:
            shares = self._by_measure(judged.astype(np.uint64))
            first = yield from self._tests.first(engine, front, shares, self._by_measure(self._totals))
        leader = self._pair.roster.leader
        payload = yield from self._pair.tell(_TAKEN, encode_words(first))
        told = decode_words(payload, n_groups, leader, _TAKEN)
        if (told > width).any():
            raise RemoteProtocolError(leader, _TAKEN, "a candidate that is not in the front")
        taken: Ints = told.astype(np.int64) - 1
        if (front.at[np.arange(n_groups), taken][taken != NONE] == 0).any():
            raise RemoteProtocolError(leader, _TAKEN, "a candidate that there is not")
        return self._ledger.reveal("cut_taken", taken, "all")

    def _open(self, own: Ints, totals: Ints, bits: int, share: Shares | None) -> Rounds[Ints]:
        """Open what was judged of the cuts taken, left of them: int64, shape (n_measures, n_cuts).

        own:  ours of both sides, shape (n_measures, 2, n_cuts). totals: of the groups. share: of what was judged.
        """
        self._observer.opening_groups(own[self._records].reshape(-1))
        yield from self._pair.hear_consent(_CONSENT)
        flat = None if share is None else np.ascontiguousarray(share).reshape(-1)
        total = yield from open_vector(self._pair.shares, totals.size, bits, flat)
        assert total is not None
        opened = total.astype(np.int64).reshape(-1, 1)
        sides = np.moveaxis(own, 1, -1).reshape(-1, 2)
        both = checked_counts(opened, sides, totals.reshape(-1), self._pair.roster.suspects, "shares/open")
        self._ledger.reveal("group_counts", both[:, 0].reshape(totals.shape), "all")
        by_side: Ints = both.T.reshape(2, *totals.shape)
        self._require(all(met.all() for _, met in self._judge.met(np.concatenate(list(by_side), axis=1))))
        left: Ints = by_side[0]
        return left

    def _by_measure(self, counts: NDArray[Any]) -> dict[Measure, NDArray[Any]]:
        return dict(zip(self._measures, counts, strict=True))

    def _require(self, met: bool) -> None:
        """Raise RemoteProtocolError if something was opened or told that should not have been."""
        if not met:
            judges = " or ".join((self._pair.roster.leader, self._pair.roster.deputy))
            raise RemoteProtocolError(judges, _OPENED, "groups were cut as the requirement does not allow")


class _Tests:
    """Which tests a front takes, from public counts, and their verdicts."""

    def __init__(self, criteria: Sequence[Criterion], least: int) -> None:
        """``least``: K."""
        sized = any(isinstance(criterion, Size) for criterion in criteria)
        self._criteria = tuple(criteria) if sized else (Size(1), *criteria)
        self._least = least

    def at_stake(self, criterion: Criterion, totals: Mapping[Measure, Ints]) -> Bools:
        """Which cases the sides of a group could break: shape (n_groups, n_cases); of its size, always."""
        tallies = {measure: counts for measure, counts in totals.items() if isinstance(measure, Tally)}
        found = criterion.at_stake(tallies, self._least)
        return np.ones_like(found) if isinstance(criterion, Size) else found

    def most_of_a_group(self, totals: Mapping[Measure, Ints]) -> int:
        """Tests of one side of a cut, in the group that takes most."""
        by_criterion = [self.at_stake(criterion, totals).sum(axis=1) for criterion in self._criteria]
        return int(np.sum(by_criterion, axis=0).max(initial=0))

    def share_bits(self, n_records: int) -> int:
        """Width of shares in which counts and forms of groups of so many records fit, at most."""
        return width_for((1 << max(_width(criteria, n_records) for criteria in _alike(self._criteria))) - 1)

    def first(
        self, engine: Engine, front: Front, left: Mapping[Measure, Words], totals: Mapping[Measure, Ints]
    ) -> Rounds[Words]:
        """Open the number of the first valid candidate of every group, from 1, or 0: shape (n_groups,).

        left: our shares of the counts left of every candidate, shape (n_groups, n_candidates) each.
        """
        present = front.at > 0
        met, owner = [], []
        for rule, width, slots, values, whole in self._rows(front, present, left, totals):
            circuit = circuits.sides_circuit(rule, width, values.shape[1])
            inputs = {rule.entry: low_bits(values, width), "whole": low_bits(whole, width)}
            met.append(carried((yield from engine.run(circuit, len(values), inputs)), "met"))
            owner.append(slots)
        owners = np.concatenate(owner)
        bits = {"met": CarriedWords.concatenate(met).take(np.argsort(owners, kind="stable"))}
        there, sizes = np.unique(owners, return_counts=True)
        by_slot = (yield from engine.reduce(both_circuit(), bits, sizes.tolist()))["met"]
        n_groups, width = present.shape
        place = np.zeros(present.size, dtype=np.int64)
        place[there] = np.arange(len(there))
        outputs = yield from engine.run(
            circuits.first_circuit(width),
            n_groups,
            {"met": by_slot.take(place), "present": present.astype(np.uint64)},
        )
        first = outputs["first"]
        assert isinstance(first, np.ndarray)
        for number in np.unique(first).tolist():
            expect_outcome(number, width + 1, engine.peer)
        return first.reshape(-1)

    def _rows(
        self, front: Front, present: Bools, left: Mapping[Measure, Words], totals: Mapping[Measure, Ints]
    ) -> Iterator[tuple[Rule, int, Ints, Words, Words]]:
        """By rule and width of the numbers: the slot of every test, our shares of its values, and the public ones."""
        for criteria in _alike(self._criteria):
            widths = np.array([_width(criteria, n) for n in front.sizes.tolist()])
            for width in np.unique(widths).tolist():
                parts = [
                    part
                    for criterion in criteria
                    for part in self._tests_of(criterion, widths == width, present, left, totals)
                ]
                if parts:
                    slots, values, whole = (np.concatenate(each) for each in zip(*parts, strict=True))
                    yield criteria[0].rule, width, slots, values, whole

    def _tests_of(
        self,
        criterion: Criterion,
        chosen: Bools,
        present: Bools,
        left: Mapping[Measure, Words],
        totals: Mapping[Measure, Ints],
    ) -> Iterator[tuple[Ints, Words, Words]]:
        """The tests of one criterion in some groups, case by case: slots, our shares, public values."""
        stake = self.at_stake(criterion, totals) & chosen[:, None]
        for forms, groups in zip(criterion.cases, stake.T, strict=True):
            group, place = np.nonzero(present & groups[:, None])
            if len(group):
                values = np.stack([_of(form, left)[group, place] for form in forms], axis=1)
                whole = np.stack([_of(form, totals)[group] for form in forms], axis=1)
                yield group * present.shape[1] + place, values, whole.astype(np.uint64)


def _of(form: Form, counts: Mapping[Measure, NDArray[Any]]) -> NDArray[Any]:
    return form.of({measure: counts[measure] for measure, _ in form.terms})


def _alike(criteria: Sequence[Criterion]) -> list[list[Criterion]]:
    """Criteria whose tests can go through one circuit."""
    return list(alike(criteria).values())


def _width(criteria: Sequence[Criterion], n_records: int) -> int:
    """Bits of what is tested in a group of so many records, rounded up."""
    bits = max(form.bits(n_records) for c in criteria for case in c.cases for form in case)
    return min(-(-(bits + 1) // _WIDTH_STEP) * _WIDTH_STEP, WORD_BITS)
