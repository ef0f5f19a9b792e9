"""What a party keeps of a run: what every party has checked, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.conduct import Conductor
from jobs.errors import JobFailed, PartyError, Problem
from jobs.folder import OWN_ACCOUNT
from jobs.options import NO_OPTIONS
from jobs.release_csv import REPORT, TABLE
from jobs.stopwatch import Stopwatch
from jobs.sums import SUMS, write_sums
from party.owner.config import Limits
from tests.support.by_hand import works
from tests.support.duplex import run
from tests.support.network import Network, report_of, sample_network, serving
from tests.support.samples import PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def test_what_is_delivered_is_what_the_coordinator_has(net: Network, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(net):
            await works(net, tmp_path / "out")

    run(scenario())
    for party in PARTIES:
        (folder,) = net.releases(party)
        assert sorted(p.name for p in folder.iterdir()) == [SUMS, TABLE, OWN_ACCOUNT, REPORT]
        for name in (SUMS, TABLE, REPORT):
            assert (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    assert report_of(tmp_path / "out")["rows"] == 60


@pytest.mark.parametrize(("most", "said"), [(40_000, ""), (400, "peer-protocol")])
def test_a_release_may_be_as_large_as_its_result_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, said: str
) -> None:
    """The bound is on what does not follow from the result: the report, not the table."""
    net = sample_network(tmp_path / "net", n_rows=3000)

    async def scenario() -> str:
        async with serving(net), Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor.compute()
            collected = await conductor.collect()
            out.mkdir()
            release = net.task.model.write(net.task, out, collected, NO_OPTIONS, Stopwatch(print))
            monkeypatch.setattr(Limits, "delivery_bytes", most)
            try:
                await conductor.deliver(out, release)
            except PartyError as error:
                return error.problem.error_id
            return ""

    out = tmp_path / "out"
    assert run(scenario()) == said
    assert (out / TABLE).stat().st_size > 40_000 > (out / REPORT).stat().st_size > 400


def test_a_forged_delivery_is_refused_and_not_kept(net: Network, tmp_path: Path) -> None:
    """A coordinator that delivers another table than was computed is found out by every party."""
    forged = tmp_path / "forged"
    forged.mkdir()

    async def deliver_forged() -> None:
        async with Conductor(net.task, net.coordinator, lambda party, turn: None) as conductor:
            await conductor.connect()
            await conductor.submit()
            await conductor.compute()
            await conductor.collect()
            (forged / TABLE).write_text("job,age,transfused,surgery\n" + 'Any,"[0,100)",Y,Knee\n' * 60)
            (forged / REPORT).write_text(f'{{"job_sha256": "{net.bundle.digest.hex()}"}}')
            await conductor.deliver(forged, write_sums(forged, (TABLE, REPORT)))

    async def scenario() -> Problem:
        async with serving(net):
            with pytest.raises(JobFailed) as caught:
                await deliver_forged()
            return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.phase) == ("result-mismatch", "deliver")
    assert all(net.releases(party) == [] for party in PARTIES)
