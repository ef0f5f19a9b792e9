"""`method: kd`, `disclosure: sealed`: horizontal kd that opens only values implied by the release.

All parties follow the same fronts (semantics §11.3). For every candidate the pair gets shares of the criteria's
counts on the left, and circuits judge both sides. For each open group, the pair opens the number of the first valid
candidate and then the counts on its left, from the judged shares. The cells of the final groups come last. A replay
of the released table computes all opened values (semantics §11.5). Two or more parties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.clear import Judge
from anonymize.criteria.criterion import (
    RECORDS,
    Criterion,
    tallies_of,
)
from anonymize.criteria.size import least_size
from anonymize.criteria.views import count_by, measures_of, views_of
from anonymize.grouping import BoxesOfRows
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.kd.cells import open_blocks
from anonymize.joint.kd.judging import SideTests
from anonymize.joint.lkc.root import check_root, open_counts, opened_root
from anonymize.joint.party import Party, begin
from anonymize.joint.roster import Roster
from anonymize.kd.boxes import Boxes, PublicSplit, whole
from anonymize.kd.fronts import NONE, Front, Fronts, Move, Verdict, cut_fronts
from anonymize.kd.replay import replay
from anonymize.kd.rows import OpenRows
from anonymize.kd.single import check_labels, the_entry
from anonymize.kd.table import BoxedTable, in_box_order
from anonymize.linked_columns import Blocks, check_apart, counted_blocks, linked_root
from anonymize.lkc.requirement import Requirement, criteria_of, root_refused, whole_table
from anonymize.table import CodedTable, Ints, Schema
from anonymize.tds import ROOT, Observer
from crypto.encoding import decode_words, encode_words
from crypto.errors import RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import Shares, dtype, share_vector

_ROOT, _TAKEN, _OPENED, _CONSENT = "kd/root", "kd/taken", "kd/opened", "kd/consent"
WIDE_FRONT, MANY_TESTS = 8, 10_000
"""Most candidates of a group in a front; fewer if these need more than ``MANY_TESTS`` tests of a side."""


@dataclass(frozen=True)
class KdRequest:
    """Computation agreed by all parties.

    linked:  blocks of sensitive columns, if the table does not link all.
    """

    schema: Schema
    requirement: Requirement
    job_hash: bytes
    linked: Blocks = ()


@dataclass(frozen=True)
class JointKd:
    """Result as every party knows it, and the reveals.

    table:  several blocks are linked in the fixed order (:mod:`anonymize.linked_columns`).
    group:  own part: group of every row of the own table: int64, shape (n_rows,).
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
    """Cut the union of the parties' tables into groups. Only values implied by the release are opened.

    Functionality:  the table of the union from ``anonymize.kd.single.anonymize_kd``, to every party in counted form.
    Input, each:    ``table``; request, roster and ``mode`` are public and equal for all.
    Output, each:   the same :class:`JointKd`, except the groups of own rows.
    Leakage:        to all: root check bit; counts of the whole table; for every front the taken candidate of each
                    open group, and the criteria's counts on its left; the cells of the final groups. With several
                    blocks all counts are by block. All except a failed root check follow from the output, as do the
                    sizes of circuits. Leader and deputy together could open everything.
    Rounds:         3 for the pair, those of :func:`~anonymize.joint.lkc.root.open_root`; for every front at most 6, 2
                    for every batch of tests of one rule and width and of zero tests of one width, 1 for every rule of
                    zeros, and 1 for every level of a tree over the tests of one candidate; those of
                    :func:`open_cells` for every block. An opening of more than 1 MiB takes 1 more for every further
                    MiB.
    Bytes:          between the pair as :func:`anonymize.joint.lkc.sealed.anonymize_sealed`; from each other party 2,
                    4 or 8, by their width, for every count of every candidate, and those of :func:`open_cells`.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         semantics §11; [MSA] Fig. 5, corrected.

    Raises PrivacyError if the root check fails, SchemaError for an unsupported requirement or schema,
    RemoteProtocolError for a malformed message or opened counts that are not valid. Passes on errors of the observer
    about groups to be opened, before any own part of these groups is opened.
    """
    the_entry(request.requirement, request.schema)
    check_labels(request.schema.qid)
    begun = yield from begin(roster, request.job_hash, rng, RevealLedger(mode, observer=observer), observer)
    party = _Party(begun, table.sparse(), request)
    yield from party.start()
    yield from cut_fronts(party, begun.observer)
    return (yield from party.finish())


def _grouping(boxes: Boxes) -> BoxesOfRows:
    return BoxesOfRows(boxes.first, boxes.last)


def _moved(move: Move, left: Ints, whole: Ints) -> Ints:
    """Return the counts of the groups after a front, from the counts left of its cuts."""
    sides = np.stack([left, whole - left])
    moved: Ints = sides[move.is_right.astype(np.int64), :, move.parent].T
    return moved


