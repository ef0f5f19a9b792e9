"""Proposed job in plain words, for the owner who approves or denies the job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from anonymize.grid import Grid
from jobs import plain_columns
from jobs.data.counted import counted
from jobs.errors import PartyError, PolicyError
from jobs.file.columns import Column
from jobs.loading import read_task
from jobs.owner.objections import check_policy
from jobs.page.learned import learned
from jobs.page.page import purpose
from jobs.page.parts import sentence
from jobs.task import Task
from party.owner.approvals import Approvals, Decision, Proposal, terms_with
from party.owner.config import PartyConfig
from party.owner.differences import differences, is_renamed
from party.owner.identity import in_words
from party.owner.left import left

_ROLES: Mapping[str, str] = {
    "id": "names the person of a row; not published",
    "qid": "published, made coarser as the requirement demands",
    "sensitive": "published; the requirement limits how surely a reader infers its protected values",
    "class": "published unchanged: the column that others learn to predict",
    "plain": "published unchanged, without protection",
    "location": "published where the requirement allows",
    "time": "published where the requirement allows",
    "items": "published where the requirement allows",
    "party": "not published",
}

_TERMS: Mapping[str, str] = {
    "Finer than the table": "marks what the published table does not tell.",
    "step": "means: one value is made finer, as `Any` into `North` and `South`.",
    "group": "means: the records with the same published values.",
    "leader": "means: the party that computes for all, from data that it sees in part or encrypted.",
}
"""Terms of the sentences on what others learn."""


@dataclass(frozen=True)
class Part:
    """Part of the text: a title, and a line for each fact. Lines may hold numbers of the owner's ledger.

    warning:  True for facts that an owner must not overlook.
    """

    title: str
    lines: Sequence[str] = field(repr=False)
    warning: bool = False


def asked(config: PartyConfig, proposal: Proposal, now: datetime) -> list[Part]:
    """Say in plain words what a proposal asks of the owner. Reads the ledger, but no table."""
    task = read_task(proposal.bundle)
    return [
        Part("Who asks", _who(config, proposal, task)),
        _decision(config, proposal, task, now),
        *_changes(_Others(Approvals(config.state_dir), now), proposal),
        *_unprotected(task),
        Part("Our columns", [_column(task, name) for name in task.held_by(config.name)]),
        Part("What everybody will see", _seen(task)),
        Part("What others learn beyond the release", _learned(task)),
        Part("What is left", _left(config, proposal, task)),
    ]


def numbers_of_warnings(
    config: PartyConfig, proposals: Sequence[Proposal], now: datetime
) -> list[int | None]:
    """Return the number of warnings of each proposal, as in :func:`asked`; None for an unreadable proposal."""
    others = _Others(Approvals(config.state_dir), now)
    return [_number_of_warnings(config, proposal, others, now) for proposal in proposals]


def _number_of_warnings(
    config: PartyConfig, proposal: Proposal, others: _Others, now: datetime
) -> int | None:
    try:
        task = read_task(proposal.bundle)
        parts = [
            _decision(config, proposal, task, now),
            *_changes(others, proposal),
            *_unprotected(task),
        ]
    except PartyError:  # the page of the proposal says why
        return None
    return sum(part.warning for part in parts)


def _who(config: PartyConfig, proposal: Proposal, task: Task) -> list[str]:
    others = [name for name in task.job.roster if name != config.name]
    return [
        f"coordinator: {proposal.coordinator}; proposed {in_words(proposal.proposed)}",
        f"job: {task.job.name}; hash {proposal.job_sha256}",
        f"other parties: {', '.join(others)}",
        *_compute(task, config.name),
    ]


def _compute(task: Task, me: str) -> Iterator[str]:
    """Say which parties compute on behalf of all, if some do."""
    if task.mode.shared:
        pair = " and ".join(
            "we" if name == me else name for name in (task.job.leader_name, task.job.deputy_name)
        )
        yield f"compute pair: {pair}; the two together could read all counts"


def decided(decision: Decision) -> str:
    """Return a decision in words."""
    by = f"by {decision.by}, {in_words(decision.decided)}"
    if not decision.approved:
        return f"denied {by}: {decision.reason}"
    until = "" if decision.until is None else f", until {in_words(decision.until)}"
    return f"approved {by}, for {counted(decision.runs, 'run', 'runs')}{until}; begun: {decision.begun}"


def state_of(config: PartyConfig, proposal: Proposal, now: datetime) -> tuple[str, str]:
    """Return the state of a proposal, and the state in words."""
    decision = proposal.decision
    if (decision is None or decision.approved) and not config.policy.needs_approval(proposal.job_sha256):
        found = "no decision" if decision is None else decided(decision)
        return "approved", f"{found}; the policy asks for none"
    if decision is None:
        return "waiting", f"no decision yet; waits until {in_words(proposal.expires)}"
    if not decision.approved:
        return "denied", decided(decision)
    try:
        terms = terms_with(config, decision.terms.certificates)
    except PartyError as error:
        return "waiting", f"{decided(decision)}; does not hold now: {error.problem.text(to_owner=True)}"
    standing = proposal.standing(terms, now)
    if not standing.own:
        return standing.state, decided(decision)
    again = "" if decision.asked is None else f"; asked for again {in_words(decision.asked)}"
    state = "ended" if decision.asked is None else "waiting"
    return state, f"{decided(decision)}; over: {standing.own}{again}"


def _decision(config: PartyConfig, proposal: Proposal, task: Task, now: datetime) -> Part:
    policy = by_policy(config, proposal, task)
    lines = [policy, state_of(config, proposal, now)[1]]
    return Part("Decision", lines, warning=policy.startswith(_REFUSED))


_REFUSED = "the policy refuses the job"


def by_policy(config: PartyConfig, proposal: Proposal, task: Task) -> str:
    """Say if the policy allows a job, and if the job needs an approval."""
    try:
        check_policy(config.policy, task, config.name, proposal.coordinator)
    except PolicyError as error:
        return f"{_REFUSED}: {error.problem.own_message}"
    if config.policy.needs_approval(proposal.job_sha256):
        return "the policy allows the job"
    return "the policy allows the job, and asks for no approval (`policy.approval`, `policy.jobs`)"


def _column(task: Task, name: str) -> str:
    column = task.job.columns[name]
    return f"{name}: {_ROLES[column.role]}{_finest(task, name)}{_protected(column)}"


def _finest(task: Task, name: str) -> str:
    """Say how fine the values of a column may be at most."""
    values = task.taxonomies.get(name)
    if values is None:
        return ""
    if isinstance(values, Grid):
        first, last = values.edge_label(0), values.edge_label(values.n_cells)
        return f"; at most {counted(values.n_cells, 'interval', 'intervals')} from {first} to {last}"
    return f"; at most {counted(len(values.leaves), 'value', 'values')}"


def _protected(column: Column) -> str:
    """Say which values of a sensitive column are protected, and which are not."""
    if column.role != "sensitive":
        return ""
    if column.values is None:
        return "; all values are protected"
    # Every value is named: two jobs that protect different values have different texts.
    rest = [value for value in column.domain or () if value not in column.values]
    others = f"; not protected: {', '.join(rest)}" if rest else ""
    return f"; protected: {', '.join(column.values)}{others}"


def _seen(task: Task) -> list[str]:
    described = task.model.described(task)
    published = [name for name in task.job.columns if task.job.columns[name].role not in ("id", "party")]
    return [
        f"the release: {described.release}",
        f"columns: {', '.join(published)}",
        purpose(task),
        f"requirement: {described.requirement}",
        *(sentence(words) for words in described.promises),
        *(f"note: {words}" for words in described.notes),
    ]


def _learned(task: Task) -> list[str]:
    said = [f"{audience}: {words}" for audience, sentences in learned(task) for words in sentences]
    terms = [f"{term} {meaning}" for term, meaning in _TERMS.items() if any(term in each for each in said)]
    return [*terms, *said] or ["nothing"]


def _left(config: PartyConfig, proposal: Proposal, task: Task) -> list[str]:
    lines, _ = left(config, task, proposal.coordinator)
    return lines


def _unprotected(task: Task) -> Iterator[Part]:
    """Warn of the columns that are published unchanged, of all parties."""
    columns = task.job.columns
    plain = plain_columns.named(columns, "plain")
    meant = [name for name in plain_columns.named(columns, "class") if columns[name].publish_as_is]
    lines = [f"{name}: {_as_is(name)}" for name in (*plain, *meant)]
    if lines:
        yield Part("Published without protection", lines, warning=True)


def _as_is(name: str) -> str:
    word = plain_columns.names_a_person(name)
    if word is None:
        return "whoever knows a person's value finds the person's row, if no other row has the value"
    return f"{word!r} in the name suggests values of a single person, and each row would tell its person"


class _Others:
    """Jobs of the store to compare a job with. Jobs of all names are read once, when needed."""

    def __init__(self, approvals: Approvals, now: datetime) -> None:
        self._approvals, self._now = approvals, now

    def before(self, proposal: Proposal) -> Proposal | None:
        return self._approvals.before(proposal, self._now)

    def beside(self, proposal: Proposal) -> Proposal | None:
        return self._approvals.beside(proposal, self._now)

    def alike(self, proposal: Proposal) -> Proposal | None:
        """Return the approved job of the same parties that shares most columns, of several the last approved."""
        parties, columns = _of_table(proposal)
        shared = [
            (len(columns & others), other)
            for other, (those, others) in self._decided
            if other.denial is None and those == parties and other.job_sha256 != proposal.job_sha256
        ]
        most, found = max(shared, key=lambda pair: pair[0], default=(0, None))
        return found if most else None

    def denied(self, proposal: Proposal) -> Proposal | None:
        """Return the same job, denied: from another coordinator, or under another name."""
        other = next((each for each in self._approvals.same(proposal, self._now) if each.denial), None)
        if other is not None:
            return other
        denials = (each for each, _ in self._decided if each.denial and each.job != proposal.job)
        return next((each for each in denials if is_renamed(each.bundle, proposal.bundle)), None)

    @cached_property
    def _decided(self) -> list[tuple[Proposal, tuple[frozenset[str], frozenset[str]]]]:
        """Last decided jobs, newest decision first: the last decisions, and those asked for again."""
        kept = [*self._approvals.decided(_MOST_COMPARED, self._now), *self._approvals.waiting(self._now)]
        decided = [each for each in kept if each.decision is not None]
        newest = sorted(decided, key=lambda each: each.last_decision, reverse=True)
        return [(each, _of_table(each)) for each in newest]


_MOST_COMPARED = 20
"""Most decisions that :meth:`_Others.alike` looks back."""


def _of_table(proposal: Proposal) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parties and the columns of a job."""
    job = json.loads(proposal.bundle)["job"]
    return frozenset(job.get("parties") or ()), frozenset(job["columns"])


