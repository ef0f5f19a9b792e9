"""One message of a run is changed, in every mode: the run ends with an error that names its sender, or as documented.

Nobody else is named, and no error is raised that is no protocol's. The long form:
`python -m tests.attacks.tampering 10000`.
"""

from __future__ import annotations

import pytest

from anonymize.joint.lkc.scores import contest
from crypto.errors import RemoteProtocolError
from crypto.two_party import expect_outcome
from tests.attacks.tampering import KINDS, is_named, stage, tally
from tests.support.horizontal import run_sealed, small_case

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


@pytest.mark.parametrize("opened_to_be", ["slot", "index"])
def test_a_candidate_that_bent_tables_make_up(opened_to_be: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No label tells: what was opened is compared with what there is."""
    opened = contest.opened
    monkeypatch.setattr(
        contest, "opened", lambda outputs, name: 1 << 9 if name == opened_to_be else opened(outputs, name)
    )
    tables, request = small_case()
    with pytest.raises(RemoteProtocolError, match="an outcome is impossible in an honest run") as caught:
        run_sealed(tables, request)
    assert caught.value.culprit in {"p0", "p1"}
