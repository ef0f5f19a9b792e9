"""Synthetic tables between real daemons: the same files at all parties, charged once, and given again."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from anonymize.joint.disclosure import ALLOWED
from coordinator.run import conduct
from jobs.dp.settings import MARGINALS, SYNTHETIC_TABLE
from jobs.page.page import PAGE
from jobs.release.csv import REPORT
from jobs.release.sums import SUMS
from tests.support import jobs
from tests.support.commands import invoke, listing
from tests.support.dp_jobs import PARTITIONS, dp_network
from tests.support.duplex import run
from tests.support.network import serving, write_job
from tests.support.synthetic_jobs import synthetic_joint

FILES = [SUMS, MARGINALS, PAGE, REPORT, SYNTHETIC_TABLE]


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_daemons_release_a_table_that_follows_from_its_marginals(tmp_path: Path, partition: str) -> None:
    fields = synthetic_joint(partition)
    net = dp_network(tmp_path, jobs.bundle_of(fields))
    delivered: dict[str, dict[str, bytes]] = {}

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "first")
            for party in net.task.job.roster:
                (folder,) = net.releases(party)
                delivered[party] = {name: (folder / name).read_bytes() for name in FILES}
            await conduct(net.task, net.coordinator, tmp_path / "again")

    run(scenario())
    job = write_job(tmp_path / "job", fields)
    first = tmp_path / "first"
    assert listing(first) == FILES
    checked = invoke("coordinator", "verify", job, first, "--format", "json")
    assert checked.code == 0
    for party in net.task.job.roster:
        assert delivered[party] == {name: (first / name).read_bytes() for name in FILES}
        for name in (MARGINALS, SYNTHETIC_TABLE):
            assert (tmp_path / "again" / name).read_bytes() == (first / name).read_bytes()
        ledger = net.config(party).ledger
        assert ledger.spent() == Fraction(5)
        assert [entry.state for entry in ledger.entries()] == ["released"]
    reports = [json.loads((tmp_path / name / REPORT).read_text()) for name in ("first", "again")]
    assert [report["repeated"] for report in reports] == [False, True]
    for cost in reports[0]["cost"]["parties"].values():
        assert cost["phases"].keys() <= {"start", "setup", "end"} or partition == "horizontal"
        assert cost["links"] == {}
    told = {each["name"] for each in reports[0]["reveals"]}
    assert told == {row.name for row in ALLOWED[net.task.mode.name]}
