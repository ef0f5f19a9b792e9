"""Vertical LKC: the same result as a single holder of the join, and nothing told that the mode does not list."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.cut import Candidate
from anonymize.errors import AnonymizeError, PrivacyError
from anonymize.joint.columns import Columns, class_schema
from anonymize.joint.disclosure import ALLOWED, RevealLedger
from anonymize.joint.lkc import vertical
from anonymize.joint.lkc.common_records import CommonRecords
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.setting import asked_by, protected_of
from anonymize.joint.lkc.validity import Validity
from anonymize.joint.lkc.vertical import VerticalOutcome
from anonymize.joint.lkc.winner import OpenMaximum
from anonymize.joint.roster import Roster
from anonymize.lkc.single import anonymize_single
from anonymize.table import CodedTable, Schema
from crypto.circuit import Held, To
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.rounds import Rounds
from tests.support import jobs
from tests.support.computations import watched
from tests.support.entries import lkc
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.scores import PUBLISHED_NAMES
from tests.support.tables import Case, cases
from tests.support.vectors import Golden
from tests.support.vertical import MAXIMA, Cut, cut_by_columns, expect_same, generators, named, run_vertical


@settings(max_examples=examples(40), deadline=None)
@given(case=cases(), data=st.data())
def test_equals_the_single_holder(case: Case, data: st.DataObject) -> None:
    bundle = jobs.bundle_of(case.fields)
    whole = jobs.coded(bundle, case.rows)
    n = data.draw(st.sampled_from([2, 2, 3, 4]))
    names = [f"p{i}" for i in range(n)]
    party = st.sampled_from(names)
    columns = Columns(
        tuple(data.draw(party) for _ in whole.schema.qid),
        tuple(data.draw(party) for _ in whole.schema.sensitive),
        class_from=data.draw(st.none() | party) if whole.schema.class_name else None,
    )
    request = jobs.request_of(bundle)
    request = replace(request, requirement=replace(request.requirement, insider=data.draw(st.booleans())))
    cut = cut_by_columns(whole, columns, names, strangers=data.draw(st.sampled_from([0, 3])))
    leader, deputy = data.draw(st.permutations(range(n)))[:2]
    how = {"leader": leader, "deputy": deputy, "maximum": data.draw(st.sampled_from(MAXIMA))}
    try:
        anonymize_single(whole, request.requirement, request.goal)
    except PrivacyError:
        with pytest.raises(PrivacyError) as caught:
            run_vertical(cut, request, **how)
        assert caught.value.error_id == "requirement-unmet"
        return
    results, _ = run_vertical(cut, request, **how)
    expect_same(cut, results, request)


def loan(
    n_rows: int = 240, seed: int = 1, goal: str = "classification", c: str = "0.6"
) -> tuple[CodedTable, Request]:
    """A table in which columns at different parties decide on validity together."""
    fields = {
        "version": "1",
        "name": "loan",
        "partition": "single",
        "model": {"lkc": {"L": "3", "K": "4", "C": c}},
        "goal": goal,
        "score": PUBLISHED_NAMES[goal],
        "data": "t.csv",
        "columns": {
            "job": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b", "c"], "h": ["d", "e"], "i": ["f"]}}},
            "age": {"role": "qid", "numeric": {"min": "0", "max": "40", "step": "1"}},
            "city": {"role": "qid", "taxonomy": {"*": {"x": {"y": ["p", "q"], "z": ["r"]}, "w": ["s", "t"]}}},
            "cls": {"role": "class", "domain": ["Y", "N"]},
            "illness": {"role": "sensitive", "domain": ["k", "l", "m"], "values": ["k", "l"]},
            "debt": {"role": "sensitive", "domain": ["low", "high"], "values": ["high"]},
        },
    }
    bundle = jobs.bundle_of(fields)
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 6, n_rows)
    rows = []
    for v in z.tolist():
        age = int(np.clip(v * 6 + rng.integers(0, 10), 0, 39))
        rows.append(
            {
                "job": "abcdef"[v if rng.random() < 0.7 else rng.integers(0, 6)],
                "age": str(age),
                "city": "pqrst"[(v + int(rng.integers(0, 3))) % 5],
                "cls": "YN"[int(rng.random() < (0.2 + 0.1 * v))],
                "illness": "klm"[int(rng.random() < 0.8) * (1 + int(rng.random() < 0.1 * v + 0.3))],
                "debt": "low" if rng.random() < 0.75 - 0.04 * v else "high",
            }
        )
    return jobs.coded(bundle, rows), jobs.request_of(bundle)


SPLITS = {
    "both at b": Columns(("a", "b", "a"), ("b", "b")),
    "one each": Columns(("a", "b", "a"), ("a", "b")),
    "at a third": Columns(("a", "b", "b"), ("c", "c")),
    "at two others": Columns(("a", "a", "d"), ("b", "c")),
    "class given": Columns(("a", "b", "c"), ("c", "a"), class_from="b"),
}


def parties_of(columns: Columns) -> list[str]:
    return sorted({*columns.qid, *columns.sensitive})


@pytest.fixture
def revealed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, str]]:
    """Everything revealed, with its values: name, value, to."""
    seen: list[tuple[str, Any, str]] = []
    original = RevealLedger.reveal

    def recording(self: RevealLedger, name: str, value: Any, to: Any, shape: Any = None) -> Any:
        seen.append((name, value.tolist() if isinstance(value, np.ndarray) else value, to))
        return original(self, name, value, to, shape)

    monkeypatch.setattr(RevealLedger, "reveal", recording)
    return seen


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("split", list(SPLITS))
def test_sensitive_columns_anywhere(split: str, goal: str, revealed: list[Any]) -> None:
    columns = SPLITS[split]
    for seed, c, insider in ((1, "0.6", False), (3, "0.45", False), (4, "0.9", True)):
        whole, request = loan(seed=seed, goal=goal, c=c)
        request = replace(request, requirement=replace(request.requirement, insider=insider))
        cut = cut_by_columns(whole, columns, parties_of(columns), seed=seed, strangers=20)
        results, _ = run_vertical(cut, request, seed=seed)
        expect_same(cut, results, request)
    told = Counter(value for name, value, _ in revealed if name == "valid")
    assert min(told[True], told[False]) >= 3  # both verdicts came out of joint checks


@pytest.mark.some(2)
@pytest.mark.parametrize("k", [1, 2, 239, 240])
@pytest.mark.parametrize("c", ["1", "0.9"])
def test_limits_at_their_edges(k: int, c: str) -> None:
    """K = 1: no identity bound; C = 1: nothing to check; K at the number of common records."""
    whole, request = loan(c=c)
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"], strangers=9)
    bounds = {name: Fraction(c) for name in ("illness", "debt")}
    request = replace(request, requirement=lkc(2, k, c=bounds))
    results, _ = run_vertical(cut, request)
    expect_same(cut, results, request)
    assert (named(results, "confidence_check") > 0) == (c != "1" and k < 239)


def test_k_above_the_overlap_is_refused_at_every_party() -> None:
    whole, request = loan()
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"], strangers=100)
    with pytest.raises(
        PrivacyError, match="records that all parties have in common are too few for K"
    ) as caught:
        run_vertical(cut, replace(request, requirement=lkc(2, 241)))
    assert caught.value.error_id == "requirement-unmet"


def test_no_common_record_is_refused_at_every_party() -> None:
    whole, request = loan(20)
    cut = cut_by_columns(whole, SPLITS["at a third"], ["a", "b", "c"])
    elsewhere = {
        me: replace(holding, ids=[me.encode() + name for name in holding.ids])
        for me, holding in cut.holdings.items()
    }
    for holdings in (elsewhere, {**cut.holdings, "c": cut.holdings["c"].common(np.zeros(0, np.int64))}):
        errors = failures(replace(cut, holdings=holdings), request)
        assert [error.error_id for error in errors.values()] == ["no-common-records"] * 3


def failures(cut: Cut, request: Request) -> dict[str, AnonymizeError]:
    """Run all parties; return what each raised."""
    failures: dict[str, AnonymizeError] = {}

    def guarded(name: str, generator: Rounds[Any]) -> Rounds[Any]:
        try:
            return (yield from generator)
        except AnonymizeError as error:
            failures[name] = error
            return None

    run_local({name: guarded(name, generator) for name, generator in generators(cut, request).items()})
    return failures


@pytest.mark.some(1)
@pytest.mark.parametrize("split", ["one each", "at a third", "at two others"])
def test_a_class_value_that_differs_stops_the_run_everywhere(split: str) -> None:
    """One record of one party has another class: all stop, none says whose or which."""
    columns = SPLITS[split]
    whole, request = loan()
    cut = cut_by_columns(whole, columns, parties_of(columns), strangers=5)
    for liar in cut.parties:
        holding = cut.holdings[liar]
        place = holding.ids.index(cut.ids[17])
        classes = holding.classes
        assert classes is not None
        changed = classes.copy()
        changed[place] ^= 1
        wrong = replace(cut, holdings={**cut.holdings, liar: replace(holding, classes=changed)})
        errors = failures(wrong, request)
        assert errors.keys() == set(cut.parties)
        for error in errors.values():
            assert str(error) == (
                "the parties hold different class values for at least one common record; nobody learns the "
                "records, or how many"
            )
            assert (error.error_id, error.private, error.column) == ("class-mismatch", "", None)
            assert "`shared_by: NAME`" in error.remedy
            assert "docs/errors.md" in error.remedy


def test_a_class_value_that_differs_outside_the_overlap_does_not_matter() -> None:
    whole, request = loan()
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"], strangers=30)
    holding = cut.holdings["b"]
    assert holding.classes is not None
    strange = np.array([name not in cut.ids for name in holding.ids])
    assert strange.sum() == 30
    flipped = replace(holding, classes=np.where(strange, 1 - holding.classes, holding.classes))
    cut = replace(cut, holdings={**cut.holdings, "b": flipped})
    results, _ = run_vertical(cut, request)
    expect_same(cut, results, request)


def test_a_violated_root_is_refused_at_every_party() -> None:
    whole, request = loan(c="0.05")
    for split in ("both at b", "at a third", "at two others"):
        columns = SPLITS[split]
        cut = cut_by_columns(whole, columns, parties_of(columns))
        errors = failures(cut, request)
        assert errors.keys() == set(cut.parties)
        assert {error.error_id for error in errors.values()} == {"requirement-unmet"}
        assert {str(error) for error in errors.values()} == {
            "the fully generalized table already violates C; asked is L=3 K=4 C=1/20 (model.lkc)"
        }


# ---- what is revealed

MODES = [(split, clear) for split in SPLITS for clear in (False, True)]


@pytest.mark.some(1)
@pytest.mark.parametrize(("split", "clear"), MODES)
def test_the_ledger_is_exactly_the_modes_list(split: str, clear: bool, revealed: list[Any]) -> None:
    columns = SPLITS[split]
    whole, request = loan(seed=2, c="0.5")
    parties = parties_of(columns)
    cut = cut_by_columns(whole, columns, parties, strangers=20)
    results, transcript = run_vertical(cut, request, maximum=MAXIMA[clear])
    assert transcript.rounds <= most_rounds(results, columns, request, parties, clear)
    n, iterations = len(parties), len(results["a"].outcome.steps) + 1
    listed = {(a.name, a.to) for a in ALLOWED["vertical/leader" if clear else "vertical/sealed"]}
    shared = {
        ("earlier_run", "all"): 0,  # told where a run is charged, before it begins
        ("set_sizes", "all"): 1,
        ("common_records", "all"): 1,
        ("class_agreement", "leader"): 0 if columns.class_from else n - 1,
        ("class_agreement", "all"): 0 if columns.class_from else 1,
        ("class_values", "all"): int(columns.class_from is not None),
        ("root_check", "all"): 1,
        ("scores", "all"): iterations if clear else 0,
        ("candidate", "all"): iterations,
        ("children", "all"): iterations - 1,
        ("cell_columns", "coordinator"): 1,
    }
    for me, result in results.items():
        counted = Counter((r.name, r.to) for r in result.ledger.reveals)
        assert set(counted) <= listed
        own = {key: count for key, count in counted.items() if key[1] not in ("owner", "holder")}
        assert own == {key: count for key, count in shared.items() if count}
        if not asked_by(columns, me, parties, request):
            assert ("valid", "owner") not in counted
        if not protected_of(columns, me, request):
            assert ("confidence_check", "holder") not in counted
    # Every check is one bit to its owner, and seen by every holder it concerns.
    seen = sum(
        len(asked_by(columns, owner, parties, request)) * named({owner: results[owner]}, "valid")
        for owner in parties
    )
    assert seen == named(results, "confidence_check") > 0
    assert max(r.iteration for r in results["a"].ledger.reveals) == iterations


@pytest.mark.some(1)
@pytest.mark.parametrize("split", list(SPLITS))
def test_what_leaves_the_circuits(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Circuits tell the winner to both; verdicts to the owner, the bits of further holders as shares;
    agreement of classes.
    """
    columns, (whole, request) = SPLITS[split], loan(seed=2, c="0.5")
    parties = parties_of(columns)
    computed = watched(monkeypatch)
    results, _ = run_vertical(cut_by_columns(whole, columns, parties, strangers=20), request)
    asked = {p: len(asked_by(columns, p, parties, request)) for p in parties}
    verdicts = {p: named({p: results[p]}, "valid") for p in parties}
    iterations = len(results["a"].outcome.steps) + 1
    shares = sum(verdicts[p] * (asked[p] - 1) for p in parties if asked[p])
    expected = {
        (Held.GARBLER, ("same", To.GARBLER)): 0 if columns.class_from else len(parties) - 1,
        (Held.EVALUATOR, ("met", To.EVALUATOR)): sum(verdicts.values()),
    }
    for end in (Held.GARBLER, Held.EVALUATOR):
        expected[end, ("met", To.XOR_SHARED)] = shares
        expected[end, ("valid", To.BOTH)] = expected[end, ("index", To.BOTH)] = iterations
    opened = Counter((entry.role, output) for entry in computed for output in entry.out)
    assert opened == {key: count for key, count in expected.items() if count}
    assert all(
        value in ([[0]], [[1]]) for e in computed for (name, _), value in e.out.items() if name != "index"
    )
    assert all(len(value) == len(value[0]) == 1 for entry in computed for value in entry.out.values())


