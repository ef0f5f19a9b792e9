"""Validity of a party's candidate on the current T_g of a vertical run.

The owner alone tests K, and C of its own sensitive columns. For sensitive columns of other parties, the owner
asks their holders, check by check: it names a node, or sends that it is done.

No party has to trust an owner: the data of an applied candidate lets every party test the consequences of T_g and of
its own sensitive columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from anonymize.candidates import n_children, prospects
from anonymize.cut import Candidate, Order
from anonymize.joint.lkc.common_records import CommonRecords
from anonymize.joint.lkc.confidence import (
    CheckPlan,
    Protected,
    answer,
    ask,
    give_verdict,
    hear_verdict,
    plan_check,
    protected_labels,
)
from anonymize.joint.lkc.setting import Setting, asked_about, asked_by, protected_of
from anonymize.joint.messages import decode_node, encode_node
from anonymize.joint.sessions import CircuitSessions
from anonymize.lkc.requirement import concerned, most_columns
from anonymize.lkc.validity import PartitionTest
from anonymize.partition import GeneralizedTable
from anonymize.table import Codes, Ints
from anonymize.taxonomy import Node
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds, receive, send

Place: TypeAlias = tuple[int, int]
"""Node of the cut: its column and its first leaf."""

_CHECK, _APPLIED = "vertical/check", "vertical/applied"


class Validity:
    """Tests of candidates at a party, as owner and as holder."""

    def __init__(
        self,
        setting: Setting,
        records: CommonRecords,
        sensitive: Sequence[Codes | None],
        sessions: CircuitSessions,
    ) -> None:
        """Prepare the tests. ``sensitive``: own sensitive columns of the common records, None for other columns."""
        roster, self._columns = setting.roster, setting.columns
        self._me = roster.me
        self._schema = schema = setting.request.schema
        requirement, request = setting.request.requirement, setting.request
        self._entries = requirement.entries(schema)
        self._asked = {o: asked_by(self._columns, o, roster.parties, request) for o in roster.parties}
        self._asked_about = [
            asked_about(self._columns, qid, roster.parties, request) for qid in range(len(schema.qid))
        ]
        self._protected = {
            p: Protected.of(requirement, schema, protected_of(self._columns, p, setting.request))
            for p in roster.parties
        }
        self._labels = protected_labels(schema, self._protected[roster.me], sensitive)
        self._records = records
        self._sessions = sessions
        self._ledger = setting.ledger
        self._rng = setting.rng
        self._local = PartitionTest(records.schema, requirement.entries(records.schema))
        self._each_child = request.goal.needs_class
        self._settled: dict[Order, Place] = {}
        self._answered: Counter[Place] = Counter()

    def is_valid(self, candidate: Candidate) -> Rounds[bool]:
        """Test an own candidate, unless no leaf partition with its node was refined since the last test.

        Holders of other sensitive columns are asked only if all else is met. An invalid candidate must not be tested
        again.
        """
        if candidate.order in self._settled:
            return True
        self._settled[candidate.order] = candidate.column, candidate.node.first
        if not self._is_met(candidate, self._records.counts(candidate)):
            return False
        if not self._asked_about[candidate.column]:
            return True
        return self._ledger.reveal("valid", (yield from self._ask(candidate)), "owner")

    def require(self, candidate: Candidate, counts: Ints) -> None:
        """Test another party's candidate before its application. Its owner has declared it valid.

        counts:  records per (refined entry, child), as sent by the owner: int64, shape (n_entries, n_children).

        Raises RemoteProtocolError naming the owner if its groups violate K or an inference bound on own sensitive
        columns.
        """
        if not self._is_met(candidate, counts):
            owner = self._columns.qid[candidate.column]
            raise RemoteProtocolError(owner, _APPLIED, "a candidate was applied that is not valid")

    def _is_met(self, candidate: Candidate, counts: Ints) -> bool:
        """Return True if a candidate meets all criteria that depend on T_g and own sensitive columns."""
        n_columns = most_columns(self._entries)
        return self._local.violation(self._records.generalized, candidate, counts, n_columns) is None

    def follow(self, before: GeneralizedTable, applied: Candidate) -> None:
        """Account for a specialization: nodes in refined leaf partitions may be tested again."""
        touched = before.nodes[applied.column] == applied.node.first

        def is_as_before(place: Place) -> bool:
            column, first = place
            return not (touched & (before.nodes[column] == first)).any()

        self._settled = {order: place for order, place in self._settled.items() if is_as_before(place)}
        self._answered = Counter({place: n for place, n in self._answered.items() if is_as_before(place)})

    def done(self) -> Rounds[None]:
        """Inform the holders that the party has no more questions in this iteration."""
        if self._asked[self._me]:
            yield from send(_CHECK, dict.fromkeys(self._asked[self._me], encode_node(None)))

    def serve(self, owner: str) -> Rounds[None]:
        """Answer an owner's checks until it is done, if own columns are concerned."""
        while self._me in self._asked[owner]:
            payload = yield from receive(_CHECK, owner)
            place = decode_node(payload, self._schema, self._records.cut, owner, _CHECK)
            if place is None:
                return
            self._check(owner, place)
            yield from self._answer(owner, place)

    def _check(self, owner: str, place: tuple[int, Node]) -> None:
        """Refuse tests that an honest owner never requests: each test reveals more about own columns."""
        number, node = place
        if self._columns.qid[number] != owner:
            raise RemoteProtocolError(owner, _CHECK, "a candidate of a column that is another party's")
        if self._me not in self._asked_about[number]:
            raise RemoteProtocolError(owner, _CHECK, "a test that no entry of the requirement asks for")
        if len(self._records.members(number, node)) == 0:
            raise RemoteProtocolError(owner, _CHECK, "a test of a node that no record is in")
        ways = prospects(number, self._schema.qid[number], node, each_child=self._each_child)
        if self._answered[number, node.first] == len(ways):
            raise RemoteProtocolError(owner, _CHECK, "the same test again, though nothing has changed")
        self._answered[number, node.first] += 1

    def _ask(self, candidate: Candidate) -> Rounds[bool]:
        holders, place = self._asked_about[candidate.column], (candidate.column, candidate.node)
        yield from send(_CHECK, dict.fromkeys(holders, encode_node(place)))
        plan = self._plan(place)
        child = self._records.child_of(candidate, plan.records)
        sessions = [self._sessions.evaluating[holder] for holder in holders]
        met = []
        for holder, session in zip(holders, sessions, strict=True):
            met.append((yield from ask(session, plan, child, self._protected[holder])))
        return (yield from hear_verdict([session.engine for session in sessions], met))

    def _answer(self, owner: str, place: tuple[int, Node]) -> Rounds[None]:
        plan, session = self._plan(place), self._sessions.garbling[owner]
        self._ledger.reveal("confidence_check", None, "holder", plan.shape)
        labels = [column[plan.records] for column in self._labels]
        met = yield from answer(session, plan, labels, self._protected[self._me], self._rng)
        yield from give_verdict(self._me, self._asked_about[place[0]], session.engine, met)

    def _plan(self, place: tuple[int, Node]) -> CheckPlan:
        """Return the plan that the owner and every holder derive alike."""
        records, of_each = self._records, n_children(self._schema.qid[place[0]], place[1])
        entries = concerned(self._entries, place[0])
        classes = records.classes if any(entry.insider for entry in entries) else None
        members = records.members(*place)
        return plan_check(records.generalized, records.partition, classes, members, place, of_each, entries)
