"""`import jointcut` costs nothing and says all names; types are checked; examples of docstrings run."""

from __future__ import annotations

import ast
import doctest
import json
import re
import subprocess
import sys
import time
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import jointcut as jc
from tests.support.bare import bare
from tests.support.visits import as_csv, visits, visits_job

ROOT = Path(__file__).resolve().parents[3]
API = sorted((ROOT / "jointcut" / "api").glob("*.py"))
MOST_S = 0.3


def printed(program: str, *arguments: str | Path) -> Any:
    """Run a program in a process of its own; return the JSON that it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=bare(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_import_loads_nothing() -> None:
    program = """
import json, sys, time
before, start = set(sys.modules), time.process_time()
import jointcut
took = time.process_time() - start
print(json.dumps([sorted(set(sys.modules) - before), took, dir(jointcut), jointcut.__all__]))
"""
    loaded, took, names, public = printed(program)
    assert loaded == ["jointcut"]
    assert took < MOST_S
    assert set(public) <= set(names)


LIBRARIES = """
import json, sys
import jointcut as jc
result = jc.anonymize(sys.argv[1], sys.argv[2])
jc.verify(result, sys.argv[2])
result.report, result.page, result.to_arrow()
loaded = [name for name in ("pandas", "polars", "sklearn", "grpc") if name in sys.modules]
import pandas as pd, polars as pl
table = pd.read_csv(sys.argv[1]).astype({"sex": "category"})
lengths = [len(jc.anonymize(each, sys.argv[2]).table) for each in (table, pl.DataFrame(table))]
print(json.dumps([loaded, lengths]))
"""


@pytest.mark.more
def test_a_path_needs_no_library_of_frames(tmp_path: Path) -> None:
    """A frame after a path works, too: Arrow asks only once for pandas."""
    as_csv(tmp_path / "table.csv", visits())
    (tmp_path / "job.yaml").write_text(visits_job().to_yaml())
    assert printed(LIBRARIES, tmp_path / "table.csv", tmp_path / "job.yaml") == [[], [60, 60]]


def test_every_name_is_there() -> None:
    assert {name: getattr(jc, name).__name__ for name in jc.__all__} == {name: name for name in jc.__all__}
    assert sorted(jc.__all__) == jc.__all__
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        jc.anonymise  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_every_name() -> None:
    tree = ast.parse(Path(str(jc.__file__)).read_text())
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen - {"import_module"} == set(jc.__all__)


def test_the_stub_of_the_forms_is_current() -> None:
    spec = spec_from_file_location("forms_stub", ROOT / "docs" / "forms_stub.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.STUB.read_text() == module.stub(), "make generate"


@pytest.mark.parametrize("path", API, ids=lambda path: path.stem)
def test_examples_of_docstrings_work(path: Path) -> None:
    assert doctest.testmod(import_module(f"jointcut.api.{path.stem}")).failed == 0


def test_every_function_has_an_example() -> None:
    functions = {name: getattr(jc, name) for name in jc.__all__ if name.islower()}
    assert functions.keys() == {"anonymize", "budget", "draft", "evaluate", "explore", "simulate", "verify"}
    assert [name for name, function in functions.items() if ">>> " not in function.__doc__] == []


CONSUMER = """
from pathlib import Path
import jointcut as jc

column = jc.Column(role="qid", numeric=jc.Numeric(min=0, max=120, step=0.5))
days = jc.Dates(start="2024-01-01", to="2025-01-01", step="1mo")
job = jc.Job(name="visits", model=jc.Lkc(L="all", K=5, C=0.5), columns={"age": column, "day": {"role": "qid"}})
result: jc.Result = jc.anonymize(Path("visits.csv"), job.with_(goal="general"), ledger="x.sqlite", budget=1)
size: int = result.report["rows"] + len(result.digest) + len(jc.verify(result, job).text)
try:
    jc.Client("coordinator.yaml").run(job, out="release")
except jc.Error as error:
    code: int = error.exit_code
"""
FRAMES = """
import jointcut as jc

def mean(result: jc.Result, column: str) -> float:
    table = result.table
    return float(table[column].mean()) + len(result.to_pandas())

def losses(job: jc.Job) -> list[float]:
    explored, evaluated = jc.explore(job, K=[2, 4]).to_frame(), jc.evaluate(job).to_frame()
    return [*map(float, explored["ncp"]), float(len(evaluated))]
"""
"""DataFrames of results, without an import of pandas."""
WRONG = """
import jointcut as jc

jc.Column(role="qdi")
jc.Column(numeric=jc.Numeric(min=0, max=1, step=1))
jc.Lkc(L="some", K=5)
jc.Lkc(L=1, k=5)
jc.anonymize(7, "job.yaml")
number: int = jc.anonymize("visits.csv", "job.yaml").digest
jc.Job(name="x", model=jc.Lkc(L=1, K=2), columns={}, partition="diagonal")
jc.anonymise
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The lines with errors that mypy finds in a project that uses the package, by file."""
    folder = tmp_path_factory.mktemp("consumer")
    for name, text in {"right.py": CONSUMER, "wrong.py": WRONG}.items():
        (folder / name).write_text(text)
    files = [str(folder / name) for name in ("right.py", "wrong.py")]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        *files,
    ]  # in our folder: with what `make check` has cached
    done = subprocess.run(command, cwd=ROOT, env=bare(), capture_output=True, text=True, check=False)
    found: dict[str, list[int]] = {"right.py": [], "wrong.py": []}
    for line in done.stdout.splitlines():
        path, _, rest = line.partition(":")
        name = Path(path).name
        if name in found and " error: " in rest:
            found[name].append(int(rest.partition(":")[0]))
    return found


def test_a_consumer_is_type_checked(errors: dict[str, list[int]]) -> None:
    assert errors["right.py"] == []
    assert (ROOT / "jointcut" / "py.typed").is_file()


def test_wrong_types_are_found(errors: dict[str, list[int]]) -> None:
    """One in every line."""
    lines = [number for number, line in enumerate(WRONG.splitlines(), start=1) if "jc." in line]
    assert sorted(set(errors["wrong.py"])) == lines


@pytest.mark.more
def test_a_project_elsewhere_is_type_checked_with_the_sources_named(tmp_path: Path) -> None:
    """The command of docs/guide/python.md, for an environment of `make setup`. mypy reads all sources anew.

    The settings of our own `mypy` do not apply: pandas has no types here, unless somebody installed pandas-stubs.
    """
    text = (ROOT / "docs" / "guide" / "python.md").read_text()
    (command,) = re.findall(r"^MYPYPATH=/path/to/jointcut mypy (.*) my_project$", text, re.MULTILINE)
    (tmp_path / "right.py").write_text(CONSUMER)
    (tmp_path / "frames.py").write_text(FRAMES)
    (tmp_path / "wrong.py").write_text(WRONG)
    words = [sys.executable, "-m", "mypy", *command.split(), "right.py", "frames.py", "wrong.py"]
    env = bare() | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    found = {line.partition(":")[0] for line in done.stdout.splitlines() if " error: " in line}
    assert found == {"wrong.py"}, done.stdout


def test_the_import_is_fast() -> None:
    start = time.perf_counter()
    command = [sys.executable, "-c", "import jointcut"]
    subprocess.run(command, cwd=ROOT, env=bare(), check=True)
    with_import = time.perf_counter() - start
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", ""], cwd=ROOT, env=bare(), check=True)
    assert with_import < time.perf_counter() - start + MOST_S
