"""What `coordinator verify` compares of a report: all that follows from the job and the table."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.lkc.alone import release_to_folder
from jobs.lkc.checked import verify_table
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.options import NO_OPTIONS
from jobs.release.csv import REPORT
from jobs.release.folder import new_folder
from jobs.release.making import write_joint_release
from jobs.release.report import SIGNATURES
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Task
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.lkc_runs import run_lkc
from tests.support.samples import columns, joint_job, single_job

MODEL = {"requirements": [{"L": "1", "K": "4", "C": "0.8"}, {"columns": ["age"], "K": "5"}]}


def released(folder: Path, kind: str) -> tuple[Task, Path]:
    out = folder / "out"
    if kind in ("single", "withheld"):
        withheld = {"model": {"lkc": {"L": "2", "K": "5", "C": "0.6"}}, "goal": "general", "withhold": "1/5"}
        task = jobs.task_of(single_job(**({"model": MODEL} if kind == "single" else withheld)))
        source = Csv(jobs.write_csv(folder / "table.csv", sample_rows(100)))
        release_to_folder(task, source, out, NO_OPTIONS, Stopwatch(lambda name: None), Observer())
        return task, out
    task = jobs.task_of(joint_job(model=MODEL, disclosure="sealed"))
    run = run_lkc(task, folder)
    parts = {**run.parts(ROWS), **run.parts(COLUMNS)}
    with new_folder(out) as written:
        write_joint_release(
            task, written, Collected(run.result, parts, {}), NO_OPTIONS, Stopwatch(lambda _: None)
        )
    return task, out


Change = Callable[[dict[str, Any]], Any]
CHANGES: dict[str, Change] = {
    "guarantee": lambda report: report.update(guarantee="20-anonymous, certified"),
    "requirements": lambda report: report["requirements"][0].update(smallest_group=9999),
    "model": lambda report: report["model"]["lkc"]["requirements"][0].update(K=40),
    "goal": lambda report: report.update(goal="general"),
    "model` is": lambda report: report["model"]["lkc"].update(score="records"),
    "sensitive": lambda report: report.pop("sensitive"),
    "notes": lambda report: report.update(notes=["all is well"]),
    "verified": lambda report: report.update(verified="by somebody"),
    "partition": lambda report: report.update(partition="vertical"),
    "cut": lambda report: report["cut"].update(age=[]),
    "cut` of column age": lambda report: report["cut"]["age"].append("[0,100)"),
    "metrics.generalization_loss": lambda report: report["metrics"]["generalization_loss"].update(age=0.25),
    "specializations": lambda report: report["specializations"].pop(),
    "specializations` do": lambda report: report["specializations"].reverse(),
    "specializations` do not": lambda report: report["specializations"][0].update(attribute="sex"),
    "specializations` do not lead": lambda report: report.update(specializations=7),
    "risk": lambda report: report["risk"].update(unique=7),
    "withheld": lambda report: report.update(withheld={"rows": 0}),
    "metrics.leaf_partitions": lambda report: report["metrics"].update(leaf_partitions=1),
    "metrics.smallest_partition": lambda report: report["metrics"].update(smallest_partition=99),
    "metrics.discernibility_ratio": lambda report: report["metrics"].pop("discernibility_ratio"),
}
ALONE: dict[str, Change] = {
    "data.read": lambda report: report["data"].update(read=report["rows"] + 1),
    "data.read` is": lambda report: report["data"].update(dropped={"job": {"missing": 1}}),
    "data": lambda report: report.pop("data"),
}
OF_WITHHELD: dict[str, Change] = {
    "withheld": lambda report: report.pop("withheld"),
    "risk": lambda report: report["risk"].update(withheld=0),
    "data.used": lambda report: report["data"].update(used=report["rows"] - 1),
}
LATER_OF_WITHHELD: dict[str, Change] = {
    "withheld": lambda report: report["withheld"].update(rows=report["withheld"]["rows"] + 1),
    "data.used": lambda report: report["data"].update(used=report["rows"] * 2),
    "risk": lambda report: report["risk"].pop("withheld"),
}
OF_JOINT: dict[str, Change] = {
    "data": lambda report: report.update(data={"used": report["rows"]}),
    "stopped": lambda report: report.update(stopped={}),
    "protection": lambda report: report["protection"].append("Nobody learned anything."),
    "revealed_by_design": lambda report: report.update(revealed_by_design=[]),
    "parties": lambda report: report["parties"].pop(),
    "disclosure": lambda report: report.update(disclosure="strict"),
}


@pytest.mark.parametrize("kind", ["single", "joint"])
def test_a_report_that_says_otherwise_is_refused_by_key(tmp_path: Path, kind: str) -> None:
    task, out = released(tmp_path, kind)
    verify_table(task, out)
    honest = (out / REPORT).read_text()
    for key, change in (CHANGES | (OF_JOINT if kind == "joint" else ALONE)).items():
        report = json.loads(honest)
        change(report)
        (out / REPORT).write_text(json.dumps(report))
        with pytest.raises(PartyError, match=f"`{key}`?") as caught:
            verify_table(task, out)
        assert caught.value.problem.error_id == "verification-failed"


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a report stand that are no containers."""
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves_of(each, (*path, key))
    else:
        yield path


