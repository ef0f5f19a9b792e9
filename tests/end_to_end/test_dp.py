"""DP jobs between real daemons: release, retry, overdraft, a party that dies, and canaries nobody else may see."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct
from coordinator.simulate import COORDINATOR
from jobs.dp.counts import COUNTS
from jobs.errors import Exit
from jobs.loading import load_task
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_ACCOUNT, OWN_PAGE
from jobs.release.sums import SUMS
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import Ran, invoke, listing
from tests.support.dp_jobs import PARTITIONS, dp_joint, dp_network
from tests.support.duplex import run as run_async
from tests.support.example import example_job, example_tables
from tests.support.joint import sample_rows
from tests.support.network import (
    GUARD_S,
    Network,
    Processes,
    command,
    network,
    processes,
    report_of,
    served,
    serving,
    write_job,
)
from tests.support.samples import COLUMNS, PARTIES


@dataclass
class Site:
    folder: Path
    net: Network
    daemons: Processes

    def run(self, job: Path, out: str, *more: str) -> Ran:
        config = self.net.config_path(COORDINATOR)
        options = ("--config", config, "--out", self.folder / out, "--format", "json", *more)
        return invoke("coordinator", "run", job, *options)

    def spent(self, party: str) -> tuple[Fraction, list[str]]:
        """Return the sum of a party's ledger, and the state of every entry."""
        budget = self.net.config(party).ledger
        return budget.spent(), [entry.state for entry in budget.entries()]


