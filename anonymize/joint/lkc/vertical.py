"""LKC-privacy of vertically partitioned data, n >= 2 parties (semantics §7; [T] 5.3, Algorithm 5.1, and 5.6).

Every party holds different columns about overlapping sets of people; all know the class. The parties find their
common records by private set intersection. From then on T_g is public among them, with the leaf partition of every
common record. The owner of a column scores its candidates alone. It ensures that its best candidate is valid on the
current T_g, alone or with the holders of other sensitive columns. A secure maximum finds the best of all candidates,
and its owner sends the child of each record.

So only the owner knows a discarded candidate, and every turn applies one. Every other party tests an owner's
statements about a candidate as soon as T_g shows them, so the first invalid application is detected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymize.candidates import Prospects, propose
from anonymize.criteria.clear import met_by_group
from anonymize.criteria.criterion import (
    RECORDS,
    Measure,
    counts_records,
    inferences,
    sides_of,
)
from anonymize.cut import Candidate, Order
from anonymize.errors import PrivacyError
from anonymize.joint.alignment import align, check_class, share_class
from anonymize.joint.columns import Columns, Holding, check_holding, class_schema, own_schema
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.lkc.common_records import CommonRecords
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.setting import Setting, asked_by, protected_of
from anonymize.joint.lkc.validity import Validity
from anonymize.joint.lkc.winner import Maximum, Scale, SealedMaximum, scale_for
from anonymize.joint.messages import (
    decode_bit,
    decode_candidate,
    decode_only_children,
    encode_bit,
    encode_candidate,
    encode_only_children,
    receive_codes,
    send_codes,
)
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSessions, Ends, open_sessions
from anonymize.lkc.requirement import (
    check_root,
    check_sizes,
    criteria_of,
    names_of,
    relief_of,
    requirement_unmet,
    terms_of,
    what_is_asked,
)
from anonymize.naming import Naming, Unnamed, all_in_one, named_by
from anonymize.partition import GeneralizedTable
from anonymize.scores.score import Ranked
from anonymize.table import Ints
from anonymize.taxonomy import Node
from anonymize.tds import ROOT, Observer, Outcome, Step, specialize_top_down
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import Rng
from crypto.rounds import Round, Rounds, receive, send

_ROOT, _CANDIDATE, _CHILDREN = "vertical/root", "vertical/candidate", "vertical/children"
_ONLY_CHILD = "vertical/only_child"


@dataclass(frozen=True)
class VerticalOutcome(JointOutcome):
    """Result at a party. ``generalized`` counts class values only; outcome and cells are those of
    :func:`anonymize.joint.columns.class_schema`.

    rows:  own records as positions in the own holding, entry by entry of ``generalized``, in random order within an
           entry: the release order of the other own columns. int64, shape (n_records,).
    """

    rows: Ints = field(repr=False)


def anonymize_vertically(
    roster: Roster,
    columns: Columns,
    holding: Holding,
    request: Request,
    rng: Rng,
    *,
    mode: str,
    maximum: type[Maximum] = SealedMaximum,
    observer: Observer | None = None,
) -> Rounds[VerticalOutcome]:
    """Anonymize the join of the parties' tables on their common ids.

    Functionality:  the specializations of ``anonymize.lkc.single.anonymize_alone`` on the joined table, and T_g with
                    class counts, to every party.
    Input, each:    own ``holding``; roster, columns, request, ``mode``, whose list bounds the reveals, and
                    ``maximum``, the search for the best candidate, are public and equal for all.
    Output, each:   :class:`VerticalOutcome`: the same outcome and T_g, and the order of its own rows.
    Leakage:        to all: the sizes of the sets of ids, the common records; the equality of all class values, or the
                    class values, sent by one party; root check of every holder of a sensitive column; per iteration
                    the taken candidate with its split point, and the child of every common record. To the owner of a
                    candidate its validity. To the holder of a sensitive column the nodes of other parties tested
                    against it, and the times of the tests, and so mostly the validity of the node before. To all, at
                    the end, for nodes whose children leave separately, the child with all records, if any. With
                    :class:`OpenMaximum`, also to all: every party's best score in every iteration.
    Rounds:         at most: those of the intersection; 2 for every two-party session and 2 n + 4 for shares, class
                    and root; per iteration 5 (n >= 3: 6; open: 4); per test of a candidate 2 for every asked holder
                    and 2 for every column of it (once for columns in a common view), and 2 for several holders; 1
                    whenever owners send the children that replace nodes.
    Bytes:          those of the intersection; per iteration between leader and deputy 32 for every AND gate of a
                    maximum, and ceil(log2(children)) bits for each record of the taken node, to every other party;
                    per test those of :func:`anonymize.joint.lkc.confidence.ask`.
    Assumes:        semi-honest parties; leader and deputy do not collude (n >= 3); private authenticated channels; as
                    the intersection.
    Source:         [T] 5.3 and 5.6 with garbled circuits for score and confidence; semantics §7.

    Raises DataError without common records or for different classes; PrivacyError if the fully generalized table
    violates the requirement; RemoteProtocolError for a malformed message, or an applied candidate that violates K or
    C of own sensitive columns; LocalProtocolError for a holding or roster that does not fit, or a reveal outside the
    mode's list.
    """
    _check_roster(roster, columns)
    _check_measures(request)
    check_holding(holding, columns, request.schema, roster.me)
    ledger = RevealLedger(mode, observer=observer)
    setting = Setting(roster, columns, request, ledger, observer or Observer(), rng)
    setting.observer.phase("align")
    positions = yield from align(roster, holding.ids, request.job_hash, rng, ledger, setting.observer)
    _check_size(request, len(positions))
    setting.observer.phase("setup")
    sessions = yield from open_sessions(roster.me, _pairs(setting, maximum), rng, setting.observer)
    scale = scale_for(request.schema, request.goal, len(positions))
    best_of_all = yield from maximum.opened(setting, scale.widths, sessions)
    setting.observer.phase(ROOT)
    own = holding.common(positions)
    records = yield from _records(setting, own, len(positions), sessions)
    yield from _meet_root(setting, records)
    validity = Validity(setting, records, own.sensitive, sessions)
    party = _Party(setting, records, validity, best_of_all, scale)
    steps = yield from specialize_top_down(party, setting.observer)
    setting.observer.phase("integrate")
    generalized, order = records.released(rng)
    others = len(columns.sensitive) + len(columns.plain)
    ledger.reveal("cell_columns", order, "coordinator", (len(order), others))
    outcome = Outcome(class_schema(request.schema), records.cut, steps)
    return VerticalOutcome(outcome, generalized, ledger, positions[order])


def _check_roster(roster: Roster, columns: Columns) -> None:
    named = {roster.leader, roster.deputy, *columns.qid, *columns.sensitive, *columns.plain}
    if roster.leader == roster.deputy or not named <= set(roster.parties):
        raise LocalProtocolError("leader and deputy must be two, and all holders of columns in the roster")


def _check_measures(request: Request) -> None:
    """Refuse measures other than tallies of a single holder's cells: no party has the counts of the whole table."""
    entries = request.requirement.entries(request.schema)
    if sides_of(criteria_of(entries)) or any(entry.relative for entry in entries):
        raise LocalProtocolError("a vertical run takes neither side counts nor counts of the whole table")


