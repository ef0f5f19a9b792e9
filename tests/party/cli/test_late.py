"""Modules that commands do not need are not imported; help texts before an import are those after it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import coordinator.cli
import party.cli.commands
from party.cli.late import Late
from tests.support.bare import bare

GUARD_S = 60
JOB = Path(__file__).resolve().parents[3] / "examples" / "discharges" / "job.yaml"
COMMANDS = {"coordinator": coordinator.cli, "party": party.cli.commands}

IMPORTED = """
import sys
from jointcut import isolated
sys.argv = ["", *sys.argv[1:]]
try:
    isolated.run()
except SystemExit as ended:
    assert not ended.code
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
READ = {
    "numpy",
    "pydantic",
    "yaml",
    "jobs.file.job",
    "jobs.loading",
    "cryptography",
    "asyncio",
}
"""Modules that read a job, or a configuration."""
RUN = {
    *("pandas", "pyarrow", "grpc", "rich", "sklearn", "crypto.paillier"),
    *("jinja2", "starlette", "uvicorn"),
    *("jobs.lkc.run", "jobs.lkc.kd.run"),
    *("jobs.dp.single", "jobs.dp.run", "jobs.sequences.run", "jobs.sequences.verify", "jobs.synthetic.run"),
    *("anonymize.joint.lkc.sealed", "anonymize.joint.kd.sealed", "anonymize.joint.trajectory.sealed"),
}
"""Modules that read tables, run, verify or connect."""


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        capture_output=True,
        text=True,
        env=bare(),
        timeout=GUARD_S,
        check=True,
    )
    assert done.stdout
    return set(done.stderr.splitlines())


@pytest.mark.parametrize("program", COMMANDS)
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_a_list_of_commands_imports_none_of_them(program: str, option: str) -> None:
    found = imported_by(program, option)
    assert "click" in found
    assert found & (READ | RUN) == set()


def test_whoever_validates_a_job_imports_nothing_that_reads_or_runs() -> None:
    found = imported_by("coordinator", "validate", str(JOB))
    assert "jobs.loading" in found
    assert found & RUN == set()


def test_a_daemon_that_starts_imports_nothing_that_reads_tables_or_runs() -> None:
    importing = "import sys, party.cli.serve; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", importing],
        capture_output=True,
        text=True,
        env=bare(),
        timeout=GUARD_S,
        check=True,
    )
    found = set(done.stdout.splitlines())
    assert "party.daemon" in found
    assert found & (RUN - {"grpc"}) == set()


@pytest.mark.parametrize("program", COMMANDS)
def test_the_list_of_commands_says_of_each_what_its_own_help_says_first(program: str) -> None:
    listed = COMMANDS[program].COMMANDS
    assert {late.name: late for late in listed} == COMMANDS[program].app.commands
    for late in listed:
        assert isinstance(late, Late)
        assert (late.command.name, late.command.get_short_help_str(200)) == (late.name, late.help)


def leaves(command: click.Command) -> Iterator[click.Command]:
    """Yield the commands below a group."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from leaves(each)
    else:
        yield command


@pytest.mark.parametrize("program", COMMANDS)
def test_every_command_answers_programs_in_json(program: str) -> None:
    found = [each for late in COMMANDS[program].COMMANDS for each in leaves(late.command)]
    assert found
    without = [each.name for each in found if not any("--format" in param.opts for param in each.params)]
    assert without == []


def test_a_command_is_called_with_all_that_is_its_own() -> None:
    group = click.Group(commands={"dumps": Late("dumps", f"{__name__}:told", "Tell.")})
    with pytest.raises(SystemExit):
        group.main(["dumps", "--what", "x", "y"])
    assert told.params[0].name == "what"
    assert json.loads(SAID[-1]) == ["x", "y"]


SAID: list[str] = []


@click.command()
@click.option("--what")
@click.argument("whom")
def told(what: str, whom: str) -> None:
    SAID.append(json.dumps([what, whom]))
