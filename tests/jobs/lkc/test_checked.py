"""`coordinator verify` compares all of a report that follows from the job and the table."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.lkc.checked import verify_table
from jobs.lkc.parts import COLUMNS, ROWS
from jobs.lkc.single import release_to_folder
from jobs.options import NO_OPTIONS
from jobs.release.csv import REPORT, TABLE
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
    "model.lkc.score": lambda report: report["model"]["lkc"].update(score="records"),
    "sensitive": lambda report: report.pop("sensitive"),
    "notes": lambda report: report.update(notes=["all is well"]),
    "verified": lambda report: report.update(verified="by somebody"),
    "partition": lambda report: report.update(partition="vertical"),
    "cut.age": lambda report: report["cut"].update(age=[]),
    "cut.age` is": lambda report: report["cut"]["age"].append("[0,100)"),
    "cut.job` is": lambda report: report["cut"]["job"].append("Astronaut"),
    "cut.age[0]": lambda report: report["cut"]["age"].reverse(),
    "cut.income": lambda report: report["cut"].update(income=["Any"]),
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
    "metrics.note": lambda report: report["metrics"].update(note="safe for anybody"),
    "metrics.generalization_loss.income": lambda report: report["metrics"]["generalization_loss"].update(
        income=0.0
    ),
    "specializations[0].note": lambda report: report["specializations"][0].update(note="safe"),
    "specializations[0].naming": lambda report: report["specializations"][0].update(naming=1),
    "specializations[0].gain": lambda report: report["specializations"][0].update(gain=1.5),
    "specializations[0].score": lambda report: report["specializations"][0].update(score="high"),
    "specializations` do not lead from": lambda report: report["specializations"][0].update(value=7),
    "specializations` do not lead from the": lambda report: report["specializations"][0].update(
        children=[1, 2]
    ),
    "discarded": lambda report: report.update(discarded="none, as certified"),
    "discarded` is": lambda report: report.update(discarded=[{"note": "safe"}]),
    "discarded` is not": lambda report: report.update(
        discarded=[{"attribute": "job", "value": "Astronaut", "children": ["A", "B"]}]
    ),
    "rows` is": lambda report: report.update(rows=float(report["rows"])),
    "metrics.leaf_partitions` is": lambda report: report["metrics"].update(
        leaf_partitions=float(report["metrics"]["leaf_partitions"])
    ),
    "format": lambda report: report.update(format=True),
    "files": lambda report: report["files"].update({"counts.csv": {"sha256": "00" * 32, "bytes": 1}}),
    "files` is": lambda report: report["files"].pop(TABLE),
}
ALONE: dict[str, Change] = {
    "data.read": lambda report: report["data"].update(read=report["rows"] + 1),
    "data.read` is": lambda report: report["data"].update(dropped={"job": {"missing": 1}}),
    "data": lambda report: report.pop("data"),
    "data.used` is": lambda report: report["data"].update(used=float(report["data"]["used"])),
    "data.note": lambda report: report["data"].update(note="safe"),
    "data.read` is not": lambda report: report["data"].update(dropped={"note": {"safe": 0}}),
    "data.read` is not the sum": lambda report: report["data"].update(dropped={"job": {"safe": 0}}),
    "stopped": lambda report: report.update(stopped={}),
    "stopped` is": lambda report: report["stopped"].update(age=[]),
    "stopped` is not": lambda report: report["stopped"]["age"][0].update(note="safe"),
    "stopped` is not as": lambda report: report["stopped"]["age"][0]["values"].append("[0,100)"),
    "reveals": lambda report: report.update(reveals=[{"name": "nothing"}]),
}
OF_WITHHELD: dict[str, Change] = {
    "withheld": lambda report: report.pop("withheld"),
    "risk.withheld": lambda report: report["risk"].update(withheld=0),
    "data.used": lambda report: report["data"].update(used=report["rows"] - 1),
}
LATER_OF_WITHHELD: dict[str, Change] = {
    "withheld.rows": lambda report: report["withheld"].update(rows=report["withheld"]["rows"] + 1),
    "data.used": lambda report: report["data"].update(used=report["rows"] * 2),
    "risk.withheld": lambda report: report["risk"].pop("withheld"),
}
OF_JOINT: dict[str, Change] = {
    "data": lambda report: report.update(data={"used": report["rows"]}),
    "stopped": lambda report: report.update(stopped={}),
    "reveals": lambda report: report["reveals"].append({"name": "nothing"}),
    "reveals` is": lambda report: report["reveals"][0].update(name="nothing"),
    "reveals` is not": lambda report: report["reveals"][0].update(iteration=True),
    "reveals` is not as": lambda report: report["reveals"][0].update(name=["class"]),
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
        with pytest.raises(PartyError, match=f"`{re.escape(key)}") as caught:
            verify_table(task, out)
        assert caught.value.problem.error_id == "verification-failed"


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of the values of a report that are no containers."""
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
    *(f"report.specializations.{name}" for name in ("score", "gain")),
    *(f"report.{name}" for name in ("discarded", "versions", "cost")),
}
OF_ONE_HOLDER = NOT_COMPARED | {f"report.{name}" for name in ("stopped", "data.read", "data.dropped")}
LEFT = {
    "single": OF_ONE_HOLDER,
    "withheld": OF_ONE_HOLDER | {"report.data.used"},
    "joint": NOT_COMPARED | {"report.reveals"},
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


@pytest.mark.parametrize("cut", [None, 5, {}, {"job": "Any", "age": [1]}])
def test_a_cut_of_another_shape_is_refused(tmp_path: Path, cut: object) -> None:
    task, out = released(tmp_path, "single")
    report = json.loads((out / REPORT).read_text()) | {"cut": cut}
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError, match=r"`cut[^`]*` is not as job and table say"):
        verify_table(task, out)


