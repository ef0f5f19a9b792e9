"""Nodes of which all records lie in one child are called by it: in every mode, what that tells, and who may lie."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anonymize.cut import Cut, top
from anonymize.joint.columns import Columns
from anonymize.joint.lkc.request import Request
from anonymize.joint.messages import decode_only_children, encode_only_children
from anonymize.lkc.single import anonymize_single
from anonymize.naming import Naming
from anonymize.release import release_of_rows
from anonymize.table import CodedTable, Ints, QidColumn, Schema
from anonymize.taxonomy import from_nested
from anonymize.tds import Outcome
from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript
from jobs.release.steps import replayed, step_fields
from tests.support import jobs, reference
from tests.support.horizontal import expect_same, recorded, run_led, run_sealed, run_strict
from tests.support.scores import PUBLISHED, PUBLISHED_NAMES
from tests.support.tamper import first_harmed, vouched
from tests.support.vertical import MAXIMA, cut_by_columns, run_vertical
from tests.support.vertical import expect_same as expect_same_join

SEX = {"Any": ["F", "M"]}
PLACE = {
    "World": {
        "Africa": ["Lagos"],
        "Europe": {"West": ["Lyon", "Nice"], "North": ["Bergen", "Oslo"]},
        "Asia": ["Tokyo"],
    }
}
COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"role": "qid", "taxonomy": SEX, "refine": "child"},
    "place": {"role": "qid", "taxonomy": PLACE, "refine": "child"},
    "dead": {"role": "class", "domain": ["Y", "N"]},
}
TURNS = [
    ("sex", "Any", ["F", "other Any"], True),
    # Nothing else has gain before it is known that all are in Europe.
    ("sex", "other Any", ["M", "?"], True),
    ("place", "World", ["Europe", "other World"], True),
    ("place", "Europe", ["West", "North"], True),
    ("place", "North", ["Bergen", "Oslo"], False),
    # Both values of the North occur, one of them too rarely to be told apart; of the West there is one alone.
    ("place", "West", ["Lyon", "Nice"], True),
]


def rows_of(n: int) -> list[dict[str, str]]:
    """Half are women; all are in Europe, all in the West in Lyon, two in Bergen."""
    places = ["Lyon" if i % 4 < 2 else "Oslo" for i in range(n)]
    places[2] = places[3] = "Bergen"
    return [
        {
            "sex": "FM"[i % 2],
            "place": places[i],
            "dead": "YN"[(i % 2 == 1) ^ (i % 7 == 0) ^ (i % 4 == 3 and i % 3 == 0)],
        }
        for i in range(n)
    ]


def case(goal: str = "classification", columns: dict[str, Any] = COLUMNS) -> tuple[CodedTable, Request]:
    fields = {
        "version": "1",
        "name": "named",
        "partition": "single",
        "data": "table.csv",
        "goal": goal,
        "score": PUBLISHED_NAMES[goal],
        "model": {"lkc": {"L": "2", "K": "5", "C": "1"}},
        "columns": columns,
    }
    bundle = jobs.bundle_of(fields)
    return jobs.coded(bundle, rows_of(120)), jobs.request_of(bundle)


def alone(table: CodedTable, request: Request) -> Outcome:
    return anonymize_single(table, request.requirement, request.goal)


def dealt(table: CodedTable, n: int) -> list[CodedTable]:
    """Women at the first holder alone, men at all others."""
    owners = np.concatenate(
        [
            np.zeros(weight, dtype=np.int64) if code == 0 else 1 + np.arange(weight) % (n - 1)
            for code, weight in zip(table.qid[0].tolist(), table.weights.tolist(), strict=True)
        ]
    )
    return jobs.split_among(table, owners, n)


def test_the_last_value_is_told_apart_though_others_do_not_occur() -> None:
    table, request = case()
    outcome = alone(table, request)
    assert jobs.turns(outcome) == TURNS
    assert [step.naming for step in outcome.steps] == [False, True, True, False, False, True]
    assert [step.score for step in outcome.steps if step.naming] == [0, 0, 0]
    printed = Counter(row[:2] for row in jobs.multiset(release_of_rows(table, outcome.cut)).elements())
    assert printed == {("F", "Lyon"): 30, ("F", "North"): 30, ("M", "Lyon"): 30, ("M", "North"): 30}


@pytest.mark.some(1)
@pytest.mark.parametrize("goal", PUBLISHED)
def test_the_definition_taken_literally_and_every_mode(goal: str) -> None:
    table, request = case(goal)
    qid = {
        name: reference.Categorical(reference.nested_paths(tree, []), by_child=True)
        for name, tree in (("sex", SEX), ("place", PLACE))
    }
    expected = reference.anonymize(rows_of(120), reference.Problem(qid, "dead", {}, 2, 5, goal))
    assert expected is not None
    outcome = alone(table, request)
    assert jobs.turns(outcome) == expected[0]
    assert any(step.naming for step in outcome.steps)
    made = replace(outcome, steps=tuple(step for step in outcome.steps if step.applied))
    for n in (2, 3):
        parts = dealt(table, n)
        runs: list[Any] = [run_sealed(parts, request)] + ([run_led(parts, request)] if n > 2 else [])
        for results, _ in runs:
            expect_same(results, outcome, table)
            assert [s.naming for s in results["p0"].outcome.steps] == [s.naming for s in outcome.steps]
        expect_same(run_strict(parts, request)[0], made, table)
    for maximum in MAXIMA:
        cut = cut_by_columns(table, Columns(("a", "b"), ()), ["b", "a"])
        expect_same_join(cut, run_vertical(cut, request, maximum=maximum)[0], request)


def test_a_node_is_asked_about_once_and_what_is_told_follows_from_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of `other Any` and `World`; then of `West` and `North`; of nothing else, as long as these stay in the cut."""
    table, request = case()
    revealed = recorded(monkeypatch)
    for run, n in ((run_sealed, 2), (run_sealed, 3), (run_led, 3), (run_strict, 3)):
        run(dealt(table, n), request)
        for seen in revealed[-n:]:
            assert [value for name, value, _ in seen if name == "only_child"] == [[0, 1], [0, None]]


