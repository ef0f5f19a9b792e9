"""The confidence test between an owner and holders of sensitive columns, against counting in the clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.criteria.ruled_out import DiverseValues, RuledOutValues
from anonymize.cut import Candidate
from anonymize.joint.engine import Engine
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
from anonymize.joint.sessions import CircuitSession
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.table import Ints, QidColumn, Schema, SensitiveColumn
from anonymize.taxonomy import from_nested
from anonymize.tds import Observer
from crypto.local import Transcript, run_local
from crypto.rounds import Rounds
from crypto.two_party import EvaluatorSession, GarblerSession
from tests.support.entries import lkc
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.ruled_out import Sensitive, is_diverse, tells_at_most
from tests.support.sessions import ot_sessions

TREE = {"*": {"g": ["a", "b"], "h": ["c", "d", "e"]}}


def schema_with(n_sensitive: int) -> Schema:
    qid = tuple(QidColumn(f"q{i}", from_nested(TREE, f"q{i}", missing_leaf=False)) for i in range(4))
    sensitive = tuple(SensitiveColumn(f"s{i}", ("x", "y", "z"), (0, 2)) for i in range(n_sensitive))
    return Schema(qid, "c", ("Y", "N"), sensitive)


def requirement_of(max_known: int, c: Sequence[Fraction], insider: bool = False) -> AskedList:
    """c: of each sensitive column."""
    return lkc(max_known, 1, insider, {f"s{i}": bound for i, bound in enumerate(c)})


def plan_of(
    c: Sequence[Fraction], sizes: Sequence[int], codings: Sequence[Sequence[int]], *, n_children: int
) -> CheckPlan:
    """A plan of the one entry of LKC, from the sizes of cells and the group of each."""
    n_records, n_groups = sum(sizes), 1 + max(map(max, codings))
    asked, groups = np.ones((1, n_groups), dtype=bool), tuple(np.array(coding) for coding in codings)
    entries = requirement_of(1, c).entries(schema_with(len(c)))
    return CheckPlan(
        np.arange(n_records), np.array(sizes), groups, n_groups, n_children, entries, asked, n_records
    )


def run_check(
    c: Sequence[Fraction],
    plan: CheckPlan,
    child: Ints,
    sensitive: Sequence[Ints],
    held: Sequence[tuple[int, ...]],
    asked: AskedList | None = None,
    observer: Observer | None = None,
) -> tuple[bool, Transcript]:
    """One owner ``o``, and its observer, against holders h0, h1, ... of the columns ``held`` says; asked: else C."""
    names, schema = [f"h{i}" for i in range(len(held))], schema_with(len(c))
    asked = asked or requirement_of(1, c)
    protected = {
        name: Protected.of(asked, schema, columns) for name, columns in zip(names, held, strict=True)
    }
    transfers = {name: ot_sessions(name, name, "o") for name in names}

    def owner() -> Rounds[bool]:
        sessions = []
        for name in names:
            receiver = transfers[name][1]
            engine = Engine(EvaluatorSession(receiver, SeededRng((name, "o"))), observer or Observer())
            sessions.append(CircuitSession(engine, receiver))
        met = []
        for name, session in zip(names, sessions, strict=True):
            met.append((yield from ask(session, plan, child, protected[name])))
        return (yield from hear_verdict([session.engine for session in sessions], met))

    def holder(name: str) -> Rounds[None]:
        sender = transfers[name][0]
        session = CircuitSession(Engine(GarblerSession(sender, SeededRng(name)), Observer()), sender)
        labels = [column[plan.records] for column in protected_labels(schema, protected[name], sensitive)]
        met = yield from answer(session, plan, labels, protected[name], SeededRng((name, "trees")))
        yield from give_verdict(name, names, session.engine, met)

    outputs, transcript = run_local({"o": owner(), **{name: holder(name) for name in names}})
    assert all(outputs[name] is None for name in names)
    return outputs["o"], transcript


def confidence_holds(
    records: CommonRecords,
    schema: Schema,
    c: Sequence[Fraction],
    sensitive: Sequence[Ints],
    child: Ints,
    max_known: int,
    insider: bool,
) -> bool:
    """The definition, literally, for a candidate of column 0 with the child of every member."""
    members = records.members(0, schema.qid[0].root)
    nodes = records.generalized.nodes[:, records.partition[members]]
    others = range(1, len(schema.qid))
    keys = [
        [(*(int(nodes[c, r]) for c in subset), int(child[r])) for r in range(len(members))]
        for size in range(max_known)
        for subset in combinations(others, size)
    ]
    if insider:
        keys.append(
            [
                (*nodes[:, r].tolist(), int(records.classes[members[r]]), int(child[r]))
                for r in range(len(members))
            ]
        )
    for key in keys:
        for group in set(key):
            inside = members[[k == group for k in key]]
            for column, codes, bound in zip(schema.sensitive, sensitive, c, strict=True):
                for value in column.protected:
                    hits = int((codes[inside] == value).sum())
                    if Fraction(hits, len(inside)) > bound:
                        return False
    return True


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), n=st.integers(1, 30), max_known=st.integers(1, 4), insider=st.booleans())
def test_is_the_definition(data: st.DataObject, n: int, max_known: int, insider: bool) -> None:
    c = [data.draw(st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)])) for _ in range(3)]
    schema = schema_with(len(c))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = [rng.integers(0, 5, n) for _ in schema.qid]
    classes = rng.integers(0, 2, n)
    sensitive = [rng.choice(3, n, p=[0.2, 0.6, 0.2]) for _ in schema.sensitive]
    own = replace(schema, sensitive=())
    records = CommonRecords(own, codes, classes, [])
    for column in data.draw(st.sets(st.integers(1, 3))):
        refine_root(records, column)
    place = (0, schema.qid[0].root)
    requirement = requirement_of(max_known, c, insider)
    members = records.members(*place)
    plan = plan_check(
        records.generalized,
        records.partition,
        classes if insider else None,
        members,
        place,
        2,
        requirement.entries(schema),
    )
    child = (codes[0] >= 2).astype(np.int64)
    held = data.draw(st.sampled_from([[(0, 1, 2)], [(0,), (1, 2)], [(2,), (0,), (1,)]]))
    found, _ = run_check(c, plan, child[plan.records], sensitive, held)
    expected = confidence_holds(records, schema, c, sensitive, child, min(max_known, 4), insider)
    assert found == expected


@settings(max_examples=examples(25), deadline=None)
@given(
    data=st.data(),
    n=st.integers(15, 60),
    bound=st.sampled_from([Fraction(1, 2), Fraction(3, 4)]),
    insider=st.booleans(),
)
def test_columns_of_one_holder_are_looked_at_together(
    data: st.DataObject, n: int, bound: Fraction, insider: bool
) -> None:
    """With values ruled out, by the definition of each block; no holder looks at columns of another."""
    schema, c = schema_with(3), [bound] * 3
    held = data.draw(st.sampled_from([[(0, 1, 2)], [(0,), (1, 2)]]))
    at_most = tuple((f"s{i}", data.draw(st.sampled_from([1, 0, 2]))) for i in range(3))
    asked = ruled_list(held, c, at_most, data.draw(st.sampled_from([2, 3])), insider)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    classes, child = rng.integers(0, 2, n), rng.integers(0, 2, n)
    sensitive = [rng.choice(3, n, p=[0.2, 0.6, 0.2]) for _ in schema.sensitive]
    for one, other in ((0, 1), (1, 2)):  # one gives the other away
        sensitive[other] = np.where(rng.random(n) < 0.5, sensitive[one], sensitive[other])
    codes = [np.where(child == 1, 3, 0), *(rng.integers(0, 5, n) for _ in schema.qid[1:])]
    records = CommonRecords(replace(schema, sensitive=()), codes, classes, [])
    refine_root(records, 1)
    place = (0, schema.qid[0].root)
    members, entries = records.members(*place), asked.entries(schema)
    known = classes if insider else None
    plan = plan_check(records.generalized, records.partition, known, members, place, 2, entries)
    found, _ = run_check(c, plan, child[plan.records], sensitive, held, asked)
    assert found == all(
        _tells_little(inside, held, sensitive, asked)
        for inside in _groups_of(records, child, insider=insider)
    )


def ruled_list(
    held: Sequence[tuple[int, ...]],
    c: Sequence[Fraction],
    at_most: tuple[tuple[str, int], ...],
    least: int | None = None,
    insider: bool = False,
) -> AskedList:
    """C, with one value ruled out, and diversity if any, block by block."""
    blocks = tuple(tuple(f"s{i}" for i in block) for block in held)
    bounds = tuple((f"s{i}", bound) for i, bound in enumerate(c))
    demands: tuple[Demand, ...] = Confidences(bounds=bounds), RuledOutValues(1, bounds, at_most, blocks)
    if least is not None:
        demands = (*demands, DiverseValues(least, at_most, blocks=blocks))
    return AskedList((Ask(2, demands),), insider)


def _groups_of(records: CommonRecords, child: Ints, *, insider: bool) -> list[Ints]:
    """Records that agree on column 0 with its children and on column 1, toward insiders on the class, too."""
    keys = list(zip(child.tolist(), records.partition.tolist(), strict=True))
    finer = list(zip(keys, records.classes.tolist(), strict=True)) if insider else []
    return [
        np.array([i for i, own in enumerate(of_all) if own == key])
        for of_all in (keys, finer)
        for key in set(of_all)
    ]


def _tells_little(
    inside: Ints, held: Sequence[tuple[int, ...]], sensitive: Sequence[Ints], asked: AskedList
) -> bool:
    """The definition."""
    _, out, diverse = asked.asks[0].demands
    assert isinstance(out, RuledOutValues)
    assert isinstance(diverse, DiverseValues)
    bounds, limits = dict(out.bounds), dict(out.at_most)
    for block in held:
        columns = [Sensitive([0, 1, 2], [0, 2], bounds[f"s{i}"], limits[f"s{i}"]) for i in block]
        rows = [tuple(int(sensitive[i][r]) for i in block) for r in inside]
        plain = [Sensitive([0, 1, 2], [0, 2], bounds[f"s{i}"]) for i in block]
        if not tells_at_most(rows, plain, 0) or not tells_at_most(rows, columns, 1):
            return False
        if not is_diverse(rows, columns, diverse.least):
            return False
    return True


def test_what_is_looked_at_together_takes_one_histogram() -> None:
    """As many rounds as a single column takes, and combinations as labels: 9 of two columns, 3 of the third."""
    rng = np.random.default_rng(0)
    sensitive = [rng.integers(0, 3, 40) for _ in range(3)]
    c, at_most = [Fraction(3, 4)] * 3, (("s2", 0),)
    plan = plan_of(c, [10, 30], [[0, 1], [2, 2]], n_children=2)

    def run(asked: AskedList) -> tuple[int, int]:
        protected = Protected.of(asked, schema_with(3), (0, 1, 2))
        entries = asked.entries(schema_with(3))
        own = replace(plan, entries=entries)
        _, transcript = run_check(c, own, rng.integers(0, 2, 40), sensitive, [(0, 1, 2)], asked)
        assert sum(m.step == "joint_histogram/corrections" for m in transcript.messages) == len(
            protected.views
        )
        return transcript.rounds, max(view.n_labels for view in protected.views)

    together, apart = run(ruled_list([(0, 1, 2)], c, at_most)), run(requirement_of(1, c))
    assert together == (apart[0] - 2, 9)
    assert apart[1] == 2


class Gates(Observer):
    """Counts AND gates."""

    total = 0

    def gates(self, count: int) -> None:
        self.total += count


def refine_root(records: CommonRecords, column: int) -> None:
    """Specialize the root of a column."""
    described = records.schema.qid[column]
    candidate = Candidate(column, described.root, described.children(described.root))
    records.apply(candidate, records.counts(candidate))


@pytest.mark.parametrize(("hits", "met"), [(2, True), (3, False)])
def test_exactly_c_is_allowed(hits: int, met: bool) -> None:
    c = [Fraction(1, 2)]
    sensitive = [np.array([0] * hits + [1] * (4 - hits) + [1] * 4)]
    plan = plan_of(c, [8], [[0]], n_children=2)
    child = np.array([0] * 4 + [1] * 4)
    assert run_check(c, plan, child, sensitive, [(0,)])[0] == met


@pytest.mark.parametrize("violated", [0, 1, 2])
def test_every_holder_counts(violated: int) -> None:
    """Of three holders one has its bound violated: the owner learns no more than that somebody has."""
    c = [Fraction(1, 2)] * 3
    sensitive = [np.ones(6, np.int64) for _ in range(3)]
    plan = plan_of(c, [2, 4], [[0, 1], [2, 2]], n_children=2)
    child = np.array([0, 1, 0, 0, 1, 1])
    assert run_check(c, plan, child, sensitive, [(0,), (1,), (2,)])[0]
    sensitive[violated][0] = 2
    met, transcript = run_check(c, plan, child, sensitive, [(0,), (1,), (2,)])
    assert not met
    to_first = [(m.sender, len(m.payload)) for m in transcript.messages if m.step == "confidence/share"]
    assert to_first == [("h1", 1), ("h2", 1)]


def test_the_size_of_messages_does_not_depend_on_the_data() -> None:
    c = [Fraction(1, 3)]
    plan = plan_of(c, [10, 30], [[0, 1], [2, 2]], n_children=3)
    shapes = set()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        _, transcript = run_check(c, plan, rng.integers(0, 3, 40), [rng.integers(0, 3, 40)], [(0,)])
        shapes.add(tuple((m.sender, m.step, len(m.payload)) for m in transcript.messages))
    assert len(shapes) == 1


def test_bits_hold_every_difference() -> None:
    """p·n and −q·count of a table of n records fit the sign test, up to 2**31 records."""
    for n in (1, 7, 8, 45222, 2**31 - 1):
        for c in (Fraction(1, 5), Fraction(4, 5), Fraction(1, 2**30)):
            bits = Protected.of(requirement_of(1, [c]), schema_with(1), (0,)).bits(n)
            assert -(1 << (bits - 1)) <= -c.denominator * n
            assert c.numerator * n < 1 << (bits - 1)
            assert bits <= 63
