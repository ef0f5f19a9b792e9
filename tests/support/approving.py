"""Networks whose owners are asked, and owners who decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.task import Task
from party.owner.approvals import Approvals, Binding, Decision, Proposal
from tests.support import jobs
from tests.support.network import Network, sample_network
from tests.support.samples import joint_job


def asking_network(folder: Path, parties: Sequence[str] | None = None, **job: Any) -> Network:
    """The sample network, some or all of whose parties want to be asked."""
    net = sample_network(folder, **job)
    for party in net.roster if parties is None else parties:
        net.change(party, lambda fields: fields["policy"].pop("approval"))
    return net


def approvals_of(net: Network, party: str) -> Approvals:
    return Approvals(net.config(party).state_dir)


def kept(net: Network, party: str) -> Proposal:
    (proposal,) = approvals_of(net, party).listed()
    return proposal


def approve(net: Network, party: str, runs: int | None = None) -> None:
    """As the owner who reads what is proposed, then approves it."""
    approvals, proposal = approvals_of(net, party), kept(net, party)
    binding = proposal.binding_now(net.config(party))
    approvals.show(proposal, binding)
    approvals.approve(proposal, binding, Decision("owner", runs))


def task_called(name: str = "sample", **changes: object) -> Task:
    return jobs.task_of(joint_job(name=name, **changes))


def bound(task: Task | None = None, coordinator: str = "coordinator") -> Binding:
    task = task or task_called()
    certificates = dict.fromkeys((coordinator, *task.job.roster), "ab" * 32)
    return Binding(task.digest.hex(), coordinator, task.job.roster, certificates, "0.1")