def _check_size(request: Request, n_records: int) -> None:
    """Refuse numbers of common records too large for exact arithmetic, or too small for some criterion."""
    entries = request.requirement.entries(request.schema)
    check_sizes(entries, n_records)
    of_size = [c for c in criteria_of(entries) if counts_records(c)]
    counts: dict[Measure, Ints] = {RECORDS: np.array([n_records])}
    violated = [c for c in of_size if not met_by_group(c, counts, whole=True).all()]
    if violated:
        asking = [entry for entry in entries if not set(entry.criteria).isdisjoint(violated)]
        raise PrivacyError(
            "requirement-unmet",
            "the records that all parties have in common are too few for "
            f"{names_of(violated)}{what_is_asked(asking)}",
            remedy=f"{relief_of(violated)}, or bring more records; compare the id columns at all parties",
        )


def _pairs(setting: Setting, maximum: type[Maximum]) -> list[Ends]:
    """Return the pairs with a common computation: for the maximum, the class, and each kind of check."""
    roster, columns, schema = setting.roster, setting.columns, setting.request.schema
    pairs = maximum.pairs(roster)
    if schema.class_name is not None and columns.class_from is None:
        pairs += [(roster.leader, party) for party in roster.parties if party != roster.leader]
    for owner in roster.parties:
        pairs += [(holder, owner) for holder in asked_by(columns, owner, roster.parties, setting.request)]
    return list(dict.fromkeys(pairs))


