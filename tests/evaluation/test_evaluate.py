"""`coordinator evaluate`: figures on the console of the table's owner, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.holdout import splits_of
from jobs.errors import CATALOGUE, ConfigError
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import invoke, listing
from tests.support.dp_jobs import dp_single
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, command, write_job
from tests.support.samples import COLUMNS, columns, joint_job, single_job, vertical_job

WAYS = ["majority", "without quasi-identifiers", "raw", "anonymized"]
FIGURES = {"error", "error_standard_error", "auc", "auc_standard_error"}


def job_of(folder: Path, fields: dict[str, Any], n_rows: int = 90) -> Path:
    path = write_job(folder, fields)
    jobs.write_csv(folder / "table.csv", sample_rows(n_rows), COLUMNS)
    return path


def evaluated(*arguments: str | Path) -> dict[str, Any]:
    ran = invoke("coordinator", "evaluate", *arguments, "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


def test_what_is_printed(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job())
    before = listing(tmp_path)
    ran = invoke("coordinator", "evaluate", job, "--splits", "2")
    assert ran.code == 0, ran.err
    for part in (
        "sample: L=2 K=2 C=1/2; 90 rows, 1/3 held out, splits: 2, seed 0",
        "tree: error %",
        "boosting",
        "not for publication",
    ):
        assert part in ran.out
    assert [line.strip().split("  ")[0] for line in ran.out.splitlines()[2:6]] == WAYS
    assert "split 2 of 2 is done" in ran.err
    assert listing(tmp_path) == before


def test_figures_as_json(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job())
    found = evaluated(job, "--splits", "2", "--holdout", "0.25", "--seed", "7", "--published")
    assert {key: found[key] for key in ("job", "requirement", "rows", "holdout", "splits", "seed")} == {
        "job": "sample",
        "requirement": "L=2 K=2 C=1/2",
        "rows": 90,
        "holdout": "1/4",
        "splits": 2,
        "seed": 7,
    }
    assert list(found["ways"]) == [*WAYS, "anonymized, published protocol"]
    for by_learner in found["ways"].values():
        assert list(by_learner) == ["tree", "boosting"]
        for figures in by_learner.values():
            assert set(figures) == FIGURES
            assert 0 <= figures["error"] <= 1
    assert found == evaluated(job, "--splits", "2", "--holdout", "1/4", "--seed", "7", "--published")
    assert found["ways"] != evaluated(job, "--splits", "2", "--holdout", "1/4", "--published")["ways"]


def test_one_split_has_no_standard_error(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job())
    found = evaluated(job, "--splits", "1")
    assert found["ways"]["raw"]["tree"]["error_standard_error"] is None
    assert "±" not in invoke("coordinator", "evaluate", job, "--splits", "1").out


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "fields",
    [joint_job(), joint_job(disclosure="strict"), vertical_job()],  # of one score, which all of them have
    ids=["horizontal", "strict", "vertical"],
)
def test_a_joint_job_on_one_table_is_that_of_a_single_holder(tmp_path: Path, fields: dict[str, Any]) -> None:
    alone = evaluated(job_of(tmp_path / "alone", single_job(score="infogain")), "--splits", "2")
    joint = job_of(tmp_path / "joint", {**fields, "score": "infogain"})
    found = evaluated(joint, "--data", tmp_path / "joint" / "table.csv", "--splits", "2")
    assert found["ways"] == alone["ways"]


def test_another_table_than_that_of_the_job(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job())
    other = tmp_path / "other.csv"
    jobs.write_csv(other, sample_rows(60), COLUMNS)
    other.write_text(other.read_text().replace(",", ";"))
    assert evaluated(job, "--data", other, "--delimiter", ";", "--splits", "1")["rows"] == 60


def test_scores_beside_each_other(tmp_path: Path) -> None:
    """Each as the job with this score would have it."""
    found = evaluated(
        job_of(tmp_path, single_job(score="infogain")),
        "--splits",
        "2",
        "--score",
        "added",
        "--score",
        "groups",
    )
    assert list(found["ways"]) == [*WAYS[:3], "anonymized, added", "anonymized, groups"]
    for changes in ({"score": "added"}, {"score": "groups", "goal": "general"}):
        alone = evaluated(job_of(tmp_path / changes["score"], single_job(**changes)), "--splits", "2")
        assert alone["ways"]["anonymized"] == found["ways"][f"anonymized, {changes['score']}"]


PARTY = {"role": "party", "domain": ["north", "south"]}


def test_colluders_of_one_table(tmp_path: Path) -> None:
    lkc = {"L": "2", "K": "2", "C": "1", "colluders": "1"}
    path = write_job(tmp_path, single_job(columns=columns(site=PARTY), model={"lkc": lkc}))
    rows = [{**row, "site": ("north", "south")[i % 2]} for i, row in enumerate(sample_rows(90))]
    jobs.write_csv(tmp_path / "table.csv", rows, [*COLUMNS, "site"])
    assert list(evaluated(path, "--splits", "1")["ways"]) == WAYS


COLLUDERS = joint_job(disclosure="sealed", model={"lkc": {"L": "2", "K": "2", "C": "1", "colluders": "1"}})


@pytest.mark.more
def test_a_kd_job_beside_top_down(tmp_path: Path) -> None:
    """With a score it is the top-down job with the same requirement."""
    model = {"lkc": {"L": "all", "K": "3", "C": "0.8"}}
    kd = job_of(tmp_path / "kd", single_job(method="kd", goal="general", model=model))
    found = evaluated(kd, "--splits", "2", "--published")
    assert list(found["ways"]) == [*WAYS, "anonymized, published protocol"]
    scored = evaluated(kd, "--splits", "2", "--score", "groups")["ways"]["anonymized, groups"]
    top_down = job_of(tmp_path / "top-down", single_job(goal="general", model=model))
    assert scored == evaluated(top_down, "--splits", "2")["ways"]["anonymized"]
    assert scored != found["ways"]["anonymized"]


@pytest.mark.parametrize(
    ("fields", "options", "error_id", "says"),
    [
        (dp_single(), (), "usage", "LKC"),
        (single_job(goal="general", columns=columns(transfused=None)), (), "usage", "role: class"),
        (joint_job(), (), "usage", "names no table"),
        (single_job(release="anatomy"), (), "usage", "does not link class and sensitive values"),
        (COLLUDERS, ("--data", "table.csv"), "usage", "the party of a row"),
        (single_job(), ("--holdout", "1"), "usage", "--holdout 1"),
        (single_job(), ("--holdout", "0"), "usage", "--holdout 0"),
        (single_job(), ("--holdout", "half"), "usage", "--holdout half"),
        (single_job(), ("--holdout", "1/0"), "usage", "--holdout 1/0"),
        (single_job(), ("--holdout", "1/1000"), "usage", "no record would be held out"),
        (
            single_job(),
            ("--holdout", "89/90"),
            "requirement-unmet",
            "of the records that are learned from: the fully generalized table already violates K",
        ),
        (single_job(), ("--splits", "0"), "usage", "splits"),
        (single_job(), ("--seed", "-1"), "usage", "seed"),
        (single_job(), ("--score", "magic"), "usage", "magic"),
        (
            joint_job(disclosure="strict"),
            ("--data", "table.csv", "--score", "added"),
            "job-invalid",
            "strict",
        ),
        (single_job(), ("--data", "nowhere.csv"), "file-missing", "nowhere.csv"),
        (single_job(), ("--data", "table.csv", "--delimiter", "ab"), "usage", "--delimiter ab"),
        (single_job(model={"lkc": {"L": "2", "K": "70", "C": "1"}}), (), "requirement-unmet", "K"),
    ],
)
def test_what_cannot_be_evaluated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    options: Sequence[str],
    error_id: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    job = job_of(tmp_path, fields)
    ran = invoke("coordinator", "evaluate", job, *options, "--format", "json")
    assert (ran.problem["error"], ran.code) == (error_id, CATALOGUE[error_id].exit_code)
    assert says in ran.problem["message"]
    assert ran.out == ""


@pytest.mark.parametrize(
    ("whose", "holdout", "says"),
    [
        ([0] * 5, "1/3", "nothing can be held out: all records are one person's"),
        ([0, 0, 1], "1/3", "no record would be held out"),
        ([0, 1, 2], "99/100", None),
        ([0, 1, 2], "1/3", None),
    ],
)
def test_splits_at_their_extremes(whose: list[int], holdout: str, says: str | None) -> None:
    """One sentence for each cause, and no number of records in it."""
    if says is None:
        (split,) = splits_of(np.array(whose), Fraction(holdout), 1, 0)
        assert len(split.train)
        assert len(split.test)
        return
    with pytest.raises(ConfigError, match=says) as caught:
        splits_of(np.array(whose), Fraction(holdout), 1, 0)
    assert caught.value.problem.remedy


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    job = job_of(tmp_path, single_job())
    ran = invoke("coordinator", "evaluate", job, "--format", "json")
    assert ran.problem["error"] == "extra-missing"
    assert "jointcut[evaluate]" in ran.problem["remedy"]


@pytest.mark.more
def test_a_process_of_its_own_in_a_bare_environment(tmp_path: Path) -> None:
    job = job_of(tmp_path, single_job())
    environ = {name: value for name, value in bare().items() if name in ("PATH", "HOME")}
    done = subprocess.run(
        command("evaluate", str(job), "--splits", "1", program="coordinator"),
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        timeout=4 * GUARD_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[0].startswith("sample: ")
    assert sorted(listing(tmp_path)) == ["job.yaml", "table.csv"]
