"""`disclosure: leader`: horizontal LKC as published, with a leader who sees the sums ([T] 5.4).

The leader learns, by secure sums, the global counts of every candidate, chooses, checks and tells the
others. That is finer than the result, so it does not meet [T] Definition 5.2 (3); kept for comparison.
Three or more parties: with two, the sum minus one's own counts is the other's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from anonymize.candidates import propose
from anonymize.criteria.criterion import Beside, sides_of
from anonymize.cut import Candidate
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.horizontal import Holder, anonymize_horizontally
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import Profiled, opened_candidates
from anonymize.joint.messages import (
    checked_counts,
    decode_bit,
    decode_candidate,
    decode_only_children,
    encode_bit,
    encode_candidate,
    encode_only_children,
)
from anonymize.joint.roster import Roster
from anonymize.lkc.plan import GroupPlan
from anonymize.lkc.requirement import check_root, check_sizes, criteria_of, requirement_unmet
from anonymize.lkc.sides import SidesOfGroups
from anonymize.scores.score import Followed, Wanted
from anonymize.table import CodedTable, Ints
from anonymize.tds import Observer
from crypto.encoding import Words, as_words, decode_words, encode_words, signed
from crypto.errors import LocalProtocolError, RemoteProtocolError
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
    mode: str,
    sums: SumKind = "masked",
    observer: Observer | None = None,
    beside: Beside | None = None,
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables, the leader seeing the counts of every candidate.

    Functionality:  the LKC table of the union as ``anonymize.lkc.single.anonymize_alone`` makes it, to every
                    party in counted form.
    Input, each:    ``table``, and ``beside`` it what side counts are made of, where the requirement takes any; the
                    request and ``mode``, whose list the reveals are held to, are public and equal for all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the candidate, whether it is
                    valid, and the counts of the leaf partitions refined; of nodes whose children leave one by one, in
                    the end, which child has all records, if one has. To the leader: the global counts of
                    every candidate, valid or not, which are finer than the result. With the scores `added` and
                    `tdr` to all also split points as nodes appear, to the leader what their ``reveals`` list.
    Rounds:         6 for keys, root and first candidates; per candidate 6 where it is applied, 2 where it is
                    discarded; 1 to end. The scores `added` and `tdr` take at most 2 more for the first candidates
                    and for each one applied: split points, and the sums that they want. `refine: child`: 2 whenever
                    nodes are asked about; one that is then called by a child counts as a candidate applied. Ring
                    sums take n rounds for 1.
    Bytes:          8 per count and party, as in the ledger; 20 per candidate and 1 per bit from the leader.
    Assumes:        semi-honest parties, at most n - 2 colluding (ring: none); private authenticated
                    channels; n >= 3.
    Source:         [T] 5.4, Algorithms 5.2 and 5.3; differences in semantics §6.

    Raises PrivacyError if the root check fails, RemoteProtocolError for a malformed message, or counts opened that
    should not have been found valid, LocalProtocolError for fewer than three parties, a requirement that takes counts
    of one party, which the leader would see, or a reveal that the mode does not list; and what the observer raises
    where it is told of groups about to be opened, before our counts of the leaf partitions go.
    """
    if any(side.of_one for side in sides_of(criteria_of(request.requirement.entries(request.schema)))):
        raise LocalProtocolError("the leader would see what one party has of every group")
    masks = yield from agree_masks(roster.me, roster.parties, request.job_hash, rng)
    observer = observer or Observer()
    referee = LeaderReferee(
        roster,
        request,
        masks,
        rng,
        sums,
        observer,
        RevealLedger(mode, request.goal.reveals.get(mode, ())),
    )
    return (yield from anonymize_horizontally(table, request, referee, observer, beside))


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
        ledger: RevealLedger,
    ) -> None:
        self._roster = roster
        self._request = request
        self._entries = request.requirement.entries(request.schema)
        self._masks = masks
        self._rng = rng
        self._sums: SumKind = sums
        self._observer = observer
        self.ledger = ledger

    def meets_root(self, counts: Ints) -> Rounds[bool]:
        total, schema = (yield from self._to_leader("root_totals", counts)), self._request.schema
        if total is not None:
            cells = slice(schema.n_cells)
            checked_counts(total[cells], counts[cells], None, self._roster.suspects, "horizontal/root")
            check_sizes(self._entries, int(total[cells].sum()))
        met = total is not None and not check_root(schema, self._entries, total)
        return (yield from self._tell_bit("horizontal/root", met))

    def root_error(self) -> PrivacyError:
        return requirement_unmet(self._entries, None)

    def start(self, n_records: int, followed: Followed) -> None:
        """The leader needs no widths: it judges in the clear."""
        self._candidates = self._request.goal.pool(followed)

    def open(self, counts: Ints, totals: Ints | None) -> Rounds[Ints]:
        total = yield from self._sum(counts if totals is None else counts[:, :-1])
        return (yield from self._told(total, counts, totals, "horizontal/open"))

    def _told(self, total: Ints | None, counts: Ints, totals: Ints | None, step: str) -> Rounds[Ints]:
        """Tell all the sums that the leader has; see :meth:`open`."""
        told = counts if totals is None else counts[:, :-1]
        encoded = b"" if total is None else encode_words(as_words(total.reshape(-1)))
        payload = yield from self._tell(step, encoded)
        opened = signed(decode_words(payload, told.size, self._roster.leader, step)).reshape(told.shape)
        return checked_counts(opened, counts, totals, self._roster.suspects, step)

    def propose(self, nodes: Sequence[Profiled]) -> Rounds[Sequence[Candidate]]:
        own = np.concatenate([np.zeros(0, dtype=np.int64), *(n.counts.reshape(-1) for n in nodes)])
        self._observer.phase("share")
        total = yield from self._to_leader("candidate_counts", own)
        self._observer.phase("score")
        splits = np.zeros(len(nodes), dtype=np.uint64)
        if total is not None:
            ends = np.cumsum([n.counts.size for n in nodes])[:-1]
            for i, counts in enumerate(np.split(total, ends) if nodes else []):
                splits[i] = self._enter(nodes[i], self._checked(nodes[i], counts))
        return (yield from self._opened(nodes, splits)) if self._request.goal.wants_sums else ()

    def _checked(self, profiled: Profiled, counts: Ints) -> Ints:
        """The union's profile of a node. Raises RemoteProtocolError for one that T_g or our own part contradicts."""
        counts = counts.reshape(profiled.counts.shape)
        if (counts < profiled.counts).any() or (counts.sum(axis=0) != profiled.totals).any():
            reason = "counts of a candidate that contradict what is known"
            raise RemoteProtocolError(self._roster.suspects, "horizontal/candidate", reason)
        return counts

    def _enter(self, profiled: Profiled, counts: Ints) -> int:
        """Enter a prospect; the option to take, 0 if it is no candidate."""
        proposal = propose(profiled.prospect, counts, self._request.goal.merit)
        if proposal is None or not self._candidates.add(proposal):
            return 0
        return max(1, proposal.option)

    def _opened(self, nodes: Sequence[Profiled], splits: Words) -> Rounds[Sequence[Candidate]]:
        """Tell all which nodes are candidates, and where they are split."""
        step, leader = "horizontal/split", self._roster.leader
        payload = yield from self._tell(step, encode_words(splits))
        told = decode_words(payload, len(nodes), leader, step)
        self.ledger.reveal("split", told, "all")
        return opened_candidates(nodes, told.tolist(), leader, step)

    def renew(self, wanted: Sequence[Wanted], sums: Sequence[Ints]) -> Rounds[None]:
        self._observer.phase("share")
        for name in dict.fromkeys(each.name for each in wanted):
            asked = [(each, own) for each, own in zip(wanted, sums, strict=True) if each.name == name]
            total = yield from self._to_leader(name, np.concatenate([own.reshape(-1) for _, own in asked]))
            if total is not None:
                pieces = np.split(total, np.cumsum([own.size for _, own in asked])[:-1])
                for (each, own), piece in zip(asked, pieces, strict=True):
                    self._candidates.told(each, self._possible(each, own, piece.reshape(own.shape)))
        self._observer.phase("score")

    def _possible(self, wanted: Wanted, own: Ints, sums: Ints) -> Ints:
        """The sums, unless they are below ours or above what is public."""
        if (sums < own).any() or (sums.sum(axis=1) > wanted.totals).any():
            raise RemoteProtocolError(
                self._roster.suspects, "horizontal/wanted", "sums that contradict what is known"
            )
        return sums

    def best(self, holder: Holder) -> Rounds[Candidate | None]:
        step = "horizontal/candidate"
        best = self._candidates.pop() if self._roster.leads else None
        payload = yield from self._tell(step, encode_candidate(best))
        return decode_candidate(payload, self._request.schema, holder.cut, self._roster.leader, step)

    def drop(self, applied: Candidate) -> None:
        self._candidates.drop(applied)

    def is_valid(self, plan: GroupPlan, counts: Ints, sides: SidesOfGroups | None) -> Rounds[bool]:
        self._observer.phase("share")
        total = yield from self._to_leader("group_counts", plan.sums(counts, sides))
        self._judged = plan, total
        self._observer.phase("validity")
        valid = total is not None and not plan.violation(total)
        valid = yield from self._tell_bit("horizontal/valid", valid)
        return self.ledger.reveal("valid", valid, "all")

    def open_judged(self, counts: Ints, totals: Ints) -> Rounds[Ints]:
        """The leader tells counts only if they add up to what it has judged."""
        step = "horizontal/open"
        total = yield from self._sum(counts[:, :-1])
        plan, judged = self._judged
        if total is not None and judged is not None:
            checked_counts(total, counts, totals, self._roster.suspects, step)
            if (plan.sums_of_cells(total) != plan.cells_of(judged)).any():
                raise RemoteProtocolError(self._roster.suspects, step, "other counts than were judged")
        return (yield from self._told(total, counts, totals, step))

    def only_children(self, own: Sequence[Ints], sizes: Sequence[int]) -> Rounds[Sequence[int | None]]:
        step, suspects = "horizontal/only_child", self._roster.suspects
        self._observer.phase("share")
        total = yield from self._to_leader("candidate_counts", np.concatenate(own))
        told = b""
        if total is not None:
            by_node = np.split(total, np.cumsum([len(of_node) for of_node in own])[:-1])
            for of_all, of_us, size in zip(by_node, own, sizes, strict=True):
                if (of_all < of_us).any() or of_all.sum() != size:
                    raise RemoteProtocolError(
                        suspects, step, "counts of children that contradict what is known"
                    )
            told = encode_only_children([of_all == size for of_all, size in zip(by_node, sizes, strict=True)])
        payload = yield from self._tell(step, told)
        return decode_only_children(payload, own, self._roster.leader, suspects, step)

    @property
    def suspects(self) -> str:
        return self._roster.suspects

    @property
    def judges(self) -> str:
        return self._roster.leader

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
