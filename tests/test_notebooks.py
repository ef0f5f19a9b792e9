"""Notebooks of the examples are executed in a kernel; a run in a kernel shows one line, and can be stopped."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.support.kernels import Cell, Kernel, kernel
from tests.support.visits import shared_job, visits

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("**/*.ipynb"))
FOLDER = ROOT / "examples" / "transfusion"


def executed(
    notebook: str, folder: Path, results: str, **parameters: object
) -> tuple[dict[str, Any], list[Cell]]:
    """Execute a notebook with other parameters; print the time of each cell.

    Returns the values of an expression after the last cell, and the cells.
    """
    shutil.copytree(FOLDER, folder)
    cells = []
    with kernel(folder) as running:
        for cell in nbformat.read(FOLDER / notebook, as_version=4).cells:
            if cell.cell_type != "code":
                continue
            start = time.perf_counter()
            cells.append(running.execute(cell.source))
            print(f"{time.perf_counter() - start:6.2f} s  {cell.source.splitlines()[0]}")
            assert not cells[-1].error, cells[-1].text
            if "parameters" in cell.metadata.get("tags", ()):
                assert all(f"{name} = " in cell.source for name in parameters)
                running.execute("\n".join(f"{name} = {value!r}" for name, value in parameters.items()))
        found = running.execute(f"import json\nprint(json.dumps({results}))")
    assert not found.error, found.text
    values: dict[str, Any] = json.loads(found.text)
    return values, cells


def progress(cells: list[Cell]) -> list[str]:
    """The last state of each line of progress."""
    return [states[-1] for cell in cells for states in cell.lines.values() if " · " in states[-1]]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert [cell["id"] for cell in notebook.cells] == [f"cell-{n + 1}" for n in range(len(notebook.cells))]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell for cell in code if cell.outputs or cell.execution_count is not None] == []
    assert path.read_text("utf-8") == nbformat.writes(notebook) + "\n"


def test_both_notebooks_are_there() -> None:
    assert [path.name for path in NOTEBOOKS] == ["one-hospital.ipynb", "three-hospitals.ipynb"]


def test_one_hospital(tmp_path: Path) -> None:
    results = """{
        "agreed": verified.fields["agreed"],
        "answers": answers.tolist(),
        "risk": risk,
        "rows": len(result.table),
        "tree": error["anonymized", "tree"],
        "majority": error["majority", "tree"],
    }"""
    found, cells = executed("one-hospital.ipynb", tmp_path / "transfusion", results)
    assert found["agreed"] is True
    assert found["answers"] == [True] * 4
    assert found["rows"] == 2104
    assert found["risk"]["unique"] == found["risk"]["below_k"] == 0
    assert found["tree"] < found["majority"] - 0.04
    assert [line.rpartition(" · ")[0] for line in progress(cells)] == ["hospital-a · one holder · done"] * 3
    assert [cell.text for cell in cells if "\r" in cell.text] == []


RESULTS = """{
    "signed": verified.fields["signed"],
    "accuracy": accuracy.tolist(),
    "fidelity": fidelity["drawn rows"].to_dict(),
    "refused": refused,
    "spent": [str(spent.charged), spent.runs],
    "columns": list(drawn),
}"""


@pytest.mark.more
@pytest.mark.parametrize("daemons", [False, True])
def test_three_hospitals(daemons: bool, tmp_path: Path) -> None:
    found, cells = executed("three-hospitals.ipynb", tmp_path / "transfusion", RESULTS, DAEMONS=daemons)
    parties = ["hospital-a", "hospital-b", "hospital-c"]
    assert (sorted(found["signed"]) if found["signed"] else None) == (parties if daemons else None)
    majority, drawn, one, real = found["accuracy"]
    assert majority + 0.02 < drawn < real + 0.02
    assert majority + 0.05 < one < real + 0.02
    assert max(found["fidelity"].values()) < 0.15
    assert found["refused"] == "budget-exceeded"
    assert found["spent"] == ["1", 1]
    assert "surgery" not in found["columns"]
    assert "patient" not in found["columns"]
    assert [line.rpartition(" · ")[0] for line in progress(cells)] == [
        "transfusion-synthetic · 3 parties · done",
        "hospital-a-synthetic · one holder · done",
        "second · one holder · stopped",
    ]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with a joint job and tables that take seconds."""
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "job.yaml").write_text(shared_job().to_yaml())
    visits(20_000).to_csv(folder / "visits.csv", index=False)
    with kernel(folder) as kernel_of_the_tests:
        loaded = kernel_of_the_tests.execute(
            """
import os, sys, threading, pandas, jointcut as jc
job, table = jc.Job.from_yaml("job.yaml"), pandas.read_csv("visits.csv")
tables = {"north": table, "south": table}
print(sys.executable, jc.__file__)
"""
        )
        assert not loaded.error, loaded.text
        yield kernel_of_the_tests


LEFT = """
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child process;", sum("ThreadPool" in thread.name for thread in threading.enumerate()))
print([name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("jointcut-")])
"""


@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=pytest.mark.more)])
def test_an_interrupt_ends_a_joint_run(in_process: bool, running: Kernel) -> None:
    """Daemons, threads and folders are gone, and the next cell runs."""

    def interrupt(text: str) -> None:
        if f" · {'run' if in_process else 'connect'}" in text:
            running.manager.interrupt_kernel()

    start = time.monotonic()
    cell = running.execute(f"jc.simulate(job, tables, in_process={in_process})", interrupt)
    print(f"{time.monotonic() - start:.2f} s")
    assert cell.error == "KeyboardInterrupt", cell.text
    ((*_, last),) = cell.lines.values()
    assert last.startswith("visits · 2 parties · stopped · ")
    assert running.execute(LEFT).text.splitlines() == ["no child process; 0", "[]"]


def test_a_comparison_shows_its_share(running: Kernel) -> None:
    """Explored requirements are runs of a known number, so the bar has a value."""
    script = """
own = jc.Job(name="ages", model=jc.Lkc(L=1, K=2), goal="general",
             columns={"age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=120, step=10))})
jc.explore(own, table[["age"]], K=[2, 3, 4, 5]);
"""
    cell = running.execute(script)
    assert not cell.error, cell.text
    shares = [drawn.partition('value="')[2][:4] for drawn in cell.drawn if 'value="' in drawn]
    assert shares == ["0.00", "0.25", "0.50", "0.75"]


def test_a_run_shows_one_line(running: Kernel) -> None:
    cell = running.execute("jc.simulate(job, {name: table[:60] for name in tables}, in_process=True).tables")
    assert cell.text == "('anonymized.csv',)"
    ((first, *_, last),) = cell.lines.values()
    assert first.startswith("visits · 2 parties · read · read the table · ")
    assert last.startswith("visits · 2 parties · done · ")
    *bars, without = cell.drawn
    assert all(bar.startswith('<div><progress aria-label="progress"></progress> visits · ') for bar in bars)
    assert "<progress" not in without
    hidden = running.execute(
        "jc.simulate(job, {name: table[:60] for name in tables}, in_process=True, progress=False);"
    )
    assert (hidden.lines, hidden.text, hidden.error) == ({}, "", "")
