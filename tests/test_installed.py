"""The wheel, built and installed by this Python, or by each supported one, in an environment of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import bare
from tests.support.commands import listing, simulated
from tests.support.installing import (
    NEEDED,
    ROOT,
    build_wheel,
    copy_of_the_sources,
    environment_of,
    install_locked,
    packages,
    python_of,
    run,
)
from tests.support.samples import PARTIES

pytestmark = pytest.mark.install
VERSIONS = (*NEEDED, "3.14", "3.15")
_THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module", params=VERSIONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the wheel and its locked dependencies; return its folder of programs."""
    version = request.param
    every = request.config.getoption("--every-python")
    if not (every or version == _THIS):
        pytest.skip("another Python: --every-python")
    python = python_of(version)
    if python is None:
        (pytest.fail if version in NEEDED else pytest.skip)(f"Python {version} is not here")
    folder = tmp_path_factory.mktemp(f"python-{version}")
    builder = environment_of(python, folder / "builder")
    wheel = build_wheel(builder, copy_of_the_sources(folder / "source"), folder / "dist")
    empty = environment_of(python, folder / "an empty environment")
    install_locked(empty, ROOT / "requirements.lock")
    pip = (empty, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-index", wheel)  # the lock has all that the wheel says it needs
    return empty.parent


def test_the_demo_runs_where_only_the_wheel_is(installed: Path, tmp_path: Path) -> None:
    """From a folder with foreign modules, which are on PYTHONPATH, too."""
    for name in {*packages(), "yaml"} - {
        "jointcut"
    }:  # the one name by which Python finds what isolates the rest
        (tmp_path / f"{name}.py").write_text("raise SystemExit('foreign')\n")
    done = subprocess.run(
        [installed / "coordinator", "demo", "--out", tmp_path / "out"],
        cwd=tmp_path,
        env={**bare(), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "5919 rows" in done.stdout
    assert listing(tmp_path / "out") == simulated(PARTIES)


def test_both_programs_are_of_this_environment(installed: Path, tmp_path: Path) -> None:
    for program in ("party", "coordinator"):
        done = subprocess.run(
            [installed / program, "--version"],
            cwd=tmp_path,
            env=bare(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.startswith(f"{program}, version ")
    where = run(
        installed / "python", "-P", "-c", "import jointcut, party; print(jointcut.__file__, party.__file__)"
    )
    assert str(ROOT) not in where


def test_the_guide_installs_from_the_lock(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Word for word, in the home of somebody who has the sources."""
    if not pytestconfig.getoption("--every-python"):
        pytest.skip("installs anew: --every-python")
    guide = (ROOT / "docs" / "guide" / "first-table.md").read_text()
    (shown,) = [block for block in re.findall(r"```sh\n(.*?)```", guide, re.DOTALL) if "pip install" in block]
    source = copy_of_the_sources(tmp_path / "the source")
    shutil.copy(ROOT / "requirements.lock", source)
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        ["/bin/bash", "-euc", shown],
        cwd=source,
        env={**bare(), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "5919 rows" in done.stdout
