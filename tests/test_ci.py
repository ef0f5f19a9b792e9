"""`.ci/run` and `make` give their programs the environment of a machine that is not ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.bare import bare
from tests.support.installing import NEEDED

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
# As `make` it makes an environment with a Python that does the same.
# The folder in memory, which has another name each time, is noted apart.
RECORDER = """#!/bin/sh
said=$(echo "$*" | sed 's| --basetemp=[^ ]*$||')
echo "$*" | sed -n 's|.* --basetemp=\\(/dev/shm/[^ ]*\\)/suite$|\\1|p' >> "$HOME/memory"
noted=$(
    echo "arguments $(basename "$0") $said"
    echo "folder $PWD"
    env | cut -d= -f1 | sed 's/^/name /'
    ls .. | sed 's/^/beside /'
)
echo "$noted" >> "$HOME/calls"  # at once: two stages may run
echo "says $said"
if [ "$(basename "$0")" = make ]; then
    mkdir -p .venv/bin
    cp "$0" .venv/bin/python
fi
if [ "$said" = "$(cat "$HOME/fails")" ]; then exit 3; fi
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
    """Return what the recorders noted, in order."""
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
    user_is(home, 1000)
    return home


def user_is(home: Path, number: int) -> None:
    """Let `id -u` say a number; 0 is root."""
    path = home.parent / "bin" / "id"
    path.write_text(f"#!/bin/sh\necho {number}\n")
    path.chmod(0o755)


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


_DEBIAN = "/usr/bin/python3"
_WORKS = "import ensurepip, sys; assert sys.version_info >= (3, 11)"


def _interpreter() -> str:
    """Return Debian's Python where it makes environments, else the one of PATH."""
    works = (
        Path(_DEBIAN).exists()
        and not subprocess.run([_DEBIAN, "-c", _WORKS], check=False, stderr=subprocess.DEVNULL).returncode
    )
    return _DEBIAN if works else "python3"


STAGES = {
    "demo": "make demo",
    "tools": f"make .venv/.dev PYTHON={_interpreter()}",
    "wheel": "python -m pytest -m install tests/test_installed.py",
    "collect": "python -m pytest --collect-only -qqq",
    "check": "make check",
    "route": "python -m benchmarks.route",
    "mutants": "python -m tests.mutants --drawn",
    "suite": "make test FLAGS=--durations=100 --durations-min=0.5 --drawn-more 16",
}


BESIDE = {"demo", "wheel", "collect"}
"""Stages that run beside the next ones: their calls may come among the calls of the next ones."""


def others(made: list[str]) -> list[str]:
    """Return the calls of the other stages."""
    return [command for command in made if command not in {STAGES[stage] for stage in BESIDE}]


def arguments(stage: str) -> str:
    """Return a stage's command without the program."""
    return STAGES[stage].partition(" ")[2]


def test_ci_runs_everything_in_a_bare_environment_and_a_fresh_clone(checkout: Path, home: Path) -> None:
    (checkout / "not committed").touch()
    done = ci(checkout, home)
    assert (done.returncode, done.stderr) == (0, "")
    made = calls(home)
    assert sorted(call.arguments for call in made) == sorted(STAGES.values())
    assert others([call.arguments for call in made]) == others(list(STAGES.values()))
    for call in made:
        assert {"PATH", "HOME", "LANG"} <= call.names <= {"PATH", "HOME", "LANG"} | BY_BASH
        assert call.folder != checkout
        assert " " in str(call.folder)
        assert not str(call.folder).isascii()
        assert call.beside == {"jointcut"} | ({"shared"} if call.arguments != STAGES["demo"] else set())
        assert not call.folder.exists()


def test_the_suite_keeps_its_files_in_memory_and_leaves_none(checkout: Path, home: Path) -> None:
    ci(checkout, home)
    places = (home / "memory").read_text().split()
    assert len(places) <= 1  # none where too little is free
    assert not any(Path(place).exists() for place in places)


def test_ci_tells_the_time_of_each_stage_and_ends_with_what_the_suite_says(
    checkout: Path, home: Path
) -> None:
    lines = ci(checkout, home).stdout.splitlines()
    times = [re.fullmatch(r" +[0-9]+ s  ([a-z]+)", line) for line in lines]
    assert sorted(found[1] for found in times if found) == sorted(["packages", *STAGES][:-1])
    assert lines[-1] == f"says {arguments('suite')}"


