"""Nodes that are called by their only child, in results and in reports."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.lkc.files import render
from jobs.lkc.result import decode_result
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.lkc_runs import run_lkc
from tests.support.samples import joint_job, single_job

COLUMNS: dict[str, Any] = {
    "sex": {"role": "qid", "taxonomy": {"Any": ["F", "M"]}},
    "city": {"role": "qid", "suppress": ["Bonn", "Lyon", "Oslo", "York"]},
    "dead": {"role": "class", "domain": ["Y", "N"]},
}


def rows_of(n: int) -> list[dict[str, str]]:
    """As many women as men, who live longer; in Bonn and Lyon alone."""
    return [
        {
            "sex": "FM"[i % 2],
            "city": ("Bonn", "Lyon")[i // 2 % 2],
            "dead": "YN"[i % 2 ^ (i % 4 == 2) ^ (i % 9 == 0)],
        }
        for i in range(n)
    ]


def test_a_report_says_what_was_not_made_for_its_score(tmp_path: Path) -> None:
    """With the default score, and nothing missing: both values of a column of two are published."""
    job = job_file(tmp_path, single_job(columns=COLUMNS))
    jobs.write_csv(tmp_path / "table.csv", rows_of(1000))
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    with (tmp_path / "out" / "anonymized.csv").open() as file:
        published = list(csv.DictReader(file))
    assert {row["sex"] for row in published} == {"F", "M"}
    assert {row["city"] for row in published} == {"Bonn", "Lyon"}
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    made = {step["attribute"]: step for step in report["specializations"] if "naming" in step}
    assert {name: (step["value"], step["children"]) for name, step in made.items()} == {
        "sex": ("other Any", ["M", "?"]),
        "city": ("*", ["Lyon", "*"]),
    }
    for step in report["specializations"]:
        assert ("score" in step) == ("gain" in step) == ("naming" not in step)
    ran = invoke("coordinator", "verify", job, tmp_path / "out")
    assert ran.code == 0, ran.err


def test_a_result_and_what_follows_from_it_for_a_report(tmp_path: Path) -> None:
    columns = {**COLUMNS, "sex": {**COLUMNS["sex"], "refine": "child"}}
    task = jobs.task_of(joint_job(columns=columns, score="infogain"))
    result = run_lkc(task, tmp_path, rows=rows_of(300)).result
    decoded = decode_result(result.encoded, result.schema, "p")
    assert decoded.outcome.steps == result.outcome.steps
    told = render(task, result).report
    assert render(task, replace(decoded, reveals=result.reveals)).report == told
    named = [step for step in told["specializations"] if step.get("naming")]
    assert {step["attribute"] for step in named} == {"sex", "city"}
    assert not any("score" in step for step in named)
