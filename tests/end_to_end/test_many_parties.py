"""Five parties: connections follow the compute pair, and the result is that of one process without a network."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from coordinator.run import conduct, run_in_process
from jobs.data.sources import Csv
from jobs.loading import open_task
from tests.support import five, jobs
from tests.support.duplex import run
from tests.support.five import DEPUTY, LEADER, PARTIES, Counting
from tests.support.network import Network, network, released, report_of, serving

LKC = {"lkc": {"L": "2", "K": "2", "C": "0.8"}}
ALL = {"lkc": {"L": "all", "K": "2", "C": "0.8"}}


def pairs_with(*names: str) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in itertools.combinations(PARTIES, 2) if set(pair) & set(names)}


def ran(folder: Path, fields: dict[str, Any]) -> tuple[Counting, Network]:
    """Run a job with daemons that count their calls, and in one process; the results are the same."""
    bundle, counting = jobs.bundle_of(fields), Counting()
    tables = five.tables(folder / "tables", bundle)
    net = network(folder / "net", bundle, tables)

    async def scenario() -> None:
        async with serving(net, counting.everywhere(bundle)):
            await conduct(net.task, net.coordinator, folder / "daemons")

    run(scenario())
    sources = {name: Csv(path) for name, path in tables.items()}
    run_in_process(open_task(bundle), sources, folder / "process")
    assert released(folder / "daemons", bundle) == released(folder / "process", bundle)
    daemons, process = report_of(folder / "daemons"), report_of(folder / "process")
    for key in ("cut", "metrics", "rows"):
        assert daemons.get(key) == process.get(key)
    return counting, net


@pytest.mark.by_lot(1)
@pytest.mark.parametrize(
    "fields",
    [
        five.horizontal(),
        five.horizontal(disclosure="sealed"),
        five.horizontal(disclosure="strict"),
        five.horizontal(disclosure="sealed", method="kd", goal="general", model=ALL),
    ],
    ids=["leader", "sealed", "strict", "kd"],
)
def test_links_of_horizontal_jobs(tmp_path: Path, fields: dict[str, Any]) -> None:
    counting, _ = ran(tmp_path, fields)
    assert counting.links == pairs_with(LEADER, DEPUTY)
    assert len(counting.links) == 2 * (len(PARTIES) - 2) + 1


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("disclosure", ["sealed", "leader"])
def test_links_of_vertical_jobs(tmp_path: Path, disclosure: str) -> None:
    """Matching goes through the pair; only who tests candidates against a sensitive column has a link of its own."""
    counting, net = ran(tmp_path, five.vertical(disclosure=disclosure, model=LKC))
    assert counting.links == pairs_with(LEADER, net.bundle.job.deputy_name, "p4")


def test_a_holder_in_the_pair_needs_no_further_link(tmp_path: Path) -> None:
    counting, _ = ran(tmp_path, five.vertical(disclosure="leader", model=LKC, deputy="p4"))
    assert counting.links == pairs_with(LEADER, "p4")
    assert len(counting.links) == 2 * (len(PARTIES) - 2) + 1
