"""`disclosure: sealed`: horizontal LKC that opens no count finer than the published table (semantics §6).

Every party's counts go as additive shares to the compute pair, leader and deputy, who evaluate circuits for all.
Scores stay shared between iterations. The pair opens the taken candidate with its split point, a validity bit, and
the counts of refined leaf partitions. Two or more parties.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from anonymize.criteria.criterion import (
    RECORDS,
    Bools,
    Form,
    Measure,
    SideCount,
    SideInputs,
    sides_of,
    tallies_of,
)
from anonymize.cut import Candidate
from anonymize.errors import PrivacyError
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import Engine, carried, opened
from anonymize.joint.lkc import circuits
from anonymize.joint.lkc.ahead import Ahead
from anonymize.joint.lkc.circuits import widths_for
from anonymize.joint.lkc.horizontal import Holder, Profile, anonymize_horizontally
from anonymize.joint.lkc.judging import are_zero, judged, tests_of
from anonymize.joint.lkc.questions import GroupTests, Question, Questions, bits_of
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.scores.score import Bench, Profiled, Turns
from anonymize.joint.messages import decode_bit, decode_only_children, encode_bit, encode_only_children
from anonymize.joint.party import Party, begin
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import (
    Entry,
    counts_of_cells,
    criteria_of,
    most_records,
    root_refused,
)
from anonymize.scores.score import Followed, Wanted
from anonymize.table import MAX_RECORDS, CodedTable, Ints, Schema
from anonymize.tds import Observer
from crypto.circuit import To
from crypto.encoding import Words, as_words
from crypto.rng import Rng
from crypto.rounds import Rounds
from crypto.shares import Shares, dtype, share_vector, width_for
from crypto.two_party import CarriedWords

_CELL_BITS = width_for(MAX_RECORDS)
_CELL = dtype(_CELL_BITS)


def anonymize_sealed(
    roster: Roster,
    table: CodedTable,
    request: Request,
    rng: Rng,
    *,
    mode: str,
    observer: Observer | None = None,
    side_inputs: SideInputs | None = None,
) -> Rounds[JointOutcome]:
    """Anonymize the union of the parties' tables; nothing finer than the result is opened.

    Functionality:  the LKC table of the union from ``anonymize.lkc.single.anonymize_alone``, to every party in
                    counted form.
    Input, each:    ``table``, and ``beside``, data for side counts, if the requirement takes any; request, roster and
                    ``mode``, whose list bounds the reveals, are public and equal for all.
    Output, each:   the same :class:`JointOutcome`.
    Leakage:        to all: root check bit; counts of the root; per iteration the taken candidate with its split
                    point, its validity, and the counts of the refined leaf partitions. Finer than the result are
                    order and split points of discarded candidates, and the nodes of the cut that are no candidates
                    (classification: no specialization of them has gain; general: intervals without a two-sided grid
                    point). Sizes of circuits follow from these. Side counts stay shared. With several blocks
                    (``request.linked``) all counts are by block. Candidates and split points are opened as soon as a
                    node appears, with the score `infogain` their order, too. With `infogain` and goal general the
                    turns show the same in the end: every candidate has its turn, as specializations of other nodes
                    change no split and no order of gains. `infogain` and children that leave separately: opened at
                    their turns, as some never have a turn. When no candidate is left, for nodes whose
                    children leave separately, the child with all records, if any. Leader and deputy together could
                    open everything, also the counts of public candidates that are never taken, and of cells of
                    intervals.
    Rounds:         at most 11, and 2 for criteria of many cases, as :func:`~anonymize.joint.lkc.root.open_root`, 8
                    more for every applied candidate, 3 for every question without a valid candidate; with two
                    parties 10, 6, 2. A question is about one candidate; in an open order about as many as have
                    MOST_TESTS tests, doubled from question to question until a candidate is valid. A question without
                    side counts at stake takes 1 less with more parties, as counts are shared before, if they are at
                    most MOST_AHEAD numbers of a candidate. An interval counts by all cells.
                    Batches side by side of more chunks of instances than may be under way at once
                    (:func:`crypto.batch.more_rounds`) take 2 more for every further so many of them, as wide grids
                    with many classes do; an opening of more than 1 MiB takes 1 more for every further MiB. The scores
                    `added` and `tdr` take more for the first candidates and for each applied one, no fixed number: 1
                    to open split points, 1 to share the wanted sums, and the batches that compare or add these up,
                    more for more groups or contexts of a candidate and more different sizes; with few of either 3 to
                    8 rounds together. `refine: child`: at most 4 more (two parties 2) for every question about nodes;
                    a node replaced by a child counts as an applied candidate. With looked-up scores of classes, 2
                    more (two parties 1) for every batch of scored nodes, and those of the missing unit vectors
                    (:class:`crypto.lookup.LookUps`).
    Bytes:          between the pair 8,272 once; those of look-ups; for every batch of circuits 16, 32 for every AND
                    gate, 4 for every input bit of a shared number (each chunk rounded up to 64 of them), 24 and one
                    bit for every bit opened to both; 8 for every opened count. From each other party 16 once, and 2,
                    4 or 8, by their width, for every shared number; its consents are empty. To each other party 8 for
                    every opened count; from the deputy 8 for every new node (`infogain` 16) and every question; where
                    the order is not open, 20 for every candidate and 1 for every verdict instead of a question's 8;
                    from the leader 1 for every other bit; from the peer of the pair 16 for each of these messages.
    Assumes:        semi-honest parties; leader and deputy do not collude; private authenticated channels; n >= 2.
    Source:         semantics §6; [T] 5.4 with secure sums replaced by shares, garbled circuits and look-ups.

    Raises PrivacyError if the root check fails; SchemaError for criteria on several blocks; RemoteProtocolError for a
    malformed message or opened counts that are not valid; LocalProtocolError for a roster without two different
    parties as the pair, or a reveal outside the mode's list. Passes on errors of the observer about groups to be
    opened, before any own part of these groups is opened.
    """
    table = table.sparse()
    ledger = RevealLedger(mode, request.goal.reveals.get(mode, ()), observer)
    party = yield from begin(roster, request.job_hash, rng, ledger, observer)
    referee = SealedReferee(party, request, table.schema)
    return (yield from anonymize_horizontally(table, request, referee, party.observer, side_inputs))


class SealedReferee:
    """Referee with a compute pair that judges inside circuits. The others share counts and follow the outcome."""

    def __init__(self, party: Party, request: Request, own: Schema) -> None:
        """Prepare the run. own: schema of the own table, whose cells may have other numbers."""
        self._own = own
        self._roster = party.pair.roster
        self._request = request
        self._entries = request.requirement.entries(request.schema)
        self._pair = party.pair
        self._shares = party.pair.shares
        self._engine = party.pair.engine
        self._observer = party.observer
        self._is_kept = False
        self._kept: Shares | None = None
        self._due: deque[tuple[Candidate | None, bool]] = deque()
        self._most_tests = MOST_TESTS
        self._ahead = Ahead()
        self.ledger = party.ledger

    def open_root(self, counts: Ints, told: Ints) -> Rounds[Ints | None]:
        """Share the counts to be opened together with the tested counts; shares alone reveal nothing."""
        tests = RootTests(self._own, self._entries)
        counted = self._counted([*[None] * len(tests.tallies), *tests.sides])
        share = yield from share_vector(self._shares, as_words(tests.counts(counts)), counted)
        kept = yield from self._share_told(told, None)
        met = False
        if self._engine is not None and share is not None:
            met = yield from tests.met(self._engine, share.astype(np.uint64))
        met = yield from self._tell_bit("sealed/root", met)
        return (yield from self._open(kept, told, None)) if met else None

    def root_error(self) -> PrivacyError:
        return root_refused(self._entries)

    def start(self, n_records: int, entries: Sequence[Entry], followed: Followed) -> None:
        schema = self._request.schema
        most_points = max(column.n_leaves for column in schema.qid)
        self._n_records = n_records
        self._share_bits = max(_CELL_BITS, width_for((1 << bits_of(criteria_of(entries), n_records)) - 1))
        widths = widths_for(n_records, schema.n_classes, most_points)
        self._turns = self._new_turns(Bench(schema, n_records, widths, self._pair, followed, self.ledger))

    def _new_turns(self, bench: Bench) -> Turns:
        return self._request.goal.sealed(bench)

    def _share_told(self, counts: Ints, totals: Ints | None) -> Rounds[Shares | None]:
        """Give the pair flat shares of all parties' counts to be opened."""
        return (yield from self._pair.share_counts(counts, totals, _CELL_BITS))

    def open_judged(self, counts: Ints, totals: Ints, children: Sequence[Profile]) -> Rounds[Ints]:
        if not self._is_kept:  # nothing was judged, so the counts are shared now: this shows the consent
            return (yield from self._open((yield from self._share_told(counts, totals)), counts, totals))
        yield from self._pair.hear_consent("sealed/consent")
        return (yield from self._open(self._kept, counts, totals))

    def _open(self, share: Shares | None, counts: Ints, totals: Ints | None) -> Rounds[Ints]:
        """Open the pair's shares of all parties' counts to all; see :meth:`Referee.open_judged`."""
        yield from self._pair.confirmed()
        return (yield from self._pair.open_counts(share, counts, totals, _CELL_BITS))

    def only_children(self, own: Sequence[Ints], sizes: Sequence[int]) -> Rounds[Sequence[int | None]]:
        step, leader = "sealed/only_child", self._roster.leader
        flat, starts = np.concatenate(own), np.cumsum([len(of_node) for of_node in own])[:-1]
        share = yield from self._share(flat, width_for(self._n_records))
        self._observer.phase("validity")
        told = b""
        if self._engine is not None and share is not None:
            totals = np.repeat(np.array(sizes, dtype=np.uint64), [len(of_node) for of_node in own])
            elsewhere = (totals if self._roster.leads else np.zeros_like(totals)) - share
            has_all = yield from self._are_zero(self._engine, elsewhere)
            told = encode_only_children(np.split(has_all, starts))
        payload = yield from self._pair.tell(step, told)
        return decode_only_children(payload, own, leader, self._roster.suspects, step)

    def _are_zero(self, engine: Engine, shared: Words) -> Rounds[Bools]:
        """Open to both the own shared numbers that are 0; numbers are below the number of records, or 0."""
        width = self._n_records.bit_length()
        outputs = yield from are_zero(engine, width, shared, To.BOTH)
        zero: Bools = np.asarray(outputs["met"]).reshape(-1) == 1
        return zero

    @property
    def suspects(self) -> str:
        return self._roster.suspects

    @property
    def judges(self) -> str:
        return self._roster.judges

    def propose(
        self, nodes: Sequence[Profiled], present: Sequence[Candidate], holder: Holder
    ) -> Rounds[Sequence[Candidate]]:
        def prepare(candidates: Sequence[Candidate]) -> Rounds[None]:
            yield from self._share_ahead([*present, *candidates], holder)
            self._observer.phase("score")

        return (yield from self._turns.enter(nodes, (yield from self._own_parts(nodes)), prepare))

    def _own_parts(self, nodes: Sequence[Profiled]) -> Rounds[list[Words]]:
        """Give the pair shares of what the score needs of new nodes."""
        own = [self._turns.pool.own_part(profiled) for profiled in nodes]
        return (yield from self._share_each(own, width_for(self._n_records)))

    def _share_ahead(self, candidates: Sequence[Candidate], holder: Holder) -> Rounds[None]:
        """Share the counts of candidates that are not shared yet: these candidates do not wait for their counts.

        Two parties never wait. A candidate of many counts waits: its counts would take longer than a round.
        """
        if not self._shares.contributors:
            return
        every = [
            (each, stamps := holder.stamps(each), self._ahead.missing(each, stamps)) for each in candidates
        ]
        asked = [
            (each, stamps, missing)
            for each, stamps, missing in every
            if 0 < np.count_nonzero(missing) * (len(each.children) - 1) <= MOST_AHEAD
        ]
        if not asked:
            return
        own = holder.counted_in([(each, missing) for each, _, missing in asked])
        shares = yield from self._share_each([counts[:, :-1] for counts in own], self._share_bits)
        for number, (each, stamps, missing) in enumerate(asked):
            self._ahead.put(each, stamps, missing, shares[number] if shares else None)

    def renew(self, wanted: Sequence[Wanted], sums: Sequence[Ints]) -> Rounds[None]:
        shares = yield from self._share_each(sums, width_for(self._n_records))
        self._observer.phase("score")
        yield from self._turns.pool.told(wanted, shares)

    def _share_each(self, own: Sequence[Ints], bits: int) -> Rounds[list[Words]]:
        """Give the pair shares of all parties' counts, each in its shape; empty elsewhere."""
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *(part.reshape(-1) for part in own)])
        share = yield from self._share(flat, bits)
        ends = np.cumsum([part.size for part in own])[:-1]
        pieces = np.split(share, ends) if share is not None and own else []
        return [piece.reshape(part.shape) for piece, part in zip(pieces, own, strict=False)]

    def best(self, holder: Holder) -> Rounds[Candidate | None]:
        if not self._due:
            yield from self._decide(holder)
        candidate, self._is_valid = self._due.popleft()
        return candidate

    def _decide(self, holder: Holder) -> Rounds[None]:
        """Judge the next candidates; what is opened decides turns up to an applied candidate, if any is valid."""
        candidates = yield from self._turns.next(holder.cut)
        if not candidates:
            yield from self._pair.confirmed()
            self._due.append((None, False))
            return
        asked = self._asked(candidates, holder)
        n_discarded = yield from self._judged(asked)
        for place, question in enumerate(asked[: n_discarded + 1]):
            self._due.append((question.candidate, place == n_discarded))
            self._ahead.discard(question.candidate)
        self._most_tests = 2 * self._most_tests if n_discarded == len(asked) else MOST_TESTS

    def _asked(self, candidates: Sequence[Candidate], holder: Holder) -> list[Question]:
        """Return the first of the next candidates: one, or as many as have MOST_TESTS tests together, twice as many
        after each question without a valid candidate.

        A candidate without tests is publicly valid. It is asked about alone, and later ones wait for its turn.
        """
        asked: list[Question] = []
        n_tests = 0
        for candidate in candidates:
            own, stamps = holder.counted(candidate), holder.stamps(candidate)
            tests = GroupTests(own.plan, self._n_records)
            n_tests += tests.count
            if asked and (not tests.count or n_tests > self._most_tests):
                break
            asked.append(Question(own, tests, stamps, self._ahead.missing(candidate, stamps)))
            if not tests.count:
                break
        return asked

    def drop(self, applied: Candidate) -> None:
        self._turns.pool.drop(applied)
        self._ahead.drop(applied)

    def is_valid(self, candidate: Candidate, holder: Holder) -> Rounds[bool]:
        """Return the verdict that came with the candidate."""
        return self.ledger.reveal("valid", self._is_valid, "all")
        yield

    def _judged(self, asked: Sequence[Question]) -> Rounds[int]:
        """Judge candidates. Return the number of candidates before the first valid one, whose counts are kept."""
        self._is_kept = asked[0].tests.count > 0
        if not self._is_kept:  # public: nothing can be broken, as with K = 1 and nothing protected
            return 0
        questions = Questions(asked)
        share = yield from self._share(questions.words, self._share_bits, self._counted(questions.sides))
        self._observer.phase("validity")
        met: list[CarriedWords] = []
        counts: list[Words] = []
        if self._engine is not None and share is not None:
            leads = self._roster.leads
            met, counts = yield from questions.judged(self._engine, share, self._ahead, leads=leads)
        n_discarded = yield from self._turns.decide(len(asked), met)
        kept = counts[n_discarded : n_discarded + 1]
        self._kept = kept[0].reshape(-1).astype(_CELL) if kept else None
        return n_discarded

    def _share(
        self, values: Ints, bits: int, counted: Mapping[str, Bools] | None = None
    ) -> Rounds[Words | None]:
        """Give the pair shares of all parties' values; the pair returns 64-bit words, modulo 2**bits.

        counted:  by party, the values to add up; None: all values of all parties.
        """
        self._observer.phase("share")
        share = yield from share_vector(self._shares, values.astype(np.uint64).astype(dtype(bits)), counted)
        return None if share is None else share.astype(np.uint64)

    def _counted(self, sides: Sequence[SideCount | None]) -> Mapping[str, Bools] | None:
        """Return the counted words by party; ``sides``: side count of every word, None for a tally.

        For a side count of a single party, only the word of this party counts.
        """
        if not any(side is not None and side.of_one for side in sides):
            return None
        return {
            party: np.array([side is None or not side.of_one or side.name == party for side in sides])
            for party in self._roster.parties
        }

    def _tell_bit(self, step: str, value: bool) -> Rounds[bool]:
        payload = yield from self._pair.tell(step, encode_bit(value))
        return decode_bit(payload, self._roster.leader, step)