def test_an_unlisted_reveal_stops_the_run() -> None:
    with pytest.raises(LocalProtocolError, match="not on the mode's list"):
        RevealLedger("vertical/sealed").reveal("scores", 1, "all")


def test_what_children_say_is_the_published_generalization(revealed: list[Any]) -> None:
    """All that is told about the records adds up to the leaf partitions of the release, no finer."""
    whole, request = loan(seed=3)
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"])
    results, _ = run_vertical(cut, request)
    applied = [step.candidate for step in results["a"].outcome.steps]
    told = [value for name, value, _ in revealed if name == "children"]
    assert len(told) == 2 * len(applied)
    sizes = [len(children) for children in told[::2]]
    table = results["a"].generalized
    for candidate, size in zip(applied, sizes, strict=True):
        inside = (table.nodes[candidate.column] >= candidate.node.first) & (
            table.nodes[candidate.column] < candidate.node.last
        )
        assert size == table.sizes()[inside].sum()
        for child in candidate.children:  # every child told of is published as such or further refined
            assert any(
                child.first <= node.first and node.last <= child.last
                for node in cut_nodes(results, candidate)
            )


def cut_nodes(results: Mapping[str, VerticalOutcome], candidate: Any) -> Any:
    return results["a"].outcome.cut.nodes[candidate.column]


