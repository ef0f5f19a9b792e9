"""`disclosure: leader`: horizontal LKC as published, with a leader who sees the sums ([T] 5.4).

The leader learns the global counts of every candidate by secure sums, chooses, checks and informs the others.
These counts are finer than the result, so the run, kept for comparison, does not meet [T] Definition 5.2 (3).
Three or more parties: with two, the sum minus own counts is the peer's part.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from anonymize.candidates import Prospect, propose
from anonymize.criteria.criterion import SideInputs, sides_of
from anonymize.cut import Candidate, Cut
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.horizontal import Counted, Holder, Profile, anonymize_horizontally
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import Profiled, opened_candidates
from anonymize.joint.messages import (
    CANDIDATE_BYTES,
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
from anonymize.lkc.requirement import Entry, check_root, check_sizes, criteria_of, requirement_unmet
from anonymize.scores.score import Followed, Wanted
from anonymize.table import CodedTable, Ints, Schema
from anonymize.tds import Observer
from crypto.encoding import Words, as_words, decode_words, encode_words, expect_length, signed
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send
from crypto.secure_sum import PairwiseMasks, agree_masks, masked_sum, ring_sum

SumKind: TypeAlias = Literal["masked", "ring"]

MOST_ASKED = 8
"""Most candidates in a question of the leader."""


def anonymize_led(
    roster: Roster,
    table: CodedTable,
    request: Request,
    rng: Rng,
    *,
    mode: str,
    sums: SumKind = "masked",
    observer: Observer | None = None,
    side_inputs: SideInputs | None = None,
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables. The leader sees the counts of every candidate.

    Functionality:  the LKC table of the union from ``anonymize.lkc.single.anonymize_alone``, to every party in
                    counted form.
    Input, each:    ``table``, and ``beside``, data for side counts, if the requirement takes any; the request and
                    ``mode``, whose list bounds the reveals, are public and equal for all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the candidate, its validity, and the
                    counts of the refined leaf partitions; at the end, for nodes whose children leave separately, the
                    child with all records, if any; some turns earlier, without an order, at most MOST_ASKED next
                    candidates. To the leader: the global counts of every candidate, valid or not, which are finer
                    than the result. With the scores `added` and `tdr` to all also split points of new nodes, to the
                    leader the values in their ``reveals``.
    Rounds:         5 for keys, root, first candidates and end; 4 for every applied candidate; 2 for every question
                    about at most MOST_ASKED candidates without a valid one. The scores `added` and `tdr` ask about
                    one at a time, and take at most 2 more for the first candidates and for each applied one: split
                    points, and wanted sums. `refine: child`: 2 for every question about nodes; a node replaced by a
                    child counts as an applied candidate. Ring sums take n rounds for 1.
    Bytes:          8 per count and party, as in the ledger; from the leader 20 per candidate in a question and per
                    turn, 1 for the root and for every message about turns.
    Assumes:        semi-honest parties, at most n - 2 colluding (ring: none); private authenticated channels; n >= 3.
    Source:         [T] 5.4, Algorithms 5.2 and 5.3; differences in semantics §6.

    Raises PrivacyError if the root check fails; RemoteProtocolError for a malformed message or opened counts that are
    not valid; LocalProtocolError for fewer than three parties, a requirement with counts of a single party, which the
    leader would see, or a reveal outside the mode's list. Passes on errors of the observer about groups to be opened,
    before own counts of the leaf partitions are sent.
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
        RevealLedger(mode, request.goal.reveals.get(mode, ()), observer),
    )
    return (yield from anonymize_horizontally(table, request, referee, observer, side_inputs))


class LeaderReferee:
    """Referee with a leader who judges in the clear. The others send sums and follow the leader's messages."""

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
        self._profiled: dict[Prospect, Ints | None] | None = None
        self._judged: dict[Candidate, tuple[GroupPlan, Ints]] = {}
        self._invalid: set[Candidate] = set()
        self._verdicts: deque[tuple[Candidate | None, bool]] = deque()
        self.ledger = ledger

    def open_root(self, counts: Ints, told: Ints) -> Rounds[Ints | None]:
        """Judge the whole table at the leader, who has the sums of all cells even if they are not opened."""
        total, step = (yield from self._to_leader("root_totals", counts)), "horizontal/root"
        cells, payload = self._request.schema.n_cells, b""
        if total is not None:
            checked_counts(total[:cells], counts[:cells], None, self._roster.suspects, step)
            check_sizes(self._entries, int(total[:cells].sum()))
            met = not check_root(self._request.schema, self._entries, total)
            payload = encode_bit(met) + (encode_words(as_words(total[:cells])) if met else b"")
        payload = yield from self._tell(step, payload)
        if not decode_bit(payload[:1], self._roster.leader, step):
            expect_length(payload, 1, self._roster.leader, step)
            return None
        opened = signed(decode_words(payload[1:], cells, self._roster.leader, step))
        return checked_counts(opened, told, None, self._roster.suspects, step)

    def root_error(self) -> PrivacyError:
        return requirement_unmet(self._entries, None)

    def start(self, n_records: int, entries: Sequence[Entry], followed: Followed) -> None:
        """Create the pool. The leader judges in the clear and needs no widths."""
        self._candidates = self._request.goal.pool(followed)

    def propose(
        self, nodes: Sequence[Profiled], present: Sequence[Candidate], holder: Holder
    ) -> Rounds[Sequence[Candidate]]:
        if self._profiled is None:
            own = [(node.prospect, node.counts) for node in nodes]
            self._observer.phase("share")
            self._profiled = _by_prospect(own, (yield from self._to_leader("candidate_counts", _flat(own))))
        self._observer.phase("score")
        splits = np.zeros(len(nodes), dtype=np.uint64)
        for i, node in enumerate(nodes):
            if (counts := self._profiled[node.prospect]) is not None:
                splits[i] = self._enter(node, self._checked(node, counts))
        self._profiled = None
        return (yield from self._opened(nodes, splits)) if self._request.goal.wants_sums else ()

    def _checked(self, profiled: Profiled, counts: Ints) -> Ints:
        """Return the union's profile of a node. Raises RemoteProtocolError if it contradicts T_g or own counts."""
        counts = counts.reshape(profiled.counts.shape)
        if (counts < profiled.counts).any() or (counts.sum(axis=0) != profiled.totals).any():
            reason = "counts of a candidate contradict known counts"
            raise RemoteProtocolError(self._roster.suspects, "horizontal/candidate", reason)
        return counts

    def _enter(self, profiled: Profiled, counts: Ints) -> int:
        """Enter a prospect. Return the chosen option, 0 if the prospect is no candidate."""
        proposal = propose(profiled.prospect, counts, self._request.goal.merit)
        if proposal is None or not self._candidates.add(proposal):
            return 0
        return max(1, proposal.option)

    def _opened(self, nodes: Sequence[Profiled], splits: Words) -> Rounds[Sequence[Candidate]]:
        """Open to all the candidates among nodes and their split points."""
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
        """Return the sums. Raises RemoteProtocolError for sums below own sums or above the public totals."""
        if (sums < own).any() or (sums.sum(axis=1) > wanted.totals).any():
            raise RemoteProtocolError(
                self._roster.suspects, "horizontal/wanted", "sums contradict known counts"
            )
        return sums

    def best(self, holder: Holder) -> Rounds[Candidate | None]:
        if not self._verdicts:
            yield from self._judge(holder)
        candidate, self._valid = self._verdicts.popleft()
        return candidate

    def _judge(self, holder: Holder) -> Rounds[None]:
        """Ask about the next candidates together, and open the candidates discarded before the first applied one.

        The leader learns early only what it learns again at a candidate's turn: every group of that time is a present
        group or a part of one. A candidate that is not valid now is not valid later.
        """
        step, most = "horizontal/asked", MOST_ASKED
        due = self._candidates.ahead(most) if self._roster.leads else []
        asked = sorted(_one_of_a_node(c for c in due if c not in self._invalid), key=lambda c: c.order)
        payload = yield from self._tell(step, _encode_candidates(asked))
        asked = _decode_candidates(payload, self._request.schema, holder.cut, self._roster.leader, step)
        self.ledger.reveal("asked", asked, "all", (len(asked),))
        self._judged = {}
        if asked:
            yield from self._sum_groups([holder.counted(candidate) for candidate in asked])
        self._observer.phase("validity")
        yield from self._tell_verdicts(due, holder)

    def _sum_groups(self, asked: Sequence[Counted]) -> Rounds[None]:
        self._observer.phase("share")
        plans, own = [counted.plan for counted in asked], [counted.sums for counted in asked]
        flat = np.concatenate([sums.reshape(-1) for sums in own])
        total = yield from self._to_leader("group_counts", flat)
        if total is None:
            return
        ends = np.cumsum([sums.size for sums in own])[:-1]
        for plan, sums in zip(plans, np.split(total, ends), strict=True):
            self._judged[plan.candidate] = plan, sums.reshape(plan.shape)
            if plan.violation(sums.reshape(plan.shape)):
                self._invalid.add(plan.candidate)

    def _tell_verdicts(self, due: Sequence[Candidate], holder: Holder) -> Rounds[None]:
        """Open the decided turns: discarded candidates, and then an applied candidate, if any."""
        step, leader, decided = "horizontal/verdicts", self._roster.leader, []
        for candidate in due:
            if candidate not in self._invalid and candidate not in self._judged:
                break
            decided.append(candidate)
            self._candidates.pop()
            if candidate not in self._invalid:
                break
        last = bool(decided) and decided[-1] not in self._invalid
        payload = yield from self._tell(step, encode_bit(last) + _encode_candidates(decided))
        valid = decode_bit(payload[:1], leader, step)
        decided = _decode_candidates(payload[1:], self._request.schema, holder.cut, leader, step)
        self._verdicts.extend((candidate, False) for candidate in decided)
        if valid and decided:
            self._verdicts[-1] = decided[-1], True
        if not decided:
            self._verdicts.append((None, False))

    def drop(self, applied: Candidate) -> None:
        self._candidates.drop(applied)

    def is_valid(self, candidate: Candidate, holder: Holder) -> Rounds[bool]:
        """Return the verdict that came with the candidate."""
        self._applied = candidate
        return self.ledger.reveal("valid", self._valid, "all")
        yield

    def open_judged(self, counts: Ints, totals: Ints, children: Sequence[Profile]) -> Rounds[Ints]:
        """Open counts only if they add up to the judged counts.

        Profiles of the children come with the counts: the leader sees the profiles of every candidate anyway.
        """
        step, told = "horizontal/open", counts[:, :-1]
        flat = np.concatenate([told.reshape(-1), _flat(children)])
        total, encoded = (yield from self._sum(flat)), b""
        if total is not None:
            self._require_judged(total[: told.size].reshape(told.shape), counts, totals, step)
            encoded = encode_words(as_words(total[: told.size]))
        profiles = None if total is None else total[told.size :]
        self.ledger.reveal("candidate_counts", profiles, "leader", (flat.size - told.size,))
        self._profiled = _by_prospect(children, profiles)
        payload = yield from self._tell(step, encoded)
        opened = signed(decode_words(payload, told.size, self._roster.leader, step)).reshape(told.shape)
        return checked_counts(opened, counts, totals, self._roster.suspects, step)

    def _require_judged(self, opened: Ints, counts: Ints, totals: Ints, step: str) -> None:
        """Raise RemoteProtocolError for impossible counts, or counts different from the judged counts."""
        checked_counts(opened, counts, totals, self._roster.suspects, step)
        plan, judged = self._judged[self._applied]
        if (plan.sums_of_cells(opened) != plan.cells_of(judged)).any():
            raise RemoteProtocolError(self._roster.suspects, step, "the counts differ from the judged counts")

    def only_children(self, own: Sequence[Ints], sizes: Sequence[int]) -> Rounds[Sequence[int | None]]:
        step, suspects = "horizontal/only_child", self._roster.suspects
        self._observer.phase("share")
        total = yield from self._to_leader("candidate_counts", np.concatenate(own))
        told = b""
        if total is not None:
            by_node = np.split(total, np.cumsum([len(of_node) for of_node in own])[:-1])
            for of_all, of_us, size in zip(by_node, own, sizes, strict=True):
                if (of_all < of_us).any() or of_all.sum() != size:
                    raise RemoteProtocolError(suspects, step, "counts of children contradict known counts")
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
        """Give the leader the sum of all parties' values; return None at other parties."""
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
        """Send the leader's payload to all; at other parties wait for it."""
        if not self._roster.leads:
            return (yield from receive(step, self._roster.leader))
        yield from send(step, dict.fromkeys(self._roster.others, payload))
        return payload

    def _tell_bit(self, step: str, value: bool) -> Rounds[bool]:
        payload = yield from self._tell(step, encode_bit(value))
        return decode_bit(payload, self._roster.leader, step)