def released_alone(folder: Path, job: dict[str, Any], n: int) -> tuple[Task, Path]:
    """One holder's release of sample rows."""
    task, out = jobs.task_of(job), folder / "out"
    source = Csv(jobs.write_csv(folder / "table.csv", sample_rows(n)))
    release_to_folder(task, source, out, NO_OPTIONS, Stopwatch(lambda _: None), Observer())
    return task, out


def refused(task: Task, out: Path, change: Change) -> str:
    """Change a report, for once; return why it is refused."""
    honest = (out / REPORT).read_text()
    report = json.loads(honest)
    change(report)
    (out / REPORT).write_text(json.dumps(report))
    with pytest.raises(PartyError) as caught:
        verify_table(task, out)
    (out / REPORT).write_text(honest)
    return caught.value.problem.message


def test_loss_of_labels_that_print_alike_follows_from_specializations(tmp_path: Path) -> None:
    """Two nodes have one name, and the specializations tell which of them were made."""
    tree = {"Any": {"North": {"Clinic": ["Janitor", "Mover"]}, "South": {"Clinic": ["Lawyer", "Clerk"]}}}
    task, out = released_alone(
        tmp_path, single_job(**LOOSE, columns=columns(job={"role": "qid", "taxonomy": tree})), 120
    )
    checked = verify_table(task, out)
    assert not any("loss" in name for name in checked.fields["not_verified"])
    for name in ("age", "job"):
        loss = f"metrics.generalization_loss.{name}"
        changed = refused(
            task,
            out,
            lambda report, name=name: report["metrics"]["generalization_loss"].update({name: 0.125}),
        )
        assert f"`{loss}` is not" in changed


LOOSE = {"model": {"lkc": {"L": "2", "K": "5", "C": "1"}}, "goal": "general"}
SUPPRESSED = columns(job={"role": "qid", "suppress": ["Janitor", "Mover", "Lawyer", "Clerk"]})
FORGED_CUTS: dict[str, Change] = {
    "`cut.job`": lambda report: report["cut"]["job"].append("Clerk"),
    "`cut.job` is not": lambda report: report["cut"].update(job=["*"]),
    "`metrics.generalization_loss.job`": lambda report: report["metrics"]["generalization_loss"].update(
        job=0.5
    ),
    "`specializations` do not lead to the values of column job": lambda report: report.update(
        specializations=[step for step in report["specializations"] if step["attribute"] != "job"]
    ),
    "`specializations` do not lead from the most": lambda report: next(
        step for step in report["specializations"] if step["attribute"] == "job"
    ).update(children=["Nobody", "*"]),
    "`specializations` do not lead from": lambda report: next(
        step for step in report["specializations"] if step["attribute"] == "job"
    ).update(children=["*"]),
}


def test_a_cut_with_suppressed_values_is_compared(tmp_path: Path) -> None:
    """The root and what is left of it print alike, and never stand in one cut."""
    task, out = released_alone(tmp_path, single_job(**LOOSE, columns=SUPPRESSED), 200)
    report = json.loads((out / REPORT).read_text())
    assert len(report["cut"]["job"]) > 1
    checked = verify_table(task, out)
    left = set(checked.fields["not_verified"])
    assert left == OF_ONE_HOLDER | {"report.specializations.naming"}
    assert "not verified:" not in checked.text
    for words, change in FORGED_CUTS.items():
        assert words in refused(task, out, change)
