"""Sealed horizontal LKC: the same result as a single holder, and nothing opened that is finer than it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate
from anonymize.errors import PrivacyError
from anonymize.grid import from_step
from anonymize.joint import sealed
from anonymize.joint.disclosure import ALLOWED, RevealLedger
from anonymize.joint.horizontal import JointOutcome, Request, Roster
from anonymize.joint.messages import encode_candidate
from anonymize.joint.sealed import anonymize_sealed
from anonymize.privacy import Lkc
from anonymize.release import release_of_counts, release_of_rows
from anonymize.single import anonymize_alone
from anonymize.table import MAX_RECORDS, CodedTable, QidColumn, Schema, SensitiveColumn, coded_table, joined
from anonymize.tds import Observer, Outcome
from crypto.circuit import Held, To
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.shares import ShareSession
from tests.anonymize.test_joint_led import greatest_tables, small_case
from tests.support import jobs
from tests.support.computations import Computed, watched
from tests.support.rng import SeededRng
from tests.support.tables import Case, cases
from tests.support.tamper import first_harmed
from tests.support.vectors import Golden


def run_sealed(
    tables: Sequence[CodedTable], request: Request, *, leader: int = 0, deputy: int = 1, **how: Any
) -> tuple[dict[str, JointOutcome], Transcript]:
    names = tuple(f"p{i}" for i in range(len(tables)))
    observer = how.pop("observer", None)
    return run_local(
        {
            me: anonymize_sealed(
                Roster(me, names, names[leader], names[deputy]),
                table,
                request,
                SeededRng(me),
                observer=observer if me == names[leader] else None,
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
        joint = release_of_counts(whole.schema, result.outcome.cut, result.generalized)
        assert jobs.multiset(joint) == rows
        assert result.ledger.reveals == results["p0"].ledger.reveals


@settings(max_examples=80, deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 2, 3, 5]))
    owners = np.array([data.draw(st.integers(0, n - 1)) for _ in range(whole.n_records)])
    tables = jobs.split_among(whole, owners, n)
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    request = jobs.request_of(bundle)
    try:
        outcome, _ = jobs.run_single(bundle, whole)
    except PrivacyError:
        with pytest.raises(PrivacyError, match="already violates K or C"):
            run_sealed(tables, request, leader=leader, deputy=deputy)
        return
    results, transcript = run_sealed(tables, request, leader=leader, deputy=deputy)
    expect_same(results, outcome, whole)
    _check_ledger(results["p0"], request)
    assert transcript.rounds <= _most_rounds(results["p0"], n)


def _check_ledger(result: JointOutcome, request: Request) -> None:
    """Exactly the rows of DESIGN §4 for `sealed`, as often as the turns make them."""
    reveals, steps = result.ledger.reveals, result.outcome.steps
    names = [reveal.name for reveal in reveals]
    applied = sum(step.applied for step in steps)
    counted = {a.name: names.count(a.name) for a in ALLOWED["horizontal/sealed"]}
    skipped = counted.pop("split_exists")
    assert skipped == 0 or request.goal == "general"
    assert counted == {
        "root_check": 1,
        "root_counts": 1,
        "candidate": len(steps) + 1,
        "valid": len(steps),
        "partition_counts": applied,
    }
    assert {reveal.to for reveal in reveals} == {"all"}
    assert len(reveals) == sum(counted.values()) + skipped
    final = result.generalized
    for reveal in reveals:  # no more counts than the table's own entries have children
        if reveal.name == "partition_counts":
            assert reveal.shape[0] <= final.n_entries


def _most_rounds(result: JointOutcome, n: int, computed: Sequence[Computed] = ()) -> int:
    """What the docstring says; without ``computed``, of a job whose batches are one window of chunks."""
    steps = result.outcome.steps
    applied = sum(step.applied for step in steps)
    skipped = sum(reveal.name == "split_exists" for reveal in result.ledger.reveals)
    base, per_applied, per_discarded = (12, 10, 6) if n == 2 else (16, 14, 8)
    usual = base + per_applied * applied + per_discarded * (len(steps) - applied) + 2 * skipped
    return usual + sum(entry.more_rounds for entry in computed if entry.role is Held.GARBLER)


Revealed = list[list[tuple[str, Any, str]]]


@pytest.fixture
def revealed(monkeypatch: pytest.MonkeyPatch) -> Revealed:
    """Everything revealed, with its values (name, value, to), one list for every party of every run."""
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


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Computed]:
    """Every batch of circuits that the pair evaluates, at both ends."""
    return watched(monkeypatch)


def expect_openings(
    computed: Sequence[Computed], revealed: Sequence[tuple[str, Any, str]], request: Request
) -> None:
    """What leaves the circuits at either end is what the ledger says, in that order, and nothing besides."""
    for role in (Held.GARBLER, Held.EVALUATOR):
        outs = iter([entry.out for entry in computed if entry.role is role and entry.out])
        for name, value, _ in revealed:
            if name in ("root_check", "valid"):
                assert next(outs) == {("met", To.BOTH): [[int(value)]]}
            elif name == "split_exists":
                assert next(outs) == _opened_candidate(0, 0)
            elif name == "candidate" and request.goal == "classification":
                _expect_best(next(outs, None), value, request)
            elif name == "candidate" and value is not None and request.schema.qid[value.column].is_numeric:
                assert next(outs) == _opened_candidate(1, value.children[0].last - value.node.first)
        assert next(outs, None) is None


def _expect_best(out: Mapping[tuple[str, To], Any] | None, best: Candidate | None, request: Request) -> None:
    """Where none is valid, index and slot are 0; where no node is left at all, nothing is evaluated."""
    if best is None:
        assert out is None or out == _opened_candidate(0, 0) | {("slot", To.BOTH): [[0]]}
        return
    assert out is not None
    split = best.children[0].last - best.node.first
    index = split if request.schema.qid[best.column].is_numeric else 0
    assert {key: value for key, value in out.items() if key[0] != "slot"} == _opened_candidate(1, index)


def _opened_candidate(valid: int, index: int) -> dict[tuple[str, To], Any]:
    return {("valid", To.BOTH): [[valid]], ("index", To.BOTH): [[index]]}


def whole_of(tables: Sequence[CodedTable]) -> CodedTable:
    return joined([table for table in tables if table.n_records])


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("c", [Fraction(1), Fraction(4, 5)])
@pytest.mark.parametrize("k", [1, 2, 90, 91])
def test_limits_at_their_edges(goal: Any, c: Fraction, k: int) -> None:
    """K = 1: no identity bound; C = 1: no attribute bound; K at and above the number of rows."""
    tables, request = small_case()
    (column,) = request.schema.sensitive
    schema = dataclasses.replace(request.schema, sensitive=(dataclasses.replace(column, confidence=c),))
    tables = [dataclasses.replace(table, schema=schema) for table in tables]
    request = Request(schema, Lkc(2, k), goal, bytes(32))
    whole = whole_of(tables)
    if k > whole.n_records:
        with pytest.raises(PrivacyError):
            run_sealed(tables, request)
        return
    results, _ = run_sealed(tables, request)
    expect_same(results, anonymize_alone(whole, request.requirement, goal), whole)


def test_a_party_with_one_row_and_one_with_none() -> None:
    tables, request = small_case()
    whole = whole_of(tables)
    owners = np.zeros(whole.n_records, dtype=np.int64)
    owners[5] = 1
    shares = jobs.split_among(whole, owners, 3)
    assert [table.n_records for table in shares] == [89, 1, 0]
    results, _ = run_sealed(shares, request)
    expect_same(results, anonymize_alone(whole, request.requirement, request.goal), whole)


def wide_job(cells: int, classes: int) -> dict[str, Any]:
    """A numeric column with many cut points, and several sensitive columns with their own values and C."""
    return {
        "version": "1",
        "name": "wide",
        "partition": "single",
        "model": {"lkc": {"L": "2", "K": "3", "C": "0.9"}},
        "data": "t.csv",
        "columns": {
            "x": {"role": "qid", "numeric": {"min": "0", "max": str(cells), "step": "1"}},
            "q": {"role": "qid", "taxonomy": {"*": [f"v{i}" for i in range(9)]}},
            "cls": {"role": "class", "domain": [f"c{i}" for i in range(classes)]},
            "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x", "z"]},
            "t": {"role": "sensitive", "domain": ["0", "1"], "values": ["1"], "C": "2/3"},
            "u": {"role": "sensitive", "domain": ["a", "b"], "C": "1"},
        },
    }


@pytest.mark.parametrize(("cells", "classes"), [(1024, 2), (40, 5), (7, 1)])
def test_many_cut_points_classes_and_sensitive_columns(
    cells: int, classes: int, revealed: Revealed, computed: list[Computed]
) -> None:
    bundle = jobs.bundle_of(wide_job(cells, classes) | ({"goal": "general"} if classes == 1 else {}))
    rng = np.random.default_rng(cells)
    x = rng.integers(0, cells, 400)
    rows = [
        {
            "x": str(v),
            "q": f"v{rng.integers(0, 9)}",
            "cls": f"c{int(v * classes / cells + rng.random()) % classes}",
            "s": "xyz"[rng.integers(0, 3)],
            "t": str(rng.integers(0, 2)),
            "u": "ab"[rng.integers(0, 2)],
        }
        for v in x
    ]
    whole = jobs.coded(bundle, rows)
    tables = jobs.split_among(whole, rng.integers(0, 2, whole.n_records), 2)
    results, transcript = run_sealed(tables, jobs.request_of(bundle))
    outcome, _ = jobs.run_single(bundle, whole)
    assert len(outcome.applied) > 1
    expect_same(results, outcome, whole)
    expect_openings(computed, revealed[0], jobs.request_of(bundle))
    assert transcript.rounds <= _most_rounds(results["p0"], 2, computed)
    if cells == 1024:  # whose first batches are more than one window
        assert transcript.rounds > _most_rounds(results["p0"], 2)
    expect_bytes_of_the_pair(transcript, computed, results["p0"])


def expect_bytes_of_the_pair(
    transcript: Transcript, computed: Sequence[Computed], result: JointOutcome
) -> None:
    """What the docstring says, to the byte."""
    between = [m for m in transcript.messages if {m.sender, m.recipient} == {"p0", "p1"}]
    circuits = sum(entry.bytes_sent for entry in computed if entry.role is Held.GARBLER)
    opened = [r.shape for r in result.ledger.reveals if r.name in ("root_counts", "partition_counts")]
    counts = sum(int(np.prod(shape)) for shape in opened)
    assert sum(len(m.payload) for m in between) == 4144 + circuits + 2 * 4 * counts


def test_bytes_of_those_outside_the_pair(computed: list[Computed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A contributor sends its seed and shares, wide enough for the number of records; the pair what it opens."""
    shared: list[int] = []
    original = sealed.share_vector

    def recording(session: ShareSession, values: Any) -> Any:
        if session.me == "p2":
            shared.append(values.nbytes)
        return original(session, values)

    monkeypatch.setattr(sealed, "share_vector", recording)
    tables, request = small_case()
    results, transcript = run_sealed(tables, request)
    expect_bytes_of_the_pair(transcript, computed, results["p0"])
    assert transcript.bytes_sent("p2") == 16 + sum(shared)
    reveals = results["p0"].ledger.reveals
    names = [r.name for r in reveals]
    counts = sum(int(np.prod(r.shape)) for r in reveals if r.name in ("root_counts", "partition_counts"))
    to_p2 = {
        who: sum(len(m.payload) for m in transcript.view("p2") if m.sender == who) for who in ("p0", "p1")
    }
    told = 24 * names.count("candidate") + names.count("root_check") + names.count("valid")
    assert to_p2 == {"p0": 4 * counts + told, "p1": 4 * counts}


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_almost_two_to_the_31_records(goal: Any) -> None:
    """Widths come from the public number of rows; weights stand for records."""
    tables, request = small_case()
    whole = whole_of(tables)
    factor = (2**31 - 1) // whole.n_records
    heavy = [dataclasses.replace(t, weights=t.weights * factor) for t in tables[:2]]
    light = dataclasses.replace(tables[2], weights=tables[2].weights * factor - 1)
    union = joined([*heavy, light])
    assert 2**31 - 200 < union.n_records < 2**31
    outcome = anonymize_alone(union, Lkc(2, 10**8), goal)
    assert outcome.applied
    names = ("p0", "p1", "p2")
    request = Request(request.schema, Lkc(2, 10**8), goal, bytes(32))
    results, _ = run_local(
        {
            me: anonymize_sealed(Roster(me, names, "p0", "p1"), table, request, SeededRng(me))
            for me, table in zip(names, [*heavy, light], strict=True)
        },
        record=False,
    )
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
    assert results["p2"].generalized.n_records == union.n_records