def views(transcript: Transcript, party: str) -> list[tuple[str, str, int]]:
    """The shape of what a party received: sender, step, size of every message."""
    return [(m.sender, m.step, len(m.payload)) for m in transcript.view(party)]


@pytest.mark.some(1)
@pytest.mark.parametrize("split", ["one each", "at two others"])
def test_views_do_not_depend_on_what_is_not_told(split: str, revealed: list[Any]) -> None:
    """Change one party's raw values, below what is published and tested: what others see has the same shape,
    and every value revealed is the same.
    """
    columns = SPLITS[split]
    whole, request = loan(120)
    parties = parties_of(columns)
    cut = cut_by_columns(whole, columns, parties)
    results, before = run_vertical(cut, request)
    told_before = list(revealed)
    changed = 0
    for seed in range(5):
        variant = with_other_values(cut, "a", results["a"], np.random.default_rng(seed))
        revealed.clear()
        others, after = run_vertical(variant, request)
        if [value for name, value, _ in revealed if name == "valid"] != [
            value for name, value, _ in told_before if name == "valid"
        ]:
            continue  # a discarded candidate groups records otherwise
        changed += 1
        assert revealed == told_before
        assert [r.ledger.reveals for r in others.values()] == [r.ledger.reveals for r in results.values()]
        for party in parties[1:]:
            assert views(after, party) == views(before, party)
    assert changed >= 3


