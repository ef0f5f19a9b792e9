"""One party's side of a joint LKC run: it is held to the list of its own row of modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint import disclosure
from crypto.errors import LocalProtocolError
from jobs.lkc.joint_score import joint_score
from tests.support import jobs
from tests.support.lkc_runs import run_lkc
from tests.support.samples import joint_job, vertical_job

JOBS: Mapping[str, dict[str, Any]] = {
    "horizontal/sealed": joint_job(disclosure="sealed", score="infogain"),
    "horizontal/leader": joint_job(score="infogain"),
    "horizontal/strict": joint_job(disclosure="strict"),
    "vertical/sealed": vertical_job(),
    "vertical/leader": vertical_job(disclosure="leader"),
}


@pytest.mark.some(1)
@pytest.mark.parametrize("name", list(JOBS))
def test_a_run_is_held_to_the_list_of_its_own_row(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of another name that runs the same protocol has a list of its own, where its reveals are looked up."""
    task = jobs.task_of(JOBS[name])
    other = replace(task, mode=replace(task.mode, name="other"))
    lists = dict(disclosure.ALLOWED)
    monkeypatch.setattr(disclosure, "ALLOWED", lists)
    expected = run_lkc(task, tmp_path).result
    lists["other"] = lists[name]
    of_score = joint_score(task.job).reveals
    monkeypatch.setattr(type(joint_score(task.job)), "reveals", {**of_score, "other": of_score.get(name, ())})
    assert run_lkc(other, tmp_path).result.encoded == expected.encoded
    last = expected.reveals[-1]
    lists["other"] = tuple(a for a in lists[name] if (a.name, a.to) != (last["name"], last["to"]))
    assert len(lists["other"]) == len(lists[name]) - 1
    with pytest.raises(LocalProtocolError, match=f"{last['name']} to {last['to']} is not on the mode's list"):
        run_lkc(other, tmp_path)
    assert run_lkc(task, tmp_path).result.encoded == expected.encoded
