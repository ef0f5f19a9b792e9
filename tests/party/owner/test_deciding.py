"""Decisions: what no owner can mean is refused, and a decision that is not noted is not kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from jobs.errors import MAX_SHARED_CHARS, ConfigError, PartyError, PolicyError
from party.owner.approvals import Approvals, Proposal
from party.owner.audit import AUDIT
from party.owner.deciding import MOST_RUNS, approve, deny
from tests.support.network import Network, sample_network
from tests.support.samples import PARTIES

A = PARTIES[0]
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Network:
    return sample_network(tmp_path_factory.mktemp("net"))


@pytest.fixture
def proposal(net: Network, tmp_path: Path) -> Proposal:
    net.change(A, lambda fields: fields.update(state_dir=str(tmp_path)))
    approvals = Approvals(tmp_path)
    approvals.propose(net.task, "coordinator", NOW)
    (found,) = approvals.all(NOW)
    return found


def kept(net: Network) -> object:
    (found,) = Approvals(net.config(A).state_dir).all(NOW)
    return found.decision


def test_a_decision_is_returned_as_it_is_kept(net: Network, proposal: Proposal) -> None:
    until = NOW + timedelta(days=1)
    assert approve(net.config(A), proposal, "olga", NOW, runs=MOST_RUNS, until=until) == kept(net)
    (approved,) = Approvals(net.config(A).state_dir).all(NOW)
    assert deny(net.config(A), approved, "olga", NOW, "x" * MAX_SHARED_CHARS) == kept(net)


@pytest.mark.parametrize("runs", [0, -1, MOST_RUNS + 1])
def test_runs_are_bounded(net: Network, proposal: Proposal, runs: int) -> None:
    with pytest.raises(ConfigError, match="runs"):
        approve(net.config(A), proposal, "olga", NOW, runs=runs, until=None)
    assert kept(net) is None


def test_an_approval_that_is_over_is_refused(net: Network, proposal: Proposal) -> None:
    with pytest.raises(ConfigError, match="2026-11-29 12:00:00 UTC, is over"):
        approve(net.config(A), proposal, "olga", NOW, runs=1, until=NOW)
    assert kept(net) is None


@pytest.mark.parametrize("reason", ["", " \t", "x" * (MAX_SHARED_CHARS + 1)])
def test_a_reason_has_words_and_is_short(net: Network, proposal: Proposal, reason: str) -> None:
    with pytest.raises(ConfigError, match="the reason"):
        deny(net.config(A), proposal, "olga", NOW, reason)
    assert kept(net) is None


def test_without_a_line_no_approval_holds(net: Network, proposal: Proposal) -> None:
    config = net.config(A)
    approvals = Approvals(config.state_dir)
    (config.state_dir / AUDIT).mkdir()
    with pytest.raises(PartyError, match="no work without a line"):
        approve(config, proposal, "olga", NOW, runs=1, until=None)
    (unfinished,) = approvals.all(NOW)
    assert unfinished.decision is not None
    standing = unfinished.standing(unfinished.decision.terms, NOW)
    assert (standing.state, standing.own) == ("unknown", "the decision was not finished: decide again")
    with pytest.raises(PolicyError, match="has not approved"):
        approvals.begin(net.task.digest, "coordinator", unfinished.decision.terms, bytes(16), NOW)
    (config.state_dir / AUDIT).rmdir()
    approve(config, unfinished, "olga", NOW, runs=1, until=None)
    approvals.begin(net.task.digest, "coordinator", unfinished.decision.terms, bytes(16), NOW)


def test_a_denial_holds_with_and_without_a_line(net: Network, proposal: Proposal) -> None:
    """The store fails behind the line, or the line fails: no run begins."""
    config = net.config(A)
    approvals = Approvals(config.state_dir)
    approve(config, proposal, "olga", NOW, runs=3, until=None)
    (approved,) = approvals.all(NOW)
    assert approved.decision is not None
    audit = config.state_dir / AUDIT
    kept_aside = audit.rename(audit.with_name("kept"))
    audit.mkdir()
    with pytest.raises(PartyError, match="no work without a line"):
        deny(config, approved, "olga", NOW, "no")
    audit.rmdir()
    kept_aside.rename(audit)
    with pytest.raises(PolicyError, match="denied the job: no"):
        approvals.begin(net.task.digest, "coordinator", approved.decision.terms, bytes(16), NOW)


@pytest.mark.parametrize("approved", [True, False])
def test_a_line_stands_only_of_what_is_on_disk(
    net: Network, proposal: Proposal, monkeypatch: pytest.MonkeyPatch, approved: bool
) -> None:
    """A full disk under the store: the audit does not state a decision that is not there."""

    def full(*_: object) -> None:
        raise PartyError("io-failed", "the approvals cannot be read or written")

    config = net.config(A)
    decide = (
        partial(approve, config, proposal, "olga", NOW, runs=1, until=None)
        if approved
        else partial(deny, config, proposal, "olga", NOW, "no")
    )
    audit = config.state_dir / AUDIT
    before = audit.read_bytes() if audit.exists() else b""
    with monkeypatch.context() as patch:
        patch.setattr(Approvals, "_changed", full)
        with pytest.raises(PartyError, match="cannot be read or written"):
            decide()
    assert (audit.read_bytes() if audit.exists() else b"") == before
    assert kept(net) is None