def with_other_values(cut: Cut, me: str, result: VerticalOutcome, rng: np.random.Generator) -> Cut:
    """Let a few pairs of records of one (leaf partition, class) cell exchange their leaves: scores stay."""
    holding, counts = cut.holdings[me], result.generalized.count
    columns = [None if codes is None else codes.copy() for codes in holding.qid]
    starts = np.cumsum(counts) - counts
    for entry in rng.choice(np.flatnonzero(counts > 1), 5):
        one, other = result.rows[starts[entry] + rng.choice(counts[entry], 2, replace=False)]
        for codes in columns:
            if codes is not None:
                codes[[one, other]] = codes[[other, one]]
    return without(cut, me, qid=tuple(columns))


def test_no_message_holds_an_id_or_a_digest_of_one() -> None:
    whole, request = loan()
    names = {i: hashlib.sha256(b"%d" % i).digest()[:12] for i in range(whole.n_records)}
    cut = cut_by_columns(whole, SPLITS["at a third"], ["a", "b", "c"], id_of=names.__getitem__)
    _, transcript = run_vertical(cut, request)
    everything = b"".join(m.payload for m in transcript.messages)
    for name in names.values():
        for form in (
            name,
            hashlib.sha256(name).digest()[:8],
            hashlib.blake2b(name).digest()[:8],
            name.hex().encode(),
        ):
            assert form not in everything


