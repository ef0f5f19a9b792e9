"""Building the wheel, and environments of other Pythons to install it into."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.bare import bare

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("3.11", "3.12", "3.13")
"""The Pythons on which every release must run."""

NOT_SHIPPED = {"tests", "benchmarks"}
BESIDE = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "examples")
_PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
_PATIENCE_S = 540


def packages() -> list[str]:
    """The top-level packages that are part of the program."""
    return sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - NOT_SHIPPED)


def copy_of_the_sources(folder: Path) -> Path:
    """Copy what the wheel is made of: building writes into the sources."""
    for name in (*packages(), *BESIDE):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder)
    return folder


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a program in the bare environment; return what it prints, raise with what it says if it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=bare(), capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build_wheel(python: Path, source: Path, folder: Path, *options: str) -> Path:
    """Build the wheel of a source folder into another folder."""
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", *options, "--wheel-dir", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def built(kind: str, source: Path, folder: Path) -> Path:
    """Build a source folder into another folder as installers ask for it, with what this environment has.

    kind: "wheel", "editable" (a wheel that leads to the sources) or "sdist".
    """
    folder.mkdir(parents=True)
    build = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    run(sys.executable, "-c", build, folder, cwd=source)
    (made,) = folder.iterdir()
    return made


def install_locked(python: Path, lock: Path) -> None:
    """Install the packages of a lock file: with uv, which takes 2 s, or with pip if uv finds no index."""
    hashed = ("--quiet", "--require-hashes", "--requirement", lock)
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        words = (uv, "pip", "install", "--no-cache", "--system-certs", "--python", python, *hashed)
        done = subprocess.run(words, env=bare(), capture_output=True, timeout=_PATIENCE_S, check=False)
        if done.returncode == 0:
            return
    run(python, "-m", "pip", "install", "--disable-pip-version-check", *hashed)


def environment_of(python: Path, folder: Path) -> Path:
    """Make an empty environment; return its Python."""
    run(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def _candidates(version: str) -> Iterator[Path]:
    """Yield where a Python of a version ("3.12") may be: this one's place, what pyenv and uv keep, then PATH."""
    yield Path(sys.base_prefix, "bin", f"python{version}")
    home = Path.home()
    yield from sorted(home.glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    yield from sorted(home.glob(f".local/share/uv/python/cpython-{version}.*/bin/python{version}"))
    found = shutil.which(f"python{version}")
    if found is not None:
        yield Path(found)


def python_of(version: str) -> Path | None:
    """A Python of this version that can make environments, if the machine has one."""
    for path in _candidates(version):
        if not path.exists():
            continue
        done = subprocess.run([path, "-c", _PROBE], env=bare(), capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    return None
