"""`.ci/run` and `make` give their programs the environment of a machine that is not ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.bare import bare

ROOT = Path(__file__).resolve().parent.parent
OURS = {
    "PYTHONUNBUFFERED": "1",
    "PYTHONPATH": "/somewhere",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_CERT": "x",
    "CI": "true",
}
BY_BASH = {"PWD", "OLDPWD", "SHLVL", "_"}
# Stands for a program: notes what it is called with, where, its environment, and what lies beside the folder.
RECORDER = """#!/bin/sh
{
    echo "arguments $*"
    echo "folder $PWD"
    env | cut -d= -f1 | sed 's/^/name /'
    ls .. | sed 's/^/beside /'
} >> "$HOME/calls"
if [ "$*" = "$(cat "$HOME/fails")" ]; then exit 3; fi
"""


@dataclass(frozen=True)
class Call:
    """One call of a program that was noted."""

    arguments: str
    folder: Path
    names: set[str]
    beside: set[str]


def recorder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RECORDER)
    path.chmod(0o755)


def calls(home: Path) -> list[Call]:
    """What the recorders noted, in order."""
    noted = (home / "calls").read_text().split("arguments ")[1:]
    found = []
    for arguments, *lines in (text.splitlines() for text in noted):
        words = [line.split(" ", 1) for line in lines]
        of = {kind: {word for key, word in words if key == kind} for kind in ("folder", "name", "beside")}
        found.append(Call(arguments, Path(*of["folder"]), of["name"], of["beside"]))
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "fails").write_text("nothing")
    recorder(tmp_path / "bin" / "make")
    return home


@pytest.fixture
def checkout(tmp_path: Path, home: Path) -> Path:
    """A repository with nothing but the script, and the shared folder beside it."""
    folder = tmp_path / "work" / "checkout"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    (tmp_path / "work" / "shared").mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True, env=bare() | {"HOME": str(home)})
    return folder


def ci(checkout: Path, home: Path) -> subprocess.CompletedProcess[str]:
    path = f"{home.parent / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", ".ci/run"],  # noqa: S607  as it is called
        cwd=checkout,
        env={**OURS, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )


TARGETS = [
    "demo",
    "lint",
    "test-mutants",
    "test-install INSTALL=--every-python",
    "test FLAGS=--hypothesis-profile=repeatable",
]


def test_ci_runs_everything_in_a_bare_environment_and_a_fresh_clone(checkout: Path, home: Path) -> None:
    (checkout / "not committed").touch()
    done = ci(checkout, home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = calls(home)
    assert [call.arguments for call in made] == TARGETS
    for call in made:
        assert {"PATH", "HOME", "LANG"} <= call.names <= {"PATH", "HOME", "LANG"} | BY_BASH
        assert call.folder != checkout
        assert " " in str(call.folder)
        assert not str(call.folder).isascii()
        assert call.beside == {"jointcut", "shared"}
        assert not call.folder.exists()


@pytest.mark.parametrize("target", TARGETS)
def test_ci_ends_with_the_first_failure(checkout: Path, home: Path, target: str) -> None:
    (home / "fails").write_text(target)
    assert ci(checkout, home).returncode == 3
    made = [call.arguments for call in calls(home)]
    assert made == TARGETS[: TARGETS.index(target) + 1]


def test_ci_copes_with_what_git_does_not_clone(checkout: Path, home: Path) -> None:
    shutil.rmtree(checkout / ".git")
    (checkout / ".venv").mkdir()
    done = ci(checkout, home)
    assert done.returncode == 0
    assert "git refuses to clone" in done.stdout
    assert [call.arguments for call in calls(home)] == TARGETS


@pytest.mark.parametrize("target", ["test", "test-fast", "test-slow", "test-mutants", "lint"])
def test_make_hides_what_the_shell_tells_python(tmp_path: Path, home: Path, target: str) -> None:
    """The suite itself runs without PYTHON* variables."""
    environment = tmp_path / "environment"
    for program in ("python", "pip", "ruff", "mypy"):
        recorder(environment / "bin" / program)
    for stamp in (".run", ".dev"):
        (environment / stamp).touch()
    subprocess.run(
        ["make", "-s", target, f"VENV={environment}"],  # noqa: S607  whichever make is here
        cwd=ROOT,
        env={**OURS, "PATH": os.environ["PATH"], "HOME": str(home)},
        check=True,
        capture_output=True,
    )
    made = calls(home)
    assert made
    assert not [name for call in made for name in call.names if name.startswith("PYTHON")]


def test_no_test_hands_on_what_the_shell_tells_python() -> None:
    """The processes that tests start inherit what this one has left."""
    assert not [name for name in os.environ if name.startswith("PYTHON")]