class _Party:
    """Holder of records, as a :class:`anonymize.kd.fronts.Cutter`."""

    def __init__(self, party: Party, table: CodedTable, request: KdRequest) -> None:
        self._pair = party.pair
        self._table = table
        self._schema = request.schema
        self._blocks = counted_blocks(request.schema, request.linked)
        self._entries = request.requirement.entries(request.schema)
        check_apart(self._blocks, criteria_of(self._entries))
        self._ledger = party.ledger
        self._observer = party.observer

    def start(self) -> Rounds[None]:
        """Check the root, open its counts, and begin with a single group."""
        self._observer.phase(ROOT)
        ledger, entries = self._ledger, self._entries
        own = whole_table(self._table, entries, {})
        self._observer.grouping(_grouping(whole(self._schema)))
        self._observer.opening_groups(own.sum(keepdims=True))
        yield from check_root(
            self._pair, self._table.schema, entries, own, ledger, _ROOT, root_refused(entries)
        )
        by_block = [block.root(self._table) for block in self._blocks]
        opened = yield from open_counts(self._pair, np.concatenate(by_block), ledger)
        root = self._linked_root(np.split(opened, np.cumsum([len(own) for own in by_block])[:-1]))
        (entry,) = opened_root(self._pair, root[0], entries, root[1], _ROOT)
        self._begin(root, entry.criteria)

    def _linked_root(self, by_block: Sequence[Ints]) -> tuple[Schema, Ints]:
        """Return the whole table as from :func:`anonymize.linked_columns.linked_root`."""
        if len({int(counts.sum()) for counts in by_block}) > 1:
            message = "blocks of one table with different numbers of records"
            raise RemoteProtocolError(self._pair.roster.suspects, "shares/open", message)
        return linked_root(self._schema, self._blocks, by_block)

    def _begin(self, root: tuple[Schema, Ints], criteria: Sequence[Criterion]) -> None:
        """Begin with the whole table ``root``."""
        schema, (of_root, counts) = self._schema, root
        self._least = least_size(criteria)
        self._views = views = views_of(schema, tallies_of(criteria))
        self._measures = measures_of(views)
        self._tests = SideTests(criteria, self._measures, self._least)
        self._judge = Judge(criteria, self._measures)
        own = self._table
        self._rows = OpenRows(own, [view.of_some(own.schema, own.cells) for view in views])
        self._fronts = Fronts(schema, PublicSplit(schema), int(counts.sum()), self._least)
        labels = [view.of_cells(of_root) for view in views]
        self._totals = count_by(views, labels, np.zeros_like(counts), 1, counts)
        self._records = self._measures.index(RECORDS)
        self._final = [self._totals] if self._fronts.next() is None else []
        self._widths: list[int] = []
        self._cuts: list[Ints] = []

    def next(self) -> Front | None:
        self._open_groups = self._tests.of(self._totals)
        front = self._fronts.next(min(max(MANY_TESTS // self._open_groups.of_one_candidate, 1), WIDE_FRONT))
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
            self._observer.grouping(_grouping(self._fronts.boxes_after(front, taken)))
            chosen = None if judged is None else judged[:, cut, taken[cut]]
            self._left[:, cut] = yield from self._open(
                own[:, :, cut, taken[cut]], self._totals[:, cut], bits, chosen
            )
        self._cuts.append(taken)
        return Verdict(taken, self._left[self._records])

    def apply(self, front: Front, verdict: Verdict) -> None:
        move = self._fronts.follow(front, verdict)
        self._rows.follow(front, verdict.taken, move)
        moved = _moved(move, self._left, self._totals)
        self._final.append(moved[:, move.is_final])
        self._totals = moved[:, ~move.is_final]

    def finish(self) -> Rounds[JointKd]:
        """Open the cells of the final groups, and check that all opened values follow from them."""
        boxes, _ = self._fronts.final
        order = in_box_order(boxes)
        rank = np.argsort(order)
        final = np.concatenate(self._final, axis=1)[:, order]
        counts = dict(zip(self._measures, final, strict=True))
        self._observer.phase("integrate")
        group = rank[self._rows.group]
        entries = yield from open_blocks(self._pair, self._table, self._blocks, group, counts, self._ledger)
        result = BoxedTable(boxes.some(order), *entries)
        widths = iter(self._widths)
        again = replay(self._schema, result, self._least, lambda _: next(widths, None))
        replayed = [front.verdict.taken for front in again]
        self._require(all(map(np.array_equal, replayed, self._cuts)) and len(replayed) == len(self._cuts))
        return JointKd(self._schema, result, self._ledger, group)

    def _taken(self, front: Front, judged: Shares | None) -> Rounds[Ints]:
        """Return the first valid candidate of every group, or NONE, found by the pair."""
        engine, (n_groups, width) = self._pair.engine, front.at.shape
        first = np.zeros(n_groups, dtype=np.uint64)
        if engine is not None and judged is not None:
            first = yield from self._tests.first(engine, front, judged.astype(np.uint64), self._open_groups)
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
        """Open the judged counts left of the taken cuts: int64, shape (n_measures, n_cuts).

        own:  own counts of both sides, shape (n_measures, 2, n_cuts). totals: of the groups. share: of the judged
              counts.
        """
        self._observer.opening_groups(own[self._records].reshape(-1))
        yield from self._pair.hear_consent(_CONSENT)
        flat = None if share is None else np.ascontiguousarray(share).reshape(-1)
        sides = np.moveaxis(own, 1, -1).reshape(-1, 2)
        both = yield from self._pair.open_counts(flat, sides, totals.reshape(-1), bits)
        self._ledger.reveal("group_counts", both[:, 0].reshape(totals.shape), "all")
        by_side: Ints = both.T.reshape(2, *totals.shape)
        self._require(all(met.all() for _, met in self._judge.met(np.concatenate(list(by_side), axis=1))))
        left: Ints = by_side[0]
        return left

    def _require(self, met: bool) -> None:
        """Raise RemoteProtocolError if ``met`` is False: an opened or received value is not allowed.

        The error names all other parties: the pair may have judged wrongly, or may have received wrong shares.
        """
        if not met:
            suspects = self._pair.roster.suspects
            raise RemoteProtocolError(suspects, _OPENED, "groups were cut as the requirement does not allow")