@pytest.mark.parametrize("split", sorted(SPLITS))
def test_every_holder_permutes_on_its_own(monkeypatch: pytest.MonkeyPatch, split: str) -> None:
    """All know the common order: a holder that kept it, or two with one order, would tell which value is whose."""
    whole, request = loan(40, c="1")
    parties = parties_of(SPLITS[split])
    cut = cut_by_columns(whole, SPLITS[split], parties)
    place = {me: [holding.ids.index(i) for i in cut.ids] for me, holding in cut.holdings.items()}

    def ideal(roster: Roster, *_: Any) -> Rounds[np.ndarray[Any, Any]]:
        return np.array(place[roster.me])
        yield

    monkeypatch.setattr(vertical, "align", ideal)
    one_partition = replace(request, requirement=lkc(1, whole.n_records))  # cells are the class values
    results, _ = run_vertical(cut, one_partition)
    size = int(results[parties[0]].generalized.count[0])
    assert size >= 10
    cells = {me: [place[me].index(row) for row in r.rows[:size].tolist()] for me, r in results.items()}
    assert len({tuple(sorted(cell)) for cell in cells.values()}) == 1  # the same people
    assert len({tuple(cell) for cell in cells.values()}) == len(parties)
    assert all(cell != sorted(cell) for cell in cells.values())


@pytest.mark.parametrize("holds_sensitive", [False, True])
def test_the_order_inside_a_cell_is_uniform(holds_sensitive: bool) -> None:
    """All six orders of three records of a cell, over 1,200 runs: chi-square below its 1e-6 quantile."""
    _, request = loan(30)
    schema = request.schema if holds_sensitive else class_schema(request.schema)
    classes = np.array([0, 1, 0, 1, 0])
    columns = [np.arange(5) % 2 for _ in schema.sensitive]
    records = CommonRecords(schema, [None, None, None], classes, columns)
    orders = Counter(tuple(records.released(SeededRng(seed))[1][:3].tolist()) for seed in range(1200))
    assert set(orders) == set(permutations([0, 2, 4]))
    assert sum((count - 200) ** 2 / 200 for count in orders.values()) < 36


