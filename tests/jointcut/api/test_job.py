"""A job is the same as objects, as a dict, as YAML and as a file; wrong keys are told with the stable ids."""

from __future__ import annotations

import inspect
import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pytest
import yaml

import jointcut as jc
from jobs.file import job as form
from jobs.file.fields import LEVELS
from jobs.loading import load_task
from jobs.partitions import PARTITIONS
from jointcut.api.job import job_of
from jointcut.api.written import written
from tests.support.visits import columns, drawn_job, shared_job, visits_job

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(path for path in ROOT.glob("examples/*/*.yaml") if not path.stem.startswith("hospital"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_job_is_the_same_in_every_form(path: Path) -> None:
    digest = load_task(path).digest
    job = jc.Job.from_yaml(path)
    forms = {
        "path": job_of(path),
        "path as text": job_of(str(path)),
        "text": jc.Job.from_yaml(path.read_text(), path.parent),
        "dict of a job": jc.Job.from_dict(job.to_dict(), path.parent),
        "dict of another reader": jc.Job.from_dict(yaml.safe_load(path.read_text()), path.parent),
        "text of a job": jc.Job.from_yaml(job.to_yaml(), path.parent),
    }
    assert {name: each.load().digest for name, each in forms.items()} == dict.fromkeys(forms, digest)
    assert job == forms["text"] == forms["dict of a job"]
    assert job.check()[0]


@pytest.mark.parametrize("job", [visits_job(), drawn_job(), shared_job()], ids=["lkc", "synthetic", "joint"])
def test_objects_are_the_keys_of_the_file(job: jc.Job) -> None:
    again = jc.Job.from_yaml(job.to_yaml())
    assert again == job
    assert again.load().digest == job.load().digest
    assert yaml.safe_load(job.to_yaml())["columns"].keys() == columns().keys()


def test_makers_become_their_tree_as_in_a_file() -> None:
    made = jc.Column(role="qid", prefix=jc.Prefix(values=["1201", "1202", "3300"], lengths=[2]))
    said = {"role": "qid", "prefix": {"values": ["1201", "1202", "3300"], "lengths": [2]}}
    jobs = [visits_job(columns={**columns(), "zip": column}) for column in (made, said)]
    assert jobs[0].load().digest == jobs[1].load().digest


def test_a_job_takes_the_arguments_of_the_format() -> None:
    arguments = inspect.signature(jc.Job.__init__).parameters.keys() - {"self", "folder"}
    assert arguments == form.Job.model_fields.keys()
    said = get_type_hints(jc.Job.__init__)
    for key, values in {"partition": PARTITIONS, "disclosure": LEVELS}.items():
        assert set(re.findall(r"'(\w+)'", str(said[key]))) == set(values)


def test_values_of_python_are_written_as_in_a_file() -> None:
    values: dict[Any, Any] = {
        "whole": np.int64(3),
        "real": np.float64(0.5),
        "floats": np.array([0.0, 0.5, 1e16]),
        "share": Fraction(1, 3),
        "exact": Decimal("0.10"),
        "day": date(2024, 1, 31),
        "moment": pd.Timestamp("2024-01-31"),
        "truth": np.bool_(True),
        "array": np.array([1, 2]),
        "series": pd.Series(["a"]),
        "polars": pl.Series(["b"]),
        "path": Path("x.csv"),
        7: [True, None.__class__.__name__],
        "none": None,
    }
    assert written(values) == {
        "whole": "3",
        "real": "0.5",
        "floats": ["0", "0.5", "1e+16"],
        "share": "1/3",
        "exact": "0.10",
        "day": "2024-01-31",
        "moment": "2024-01-31T00:00:00",
        "truth": "true",
        "array": ["1", "2"],
        "series": ["a"],
        "polars": ["b"],
        "path": "x.csv",
        "7": ["true", "NoneType"],
    }


@pytest.mark.parametrize(
    ("wrong", "id", "words"),
    [
        (lambda: jc.Column(role="qdi"), "job-invalid", "Column: `role` is qdi"),
        (lambda: jc.Column(role="qid"), "job-invalid", "a qid column needs one of"),
        (lambda: jc.Lkc(L=2, K=2, k=3), "unknown-key", "k"),
        (lambda: jc.Lkc(L=2), "job-invalid", "K"),
        (
            lambda: jc.Numeric(min=0, max="x", step=1),
            "job-invalid",
            "Numeric: `max` is x. What to do: write a number",
        ),
        (lambda: jc.Column(role="qid", suppress={"a", "b"}), "job-invalid", "a value of type set"),
        *(
            (lambda absent=absent: jc.Column(role="qid", suppress=["a", absent]), "job-invalid", "dropna()")
            for absent in (None, float("nan"), np.float64("nan"), pd.NaT)
        ),
        (lambda: visits_job(columns={(1, 2): jc.Party()}), "job-invalid", "a key of a job is a text"),
        (lambda: visits_job(columns={}), "job-invalid", "columns"),
        (lambda: visits_job(leader="north"), "job-invalid", "partition single has no `leader`"),
        (lambda: visits_job().with_(modle=1), "unknown-key", "modle"),
        (
            lambda: visits_job().with_(columns={"age": None, 3: None}),
            "job-invalid",
            "a key of a job is a text",
        ),
        (lambda: jc.Job.from_dict([]), "job-invalid", "expected keys and values"),
        (lambda: jc.Job.from_yaml("version: 1\nname: [x"), "yaml-invalid", "line 2"),
        *(
            (
                (lambda text=text: jc.explore(text)),
                "job-invalid",
                "job: expected keys and values, but nothing is",
            )
            for text in ("", " ", "# age\n")
        ),
        (lambda: jc.Job.from_yaml("no-such.yaml"), "file-missing", "no-such.yaml"),
    ],
)
def test_wrong_jobs_are_told(wrong: Any, id: str, words: str) -> None:
    with pytest.raises(jc.Error) as refused:
        wrong()
    assert (refused.value.id, refused.value.exit_code) == (id, 2)
    assert words in str(refused.value)


def test_a_line_of_the_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(visits_job().to_yaml().replace("goal", "gaol").replace("K: 3", "K: 0"))
    with pytest.raises(jc.Error) as refused:
        jc.Job.from_yaml(path)
    assert str(path) in refused.value.message
    assert "line 5" in refused.value.message


def test_a_change_names_keys_or_takes_a_place() -> None:
    job = visits_job(model=jc.Lkc(L=2, K=3, withhold=0.1))
    assert job.with_(model={"lkc": {"K": 4}}).to_dict()["model"] == {
        "lkc": {"L": "2", "K": "4", "withhold": "1/10"}
    }
    assert job.with_(model=jc.Lkc(L=1, K=4)).settings.lkc.withhold is None
    fewer = job.with_(columns={"age": None, "sex": jc.Column(role="qid", taxonomy={"any": ["f", "m"]})})
    assert list(fewer.settings.columns) == [name for name in columns() if name != "age"]
    assert fewer.settings.columns["sex"].suppress is None
    assert job.settings.lkc.withhold == Fraction(1, 10)
    assert job != fewer


def test_the_folder_of_a_job_stays_when_the_current_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, region in (("one", "North"), ("other", "South")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cities.csv").write_text(f"Bonn;{region};*\nKiel;{region};*\nRome;Italy;*\n")
    monkeypatch.chdir(tmp_path / "one")
    job = jc.Job(
        name="trips",
        partition="single",
        model=jc.Lkc(L=1, K=2, C=1),
        goal="general",
        columns={"city": jc.Column(role="qid", taxonomy="cities.csv")},
    )
    said, digest = str(job), job.load().digest
    monkeypatch.chdir(tmp_path / "other")
    assert job.load().digest == digest
    assert (said, str(job)) == ("job", str(tmp_path / "one" / "job"))


def test_files_are_found_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "place.csv").write_text("north;any\nsouth;any\neast;any\n")
    named = {**columns(), "place": jc.Column(role="qid", taxonomy="place.csv")}
    assert visits_job(columns=named, folder=tmp_path).load().bundle.files.keys() == {"place"}
    with pytest.raises(jc.Error) as missing:
        visits_job(columns=named, folder=tmp_path / "elsewhere").check()
    assert missing.value.id == "file-missing"
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "job.yaml").write_text(
        visits_job(columns={**named, "place": {"role": "qid", "taxonomy": "../place.csv"}}).to_yaml()
    )
    with pytest.raises(jc.Error, match="outside its folder"):
        jc.Job.from_yaml(tmp_path / "job" / "job.yaml").check()
    assert jc.Job.from_yaml(tmp_path / "job" / "job.yaml", files_anywhere=True).check()
