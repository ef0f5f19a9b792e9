"""The files of a DP release: a party takes those that follow from what it computed, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from jobs.dp.counts import COUNTS, counts_csv, rows_csv
from jobs.dp.files import render
from jobs.dp.result import DpResult
from jobs.errors import PartyError
from jobs.release.csv import REPORT, TABLE
from jobs.release.delivery import checked_release
from jobs.release.sums import SUMS, sums_of
from tests.support import jobs
from tests.support.delivered import made_files
from tests.support.dp_jobs import PARTITIONS, Site, dp_joint, made
from tests.support.samples import PARTIES


def test_delivered_files() -> None:
    assert jobs.task_of(dp_joint("horizontal")).delivered == (REPORT, SUMS)


def test_a_delivery_is_compared_with_what_was_computed() -> None:
    site, result = made("horizontal")
    content = counts_csv(result.table, site.bundle.job.published)
    report = made_files(render(site.task, result), {PARTIES[1]: {"phases": {}, "links": {}}})[REPORT]
    checked_release(site.task, result, summed({COUNTS: content, REPORT: report}), {})
    other = json.dumps({"job_sha256": "00" * 32}).encode()
    for files in (
        {COUNTS: content + b"\n", REPORT: report},
        {COUNTS: content.replace(b",Y,", b",N,", 1), REPORT: report},
        {COUNTS: content, REPORT: other},
        {COUNTS: content, REPORT: b"{"},
    ):
        mismatched(site, result, summed(files))


def summed(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with their digests, as a coordinator delivers them."""
    return {**files, SUMS: sums_of(files)}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_digests_are_those_of_the_files_and_of_rows_that_follow_from_the_counts(partition: str) -> None:
    site, result = made(partition)
    files = made_files(render(site.task, result))
    rows = rows_csv(result.table, site.bundle.job.published)
    delivered = {**files, SUMS: sums_of({**files, TABLE: rows})}  # rows stay with the coordinator
    checked_release(site.task, result, delivered, {})
    header, *lines = rows.splitlines(keepends=True)
    for listed in (
        {**files, TABLE: b"".join([header, *lines[1:]])},
        {**files, COUNTS: files[COUNTS] + b"\n"},
        {**files, REPORT: files[REPORT] + b"\n"},
        {**files, "more": b""},
        {COUNTS: files[COUNTS]},
    ):
        assert SUMS in mismatched(site, result, {**files, SUMS: sums_of(listed)})


def mismatched(site: Site, result: DpResult, files: dict[str, bytes]) -> str:
    with pytest.raises(PartyError) as caught:
        checked_release(site.task, result, files, {})
    assert caught.value.problem.error_id == "result-mismatch"
    return caught.value.problem.message


TOLD: dict[str, Callable[[dict[str, Any]], object]] = {
    "privacy": lambda r: r["privacy"].update(delta="0"),
    "privacy ": lambda r: r["privacy"].update(epsilon="1/2"),
    "privacy  ": lambda r: r["privacy"]["account"].pop(),
    "privacy   ": lambda r: r["privacy"]["guarantees"].append("Nobody learns anything."),
    "privacy    ": lambda r: r["privacy"].pop("not_covered"),
    "cut": lambda r: r["cut"].update(job=["Blue"]),
    "specializations": lambda r: r["specializations"].reverse(),
    "cells_listed": lambda r: r.update(cells_listed=61),
    "cells": lambda r: r.update(cells=float(r["cells"])),
    "reveals": lambda r: r["reveals"].pop(),
    "revealed_by_design": lambda r: r["revealed_by_design"].clear(),
    "repeated": lambda r: r.update(repeated=True),
    "leader": lambda r: r.pop("leader"),
    "model": lambda r: r["model"]["dp"].update(epsilon="2"),
    "files": lambda r: r["files"][COUNTS].update(sha256="0" * 64),
    "more than": lambda r: r.update(n_records=61),
}


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("what", list(TOLD))
def test_a_delivered_report_says_what_follows_from_the_release(partition: str, what: str) -> None:
    site, result = made(partition)
    files = made_files(render(site.task, result))
    checked_release(site.task, result, summed(files), {})
    report = json.loads(files[REPORT])
    TOLD[what](report)
    files[REPORT] = json.dumps(report).encode()
    assert what.strip() in mismatched(site, result, summed(files))


def test_time_versions_and_costs_are_the_coordinators() -> None:
    site, result = made("horizontal")
    files = made_files(render(site.task, result))
    of_maker = {"finished": "2020-02-29T23:59:59+00:00", "cost": {"parties": {}, "seconds": {"release": 1}}}
    files[REPORT] = json.dumps(json.loads(files[REPORT]) | of_maker).encode()
    checked_release(site.task, result, summed(files), {})


@pytest.mark.parametrize("change", [{"finished": ""}, {"versions": {}}, {"cost": {"epsilon": "0.01"}}])
def test_the_coordinator_says_nothing_else_there(change: dict[str, Any]) -> None:
    site, result = made("horizontal")
    files = made_files(render(site.task, result))
    files[REPORT] = json.dumps(json.loads(files[REPORT]) | change).encode()
    assert f"no `{next(iter(change))}` as reports" in mismatched(site, result, summed(files))
