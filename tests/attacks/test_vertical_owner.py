"""An owner of a vertical run that takes its candidates for valid without a test, to learn another party's column.

Every other party tests what T_g shows of a candidate as soon as it is applied, and before its own columns leave it;
and none leave before all parties have the same T_g. So nothing of a column is given away by a cell that is too small.
"""

from __future__ import annotations

import asyncio
import csv
import io
import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.cut import Candidate
from anonymize.joint.lkc.validity import Validity
from anonymize.tds import Observer
from coordinator.conduct import Conductor
from crypto.errors import RemoteProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds
from jobs.data.sources import Csv
from jobs.errors import JobFailed, PartyError
from jobs.lkc.parts import COLUMNS, PARTS
from jobs.lkc.result import LkcResult
from jobs.modes import protocol_of
from jobs.owner.account import Unaccounted
from jobs.task import Task
from tests.support import jobs
from tests.support.lkc_runs import LkcRun
from tests.support.network import network, serving
from tests.support.rng import SeededRng
from tests.support.samples import vertical_job

LOAN, BANK, SHOP = "loan", "bank", "shop"
HELD = {LOAN: ("account",), BANK: ("age", "surgery"), SHOP: ("town",)}

Rows = list[dict[str, str]]


def job(parties: tuple[str, ...], *, insider: bool = False, **bounds: str) -> Task:
    """The loan company's column tells every person apart."""
    fields = vertical_job(
        model={"lkc": {"L": "2", "K": "10", "C": "0.4"} | bounds},
        insider="true" if insider else None,
        score="infogain",
    )
    described = {
        "patient": {"role": "id"},
        "account": {"role": "qid", "numeric": {"min": "0", "max": "64", "step": "1"}},
        "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}},
        "town": {"role": "qid", "taxonomy": {"Any": {"North": ["a", "b"], "South": ["c", "d"]}}},
        "transfused": {"role": "class", "domain": ["Y", "N"]},
        "surgery": {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], "values": ["Rare"]},
    }
    held = [name for party in parties for name in HELD[party]]
    fields["columns"] = {name: described[name] for name in ("patient", *held, "transfused")}
    fields["parties"] = {
        party: {"address": f"127.0.0.1:740{i}", "columns": list(HELD[party])}
        for i, party in enumerate(parties)
    }
    return jobs.task_of(fields)


def people() -> Rows:
    coins = random.Random(4)  # noqa: S311
    return [
        {
            "patient": f"p{i:03d}",
            "account": str(i),
            "age": str(coins.randrange(100)),
            "town": coins.choice("abcd"),
            "transfused": coins.choice("YN"),
            "surgery": coins.choices(["Heart", "Knee", "Rare"], [5, 5, 2])[0],
        }
        for i in range(60)
    ]


def written(task: Task, folder: Path) -> dict[str, Path]:
    """Each party's columns of all people."""
    return {
        party: jobs.write_csv(
            folder / f"{party}.csv", [{n: row[n] for n in task.held_by(party)} for row in people()]
        )
        for party in task.job.roster
    }


def run(task: Task, folder: Path, tamper: Any = None) -> LkcRun:
    sources = {party: Csv(path) for party, path in written(task, folder).items()}
    tables = {party: task.load(source, party) for party, source in sources.items()}
    results, _ = run_local(
        {me: protocol_of(task, me, tables[me], SeededRng(me), Observer(), Unaccounted()) for me in tables},
        tamper=tamper,
    )
    found = {me: result for me, result in results.items() if isinstance(result, LkcResult)}
    return LkcRun(task, sources, tables, found, None)


