"""`model: sequences`, `disclosure: sealed`: local suppression over several holders, without opened counts.

Every party runs the loop of a single holder (:mod:`anonymize.trajectory.sweep`) over its own paths. All ask
the same questions, because these follow from the answers: an opened bit for every sequence
(:mod:`anonymize.joint.trajectory.kept`). The remaining records go through the shuffle (:mod:`crypto.mixing`),
which hides the party of each record. Every party checks that the result matches the answers. Two or more
parties.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from anonymize.criteria.criterion import Bools
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import MIX, RevealLedger
from anonymize.joint.lkc.root import open_root
from anonymize.joint.party import Party, begin
from anonymize.joint.roster import Roster
from anonymize.joint.trajectory.kept import Thresholds, kept_sequences, thresholds
from anonymize.joint.trajectory.rows import RowCoding
from anonymize.lkc.requirement import root_refused
from anonymize.table import Ints, tally
from anonymize.tds import ROOT, Observer
from anonymize.trajectory.levels import TOO_MANY
from anonymize.trajectory.paths import Items, Paths
from anonymize.trajectory.requirement import Bounds
from anonymize.trajectory.sweep import Asked, Suppressed, Sweep, local
from crypto.errors import RemoteProtocolError
from crypto.mixing import VOUCHER_BYTES, Rows, mix_rows
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import ComputePair

_ROOT, _TABLE = "sequences/root", "mix/told"
MOST_SWEEPS = 32
"""Most sweeps. Honest runs end after about ten, the longest known after 14. A party that lies about a sequence in
every sweep must not extend the run forever.
"""
MAX_BYTES = 1 << 30
"""Most bytes of all records in the shuffle, which every party sends to the deputy."""


@dataclass(frozen=True)
class SequencesRequest:
    """Computation agreed by all parties."""

    bounds: Bounds
    coding: RowCoding
    max_candidates: int
    job_hash: bytes


@dataclass(frozen=True)
class JointSequences:
    """Result as every party knows it, and the reveals.

    rows:   records of all parties, sorted by their bytes (:class:`RowCoding`). table: the same as paths.
    own:    own records: the original paths, in their order, with their remaining items.
    """

    rows: Rows = field(repr=False)
    table: Paths
    sweeps: tuple[Sweep, ...]
    ledger: RevealLedger
    own: Paths = field(repr=False)


def suppress_sealed(
    roster: Roster,
    paths: Paths,
    request: SequencesRequest,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
) -> Rounds[JointSequences]:
    """Suppress items of single records until every sequence in the records of all parties is kept.

    Functionality:  the table of the union from ``anonymize.trajectory.sweep.local_alone``, to every party.
    Input, each:    ``paths``; request, roster and ``mode`` are public and equal for all.
    Output, each:   the same :class:`JointSequences`, except own paths.
    Leakage:        to all: root check bit; sensitive counts of the whole table; for every tested sequence of a sweep
                    a bit: kept in the table of that time; the table. Finer than the table are the bits of sequences
                    lost in a later sweep, and the sweep of the loss. To the leader the number of records of each
                    party. Sizes of circuits follow from these. Leader and deputy together could open everything.
    Rounds:         at most 3 for the pair, those of :func:`open_root`, of :func:`kept_sequences` for every size of
                    every sweep, and of :func:`crypto.mixing.mix_rows`.
    Bytes:          as :func:`open_pair`, :func:`open_root`; :func:`kept_sequences` for every tested sequence;
                    :func:`mix_rows` with rows of :attr:`RowCoding.width`.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         [T] chapter 4 with local suppression; semantics, sequences.

    Raises PrivacyError if the root check fails, for more than ``max_candidates`` sequences of a size, more than
    MOST_SWEEPS sweeps, or too many records for the shuffle; RemoteProtocolError for a malformed message, or a table
    that contradicts the answers. Passes on errors of the observer about own records with each sequence to be
    published, before any own record is sent.
    """
    party = yield from begin(roster, request.job_hash, rng, RevealLedger(mode, observer=observer), observer)
    holder = _Party(party, request)
    yield from holder.start(paths)
    left = yield from holder.suppress(paths)
    rows = yield from holder.mixed(left.paths, rng)
    return JointSequences(rows, holder.checked(rows), left.sweeps, party.ledger, left.paths)


class _Party:
    """Holder of records."""

    def __init__(self, party: Party, request: SequencesRequest) -> None:
        self._pair = party.pair
        self._request = request
        self._observer = party.observer
        self._ledger = party.ledger

    def start(self, paths: Paths) -> Rounds[None]:
        """Check the root, and open its counts."""
        self._observer.phase(ROOT)
        bounds, entries = self._request.bounds, (self._request.bounds.entry,)
        own = tally(paths.cells, paths.weights, bounds.schema.n_cells)
        self._observer.opening_groups(own.sum(keepdims=True))
        refused = root_refused(entries, "the table of all records without their paths")
        _, self._counts = yield from open_root(
            self._pair, bounds.schema, entries, own, self._ledger, _ROOT, refused
        )
        self._n_records = int(self._counts.sum())
        if self._n_records * (self._request.coding.width + VOUCHER_BYTES) > MAX_BYTES:
            raise PrivacyError(
                "too-many-rows",
                f"all records, of {self._request.coding.width:,} bytes each, are more than 1 GiB",
                remedy="take a coarser time, or lower `max_items`",
            )

    def suppress(self, paths: Paths) -> Rounds[Suppressed]:
        """Follow the loop."""
        asked = thresholds(self._request.bounds, self._n_records)
        loop = local(paths, self._request.bounds, self._request.max_candidates, self._observer)
        self._last: list[_Answered] = []
        self._observer.phase("count")
        question = next(loop)
        while True:
            answer = yield from self._answer(asked, question)
            self._observer.phase("count")
            try:
                question = loop.send(answer)
            except StopIteration as stop:
                left: Suppressed = stop.value
                self._last = self._last[: sum(n > 0 for n in left.sweeps[-1].tested)]
                return left

    def _answer(self, asked: Thresholds, question: Asked) -> Rounds[Bools]:
        if question.sequences.shape[1] == 1:
            self._last = []
            self._ledger.iteration += 1
            if self._ledger.iteration > MOST_SWEEPS:
                raise PrivacyError(
                    TOO_MANY,
                    f"suppression does not come to an end: {MOST_SWEEPS} sweeps were made",
                    remedy="take a coarser time, fewer locations or a smaller L",
                )
        kept = yield from kept_sequences(self._pair, asked, question.counts, self._observer)
        self._ledger.reveal("kept", kept, "all")
        self._last.append(_Answered(question.sequences[kept], question.counts[0, kept]))
        return kept

    def mixed(self, left: Paths, rng: Rng) -> Rounds[Rows]:
        """Put the records of all together."""
        self._observer.phase(MIX)
        self._observer.opening_groups(np.concatenate([[left.n_records], *(kept.own for kept in self._last)]))
        roster, coding = self._pair.roster, self._request.coding
        self._ledger.reveal("row_counts", None, "leader", (len(roster.parties),))
        pair = ComputePair(roster.leader, roster.deputy)
        rows = coding.encoded(left)
        all_rows = yield from mix_rows(roster.me, roster.parties, pair, rows, self._n_records, rng)
        return self._ledger.reveal("rows", all_rows, "all")

    def checked(self, rows: Rows) -> Paths:
        """Return the records, if they match the answers."""
        try:
            table = self._request.coding.decoded(rows)
        except ValueError as error:
            raise self._wrong("a row that no record is written as") from error
        if (tally(table.cells, table.weights, len(self._counts)) != self._counts).any():
            raise self._wrong("other sensitive values than were counted")
        bounds, most = self._request.bounds, self._request.max_candidates
        try:
            found = [asked.sequences for asked in _occurring(table, bounds, most) if len(asked.sequences)]
        except PrivacyError as error:
            raise self._wrong("more sequences than were kept") from error
        told = [kept.sequences for kept in self._last if len(kept.sequences)]
        if len(found) != len(told) or not all(map(np.array_equal, found, told)):
            raise self._wrong("other sequences than were kept")
        return table

    def _wrong(self, reason: str) -> RemoteProtocolError:
        """Return an error naming all others: the owner of the row, and the party with a wrong answer, are unknown."""
        return RemoteProtocolError(self._pair.roster.suspects, _TABLE, reason)


@dataclass(frozen=True)
class _Answered:
    """Kept sequences of the same size, and own records with each of them."""

    sequences: Items = field(repr=False)
    own: Ints = field(repr=False)


def _occurring(table: Paths, bounds: Bounds, most: int) -> Iterator[Asked]:
    """Yield all sequences of a table's records, size by size, as long as all are kept."""
    loop = local(table, bounds, most)
    question = next(loop)
    for size in range(1, bounds.max_known + 1):
        if question.sequences.shape[1] != size:
            break
        occurs, kept = question.counts[0] > 0, bounds.kept(question.counts)
        yield Asked(question.sequences[occurs], question.counts[:, occurs])
        if size == bounds.max_known:
            break
        try:
            question = loop.send(kept)
        except StopIteration:
            break
    loop.close()
