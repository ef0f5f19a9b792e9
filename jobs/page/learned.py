"""Reveals of a joint job in plain words: the values on the mode's list, as far as the job can reveal the values.

docs/reveals.md has the lists in the words of the protocols, and is the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anonymize.joint.disclosure import Allowed, Audience
from jobs.file.fields import PERSON
from jobs.file.job import Job
from jobs.task import Task

_AUDIENCES: Mapping[Audience, str] = {
    "all": "All parties",
    "leader": "The leader, {leader}",
    "owner": "The owner of a column",
    "holder": "The holder of a sensitive column",
    "coordinator": "The coordinator",
}


def learned(task: Task) -> Iterator[tuple[str, list[str]]]:
    """Yield each audience with sentences on the values that the job can open to the audience."""
    found: dict[str, list[str]] = {}
    for each in task.reveals:
        if words := words_of(task, each):
            finer = " Finer than the table." if each.finer else ""
            audience = _AUDIENCES[each.to].format(leader=task.job.leader_name)
            found.setdefault(audience, []).append(f"{words}{finer}")
    yield from found.items()


def words_of(task: Task, allowed: Allowed) -> str:
    """Return the meaning of a reveal in plain words; empty for a reveal that the job cannot have."""
    return _MEANINGS[allowed.name, allowed.to](_Facts(task))


@dataclass(frozen=True)
class _Facts:
    """Facts of a job that decide on reveals and their words."""

    task: Task

    @property
    def job(self) -> Job:
        return self.task.job

    @property
    def class_name(self) -> str:
        return next(iter(self.job.names("class")), "cluster" if self.job.goal == "clusters" else "")

    @property
    def sensitive(self) -> str:
        return _joined(self.job.names("sensitive"))

    @property
    def by_class(self) -> str:
        return _with_each([self.class_name])

    @property
    def by_all(self) -> str:
        """Words on the columns whose values are counted."""
        return _with_each([self.class_name, *self.job.names("sensitive")])

    @property
    def by_sensitive(self) -> str:
        return _with_each(self.job.names("sensitive"))

    @property
    def giver(self) -> str | None:
        """Party that gives the class to the others."""
        return next((self.job.columns[name].shared_by for name in self.job.names("class")), None)

    @property
    def parts_by_child(self) -> bool:
        return any(column.by_child for column in self.task.schema.qid)

    @property
    def is_vertical(self) -> bool:
        return self.job.partition == "vertical"


def _with_each(names: Sequence[str]) -> str:
    counted = [name for name in names if name]
    if len(counted) < 2:
        return f", with each value of {counted[0]}" if counted else ""
    return f", with each combination of {_joined(counted)}"


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _root_check(of: _Facts) -> str:
    if of.is_vertical and not of.sensitive:
        return ""
    return "Whether the table without any detail meets the requirement: yes or no."


def _candidate(of: _Facts) -> str:
    job = of.job
    if of.task.model.name == "dp":
        return "Which value was made finer in each step. ε covers the choice."
    if of.is_vertical or job.disclosure == "strict":
        return "Which value was made finer in each step."
    of_class = f"tell no more of {of.class_name} when made finer"
    end = "have all records in one finer value" if job.goal == "general" else of_class
    return (
        "Which value was made finer in each step, and which steps the requirement did not allow; at the end, which "
        f"values {end}."
    )


def _split(of: _Facts) -> str:
    if of.task.model.name == "dp":
        return "Where each interval can be split, also if the interval stayed whole. ε covers the place."
    if of.job.lkc.score == "infogain" and of.parts_by_child:
        return ""
    return "For each value that came up, whether a step was possible, and where an interval would be split."


def _class_agreement(of: _Facts) -> str:
    if not of.class_name or of.giver:
        return ""
    return f"Whether all parties have the same value of {of.class_name} for every common id: yes or no."


def _agreement_with_leader(of: _Facts) -> str:
    if not of.class_name or of.giver:
        return ""
    return (
        f"Which parties have the leader's values of {of.class_name} for all common ids, and which have not."
    )


def _group_counts(of: _Facts) -> str:
    people = "records and people" if of.job.lkc.unit == PERSON else "records"
    return f"How many {people} each possible group of a step has{of.by_sensitive}."


def _left_counts(of: _Facts) -> str:
    values = f", and how many with protected values of {of.sensitive}" if of.sensitive else ""
    return f"How many records are on one side of each cut{values}."


def _cell_columns(of: _Facts) -> str:
    names = _joined(of.job.names("sensitive", "plain"))
    return f"The values of {names} of each group, in random order: the table." if names else ""


def _always(words: str) -> Callable[[_Facts], str]:
    return lambda of: words


_MEANINGS: Mapping[tuple[str, Audience], Callable[[_Facts], str]] = {
    ("root_check", "all"): _root_check,
    ("earlier_run", "all"): _always(
        "Whether each party has a result of the same job from before, and so whether its table has changed since."
    ),
    ("root_counts", "all"): lambda of: f"How many records the table has{of.by_all}.",
    ("root_totals", "leader"): lambda of: (
        f"How many records the table has{of.by_all}, before the first check."
    ),
    ("candidate", "all"): _candidate,
    ("valid", "all"): _always("Whether the requirement allows each step: yes or no."),
    ("partition_counts", "all"): lambda of: f"How many records each group has after a step{of.by_all}.",
    ("only_child", "all"): lambda of: (
        "At the end, which values have all records in one finer value; the labels of the table say the same."
        if of.parts_by_child
        else ""
    ),
    ("order", "all"): lambda of: "" if of.parts_by_child else "In which order the possible steps are tested.",
    ("split", "all"): _split,
    ("candidate_counts", "leader"): lambda of: (
        f"How many records the finer values of a step have{of.by_class}."
    ),
    ("context_counts", "leader"): lambda of: (
        f"How many records the finer values of a step have{of.by_class}, in every group."
    ),
    ("asked", "all"): _always("Which steps the leader tests ahead of time."),
    ("group_counts", "leader"): _group_counts,
    ("same_counts", "all"): _always(
        "Whether the opened numbers are the tested numbers: yes or no. With no the run ends."
    ),
    ("cut_taken", "all"): _always("Where each group was cut, or that no cut was allowed."),
    ("group_counts", "all"): _left_counts,
    ("group_cells", "all"): lambda of: f"How many records each final group has{of.by_all}: the table.",
    ("kept", "all"): _always(
        "For every tested sequence, whether the requirement allows the sequence: yes or no. Absent sequences are "
        "not allowed."
    ),
    ("row_counts", "leader"): _always("How many records each party has."),
    ("row_width", "all"): lambda of: (
        f"About how long the longest values of {_joined(of.job.names('plain'))} are, at each party."
    ),
    ("rows", "all"): _always("The rows of the table, sorted, without their party."),
    ("rows", "coordinator"): _always("The rows of the table, sorted, without their party."),
    ("set_sizes", "all"): _always("How many ids each party has."),
    ("common_records", "all"): _always(
        "Each party: which of its own ids all parties have, and so how many; not further ids of other parties."
    ),
    ("class_agreement", "all"): _class_agreement,
    ("class_agreement", "leader"): _agreement_with_leader,
    ("class_values", "all"): lambda of: (
        f"The value of {of.class_name} of every common id, told by {of.giver}." if of.giver else ""
    ),
    ("children", "all"): _always(
        "For every common id the values in the table: all parties know the people behind these ids."
    ),
    ("valid", "owner"): lambda of: (
        f"Whether the requirement on {of.sensitive} allows a step of the own column: yes or no."
        if of.sensitive
        else ""
    ),
    ("confidence_check", "holder"): lambda of: (
        f"Which values of other parties are tested against {of.sensitive}, when, and how large the test is."
        if of.sensitive
        else ""
    ),
    ("cell_columns", "coordinator"): _cell_columns,
    ("scores", "all"): _always("Each party's best step in every turn, and the score of the step."),
    ("noisy_counts", "all"): _always("The noisy count of every cell: the release. ε covers the counts."),
    ("noisy_marginal", "all"): _always(
        "Tables of noisy counts, of single columns and of chosen pairs of columns. ε covers the counts."
    ),
    ("edge", "all"): _always("Which pairs of columns were chosen, in order. ε covers the choice."),
    ("own_noisy_counts", "all"): _always(
        "Each party's own counts, with noise of this party. ε covers the counts."
    ),
}
