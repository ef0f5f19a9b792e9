"""Data that leaves a party: nothing of its raw values, and exactly the reveals its mode lists."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.lkc.scores.rows import SCORES
from anonymize.scores.names import OF_GOAL
from coordinator.run import conduct
from jobs.errors import PartyError
from party.net import control
from party.owner.problems import FOLDER
from tests.support import jobs
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import Network, call, network, processes, serving, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job
from tests.support.saying import saying

A, B, C = PARTIES
CANARIES = ("CANARY-id-4711", "CANARY-extra-4712", "42.4242424", "CANARY-dropped-4713")
"""At B only: an id, a cell of a column that is not in the job, a number, the id of a row that is dropped."""


def tables(folder: Path, bad: dict[str, str] | None = None) -> dict[str, Path]:
    """The sample rows; B's carry the canaries, and one more thing where asked."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{**row, "note": "nothing"} for row in sample_rows(60)]
    mine = rows[1::3]
    mine[0] |= {"patient": CANARIES[0], "note": CANARIES[1]}
    mine[1] |= {"age": CANARIES[2]}
    mine[2] |= {"patient": CANARIES[3], "age": "?"}
    mine[3] |= bad or {}
    names = [*COLUMNS, "note"]
    return {
        A: jobs.write_csv(folder / "a.csv", rows[0::3], names),
        B: jobs.write_csv(folder / "b.csv", mine, names),
        C: jobs.write_csv(folder / "c.csv", rows[2::3], names),
    }


def found(where: bytes) -> list[str]:
    return [canary for canary in CANARIES if canary.encode() in where]


def files_of_others(net: Network, out: Path) -> bytes:
    """Everything in the folders of the other parties, the coordinator and the result."""
    folders = [net.root / A, net.root / C, net.root / "coordinator", out]
    return b"".join(p.read_bytes() for folder in folders for p in folder.rglob("*") if p.is_file())


@pytest.mark.some(1)
@pytest.mark.parametrize("disclosure", ["leader", "sealed"])
def test_no_raw_value_is_in_any_message_log_or_file(
    tmp_path: Path, wire: list[bytes], caplog: pytest.LogCaptureFixture, capsys: Any, disclosure: str
) -> None:
    caplog.set_level(logging.DEBUG)
    net = network(
        tmp_path / "net", jobs.bundle_of(joint_job(disclosure=disclosure)), tables(tmp_path / "data")
    )

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert len(wire) > 50
    assert sum(map(len, wire)) > 1000
    assert found(b"".join(wire)) == []
    assert found(files_of_others(net, tmp_path / "out")) == []
    assert found(caplog.text.encode()) == []
    shown = capsys.readouterr()
    assert found((shown.out + shown.err).encode()) == []
    assert found((tmp_path / "data" / "b.csv").read_bytes()) == list(CANARIES)  # they were there to be found


def test_the_tap_sees_what_it_should(tmp_path: Path, wire: list[bytes]) -> None:
    """With `note` published as it is, its canary does go to the coordinator: the tap would have found it."""
    plain = {**COLUMNS, "note": {"role": "plain"}}
    net = network(tmp_path / "net", jobs.bundle_of(joint_job(columns=plain)), tables(tmp_path / "data"))

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, tmp_path / "out")

    run(scenario())
    assert found(b"".join(wire)) == [CANARIES[1]]
    assert found(files_of_others(net, tmp_path / "out")) == [CANARIES[1]]


BAD = [
    ({"job": CANARIES[1]}, "data-unknown-value"),
    ({"age": CANARIES[1]}, "data-outside-domain"),
    ({"surgery": CANARIES[1]}, "data-unknown-value"),
    ({"transfused": "?"}, "data-missing-value"),
    ({"patient": CANARIES[0]}, "data-duplicate-id"),
]


@pytest.mark.parametrize(("bad", "error_id"), BAD)
def test_an_error_tells_the_others_no_value(
    tmp_path: Path, wire: list[bytes], caplog: pytest.LogCaptureFixture, bad: dict[str, str], error_id: str
) -> None:
    caplog.set_level(logging.DEBUG)
    net = network(tmp_path / "net", jobs.bundle_of(joint_job()), tables(tmp_path / "data", bad))

    async def scenario() -> None:
        async with serving(net):
            with pytest.raises(PartyError) as caught:
                await conduct(net.task, net.coordinator, tmp_path / "out")
            problem = caught.value.problem
            assert (problem.error_id, problem.party, problem.phase) == (error_id, B, "load")
            assert (problem.column, problem.private) == (next(iter(bad)), "")
            said = json.dumps(problem.shared())
            assert found(said.encode()) == []
            assert not any(character.isdigit() for character in problem.message)  # no row, no count

    run(scenario())
    assert wire
    assert found(b"".join(wire)) == []
    assert found(caplog.text.encode()) == []
    assert found(files_of_others(net, tmp_path)) == [] or not (tmp_path / "out").exists()