def test_no_column_of_the_kind_no_message() -> None:
    columns = {name: {**column, "refine": "children"} for name, column in COLUMNS.items() if name != "dead"}
    table, request = case(columns={**columns, "dead": COLUMNS["dead"]})
    for run in (run_sealed, run_led):
        results, transcript = run(dealt(table, 3), request)
        assert not any("only_child" in step for step in transcript.steps)
        assert "only_child" not in {reveal.name for reveal in results["p0"].ledger.reveals}


def test_a_result_says_which_specializations_were_not_made_for_their_score() -> None:
    table, request = case()
    outcome = alone(table, request)
    encoded = json.loads(json.dumps([step_fields(step) for step in outcome.steps]))
    assert [fields[-1] for fields in encoded] == [0, None, None, 0, 0, None]
    steps, cut = replayed(table.schema, encoded)
    assert (steps, cut) == (tuple(replace(step, violation=None) for step in outcome.steps), outcome.cut)
    encoded[2][3] = False
    with pytest.raises(ValueError, match="cannot be called by one of its children"):
        replayed(table.schema, encoded)


def flat(n: int) -> QidColumn:
    values = [f"v{i:03}" for i in range(n)]
    return QidColumn("flat", from_nested({"Any": values}, "flat", missing_leaf=False), by_child=True)


@pytest.mark.parametrize(("n", "is_asked"), [(1, False), (2, True), (3, True), (64, True), (65, False)])
def test_which_nodes_are_asked_about(n: int, is_asked: bool) -> None:
    column = flat(n)
    for described, size, expected in (
        (column, 4, is_asked),
        (column, 0, False),
        (replace(column, by_child=False), 4, False),
    ):
        schema = Schema((described,), None, ("",))
        naming, cut = Naming(schema), top(schema)

        def size_of(number: int, node: object, size: int = size) -> int:
            return size

        assert bool(naming.due(cut, size_of)) == expected
        assert naming.due(cut, size_of) == []


def test_nodes_are_asked_about_in_path_order() -> None:
    """A rest begins where a later node does not: path order is not the order of first leaves."""
    table, _ = case()
    place = table.schema.qid[1]
    africa, europe, asia, missing = place.children(place.root)
    rest = place.rest_of(place.root, africa)
    schema = Schema((place,), None, ("",))
    cut = Cut(((africa, rest),))
    assert [each.node for each in Naming(schema).due(cut, lambda *_: 1)] == [rest]
    smaller = place.rest_of(rest, europe)
    later = Cut(((africa, europe, smaller),))
    assert [each.node for each in Naming(schema).due(later, lambda *_: 1)] == [smaller, europe]
    assert place.children(smaller) == (asia, missing)


