"""Strict horizontal LKC: what it refuses, and parties that deviate."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest

from anonymize.criteria.criterion import Form, SideCount
from anonymize.criteria.size import Size
from anonymize.errors import SchemaError
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores.infogain import JointInfoGain
from anonymize.joint.lkc.strict import check_strict
from anonymize.joint.messages import encode_candidate
from anonymize.lkc.requirement import Ask, AskedList, Entry
from anonymize.table import Schema
from crypto.errors import LocalProtocolError, RemoteProtocolError
from tests.support.horizontal import run_strict, small_case
from tests.support.tamper import first_harmed, vouched


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("sealed/root", "p0", lambda p: b"\2"),
        ("sealed/candidate", "p1", lambda p: p[:-1]),
        ("sealed/candidate", "p1", lambda p: b"\1" + p[1:]),
        ("sealed/candidate", "p1", lambda p: p[:4] + b"\x63" + p[5:]),
        ("strict/same", "p0", lambda p: b""),
        ("strict/same", "p0", lambda p: b"\2"),
        ("shares/open", "p1", lambda p: p + b"\0"),
        ("shares/share", "p2", lambda p: p[:-1]),
        ("two_party/choices", "p1", lambda p: p[:-1]),
        ("two_party/tables", "p0", lambda p: p[:-1]),
        ("two_party/outputs", "p1", lambda p: p[:-1] + bytes([p[-1] ^ 1])),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any) -> None:
    tables, request = small_case()
    _, honest = run_strict(tables, request)
    with pytest.raises(RemoteProtocolError) as caught:
        run_strict(tables, request, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


def test_a_candidate_that_is_not_there_is_refused() -> None:
    """The other parties know which nodes are left: a node of the cut that cannot be split is none of them."""
    tables, request = small_case()
    _, honest = run_strict(tables, request)
    told = [m.payload for m in honest.view("p2") if (m.step, m.sender) == ("sealed/candidate", "p1")]
    first = told[0]
    again = iter(told)

    def twice(message: Any) -> Any:
        if (message.step, message.recipient, message.sender) != ("sealed/candidate", "p2", "p1"):
            return message.payload
        next(again)
        return first

    with pytest.raises(RemoteProtocolError) as caught:
        run_strict(tables, request, tamper=vouched(twice, honest))
    assert (caught.value.culprit, caught.value.step) == ("p1", "sealed/candidate")
    assert first[4:] != encode_candidate(None)


@dataclasses.dataclass(frozen=True)
class Wanting(JointInfoGain):
    """A score that has split points opened before a candidate is chosen."""

    wants_sums: ClassVar[bool] = True


class WithoutStrictForm:
    """A score of which no pool for strict runs was written."""

    wants_sums: ClassVar[bool] = False


@pytest.mark.parametrize("goal", [Wanting(), WithoutStrictForm()])
def test_a_score_that_opens_split_points_early_is_refused(goal: Any) -> None:
    tables, request = small_case()
    request = dataclasses.replace(request, goal=goal)
    with pytest.raises(SchemaError, match="hides split points until a candidate is taken") as caught:
        run_strict(tables, request)
    assert caught.value.error_id == "job-invalid"


@dataclasses.dataclass(frozen=True)
class OfPersons(Size):
    """K persons."""

    cases: ClassVar[tuple[tuple[Form, ...], ...]] = ((Form(((SideCount("persons"), 1),)),),)


def test_what_is_counted_beside_the_cells_is_refused() -> None:
    _, request = small_case()
    request = dataclasses.replace(request, requirement=AskedList((Ask(2, (OfPersons(2),)),)))
    with pytest.raises(SchemaError, match="counts records only, not persons"):
        check_strict(request)


class Nothing:
    """A requirement without entries cannot be asked for; this one asks for groups and bounds nothing."""

    def entries(self, schema: Schema) -> tuple[Entry, ...]:
        return (Ask(1, ()).entry(schema),)


def test_a_requirement_that_bounds_nothing_tests_nothing() -> None:
    tables, request = small_case()
    request = Request(request.schema, Nothing(), request.goal, request.job_hash)
    results, _ = run_strict(tables, request)
    names = [reveal.name for reveal in results["p0"].ledger.reveals]
    assert "same_counts" not in names
    assert names.count("partition_counts") > 5


def test_a_pair_must_be_two_parties_of_the_roster() -> None:
    tables, request = small_case()
    with pytest.raises(LocalProtocolError, match="two different parties"):
        run_strict(tables, request, leader=1, deputy=1)
