"""`goal: clusters`: the model and its file, what it asks of a job, and the cluster of every row in both passes."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from anonymize.clusters import UNIT
from anonymize.errors import SchemaError
from anonymize.tds import Observer
from jobs.data import sources
from jobs.data.sources import Csv
from jobs.errors import ConfigError, PolicyError
from jobs.file.clusters import GREATEST, read_model
from jobs.lkc.sentences import notes_on
from jobs.lkc.single import anonymized
from jobs.loading import check_task, decode_task, load_task, parse_job
from jobs.owner.objections import allowance, check_policy
from jobs.owner.policy import Policy
from jobs.publishing import generalized_rows
from jobs.reading import load_table
from tests.support import clusters, jobs
from tests.support.clusters import LABEL, NEAR, NO_PLAIN, cluster_of, joint_clusters, single_clusters
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_single
from tests.support.job_files import job_file
from tests.support.joint import sample_rows
from tests.support.refusals import refused
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job, vertical_job


def given(**changes: Any) -> dict[str, Any]:
    return {"clusters": clusters.clusters(**changes)}


NO_NAMES = ("", "a\nb", "a\x1b[2J", "a\u202eb", "a,b", " a", "=1+1", "+a", "-a", "@a", "x" * 65)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (single_clusters(clusters=None), "goal clusters needs `clusters"),
        (single_job(**given()), "no other goal has `clusters`"),
        (single_clusters(columns=COLUMNS), "takes the place of the class"),
        (single_clusters(publish="age"), "has a column 'age'"),
        (
            joint_job(goal="clusters", columns=clusters.COLUMNS, **given(publish=None)),
            "name a column for the clusters",
        ),
        (vertical_job(goal="clusters", columns=clusters.COLUMNS, **given()), "single and horizontal jobs"),
        (dp_single(goal="clusters", columns=clusters.COLUMNS), "goal clusters needs `clusters"),
        (single_clusters(clusters={"model": 5}), "clusters.model"),
        (single_clusters(clusters={"publish": "x"}), "`model.lkc.clusters.model` is missing"),
        *((single_clusters(publish=name), "clusters.publish") for name in NO_NAMES),
    ],
)
def test_jobs_that_contradict_themselves(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


COLUMN = {"name": "age", "values": "0" * 16}


@pytest.mark.some(18)
@pytest.mark.parametrize(
    "changes",
    [
        {"version": "2"},
        {"method": "magic"},
        {"extra": 1},
        {"columns": []},
        {"columns": "age"},
        {"columns": [{"name": "age"}]},
        {"columns": [{"name": "age", "values": "x"}]},
        {"centroids": []},
        {"centroids": [NEAR[0]]},
        {"centroids": [NEAR[0], NEAR[0]]},
        {"centroids": [NEAR[0], NEAR[1][:-1]]},
        {"centroids": [[*NEAR[0][:-1], -1], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], 65537], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], 10**400], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], 0.5], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], float("nan")], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], float("inf")], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], None], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], True], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], 5.0], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], "5.0"], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], " 5"], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], "5_0"], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], "٥"], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], "65537"], NEAR[1]]},
        {"centroids": [[*NEAR[0][:-1], "9" * 5000], NEAR[1]]},
        {"centroids": [1, 2]},
        {"centroids": {"a": 1}},
        {"centroids": "many"},
        {"centroids": [[0] * 5] * 257},
        {"centroids": [[0] * (1 << 19), [0] * (1 << 19), [0]]},
    ],
)
def test_malformed_models(changes: dict[str, Any], tmp_path: Path) -> None:
    """In a file, and in a bundle."""
    text = json.dumps({**clusters.model(), **changes})
    with pytest.raises(ConfigError) as caught:
        read_model(text, "model.json")
    assert caught.value.problem.message.startswith("model.json: ")
    assert len(caught.value.problem.message) < 1000
    with pytest.raises(ConfigError):
        parse_job({**single_clusters(), "clusters": {"model": json.loads(text)}}, "job")


def test_a_feature_of_one_is_the_greatest_coordinate() -> None:
    assert GREATEST == UNIT


def test_numbers_as_text_are_for_job_files(tmp_path: Path) -> None:
    """All of YAML is text; a model file and a bundle are JSON, and say numbers."""
    model = clusters.model(centroids=[[str(x) for x in each] for each in NEAR])
    task = load_task(job_file(tmp_path, single_clusters(clusters={"model": model})))
    assert task.job.clusters is not None
    assert task.job.clusters.opened.centroids == NEAR
    with pytest.raises(ConfigError, match="write numbers"):
        read_model(json.dumps(model), "model.json")
    bundle = json.loads(task.bundle.encoded)
    decode_task(_canonical(bundle))
    bundle["job"]["model"]["lkc"]["clusters"]["model"]["centroids"][0][0] = "46341"
    with pytest.raises(ConfigError, match="canonical"):
        decode_task(_canonical(bundle))


def _canonical(bundle: Any) -> bytes:
    return json.dumps(bundle, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "1", "[" * 100000, '{"a":' * 300 + "1" + "}" * 300, "9" * 5000]
)
def test_files_that_are_no_model(text: str) -> None:
    with pytest.raises(ConfigError):
        read_model(text, "model.json")


@pytest.mark.parametrize(
    ("of_model", "says"),
    [
        (
            {"columns": [{**COLUMN, "name": "surgery"}], "centroids": [[1], [2]]},
            "no quasi-identifier 'surgery'",
        ),
        ({"columns": [COLUMN], "centroids": [[1], [2]]}, "column age has a different taxonomy or grid"),
        ({"names": ["age", "age"], "centroids": [[1, 1], [2, 2]]}, "named twice"),
        ({"names": ["age"]}, "the model's centroids have 5 coordinates, but the columns 1"),
        ({"names": ["age", "job"], "centroids": [[1], [2]]}, "coordinates, but the columns 5"),
    ],
)
def test_models_that_do_not_fit(of_model: dict[str, Any], says: str) -> None:
    task = jobs.task_of(single_clusters(clusters=clusters.clusters(**of_model)))
    with pytest.raises(SchemaError) as caught:
        check_task(task)
    assert says in str(caught.value)
    assert "clusters fit" in str(caught.value.remedy)


def test_a_model_fits_no_other_grid() -> None:
    other = {**clusters.COLUMNS, "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "5"}}}
    with pytest.raises(SchemaError, match="column age has a different"):
        check_task(jobs.task_of(single_clusters(columns=other)))


def test_a_bundle_carries_the_model(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps(clusters.model()))
    path = job_file(tmp_path, joint_clusters(clusters={"model": "model.json", "publish": LABEL}))
    task = load_task(path)
    decoded = decode_task(task.bundle.encoded).clusters
    assert decoded is not None
    assert (decoded.columns, decoded.centroids.tolist()) == ((0, 1), [list(each) for each in NEAR])
    assert task.bundle.encoded == jobs.bundle_of(joint_clusters()).encoded
    other = jobs.bundle_of(joint_clusters(clusters=clusters.clusters(centroids=NEAR[::-1])))
    assert other.digest != task.digest
    named = json.loads(task.bundle.encoded)
    named["job"]["model"]["lkc"]["clusters"]["model"] = "model.json"
    with pytest.raises(ConfigError, match="is a path"):
        decode_task(json.dumps(named, separators=(",", ":"), ensure_ascii=False).encode())


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    path = job_file(tmp_path, single_clusters(clusters={"model": "model.json"}))
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert caught.value.problem.error_id == "file-missing"


def test_an_owner_must_allow_clusters_to_be_published() -> None:
    task = jobs.task_of(joint_clusters())
    settings = allowance(task, PARTIES[0], "coordinator")
    check_policy(Policy(**settings), task, PARTIES[0], "coordinator")
    del settings["cluster_labels"]
    with pytest.raises(PolicyError, match="clusters of records may not be published"):
        check_policy(Policy(**settings), task, PARTIES[0], "coordinator")


def test_pass_1_labels_every_row(tmp_path: Path) -> None:
    rows = sample_rows(200)
    task = jobs.task_of(single_clusters())
    path = jobs.write_csv(tmp_path / "t.csv", rows, COLUMNS)
    table = load_table(Csv(path), task).table
    assert table.schema.classes == ("0", "1", "2")
    counts = Counter(cluster_of(row) for row in rows)
    assert len(counts) == 3
    found = Counter[str]()
    for label, weight in zip(table.axis(0).tolist(), table.weights.tolist(), strict=True):
        found[str(label)] += weight
    assert found == counts


@pytest.mark.parametrize("publish", [LABEL, None])
def test_pass_2_publishes_the_same_clusters(
    publish: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside plain columns, in every batch."""
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 200)
    rows = sample_rows(120)
    rows[5] = {**rows[5], "age": "?"}
    task = jobs.task_of(single_clusters(publish=publish))
    source = Csv(jobs.write_csv(tmp_path / "t.csv", rows, COLUMNS))
    loaded = load_table(source, task)
    cut = anonymized(task, loaded, Observer()).cut
    assert cut.is_refined(0) or cut.is_refined(1)
    found: list[tuple[str, ...]] = []
    n_batches = 0
    for batch in generalized_rows(source, task, loaded.table.schema, cut):
        assert batch.schema.names == list(task.job.published)
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        n_batches += 1
    assert n_batches > 1
    job, age = task.schema.qid
    places = (cut.positions(0), cut.positions(1))
    leaves = {"Janitor": 0, "Mover": 1, "Lawyer": 2}
    for row, released in zip([row for row in rows if row["age"] != "?"], found, strict=True):
        expected = {
            "job": job.label(cut.nodes[0][places[0][leaves[row["job"]]]]),
            "age": age.label(cut.nodes[1][places[1][int(row["age"]) // 10]]),
            "surgery": row["surgery"],
            "transfused": row["transfused"],
        } | ({} if publish is None else {publish: cluster_of(row)})
        assert dict(zip(task.job.published, released, strict=True)) == expected


def written(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("described", [clusters.COLUMNS, NO_PLAIN], ids=["plain", "no plain"])
@pytest.mark.parametrize("publish", [LABEL, None])
def test_one_holders_release(tmp_path: Path, publish: str | None, described: Mapping[str, Any]) -> None:
    (tmp_path / "model.json").write_text(json.dumps(clusters.model()))
    asked = {"model": "model.json"} | ({} if publish is None else {"publish": publish})
    job = job_file(tmp_path, single_clusters(clusters=asked, columns=described))
    rows = sample_rows(120)
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["goal"] == "clusters"
    assert report["clusters"]["count"] == 3
    assert report["clusters"]["columns"] == ["job", "age"]
    assert report["clusters"]["publish"] == publish
    released = written(tmp_path / "out" / "anonymized.csv")
    assert report["specializations"]
    for step in report["specializations"]:  # scores are computed from what is published
        assert ("score" in step) == ("gain" in step) == (publish is not None and "naming" not in step)
    assert (LABEL in released[0]) == (publish is not None)
    if publish is not None:
        assert Counter(row[LABEL] for row in released) == Counter(map(cluster_of, rows))
        assert any("follows from raw quasi-identifiers" in note for note in report["notes"])
    else:
        assert not any("follows from" in note for note in report["notes"])


def test_a_table_with_a_cluster_that_there_is_not(tmp_path: Path) -> None:
    job = job_file(tmp_path, single_clusters())
    (tmp_path / "t.csv").write_text("job,age,transfused,surgery,cluster\n" + 'Any,"[0,100)",Y,Heart,3\n' * 9)
    ran = invoke("coordinator", "verify", job, tmp_path / "t.csv", "--format", "json")
    assert ran.problem["error"] == "verification-failed"
    assert "column cluster" in ran.problem["message"]


def joint_rows(
    task_fields: dict[str, Any], folder: Path, parts: Sequence[Sequence[Mapping[str, str]]]
) -> Counter[Any]:
    """The released rows of a joint run in one process."""
    folder.mkdir()
    job = job_file(folder, task_fields)
    options: list[str] = []
    for name, rows in zip(task_fields["parties"], parts, strict=True):
        options += ["--data", f"{name}={jobs.write_csv(folder / f'{name}.csv', rows, COLUMNS)}"]
    ran = invoke("coordinator", "simulate", job, *options, "--out", folder / "out", "--in-process")
    assert ran.code == 0, ran.err
    assert invoke("coordinator", "verify", job, folder / "out").code == 0
    return Counter(tuple(sorted(row.items())) for row in written(folder / "out" / "anonymized.csv"))


LKC = {"lkc": {"L": "1", "K": "5", "C": "0.9"}}


@pytest.mark.some(1)
@pytest.mark.parametrize("described", [clusters.COLUMNS, NO_PLAIN], ids=["plain", "no plain"])
@pytest.mark.parametrize(
    ("disclosure", "n"), [("sealed", 2), ("sealed", 3), ("leader", 3), ("strict", 2), ("strict", 3)]
)
def test_a_joint_run_is_that_of_the_union(
    disclosure: str, n: int, described: Mapping[str, Any], tmp_path: Path
) -> None:
    rows = sample_rows(150, seed=3)
    alone = job_file(tmp_path, single_clusters(columns=described, model=LKC, score="infogain"))
    jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    assert invoke("coordinator", "run", alone, "--out", tmp_path / "out").code == 0
    expected = Counter(tuple(sorted(row.items())) for row in written(tmp_path / "out" / "anonymized.csv"))
    assert len({dict(row)[LABEL] for row in expected}) == 3
    assert len({dict(row)["age"] for row in expected}) > 1
    parties = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES[:n])}
    asked = {"disclosure": disclosure, "columns": described, "model": LKC, "score": "infogain"}
    fields = joint_clusters(parties=parties, **asked)
    dealt = [[row for i, row in enumerate(rows) if i % 7 % n == party] for party in range(n)]
    assert joint_rows(fields, tmp_path / "joint", dealt) == expected


def test_validate_says_what_the_clusters_are(tmp_path: Path) -> None:
    path = job_file(tmp_path, joint_clusters())
    ran = invoke("coordinator", "validate", path, "--format", "json")
    assert json.loads(ran.out)["clusters"] == {
        "count": 3,
        "method": "kmeans",
        "columns": ["job", "age"],
        "sha256": jobs.task_of(joint_clusters()).job.clusters.opened.digest,  # type: ignore[union-attr]
        "publish": LABEL,
    }
    assert any(LABEL in note for note in notes_on(jobs.task_of(joint_clusters())))