def test_root_installs_the_packages_that_tests_need(checkout: Path, home: Path) -> None:
    user_is(home, 0)
    recorder(home.parent / "bin" / "apt-get")
    done = ci(checkout, home)
    assert (done.returncode, done.stderr) == (0, "")
    first = calls(home)[0].arguments.split()
    assert first[:2] == ["apt-get", "install"]
    java = [] if shutil.which("java") else ["default-jre-headless"]
    assert first[first.index("chromium") :] == [
        "chromium",
        "chromium-driver",
        "postgresql",
        "tinyproxy",
        *java,
    ]


@pytest.mark.parametrize("stage", STAGES)
def test_ci_ends_with_the_first_failure_and_names_it(checkout: Path, home: Path, stage: str) -> None:
    (home / "fails").write_text(arguments(stage))
    done = ci(checkout, home)
    assert done.returncode == 3
    made = [call.arguments for call in calls(home)]
    expected = others(list(STAGES.values()))
    if stage in BESIDE:  # with the stage beside it that ends next
        assert others(made) == expected[: len(others(made))]
        assert STAGES["suite"] not in made
    else:
        assert others(made) == expected[: expected.index(STAGES[stage]) + 1]
    assert STAGES[stage] in made
    said, last = done.stdout.split(f"== {stage} failed with 3 after ")
    assert f"says {arguments(stage)}" in said
    assert last.splitlines()[-1] == f"says {arguments(stage)}"


def beside_the_checks(home: Path, stage: str, goes_on: str, checks: str) -> None:
    """Let the checks wait until another stage has begun. Both are shell commands."""
    begun = f'if [ "$*" = "{arguments(stage)}" ]; then echo $$ > "$HOME/begun"; {goes_on}; fi\n'
    check = f'if [ "$*" = check ]; then until [ -s "$HOME/begun" ]; do sleep 0.05; done; {checks}; fi\n'
    (home.parent / "bin" / "make").write_text(RECORDER + begun + check)


def test_a_stage_beside_the_others_that_has_failed_ends_the_next(checkout: Path, home: Path) -> None:
    """Not only when its turn has come, minutes later."""
    beside_the_checks(home, "collect", "exit 3", "sleep 1")
    done = ci(checkout, home)
    assert done.returncode == 3
    assert "== collect failed with 3 after " in done.stdout
    assert STAGES["mutants"] not in [call.arguments for call in calls(home)]


def test_a_failure_ends_the_stage_beside_it(checkout: Path, home: Path) -> None:
    """The wheel, which would be installed for minutes, is ended when the checks fail."""
    beside_the_checks(home, "wheel", "exec sleep 300", "exit 3")
    done = ci(checkout, home)
    assert done.returncode == 3
    assert "== check failed with 3 after " in done.stdout
    assert "== wheel" not in done.stdout
    with pytest.raises(ProcessLookupError):
        os.kill(int((home / "begun").read_text()), 0)


def test_ci_copes_with_what_git_does_not_clone(checkout: Path, home: Path) -> None:
    shutil.rmtree(checkout / ".git")
    (checkout / ".venv").mkdir()
    done = ci(checkout, home)
    assert done.returncode == 0
    assert "git refuses to clone" in done.stdout
    assert sorted(call.arguments for call in calls(home)) == sorted(STAGES.values())