def test_real_daemons_write_no_raw_value_anywhere(tmp_path: Path) -> None:
    """The same with processes, and a failing job before: standard streams, logs, states, results."""
    job = write_job(tmp_path / "job", joint_job())
    net = network(tmp_path / "net", jobs.bundle_of(joint_job()), tables(tmp_path / "data"))
    good = (tmp_path / "data" / "b.csv").read_bytes()
    tables(tmp_path / "data", {"job": CANARIES[1]})
    run_it = (
        "run",
        job,
        "--config",
        net.config_path("coordinator"),
        "--out",
        tmp_path / "out",
        "--format",
        "json",
    )
    with processes(net) as daemons:
        failed = call(*run_it)
        (tmp_path / "data" / "b.csv").write_bytes(good)
        done = call(*run_it)
        logs = "".join(daemons.log(party) for party in PARTIES)
    assert (failed.code, failed.problem["party"], failed.problem["error"]) == (7, B, "data-unknown-value")
    assert done.code == 0
    assert "data-unknown-value" in logs
    for text in (failed.out, failed.err, done.out, done.err, logs):
        assert found(text.encode()) == []
    assert found(files_of_others(net, tmp_path / "out")) == []
    problems = net.config(B).state_dir / FOLDER
    mine = [p for p in (net.root / B).rglob("*") if p.is_file() and p.parent != problems]
    assert found(b"".join(p.read_bytes() for p in mine)) == []
    (kept,) = problems.iterdir()  # for the owner alone, who has to find the value
    assert found(kept.read_bytes()) == [CANARIES[1]]
    assert kept.stat().st_mode & 0o777 == 0o600


def ledger_of(folder: Path, **job: str) -> list[dict[str, Any]]:
    """The reveal ledger of a run: the same at every party, and in the report."""
    net = network(folder / "net", jobs.bundle_of(joint_job(**job)), tables(folder / "data"))
    ledgers: dict[str, list[dict[str, Any]]] = {}

    def keep(party: str) -> Callable[[control.Event], list[control.Event]]:
        def change(event: control.Event) -> list[control.Event]:
            if isinstance(event, control.Finished):
                ledgers[party] = json.loads(event.summary)["reveals"]
            return [event]

        return change

    async def scenario() -> None:
        async with serving(net, {party: saying(keep(party)) for party in PARTIES}):
            await conduct(net.task, net.coordinator, folder / "out")

    run(scenario())
    assert ledgers[A] == ledgers[B] == ledgers[C]
    assert json.loads((folder / "out" / "report.json").read_text())["reveals"] == ledgers[A]
    return ledgers[A]


def kinds(ledger: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(reveal["name"], reveal["to"]) for reveal in ledger}


@pytest.mark.parametrize("goal", ["classification", "general"])
def test_a_led_run_reveals_exactly_what_its_mode_lists(tmp_path: Path, goal: str) -> None:
    """semantics §4: no more, no less, and the same at every party."""
    of_score = SCORES[OF_GOAL[goal][0]].reveals.get("horizontal/leader", ())
    allowed = {(a.name, a.to) for a in (*ALLOWED["horizontal/leader"], *of_score)}
    by_child = {("only_child", "all")} if goal == "classification" else set()
    assert kinds(ledger_of(tmp_path, goal=goal)) == allowed - {("only_child", "all")} | by_child


def test_strict_runs_reveal_what_their_mode_lists(tmp_path: Path) -> None:
    allowed = {(a.name, a.to) for a in ALLOWED["horizontal/strict"]} - {("only_child", "all")}
    assert kinds(ledger_of(tmp_path, disclosure="strict")) == allowed  # all children at once: its default


def test_sealed_runs_reveal_what_their_mode_lists(tmp_path: Path) -> None:
    of_score = SCORES["added"].reveals["horizontal/sealed"]
    allowed = {(a.name, a.to) for a in (*ALLOWED["horizontal/sealed"], *of_score)}
    revealed = kinds(ledger_of(tmp_path, disclosure="sealed"))
    assert revealed == allowed
    assert {to for _, to in revealed} == {"all"}