def dp_job(folder: Path, epsilon: str = "1", **model: str) -> Path:
    """The transfusion example as a DP job; its protected column is one among others."""
    chosen = {"epsilon": epsilon, "specializations": "3", "max_rows": "5000", **model}
    return example_job(folder, model={"dp": chosen})[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Three hospitals whose policies allow an epsilon of 1 a job, and 3/2 in all."""
    folder = tmp_path_factory.mktemp("dp")
    net = network(folder / "net", load_task(dp_job(folder / "job")).bundle, example_tables())
    for party in PARTIES:
        net.change(party, lambda fields: fields["policy"].update(epsilon_budget="3/2"))
    with processes(net) as daemons:
        yield Site(folder, net, daemons)


def test_release_retry_and_overdraft(site: Site) -> None:
    """In this order, at daemons that keep their ledgers, also over a restart."""
    job = dp_job(site.folder / "job")
    first = released(site, job, "first")
    restarted(site)
    given_again(site, job, first)
    refused_by_the_budget(site)
    refused_by_the_policy(site)
    budget_spent_to_the_end(site)


def released(site: Site, job: Path, out: str) -> Ran:
    """The job runs, verifies, reaches every party as it is, and is charged."""
    done = site.run(job, out, "--as-records")
    assert done.code == 0, done.err
    assert listing(site.folder / out) == [SUMS, TABLE, COUNTS, PAGE, REPORT]
    assert invoke("coordinator", "verify", job, site.folder / out).code == 0
    for party in PARTIES:
        delivered = site.net.account(party).parent
        # The rows are the coordinator's own wish.
        assert listing(delivered) == [SUMS, COUNTS, OWN_ACCOUNT, OWN_PAGE, PAGE, REPORT]
        for name in (SUMS, COUNTS, REPORT):
            assert (delivered / name).read_bytes() == (site.folder / out / name).read_bytes()
        assert site.spent(party) == (1, ["released"])
    privacy = report_of(site.folder / out)["privacy"]
    assert (privacy["epsilon"], privacy["engine"], privacy["noise"]) == ("1", "circuit", "joint")
    return done


def restarted(site: Site) -> None:
    """Every daemon ends and starts again."""
    for party in PARTIES:
        site.daemons.signal(party, signal.SIGTERM)
        site.daemons.restart(party)


def given_again(site: Site, job: Path, done: Ran) -> None:
    """The same job gives the same counts, says so once, and costs nothing. ``done``: the run in `first`."""
    repeated = site.run(job, "again")
    assert repeated.code == 0
    assert [line["event"] for line in (*done.lines, *repeated.lines)].count("note") == 1
    assert {"event": "note", "again": True} in repeated.lines
    assert (site.folder / "again" / COUNTS).read_bytes() == (site.folder / "first" / COUNTS).read_bytes()
    first, again = (report_of(site.folder / name) for name in ("first", "again"))
    assert (first.pop("repeated"), again.pop("repeated")) == (False, True)
    assert {name for name in first if first[name] != again[name]} <= {"finished", "cost", "signatures"}
    assert first.keys() == again.keys()
    for party in PARTIES:
        assert "repeated" not in again["cost"]["parties"][party]
        kept = [json.loads((folder / REPORT).read_text())["repeated"] for folder in site.net.releases(party)]
        assert sorted(kept) == [False, True]
    assert {site.spent(party)[0] for party in PARTIES} == {1}


def refused_by_the_budget(site: Site) -> None:
    """A job that would spend more than is left is refused, writes nothing and costs nothing."""
    refused = site.run(dp_job(site.folder / "more", epsilon="0.51"), "none")
    problem = refused.problem
    assert (refused.code, problem["error"]) == (Exit.BUDGET, "budget-exceeded")
    assert problem["party"] in PARTIES
    assert not (site.folder / "none").exists()
    assert {site.spent(party)[0] for party in PARTIES} == {1}


def refused_by_the_policy(site: Site) -> None:
    """A job of more than a job may have is refused, whatever is left."""
    large = site.run(dp_job(site.folder / "large", epsilon="1.01"), "none").problem
    assert (large["error"], large["exit_code"]) == ("policy-refused", Exit.REFUSED)
    assert "epsilon must be at most 1" in large["message"]


def budget_spent_to_the_end(site: Site) -> None:
    """A job of exactly what is left runs, and its owner is told that nothing is left."""
    assert site.run(dp_job(site.folder / "half", epsilon="0.5"), "rest").code == 0
    assert {site.spent(party)[0] for party in PARTIES} == {Fraction(3, 2)}
    owner = invoke("party", "budget", "--config", site.net.config_path(PARTIES[1]))
    assert "hospital-b: epsilon 1.5 spent, left: 0\n" in owner.out


@pytest.mark.more
def test_a_party_that_is_killed_in_the_middle(tmp_path: Path) -> None:
    """One error, nothing written, everybody charged, the dead one too; and charged again for another try."""
    job = dp_job(tmp_path / "job", specializations="6")
    net = network(tmp_path / "net", load_task(job).bundle, example_tables())
    for name in (*PARTIES, COORDINATOR):
        net.change(name, lambda fields: fields.update(timeouts={"connect_s": 3}))
    for party in PARTIES:
        net.change(party, lambda fields: fields["policy"].update(epsilon_budget="2"))
    with processes(net) as daemons:
        site = Site(tmp_path, net, daemons)
        error = killed_in_the_middle(site, job, PARTIES[2])
        assert (error["error"], error["party"]) == ("peer-lost", PARTIES[2])
        assert error["exit_code"] == Exit.UNREACHABLE
        daemons.restart(PARTIES[2])
        assert [site.spent(party) for party in PARTIES] == [(1, ["opened"])] * 3
        assert not (tmp_path / "out").exists()
        assert [net.releases(party) for party in PARTIES] == [[], [], []]
        done = site.run(job, "out")
        assert done.code == 0, done.err
        assert [site.spent(party) for party in PARTIES] == [(2, ["opened", "released"])] * 3


def killed_in_the_middle(site: Site, job: Path, victim: str) -> dict[str, Any]:
    config = site.net.config_path(COORDINATOR)
    process = subprocess.Popen(
        command("run", job, "--config", config, "--out", site.folder / "out", "--format", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=bare(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["event"] == "turn":
            site.daemons.signal(victim, signal.SIGKILL)
            break
    _, err = process.communicate(timeout=GUARD_S)
    found: dict[str, Any] = json.loads(err.strip().splitlines()[-1])
    return found


@pytest.mark.more
@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_published_protocols_between_daemons(tmp_path: Path, partition: str) -> None:
    bundle = jobs.bundle_of(dp_joint(partition, {"engine": "thesis", "max_rows": "70"}))
    net = dp_network(tmp_path, bundle)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run_async(scenario())
    privacy = report_of(tmp_path / "out")["privacy"]
    assert (privacy["engine"], privacy["noise"], privacy["delta"]) == ("thesis", "each", "0")
    assert privacy["guarantees"][0].startswith("Toward the public: pure")


@pytest.mark.more
def test_a_vertical_job_of_two_daemons(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", dp_joint("vertical", {"utility": "infogain"}))
    net = dp_network(tmp_path, load_task(job).bundle)
    with served(net):
        for out in ("first", "again"):
            options = ("--config", net.config_path(COORDINATOR), "--out", tmp_path / out)
            done = invoke("coordinator", "run", job, *options)
            assert done.code == 0, done.err
        assert {net.config(party).ledger.spent() for party in net.roster} == {1}
    assert (tmp_path / "first" / COUNTS).read_bytes() == (tmp_path / "again" / COUNTS).read_bytes()
    assert invoke("coordinator", "verify", job, tmp_path / "again").code == 0
    words = report_of(tmp_path / "first")["privacy"]["guarantees"][-1]
    assert "for replacing a record, twice the ε, ε = 2" in words


CANARIES = ("CANARY-id-4711", "CANARY-value-4712", "842.4242424", "CANARY-note-4713", "CANARY-class-4714")
"""At one party: an id, a value outside its taxonomy, a number outside its domain, a column of its own, a class."""


def marked(index: int, rows: list[dict[str, str]]) -> list[dict[str, str]]:
    rows = [{**row, "note": "nothing"} for row in rows]
    if index == 1:
        rows[0] |= {"patient": CANARIES[0], "note": CANARIES[3]}
        rows[1] |= {"job": CANARIES[1], "surgery": CANARIES[1]}
        rows[2] |= {"age": CANARIES[2]}
        rows[3] |= {"transfused": CANARIES[4]}
    return rows


@pytest.mark.some(1)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_canaries_are_nowhere_else(
    tmp_path: Path, partition: str, wire: list[bytes], caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    """Values outside the domain are no error, and no message, log, file or report of others has any of them."""
    caplog.set_level(logging.DEBUG)
    bundle = jobs.bundle_of(dp_joint(partition))
    tables = {
        name: jobs.write_csv(tmp_path / f"{name}.csv", marked(i, sample_rows(40, seed=i)), [*COLUMNS, "note"])
        for i, name in enumerate(bundle.job.roster)
    }
    net = network(tmp_path / "net", bundle, tables)
    assert found(tables[PARTIES[1]].read_bytes()) == list(CANARIES)

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    if partition == "vertical":  # other classes for the same ids would end the alignment
        same_classes(tables)
    run_async(scenario())
    assert sum(map(len, wire)) > 10_000
    folders = [net.root, tmp_path / "out"]
    files = b"".join(p.read_bytes() for f in folders for p in f.rglob("*") if p.is_file())
    shown = capsys.readouterr()
    for where in (b"".join(wire), files, caplog.text.encode(), (shown.out + shown.err).encode()):
        assert found(where) == []
        assert len(where) > 100


def same_classes(tables: dict[str, Path]) -> None:
    for path in tables.values():
        lines = path.read_text().splitlines()
        place = lines[0].split(",").index("transfused")
        rows = [line.split(",") for line in lines[1:]]
        for row in rows:
            row[place] = row[place] if row[place] in CANARIES else "Y"
        path.write_text("\n".join([lines[0], *(",".join(row) for row in rows)]) + "\n")


def found(where: bytes) -> list[str]:
    return [canary for canary in CANARIES if canary.encode() in where]