def workflow(name: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the jobs of a workflow, and the commands of each."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]
    return jobs, {key: [step["run"] for step in job["steps"] if "run" in step] for key, job in jobs.items()}


OWNED = 'git config --global --add safe.directory "$GITHUB_WORKSPACE"'


def test_what_github_runs_is_what_this_tests() -> None:
    jobs, runs = workflow("ci.yml")
    assert runs == {"linux": [OWNED, ".ci/run"], "macos": ["make demo test"]}
    image = jobs["linux"]["container"]["image"]
    assert image == f"python:{NEEDED[0]}-bookworm"  # there, root installs packages
    assert jobs["macos"]["strategy"]["matrix"]["python"] == list(NEEDED)


def test_each_night_github_runs_what_is_drawn_by_lot() -> None:
    """The container has the packages that `.ci/run` installs."""
    jobs, runs = workflow("nightly.yml")
    owned, packages, *rest = runs["linux"]
    assert (owned, rest) == (OWNED, ['make test FLAGS="--lot 1"', ".venv/bin/python -m tests.mutants"])
    assert jobs["linux"]["container"] == workflow("ci.yml")[0]["linux"]["container"]
    needed = set(re.findall(r"(?:recommends|words) ([a-z -]+)\"", (ROOT / ".ci" / "run").read_text()))
    assert needed
    assert set(" ".join(needed).split()) <= set(packages.split())


def test_the_packages_of_developers_are_those_that_run_and_more() -> None:
    """`.venv/.dev` installs one lock file."""
    run, dev = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert run
    assert run < dev


def test_there_are_ten_targets_each_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    explained = re.findall(r"^([a-z-]+):.*## [a-z]", makefile, re.MULTILINE)
    (declared,) = re.findall(r"^\.PHONY: help (.*)$", makefile, re.MULTILINE)
    assert declared.split() == explained
    assert len(explained) == 10


def test_commands_that_contributing_shows_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)", text)) <= targets
    modules = set(re.findall(r"python -m ((?:tests|benchmarks)[a-z_.]*)", text))
    assert len(modules) > 4
    for path in (ROOT / module.replace(".", "/") for module in modules):
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), path
    assert {"packages", *STAGES} == set(
        re.findall(r"^\| ([a-z]+) \| .*\|$", text.split("## When")[1], re.MULTILINE)
    ) - {"stage"}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment for `make` whose programs note how they are called."""
    environment = tmp_path / "environment"
    for program in ("python", "pip", "ruff", "mypy"):
        recorder(environment / "bin" / program)
    for stamp in (".run", ".dev"):
        (environment / stamp).touch()
    return environment


def made(target: str, environment: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-s", target, f"VENV={environment}"],  # noqa: S607  whichever make is here
        cwd=ROOT,
        env={**OURS, "PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("target", ["test", "test-fast", "test-all", "check"])
def test_make_hides_what_the_shell_tells_python(environment: Path, home: Path, target: str) -> None:
    """The suite itself runs without PYTHON* variables."""
    assert made(target, environment, home).returncode == 0
    assert calls(home)
    assert not [name for call in calls(home) for name in call.names if name.startswith("PYTHON")]


def test_a_part_of_test_all_that_fails_keeps_no_other_from_running(environment: Path, home: Path) -> None:
    made("test-all", environment, home)
    parts = [call.arguments for call in calls(home)]
    assert len(parts) == 7
    (home / "calls").unlink()
    (home / "fails").write_text(parts[2].removeprefix("python "))
    done = made("test-all", environment, home)
    assert done.returncode != 0
    assert "all-mutants" in done.stderr
    assert [call.arguments for call in calls(home)] == parts


def test_no_test_hands_on_what_the_shell_tells_python() -> None:
    """The processes that tests start inherit what this one has left."""
    assert not [name for name in os.environ if name.startswith("PYTHON")]


@pytest.fixture
def committing(tmp_path: Path) -> Path:
    """Return a repository that has the hook of CONTRIBUTING installed as CONTRIBUTING says."""
    folder = tmp_path / "a repository"
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "commit-msg", folder / ".ci")
    subprocess.run([str(shutil.which("git")), "init", "--quiet", folder], check=True)
    (install,) = (
        line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if line.startswith("ln -s ")
    )
    subprocess.run(install.split("#")[0].split(), cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("subject", "refused"),
    [
        ("jobs: move C into an option", None),
        ("jobs/lkc, crypto: add " + "ä" * 50, None),
        ("jobs: " + "a" * 67, "the subject has 73 characters, and 72 is the limit"),
        ("Move C into an option", "the subject has no area before a colon, or no words after it"),
        ("jobs:", "the subject has no area before a colon, or no words after it"),
        ("jobs: Move C", "the word after the area begins with a capital letter"),
        ("jobs: 3 options move", "after the area come one blank and a verb"),
        ("jobs:  move C", "after the area come one blank and a verb"),
        ("jobs: move", "the subject has a single word after the area: name the thing, too"),
        ("jobs: what C is moves into an option", "'what' is no verb"),
        ("Revert 'jobs: move C into an option, and everything else that has been said before'", None),
    ],
)
def test_subjects_of_commits(subject: str, refused: str | None, committing: Path) -> None:
    """git refuses a commit through the hook, and says what to write."""
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    words = ["git", *who, "commit", "--allow-empty", "--quiet", "-m", subject, "-m", "the reason"]
    done = subprocess.run(words, cwd=committing, capture_output=True, text=True, check=False, env=bare())
    if refused is None:
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        told, shown, remedy = done.stderr.splitlines()
        assert (told, shown) == (f"commit refused: {refused}", f"  {subject}")
        assert remedy.startswith("write: area: verb the thing")


def test_no_installation_leaves_a_cache() -> None:
    """Each installation left 2 GB in the cache of uv: the disk was full after sixty runs."""
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "uv pip install" in line]
    assert installs
    assert all(" --no-cache " in line for line in installs)
