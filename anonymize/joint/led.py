"""`disclosure: leader`: horizontal LKC as published, with a leader who sees the sums ([T] 5.4).

The leader learns, by secure sums, the global counts of every candidate, chooses, checks and tells the
others. That is finer than the result, so it does not meet [T] Definition 5.2 (3); kept for comparison.
Three or more parties: with two, the sum minus one's own counts is the other's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from anonymize.candidates import CandidatePool, GroupSizes, propose
from anonymize.cut import Candidate, Cut
from anonymize.errors import PrivacyError
from anonymize.group_plan import GroupPlan
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.horizontal import JointOutcome, Profiled, Request, Roster, anonymize_horizontally
from anonymize.joint.messages import (
    checked_counts,
    decode_bit,
    decode_candidate,
    encode_bit,
    encode_candidate,
)
from anonymize.privacy import check_root, check_sizes, requirement_unmet
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.encoding import as_words, decode_words, encode_words, signed
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send
from crypto.secure_sum import PairwiseMasks, agree_masks, masked_sum, ring_sum

SumKind: TypeAlias = Literal["masked", "ring"]


def anonymize_led(
    roster: Roster,
    table: CodedTable,
    request: Request,
    rng: Rng,
    *,
    sums: SumKind = "masked",
    observer: Observer | None = None,
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables, the leader seeing the counts of every candidate.

    Functionality:  the LKC table of the union as ``anonymize.single.anonymize_alone`` makes it, to every
                    party in counted form.
    Input, each:    ``table``; the request is public and equal for all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the candidate, whether it is
                    valid, and the counts of the leaf partitions refined. To the leader: the global counts of
                    every candidate, valid or not, which are finer than the result.
    Rounds:         6 for keys, root and first candidates; per candidate 6 where it is applied, 2 where it is
                    discarded; 1 to end. Ring sums take n rounds for 1.
    Bytes:          8 per count and party, as in the ledger; 20 per candidate and 1 per bit from the leader.
    Assumes:        semi-honest parties, at most n - 2 colluding (ring: none); private authenticated
                    channels; n >= 3.
    Source:         [T] 5.4, Algorithms 5.2 and 5.3; differences in DESIGN §6.

    Raises PrivacyError if the root check fails, RemoteProtocolError for a malformed message,
    LocalProtocolError for fewer than three parties.
    """
    masks = yield from agree_masks(roster.me, roster.parties, request.job_hash, rng)
    observer = observer or Observer()
    referee = LeaderReferee(roster, request, masks, rng, sums, observer)
    return (yield from anonymize_horizontally(table, request, referee, observer))


class LeaderReferee:
    """The leader judges in the clear; the others send it sums and do what it says."""

    def __init__(
        self,
        roster: Roster,
        request: Request,
        masks: PairwiseMasks,
        rng: Rng,
        sums: SumKind,
        observer: Observer,
    ) -> None:
        self._roster = roster
        self._request = request
        self._masks = masks
        self._rng = rng
        self._sums: SumKind = sums
        self._observer = observer
        self._candidates = CandidatePool(request.goal)
        self.ledger = RevealLedger("horizontal/leader")

    def meets_root(self, cell_counts: Ints) -> Rounds[bool]:
        total = yield from self._to_leader("root_totals", cell_counts)
        if total is not None:
            check_sizes(self._request.schema, int(total.sum()))
        met = total is not None and not check_root(self._request.schema, self._request.requirement, total)
        return (yield from self._tell_bit("horizontal/root", met))

    def root_error(self) -> PrivacyError:
        return requirement_unmet(None)

    def start(self, n_records: int) -> None:
        """Nothing depends on it here."""

    def open(self, counts: Ints, totals: Ints | None) -> Rounds[Ints]:
        step = "horizontal/open"
        told = counts if totals is None else counts[:, :-1]
        total = yield from self._sum(told)
        encoded = b"" if total is None else encode_words(as_words(total.reshape(-1)))
        payload = yield from self._tell(step, encoded)
        opened = signed(decode_words(payload, told.size, self._roster.leader, step)).reshape(told.shape)
        return checked_counts(opened, counts, totals, self._roster.suspects, step)

    def propose(self, nodes: Sequence[Profiled]) -> Rounds[None]:
        own = np.concatenate([np.zeros(0, dtype=np.int64), *(n.counts.reshape(-1) for n in nodes)])
        self._observer.phase("share")
        total = yield from self._to_leader("candidate_counts", own)
        self._observer.phase("score")
        if total is None:
            return
        ends = np.cumsum([n.counts.size for n in nodes])[:-1]
        for profiled, counts in zip(nodes, np.split(total, ends) if nodes else [], strict=True):
            self._enter(profiled, counts.reshape(profiled.counts.shape))

    def _enter(self, profiled: Profiled, counts: Ints) -> None:
        column = self._request.schema.qid[profiled.column]
        proposal = propose(profiled.column, column, profiled.node, counts, self._request.goal)
        if proposal is not None:
            self._candidates.add(proposal)

    def best(self, cut: Cut, sizes: GroupSizes | None) -> Rounds[Candidate | None]:
        step = "horizontal/candidate"
        best = self._candidates.pop(sizes) if self._roster.leads else None
        payload = yield from self._tell(step, encode_candidate(best))
        return decode_candidate(payload, self._request.schema, cut, self._roster.leader, step)

    def is_valid(self, plan: GroupPlan, sums: Ints) -> Rounds[bool]:
        self._observer.phase("share")
        total = yield from self._to_leader("group_counts", sums)
        self._observer.phase("validity")
        request = self._request
        valid = total is not None and not plan.violation(request.schema, request.requirement, total)
        return (yield from self._tell_bit("horizontal/valid", valid))

    def _sum(self, values: Ints) -> Rounds[Ints | None]:
        """Give the leader everybody's values added up; None elsewhere."""
        r, words = self._roster, as_words(values.reshape(-1))
        if self._sums == "masked":
            total = yield from masked_sum(r.me, r.parties, r.leader, words, self._masks)
        else:
            total = yield from ring_sum(r.me, r.parties, r.leader, words, self._rng)
        return None if total is None else signed(total).reshape(values.shape)

    def _to_leader(self, name: str, values: Ints) -> Rounds[Ints | None]:
        """Reveal sums to the leader."""
        total = yield from self._sum(values)
        return self.ledger.reveal(name, total, "leader", values.shape)

    def _tell(self, step: str, payload: bytes) -> Rounds[bytes]:
        """Send the leader's payload to all; elsewhere wait for it."""
        if not self._roster.leads:
            return (yield from receive(step, self._roster.leader))
        yield from send(step, dict.fromkeys(self._roster.others, payload))
        return payload

    def _tell_bit(self, step: str, value: bool) -> Rounds[bool]:
        payload = yield from self._tell(step, encode_bit(value))
        return decode_bit(payload, self._roster.leader, step)
