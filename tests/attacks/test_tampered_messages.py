"""One message of a run is changed, in every mode: the run ends with an error that names its sender, or as documented.

Nobody else is named, and no error is raised that is no protocol's. The long form:
`python -m tests.attacks.tampering 10000`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from anonymize.joint.engine import Engine
from anonymize.joint.lkc.request import Request
from anonymize.joint.lkc.scores import contest
from anonymize.joint.lkc.scores.added import JointAdded
from anonymize.table import CodedTable
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds
from crypto.two_party import Asked, Outputs, expect_outcome
from tests.attacks.tampering import KINDS, is_named, stage, tally
from tests.support.horizontal import run_sealed, small_case
from tests.support.scores import PUBLISHED

SHORT, LONG = 3, 1250


@pytest.mark.some(1)
@pytest.mark.parametrize("mode", KINDS)
def test_a_changed_message_harms_no_bystander(mode: str) -> None:
    total = tally(mode, SHORT)
    assert total.found == {}
    assert total.verdicts["refused"] > 0
    assert total.verdicts.total() == SHORT


@pytest.mark.slow
@pytest.mark.parametrize("mode", KINDS)
def test_a_changed_message_harms_no_bystander_in_a_thousand_runs(mode: str) -> None:
    assert tally(mode, LONG, "long").found == {}


def test_an_unchanged_run_is_the_same_again() -> None:
    """Else `harmless` would mean nothing."""
    made = stage("horizontal/sealed")
    (one,), (other,) = (made.run(0)[0] for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("sender", "culprit", "named"),
    [("a", "a", True), ("a", "b or a", True), ("a", "b", False), ("a", "ab or b", False)],
)
def test_who_counts_as_named(sender: str, culprit: str, named: bool) -> None:
    assert is_named(sender, culprit) == named


@pytest.mark.parametrize("number", [-1, 3, 1 << 40])
def test_an_outcome_that_no_honest_run_has(number: int) -> None:
    assert expect_outcome(2, 3, "b") == 2
    with pytest.raises(RemoteProtocolError, match="an outcome is impossible in an honest run") as caught:
        expect_outcome(number, 3, "b")
    assert caught.value.culprit == "b"


def test_a_candidate_that_bent_tables_make_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No label tells: what was opened is compared with what there is."""
    opened = contest.opened
    monkeypatch.setattr(
        contest, "opened", lambda outputs, name: 1 << 9 if name == "slot" else opened(outputs, name)
    )
    tables, request = small_case()
    _expect_impossible(tables, replace(request, goal=JointAdded(per_class=1)))


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_a_split_that_bent_tables_make_up(goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Engine.run_all

    def bent(self: Engine, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        outputs = yield from original(self, asked)
        for (circuit, _, _), output in zip(asked, outputs, strict=True):
            if circuit.name.startswith("open/"):
                output["index"][:] = 1 << 9  # type: ignore[index]
        return outputs

    monkeypatch.setattr(Engine, "run_all", bent)
    tables, request = small_case()
    _expect_impossible(tables, replace(request, goal=PUBLISHED[goal]))


@pytest.mark.parametrize("told", [[0, 1, 0, 0], [1, 0], [0, 0, 1, 0, 1]])
def test_verdicts_that_bent_tables_make_up(told: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a candidate is valid, the bit of each later one is 1, too."""
    original = Engine.run_all

    def bent(self: Engine, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        outputs = yield from original(self, asked)
        for circuit, _, _ in asked:
            if circuit.name.startswith("first-met/"):
                outputs[0] = {"met": np.array([told], dtype=np.uint64)}
        return outputs

    monkeypatch.setattr(Engine, "run_all", bent)
    _expect_impossible(*small_case())


def _expect_impossible(tables: list[CodedTable], request: Request) -> None:
    with pytest.raises(RemoteProtocolError, match="an outcome is impossible in an honest run") as caught:
        run_sealed(tables, request)
    assert caught.value.culprit in {"p0", "p1"}