def test_rows_of_a_cell_come_in_random_order() -> None:
    whole, request = loan(c="1")
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"])
    orders = [run_vertical(cut, request, seed=seed)[0]["b"] for seed in range(6)]
    entries = np.repeat(np.arange(orders[0].generalized.n_entries), orders[0].generalized.count)
    for one in orders:
        assert sorted(one.rows.tolist()) == list(range(whole.n_records))
        for entry in range(orders[0].generalized.n_entries):
            assert set(one.rows[entries == entry]) == set(orders[0].rows[entries == entry])
    assert len({tuple(one.rows.tolist()) for one in orders}) == len(orders)


# ---- cost


@pytest.mark.some(2)
@pytest.mark.parametrize(("split", "clear"), MODES)
def test_rounds_as_documented(split: str, clear: bool) -> None:
    """Count rounds where nothing is tested, and where much is: with the ledger above."""
    columns = SPLITS[split]
    parties = parties_of(columns)
    whole, request = loan(c="1")
    results, transcript = run_vertical(
        cut_by_columns(whole, columns, parties), request, maximum=MAXIMA[clear]
    )
    assert transcript.rounds <= most_rounds(results, columns, request, parties, clear)


def most_rounds(
    results: Mapping[str, VerticalOutcome],
    columns: Columns,
    request: Request,
    parties: list[str],
    clear: bool,
) -> int:
    n, iterations = len(parties), len(results["a"].outcome.steps) + 1
    asked = {owner: asked_by(columns, owner, parties, request) for owner in parties}
    sessions = sum(len(holders) for holders in asked.values()) + n
    per_check = {
        owner: sum(2 + 2 * len(protected_of(columns, h, request)) for h in holders) + 2 * (len(holders) > 1)
        for owner, holders in asked.items()
    }
    tests = sum(per_check[owner] * named({owner: results[owner]}, "valid") for owner in parties)
    per_iteration = 4 if clear else 5 if n == 2 else 6
    return 2 * n + 1 + 2 * sessions + 2 * n + 4 + per_iteration * iterations + tests


