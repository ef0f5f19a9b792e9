"""The route of a command through the library: called files and functions, loaded modules.

    python -m benchmarks.route                              README's single-holder job: validate, run, verify
    python -m benchmarks.route coordinator validate J.yaml  any command
    python -m benchmarks.route --list coordinator ...       ... with the name of every function, by file

A file counts if one of its functions is called. Bodies of modules and classes do not count, nor do comprehensions.
A module is loaded if the process has it when the command ends. Each command runs in a separate process. The threads
of the process are followed, but not its child processes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("anonymize", "coordinator", "crypto", "evaluation", "jobs", "jointcut", "party")
ROWS = 300
_COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})


@dataclass(frozen=True)
class Route:
    """Functions called by a command, by file and first line, and modules loaded at the end of its process."""

    functions: Mapping[str, list[str]]
    modules: list[str]

    def __str__(self) -> str:
        n = sum(map(len, self.functions.values()))
        loaded = f"{len(self.modules)} of {n_modules()} modules loaded"
        return f"{len(self.functions)} files, {n} functions entered; {loaded}"


def n_modules() -> int:
    """Count the modules of the library."""
    return sum(1 for folder in FOLDERS for _ in (ROOT / folder).rglob("*.py"))


def follow(main: Callable[[], object]) -> Route:
    """Call a function; return the route of all its calls, in all threads."""
    entered: set[CodeType] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.add(frame.f_code)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = defaultdict(set)
    for code in entered:
        path = _below_root(code.co_filename)
        # Only functions have fast locals: the bodies of modules and classes do not.
        if path and code.co_flags & CO_OPTIMIZED and code.co_name not in _COMPREHENSIONS:
            functions[path].add(f"{code.co_qualname}:{code.co_firstlineno}")
    return Route({path: sorted(names) for path, names in sorted(functions.items())}, _modules())


def _below_root(file: str) -> str | None:
    """Return the path of a file of the library below the root, or None for any other file."""
    path = Path(file)
    if not path.is_relative_to(ROOT):
        return None
    below = path.relative_to(ROOT)
    return below.as_posix() if below.parts[0] in FOLDERS else None


def _modules() -> list[str]:
    """Return the library modules loaded in this process."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return sorted(path for file in files if file and (path := _below_root(file)))


def of_command(words: list[str], folder: Path) -> Route:
    """Return the route of a command run by a new process in a folder. Raises RuntimeError if the command fails."""
    command = [sys.executable, "-m", "benchmarks.route", "--json", str(folder), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}\n{done.stderr}")
    return Route(**json.loads(done.stdout.splitlines()[-1]))


def _in_this_process(words: list[str]) -> Route:
    """Run a command here; return its route. Its output goes to standard error. Raises RuntimeError if the command
    fails.
    """
    from jointcut.isolated import _main_of

    def main() -> None:
        sys.argv = words
        with contextlib.redirect_stdout(sys.stderr):
            try:
                _main_of(words[0])()
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"exit code {end.code}") from None

    return follow(main)


def readme_job(folder: Path) -> None:
    """Write the job file that README shows, and a table."""
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert found, "README.md shows no job file"
    (folder / "job.yaml").write_text(found[1], "utf-8")
    columns = yaml.safe_load(found[1])["columns"]
    values: dict[str, Callable[[int], object]] = {
        "age": lambda i: 20 + i % 60,
        "job": lambda i: ("Clerk", "Lawyer", "Carpenter", "Mover")[i % 4],
        "city": lambda i: ("Paris", "Lyon", "Bonn")[i % 3],
        "diagnosis": lambda i: "HIV" if i % 9 == 0 else "Flu",
        "died": lambda i: "Y" if i % 4 > 1 else "N",
    }
    lines = [",".join(str(values[name](i)) for name in columns) for i in range(ROWS)]
    (folder / "people.csv").write_text("\n".join([",".join(columns), *lines]) + "\n", "utf-8")


def of_readme() -> dict[str, Route]:
    """Return the routes of the commands for README's single-holder job; `run` also with `score: infogain`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        readme_job(folder)
        plain = (folder / "job.yaml").read_text("utf-8")
        (folder / "infogain.yaml").write_text(plain.replace("C: 0.5}", "C: 0.5, score: infogain}"), "utf-8")
        commands = {
            "validate": "coordinator validate job.yaml",
            "run": "coordinator run job.yaml --out result",
            "run, score: infogain": "coordinator run infogain.yaml --out other",
            "verify": "coordinator verify job.yaml result",
        }
        return {shown: of_command(words.split(), folder) for shown, words in commands.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.route", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--list", action="store_true", help="name every function")
    parser.add_argument(
        "--json", metavar="FOLDER", help="run the command there; print the route as one line of JSON"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if asked.json:
        with contextlib.chdir(asked.json):
            route = _in_this_process(asked.command)
        print(json.dumps({"functions": route.functions, "modules": route.modules}))
        return
    routes = (
        {" ".join(asked.command): of_command(asked.command, Path.cwd())} if asked.command else of_readme()
    )
    for shown, route in routes.items():
        print(f"{shown}: {route}")
        if asked.list:
            for path, names in route.functions.items():
                print(f"  {path}: {', '.join(names)}")


if __name__ == "__main__":
    main()
