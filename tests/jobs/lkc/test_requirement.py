"""Requirements of an LKC job on groups."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.criterion import Demand
from anonymize.scores.added import Added
from jobs.errors import ConfigError
from jobs.file.fields import DEFAULT_GOAL
from jobs.lkc import entries
from jobs.lkc.options import option as options
from jobs.lkc.options.option import Option
from jobs.lkc.requirement import job_score, requirement, requirement_words
from jobs.lkc.sentences import verified_words
from jobs.loading import parse_job
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_jobs import dp_single
from tests.support.placed import placed
from tests.support.samples import columns, joint_job, single_job, vertical_job


class Other(Confidences):
    """A demand that no model has."""

    held_by_insiders = ""
    held = "something else"
    setting = "other=1"


@dataclass(frozen=True)
class OtherOption(Option):
    """An option that no job file can ask for."""

    other: Demand
    key = "other"

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return (*asked, self.other)

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        return {}

    def fields(self) -> dict[str, Any]:
        return {"other": 1}

    def implied_by(self, other: Any) -> bool:
        return other is not None


def demand(monkeypatch: pytest.MonkeyPatch, other: Demand) -> None:
    """Make every job ask for something else, too."""
    monkeypatch.setattr(entries, "options_of", lambda said, facts: (OtherOption(other),))
    monkeypatch.setattr(options, "_KEYS", ["other"])


def test_a_further_demand_is_asked_and_told_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    demand(monkeypatch, Other())
    task = jobs.task_of(single_job())
    (ask,) = requirement(task).asks
    assert ask.demands[2:] == (Other(),)
    assert requirement_words(task.job) == "L=2 K=2 C=1/2 other=1"
    assert verified_words(task).endswith(
        "at least K=2 records, no protected value above its C, and something else"
    )


class Further(Option):
    """An option under a key that nobody else knows."""

    key = "further"
    colluders = 2
    diversity = 4
    looks_together = True

    def demanded(self, asked: tuple[Demand, ...]) -> tuple[Demand, ...]:
        return asked

    def diversity_of(self, name: str) -> int:
        return 3

    def claim(self, task: Task, looked_at: Collection[str]) -> dict[str, Any]:
        return {}

    def fields(self) -> dict[str, Any]:
        return {}

    def implied_by(self, other: Any) -> bool:
        return True


def test_entries_ask_their_options_whatever_their_keys() -> None:
    (entry,) = entries.entries_of(jobs.task_of(single_job()).job)
    assert (entry.colluders, entry.diversity, entry.diversity_of("surgery"), entry.looks_together) == (
        *(0, 1, 1),
        False,
    )
    more = replace(entry, options=(Further(),))
    assert (more.colluders, more.diversity, more.diversity_of("surgery"), more.looks_together) == (
        2,
        4,
        3,
        True,
    )


@pytest.mark.parametrize("fields", [single_job(goal=None), dp_single(goal=None), joint_job(goal=None)])
def test_jobs_that_say_no_goal_have_the_same(fields: dict[str, Any]) -> None:
    assert parse_job(fields, "job.yaml").goal == DEFAULT_GOAL


def test_a_demand_names_sensitive_columns_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    demand(monkeypatch, Confidences(bounds=(("surgery", Fraction(1)), ("job", Fraction(1)))))
    with pytest.raises(ConfigError, match=r"model\.lkc\.C names 'job', which is not a sensitive column"):
        parse_job(single_job(), "job.yaml")


@pytest.mark.parametrize(
    ("fields", "score", "contexts"),
    [
        (single_job(), "added", "cells"),
        (single_job(score=None, contexts="partitions"), "added", "partitions"),
        (single_job(score="infogain"), "infogain", None),
        (single_job(goal="general"), "groups", None),
        (single_job(goal="general", score="records"), "records", None),
        (joint_job(goal="general", score="records", disclosure="strict"), "records", None),
        (vertical_job(score="tdr"), "tdr", None),
        (joint_job(score="tdr"), "tdr", None),
        (joint_job(), "added", "cells"),
        (joint_job(disclosure="sealed"), "added", "cells"),
        (joint_job(disclosure="strict"), "infogain", None),
        (joint_job(disclosure="strict", goal="general"), "groups", None),
        (vertical_job(), "added", "partitions"),
        (vertical_job(score="infogain"), "infogain", None),
    ],
)
def test_a_job_has_the_score_of_its_goal_and_mode(
    fields: dict[str, Any], score: str, contexts: str | None
) -> None:
    """It stands in the canonical form, so that the hash says which table comes of the job."""
    job = parse_job(fields, "job.yaml")
    assert (job.lkc.score, job.lkc.contexts) == (score, contexts)
    said = {key: value for key, value in (("score", score), ("contexts", contexts)) if value}
    assert parse_job(placed({**fields, **said}), "job.yaml").canonical() == job.canonical()
    assert f'"score":"{score}"' in job.canonical()
    assert job_score(job).needs_class == (job.goal == "classification")


def test_contexts_reach_the_score() -> None:
    for contexts in ("cells", "partitions"):
        score = job_score(parse_job(single_job(contexts=contexts), "job.yaml"))
        assert isinstance(score, Added)
        assert score.contexts == contexts


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (single_job(score="groups"), "`score: groups` is for `goal: general`; with `goal: classification` say added"),
        (single_job(goal="general", score="added"), "`goal: classification` or `goal: clusters`; with `goal: g"),
        (single_job(score="best"), "`model.lkc.score`"),
        (joint_job(disclosure="strict", score="tdr"), "hides candidates: say `score: infogain`, or `disclosure: s"),
        (joint_job(disclosure="strict", score="added"), "hides candidates: say `score: infogain`, or `disclosure: s"),
        (single_job(score="infogain", contexts="cells"), "`contexts` is for `score: added`; leave `contexts` out"),
        (single_job(goal="general", contexts="cells"), "`contexts` is for `score: added`; leave `contexts` out"),
        (vertical_job(contexts="cells"), "in a vertical job only their holder knows the values; say `contexts: part"),
        (single_job(contexts="columns"), "`model.lkc.contexts`"),
    ],
)  # fmt: skip
def test_a_score_that_a_job_cannot_have_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields, "job.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize(("known", "refused"), [("4", False), ("20", True), ("36", False), ("all", False)])
def test_the_sets_of_columns_to_look_at_are_bounded(known: str, refused: bool) -> None:
    """Of 40 columns there are 2^40."""
    added = {f"q{i}": {"role": "qid", "taxonomy": {"*": ["a", "b"]}} for i in range(38)}
    job = single_job(model={"lkc": {"L": known, "K": "2", "C": "0.5"}}, columns=columns(**added))
    if not refused:
        parse_job(job, "job.yaml")
        return
    with pytest.raises(ConfigError, match=r"20 of 40 quasi-identifiers are 137,846,528,820 sets"):
        parse_job(job, "job.yaml")
