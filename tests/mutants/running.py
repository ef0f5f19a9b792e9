"""Run the tests of mutants in copies of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.mutant import LIBRARY, ROOT, Mutant, Sources

COPIED = (*LIBRARY, "protos", "tests", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".hypothesis")
_TESTS = "not slow and not install"
CAUGHT = 1
"""The exit code of pytest where a test failed. Any other says that nothing was tested."""


def survivors(mutants: Sequence[Mutant], sources: Sources) -> list[str]:
    """Run each mutant, as many at a time as there are processors; return the names of those that survive."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folders: SimpleQueue[Path] = SimpleQueue()
        workers = min(len(mutants), os.cpu_count() or 1)
        for number in range(workers):
            folder = Path(name, str(number))
            folder.mkdir()
            copy_sources(folder)
            folders.put(folder)

        def survives(mutant: Mutant) -> bool:
            folder = folders.get()
            try:
                done = run(mutant, sources, folder)
            finally:
                folders.put(folder)
            caught = done.returncode == CAUGHT
            said = "" if caught else f"\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            print(f"{'caught ' if caught else 'ALIVE  '} {mutant.name}{said}", flush=True)
            return not caught

        with ThreadPoolExecutor(max_workers=workers) as pool:
            alive = list(pool.map(survives, mutants))
    return [mutant.name for mutant, survived in zip(mutants, alive, strict=True) if survived]


def run(mutant: Mutant, sources: Sources, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a mutant's tests in a copy of the sources that has its fault; leave the copy as it was."""
    path, text = sources.mutated(mutant)
    (folder / path).write_text(text, "utf-8")
    try:
        # All cases, and the same examples each time: a mutant is caught always or never.
        options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=failing", "-m", _TESTS)
        command = [sys.executable, "-m", "pytest", *options, *mutant.tests]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    finally:
        (folder / path).write_text(sources.texts[path], "utf-8")


def copy_sources(folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_NOT_COPIED)
        else:
            shutil.copy(source, folder / name)
