"""`coordinator clusters fit` and `evaluate`: from a table to a model, to a release that it guides, to how well."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.agreement import agreement
from anonymize.cut import Candidate, interval_children, top
from anonymize.grid import from_cuts
from anonymize.table import QidColumn, Schema
from anonymize.taxonomy import Node, from_nested
from evaluation.clustering import (
    METHODS,
    Points,
    clustered,
    places_of_labels,
    raw_points,
    released_points,
)
from jobs.errors import CATALOGUE
from jobs.file.clusters import read_model
from jobs.loading import load_task
from tests.support import clusters, jobs
from tests.support.clusters import joint_clusters, single_clusters
from tests.support.commands import invoke, listing
from tests.support.dp_jobs import dp_single
from tests.support.job_files import job_file
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS, columns, single_job, vertical_job

AGE = QidColumn("age", from_cuts(Decimal(0), Decimal(100), tuple(map(Decimal, (10, 15, 20, 60, 90))), "age"))
JOB = QidColumn(
    "job",
    from_nested(
        {"Any": {"Blue": {"Out": ["Janitor", "Mover"], "In": ["Cook"]}, "White": ["Lawyer", "Clerk"]}},
        "job",
        missing_leaf=True,
    ),
)
MODEL = {"model": "model.json", "publish": "cluster"}


def job_in(folder: Path, fields: dict[str, Any], n_rows: int = 300) -> Path:
    """Write a job whose model is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs.write_csv(folder / "table.csv", sample_rows(n_rows), COLUMNS)
    return job_file(folder, fields)