def _flat(profiles: Sequence[Profile]) -> Ints:
    """Return all counts in a row."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *(counts.reshape(-1) for _, counts in profiles)])


def _by_prospect(own: Sequence[Profile], total: Ints | None) -> dict[Prospect, Ints | None]:
    """Return the sums of all parties' profiles, flat; nothing outside the leader."""
    if total is None:
        return {prospect: None for prospect, _ in own}
    ends = np.cumsum([counts.size for _, counts in own])
    return {
        prospect: total[end - counts.size : end] for (prospect, counts), end in zip(own, ends, strict=True)
    }


def _one_of_a_node(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the first candidate of every node: after its application, the others' turns never come."""
    found: list[Candidate] = []
    for candidate in candidates:
        if not any(candidate.is_beside(other) for other in found):
            found.append(candidate)
    return found


def _encode_candidates(candidates: Sequence[Candidate]) -> bytes:
    return b"".join(map(encode_candidate, candidates))


def _decode_candidates(payload: bytes, schema: Schema, cut: Cut, peer: str, step: str) -> list[Candidate]:
    """Decode at most MOST_ASKED different candidates of the current cut. Raises RemoteProtocolError otherwise."""
    if len(payload) > MOST_ASKED * CANDIDATE_BYTES or len(payload) % CANDIDATE_BYTES:
        raise RemoteProtocolError(peer, step, "too many candidates at once, or parts of a candidate")
    parts = [payload[i : i + CANDIDATE_BYTES] for i in range(0, len(payload), CANDIDATE_BYTES)]
    decoded = (decode_candidate(part, schema, cut, peer, step) for part in parts)
    found = [candidate for candidate in decoded if candidate is not None]
    if len(set(found)) != len(parts):
        raise RemoteProtocolError(peer, step, "a candidate twice, or no candidate")
    return found