MOST_AHEAD = 1 << 13
"""Most counts of a candidate that are shared before the candidate is taken."""

MOST_TESTS = 256
"""Most tests of candidates that are judged together, after an applied candidate. A test sends about 1 kB. On a line
of 20 ms and 100 Mbit/s, tests and rounds then took least together in 18 runs of support2.
"""

MANY_CASES = 64
"""Largest number of a criterion's cases inside the circuit of the root check; more cases are tested side by side."""


class RootTests:
    """Tests of the root check: their criteria, and their counts."""

    def __init__(self, schema: Schema, entries: Sequence[Entry]) -> None:
        self._schema = schema
        self._most = most_records(entries)
        criteria = criteria_of(entries)
        self._many = tuple(criterion for criterion in criteria if len(criterion.cases) > MANY_CASES)
        few = (criterion for criterion in criteria if len(criterion.cases) <= MANY_CASES)
        cases = [(criterion.rule, forms) for criterion in few for forms in criterion.cases]
        self.tallies, self.sides = tallies_of(criteria), sides_of(criteria)
        self._forms = tuple(dict.fromkeys([Form(((RECORDS, 1),)), *(f for _, forms in cases for f in forms)]))
        place = {form: i for i, form in enumerate(self._forms)}
        self._tests = tuple((rule, tuple(place[form] for form in forms)) for rule, forms in cases)

    def counts(self, counts: Ints) -> Ints:
        """Count the own table, from its cells and side counts: int64, shape (n_tallies + n_sides,)."""
        cell_counts, sides = np.split(counts, [self._schema.n_cells])
        own = counts_of_cells(self._schema, self.tallies, cell_counts)
        return np.concatenate([*(own[tally] for tally in self.tallies), sides])

    def met(self, engine: Engine, share: Words) -> Rounds[bool]:
        """Judge if the whole table meets every criterion and is small enough for exact arithmetic.

        Tests side by side have the width of the largest allowed table; their results for a larger table have no
        meaning.
        """
        counts: dict[Measure, Words] = dict(
            zip((*self.tallies, *self.sides), share.reshape(-1, 1, 1), strict=True)
        )
        size, *others = [form.of(counts) for form in self._forms]
        inputs = {"count": size} | ({"difference": np.concatenate(others, axis=1)} if others else {})
        to = To.CARRIED if self._many else To.BOTH
        circuit = circuits.root_circuit(self._tests, len(self._forms), self._most + 1, to)
        outputs = yield from engine.run(circuit, 1, inputs)
        if not self._many:
            return opened(outputs, "met") == 1
        stakes = {criterion: np.ones((1, len(criterion.cases)), dtype=bool) for criterion in self._many}
        tests = list(tests_of(self._many, stakes, counts, np.array([self._most]), self._most))
        met = yield from judged(engine, tests, whole=True)
        return (yield from engine.all_met([carried(outputs, "met"), *met]))
