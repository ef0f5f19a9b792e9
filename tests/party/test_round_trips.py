"""How many round trips a whole job takes, from submission until the coordinator may go: counted, not timed.

Connections stand before; to make one takes a coordinator three more: TCP, TLS, and to ask who is there.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonymize.tds import Observer
from crypto.local import run_local
from crypto.rng import SystemRng
from jobs.account import Unaccounted
from jobs.loading import load_task
from jobs.modes import protocol_of
from jobs.task import Besides
from tests.support.far import round_trips
from tests.support.network import Network, network, sample_network
from tests.support.shared_jobs import shared_job

AROUND_A_RUN = 6.0
"""1 to be admitted; 0.5 each to start, greet, commit, tell who was charged before, sign, finish, deliver, agree, say
that it is kept, and end.
"""


def rounds_of(net: Network) -> int:
    """Of the protocol alone."""
    task = net.task
    sources = {party: net.config(party).source for party in net.roster}
    _, transcript = run_local(
        {
            me: protocol_of(
                task,
                me,
                task.load(sources[me], me),
                SystemRng(),
                Observer(),
                Unaccounted(),
                Besides(sources[me], None),
            )
            for me in net.roster
        }
    )
    return transcript.rounds


def adult(root: Path, **options: str) -> Network:
    """The job on Adult that figures mean, with score `infogain`."""
    asked = {"L": "4", "K": "50", "C": "0.2", **options}
    made = shared_job("adult", *(f"{key}={value}" for key, value in asked.items()))
    folder = root / "job"
    shutil.copytree(made, folder)
    fields = yaml.load((made / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
    (folder / "job.yaml").write_text(yaml.safe_dump({**fields, "score": "infogain"}, sort_keys=False))
    bundle = load_task(folder / "job.yaml").bundle
    return network(root / "net", bundle, {party: folder / f"{party}.csv" for party in bundle.job.roster})


@pytest.mark.parametrize("disclosure", ["leader", "sealed"])
def test_a_job_takes_the_rounds_of_its_protocol_and_six_round_trips(tmp_path: Path, disclosure: str) -> None:
    net = sample_network(tmp_path / "net", disclosure=disclosure)
    assert round_trips(net, tmp_path / "out") == rounds_of(net) / 2 + AROUND_A_RUN


@pytest.mark.parametrize("parties", [3, 5])
def test_more_parties_take_no_more(tmp_path: Path, parties: int) -> None:
    """All greet each other at once."""
    net = sample_network(tmp_path / "net", disclosure="leader", **_parties(parties))
    assert round_trips(net, tmp_path / "out") == rounds_of(net) / 2 + AROUND_A_RUN


def _parties(number: int) -> dict[str, Any]:
    names = [f"hospital-{letter}" for letter in "abcdefghij"[:number]]
    return {"parties": {name: {"address": f"127.0.0.1:{7401 + i}"} for i, name in enumerate(names)}}


@pytest.mark.parametrize(("disclosure", "most"), [("leader", 18), ("sealed", 62)])
def test_adult(tmp_path: Path, disclosure: str, most: float) -> None:
    net = adult(tmp_path, parties="3", disclosure=disclosure)
    assert round_trips(net, tmp_path / "out") <= most
