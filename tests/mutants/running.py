"""Run the tests of mutants in copies of the sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.caught import in_turn
from tests.mutants.mutant import LIBRARY, ROOT, Mutant, Sources

COPIED = (*LIBRARY, "protos", "tests", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".hypothesis")
_TESTS = "not slow and not install"
CAUGHT = 1
"""The exit code of pytest where a test failed. Any other says that nothing was tested."""

_TIMES = count(1)


def survivors(mutants: Sequence[Mutant], sources: Sources, caught: dict[str, str]) -> list[str]:
    """Run each mutant, as many at a time as there are processors; return the names of those that survive.

    A test that fails with the fault is run once more without the fault. A test that fails then, too, catches nothing.

    caught:  by mutant, the test that noticed it at an earlier time, which is run before the others (see
             :mod:`tests.mutants.caught`). The tests that notice a mutant now are entered.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, ExitStack() as stack:
        copies: SimpleQueue[Copy] = SimpleQueue()
        workers = min(len(mutants), os.cpu_count() or 1)
        for number in range(workers):
            copies.put(stack.enter_context(copied(Path(name, str(number)), number)))

        def survives(mutant: Mutant) -> bool:
            path, text = sources.mutated(mutant)
            copy = copies.get()
            try:
                for tests in in_turn(mutant, caught):
                    done = copy.run(tests, path, text)
                    if done.code == CAUGHT:
                        sound = copy.run((done.failed,))
                        if sound.code:
                            said = f"{done.failed} fails without the fault, too"
                            print(f"BROKEN  {mutant.name}: {said}\n{sound.end}", flush=True)
                            return True
                        caught[mutant.name] = done.failed
                        print(f"caught  {mutant.name}", flush=True)
                        return False
            finally:
                copies.put(copy)
            print(f"ALIVE   {mutant.name}\n{done.end}", flush=True)
            return True

        with ThreadPoolExecutor(max_workers=workers) as pool:
            alive = list(pool.map(survives, mutants))
    return [mutant.name for mutant, survived in zip(mutants, alive, strict=True) if survived]


@dataclass(frozen=True)
class Done:
    """A run of tests that is over: pytest's exit code, the end of what it printed, the test that failed if any."""

    code: int
    end: str
    failed: str


@dataclass(frozen=True)
class Copy:
    """A copy of the sources in which one mutant at a time runs, and the process that forks for each run."""

    folder: Path
    forking: subprocess.Popen[str]

    def run(self, tests: Sequence[str], path: str | None = None, text: str = "") -> Done:
        """Run tests, with another text of the file ``path`` if one is given; leave the copy as it was."""
        with nullcontext() if path is None else _changed(self.folder / path, text):
            # All cases, and the same examples each time: a mutant is caught always or never.
            options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=failing", "-m", _TESTS)
            printed, failed = self.folder / "printed", self.folder / "failed"
            failed.write_text("")
            asked = {
                "folder": str(self.folder),
                "arguments": [*options, *tests],
                "printed": str(printed),
                "failed": str(failed),
            }
            assert self.forking.stdin is not None
            assert self.forking.stdout is not None
            self.forking.stdin.write(json.dumps(asked) + "\n")
            self.forking.stdin.flush()
            code = int(self.forking.stdout.readline())
            return Done(code, printed.read_text("utf-8", "replace")[-4000:], failed.read_text("utf-8"))


@contextmanager
def _changed(file: Path, text: str) -> Iterator[None]:
    """Give a file another text, and a time that no other text of the file has.

    Python takes compiled code for that of a source with equal time, in seconds, and equal length.
    """
    original, status = file.read_text("utf-8"), file.stat()
    file.write_text(text, "utf-8")
    os.utime(file, (0, next(_TIMES)))
    try:
        yield
    finally:
        file.write_text(original, "utf-8")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextmanager
def copied(folder: Path, number: int) -> Iterator[Copy]:
    """Copy the sources. The tests of each copy use ports of their own, by the number of the copy."""
    folder.mkdir()
    copy_sources(folder)
    environ = {**os.environ, "PYTEST_XDIST_WORKER": f"gw{number}", "PYTEST_XDIST_TESTRUNUID": "mutants"}
    command = [sys.executable, "-P", Path(__file__).with_name("forking.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    ) as forking:
        yield Copy(folder, forking)


def copy_sources(folder: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_NOT_COPIED)
        else:
            shutil.copy(source, folder / name)
