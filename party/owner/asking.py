"""What a proposed job would do with our table, in plain language: what an owner reads before deciding.

What is revealed, asked and warned of, the job's model and mode say in their own words (:mod:`jobs.description`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from crypto.rng import SystemRng
from jobs.answers import Answers
from jobs.description import description_fields
from jobs.errors import PartyError
from jobs.loading import read_task
from jobs.objections import check_policy
from jobs.task import Task
from party.owner.approvals import Approvals, Binding, Proposal
from party.owner.config import PartyConfig
from party.owner.identity import in_words

_ROLES: Mapping[str, str] = {
    "id": "which rows are one person's; not published",
    "qid": "by which persons could be recognized; published generalized",
    "sensitive": "what nobody may find out of a person; published",
    "class": "what is to be predicted; published",
    "plain": "published as it is, unchanged",
    "location": "where a person was; published as far as no path is too rare",
    "time": "when a person was there; published as far as no path is too rare",
    "items": "what belongs to a person; published as far as no set is too rare",
}
_TO: Mapping[str, str] = {
    "all": "all parties and the coordinator",
    "owner": "the party that has the column",
    "holder": "the party that has the sensitive column",
    "coordinator": "the coordinator",
}
_NOT_COMPARED = frozenset({"job", "job_sha256", "revealed", "costs"})


@dataclass(frozen=True)
class Asked:
    """One proposal as its owner reads it. before: the job of this name that was approved last."""

    config: PartyConfig
    proposal: Proposal
    binding: Binding
    before: Proposal | None

    @property
    def task(self) -> Task:
        return read_task(self.proposal.bundle)

    @property
    def lines(self) -> list[str]:
        """The whole text."""
        proposal = self.proposal
        return [
            f"{proposal.job}, proposed by {proposal.coordinator} at {at(proposal.came)}",
            f"  hash {proposal.job_sha256}",
            *(
                line
                for title, lines in self.sections
                for line in (f"{title}:", *(f"  {each}" for each in lines))
            ),
        ]

    @property
    def sections(self) -> list[tuple[str, list[str]]]:
        """What there is to say, below its titles."""
        task, proposal = self.task, self.proposal
        said = [
            ("It stands", _standing(proposal, self.binding)),
            ("It asks for", _requirement(task)),
            ("Our columns, and what for", _columns(task, self.config.name)),
            ("Everybody will see", _published(task)),
            ("Beyond that, others will learn on the way", _revealed(task)),
            ("Of our budget", _budget(self.config, task, proposal.coordinator)),
            ("To be known", [*task.mode.costs(task), *task.model.notes(task)]),
            _differences(task, self.before),
            ("An approval binds, beside the hash", _bound(self.binding)),
        ]
        return [(title, lines) for title, lines in said if lines]

    @property
    def fields(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            **proposal_fields(self.proposal, self.binding),
            "asked": description_fields(self.task),
            "certificates": self.binding.certificates,
            "version": self.binding.version,
            "in_words": self.lines,
        }


def at(seconds: float) -> str:
    """A time as people read it: UTC."""
    return in_words(datetime.fromtimestamp(seconds, UTC))


def proposals(config: PartyConfig) -> list[tuple[Proposal, dict[str, Any]]]:
    """Everything that is kept, oldest first, with what is noted of it as things are now. Raises PartyError."""
    listed = Approvals(config.state_dir).listed()
    return [(each, proposal_fields(each, _binding(config, each))) for each in listed]


def _binding(config: PartyConfig, proposal: Proposal) -> Binding | None:
    with suppress(PartyError):  # whoever is shown the proposal reads why
        return proposal.binding_now(config)
    return None


def proposal_fields(proposal: Proposal, binding: Binding | None) -> dict[str, Any]:
    """What is noted of a proposal; ``binding``: as things are now, None where a certificate cannot be used."""
    now = datetime.now(UTC).timestamp()
    fields = {
        "job": proposal.job,
        "job_sha256": proposal.job_sha256,
        "coordinator": proposal.coordinator,
        "came": at(proposal.came),
        "standing": proposal.standing(binding, now) if binding else "waiting",
        "reason": proposal.reason,
        "runs": proposal.runs,
        "until": None if proposal.until is None else at(proposal.until),
        "decided": None if proposal.decided is None else at(proposal.decided),
        "decided_by": proposal.decided_by,
    }
    return {key: value for key, value in fields.items() if value not in (None, "")}


def _standing(proposal: Proposal, binding: Binding) -> list[str]:
    fields = proposal_fields(proposal, binding)
    lines = [fields["standing"] + (f": {proposal.reason}" if proposal.reason else "")]
    if fields["standing"] == "waiting" and proposal.state == "waiting":
        lines.append(f"nobody need decide after {at(proposal.expires)}: then it is dropped")
    if proposal.decided_by:
        lines.append(f"last decided by {proposal.decided_by} at {fields['decided']}")
    if proposal.state == "approved":
        lines.append(f"runs left: {'any number' if proposal.runs is None else proposal.runs}")
        if proposal.until is not None:
            lines.append(f"until {at(proposal.until)}")
        lines += [f"but since then another: {each}" for each in proposal.changed(binding)]
    return lines


def _requirement(task: Task) -> list[str]:
    settings = [f"{key}: {value}" for key, value in task.model.settings(task.job).items()]
    return [task.model.requirement_words(task), *task.model.promise(task), *settings]


def _columns(task: Task, me: str) -> list[str]:
    columns = task.job.columns
    return [
        f"{name}: {columns[name].role}: {_ROLES.get(columns[name].role, 'as the job says')}"
        + ("; every other party is given its value of each common record" * (columns[name].shared_by == me))
        for name in task.held_by(me)
    ]


def _published(task: Task) -> list[str]:
    job = task.job
    shown = ", ".join(name for name, column in job.columns.items() if column.role != "id")
    if job.deliver == "all":
        return [f"{', '.join(task.delivered)}, with the columns {shown}: every party and the coordinator"]
    return [f"the release, with the columns {shown}: the coordinator, who may pass it on"]


def _revealed(task: Task) -> list[str]:
    who = {**_TO, "leader": f"the leader, {task.job.leader_name}"}
    lines = [
        f"{who[each.to]}: {each.meaning}" + " (finer than what is published)" * each.finer
        for each in task.reveals
    ]
    if task.mode.shared:
        lines.append(
            f"{task.job.leader_name} and {task.job.deputy_name}, if they work together: all counts of all parties"
        )
    if task.mode.mixed(task):
        lines.append(f"{task.job.leader_name} and {task.job.deputy_name}, if they do: whose each row is")
    return lines


def _budget(config: PartyConfig, task: Task, coordinator: str) -> list[str]:
    """What is left before this job, and whether policy and ledger would allow it now."""
    ledger, policy = config.ledger, config.policy
    lines = [task.model.spent(ledger.entries(), policy).words, Answers(ledger, policy).words()]
    try:
        check_policy(policy, task, config.name, coordinator)
        lines += filter(None, [task.model.outlook(ledger, policy, task, config.name, None, SystemRng())])
    except PartyError as error:
        lines.append(f"as things are, it would be refused: {error.problem.message}")
    return lines


def _differences(task: Task, before: Proposal | None) -> tuple[str, list[str]]:
    if before is None:
        return "Compared with earlier jobs", ["none of this name was approved here"]
    was, now = (dict(_flat(description_fields(each))) for each in (read_task(before.bundle), task))
    changed = [
        f"{key}: {was.get(key, 'nothing')} -> {now.get(key, 'nothing')}"
        for key in (*now, *(key for key in was if key not in now))
        if was.get(key) != now.get(key)
    ]
    title = f"Other than in {before.job} ({before.job_sha256[:12]}), approved at {at(before.decided or 0)}"
    return title, changed or ["nothing that is described; only the hash"]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every setting by its place, as JSON."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if place or key not in _NOT_COMPARED:
                yield from _flat(each, f"{place}.{key}" if place else str(key))
    else:
        yield place, json.dumps(value, ensure_ascii=False, default=str)


def _bound(binding: Binding) -> list[str]:
    return [
        *(f"certificate of {name}: {found}" for name, found in binding.certificates.items()),
        f"version {binding.version} of this program",
    ]
