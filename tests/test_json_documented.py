"""What `--format json` prints is what docs/json.md says: keys are there to be relied on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import coordinator.cli
import party.cli.commands
from coordinator.run import conduct
from party.cli.late import Late
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.joint import sample_rows
from tests.support.network import Network, sample_network, serving, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job

DOCS = Path(__file__).resolve().parents[1] / "docs" / "json.md"
A, B, _ = PARTIES


def documented() -> dict[str, tuple[set[str], set[str], bool]]:
    """By command: keys that are always there, keys that may be, and whether the job adds others."""
    found = {}
    for line in DOCS.read_text().splitlines():
        if line.startswith(("| `party ", "| `coordinator ")):
            commands, always, sometimes = line.strip().strip("|").split("|")
            keys = tuple(set(re.findall(r"`(\w+)`", cell)) for cell in (always, sometimes))
            for command in re.findall(r"`([^`]+)`", commands):
                found[command] = (*keys, "by the job" in sometimes)
    return found


def commands_of(program: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        found = command.command if isinstance(command, Late) else command
        if isinstance(found, click.Group):
            yield from commands_of(f"{program} {name}", found)
        else:
            yield f"{program} {name}", found


def all_commands() -> dict[str, click.Command]:
    programs = {"party": party.cli.commands.app, "coordinator": coordinator.cli.app}
    return {name: each for program, app in programs.items() for name, each in commands_of(program, app)}


def test_every_command_prints_json() -> None:
    found = all_commands()
    assert set(documented()) == set(found)
    for name, command in found.items():
        options = [option for parameter in command.params for option in parameter.opts]
        assert "--format" in options, name


class Printed:
    """A party that took part in a run, its coordinator, and a single holder's run: what their commands print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.net = _after_a_run(folder)
        self.own, self.theirs = self.net.config_path(A), self.net.config_path("coordinator")
        self.job = write_job(folder / "joint", joint_job())
        (folder / "single").mkdir()
        jobs.write_csv(folder / "single" / "table.csv", sample_rows(60), COLUMNS)
        self.single = write_job(folder / "single", single_job(data="table.csv"))

    def of(self, command: str, *arguments: str | Path) -> dict[str, Any]:
        program, *words = command.split()
        ran = invoke(program, *words, *arguments, "--format", "json")
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        assert isinstance(found, dict)
        return found


def _after_a_run(folder: Path) -> Network:
    net = sample_network(folder / "net")

    async def scenario() -> None:
        async with serving(net):
            await conduct(net.task, net.coordinator, folder / "out")

    run(scenario())
    for name in net.roster:
        net.account(name)
    return net


def _calls(at: Printed) -> dict[str, tuple[str | Path, ...]]:
    new = at.folder / "new"
    certificate = new / "p" / "tls" / "certificate.pem"
    config = ("--config", at.own)
    return {
        "party init": ("--name", "p", "--dir", new / "p"),
        "coordinator init": ("--name", "c", "--dir", new / "c"),
        "party peers add": ("p", certificate, *config),
        "party peers list": config,
        "party peers remove": ("p", *config),
        "coordinator peers add": ("p", certificate, "--config", at.theirs),
        "coordinator peers list": ("--config", at.theirs),
        "coordinator peers remove": ("p", "--config", at.theirs),
        "party check": ("--offline", "--job", at.job, *config),
        "party budget": config,
        "party accounts": config,
        "party problems": config,
        "party verify": (at.folder / "out", *config),
        "party opening": (at.job, at.folder / "out", *config),
        "coordinator validate": (at.job,),
        "coordinator verify": (at.job, at.folder / "out", "--config", at.theirs),
        "coordinator run": (at.single, "--out", at.folder / "alone", "--ledger", at.folder / "ledger.sqlite"),
        "coordinator budget": (at.single, "--ledger", at.folder / "ledger.sqlite"),
        "party jobs": config,
        "party audit verify": config,
        "party audit export": config,
        "coordinator roster export": (at.folder / "roster.json", "--config", at.theirs),
        "party renew": config,
        "coordinator renew": ("--config", at.theirs),
    }


NOT_CALLED = {
    "party serve": "tests/party/operations/test_watched.py",
    "party show": "tests/end_to_end/test_approval.py",
    "party approve": "tests/end_to_end/test_approval.py",
    "party deny": "tests/end_to_end/test_approval.py",
    "party web": "tests/party/web",
    "party audit heads": "tests/end_to_end/test_audit.py",
    "coordinator propose": "tests/end_to_end/test_approval.py",
    "coordinator status": "tests/end_to_end/test_approval.py",
    "coordinator relay": "tests/coordinator/test_relay.py",
    "coordinator simulate": "as `coordinator run`",
    "coordinator demo": "as `coordinator run`",
    "coordinator evaluate": "tests/coordinator/evaluation",
    "coordinator clusters fit": "tests/coordinator/evaluation",
    "coordinator clusters evaluate": "tests/coordinator/evaluation",
}


def test_keys_are_those_that_are_documented(tmp_path: Path) -> None:
    at, known = Printed(tmp_path), documented()
    calls = _calls(at)
    wrong = {}
    for command, arguments in calls.items():
        always, sometimes, by_job = known[command]
        printed = set(at.of(command, *arguments))
        if always - printed or (printed - always - sometimes and not by_job):
            wrong[command] = (always - printed, printed - always - sometimes)
    assert wrong == {}


@pytest.mark.parametrize("command", ["coordinator simulate", "coordinator demo"])
def test_what_runs_jobs_prints_what_run_prints(command: str) -> None:
    assert documented()[command] == documented()["coordinator run"]


def test_every_documented_command_is_called_or_known_not_to_be() -> None:
    text = Path(__file__).read_text()
    called = set(re.findall(r'^        "((?:party|coordinator) [^"]*)": ', text, re.MULTILINE))
    assert called | set(NOT_CALLED) == set(documented())


def test_entries_have_the_keys_that_are_documented(tmp_path: Path) -> None:
    at, text = Printed(tmp_path), DOCS.read_text()
    budget = at.of("party budget", "--config", at.own)
    checked = at.of("party check", "--offline", "--config", at.own)
    assert budget["releases"]
    assert checked["checks"]
    for kind, entries in (("`checks` has", checked["checks"]), ("`releases` has", budget["releases"])):
        said = re.search(rf"{kind}\s(.*?)(?:\.|;)\s", text, re.DOTALL)
        assert said is not None
        without = re.sub(r"\([^)]*\)", "", said[1])
        for entry in entries:
            assert set(re.findall(r"`(\w+)`", without)) == set(entry)