def fit(job: Path, *options: str) -> dict[str, Any]:
    out = job.parent / "model.json"
    ran = invoke("coordinator", "clusters", "fit", job, "--out", out, *options, "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.some(1)
@pytest.mark.parametrize("method", METHODS)
def test_a_model_of_the_table(tmp_path: Path, method: str) -> None:
    job = job_in(tmp_path, single_clusters(clusters=MODEL))
    found = fit(job, "--count", "3", "--method", method)
    model = read_model((tmp_path / "model.json").read_text(), "model.json")
    assert (model.names, model.count, model.method) == (("job", "age"), 3, method)
    assert found["sha256"] == model.digest
    task = load_task(job)
    assert task.clusters is not None
    codes = [{"Janitor": 0, "Mover": 1, "Lawyer": 2}[row["job"]] for row in sample_rows(300)]
    ages = [int(row["age"]) // 10 for row in sample_rows(300)]
    labels = task.clusters.labels(task.qid, [np.array(codes), np.array(ages)])
    assert np.bincount(labels, minlength=3).tolist() == found["records"]
    assert sum(found["records"]) == 300
    # No record would be better off: each centroid is the mean of its records, to the last unit.
    points = np.zeros((300, 5))
    points[np.arange(300), codes] = 1 / np.sqrt(2)
    points[:, 4] = (np.array(ages) * 10 + 5) / 100
    if method == "kmeans":
        for i, centroid in enumerate(model.centroids):
            assert np.abs(points[labels == i].mean(axis=0) - np.array(centroid) / 65536).max() < 2e-5


def test_the_order_of_rows_changes_nothing(tmp_path: Path) -> None:
    for name, rows in (("a", sample_rows(300)), ("b", sample_rows(300)[::-1])):
        job = job_in(tmp_path / name, single_job())
        jobs.write_csv(tmp_path / name / "table.csv", rows, COLUMNS)
        fit(job, "--count", "4", "--min-cluster", "1")
    assert (tmp_path / "a" / "model.json").read_bytes() == (tmp_path / "b" / "model.json").read_bytes()


def test_some_of_the_columns(tmp_path: Path) -> None:
    job = job_in(tmp_path, single_clusters(clusters=MODEL, score="added", contexts="partitions"))
    assert fit(job, "--count", "2", "--columns", "age", "--columns", "age")["columns"] == ["age"]
    assert load_task(job).clusters is not None


def test_what_is_printed(tmp_path: Path) -> None:
    job = job_in(tmp_path, joint_clusters(clusters=MODEL))
    out = tmp_path / "model.json"
    table = tmp_path / "table.csv"
    ran = invoke("coordinator", "clusters", "fit", job, "--data", table, "--count", "2", "--out", out)
    assert ran.code == 0, ran.err
    for part in (
        f"{out}: 2 clusters, kmeans, of job, age",
        "cluster 1: ",
        "everybody who sees the job sees the model",
    ):
        assert part in ran.out


def test_people_are_counted_where_the_job_counts_them(tmp_path: Path) -> None:
    """A person with many records in a cluster counts once there."""
    rows = [{**row, "patient": str(i % 30)} for i, row in enumerate(sample_rows(300))]
    job = job_in(tmp_path, single_clusters(clusters=MODEL, model={**PEOPLE, "unit": "person"}))
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    out = tmp_path / "model.json"
    ran = invoke("coordinator", "clusters", "fit", job, "--count", "2", "--out", out, "--format", "json")
    assert ran.problem["error"] == "cluster-too-small"
    assert "fewer than 50 people" in ran.problem["message"]
    assert not out.exists()
    found = fit(job, "--count", "2", "--min-cluster", "20")
    assert "records" not in found
    task = load_task(job)
    assert task.clusters is not None
    codes = [{"Janitor": 0, "Mover": 1, "Lawyer": 2}[row["job"]] for row in rows]
    ages = [int(row["age"]) // 10 for row in rows]
    labels = task.clusters.labels(task.qid, [np.array(codes), np.array(ages)]).tolist()
    who: list[set[str]] = [set(), set()]
    for label, row in zip(labels, rows, strict=True):
        who[label].add(row["patient"])
    assert found["people"] == [len(people) for people in who]
    assert sum(found["people"]) > 30
    out.unlink()
    text = invoke("coordinator", "clusters", "fit", job, "--count=2", "--min-cluster=20", "--out", out).out
    assert f"cluster 1: {len(who[1])} people" in text


PEOPLE = {"lkc": {"L": "2", "K": "5", "C": "1"}}
ONE = single_job(columns={"age": COLUMNS["age"]}, goal="general")


@pytest.mark.parametrize(
    ("fields", "options", "error_id", "says"),
    [
        (dp_single(), ("--count", "2"), "usage", "LKC"),
        (vertical_job(), ("--count", "2", "--data", "table.csv"), "usage", "single or horizontal"),
        (single_job(), (), "usage", "--count"),
        (single_job(), ("--count", "1"), "usage", "--count"),
        (single_job(), ("--count", "257"), "usage", "--count"),
        (single_job(), ("--count", "2", "--columns", "surgery"), "usage", "--columns surgery"),
        (
            single_job(columns=columns(age={**COLUMNS["age"], "missing": "leaf"})),
            ("--count", "2"),
            "job-invalid",
            "columns.age.missing",
        ),
        (single_job(), ("--count", "2", "--method", "magic"), "usage", "magic"),
        (single_job(), ("--count", "2", "--data", "nowhere.csv"), "file-missing", "nowhere.csv"),
        (single_job(), ("--count", "6"), "cluster-too-small", "fewer than 50 records"),
        (
            single_job(),
            ("--count", "2", "--min-cluster", "200"),
            "cluster-too-small",
            "fewer than 200 records",
        ),
        (ONE, ("--count", "11", "--min-cluster", "1"), "usage", "the table has fewer different records"),
        (single_job(), ("--count", "2", "--out", "table.csv"), "output-exists", "table.csv"),
        (single_job(), ("--count", "2", "--out", "nowhere/model.json"), "file-missing", "nowhere"),
    ],
)
def test_what_cannot_be_fitted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    options: Sequence[str],
    error_id: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    job = job_in(tmp_path, fields)
    before = listing(tmp_path)
    out = () if "--out" in options else ("--out", "model.json")
    ran = invoke("coordinator", "clusters", "fit", job, *options, *out, "--format", "json")
    assert (ran.problem["error"], ran.code) == (error_id, CATALOGUE[error_id].exit_code)
    assert says in ran.problem["message"]
    assert error_id != "output-exists" or "name a new file" in ran.problem["remedy"]
    assert listing(tmp_path) == before


# ---- what a release keeps of the clusters


def test_values_as_points() -> None:
    raw = raw_points(AGE)
    assert raw.coordinates[:, 0] == pytest.approx([0.05, 0.125, 0.175, 0.4, 0.75, 0.95], abs=1e-5)
    assert raw_points(JOB).coordinates == pytest.approx(np.eye(6) / np.sqrt(2))
    released = released_points(AGE, np.array([0, 0, 1, 1, 1, 2]))
    assert released.coordinates[:, 0] == pytest.approx([0.075, 0.525, 0.95])
    released = released_points(JOB, np.array([0, 0, 0, 1, 2, 2]))
    thirds = np.array([[1 / 3] * 3 + [0] * 3, [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0.5, 0.5]])
    assert released.coordinates == pytest.approx(thirds / np.sqrt(2))


@given(st.data())
def test_labels_of_a_cut_are_read_back(data: st.DataObject) -> None:
    schema = Schema((JOB, AGE), None, ("",))
    cut = top(schema)
    for _ in range(data.draw(st.integers(0, 6))):
        number = data.draw(st.integers(0, 1))
        column = schema.qid[number]
        open_nodes = [node for node in cut.nodes[number] if node.last - node.first > 1]
        if not open_nodes:
            continue
        node: Node = data.draw(st.sampled_from(open_nodes))
        children = column.children(node)
        if column.is_numeric:
            children = interval_children(node, data.draw(st.integers(1, node.last - node.first - 1)))
        cut = cut.specialized(Candidate(number, node, children))
    for number, column in enumerate(schema.qid):
        labels = [column.label(node) for node in cut.nodes[number]]
        places = places_of_labels(column, labels)
        assert places is not None
        assert places.tolist() == cut.positions(number).tolist()


def test_the_rest_of_a_node_is_read_back() -> None:
    """Leaves: Janitor, Mover, Cook, Lawyer, Clerk, ?."""
    places = places_of_labels(JOB, ["Out", "other Blue", "other Any"])
    assert places is not None
    assert places.tolist() == [0, 0, 1, 2, 2, 2]
    places = places_of_labels(JOB, ["Any", "Cook"])  # a column with `suppress`
    assert places is not None
    assert places.tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("labels", [[], ["Blue"], ["Any", "Green"], ["Blue", "White", "?", "Green"]])
def test_labels_that_are_no_cut(labels: list[str]) -> None:
    assert places_of_labels(JOB, labels) is None
    assert places_of_labels(AGE, labels) is None


@pytest.mark.parametrize("method", METHODS)
def test_fewer_different_records_than_clusters(method: str) -> None:
    points = Points(np.array([[0.0], [1.0]]), np.array([0, 1]))
    found = clustered([points], [np.array([0, 1, 1])], np.array([5, 1, 1]), 4, method)
    assert found.labels.tolist() == [0, 1, 1]


def test_weights_stand_for_records() -> None:
    points = [raw_points(AGE), raw_points(JOB)]
    rng = np.random.default_rng(3)
    codes, weights = [rng.integers(0, 6, 40), rng.integers(0, 6, 40)], rng.integers(1, 5, 40)
    rows = np.repeat(np.arange(40), weights)
    joined = clustered(points, codes, weights, 3, "kmeans").labels[rows]
    apart = clustered(points, [c[rows] for c in codes], np.ones(len(rows), np.int64), 3, "kmeans").labels
    assert joined.tolist() == apart.tolist()


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", ["single", "joint"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--method", "bisecting"),
        ("--against", "general"),
        ("--against", "records", "--against", "general"),
    ],
)
def test_a_release_compared(tmp_path: Path, options: Sequence[str], kind: str) -> None:
    """The contingency counted again from the texts of the rows."""
    lkc = {"lkc": {"L": "2", "K": "5", "C": "1"}}
    make = {"single": single_clusters, "joint": joint_clusters}[kind]
    job = job_in(tmp_path, make(clusters=MODEL, model=lkc))
    (tmp_path / "model.json").write_text(json.dumps(clusters.model()))
    rows, table = sample_rows(300), tmp_path / "table.csv"
    if kind == "single":
        ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    else:
        data = [
            f"--data=hospital-{x}={jobs.write_csv(tmp_path / f'{x}.csv', rows[i::3], COLUMNS)}"
            for i, x in enumerate("abc")
        ]
        ran = invoke("coordinator", "simulate", job, *data, "--out", tmp_path / "out", "--in-process")
    assert ran.code == 0, ran.err
    before = listing(tmp_path)
    asked = ("clusters", "evaluate", job, tmp_path / "out", "--data", table, *options)
    ran = invoke("coordinator", *asked, "--format", "json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert listing(tmp_path) == before
    assert found["rows"] == 300
    assert list(found["ways"]) == ["raw", "released", *(o for o in options if o in ("general", "records"))]
    for way in found["ways"].values():
        counts = np.array(way["contingency"])
        expected = agreement(counts)
        assert counts.sum() == 300
        assert counts.sum(axis=1).tolist() == [
            sum(clusters.cluster_of(row) == str(i) for row in rows) for i in range(3)
        ]
        for name, value in (
            ("f_measure", expected.f_measure),
            ("match_point", expected.match_point),
            ("adjusted_rand", expected.adjusted),
        ):
            assert Fraction(way[name]["exact"]) == value
            assert way[name]["value"] == float(value)
    if not options:
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        counts = np.array(found["ways"]["released"]["contingency"])
        assert sorted(counts.T.tolist()) == sorted(recounted(report["cut"], rows))  # whatever their numbers
    text = invoke("coordinator", *asked)
    for part in ("300 rows in 3 clusters (kmeans)", "F-measure", "released", "not for publication"):
        assert part in text.out
    assert ("unguided" in text.out) == ("general" in options)
    assert ("by records" in text.out) == ("records" in options)


@pytest.mark.parametrize("name", ["general", "records"])
def test_a_release_that_no_clusters_guided(tmp_path: Path, name: str) -> None:
    """It is that of the job with goal general, and the score that is named."""
    lkc = {"lkc": {"L": "2", "K": "5", "C": "1"}}
    job, rows = job_in(tmp_path, single_clusters(clusters=MODEL, model=lkc), 90), sample_rows(90)
    (tmp_path / "model.json").write_text(json.dumps(clusters.model()))
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    asked = ("coordinator", "clusters", "evaluate", job, tmp_path / "out", "--against", name)
    counts = np.array(json.loads(invoke(*asked, "--format", "json").out)["ways"][name]["contingency"])
    score = {"general": "groups", "records": "records"}[name]
    unguided = single_job(columns=clusters.COLUMNS, model=lkc, goal="general", score=score)
    other = job_in(tmp_path / "other", unguided, 90)
    assert invoke("coordinator", "run", other, "--out", tmp_path / "other" / "out").code == 0
    report = json.loads((tmp_path / "other" / "out" / "report.json").read_text())
    assert report["model"]["lkc"]["score"] == score
    assert sorted(counts.T.tolist()) == sorted(recounted(report["cut"], rows))


def test_rows_that_are_withheld_are_not_compared(tmp_path: Path) -> None:
    lkc = {"lkc": {"L": "2", "K": "5", "C": "0.6"}}
    described = {"columns": clusters.NO_PLAIN, "model": lkc, "withhold": "1/5"}
    job = job_in(tmp_path, single_clusters(**described), 100)
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    with (tmp_path / "out" / "anonymized.csv").open(newline="") as file:
        published = Counter(int(row[clusters.LABEL]) for row in csv.DictReader(file))
    asked = ("coordinator", "clusters", "evaluate", job, tmp_path / "out", "--against", "general")
    found = json.loads(invoke(*asked, "--format", "json").out)
    assert (found["rows"], found["withheld"]) == (report["rows"], report["withheld"]["rows"])
    assert 0 < found["withheld"] == 100 - found["rows"]
    for way in ("raw", "released"):
        counts = np.array(found["ways"][way]["contingency"])
        assert counts.sum(axis=1).tolist() == [published[i] for i in range(3)]
    unguided = {**described, "columns": clusters.NO_PLAIN, "goal": "general"}
    job_of_general = job_in(tmp_path / "general", single_job(**unguided), 100)
    assert invoke("coordinator", "run", job_of_general, "--out", tmp_path / "general" / "out").code == 0
    rows = json.loads((tmp_path / "general" / "out" / "report.json").read_text())["rows"]
    assert np.sum(found["ways"]["general"]["contingency"]) == rows < 100
    assert f"{found['rows']} rows ({found['withheld']} more are withheld) in 3" in invoke(*asked).out


def recounted(cut: dict[str, list[str]], rows: list[dict[str, str]]) -> list[list[int]]:
    """By cluster of the rows as the printed labels generalize them, how many are in each of the raw ones."""
    above = {
        "Janitor": ["Janitor", "Blue", "Any"],
        "Mover": ["Mover", "Blue", "Any"],
        "Lawyer": ["Lawyer", "White", "Any"],
        "?": ["?", "Any"],
    }

    def printed(leaf: str) -> str:
        """The nearest node above, or the rest of it."""
        return next(label for node in above[leaf] for label in (node, f"other {node}") if label in cut["job"])

    points = []
    for row in rows:
        alike = [printed(leaf) == printed(row["job"]) for leaf in above]
        point = [is_alike / sum(alike) / 2**0.5 for is_alike in alike]
        for interval in cut["age"]:
            low, high = map(int, interval.strip("[)").split(","))
            if low <= int(row["age"]) < high:
                point.append((low + high) / 200)
        points.append(tuple(point))
    assert all(len(point) == 5 for point in points)
    different = sorted(set(points))
    values = {point: i for i, point in enumerate(different)}
    one = Points(np.array(different), np.arange(len(different)))
    codes = np.array([values[point] for point in points])
    found = clustered([one], [codes], np.ones(len(rows), dtype=np.int64), 3, "kmeans")
    counts = [[0] * 3 for _ in range(found.count)]
    for row, number in zip(rows, found.labels.tolist(), strict=True):
        counts[number][int(clusters.cluster_of(row))] += 1
    return counts


def test_the_rest_of_a_node_in_a_release(tmp_path: Path) -> None:
    """`refine: child`: every row is published as the leaf table says that the labels of the report say."""
    described = {**clusters.COLUMNS, "job": {**clusters.COLUMNS["job"], "refine": "child"}}
    job = job_in(tmp_path, single_clusters(columns=described, model={"lkc": {"L": "1", "K": "5", "C": "1"}}))
    rows = [{**row, "job": "?"} if i < 4 else row for i, row in enumerate(sample_rows(300))]
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    cut = json.loads((tmp_path / "out" / "report.json").read_text())["cut"]["job"]
    assert any(label.startswith("other ") for label in cut)
    places = places_of_labels(load_task(job).qid[0], cut)
    assert places is not None
    leaves = ["Janitor", "Mover", "Lawyer", "?"]
    published = Counter(cut[places[leaves.index(row["job"])]] for row in rows)
    with (tmp_path / "out" / "anonymized.csv").open(newline="") as file:
        assert Counter(row["job"] for row in csv.DictReader(file)) == published
    ran = invoke("coordinator", "clusters", "evaluate", job, tmp_path / "out")
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("change", "error_id", "says"),
    [
        (lambda report: report.update(job_sha256="0" * 64), "verification-failed", "a different job"),
        (lambda report: report["data"].update(used=7), "verification-failed", "a different number of rows"),
        (lambda report: report.pop("cut"), "verification-failed", "does not cover"),
        (lambda report: report.update(cut=[1]), "verification-failed", "does not cover"),
        (lambda report: report["cut"].update(age=["[0,50)"]), "verification-failed", "column age"),
        (lambda report: report["cut"].update(job=[5]), "verification-failed", "column job"),
        (lambda report: report["cut"].update(job="Any"), "verification-failed", "column job"),
    ],
)
def test_folders_that_are_no_release_of_the_job(
    tmp_path: Path, change: Any, error_id: str, says: str
) -> None:
    job = job_in(tmp_path, single_clusters())
    assert invoke("coordinator", "run", job, "--out", tmp_path / "out").code == 0
    path = tmp_path / "out" / "report.json"
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))
    ran = invoke("coordinator", "clusters", "evaluate", job, tmp_path / "out", "--format", "json")
    assert ran.problem["error"] == error_id
    assert says in ran.problem["message"]
    assert ("the job's release" in ran.problem["remedy"]) == (says == "a different job")


def test_a_damaged_report_is_not_called_a_report_of_another_job(tmp_path: Path) -> None:
    job = job_in(tmp_path, single_clusters())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text('{"job_sha256": ')
    ran = invoke("coordinator", "clusters", "evaluate", job, tmp_path / "out", "--format", "json")
    assert ran.problem["error"] == "verification-failed"
    assert "report.json is not a report" in ran.problem["message"]


def test_jobs_and_folders_without_clusters(tmp_path: Path) -> None:
    job = job_in(tmp_path, single_job())
    ran = invoke("coordinator", "clusters", "evaluate", job, tmp_path, "--format", "json")
    assert "goal: clusters" in ran.problem["message"]
    job = job_in(tmp_path / "b", single_clusters())
    ran = invoke("coordinator", "clusters", "evaluate", job, tmp_path / "nowhere", "--format", "json")
    assert ran.problem["error"] == "file-missing"