def test_the_greatest_table() -> None:
    """2^31 - 1 records, all of them in one cell."""
    tables, request = greatest_tables()
    results, _ = run_sealed(tables, request)
    outcome = anonymize_alone(joined(tables), request.requirement, request.goal)
    assert outcome.applied
    for result in results.values():
        assert jobs.turns(result.outcome) == jobs.turns(outcome)
        assert result.generalized.n_records == MAX_RECORDS


def test_too_many_records_in_sum_fail_the_root_check(revealed: Revealed) -> None:
    """Each party's rows are fewer than 2**31, their sum is not: refused, as the arithmetic would not be exact."""
    tables, request = small_case()
    heavy = [dataclasses.replace(t, weights=t.weights * (2**31 // 45)) for t in tables]
    with pytest.raises(
        PrivacyError, match="or all parties together have more than 2147483647 rows"
    ) as caught:
        run_sealed(heavy, request)
    assert caught.value.error_id == "requirement-unmet"
    assert revealed[0] == [("root_check", False, "all")]


@pytest.mark.parametrize("n_records", [29, 30])
def test_a_c_too_fine_for_the_rows_fails_the_root_check(revealed: Revealed, n_records: int) -> None:
    """C has so many digits that 29 rows are the most; one more, and the bit is 0, of which the error says this."""
    tables, request = small_case()
    (column,) = request.schema.sensitive
    q = (2**62 - 1) // 29
    column = dataclasses.replace(column, confidence=Fraction(q - 1, q), protected=(2,))
    schema = dataclasses.replace(request.schema, sensitive=(column,))
    whole = dataclasses.replace(whole_of(tables), schema=schema)
    units = jobs.split_among(whole, np.arange(whole.n_records) // n_records, 4)[0]
    request = dataclasses.replace(request, schema=schema)
    parties = jobs.split_among(units, np.arange(n_records) % 2, 2)
    if n_records == 29:
        expect_same(
            run_sealed(parties, request)[0], anonymize_alone(units, request.requirement, request.goal), units
        )
        return
    with pytest.raises(PrivacyError, match="more than 29 rows, the most that C with so many digits allows"):
        run_sealed(parties, request)
    assert revealed[0] == [("root_check", False, "all")]


def _column(name: str, cells: int) -> QidColumn:
    return QidColumn(name, from_step(Decimal(0), Decimal(cells), Decimal(1), name))


def _numeric_case(
    codes: list[list[int]], classes: list[int], sensitive: list[int], c: Fraction
) -> CodedTable:
    """Columns of two cells, two classes, one protected value."""
    columns = tuple(_column(name, 2) for name in "ab"[: len(codes)])
    schema = Schema(columns, "c", ("y", "n"), (SensitiveColumn("s", ("x", "z"), (0,), c),))
    return coded_table(
        schema, [np.array(values) for values in codes], np.array(classes), [np.array(sensitive)]
    )


@pytest.mark.parametrize(
    ("whole", "k"),
    [
        # a child of 80 with 5 protected ones: 4·80 − 5·5 = 295 takes nine bits and the sign
        (
            _numeric_case(
                [[0] * 80 + [1] * 10], [0] * 70 + [1] * 20, [0] * 5 + [1] * 80 + [0] + [1] * 4, Fraction(4, 5)
            ),
            1,
        ),
        # a whole bit of InfoGain, the most two classes have, beside a column with less
        (
            _numeric_case(
                [[0] * 24 + [1] * 32 + [0] * 8, [0] * 32 + [1] * 32],
                [0] * 32 + [1] * 32,
                [1] * 64,
                Fraction(1),
            ),
            2,
        ),
    ],
    ids=["differences", "keys"],
)
def test_the_widest_numbers(whole: CodedTable, k: int) -> None:
    parties = jobs.split_among(whole, np.arange(whole.n_records) % 3, 3)
    results, _ = run_sealed(parties, Request(whole.schema, Lkc(2, k), "classification", bytes(32)))
    outcome = anonymize_alone(whole, Lkc(2, k), "classification")
    assert outcome.applied
    expect_same(results, outcome, whole)


class Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


def test_cost_does_not_depend_on_the_number_of_records() -> None:
    """Every record ten times with K ten times as large: the same turns, gates within 30 %."""
    tables, request = small_case()
    totals, turns = [], []
    for factor in (500, 5000):  # 45,000 and 450,000 records
        gates = Gates()
        larger = [dataclasses.replace(table, weights=factor * table.weights) for table in tables]
        scaled = dataclasses.replace(request, requirement=Lkc(2, factor * request.requirement.min_size))
        results, _ = run_sealed(larger, scaled, observer=gates)
        totals.append(gates.total)
        turns.append(jobs.turns(results["p0"].outcome))
    assert turns[0] == turns[1]
    assert totals[0] < totals[1] < 1.3 * totals[0]


def views(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    """The shape of what a party received: sender, step, size of every message."""
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("whose", [0, 1, 2])
def test_views_do_not_depend_on_what_is_not_published(revealed: Revealed, whose: int, goal: Any) -> None:
    """Change one party's data, of the pair or not, without changing the table or the sequence of candidates:
    everything that anybody receives has the same shape, and all opened values are the same.
    """
    tables, request = small_case()
    request = dataclasses.replace(request, goal=goal)
    results, before = run_sealed(tables, request)
    told = revealed[0]
    changed = 0
    for seed in range(60):
        variant = _regeneralized(tables[whose], results["p0"].outcome, np.random.default_rng(seed))
        others = [variant if i == whose else table for i, table in enumerate(tables)]
        outcome = anonymize_alone(whole_of(others), request.requirement, goal)
        if jobs.turns(outcome) != jobs.turns(results["p0"].outcome) or _same(variant, tables[whose]):
            continue
        changed += 1
        _, after = run_sealed(others, request)
        for party in ("p0", "p1", "p2"):
            assert views(after, party) == views(before, party)
        if changed == 4:
            break
    assert changed >= 3
    assert all(seen == told for seen in revealed)
    assert len(revealed) == 3 * (changed + 1)


def _regeneralized(table: CodedTable, outcome: Outcome, rng: np.random.Generator) -> CodedTable:
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


def _same(one: CodedTable, other: CodedTable) -> bool:
    rows = [
        sorted(zip(*(c.tolist() for c in (*t.qid, t.cells, t.weights)), strict=True)) for t in (one, other)
    ]
    return rows[0] == rows[1]


NO_SPLIT, NONE_LEFT = ("split_exists", False, "all"), ("candidate", None, "all")


@pytest.mark.parametrize(
    ("ages", "goal", "expected"),
    [
        ([37] * 40, "general", [NO_SPLIT, NONE_LEFT]),
        ([37] * 40, "classification", [NONE_LEFT]),
        ([20, 20, 60, 60] * 10, "classification", [NONE_LEFT]),
    ],
)
def test_what_the_end_says_of_nodes_never_taken(
    ages: list[int], goal: Any, expected: list[Any], revealed: Revealed
) -> None:
    """It is finer than the table: that all have one age (not which), that ages do not tell the classes apart."""
    age = QidColumn("age", from_step(Decimal(0), Decimal(100), Decimal(1), "age"))
    schema = Schema((age,), "c", ("y", "n"), ())
    whole = coded_table(schema, [np.array(ages)], np.array([0, 1] * 20), [])
    results, _ = run_sealed(
        jobs.split_among(whole, np.arange(40) % 2, 2), Request(schema, Lkc(1, 2), goal, bytes(32))
    )
    assert results["p0"].outcome.steps == ()
    assert [told[2:] for told in revealed] == [expected] * 2
    finer = {a.name for a in ALLOWED["horizontal/sealed"] if a.finer}
    assert {name for name, _, _ in expected} <= finer


@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("n", [2, 3])
def test_what_leaves_the_circuits(n: int, goal: Any, revealed: Revealed, computed: list[Computed]) -> None:
    tables, request = small_case()
    request = dataclasses.replace(request, goal=goal)
    run_sealed([*tables[: n - 1], joined(tables[n - 1 :])], request)
    expect_openings(computed, revealed[0], request)
    assert {True, False} <= {value for name, value, _ in revealed[0] if name == "valid"}


def test_what_leaves_the_circuits_where_intervals_are_passed_over(
    revealed: Revealed, computed: list[Computed]
) -> None:
    tables, request = _flat_case()
    run_sealed(tables, request)
    assert NO_SPLIT in revealed[0]
    expect_openings(computed, revealed[0], request)


def test_what_is_opened_outside_the_circuits(revealed: Revealed) -> None:
    """Sums are opened as the ledger says, in those shapes; to others the pair tells what it opened."""
    tables, request = small_case()
    results, transcript = run_sealed(tables, request)
    shapes = [r.shape for r in results["p0"].ledger.reveals if r.name in ("root_counts", "partition_counts")]
    for sender, recipient in (("p0", "p1"), ("p1", "p0"), ("p0", "p2"), ("p1", "p2")):
        sent = [m for m in transcript.messages if (m.sender, m.recipient) == (sender, recipient)]
        opened = [len(m.payload) for m in sent if m.step == "shares/open"]
        assert opened == [4 * int(np.prod(shape)) for shape in shapes]
    told = [m.step for m in transcript.view("p2") if m.step != "shares/open"]
    steps = {"root_check": "sealed/root", "candidate": "sealed/candidate", "valid": "sealed/valid"}
    assert told == [steps[name] for name, _, _ in revealed[2] if name in steps]


def test_golden_transcripts(golden: Golden) -> None:
    tables, request = small_case()
    golden.check("sealed", "three", run_sealed(tables, request)[1].digest())
    two = [tables[0], joined(tables[1:])]
    golden.check("sealed", "two", run_sealed(two, request)[1].digest())
    general = dataclasses.replace(request, goal="general")
    golden.check("sealed", "general", run_sealed(tables, general)[1].digest())


def test_a_party_outside_the_pair_sends_its_shares_and_nothing_else() -> None:
    tables, request = small_case()
    _, transcript = run_sealed(tables, request)
    sent = {(m.step, m.recipient) for m in transcript.messages if m.sender == "p2"}
    assert sent == {("shares/seed", "p1"), ("shares/share", "p0")}


@pytest.mark.parametrize("pair", [("p0", "p0"), ("p0", "p9"), ("p9", "p1")])
def test_a_pair_must_be_two_parties_of_the_roster(pair: tuple[str, str]) -> None:
    tables, request = small_case()
    names = ("p0", "p1", "p2")
    with pytest.raises(LocalProtocolError, match="two different parties"):
        run_local(
            {
                me: anonymize_sealed(Roster(me, names, *pair), tables[0], request, SeededRng(me))
                for me in names
            }
        )


@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("sealed/root", "p0", lambda p: b"\2"),
        ("sealed/candidate", "p0", lambda p: p[:-1]),
        ("sealed/candidate", "p0", lambda p: b"\xff" * 4 + p[4:]),
        ("sealed/candidate", "p0", lambda p: b"\1" + p[1:]),
        ("sealed/candidate", "p0", lambda p: b""),
        ("sealed/candidate", "p0", lambda p: p[:4] + b"\x63" + p[5:]),
        ("sealed/valid", "p0", lambda p: b""),
        ("shares/open", "p0", lambda p: p[:-1]),
        ("shares/open", "p1", lambda p: p + b"\0"),
        ("shares/share", "p2", lambda p: p[:-1]),
        ("shares/seed", "p2", lambda p: p[:-1]),
        ("two_party/choices", "p1", lambda p: p[:-1]),
        ("two_party/choices", "p1", lambda p: bytes([p[0] ^ 1]) + p[1:]),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", lambda p: p[:-1] + bytes([p[-1] ^ 1])),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    tables, request = small_case()
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed(tables, request, tamper=first_harmed(step, sender, harm))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def _words(payload: bytes) -> Any:
    return np.frombuffer(payload, "<u4")


def test_false_openings_name_all_who_may_have_caused_them() -> None:
    """Whether a share was wrong when opened or when it was given, a sum does not tell."""
    tables, request = small_case()
    two = [tables[0], joined(tables[1:])]
    for parties, step, sender in (
        (tables, "shares/open", "p0"),
        (tables, "shares/open", "p1"),
        (tables, "shares/share", "p2"),
        (two, "shares/open", "p1"),
        (two, "shares/open", "p0"),
    ):
        seen = 0

        def tamper(message: Message, step: str = step, sender: str = sender) -> bytes:
            nonlocal seen
            if (message.step, message.sender) != (step, sender):
                return message.payload
            seen += 1
            if step == "shares/share" and seen != 2:  # the first one is for the root check, the second opened
                return message.payload
            return (_words(message.payload) - np.uint32(1 << 20)).tobytes()

        with pytest.raises(RemoteProtocolError) as caught:
            run_sealed(parties, request, tamper=tamper)
        assert caught.value.step == "shares/open"
        suspects = caught.value.culprit.split(" or ")
        assert sender in suspects
        assert len(suspects) == len(parties) - 1


def test_a_last_child_with_less_than_our_own_is_refused() -> None:
    """The pair opens a refinement in which the first child has everything: the last one, never sent, contradicts."""
    tables, request = small_case()
    _, transcript = run_sealed(tables, request)
    opened = [
        [m for m in transcript.messages if (m.step, m.sender, m.recipient) == ("shares/open", sender, "p2")]
        for sender in ("p0", "p1")
    ]
    values = [_words(one.payload) + _words(other.payload) for one, other in zip(*opened, strict=True)]
    delta = values[0] - values[1]
    seen: dict[tuple[str, str], int] = {}

    def tamper(message: Message) -> bytes:
        if message.step != "shares/open":
            return message.payload
        place = (message.sender, message.recipient)
        seen[place] = seen.get(place, 0) + 1
        lies = seen[place] == 2 and place in {("p0", "p1"), ("p0", "p2"), ("p1", "p0")}
        return (_words(message.payload) + delta).tobytes() if lies else message.payload

    with pytest.raises(RemoteProtocolError, match="contradict") as caught:
        run_sealed(tables, request, tamper=tamper)
    assert caught.value.step == "shares/open"
    assert " or " in caught.value.culprit


def _flat_case() -> tuple[list[CodedTable], Request]:
    """Goal general: `a` comes first but all its values are equal, then `q`, then `b`."""
    (taxonomy, _), request = small_case()[1].schema.qid, small_case()[1]
    schema = Schema((_column("a", 8), taxonomy, _column("b", 8)), None, ("",), ())
    codes = [np.full(30, 3), np.arange(30) % 4, np.arange(30) % 8]
    whole = coded_table(schema, codes, np.zeros(30, np.int64), [])  # type: ignore[arg-type]
    request = Request(schema, Lkc(1, 3), "general", request.job_hash)
    return jobs.split_among(whole, np.arange(30) % 3, 3), request


FALSE_TURNS: dict[str, tuple[int, Any]] = {
    "nothing was passed over": (0, lambda p: b"\0" + p[1:]),
    "too many were passed over": (0, lambda p: bytes([p[0] + 1]) + p[1:]),
    "later, one was": (1, lambda p: b"\1" + p[1:]),
    "none is left": (0, lambda p: p[:4] + encode_candidate(None)),
    "all were passed over": (0, lambda p: b"\3" + p[1:4] + encode_candidate(None)),
}


@pytest.mark.parametrize("lie", list(FALSE_TURNS))
def test_turns_out_of_the_public_order_are_refused(lie: str, revealed: Revealed) -> None:
    """Goal general: who is outside the pair knows the order, and so what may have been passed over."""
    tables, request = _flat_case()
    results, _ = run_sealed(tables, request)
    assert results["p2"].outcome.applied
    assert NO_SPLIT in revealed[2]
    when, change = FALSE_TURNS[lie]
    turn = -1

    def tamper(message: Message) -> bytes:
        nonlocal turn
        turn += message.step == "sealed/candidate"
        lies = message.step == "sealed/candidate" and turn == when
        return change(message.payload) if lies else message.payload  # type: ignore[no-any-return]

    with pytest.raises(RemoteProtocolError, match="not next") as caught:
        run_sealed(tables, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p0", "sealed/candidate")
    assert turn == when  # found out at once


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_a_candidate_that_was_discarded_does_not_come_again(goal: Any) -> None:
    """It still is a node of the cut; repeated for ever, it would keep the others from ending."""
    tables, request = small_case()
    request = dataclasses.replace(request, goal=goal)
    results, _ = run_sealed(tables, request)
    steps = results["p0"].outcome.steps
    place = next(i for i, step in enumerate(steps[:-1]) if not step.applied)
    again = bytes(4) + encode_candidate(steps[place].candidate)
    turn = -1

    def tamper(message: Message) -> bytes:
        nonlocal turn
        turn += message.step == "sealed/candidate"
        return again if message.step == "sealed/candidate" and turn == place + 1 else message.payload

    with pytest.raises(RemoteProtocolError, match="not next") as caught:
        run_sealed(tables, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p0", "sealed/candidate")
