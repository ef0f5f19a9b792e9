"""Processes of our programs that tests fork are like processes that execute the same command."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jointcut import launcher
from tests.support.bare import bare
from tests.support.forked import EXECUTED, forker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the processes that are forked."""
    found: list[int] = []
    fork = forker().fork

    def noted(command: Mapping[str, Any], streams: Sequence[int]) -> int:
        found.append(fork(command, streams))
        return found[-1]

    monkeypatch.setattr(forker(), "fork", noted)
    return found


def ended(words: list[str], folder: Path, **how: Any) -> tuple[int, str, str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=bare(), cwd=folder, **how)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("party", ["--version"]),
        ("party", ["peers", "--config", "nowhere.yaml"]),
        ("coordinator", ["validate", "nowhere.yaml", "--format", "json"]),
        ("coordinator", ["no-such-command"]),
    ],
    ids=lambda words: words[0],
)
def test_it_ends_as_an_executed_one(
    tmp_path: Path, forked: list[int], program: str, arguments: list[str]
) -> None:
    words = [*launcher.command(program), *arguments]
    found = ended(words, tmp_path)
    assert len(forked) == 1
    assert found == ended(words, tmp_path, start_new_session=True)
    assert len(forked) == 1


def test_it_is_a_child_with_the_folder_and_the_limits_of_its_parent(
    tmp_path: Path, forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    init = [*launcher.command("party"), "init", "--name", "a", "--dir", "made", "--data", "table.csv"]
    monkeypatch.chdir(tmp_path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        with subprocess.Popen(init, stdout=subprocess.DEVNULL) as process:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            limits = Path(f"/proc/{process.pid}/limits").read_text()
            parent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (forked, process.returncode) == ([process.pid], 0)
    assert int(parent) == os.getpid()
    assert ["Max", "open", "files", "200"] in [line.split()[:4] for line in limits.splitlines()]
    assert (tmp_path / "made" / "party.yaml").stat().st_mode & 0o077 == 0


def test_tests_of_the_start_execute_their_commands() -> None:
    tests = Path(__file__).parent
    assert [name for name in EXECUTED if not (tests / name).exists()] == []
