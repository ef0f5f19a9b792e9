"""Proposal of a joint job to the owners of its tables, and their decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.conduct import WAITING, not_approved, root_cause
from jobs.errors import JobFailed, PartyError, Problem
from jobs.task import Task
from party.net.client import Calls
from party.net.control import Answer
from party.owner.approvals import Standing, refusal
from party.owner.config import CoordinatorConfig, address_of, credentials_of, peers_of


@dataclass(frozen=True)
class Answers:
    """Answers of all parties to a proposal.

    decisions:  by party, of parties whose policy allows the job.
    problems:   by party, of all other parties.
    """

    task: Task
    decisions: Mapping[str, Answer]
    problems: Mapping[str, Problem] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return a line for each party."""
        lines = [f"  {name}: {_words(answer)}" for name, answer in self.decisions.items()]
        return lines + [
            f"  {name}: {problem.text(to_owner=False)}" for name, problem in self.problems.items()
        ]

    def states(self) -> dict[str, str]:
        """Return the state of the job at each party; the id of the error if there is no decision."""
        states: dict[str, str] = {name: answer.state for name, answer in self.decisions.items()}
        return states | {name: problem.error_id for name, problem in self.problems.items()}

    def require_decided(self) -> None:
        """Raise JobFailed if a party gave no decision. A refusal counts before an absent party."""
        if self.problems:
            raise JobFailed(root_cause(list(self.problems.values()), ()))

    def require_heard(self) -> None:
        """Raise JobFailed if a party denied the job, or gave no decision."""
        self._require("denied")
        self.require_decided()

    def require_approved(self) -> None:
        """Raise JobFailed unless all owners have approved the job. No owner can approve what nobody proposed."""
        self.require_heard()
        unknown = [name for name, answer in self.decisions.items() if answer.state == "unknown"]
        if unknown:
            raise JobFailed(
                Problem(
                    WAITING,
                    f"the job does not wait at {' and '.join(unknown)}: it was not proposed, or its approval is over",
                    remedy="hand the job over: coordinator propose JOB",
                )
            )
        self._require("waiting")

    def _require(self, refused: str) -> None:
        found = {
            name: refusal(Standing(answer.state, answer.reason)).problem
            for name, answer in self.decisions.items()
            if answer.state == refused
        }
        if found:
            raise JobFailed(not_approved(self.task, found))


def _words(answer: Answer) -> str:
    words = {
        "unknown": "not proposed, or over: the proposal expired, or the approval ended; see `coordinator propose`",
        "waiting": "waits for its owner",
        "approved": "approved",
        "denied": f"denied: {answer.reason}",
    }
    return words[answer.state]


async def propose(task: Task, config: CoordinatorConfig, *, ask: bool) -> Answers:
    """Hand a job to all parties at once. ask: hand over nothing, and ask for the decisions alone."""
    calls = Calls(config, credentials_of(config), peers_of(config))

    async def asked(name: str) -> Answer | Problem:
        try:
            return await calls.propose(name, address_of(config, task.job, name), task.bundle.encoded, ask=ask)
        except PartyError as error:
            return error.problem.at(name, None)

    try:
        said = dict(zip(task.job.roster, await asyncio.gather(*map(asked, task.job.roster)), strict=True))
    finally:
        await calls.close()
    return Answers(
        task,
        {name: answer for name, answer in said.items() if isinstance(answer, Answer)},
        {name: problem for name, problem in said.items() if isinstance(problem, Problem)},
    )