# Who lies.


def bits(*places: Sequence[int]) -> list[Any]:
    return [np.array(place, dtype=bool) for place in places]


def none_of(*lengths: int) -> list[Ints]:
    return [np.zeros(length, dtype=np.int64) for length in lengths]


def test_what_is_told_of_children_is_read_again() -> None:
    told = bits([0, 1], [0, 0, 0], [1, 0, 0, 0])
    for own in (none_of(2, 3, 4), [np.array([0, 9]), np.array([1, 0, 1]), np.array([3, 0, 0, 0])]):
        assert decode_only_children(encode_only_children(told), own, "p", "q or r", "s") == [1, None, 0]


LIES: dict[str, tuple[list[Any], list[Ints], str]] = {
    "two children have all": (bits([1, 1]), none_of(2), "q or r"),
    "a child has all, and we have one in another": (bits([1, 0]), [np.array([5, 1])], "q or r"),
    "a bit too many": (bits([1, 0, 0, 0, 0, 0, 0, 0], [1]), none_of(8), "p"),
    "a bit behind the end": (bits([0, 0, 1]), none_of(2), "p"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_is_refused(lie: str) -> None:
    told, own, culprit = LIES[lie]
    with pytest.raises(RemoteProtocolError) as caught:
        decode_only_children(encode_only_children(told), own, "p", "q or r", "s")
    assert (caught.value.culprit, caught.value.step) == (culprit, "s")


def told_wrongly(step: str, told: bytes, leader: str = "p0") -> Callable[[Message], bytes]:
    return first_harmed(step, leader, lambda _: told)


def test_a_pair_that_calls_a_value_by_a_name_that_our_records_do_not_have() -> None:
    """`other Any` has men at p1 and p2, and is called `?`."""
    table, request = case()
    _, honest = run_sealed(dealt(table, 3), request)
    lie = encode_only_children(bits([0, 1], [0, 0, 0, 0]))
    with pytest.raises(RemoteProtocolError, match="differs between parties") as caught:
        run_sealed(dealt(table, 3), request, tamper=vouched(told_wrongly("sealed/only_child", lie), honest))
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", "sealed/only_child")


def test_a_leader_that_does() -> None:
    table, request = case()
    lie = encode_only_children(bits([0, 1], [0, 0, 0, 0]))
    with pytest.raises(RemoteProtocolError, match="differs between parties") as caught:
        run_led(dealt(table, 3), request, tamper=told_wrongly("horizontal/only_child", lie))
    assert caught.value.step == "horizontal/only_child"
    assert "p0" in caught.value.culprit.split(" or ")


def test_children_that_are_not_all_of_their_node_are_refused_by_the_leader() -> None:
    table, request = case()
    _, honest = run_led(dealt(table, 3), request)
    place = _number_of_sum_before(honest, "horizontal/only_child")
    seen = 0

    def tamper(message: Message) -> bytes:
        nonlocal seen
        if (message.step, message.sender) != ("secure_sum/masked", "p1"):
            return message.payload
        seen += 1
        words = np.frombuffer(message.payload, "<u8").copy()
        words[0] += seen == place
        return words.tobytes()

    with pytest.raises(RemoteProtocolError, match="contradict known counts") as caught:
        run_led(dealt(table, 3), request, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("p1 or p2", "horizontal/only_child")


def _number_of_sum_before(transcript: Transcript, step: str) -> int:
    """Return the number of the last of p1's sums before a step, counted from 1."""
    number = 0
    for message in transcript.messages:
        if message.step == step:
            return number
        number += (message.step, message.sender) == ("secure_sum/masked", "p1")
    raise ValueError(step)


def test_an_owner_that_calls_a_node_by_two_children() -> None:
    table, request = case()
    cut = cut_by_columns(table, Columns(("a", "b"), ()), ["b", "a"])
    lie = encode_only_children(bits([1, 1, 0, 0]))
    with pytest.raises(RemoteProtocolError, match="differs between parties") as caught:
        run_vertical(cut, request, tamper=told_wrongly("vertical/only_child", lie, "b"))
    assert (caught.value.culprit, caught.value.step) == ("b", "vertical/only_child")
