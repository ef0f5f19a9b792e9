"""The maker's own words in a report have one form, and room for nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.verify import verify_folder
from jobs.errors import PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.release.maker import first_malformed, is_cost_of_party
from jobs.release.report import finished_now, versions
from jobs.release.sums import write_sums
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, single_job

ROSTER = ("a", "b")
OF_A = {"phases": {"start": {"bytes_sent": 1, "seconds": 0.5}}, "links": {"b": {"bytes_sent": 3}}}


def said(**changes: Any) -> dict[str, Any]:
    cost = {"seconds": {"own figures": 0.25, "run": 3}, "parties": {"a": OF_A}}
    return {**finished_now(), "versions": versions(), "cost": cost, **changes}


def test_what_makers_say() -> None:
    assert first_malformed(said(), ROSTER) is None
    assert first_malformed(said(cost={"parties": {}}), ()) is None
    assert is_cost_of_party({"phases": {}, "links": {}}, ROSTER)


MALFORMED: list[dict[str, Any]] = [
    {"finished": 1},
    {"finished": None},
    {"finished": "today"},
    {"finished": "2026-11-23"},
    {"finished": "2026-11-23T18:00:00"},
    {"finished": "2026-11-23T18:00:00+01:00"},
    {"finished": "2026-11-23T18:00:00.5+00:00"},
    {"versions": []},
    {"versions": {}},
    {"versions": {**versions(), "certified": "1"}},
    {"versions": {**versions(), "numpy": 2}},
    {"versions": {**versions(), "numpy": "certified by nobody"}},
    {"cost": 0},
    {"cost": {}},
    {"cost": {"seconds": {}}},
    {"cost": {"parties": {}, "epsilon": 0.01}},
    {"cost": {"parties": {}, "seconds": {"run": -1}}},
    {"cost": {"parties": {}, "seconds": {"run": True}}},
    {"cost": {"parties": {}, "seconds": {"run": "1"}}},
    {"cost": {"parties": {}, "seconds": {"run": float("nan")}}},
    {"cost": {"parties": {}, "seconds": {"run": float("inf")}}},
    {"cost": {"parties": {}, "seconds": {"run": 10**400}}},
    {"cost": {"parties": {}, "seconds": {"Epsilon is 0.01.": 1}}},
    {"cost": {"parties": {"c": OF_A}}},
    {"cost": {"parties": {"a": {**OF_A, "rows": {}}}}},
    {"cost": {"parties": {"a": {"phases": {}}}}},
    {"cost": {"parties": {"a": {**OF_A, "phases": []}}}},
    {"cost": {"parties": {"a": {**OF_A, "phases": {"start": 1}}}}},
    {"cost": {"parties": {"a": {**OF_A, "links": {"c": {}}}}}},
    {"cost": {"parties": {"a": {**OF_A, "links": {"b": {"rows": [1]}}}}}},
]


@pytest.mark.parametrize("change", MALFORMED, ids=str)
def test_what_no_maker_says(change: dict[str, Any]) -> None:
    (key,) = change
    assert first_malformed(said(**change), ROSTER) == key


@pytest.mark.parametrize("key", ["finished", "versions", "cost"])
def test_what_every_maker_says(key: str) -> None:
    assert first_malformed({name: value for name, value in said().items() if name != key}, ROSTER) == key


CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda report: report.update(finished="certified"),
    lambda report: report["versions"].update(certified="yes"),
    lambda report: report.pop("cost"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_folder_whose_maker_says_more(change: Callable[[dict[str, Any]], object], tmp_path: Any) -> None:
    """Of any model: a table of one holder stands for all."""
    job, out = write_job(tmp_path, single_job()), tmp_path / "out"
    jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS)
    assert invoke("coordinator", "run", job, "--out", out).code == 0
    task = jobs.task_of(single_job())
    verify_folder(task, out)
    report = json.loads((out / REPORT).read_text())
    change(report)
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, (TABLE, REPORT))
    with pytest.raises(PartyError, match="is missing or malformed") as caught:
        verify_folder(task, out)
    assert caught.value.problem.error_id == "verification-failed"