def altered(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value * 1.5 + 1 if isinstance(value, int | float) else f"{value}x"


NOT_COMPARED = {
    "report.finished",
    *(f"report.specializations.{name}" for name in ("score", "gain", "naming")),
    *(f"report.{name}" for name in ("discarded", "reveals", "versions", "cost")),
}
LEFT = {
    "single": NOT_COMPARED | {"report.stopped", "report.data"},
    "withheld": NOT_COMPARED | {"report.stopped", "report.data"},
    "joint": NOT_COMPARED,
}


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", LEFT)
def test_every_value_of_a_report_is_compared_or_said_not_to_be(tmp_path: Path, kind: str) -> None:
    task, out = released(tmp_path, kind)
    checked = verify_table(task, out)
    left = set(checked.fields["not_verified"])
    assert left == LEFT[kind]  # digests and signatures are for :mod:`coordinator.verify`
    assert all(name.removeprefix("report.") in checked.text for name in left)
    honest, passed = json.loads((out / REPORT).read_text()), []
    for path in leaves_of(honest):
        named = ".".join(["report", *(key for key in path if isinstance(key, str))])
        if path[0] in ("files", SIGNATURES) or any(
            named == name or named.startswith(f"{name}.") for name in left
        ):
            continue
        report = json.loads(json.dumps(honest))
        place = report
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = altered(place[path[-1]])
        (out / REPORT).write_text(json.dumps(report))
        with contextlib.suppress(PartyError):
            verify_table(task, out)
            passed.append(path)
    assert passed == []


def test_withheld_rows_are_those_that_the_rest_of_the_report_tells(tmp_path: Path) -> None:
    task, out = released(tmp_path, "withheld")
    verify_table(task, out)
    honest = (out / REPORT).read_text()
    assert json.loads(honest)["withheld"]["rows"] > 0
    for changes in (OF_WITHHELD, LATER_OF_WITHHELD):
        for key, change in changes.items():
            report = json.loads(honest)
            change(report)
            (out / REPORT).write_text(json.dumps(report))
            with pytest.raises(PartyError, match=f"`{key}`"):
                verify_table(task, out)


def test_a_cut_with_values_of_no_taxonomy_is_refused(tmp_path: Path) -> None:
    task, out = released(tmp_path, "single")
    report = json.loads((out / REPORT).read_text())
    report["cut"]["job"].append("Astronaut")
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match="`cut` has values of column job"):
        verify_table(task, out)


@pytest.mark.parametrize("cut", [None, 5, {}, {"job": "Any", "age": [1]}])
def test_a_cut_of_another_shape_is_refused(tmp_path: Path, cut: object) -> None:
    task, out = released(tmp_path, "single")
    report = json.loads((out / REPORT).read_text()) | {"cut": cut}
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match="`cut` lacks values"):
        verify_table(task, out)


def test_loss_that_labels_hide_is_said_not_to_be_verified(tmp_path: Path) -> None:
    """Two nodes of one name print alike, so the loss of their column does not follow from the table."""
    tree = {"Any": {"North": {"Clinic": ["Janitor", "Mover"]}, "South": {"Clinic": ["Lawyer", "Clerk"]}}}
    task = jobs.task_of(single_job(columns=columns(job={"role": "qid", "taxonomy": tree})))
    source = Csv(jobs.write_csv(tmp_path / "table.csv", sample_rows(120)))
    out = tmp_path / "out"
    release_to_folder(task, source, out, NO_OPTIONS, Stopwatch(lambda _: None), Observer())
    checked = verify_table(task, out)
    assert checked.fields["not_verified"][0] == "loss"
    assert "not verified: what generalizing job takes (loss)" in checked.text
    report = json.loads((out / REPORT).read_text())
    report["metrics"]["generalization_loss"]["age"] += 0.125
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match="generalization_loss"):
        verify_table(task, out)