def test_children_cost_bits() -> None:
    whole, request = loan(c="1")
    cut = cut_by_columns(whole, SPLITS["at a third"], ["a", "b", "c"])
    results, transcript = run_vertical(cut, request)
    table, expected = results["a"].generalized, 0
    for step in results["a"].outcome.steps:
        column, node = step.candidate.column, step.candidate.node
        inside = (table.nodes[column] >= node.first) & (table.nodes[column] < node.last)
        bits = (len(step.candidate.children) - 1).bit_length()
        expected += -(-bits * int(table.sizes()[inside].sum()) // 8)
    sent = sum(len(m.payload) for m in transcript.messages if m.step == "vertical/children")
    assert sent == 2 * expected > 0


@pytest.mark.some(2)
@pytest.mark.parametrize("split", ["one each", "at two others", "class given"])
def test_golden_transcripts(golden: Golden, split: str) -> None:
    whole, request = loan(60)
    columns = SPLITS[split]
    cut = cut_by_columns(whole, columns, parties_of(columns), strangers=4)
    golden.check("vertical", split, run_vertical(cut, request)[1].digest())
    golden.check(
        "vertical", f"{split}, in the clear", run_vertical(cut, request, maximum=OpenMaximum)[1].digest()
    )


# ---- hostile messages and our own mistakes

HOSTILE: list[tuple[str, str, str, Callable[[bytes], bytes]]] = [
    ("at two others", "vertical/candidate", "a", lambda p: p[:-1]),
    ("at two others", "vertical/candidate", "a", lambda p: b"\xff\xff\xff\xff" + p[4:]),
    ("at two others", "vertical/candidate", "a", lambda p: b"\x02" + p[1:]),
    ("at two others", "vertical/candidate", "a", lambda p: p[:4] + b"\x63" + p[5:]),
    ("at two others", "vertical/children", "a", lambda p: p[:-1]),
    ("at two others", "vertical/check", "a", lambda p: p + b"\0"),
    ("at two others", "vertical/check", "a", lambda p: b"\x09" + p[1:]),
    ("at two others", "vertical/check", "a", lambda p: b"\x02" + p[1:]),
    ("at two others", "vertical/check", "a", lambda p: p[:4] + b"\x63" + p[5:]),
    ("at two others", "vertical/root", "b", lambda p: b"\2"),
    ("at two others", "vertical/agree", "a", lambda p: b""),
    ("at two others", "confidence/share", "c", lambda p: b"\x02"),
    ("at two others", "confidence/share", "c", lambda p: b""),
    ("at two others", "joint_histogram/shape", "b", lambda p: p[:-1] + b"\1"),
    ("at two others", "joint_histogram/corrections", "b", lambda p: p[:-1]),
    ("at two others", "ot/extend", "a", lambda p: p[:-1]),
    ("at two others", "two_party/choices", "a", lambda p: bytes([p[0] ^ 1]) + p[1:]),
    ("at two others", "shares/share", "c", lambda p: p[:-1]),
    ("at two others", "comparison/winner", "a", lambda p: b"\xff" * len(p)),
    ("class given", "vertical/classes", "b", lambda p: p + b"\0"),
    ("one each", "vertical/candidate", "b", lambda p: p[:12] + b"\x63" + p[13:]),
    ("one each", "intersection/agree", "b", lambda p: bytes(32)),
    ("one each", "intersection/tags", "b", lambda p: p[:16] * (len(p) // 16)),
    ("one each", "oprf/table", "a", lambda p: p[:-1] + bytes([p[-1] ^ 1])),
]


@pytest.mark.some(3)
@pytest.mark.parametrize(("split", "step", "sender", "harm"), HOSTILE)
def test_hostile_messages_name_the_culprit(
    split: str, step: str, sender: str, harm: Callable[[bytes], bytes]
) -> None:
    columns = SPLITS[split]
    whole, request = loan(100)
    cut = cut_by_columns(whole, columns, parties_of(columns))
    hits = []

    def tamper(message: Message) -> bytes:
        hit = message.step == step and message.sender == sender
        hits.append(hit)
        return harm(message.payload) if hit else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        run_vertical(cut, request, tamper=tamper)
    assert any(hits)
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.some(2)
@pytest.mark.parametrize("field", range(4))
def test_impossible_scores_name_the_culprit(field: int) -> None:
    whole, request = loan()
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"])

    def tamper(message: Message) -> bytes:
        if message.step != "vertical/score" or message.sender != "b":
            return message.payload
        words = np.frombuffer(message.payload, dtype="<u8").copy()
        words[field] = 0 if field == 2 else 1 << 63
        return words.tobytes()

    with pytest.raises(RemoteProtocolError, match="a score that no candidate has") as caught:
        run_vertical(cut, request, maximum=OpenMaximum, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("b", "vertical/score")


def test_a_code_without_meaning_names_the_owner() -> None:
    """Three children take two bits; the fourth code is no child."""
    whole, request = loan(c="1")
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"])
    results, _ = run_vertical(cut, request)
    turn = [len(step.candidate.children) for step in results["a"].outcome.steps].index(3)
    owner = cut.columns.qid[results["a"].outcome.steps[turn].candidate.column]
    seen: list[Message] = []

    def tamper(message: Message) -> bytes:
        seen.extend([message] * (message.step == "vertical/children"))
        last = len(message.payload) - 1  # whose padding bits stay
        hit = message.step == "vertical/children" and len(seen) == turn + 1
        return b"\xff" * last + message.payload[last:] if hit else message.payload

    with pytest.raises(RemoteProtocolError, match="a code out of range") as caught:
        run_vertical(cut, request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (owner, "vertical/children")


def test_an_owner_that_asks_twice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test tells an owner one bit about somebody else's column; what has not changed is not tested again."""
    whole, request = loan(c="0.6")
    cut = cut_by_columns(whole, SPLITS["both at b"], ["b", "a"])
    honest = Validity._ask

    def twice(self: Validity, candidate: Candidate) -> Rounds[bool]:
        yield from honest(self, candidate)
        return (yield from honest(self, candidate))

    monkeypatch.setattr(Validity, "_ask", twice)
    with pytest.raises(RemoteProtocolError, match="the same test again") as caught:
        run_vertical(cut, request)
    assert (caught.value.culprit, caught.value.step) == ("a", "vertical/check")


def test_an_owner_that_asks_about_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, request = loan(c="0.6")
    job = whole.schema.qid[0]
    group = job.children(job.root)[1]  # d, e
    codes = whole.qid[0].copy()
    codes[(codes >= group.first) & (codes < group.last)] = 0
    cut = cut_by_columns(replace(whole, qid=(codes, *whole.qid[1:])), SPLITS["both at b"], ["b", "a"])
    honest = Validity._ask
    empty = []

    def about_nobody(self: Validity, candidate: Candidate) -> Rounds[bool]:
        if group in self._records.cut.nodes[0]:
            empty.append(group)
            candidate = replace(candidate, column=0, node=group, children=job.children(group))
        return (yield from honest(self, candidate))

    monkeypatch.setattr(Validity, "_ask", about_nobody)
    with pytest.raises(RemoteProtocolError, match="a node that no record is in") as caught:
        run_vertical(cut, request)
    assert empty
    assert (caught.value.culprit, caught.value.step) == ("a", "vertical/check")


def without(cut: Cut, party: str, **changes: Any) -> Cut:
    return replace(cut, holdings={**cut.holdings, party: replace(cut.holdings[party], **changes)})


def test_a_holding_or_roster_that_does_not_fit_is_refused_before_anything_is_sent() -> None:
    whole, request = loan(30)
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"])
    own = cut.holdings["a"]
    job = own.qid[0]
    assert job is not None
    wrong = [
        without(cut, "a", qid=(None, *own.qid[1:])),
        without(cut, "a", qid=(job, job, job)),
        without(cut, "a", qid=(job[:-1], *own.qid[1:])),
        without(cut, "a", qid=(job.astype(float), *own.qid[1:])),
        without(cut, "a", classes=None),
        without(cut, "a", sensitive=(None, None)),
        replace(cut, columns=Columns(("a", "b", "z"), ("a", "b"))),
        replace(cut, columns=Columns(("a", "b"), ("a", "b"))),
    ]
    for each in wrong:
        with pytest.raises(LocalProtocolError):
            next(generators(each, request)["a"])
    for leader, deputy in ((0, 0),):
        with pytest.raises(LocalProtocolError, match="must be two"):
            run_vertical(cut, request, leader=leader, deputy=deputy)
    given = replace(cut, columns=replace(cut.columns, class_from="b"))
    with pytest.raises(LocalProtocolError, match="holds other columns"):
        next(generators(given, request)["a"])


def test_nothing_secret_is_shown() -> None:
    whole, request = loan(30)
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"], id_of=lambda i: b"secret-%d" % i)
    results, _ = run_vertical(cut, request)
    for holding in cut.holdings.values():
        assert "secret" not in repr(holding)
        assert "array" not in repr(holding)
    assert "rows" not in repr(results["a"])


def test_a_table_without_classes_for_general_use() -> None:
    whole, request = loan(goal="general")
    schema = Schema(request.schema.qid, None, ("",), request.schema.sensitive)
    cells = np.ravel_multi_index(
        (np.zeros_like(whole.axis(0)), whole.axis(1), whole.axis(2)), schema.cell_shape
    )
    whole = CodedTable(schema, whole.qid, cells, whole.weights)
    cut = cut_by_columns(whole, SPLITS["one each"], ["a", "b"], strangers=7)
    request = replace(request, schema=schema)
    results, _ = run_vertical(cut, request)
    expect_same(cut, results, request)
    assert named(results, "class_agreement") == 0
    assert len(results["a"].outcome.steps) > 0