def _changes(others: _Others, proposal: Proposal) -> Iterator[Part]:
    """Say how a job differs from the other jobs of the same name, of any coordinator.

    The last approved job tells what the owner agreed to; under a new name, the most similar one of the same parties.
    A job that waits, or was denied, tells of a second try, as does the same job from another coordinator or of
    another name.
    """
    if (denied := others.denied(proposal)) is not None and denied.denial is not None:
        words = f"{denied.job}, from {denied.coordinator}: {decided(denied.denial)}"
        yield Part("The same job was denied", [words], warning=True)
    before, beside = others.before(proposal), others.beside(proposal)
    title = "What differs from the last approved job of this name"
    if before is not None:
        yield _difference(title, before, proposal)
    elif (alike := others.alike(proposal)) is not None:
        title = f"What differs from the last approved job of these parties ({alike.job})"
        yield _difference(title, alike, proposal)
    else:
        yield Part(title, ["no other job of this name was approved here"])
    if beside is not None:
        state = "waits" if beside.decision is None else "was denied"
        yield _difference(f"What differs from the job of this name that {state}", beside, proposal)


def _difference(title: str, before: Proposal, proposal: Proposal) -> Part:
    found = differences(before.bundle, proposal.bundle)
    other = f"the other job: {before.job_sha256[:12]}, from {before.coordinator}"
    return Part(title, [other, *found.lines], warning=not found.stricter)
