"""A grid of requirements on one table: each point is what a run of the changed job reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.lkc.exploring import MOST_POINTS, Point, grid_of, joined, require_explorable
from jobs.release.csv import REPORT
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_single
from tests.support.exploring import explorer_of, lkc
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, columns, joint_job, single_job, vertical_job
from tests.support.wards import wards_job


def reported(folder: Path, fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the report of a run of a job on the table in a folder; None if no table meets the requirement."""
    write_job(folder, fields, "other.yaml")
    out = folder / f"out-{len(list(folder.iterdir()))}"
    ran = invoke("coordinator", "run", folder / "other.yaml", "--out", out)
    if ran.code != 0:
        assert "already violates" in ran.err
        return None
    report = json.loads((out / REPORT).read_text())
    assert isinstance(report, dict)
    return report


def assert_as_reported(point: Point, report: dict[str, Any] | None) -> None:
    if report is None:
        assert point.figures is None
        assert "already violates" in point.unmet
        return
    found, metrics, risk = point.figures, report["metrics"], report["risk"]
    assert found is not None
    losses = metrics["generalization_loss"]
    assert found.losses == losses
    assert found.loss == pytest.approx(mean(losses.values()), abs=1e-12)
    assert found.whole == tuple(name for name, loss in losses.items() if loss == 1)
    assert found.groups == metrics["leaf_partitions" if "leaf_partitions" in metrics else "groups"]
    assert round(found.discernibility_ratio, 6) == round(metrics["discernibility_ratio"], 6)
    assert (found.unique, found.below_k) == (risk["unique"], risk["below_k"])
    assert found.rows == report["rows"]
    assert found.withheld == report["data"]["used"] - report["rows"]


@pytest.mark.some(2)
@pytest.mark.parametrize("goal", ["general", "classification"])
@pytest.mark.parametrize("seed", range(3))
def test_points_are_those_of_runs(tmp_path: Path, goal: str, seed: int) -> None:
    rows, beside = sample_rows(70, seed), {"withhold": "1/20"} if seed == 2 else {}
    explorer = explorer_of(tmp_path, single_job(goal=goal, model=lkc(L="2", K="2", C="0.5", **beside)), rows)
    ks, ls, cs = (2, 9, 71), (1, "all"), (Fraction(2, 5), Fraction(1, 20))
    grid = grid_of(explorer.task.job, ks, ls, cs, [])
    points = list(explorer.points(grid))
    asked = list(product(cs, ls, ks))
    assert [(point.C, point.L, point.K) for point in points] == [({"surgery": c}, x, k) for c, x, k in asked]
    for point, (c, known, k) in zip(points, asked, strict=True):
        model = lkc(K=str(k), L=str(known), C=str(c), **beside)
        assert_as_reported(point, reported(tmp_path, single_job(goal=goal, model=model)))
    assert {point.figures is None for point in points} == {True, False}


def test_points_of_kd(tmp_path: Path) -> None:
    own = {"method": "kd", "L": "all", "C": "0.6"}
    explorer = explorer_of(tmp_path, single_job(goal="general", model=lkc(K="2", **own)), sample_rows(80))
    for k, point in zip(
        (3, 20), explorer.points(grid_of(explorer.task.job, (3, 20), [], [], [])), strict=True
    ):
        assert_as_reported(point, reported(tmp_path, single_job(goal="general", model=lkc(K=str(k), **own))))
        assert point.goal == "general"


def test_the_goal_has_its_own_score(tmp_path: Path) -> None:
    explorer = explorer_of(tmp_path, single_job(score="infogain"), sample_rows(90))
    grid = grid_of(explorer.task.job, [], [], [], ["classification", "general"])
    one, other = explorer.points(grid)
    assert_as_reported(one, reported(tmp_path, single_job(score="infogain")))
    assert_as_reported(other, reported(tmp_path, single_job(goal="general")))


