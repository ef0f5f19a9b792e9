"""Gaps in the promises of an LKC table: each job is told its own gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from jobs.lkc.sentences import limits_of
from tests.support import jobs
from tests.support.samples import AS_IT_IS, columns, joint_job, single_job, vertical_job

LKC = {"L": "2", "K": "2", "C": "0.5"}
TWO = {"hospital-a": {"address": "127.0.0.1:7401"}, "hospital-b": {"address": "127.0.0.1:7402"}}
CERTAIN = columns(surgery={"role": "sensitive", "domain": ["Heart", "Rare"], "values": None})


@pytest.mark.parametrize(
    ("fields", "said", "unsaid"),
    [
        (single_job(), ["K=2 counts records, not people", "not of several values together"], ["holder"]),
        (
            single_job(),
            ["values of surgery that the job does not protect"],
            ["than 2 may find a smaller group"],
        ),
        (single_job(model={"lkc": {**LKC, "L": "1"}}), ["of a person than 1 may find a smaller group"], []),
        (single_job(columns=CERTAIN), ["each single value of surgery"], ["does not protect may be"]),
        (
            single_job(model={"lkc": {**LKC, "C": "1"}}),
            ["nothing bounds inferences of surgery"],
            ["C bounds"],
        ),
        (
            single_job(model={"lkc": {**LKC, "unit": "person"}}),
            ["a person with two ids"],
            ["not people", "`unit: person`"],
        ),
        (single_job(model={"lkc": {**LKC, "K": "1"}}), [], ["not people"]),
        (
            single_job(columns=columns(patient=None)),
            ["`unit: person`, with an id of each person, counts"],
            [],
        ),
        (single_job(columns=columns(note=AS_IT_IS)), ["a rare value of transfused, note"], []),
        (
            joint_job(),
            [
                "holders (hospital-a, hospital-b, hospital-c): a holder with the table can subtract its own rows",
                "2 holders together know the rows of the last holder",
            ],
            [],
        ),
        (
            joint_job(disclosure="sealed", leader=None, parties=TWO),
            ["do not hold for the other holder's rows that remain"],
            ["together know"],
        ),
        (
            joint_job(disclosure="sealed", leader=None, model={"lkc": {**LKC, "colluders": "1"}}),
            ["the requirement holds for the rest, too, toward 1 holder. Nothing bounds more"],
            ["K and C do not hold"],
        ),
        (vertical_job(), ["holders (loan, bank): a holder of columns knows its raw values"], ["not people"]),
    ],
)
def test_the_gaps_of_a_job(fields: Mapping[str, Any], said: list[str], unsaid: list[str]) -> None:
    text = " / ".join(limits_of(jobs.task_of(fields)))
    assert [words for words in said if words not in text] == []
    assert [words for words in unsaid if words in text] == []
    assert "can conclude why a value is no finer" in text