def _records(
    setting: Setting, own: Holding, n_records: int, sessions: CircuitSessions
) -> Rounds[CommonRecords]:
    """Check that all parties have the same class values, and set up T_g."""
    roster, ledger = setting.roster, setting.ledger
    schema, giver = setting.request.schema, setting.columns.class_from
    if schema.class_name is None:
        classes = np.zeros(n_records, dtype=np.int64)
    elif giver is not None:
        shape = n_records, schema.n_classes
        classes = yield from share_class(roster, giver, own.classes, shape, ledger)
    else:
        assert own.classes is not None
        classes = own.classes.astype(np.int64)
        yield from check_class(roster, classes, setting.request.job_hash, sessions, ledger)
    sensitive = [codes for codes in own.sensitive if codes is not None]
    return CommonRecords(own_schema(schema, setting.columns, roster.me), own.qid, classes, sensitive)


def _meet_root(setting: Setting, records: CommonRecords) -> Rounds[None]:
    """Exchange the bits of all holders of sensitive columns: the whole table meets the bounds. Continue if all do."""
    roster, columns, request = setting.roster, setting.columns, setting.request
    holders = [p for p in roster.parties if protected_of(columns, p, request)]
    entries = request.requirement.entries(records.schema)
    met = {roster.me: check_root(records.schema, entries, records.cell_counts) is None}
    outgoing = dict.fromkeys(roster.others, encode_bit(met[roster.me])) if roster.me in holders else {}
    awaited = frozenset(holders) - {roster.me}
    inbox = yield Round(_ROOT, outgoing, awaited)
    met |= {party: decode_bit(inbox[party], party, _ROOT) for party in awaited}
    setting.ledger.reveal("root_check", met, "all", (len(holders),))
    if not all(met.values()):
        asked = request.requirement.entries(request.schema)
        raise requirement_unmet(asked, None, among=inferences(criteria_of(asked)))


