"""Lists of requirements in joint jobs: every mode gives the table of the single holder, and says the same of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import PrivacyError
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.requirement import job_score, requirement
from jobs.lkc.verify import require_verified, verified_fields
from jobs.options import NO_OPTIONS
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.delivery import checked_release
from jobs.release.folder import new_folder
from jobs.release.making import write_joint_release
from jobs.stopwatch import Stopwatch
from jobs.task import Collected
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.lkc_runs import run_lkc
from tests.support.samples import PARTIES, joint_job, single_job, vertical_job

Said = dict[str, Any]
LISTS: dict[str, list[Said]] = {
    "two quasi-identifiers": [
        {"columns": ["age"], "K": "4", "distinct": {"surgery": "2"}},
        {"columns": ["job"], "K": "7", "C": {"surgery": "0.4"}},
    ],
    "one within another": [
        {"L": "1", "K": "9"},
        {"K": "3", "C": "0.75"},
        {"columns": ["age"], "distinct": {"surgery": "3"}},
    ],
    "covered": [
        {"columns": ["job"], "K": "2"},
        {"K": "3", "C": "0.75", "distinct": {"surgery": "2"}},
        {"K": "3"},
    ],
}
MODES: dict[str, dict[str, Any]] = {
    "sealed": joint_job(disclosure="sealed"),
    "two sealed": joint_job(disclosure="sealed", parties={p: {"address": "h:1"} for p in PARTIES[:2]}),
    "strict": joint_job(disclosure="strict"),
    "leader": joint_job(),
    "vertical": vertical_job(),
    "vertical leader": vertical_job(disclosure="leader"),
    "insider": vertical_job(insider="true"),
}


CASES = [
    (mode, entries)
    for mode, fields in MODES.items()
    for entries in LISTS
    if "insider" not in fields or entries == "covered"  # of all quasi-identifiers, as insiders know them
]


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize(("mode", "entries"), CASES)
def test_a_joint_run_gives_the_table_of_the_single_holder(
    tmp_path: Path, mode: str, entries: str, goal: str
) -> None:
    model = {"requirements": LISTS[entries]}
    task = jobs.task_of({**MODES[mode], "model": model, "goal": goal})
    run = run_lkc(task, tmp_path)
    whole = jobs.coded(
        jobs.bundle_of(single_job(model=model, goal=goal, score=task.job.lkc.score)), sample_rows(60)
    )
    outcome = anonymize_single(whole, requirement(task), job_score(task.job))
    assert [step.candidate for step in run.result.outcome.steps if step.applied] == list(outcome.applied)
    parts = {**run.parts(ROWS), **run.parts(COLUMNS)}
    with new_folder(tmp_path / "out") as folder:
        write_joint_release(
            task, folder, Collected(run.result, parts, {}), NO_OPTIONS, Stopwatch(lambda _: None)
        )
    table = read_csv(tmp_path / "out" / TABLE, task.job.published)
    assert jobs.multiset(table) == jobs.multiset(
        release_of_rows(whole, outcome.cut).ordered(task.job.published)
    )
    verified = require_verified(table, task)
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    assert report["requirements"] == verified_fields(verified)
    assert [each["columns"] for each in report["requirements"]] == [
        each.get("columns", ["job", "age"]) for each in LISTS[entries]
    ]
    assert all(found.worst.startswith("smallest group") for found in verified)
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for party in task.job.roster:
        own = {name: sent[party] for name, sent in parts.items() if party in sent}
        checked_release(task, run.result, files, own)


@pytest.mark.some(7)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "insider"])
@pytest.mark.parametrize(
    "entry", [{"columns": ["age"], "K": "61"}, {"columns": ["age"], "C": "0.01"}], ids=["K", "C"]
)
def test_no_run_begins_where_some_entry_cannot_be_met(tmp_path: Path, mode: str, entry: Said) -> None:
    task = jobs.task_of({**MODES[mode], "model": {"requirements": [{"K": "2"}, entry]}})
    with pytest.raises(PrivacyError) as caught:
        run_lkc(task, tmp_path)
    assert caught.value.error_id == "requirement-unmet"