@pytest.fixture
def cheating(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loan company finds all its candidates valid, and asks nobody."""
    honest = Validity.is_valid

    def is_valid(self: Validity, candidate: Candidate) -> Rounds[bool]:
        return True if self._me == LOAN else (yield from honest(self, candidate))

    monkeypatch.setattr(Validity, "is_valid", is_valid)


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No party tests what another one applied."""
    monkeypatch.setattr(Validity, "require", lambda *_: None)


def certain(run: LkcRun) -> int:
    """Of how many people the bank's columns tell the surgery, to who knows all that is public of them."""
    table = run.results[BANK].generalized
    lines = csv.DictReader(io.StringIO(run.part(COLUMNS, BANK).decode()))
    inside = defaultdict(list)
    for cell, line in zip(np.repeat(np.arange(table.n_entries), table.count), lines, strict=True):
        inside[cell].append(line["surgery"])
    return sum(len(values) for values in inside.values() if len(set(values)) == 1)


BOUNDS: Mapping[str, dict[str, Any]] = {
    "K": {"C": "1"},
    "C": {"K": "1"},
    "K and C": {},
    "insider": {"K": "1", "L": "1", "insider": True},
}


@pytest.mark.some(3)
@pytest.mark.parametrize("parties", [(LOAN, BANK), (LOAN, SHOP, BANK)], ids=len)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.usefixtures("cheating")
def test_it_is_named_at_the_first_candidate_that_is_not_valid(
    bounds: str, parties: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(RemoteProtocolError, match="applied that is not valid") as caught:
        run(job(parties, **BOUNDS[bounds]), tmp_path)
    assert caught.value.culprit == LOAN


@pytest.mark.usefixtures("cheating")
def test_a_party_that_holds_nothing_sensitive_tests_sizes(tmp_path: Path) -> None:
    """Told to nobody else: the bank believes the loan company, the shop does not."""
    honest, seen = Validity.require, []

    def require(self: Validity, candidate: Candidate, counts: Any) -> None:
        if self._me == SHOP:
            seen.append(candidate)
            honest(self, candidate, counts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Validity, "require", require)
        with pytest.raises(RemoteProtocolError) as caught:
            run(job((LOAN, SHOP, BANK), C="1"), tmp_path)
    assert caught.value.culprit == LOAN
    assert seen


def test_what_honest_parties_give_away(tmp_path: Path) -> None:
    assert certain(run(job((LOAN, BANK)), tmp_path)) == 0


@pytest.mark.usefixtures("cheating", "believed")
def test_columns_are_verified_once_more_before_they_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By other code, on what is sent: were all else to fail, many values would be certain."""
    made = run(job((LOAN, BANK)), tmp_path)
    with pytest.raises(PartyError, match="violates") as caught:
        made.part(COLUMNS, BANK)
    assert caught.value.problem.error_id == "verification-failed"
    monkeypatch.setattr("jobs.lkc.parts.require_verified", lambda *_, **__: None)
    assert certain(made) > 10


async def conducted(task: Task, folder: Path) -> None:
    """Have daemons run the job."""
    net = network(folder / "net", task.bundle, written(task, folder))
    async with serving(net), Conductor(task, net.coordinator, lambda *_: None) as conductor:
        await conductor.connect()
        await conductor.submit()
        await conductor.compute()
        await conductor.collect()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the parties that made their columns, to send them."""
    made: list[str] = []
    columns = PARTS[COLUMNS]

    def noted(task: Task, me: str, *rest: Any) -> bytes:
        made.append(me)
        return columns(task, me, *rest)

    monkeypatch.setitem(PARTS, COLUMNS, noted)
    return made


def test_columns_leave_honest_daemons(tmp_path: Path, made: list[str]) -> None:
    asyncio.run(conducted(job((LOAN, BANK)), tmp_path))
    assert made == [BANK]


@pytest.mark.usefixtures("cheating")
def test_no_columns_leave_a_daemon(tmp_path: Path, made: list[str]) -> None:
    with pytest.raises(JobFailed) as caught:
        asyncio.run(conducted(job((LOAN, BANK)), tmp_path))
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.about) == ("peer-protocol", BANK, LOAN)
    assert made == []