def test_each_c_replaces_all_others(tmp_path: Path) -> None:
    sensitive = {**COLUMNS["surgery"], "C": "0.3"}
    fields = single_job(model=lkc(K="2", L="2"), columns=columns(surgery=sensitive))
    explorer = explorer_of(tmp_path, fields, sample_rows(60))
    (own,) = explorer.points(grid_of(explorer.task.job, [], [], [], []))
    assert own.C == {"surgery": Fraction(3, 10)}
    assert_as_reported(own, reported(tmp_path, fields))
    (point,) = explorer.points(grid_of(explorer.task.job, [], [], [Fraction(1, 2)], []))
    assert point.C == {"surgery": Fraction(1, 2)}
    assert_as_reported(point, reported(tmp_path, single_job(model=lkc(K="2", L="2", C="0.5"))))


def test_a_requirement_that_asks_for_nothing_is_a_point_with_the_reason(tmp_path: Path) -> None:
    explorer = explorer_of(tmp_path, single_job(), sample_rows(30))
    (point,) = explorer.points(grid_of(explorer.task.job, [1], [], [Fraction(1)], []))
    assert point.figures is None
    assert point.unmet.startswith("model.lkc asks for nothing")
    assert point.fields["unmet"] == point.unmet


def test_large_tables_are_measured_in_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = explorer_of(tmp_path, single_job(), sample_rows(60))
    grid = grid_of(explorer.task.job, (2, 3, 5, 61), (1, 2), [], [])
    alone = list(explorer.points(grid))
    monkeypatch.setattr("jobs.lkc.exploring._LARGE", 1)
    assert explorer.is_large
    assert list(explorer.points(grid)) == alone


# ---- refusals


@pytest.mark.parametrize(
    ("fields", "says", "remedy"),
    [
        (dp_single(), "K, L and C of LKC jobs", "`epsilon`"),
        (wards_job(), "K, L and C of LKC jobs", "sequences job"),
        (
            single_job(model=lkc(requirements=[{"L": "2", "K": "2", "C": "0.5"}])),
            "`requirements`",
            "single entry",
        ),
        (vertical_job(), "part of the columns", "simulate"),
        (single_job(release="anatomy", quasi="exact", goal="general"), "raw quasi-identifiers", "`quasi`"),
    ],
    ids=["dp", "sequences", "list", "vertical", "exact"],
)
def test_what_cannot_be_explored_is_refused(fields: dict[str, Any], says: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as refused:
        require_explorable(jobs.task_of(fields))
    assert says in refused.value.problem.message
    assert remedy in refused.value.problem.remedy


def test_parties_that_the_table_does_not_tell_apart() -> None:
    model = lkc(L="2", K="2", C="0.5", colluders="1")
    with pytest.raises(ConfigError, match="`colluders`"):
        require_explorable(jobs.task_of(joint_job(disclosure="sealed", leader=None, model=model)))
    require_explorable(jobs.task_of(joint_job()))


def test_grids_that_make_no_sense() -> None:
    job = jobs.task_of(single_job()).job
    with pytest.raises(ConfigError, match="501 requirements are more than 500"):
        grid_of(job, range(1, MOST_POINTS + 2), [], [], [])
    assert len(grid_of(job, range(1, MOST_POINTS + 1), [], [], [])) == MOST_POINTS
    bare = jobs.task_of(single_job(columns=columns(surgery=None), model=lkc(K="2", L="2"))).job
    with pytest.raises(ConfigError, match="`role: sensitive`"):
        grid_of(bare, [], [], [Fraction(1, 2)], [])


def test_changes_are_joined_at_every_depth() -> None:
    found = joined([{"a": {"b": {"c": 1}}, "x": 1}, {"a": {"b": {"d": None}, "e": [2]}, "x": {"y": 3}}])
    assert found == {"a": {"b": {"c": 1, "d": None}, "e": [2]}, "x": {"y": 3}}
