"""Run the tests of mutants in copies of the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants.mutant import LIBRARY, ROOT, Mutant, Sources

COPIED = (*LIBRARY, "protos", "tests", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".hypothesis")
_TESTS = "not slow and not install"
CAUGHT = 1
"""The exit code of pytest where a test failed. Any other says that nothing was tested."""


def survivors(mutants: Sequence[Mutant], sources: Sources, *, sound_first: bool = False) -> list[str]:
    """Run each mutant, as many at a time as there are processors; return the names of those that survive.

    sound_first:  run each set of tests once without a fault; tests that fail so catch nothing. Continuous
                  integration does without, because the suite runs these tests, too.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copies: SimpleQueue[Copy] = SimpleQueue()
        workers = min(len(mutants), os.cpu_count() or 1)
        for number in range(workers):
            copies.put(Copy.make(Path(name, str(number)), number))
        sound = _Sound(copies)

        def survives(mutant: Mutant) -> bool:
            if sound_first and (broken := sound.told(mutant.tests)):
                print(f"BROKEN  {mutant.name}: its tests fail without the fault\n{broken}", flush=True)
                return True
            copy = copies.get()
            try:
                done = copy.run(mutant.tests, *sources.mutated(mutant))
            finally:
                copies.put(copy)
            caught = done.returncode == CAUGHT
            said = "" if caught else _end_of(done)
            print(f"{'caught ' if caught else 'ALIVE  '} {mutant.name}{said}", flush=True)
            return not caught

        with ThreadPoolExecutor(max_workers=workers) as pool:
            alive = list(pool.map(survives, mutants))
    return [mutant.name for mutant, survived in zip(mutants, alive, strict=True) if survived]


@dataclass(frozen=True)
class Copy:
    """A copy of the sources in which one mutant at a time runs. Its tests use ports of their own (`worker`)."""

    folder: Path
    worker: str

    @classmethod
    def make(cls, folder: Path, number: int) -> Copy:
        folder.mkdir()
        copy_sources(folder)
        return cls(folder, f"gw{number}")

    def run(
        self, tests: Sequence[str], path: str | None = None, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run tests, with another text of the file ``path`` if one is given; leave the copy as it was."""
        original = "" if path is None else (self.folder / path).read_text("utf-8")
        if path is not None:
            (self.folder / path).write_text(text, "utf-8")
        try:
            # All cases, and the same examples each time: a mutant is caught always or never.
            options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=failing", "-m", _TESTS)
            command = [sys.executable, "-m", "pytest", *options, *tests]
            environ = {**os.environ, "PYTEST_XDIST_WORKER": self.worker, "PYTEST_XDIST_TESTRUNUID": "mutants"}
            return subprocess.run(
                command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False
            )
        finally:
            if path is not None:
                (self.folder / path).write_text(original, "utf-8")


class _Sound:
    """Says of each set of tests, run once, how it fails without a fault."""

    def __init__(self, copies: SimpleQueue[Copy]) -> None:
        self._copies = copies
        self._told: dict[tuple[str, ...], str] = {}
        self._locks: defaultdict[tuple[str, ...], Lock] = defaultdict(Lock)

    def told(self, tests: tuple[str, ...]) -> str:
        """Return the end of what the tests print where they fail; nothing where they pass."""
        with self._locks[tests]:
            if tests not in self._told:
                copy = self._copies.get()
                try:
                    done = copy.run(tests)
                finally:
                    self._copies.put(copy)
                self._told[tests] = _end_of(done) if done.returncode else ""
            return self._told[tests]


def _end_of(done: subprocess.CompletedProcess[str]) -> str:
    return f"\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def copy_sources(folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_NOT_COPIED)
        else:
            shutil.copy(source, folder / name)
