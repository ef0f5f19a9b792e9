"""Reveals in plain words: each reveal of each mode has words, and a page lists the reveals that its job can have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED, Allowed, mixed_reveals
from anonymize.joint.lkc.scores.rows import SCORES
from jobs.page import learned
from jobs.page.learned import words_of
from jobs.page.page import PAGE
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.pages import Reader
from tests.support.samples import AS_IT_IS, columns, joint_job, vertical_job

PROTOCOL_WORDS = re.compile(r"`|\b(nodes?|leaf|qid|candidates?|bits?|partitions?|marginals?|specializ\w+)\b")
KD: Any = {"method": "kd", "disclosure": "sealed", "model": {"lkc": {"L": "all", "K": "3", "C": "0.5"}}}
SEQUENCES: Any = {
    "version": "1",
    "name": "ways",
    "partition": "horizontal",
    "parties": {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")},
    "model": {"sequences": {"L": "2", "K": "5", "C": "1/2"}},
    "columns": {
        "town": {"role": "items", "domain": ["Bonn", "Lyon"]},
        "ill": {"role": "sensitive", "domain": ["flu", "HIV"], "values": ["HIV"]},
    },
}
BARE = columns(transfused=None, surgery=None)
JOBS: Mapping[str, Any] = {
    "sealed": joint_job(disclosure="sealed", goal="classification"),
    "leader": joint_job(goal="classification"),
    "strict": joint_job(disclosure="strict", goal="classification"),
    "added": joint_job(goal="classification", score="added"),
    "plain": joint_job(disclosure="sealed", goal="classification", columns=columns(name=AS_IT_IS)),
    "general": joint_job(disclosure="sealed", goal="general", columns=columns(transfused=None)),
    "bare": joint_job(goal="general", columns=BARE, model={"lkc": {"L": "2", "K": "2", "C": "1"}}),
    "kd": joint_job(**KD, goal="general"),
    "vertical": vertical_job(goal="classification"),
    "vertical/leader": vertical_job(goal="classification", disclosure="leader"),
    "sequences": SEQUENCES,
    **{
        f"dp/{partition}/{engine}": dp_joint(partition, {"engine": engine}, goal="classification")
        for partition in ("horizontal", "vertical")
        for engine in ("circuit", "thesis")
    },
}


def said(task: Task) -> dict[tuple[str, str], str]:
    return {(each.name, each.to): words for each in task.reveals if (words := words_of(task, each))}


def told(name: str) -> dict[tuple[str, str], str]:
    return said(jobs.task_of(JOBS[name]))


def test_every_reveal_has_words() -> None:
    of_scores = [each for score in SCORES.values() for found in score.reveals.values() for each in found]
    listed: list[Allowed] = [
        *(each for reveals in ALLOWED.values() for each in reveals),
        *of_scores,
        *mixed_reveals("all"),
        *mixed_reveals("coordinator"),
    ]
    assert {(each.name, each.to) for each in listed} == set(learned._MEANINGS)


@pytest.mark.parametrize("name", JOBS)
def test_words_are_plain_sentences(name: str) -> None:
    for words in told(name).values():
        assert PROTOCOL_WORDS.findall(words) == []
        assert words.endswith(".")
        assert "  " not in words
        assert " ." not in words


def test_a_job_without_class_and_sensitive_columns_reveals_no_counts_by_them() -> None:
    found = told("bare")
    assert found["root_counts", "all"] == "How many records the table has."
    assert found["candidate_counts", "leader"] == "How many records the finer values of a step have."
    assert found["group_counts", "leader"] == "How many records each possible group of a step has."
    words = "How many records the table has, with each combination of transfused and surgery."
    assert told("leader")["root_counts", "all"] == words


def test_a_goal_has_its_own_reveals_only() -> None:
    """A classification tells values without gain; a general job tells values with nothing to separate."""
    assert "tell no more of transfused" in told("sealed")["candidate", "all"]
    assert ("split", "all") in told("general")
    assert "all records in one finer value" in told("general")["candidate", "all"]
    assert "did not allow" not in told("strict")["candidate", "all"]


def test_the_class_is_compared_or_told() -> None:
    compared = told("vertical")
    assert ("class_agreement", "all") in compared
    assert ("class_values", "all") not in compared
    giver = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})
    given = said(jobs.task_of(vertical_job(goal="classification", columns=giver)))
    assert ("class_agreement", "all") not in given
    assert given["class_values", "all"] == "The value of transfused of every common id, told by bank."


def test_vertical_jobs_without_sensitive_columns_test_no_confidence() -> None:
    parties = {
        "loan": {"address": "127.0.0.1:7401", "columns": ["job"]},
        "bank": {"address": "127.0.0.1:7402", "columns": ["age"]},
    }
    fields = vertical_job(
        goal="classification",
        columns=columns(surgery=None),
        parties=parties,
        model={"lkc": {"L": "2", "K": "2", "C": "1"}},
    )
    found = said(jobs.task_of(fields))
    for name in ("root_check", "valid", "confidence_check", "cell_columns"):
        assert name not in {of for of, _ in found}
    assert {"root_check", "valid", "confidence_check", "cell_columns"} <= {of for of, _ in told("vertical")}


def test_values_are_named_at_the_end_only_where_a_child_leaves_by_itself() -> None:
    children = columns(job={**columns()["job"], "refine": "children"})
    whole = said(jobs.task_of(joint_job(disclosure="sealed", goal="classification", columns=children)))
    assert ("only_child", "all") not in whole
    assert ("only_child", "all") in told("sealed")


def test_a_page_groups_the_reveals_by_audience(releases: Mapping[str, Path]) -> None:
    text = " ".join(Reader((releases["joint"] / "out" / PAGE).read_text()).texts)
    assert "All parties" in text
    assert "Whether the requirement allows each step: yes or no." in text
    assert "Finer than the table." in text
    assert "The leader" not in text  # sealed: the leader knows no more than others
