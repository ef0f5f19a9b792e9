"""`report.json` of DP releases: the account, the guarantee in words, and nothing exact about the data."""

from __future__ import annotations

import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.dp.noise import DELTA
from coordinator.run import conduct
from coordinator.single import run_single
from jobs.data.sources import Csv
from jobs.dp.counts import COUNTS
from jobs.dp.report import report_fields
from jobs.options import Options
from tests.support import jobs
from tests.support.dp_jobs import (
    N_ROWS,
    PARTITIONS,
    dp_joint,
    dp_single,
    dp_site,
    dp_tables,
)
from tests.support.duplex import run as run_async
from tests.support.joint import sample_rows
from tests.support.network import network, report_of, serving
from tests.support.samples import COLUMNS, PARTIES, columns


def alone(folder: Path, fields: dict[str, Any], n_rows: int = N_ROWS) -> dict[str, Any]:
    """The report of a single holder's release."""
    path = jobs.write_csv(folder / f"table-{n_rows}.csv", sample_rows(n_rows), COLUMNS)
    run_single(jobs.task_of(fields), Csv(path), folder / f"out-{n_rows}", Options())
    return report_of(folder / f"out-{n_rows}")


def together(folder: Path, fields: dict[str, Any], n_rows: int = N_ROWS) -> dict[str, Any]:
    """The report of a joint release by daemons."""
    bundle, root = jobs.bundle_of(fields), folder / f"joint-{n_rows}"
    net = network(root / "net", bundle, dp_tables(root / "tables", bundle, sample_rows(n_rows)))

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, root / "out")

    run_async(scenario())
    return report_of(root / "out")


def one_cut(partition: str) -> dict[str, Any]:
    """A job in which there is nothing to choose: what differs between two reports differs with the data."""
    flat = {**COLUMNS["job"], "taxonomy": {"Any": ["Janitor", "Mover", "Lawyer"]}}
    chosen = columns(job=flat, age=None, surgery=None)
    if partition == "single":
        return dp_single({"specializations": "1"}, columns=chosen)
    fields = dp_joint(partition, {"specializations": "1"}, columns=chosen)
    for party in fields["parties"].values():
        if party.get("columns") == ["age", "surgery"]:
            party["columns"] = []
    return fields


def lengths(said: Any) -> Any:
    """The same with the length of every text instead of it; each run has other certificates."""
    if not isinstance(said, dict):
        return len(said or "")
    return {key: lengths(item) for key, item in said.items() if key != "certificate"}


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", ["single", *PARTITIONS])
def test_nothing_in_it_depends_on_the_data_but_what_is_released(tmp_path: Path, partition: str) -> None:
    """Tables of 61 and of 300 records, one cut: the reports differ in nothing but time, digest and signatures.

    Of these only the length could tell something: what is signed hides what it is made of
    (jobs/release/signatures.py).
    """
    make = alone if partition == "single" else together
    small, large = (make(tmp_path, one_cut(partition), n) for n in (N_ROWS, 300))
    for report in (small, large):
        assert report.pop("finished")
        assert set(report.pop("files")) == {COUNTS}  # digest and size of what is released
        assert report["cells_listed"] == 8
        report["signatures"] = lengths(report.get("signatures"))
    assert small == large
    assert str(N_ROWS) not in json.dumps(small["privacy"])


def test_costs_are_given_where_they_follow_from_the_job(tmp_path: Path) -> None:
    report = together(tmp_path, dp_joint("vertical"))
    for costs in report["cost"]["parties"].values():
        assert {"setup", "choose"} <= set(costs["phases"])
        assert not {"align", "count"} & set(costs["phases"])
        assert not any("seconds" in phase for phase in costs["phases"].values())
    assert "seconds" not in report["cost"]


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_account_adds_up_and_says_what_for(partition: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = dp_site(Path(folder), partition)
        result = site.run()[0][PARTIES[0]]
    report = report_fields(site.task, result)
    privacy = report["privacy"]
    assert sum(Fraction(charge["epsilon"]) for charge in privacy["account"]) == 1
    purposes = [charge["for"] for charge in privacy["account"]]
    assert purposes[0] == "split points of age"
    assert purposes.count("choice of a specialization") == 2
    assert purposes[-1] == "counts of the cells"
    assert 0 < Fraction(privacy["delta"]) <= DELTA
    assert privacy["unit"] == "one record"
    assert (privacy["engine"], privacy["noise"], privacy["utility"]) == ("circuit", "joint", "max")
    assert report["disclosure"] == "sealed"
    assert {reveal["name"] for reveal in report["reveals"]} <= {
        listed["name"] for listed in report["revealed_by_design"]
    }
    for step in report["specializations"]:
        assert set(step) == {"attribute", "value", "children"}  # no score


def test_what_is_not_covered(tmp_path: Path) -> None:
    single = " ".join(alone(tmp_path, dp_single())["privacy"]["not_covered"])
    assert "a person with m records gets mε" in single
    assert "Everything in the job is public" in single
    assert "ε adds up over all releases" in single
    vertical = " ".join(together(tmp_path, dp_joint("vertical"))["privacy"]["not_covered"])
    assert (
        "how many ids each party has; which of its own ids are common, and so the number of records"
        in vertical
    )
    assert "in one bit whether the parties have the same class for all common ids" in vertical
    assert "Both parties hold the class (transfused)" in vertical


def test_the_engine_is_named(tmp_path: Path) -> None:
    assert alone(tmp_path, dp_single())["privacy"]["engine"] == "single holder"
    assert together(tmp_path, dp_joint("horizontal"))["privacy"]["engine"] == "circuit"
    each = together(tmp_path / "each", dp_joint("vertical", {"noise": "each"}))["privacy"]
    assert (each["engine"], each["noise"]) == ("circuit", "each")


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_what_the_limit_on_cells_kept_back_is_told(tmp_path: Path, partition: str) -> None:
    """12 cells leave room for any first choice, and whatever it is, not for all nodes at the third."""
    report = together(tmp_path, dp_joint(partition, {"specializations": "3", "max_cells": "12"}))
    kept_back = report["barred_by_max_cells"]
    assert kept_back
    for entry in kept_back:
        assert entry["value"] in report["cut"][entry["attribute"]]
        assert 1 < entry["from_iteration"] <= 3
    assert together(tmp_path / "free", dp_joint(partition))["barred_by_max_cells"] == []
    assert "barred_by_max_cells" not in alone(tmp_path, dp_single())


def test_sets_and_thresholds_are_told(tmp_path: Path) -> None:
    fields = dp_single({"max_cells": "4", "specializations": "3"})
    report = alone(tmp_path, fields)
    assert report["cells"] > 4
    assert isinstance(report["threshold"], int)
