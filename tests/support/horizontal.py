"""Horizontal LKC runs in process: led and sealed, and the tables that their tests share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest

from anonymize.candidates import Prospects
from anonymize.cut import Candidate, top
from anonymize.grid import from_step
from anonymize.joint.disclosure import ALLOWED, RevealLedger
from anonymize.joint.lkc.led import SumKind, anonymize_led
from anonymize.joint.lkc.request import JointOutcome, Request
from anonymize.joint.lkc.sealed import anonymize_sealed
from anonymize.joint.lkc.strict import anonymize_strict
from anonymize.joint.roster import Roster
from anonymize.lkc.requirement import AskedList
from anonymize.release import release_of_counts, release_of_rows
from anonymize.table import MAX_RECORDS, CodedTable, QidColumn, Schema, coded_table, joined
from anonymize.tds import Observer, Outcome
from crypto.circuit import Held, To
from crypto.local import Transcript, run_local
from crypto.rounds import Rounds
from tests.support import jobs
from tests.support.computations import Computed
from tests.support.entries import lkc
from tests.support.look_ups import label_product_bytes, look_up_bytes, look_up_rounds
from tests.support.rng import SeededRng
from tests.support.scores import PUBLISHED
from tests.support.sessions import OPENING_BYTES

Ran: TypeAlias = tuple[dict[str, JointOutcome], Transcript]
"""Result of each party, and all messages."""

Revealed = list[list[tuple[str, Any, str]]]
"""Reveals of each party of each run: name, value, to."""

NONE_LEFT = ("candidate", None, "all")


def recorded(monkeypatch: pytest.MonkeyPatch) -> Revealed:
    """Everything that ledgers note from now on, with its values."""
    ledgers: list[RevealLedger] = []
    seen: Revealed = []
    original = RevealLedger.reveal

    def recording(self: RevealLedger, name: str, value: Any, to: Any, shape: Any = None) -> Any:
        if not any(ledger is self for ledger in ledgers):
            ledgers.append(self)
            seen.append([])
        place = next(i for i, ledger in enumerate(ledgers) if ledger is self)
        seen[place].append((name, value.tolist() if isinstance(value, np.ndarray) else value, to))
        return original(self, name, value, to, shape)

    monkeypatch.setattr(RevealLedger, "reveal", recording)
    return seen


def run_led(
    tables: Sequence[CodedTable],
    request: Request,
    *,
    leader: int = 0,
    sums: SumKind = "masked",
    observers: Mapping[str, Observer] | None = None,
    **how: Any,
) -> tuple[dict[str, JointOutcome], Transcript]:
    names = tuple(f"p{i}" for i in range(len(tables)))
    return run_local(
        {
            me: anonymize_led(
                Roster(me, names, names[leader]),
                table,
                request,
                SeededRng(me),
                mode="horizontal/leader",
                sums=sums,
                observer=(observers or {}).get(me),
            )
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )


def small_case() -> tuple[list[CodedTable], Request]:
    """A fixed table for transcripts."""
    fields = {
        "version": "1",
        "name": "small",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "2", "C": "0.8"}},
        "score": "infogain",
        "data": "t.csv",
        "columns": {
            "q": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b"], "h": ["c", "d"]}}},
            "n": {"role": "qid", "numeric": {"min": "0", "max": "8", "step": "1"}},
            "cls": {"role": "class", "domain": ["Y", "N"]},
            "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x"]},
        },
    }
    bundle = jobs.bundle_of(fields)
    rng = np.random.default_rng(7)
    rows = [
        {
            "q": "abcd"[v // 16],
            "n": str(v % 8),
            "cls": "YN"[int((v // 16 + v % 8 > 5) ^ (v % 7 == 0))],
            "s": "xyz"[v % 3],
        }
        for v in rng.integers(0, 64, 90)
    ]
    whole = jobs.coded(bundle, rows)
    owners = np.arange(whole.n_records) % 3
    return jobs.split_among(whole, owners, 3), jobs.request_of(bundle)


def small_lkc(max_known: int, min_size: int, c: Fraction = Fraction(4, 5)) -> AskedList:
    """LKC-privacy of the small case, whose sensitive column has the C of its job."""
    return lkc(max_known, min_size, c={"s": c})


def greatest_tables() -> tuple[list[CodedTable], Request]:
    """The small case without class and sensitive column, its weights brought up to the greatest number of records."""
    tables, request = small_case()
    schema = Schema(request.schema.qid, None, ("",), ())
    factor = MAX_RECORDS // sum(table.n_records for table in tables)
    bare = [CodedTable(schema, t.qid, np.zeros(len(t.cells), np.int64), t.weights * factor) for t in tables]
    missing = MAX_RECORDS - sum(table.n_records for table in bare)
    bare[0].weights[0] += missing
    return bare, Request(schema, lkc(2, 10**8), PUBLISHED["general"], bytes(32))


def run_sealed(tables: Sequence[CodedTable], request: Request, **how: Any) -> Ran:
    return _run(anonymize_sealed, "horizontal/sealed", tables, request, **how)


def run_strict(tables: Sequence[CodedTable], request: Request, **how: Any) -> Ran:
    return _run(anonymize_strict, "horizontal/strict", tables, request, **how)


def _run(
    anonymize: Callable[..., Rounds[JointOutcome]],
    mode: str,
    tables: Sequence[CodedTable],
    request: Request,
    *,
    leader: int = 0,
    deputy: int = 1,
    **how: Any,
) -> Ran:
    names = tuple(f"p{i}" for i in range(len(tables)))
    observers = {names[leader]: how.pop("observer", None)} | how.pop("observers", {})
    return run_local(
        {
            me: anonymize(
                Roster(me, names, names[leader], names[deputy]),
                table,
                request,
                SeededRng(me),
                mode=mode,
                observer=observers.get(me),
            )
            for me, table in zip(names, tables, strict=True)
        },
        **how,
    )


def expect_same(results: dict[str, JointOutcome], outcome: Outcome, whole: CodedTable) -> None:
    """Every party has the single holder's specializations and rows."""
    rows = jobs.multiset(release_of_rows(whole, outcome.cut))
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        joint = release_of_counts(result.outcome.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows
        assert result.ledger.reveals == results["p0"].ledger.reveals


def whole_of(tables: Sequence[CodedTable]) -> CodedTable:
    return joined([table for table in tables if table.n_records])


def choices(result: JointOutcome) -> int:
    """Count how often a candidate was asked for: once for each that was found, and whenever none was left."""
    names = [reveal.name for reveal in result.ledger.reveals]
    chosen = sum(not step.naming for step in result.outcome.steps)
    ends, asked = names.count("candidate") - chosen, names.count("only_child")
    assert max(1, asked) <= ends <= asked + 1  # what is named may bring candidates; else nothing more happens
    assert (ends > 1) == (chosen < len(result.outcome.steps))
    return chosen + ends


def expect_sealed_ledger(result: JointOutcome, request: Request, n_blocks: int = 1) -> None:
    """Exactly the rows of the list (semantics §4) for `sealed`, as often as the turns make them."""
    reveals, steps = result.ledger.reveals, result.outcome.steps
    names = [reveal.name for reveal in reveals]
    tested = [step for step in steps if not step.naming]
    applied = sum(step.applied for step in tested)
    counted = {a.name: names.count(a.name) for a in ALLOWED["horizontal/sealed"]}
    of_score = {a.name: names.count(a.name) for a in request.goal.reveals.get("horizontal/sealed", ())}
    told = sum(of_score.values())
    asked = counted.pop("only_child")
    assert counted.pop("earlier_run") == 0  # told where a run is charged, before it begins
    assert counted == {
        "root_check": 1,
        "root_counts": 1,
        "candidate": choices(result),
        "valid": len(tested),
        "partition_counts": applied,
    }
    assert {reveal.to for reveal in reveals} == {"all"}
    assert len(reveals) == sum(counted.values()) + told + asked
    final = result.generalized
    for reveal in reveals:  # no more counts than the table's own entries have children
        if reveal.name == "partition_counts":
            assert reveal.shape[0] <= final.n_entries * n_blocks


def most_rounds(
    result: JointOutcome, transcript: Transcript, n: int, computed: Sequence[Computed] = ()
) -> int:
    """Compare rounds with the docstring; without ``computed``, of a job whose batches are one window of
    chunks.
    """
    steps = result.outcome.steps
    applied = sum(step.applied for step in steps)
    base, per_applied, per_discarded = (10, 6, 2) if n == 2 else (11, 8, 3)
    asked = sum(reveal.name == "only_child" for reveal in result.ledger.reveals)
    usual = base + per_applied * applied + per_discarded * (len(steps) - applied)
    usual += (2 if n == 2 else 4) * asked + look_up_rounds(transcript, n)
    return usual + sum(entry.more_rounds for entry in computed if entry.role is Held.GARBLER)


def expect_openings(
    computed: Sequence[Computed], revealed: Sequence[tuple[str, Any, str]], request: Request
) -> None:
    """Require that circuits give either end the values of the ledger, in that order, and nothing besides."""
    for role in (Held.GARBLER, Held.EVALUATOR):
        outs = iter([entry.out for entry in computed if entry.role is role and entry.out])
        orders = _Orders(request)
        verdicts: list[int] = []
        for name, value, _ in revealed:
            if name == "root_check":
                assert next(outs) == {("met", To.BOTH): [[int(value)]]}
            elif name == "split":
                for expected in orders.opened(value):
                    assert next(outs) == expected
            elif name == "valid":
                if not verdicts:  # of several candidates: 0 up to the first valid one
                    ((key, (told,)),) = next(outs).items()
                    assert key == ("met", To.BOTH)
                    assert told == sorted(told)
                    verdicts = [0] * told.count(0) + [1] * min(1, told.count(1))
                assert verdicts.pop(0) == int(value)
            elif name == "only_child":
                ((key, bits),) = next(outs).items()
                assert key == ("met", To.BOTH)
                assert sum(bit for (bit,) in bits) == sum(place is not None for place in value)
            elif name == "candidate" and value is not None:
                orders.taken(value)
            elif name == "partition_counts":
                orders.applied()
        assert not verdicts
        assert next(outs, None) is None


class _Orders:
    """Outputs of the circuits that open new candidates, from the numbers that all parties learn."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._prospects = Prospects(request.schema, each_child=request.goal.needs_class)
        self._due = [(column, root) for column, (root,) in enumerate(top(request.schema).nodes)]
        self._order: list[Candidate] = []
        self._last: Candidate | None = None

    def opened(self, told: Sequence[int]) -> list[dict[tuple[str, To], Any]]:
        """Return the outputs that give these numbers: the splits of new nodes, then, with a class, their places."""
        ways = [way for number, node in self._due for way in self._prospects.of(number, node)]
        splits, places = told[: len(ways)], told[len(ways) :]
        assert len(told) == len(ways) * (2 if self._request.goal.needs_class else 1)
        if not self._request.goal.needs_class:
            shown = [split for way, split in zip(ways, splits, strict=True) if way.n_options]
            assert all(split for way, split in zip(ways, splits, strict=True) if not way.n_options)
            return [_shown([max(0, split - 1) for split in shown], shown)] if shown else []
        if not ways:
            return []
        indices = [
            split - 1 if split and way.n_options else 0 for way, split in zip(ways, splits, strict=True)
        ]
        new = [way.specialized(max(1, split)) for way, split in zip(ways, splits, strict=True)]
        there = [True] * len(self._order) + [split > 0 for split in splits]
        every = [*self._order, *new]
        found = {place: each for place, split, each in zip(places, splits, new, strict=True) if split}
        rest, total = iter(self._order), sum(there)
        merged = [found[place] if place in found else next(rest) for place in range(total)]
        greater = []
        for j in range(len(self._order), len(every)):
            for i in range(j):
                one, other = sorted((i, j), key=lambda number: every[number].order)
                known = there[one] and there[other]
                greater.append(int(known and merged.index(every[other]) < merged.index(every[one])))
        self._order = merged
        shown_pairs = [{("greater", To.BOTH): [[bit] for bit in greater]}] if greater else []
        return [_shown(indices, splits), *shown_pairs]

    def taken(self, candidate: Candidate) -> None:
        self._last = candidate
        if self._request.goal.needs_class:
            assert self._order[0] == candidate
            self._order.pop(0)

    def applied(self) -> None:
        assert self._last is not None
        self._due = [(self._last.column, child) for child in self._last.children]


def _shown(indices: Sequence[int], splits: Sequence[int]) -> dict[tuple[str, To], Any]:
    return {
        ("valid", To.BOTH): [[int(split > 0)] for split in splits],
        ("index", To.BOTH): [[index] for index in indices],
    }


def option_of(candidate: Candidate, request: Request) -> int:
    """Return the option of its node that a candidate is, from 1; 0 where children are fixed."""
    column = request.schema.qid[candidate.column]
    if column.is_numeric:
        return candidate.children[0].last - candidate.node.first
    if candidate.taken_out is None or request.goal.needs_class:
        return 0
    return 1 + column.children(candidate.node).index(candidate.taken_out)


def expect_bytes_of_the_pair(
    transcript: Transcript, computed: Sequence[Computed], result: JointOutcome
) -> None:
    """Compare bytes with the docstring."""
    between = [m for m in transcript.messages if {m.sender, m.recipient} == {"p0", "p1"}]
    circuits = sum(entry.bytes_sent for entry in computed if entry.role is Held.GARBLER)
    opened = [r.shape for r in result.ledger.reveals if r.name in ("root_counts", "partition_counts")]
    counts = sum(int(np.prod(shape)) for shape in opened)
    told = look_up_bytes(transcript) + label_product_bytes(transcript)
    assert sum(len(m.payload) for m in between) == 4144 + OPENING_BYTES + circuits + told + 2 * 4 * counts


def numeric_column(name: str, cells: int) -> QidColumn:
    return QidColumn(name, from_step(Decimal(0), Decimal(cells), Decimal(1), name))


def flat_case() -> tuple[list[CodedTable], Request]:
    """Goal general: `a` comes first but all its values are equal, then `q`, then `b`."""
    (taxonomy, _), request = small_case()[1].schema.qid, small_case()[1]
    schema = Schema((numeric_column("a", 8), taxonomy, numeric_column("b", 8)), None, ("",), ())
    codes = [np.full(30, 3), np.arange(30) % 4, np.arange(30) % 8]
    whole = coded_table(schema, codes, np.zeros(30, np.int64), [])  # type: ignore[arg-type]
    request = Request(schema, lkc(1, 3), PUBLISHED["general"], request.job_hash)
    return jobs.split_among(whole, np.arange(30) % 3, 3), request


def regeneralized(table: CodedTable, outcome: Outcome, rng: np.random.Generator) -> CodedTable:
    """Replace some leaves by others below the same published value."""
    columns = []
    for number, codes in enumerate(table.qid):
        positions = outcome.cut.positions(number)
        moved = codes.astype(np.int64).copy()
        for row in np.flatnonzero(rng.random(len(codes)) < 0.1):
            siblings = np.flatnonzero(positions == positions[codes[row]])
            moved[row] = rng.choice(siblings)
        columns.append(moved)
    return CodedTable(table.schema, tuple(columns), table.cells, table.weights).collapsed()


def expect_same_turns(parts: list[CodedTable], request: Request, expected: Outcome) -> None:
    """Sealed runs, and led ones of more than two parties, take every turn with the score that it has."""
    results = dict(run_sealed(parts, request)[0])
    if len(parts) > 2:
        results |= {f"led {me}": result for me, result in run_led(parts, request)[0].items()}
    for result in results.values():
        assert [(s.candidate, s.applied, s.score) for s in result.outcome.steps] == [
            (s.candidate, s.applied, s.score) for s in expected.steps
        ]