class _Party:
    """Holder of columns, as a :class:`anonymize.tds.Specializer`."""

    def __init__(
        self, setting: Setting, records: CommonRecords, validity: Validity, maximum: Maximum, scale: Scale
    ) -> None:
        self._setting = setting
        self._schema = setting.request.schema
        self._records = records
        self._validity = validity
        self._maximum = maximum
        self._scale = scale
        entries = setting.request.requirement.entries(records.schema)
        self._followed = setting.request.goal.followed(
            records.schema, records.generalized, terms_of(records.schema, entries)
        )
        self._candidates = setting.request.goal.pool(self._followed)
        self._prospects = Prospects(self._schema, each_child=setting.request.goal.needs_class)
        self._naming = Naming(self._schema)
        self._open: dict[Order, Candidate] = {}
        self._own = setting.columns.qid_of(setting.roster.me)
        self._histograms = {number: records.table.class_histogram(number) for number in self._own}
        for number in self._own:
            self._propose(number, self._schema.qid[number].root)

    def choose(self) -> Rounds[Candidate | None]:
        """Let every owner in turn find its best valid candidate; then find the best of all."""
        roster, ledger = self._setting.roster, self._setting.ledger
        ledger.iteration += 1
        self._setting.observer.phase("validity")
        best: Ranked | None = None
        for owner in roster.parties:
            if owner == roster.me:
                best = yield from self._best_valid()
            else:
                yield from self._validity.serve(owner)
        self._setting.observer.phase("score")
        winner = yield from self._maximum.winner(self._scale.entrant(best))
        candidate = yield from self._told(winner, best)
        return ledger.reveal("candidate", candidate, "all")

    def verdict(self, candidate: Candidate) -> Rounds[Step]:
        """Return the winner as valid: its owner has ensured this."""
        return Step(candidate, True)
        yield

    def apply(self, candidate: Candidate) -> Rounds[int]:
        self._setting.observer.phase("integrate")
        yield from self._learn_children(candidate)
        counts = self._records.counts(candidate)
        if candidate.column not in self._own:
            self._validity.require(candidate, counts)
        before, score = self._replace(candidate, counts)
        self._validity.follow(before, candidate)
        return score

    def _replace(self, candidate: Candidate, counts: Ints) -> tuple[GeneralizedTable, int]:
        """Refine T_g, by the records per (refined entry, child); return T_g before, and the score."""
        before, refinement = self._records.apply(candidate, counts)
        score = self._followed.follow(before, refinement)
        if candidate.column in self._own:
            self._candidates.drop(candidate)
            self._open = {k: other for k, other in self._open.items() if not other.is_beside(candidate)}
            for child in candidate.children:
                self._propose(candidate.column, child)
        return before, score

    def name(self) -> Rounds[Sequence[Candidate]]:
        """Exchange the nodes that a child replaces, from the owners of columns; the questions are public."""
        self._setting.observer.phase("integrate")
        unnamed = self._naming.due(self._records.cut, self._size)
        if not unnamed:
            return ()
        places = yield from self._told_by_owners(unnamed)
        self._setting.ledger.reveal("only_child", places, "all", (len(places),))
        made = named_by(unnamed, places)
        for named in made:
            candidate, records = named.candidate, self._records
            members = records.members(candidate.column, candidate.node)
            if candidate.column not in self._own:
                records.learn(candidate, np.full(len(members), named.place))
            self._replace(candidate, records.counts(candidate))
        return [named.candidate for named in made]

    def _size(self, column: int, node: Node) -> int:
        records = self._records
        return int(records.generalized.class_counts(column, node.first, records.schema).sum())

    def _told_by_owners(self, unnamed: Sequence[Unnamed]) -> Rounds[Sequence[int | None]]:
        """Return, for every node, the child with all its records. Owners inform all others about their columns."""
        roster, owner = self._setting.roster, [self._setting.columns.qid[each.column] for each in unnamed]
        own = [each.sizes(self._histograms[each.column]) for each in unnamed if each.column in self._own]
        payload = encode_only_children([sizes == sizes.sum() for sizes in own])
        telling = [party for party in roster.parties if party in owner]
        to = roster.others if roster.me in telling else ()
        inbox = yield Round(_ONLY_CHILD, dict.fromkeys(to, payload), frozenset(telling) - {roster.me})
        found: dict[str, list[int | None]] = {roster.me: [all_in_one(sizes) for sizes in own]}
        for party in inbox:
            nothing = [
                np.zeros(len(each.children), dtype=np.int64)
                for each, whose in zip(unnamed, owner, strict=True)
                if whose == party
            ]
            found[party] = decode_only_children(inbox[party], nothing, party, party, _ONLY_CHILD)
        told = {party: iter(places) for party, places in found.items()}
        return [next(told[party]) for party in owner]

    def _propose(self, number: int, node: Node) -> None:
        """Enter the specializations of an own node that are candidates."""
        for prospect in self._prospects.of(number, node):
            counts = prospect.profile(self._histograms[number])
            proposal = propose(prospect, counts, self._setting.request.goal.merit)
            if proposal is not None and self._candidates.add(proposal):
                self._open[proposal.candidate.order] = proposal.candidate

    def _best_valid(self) -> Rounds[Ranked | None]:
        """Discard own best candidates for good until the best remaining one is valid. Keep this one.

        The owner knows the sums wanted by a score: T_g, and the child of every record.
        """
        asked = self._followed.wants(self._open.values())
        counted = self._records.counts_of_each([(wanted.candidate, wanted.entries) for wanted in asked])
        for wanted, counts in zip(asked, counted, strict=True):
            self._candidates.told(wanted, wanted.of(counts))
        while (best := self._candidates.best()) is not None:
            if (yield from self._validity.is_valid(best.candidate)):
                break
            self._prospects.discard(best.candidate)
            self._take_out(best.candidate)
        yield from self._validity.done()
        return best

    def _take_out(self, best: Candidate) -> None:
        self._candidates.pop()
        del self._open[best.order]

    def _told(self, winner: str | None, best: Ranked | None) -> Rounds[Candidate | None]:
        """Return the winner's candidate, sent by the winner."""
        roster = self._setting.roster
        if winner is None:
            return None
        if winner == roster.me:
            assert best is not None
            self._take_out(best.candidate)
            yield from send(_CANDIDATE, dict.fromkeys(roster.others, encode_candidate(best.candidate)))
            return best.candidate
        payload = yield from receive(_CANDIDATE, winner)
        candidate = decode_candidate(payload, self._schema, self._records.cut, winner, _CANDIDATE)
        if candidate is None or self._setting.columns.qid[candidate.column] != winner:
            raise RemoteProtocolError(winner, _CANDIDATE, "a candidate of a column that is another party's")
        return candidate

    def _learn_children(self, candidate: Candidate) -> Rounds[None]:
        """Send the child of every record of T[w], or receive it from the owner."""
        roster, records = self._setting.roster, self._records
        members = records.members(candidate.column, candidate.node)
        owner, n_children = self._setting.columns.qid[candidate.column], len(candidate.children)
        if owner == roster.me:
            child = records.child_of(candidate, members)
            yield from send_codes(_CHILDREN, roster.others, child, n_children)
        else:
            child = yield from receive_codes(_CHILDREN, owner, len(members), n_children)
            records.learn(candidate, child)
        self._setting.ledger.reveal("children", child, "all")
