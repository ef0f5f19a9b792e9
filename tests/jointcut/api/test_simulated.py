"""Joint runs from Python with real daemons: those of a simulation, and running ones."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import jointcut as jc
from coordinator.simulate import parties_on_loopback
from jointcut.api.frames import sources_of_data
from tests.support.commands import invoke
from tests.support.network import sample_network, served, write_job
from tests.support.samples import PARTIES, joint_job
from tests.support.visits import rows_of, shared_job, visits

TABLES = {"north": visits().head(30), "south": visits().tail(30)}


@pytest.fixture(scope="module")
def simulated() -> jc.Result:
    """The release of a simulation with daemons."""
    return jc.simulate(shared_job(), TABLES)


def test_a_simulation_with_daemons(simulated: jc.Result) -> None:
    assert rows_of(simulated.folder) == rows_of(jc.simulate(shared_job(), TABLES, in_process=True).folder)
    assert simulated.report["parties"] == ["north", "south"]
    assert set(jc.verify(simulated, shared_job()).fields["signed"]) == {"north", "south"}
    accounts = [json.loads((simulated.folder / "own" / f"{name}.json").read_text()) for name in TABLES]
    assert [account["data"]["read"] for account in accounts] == [30, 30]
    assert "sex" in simulated.table


def test_a_client_of_running_daemons(simulated: jc.Result, tmp_path: Path) -> None:
    job = shared_job()
    with sources_of_data(TABLES, job) as sources, parties_on_loopback(job.load(), sources) as config:
        client = jc.Client(config)
        result = client.run(job, tmp_path / "out")
        with pytest.raises(jc.Error) as refused:
            client.run(job.with_(name="not-allowed"))
        with pytest.raises(jc.Error, match="the job has a single holder"):
            client.run(job.with_(partition="single", parties=None, data="x.csv", disclosure=None))
    assert result.folder == tmp_path / "out"
    assert rows_of(result.folder) == rows_of(simulated.folder)
    assert (refused.value.id, refused.value.exit_code) == ("policy-refused", 4)
    assert refused.value.party in TABLES
    assert repr(client) == "Client(name='coordinator')"


@pytest.mark.more
def test_a_party_of_a_simulation_is_named() -> None:
    wrong = TABLES["south"].replace({"sex": {"f": "x"}})
    with pytest.raises(jc.Error) as refused:
        jc.simulate(shared_job(), {**TABLES, "south": wrong})
    error = refused.value
    assert (error.id, error.party, error.column) == ("data-unknown-value", "south", "sex")
    assert "'x'" in error.private
    assert "'x'" not in str(error)


def test_a_client_without_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(jc.Error) as refused:
        jc.Client(tmp_path / "coordinator.yaml")
    assert refused.value.id == "file-missing"


def test_a_client_proposes_and_asks_for_the_decisions(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    for name in PARTIES:
        net.change(name, lambda fields: fields["policy"].pop("approval"))
    job = write_job(tmp_path, joint_job())
    client = jc.Client(net.config_path("coordinator"))
    with served(net):
        assert client.status(job) == dict.fromkeys(PARTIES, "unknown")
        assert client.propose(job) == dict.fromkeys(PARTIES, "waiting")
        digest = net.task.digest.hex()
        assert invoke("party", "approve", digest[:8], "--config", net.config_path(PARTIES[0])).code == 0
        denied = ("deny", digest[:8], "--reason", "no")
        assert invoke("party", *denied, "--config", net.config_path(PARTIES[1])).code == 0
        states = dict(zip(PARTIES, ("approved", "denied", "waiting"), strict=True))
        assert client.status(job) == client.propose(job) == states
        with pytest.raises(jc.Error) as refused:
            client.run(job, progress=False)
    assert refused.value.id == "approval-denied"
    with pytest.raises(jc.Error) as refused:
        client.propose(shared_job().with_(partition="single", parties=None, data="x.csv", disclosure=None))
    assert "jointcut.anonymize" in refused.value.remedy


def test_a_joint_draft_runs() -> None:
    """The draft of a table of all parties runs on its parts; a party cannot have a mode alone."""
    table = pd.DataFrame({"sex": ["f", "m"] * 30, "age": [20 + i for i in range(60)]})
    drafted = jc.draft(table, parties=["north", "south"], mode="strict")
    assert drafted.job.settings.disclosure == "strict"
    parts = {"north": table[::2], "south": table[1::2]}
    assert len(jc.simulate(drafted.job, parts, in_process=True).table) == 60
    with pytest.raises(jc.Error, match="name the parties"):
        jc.draft(table, mode="strict")
