"""Nothing but what is installed is what runs, wherever a program is started and whatever Python is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.release.csv import REPORT
from jointcut import launcher
from tests.support import jobs
from tests.support.bare import bare
from tests.support.commands import Ran, listing, simulated
from tests.support.joint import sample_rows
from tests.support.network import GUARD_S, write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job

HOSTILE = ("anonymize", "click", "coordinator", "crypto", "numpy", "party", "protos", "yaml")
SCRIPTS = Path(sys.executable).parent
SETTINGS = {
    "PYTHONSAFEPATH": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONWARNINGS": "error",
    "PYTHONIOENCODING": "ascii",
    "PYTHONUTF8": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONINSPECT": "1",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of modules with the names of ours and of what we import; each says so and ends the process."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"import os\nprint('hostile {name}', flush=True)\nos._exit(77)\n")
    return folder


def script(program: str, *arguments: str | Path, cwd: Path, **environ: str) -> Ran:
    """Run an installed console script."""
    done = subprocess.run(
        [SCRIPTS / program, *map(str, arguments)],
        cwd=cwd,
        env={**bare(), **environ},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=2 * GUARD_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def test_foreign_modules_do_end_a_process_that_finds_them(hostile: Path) -> None:
    """The other tests rely on this."""
    command = [sys.executable, "-c", "import crypto"]
    done = subprocess.run(command, cwd=hostile, env=bare(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (77, b"hostile crypto\n")


@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["bare", "settings"])
def test_foreign_modules_break_nothing(hostile: Path, settings: dict[str, str]) -> None:
    """Neither in the current folder nor on PYTHONPATH."""
    environ = {**settings, "PYTHONPATH": str(hostile)}
    for program in ("party", "coordinator"):
        ran = script(program, "--version", cwd=hostile, **environ)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"{program}, version ")


@pytest.mark.more
def test_daemons_run_where_foreign_modules_are(hostile: Path, tmp_path: Path) -> None:
    rows = sample_rows(60)
    tables = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::3], COLUMNS)}"
        for i, name in enumerate(PARTIES)
    ]
    job = write_job(tmp_path / "job", joint_job())
    before = listing(hostile)
    out = tmp_path / "out"
    ran = script("coordinator", "simulate", job, *tables, "--out", out, cwd=hostile, PYTHONPATH=str(hostile))
    assert ran.code == 0, ran.err
    assert listing(out) == simulated(PARTIES)
    assert json.loads((out / REPORT).read_text())["rows"] == 60
    assert listing(hostile) == before


@pytest.mark.parametrize("program", ["party", "coordinator"])
def test_a_package_is_no_program(program: str, tmp_path: Path) -> None:
    """`python -m party` would take a `party.py` of the current folder before it is isolated, so there is none."""
    command = [sys.executable, "-m", program, "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=bare(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"'{program}' is a package and cannot be directly executed" in done.stderr


def test_the_programs_run_isolated_and_in_utf_8() -> None:
    """Look at what the flags of the command mean to Python itself."""
    flags = launcher.command("party")[1:-2]
    shown = "import sys; print(sys.flags.ignore_environment, sys.flags.safe_path, sys.flags.utf8_mode)"
    done = subprocess.run(
        [sys.executable, *flags, "-c", shown],
        env={**bare(), **SETTINGS},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 True 1\n"


@pytest.mark.parametrize("start", [launcher.party, launcher.coordinator])
def test_windows_is_refused_in_one_sentence(
    start: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "execv", lambda *given: started.append(given))
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 2
    assert started == []
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: usage: Jointcut runs on Linux and macOS; Windows is not supported yet\n"


@pytest.mark.parametrize("program", ["party", "coordinator"])
def test_a_script_becomes_its_program(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process: a service manager signals the one it started."""
    started: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: started.append((path, arguments)))
    monkeypatch.setattr(sys, "argv", ["/somewhere/script", "serve", "--config", "a b.yaml"])
    getattr(launcher, program)()
    expected = [*launcher.command(program), "serve", "--config", "a b.yaml"]
    assert started == [(sys.executable, expected)]
