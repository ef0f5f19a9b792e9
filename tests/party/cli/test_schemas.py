"""The published schemas are those of the sources, describe every key, and accept what we ship and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from jobs.file.yaml_text import parse_yaml
from party.cli.schemas import FORMATS, schemas
from tests.support.configs import party_fields
from tests.support.dp_jobs import dp_single
from tests.support.samples import columns, joint_job, single_job, vertical_job

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs" / "schemas"
SHIPPED = sorted(
    path
    for top in ("examples", "deploy")
    for kind in ("yaml", "yml")
    for path in (ROOT / top).rglob(f"*.{kind}")
    if not {"helm", "monitoring"} & {*path.parts}  # tests/deploy/test_monitoring.py
)
OTHER_FORMATS = {"compose.yaml", "compose-relay.yaml"}


def test_what_is_committed_is_current() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in PUBLISHED.iterdir()} == schemas()


@pytest.mark.parametrize("name", FORMATS)
def test_every_key_is_described_and_no_other_allowed(name: str) -> None:
    schema = json.loads(schemas()[f"{name}.schema.json"])
    Draft202012Validator.check_schema(schema)
    for part in (schema, *schema.get("$defs", {}).values()):
        assert part["additionalProperties"] is False
        assert all(key.get("description") for key in part["properties"].values())


# ---- what an editor does: a schema, a file as YAML 1.1 reads it, a validator


def complaints(form: str, fields: Any) -> list[str]:
    schema = json.loads((PUBLISHED / f"{form}.schema.json").read_text(encoding="utf-8"))
    return [error.message for error in Draft202012Validator(schema).iter_errors(fields)]


def form_of(fields: dict[str, Any]) -> str:
    """Return the format, of three, that a file is written in."""
    if "partition" in fields:
        return "job"
    return "party" if "data" in fields else "coordinator"


def readings(text: str) -> list[Any]:
    """A file as other readers of YAML take it, with numbers and booleans, and as ours does."""
    return [yaml.safe_load(text), parse_yaml(text, "sample")]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_shipped_file_fits_its_schema(path: Path) -> None:
    if path.name in OTHER_FORMATS:
        assert "services" in yaml.safe_load(path.read_text())
        return
    for fields in readings(path.read_text(encoding="utf-8")):
        assert complaints(form_of(fields), fields) == []


def test_there_are_files_of_every_format_among_them() -> None:
    forms = [form_of(yaml.safe_load(path.read_text())) for path in SHIPPED if path.name not in OTHER_FORMATS]
    assert {form: forms.count(form) for form in FORMATS} == {"job": 13, "party": 6, "coordinator": 1}


GUIDES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "guide").glob("*.md"))


@pytest.mark.parametrize("document", ["README.md", "docs/dp.md", *GUIDES])
def test_every_job_in_the_documents_fits_its_schema(document: str) -> None:
    shown = re.findall(r"```yaml\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    whole = [text for text in shown if "version:" in text]
    assert whole or document != "README.md"
    for text in whole:
        for fields in readings(text):
            assert complaints(form_of(fields), fields) == []


def typed(fields: Any) -> Any:
    """Fields that are text, as a reader of YAML 1.1 takes them when they are written plainly."""
    if isinstance(fields, dict):
        return {key: typed(value) for key, value in fields.items()}
    return [typed(value) for value in fields] if isinstance(fields, list) else yaml.safe_load(fields)


GRID = {"min": "-1.5", "max": "2e2", "cuts": ["0", ".5"]}
POLICY = {
    "coordinators": ["coordinator", "7"],
    "columns": {"age": ["qid"], "surgery": ["sensitive"]},
    "min_l": "2",
    "min_k": "20",
    "max_c": "1/3",
    "max_epsilon": "0.5",
    "epsilon_budget": "3",
    "max_lkc_releases": "0",
    "match_ids": "yes",
    "share_class": "off",
    "protected": {"surgery": ["1", "yes"]},
}


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("job", single_job(name="2024", goal="general")),
        ("job", single_job(model={"lkc": {"L": "2", "K": "20", "C": "1/5"}})),
        ("job", joint_job(columns=columns(transfused={"role": "class", "domain": ["yes", "0", "1.5"]}))),
        ("job", vertical_job(insider="true")),
        ("job", dp_single()),
        ("job", single_job(columns=columns(age={"role": "qid", "numeric": GRID}))),
        ("party", party_fields(policy=POLICY, timeouts={"connect_s": "6", "round_s": "1e3", "keepalive_s": "2.5"})),
    ],
)  # fmt: skip
def test_values_fit_as_text_and_as_what_they_look_like(form: str, fields: dict[str, Any]) -> None:
    assert typed(fields) != fields
    FORMATS[form].model_validate(fields)
    assert complaints(form, fields) == complaints(form, typed(fields)) == []


def lkc(**changes: Any) -> dict[str, Any]:
    return single_job(model={"lkc": {"L": "2", "K": "2", "C": "0.5"} | changes})


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("job", []),
        ("job", single_job(version="2")),
        ("job", single_job(version=2)),
        ("job", single_job(version=True)),
        ("job", single_job(colour="red")),
        ("job", single_job(partition="diagonal")),
        ("job", single_job(name="a b")),
        ("job", single_job(name=-1)),
        ("job", single_job(columns={})),
        ("job", single_job(columns=columns(age={"role": "nothing"}))),
        ("job", single_job(columns=columns(transfused={"role": "class", "domain": "Y"}))),
        ("job", {key: value for key, value in single_job().items() if key != "columns"}),
        *(("job", lkc(K=k)) for k in (0, "0", "many", 1.5, "1/2", None, True)),
        *(("job", lkc(C=c)) for c in (0, 2, -0.5, "-1/2", "1/0", "half", None, False)),
        ("job", single_job(columns=columns(age={"role": "qid", "numeric": {"min": "low", "max": 9, "step": 1}}))),
        *(("job", vertical_job(insider=word)) for word in ("maybe", 2, [])),
        ("job", joint_job(parties={"a": {"address": "nowhere"}})),
        ("job", joint_job(parties={"a b": {"address": "h:1"}})),
        ("party", party_fields(peers={"a b": {"certificate": "c.pem"}})),
        ("job", joint_job(parties=["a", "b", "c"])),
        *(("job", dp_single({"epsilon": e})) for e in (0, -1, "none")),
        ("party", party_fields(policy={"max_k": 3})),
        *(("party", party_fields(policy={"min_k": k})) for k in (0, -3, "few", None)),
        *(("party", party_fields(policy={"max_c": c})) for c in (0, 1.5, "1/x")),
        *(("party", party_fields(policy={"match_ids": word})) for word in ("sometimes", 3)),
        ("party", party_fields(timeouts={"keepalive_s": 0.1})),
        ("party", party_fields(timeouts={"round_s": "long"})),
        ("party", party_fields(listen="7400")),
        ("party", party_fields(tls=None)),
        ("coordinator", party_fields()),
        ("coordinator", party_fields(data=None, version=1.5)),
    ],
)  # fmt: skip
def test_what_is_no_such_file_does_not_fit(form: str, fields: Any) -> None:
    assert complaints(form, fields)
