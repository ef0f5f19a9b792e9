"""Reading jobs: files and bundles in one form, and what is wrong with them is found without data."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.errors import SchemaError
from anonymize.grid import Grid
from anonymize.joint.grids import MAX_GRID_CELLS
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.taxonomy import Taxonomy
from jobs.errors import ConfigError, Exit, problem_of
from jobs.file.bundle import MAX_BUNDLE_BYTES, Bundle
from jobs.file.job import MAX_COLUMNS
from jobs.loading import MADE, MODELS, decode_task, load_task, model_named, open_task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.examples import examples
from tests.support.job_files import FILED, JOB_CSV, job_file
from tests.support.samples import columns, joint_job, vertical_job
from tests.support.tables import Case, cases

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transfusion" / "job.yaml"


def refused_id(encoded: bytes) -> str:
    with pytest.raises(Exception) as caught:
        decode_task(encoded)
    problem = problem_of(caught.value)
    assert problem.exit_code == Exit.USAGE
    return problem.error_id


def test_a_loaded_bundle_round_trips(tmp_path: Path) -> None:
    for path in (EXAMPLE, job_file(tmp_path, joint_job(columns=FILED), {"job.csv": JOB_CSV})):
        bundle = load_task(path).bundle
        again = decode_task(bundle.encoded).bundle
        assert again.encoded == bundle.encoded
        assert again.digest == bundle.digest == hashlib.sha256(bundle.encoded).digest()
        assert open_task(again).schema == open_task(bundle).schema


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_any_job_round_trips(case: Case) -> None:
    bundle = jobs.bundle_of(case.fields)
    again = decode_task(bundle.encoded).bundle
    assert again == bundle
    assert again.digest == bundle.digest


def test_values_of_every_kind(tmp_path: Path) -> None:
    task = load_task(job_file(tmp_path, joint_job(columns=FILED), {"job.csv": JOB_CSV}))
    assert isinstance(task.taxonomies["job"], Taxonomy)
    assert task.taxonomies["job"].leaves == ("Janitor", "Mover", "Lawyer", "?")
    assert isinstance(task.taxonomies["age"], Grid)
    schema = task.schema
    assert [c.name for c in schema.qid] == ["job", "age"]
    assert schema.classes == ("Y", "N")
    assert schema.sensitive[0].protected == (2,)
    demands = Size(2), Confidences(Fraction(1, 2), (("surgery", Fraction(1, 2)),))
    assert jobs.requirement_of(task.bundle) == AskedList((Ask(2, demands),))


@pytest.mark.parametrize(
    ("fields", "files", "error_id"),
    [
        (joint_job(columns=FILED), {}, "file-missing"),
        (joint_job(columns=FILED), {"job.csv": ""}, "taxonomy-invalid"),
        (joint_job(columns=FILED), {"job.csv": JOB_CSV + "Mover;White;Any\n"}, "taxonomy-two-parents"),
        (joint_job(columns=FILED), {"job.csv": JOB_CSV + "Doctor;White;All\n"}, "taxonomy-invalid"),
        (joint_job(columns=FILED), {"job.csv": "x" * 200_000 + ";Any\n"}, "taxonomy-invalid"),
        (joint_job(columns=FILED), {"job.csv": "a" + ";b" * 5000 + "\n"}, "taxonomy-invalid"),
        (
            joint_job(columns=columns(age={"role": "qid", "numeric": {"min": "9", "max": "3", "step": "1"}})),
            {},
            "grid-invalid",
        ),
        (
            joint_job(columns=columns(age={"role": "qid", "numeric": {"min": "0", "max": "3", "step": "0"}})),
            {},
            "grid-invalid",
        ),
        (
            joint_job(
                columns=columns(age={"role": "qid", "numeric": {"min": "0", "max": "1e30", "step": "1e-9"}})
            ),
            {},
            "grid-invalid",
        ),
        (
            joint_job(
                columns=columns(age={"role": "qid", "numeric": {"min": "0", "max": "9", "cuts": ["5", "3"]}})
            ),
            {},
            "grid-invalid",
        ),
        (
            joint_job(
                columns=columns(
                    **{f"s{i}": {"role": "sensitive", "domain": list(map(str, range(200)))} for i in range(3)}
                )
            ),
            {},
            "domain-too-large",
        ),
    ],
)
def test_what_is_wrong_is_found_without_data(
    tmp_path: Path, fields: dict[str, Any], files: dict[str, str], error_id: str
) -> None:
    with pytest.raises(Exception) as caught:
        load_task(job_file(tmp_path, fields, files))
    problem = problem_of(caught.value)
    assert (problem.error_id, problem.exit_code) == (error_id, Exit.USAGE)
    if error_id.startswith("taxonomy"):
        assert problem.column == "job"


@pytest.mark.parametrize(
    ("content", "changes", "places"),
    [
        (JOB_CSV + "Mover;White;Any\n", {}, ("{folder}/job.csv: line 4: the taxonomy of column job gives",)),
        ("", {}, ("{folder}/job.yaml: line ", ": {folder}/job.csv: the taxonomy of column job is empty")),
        (
            JOB_CSV + "other Any;White;Any\n",
            {"refine": "child"},
            ("job.yaml: line ", ": {folder}/job.csv: column"),
        ),
    ],
    ids=["line", "whole file", "what follows from it"],
)
def test_an_error_about_a_hierarchy_names_its_file(
    tmp_path: Path, content: str, changes: dict[str, str], places: tuple[str, ...]
) -> None:
    fields = joint_job(columns={**FILED, "job": {**FILED["job"], **changes}})
    with pytest.raises(SchemaError) as caught:
        load_task(job_file(tmp_path, fields, {"job.csv": content}))
    for place in places:
        assert place.format(folder=tmp_path) in str(caught.value)


def encoded_with(**changes: Any) -> bytes:
    parts = json.loads(jobs.bundle_of(joint_job()).encoded) | changes
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_form_that_is_bent_below_is_accepted() -> None:
    assert decode_task(encoded_with()).digest == jobs.bundle_of(joint_job()).digest


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"\xff\xfe\x00",
        b"not json",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"bundle":1,"job":' + b'{"a":' * 50_000,
        encoded_with(bundle=2),
        encoded_with(files=[]),
        encoded_with(files={"job": "a;b"}),
        encoded_with(files={"nothing": "a;b"}),
        encoded_with(extra=1),
        encoded_with() + b" ",
        encoded_with().replace(b'"bundle":1', b'"bundle": 1'),
        encoded_with().replace(b'"L":2', b'"L":"2"'),
        encoded_with().replace(b'"C":"1/2"', b'"C":"2/4"'),
        encoded_with().replace(b'"bundle":1', b'"bundle":1,"bundle":1'),
        json.dumps(json.loads(encoded_with()), sort_keys=True, separators=(",", ":")).encode(),
        encoded_with().replace(b'"role":"id"', b'"role":"id","domain":null'),
        encoded_with().decode().encode("utf-16"),
    ],
)
def test_anything_not_canonical_is_refused(encoded: bytes) -> None:
    assert refused_id(encoded) == "job-invalid"


@pytest.mark.parametrize(
    ("changes", "error_id"),
    [
        ({"job": None}, "job-invalid"),
        ({"job": []}, "job-invalid"),
        ({"job": {**json.loads(encoded_with())["job"], "colour": "red"}}, "unknown-key"),
        ({"job": {**json.loads(encoded_with())["job"], "partition": "vertical"}}, "job-invalid"),
    ],
)
def test_a_job_in_a_bundle_obeys_the_rules_of_jobs(changes: dict[str, Any], error_id: str) -> None:
    assert refused_id(encoded_with(**changes)) == error_id


def test_a_name_that_is_no_unicode_text_is_refused() -> None:
    job = json.loads(encoded_with())["job"]
    job["columns"]["\ud800"] = {"role": "plain"}
    job["columns"]["job"]["taxonomy"] = {"\udfff": ["\ud800"]}
    encoded = json.dumps({"bundle": 1, "job": job, "files": {}}, separators=(",", ":")).encode()
    assert refused_id(encoded) == "job-invalid"


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_a_bundle_with_one_byte_changed_never_passes_as_the_same(data: st.DataObject) -> None:
    encoded = bytearray(encoded_with())
    at = data.draw(st.integers(0, len(encoded) - 1))
    encoded[at] ^= data.draw(st.integers(1, 255))
    try:
        digest, problem = decode_task(bytes(encoded)).digest, None
    except Exception as error:  # noqa: BLE001  only that it is one of ours, whichever byte was hit
        digest, problem = b"", problem_of(error)
    assert digest != jobs.bundle_of(joint_job()).digest
    assert problem is None or problem.exit_code == Exit.USAGE


def test_a_bundle_has_a_greatest_size() -> None:
    bundle = jobs.bundle_of(joint_job(columns=columns(job={"role": "qid", "taxonomy": "job.csv"})))
    with pytest.raises(SchemaError) as caught:
        decode_task(Bundle(bundle.job, {"job": "x;Any\n" + "\n" * MAX_BUNDLE_BYTES}).encoded)
    assert caught.value.error_id == "domain-too-large"


def grid_of(cells: int, **changes: Any) -> bytes:
    """A joint job with a grid of so many cells, encoded."""
    age = {"role": "qid", "numeric": {"min": "0", "max": str(cells), "step": "1"}}
    return jobs.bundle_of(joint_job(columns=columns(age=age), **changes)).encoded


def test_a_grid_that_a_sealed_run_cannot_score_is_refused() -> None:
    """At most 4,096 cells, four times what is promised; with the remedy, and before anything is sent."""
    assert MAX_GRID_CELLS == 4096
    decode_task(grid_of(4096, disclosure="sealed"))
    decode_task(grid_of(40_000, disclosure="leader"))
    for cells in (4097, 40_000):
        with pytest.raises(SchemaError, match=f"column age has {cells} cells") as caught:
            decode_task(grid_of(cells, disclosure="sealed"))
        problem = problem_of(caught.value)
        assert (problem.error_id, problem.exit_code, problem.column) == (
            "domain-too-large",
            Exit.USAGE,
            "age",
        )
        assert "larger `step`" in problem.remedy


def test_a_grid_whose_split_a_strict_run_cannot_keep_inside_is_refused() -> None:
    decode_task(grid_of(1024, disclosure="strict"))
    with pytest.raises(SchemaError, match="column age has 1025 cells, more than the 1024") as caught:
        decode_task(grid_of(1025, disclosure="strict"))
    problem = problem_of(caught.value)
    assert (problem.error_id, problem.exit_code, problem.column) == ("domain-too-large", Exit.USAGE, "age")
    assert "disclosure: sealed" in problem.remedy


@pytest.mark.parametrize(
    "fields", [vertical_job(disclosure="strict"), dp_joint("horizontal", disclosure="strict")]
)
def test_other_jobs_have_no_strict_form(fields: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        decode_task(jobs.bundle_of(fields).encoded)
    assert caught.value.problem.error_id == "job-invalid"


def test_a_grid_that_a_horizontal_dp_run_cannot_score_is_refused() -> None:
    age = {"role": "qid", "numeric": {"min": "0", "max": "40000", "step": "1"}}
    fields = dp_joint("horizontal")
    fields["columns"] = {**fields["columns"], "age": age}
    with pytest.raises(SchemaError, match="column age has 40000 cells"):
        decode_task(jobs.bundle_of(fields).encoded)


def nested_bundle(depth: int) -> bytes:
    """A bundle whose taxonomy of one column has so many levels."""
    parts = json.loads(jobs.bundle_of(joint_job()).encoded)
    parts["job"]["columns"]["job"]["taxonomy"] = "tree"
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return text.replace('"tree"', '{"x":' * depth + '["b"]' + "}" * depth).encode()


@pytest.mark.parametrize("depth", [101, 250, 600, 980, 5000])
def test_a_bundle_that_is_nested_deeply_is_refused(depth: int) -> None:
    assert refused_id(nested_bundle(depth)) in {"job-invalid", "taxonomy-invalid"}


def test_a_job_has_a_bound_on_its_columns() -> None:
    more = {f"c{i}": {"role": "plain"} for i in range(MAX_COLUMNS)}
    with pytest.raises(ConfigError, match="more than 1000 columns"):
        jobs.bundle_of(joint_job(columns=columns(**more)))


def test_the_files_of_releases_are_those_of_the_models() -> None:
    assert set(MADE) == {name for model in MODELS for name in model_named(model).made}
