"""Decisions: what no owner can mean is refused, and a decision that is not noted is not kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.errors import MAX_SHARED_CHARS, ConfigError, PartyError
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
    net.change(A, lambda fields: fields.update(state_dir=str(tmp_path / "state")))
    approvals = Approvals(tmp_path / "state")
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


def test_without_a_line_there_is_no_decision(net: Network, proposal: Proposal) -> None:
    (net.config(A).state_dir / AUDIT).mkdir()
    with pytest.raises(PartyError, match="no work without a line"):
        approve(net.config(A), proposal, "olga", NOW, runs=1, until=None)
    assert kept(net) is None
