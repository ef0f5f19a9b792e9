"""`coordinator validate`: whoever approves a job sees all of it that matters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from anonymize.joint.disclosure import ALLOWED
from anonymize.joint.lkc.scores.rows import SCORES
from jobs.description import description_fields, description_lines
from jobs.dp.settings import DpModel, SyntheticModel
from jobs.file.clusters import ClusterSettings
from jobs.file.columns import Clock, Column, DateDomain, NumericDomain, SetOf
from jobs.file.job import Job, PartyEntry
from jobs.lkc.settings import LkcSettings, Requirement
from jobs.sequences.settings import SequencesModel
from tests.support import jobs
from tests.support.clusters import NEAR, clusters, joint_clusters, single_clusters
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_joint, dp_model, dp_single
from tests.support.network import write_job
from tests.support.samples import AS_IT_IS, COLUMNS, PARTIES, columns, joint_job, single_job, vertical_job
from tests.support.synthetic_jobs import synthetic_single
from tests.support.wards import joint_wards_job, sets_job, wards_columns, wards_job

A, B, C = PARTIES


def text_of(fields: Mapping[str, Any]) -> str:
    """Return the shown text, without the hash."""
    task = jobs.task_of(fields)
    return "\n".join(description_lines(task)).replace(task.digest.hex(), "")


def column(name: str, **changes: Any) -> dict[str, Any]:
    kept = {key: value for key, value in {**COLUMNS[name], **changes}.items() if value is not None}
    return columns(**{name: kept})


def sealed(**changes: Any) -> dict[str, Any]:
    return joint_job(**{"disclosure": "sealed", **changes})


def of_list(changes: Mapping[str, Any]) -> dict[str, Any]:
    """A job with two requirements, the second changed."""
    return sealed(model={"requirements": [{"K": "2", "C": "0.5"}, {"K": "4", **changes}]})


def of_groups(**surgery: str) -> dict[str, Any]:
    """A job with a taxonomy of its sensitive column."""
    tree = {"Any": {"Chest": {"Organ": ["Heart", "Lung"]}, "Limb": ["Knee"]}}
    return sealed(columns=columns(surgery={"role": "sensitive", "taxonomy": tree, **surgery}))


PLAIN = columns(ward={"role": "plain"})
SHARED = column("transfused", shared_by="loan")
CODES = {"role": "qid", "set": {"taxonomy": {"Any": ["a", "b"]}, "separator": ";"}}
ELSEWHERE = {name: {"address": "127.0.0.1:9"} for name in PARTIES}


def kd_single(**changes: Any) -> dict[str, Any]:
    return single_job(goal="general", method="kd", **changes)


def of_two(**changes: Any) -> dict[str, Any]:
    """One holder's job with two sensitive columns that it looks at together."""
    outcome = {"role": "sensitive", "domain": ["Home", "Died"], "C": "1"}
    ruled = {"lkc": {"L": "2", "K": "2", "C": "0.5", "ruled_out": "1"}}
    return single_job(goal="general", model=ruled, columns=columns(outcome=outcome), **changes)


_EXACT = {"release": "anatomy", "quasi": "exact"}
_DIVERSE = {"lkc": {"L": "2", "K": "2", "C": "0.5", "diversity": "2"}}
_IN_CELLS = {"role": "sensitive", "numeric": {"min": "0", "max": "90", "cuts": ["10", "50"]}}


def _close(t: str) -> dict[str, Any]:
    return {"lkc": {"L": "2", "K": "2", "C": "0.5", "t": t}}


SETS = sets_job()["columns"]
HOURS = {"role": "time", "numeric": {"min": "0", "max": "24", "step": "1"}}


def clocked(**changes: str) -> dict[str, Any]:
    clock = {"from": "2026-01-01", "to": "2026-01-05", "step": "6h", **changes}
    return wards_job(columns=wards_columns(at={"role": "time", "clock": clock}))


def dated(**changes: Any) -> dict[str, Any]:
    """A column of dates. changes: of keys; None removes a key."""
    given = {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo", **changes}
    dates = {key: value for key, value in given.items() if value is not None}
    return sealed(columns=columns(age={"role": "qid", "dates": dates}))


BOTH = ["age", "weight"]
IN_ORDER = synthetic_single(
    columns={name: {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}} for name in BOTH},
    goal="general",
)
CHANGES: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "Job.name": (sealed(), sealed(name="other")),
    "Job.partition": (joint_job(disclosure="sealed"), single_job()),
    "Job.model": (sealed(), sealed(model=dp_model(), goal="classification")),
    "LkcSettings.withhold": (single_job(), single_job(withhold="1/50")),
    "Job.goal": (sealed(), sealed(goal="general")),
    "LkcSettings.score": (sealed(), sealed(score="infogain")),
    "LkcSettings.method": (sealed(goal="general"), sealed(goal="general", method="kd")),
    "LkcSettings.split": (kd_single(), kd_single(split="median")),
    "LkcSettings.link": (of_two(), of_two(link="none")),
    "LkcSettings.release": (of_two(), of_two(release="anatomy")),
    "LkcSettings.quasi": (of_two(release="anatomy"), of_two(**_EXACT)),
    "LkcSettings.files": (of_two(), of_two(files="parquet")),
    "LkcSettings.contexts": (sealed(), sealed(contexts="partitions")),
    "LkcSettings.clusters": (joint_clusters(), joint_clusters(clusters=clusters(centroids=NEAR[::-1]))),
    "ClusterSettings.model": (
        joint_clusters(),
        joint_clusters(clusters=clusters(names=["age"], centroids=[[1], [2]])),
    ),
    "ClusterSettings.publish": (single_clusters(), single_clusters(publish=None)),
    "Job.disclosure": (sealed(), joint_job()),
    "LkcSettings.secure_sum": (joint_job(), joint_job(secure_sum="ring")),
    "Job.columns": (sealed(), sealed(columns=PLAIN)),
    "Job.data": (single_job(), single_job(data="other.csv")),
    "Job.parties": (sealed(), sealed(parties={p: ELSEWHERE[p] for p in (A, C, B)})),
    "Job.leader": (sealed(deputy=C), sealed(deputy=C, leader=B)),
    "Job.deputy": (sealed(), sealed(deputy=C)),
    "LkcSettings.insider": (vertical_job(), vertical_job(insider="true")),
    "Job.deliver": (sealed(), sealed(deliver="coordinator")),
    "LkcModel.L": (sealed(), sealed(model={"lkc": {"L": "1", "K": "2", "C": "0.5"}})),
    "LkcModel.K": (sealed(), sealed(model={"lkc": {"L": "2", "K": "3", "C": "0.5"}})),
    "LkcModel.C": (sealed(), sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.4"}})),
    "LkcModel.colluders": (
        sealed(),
        sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5", "colluders": "1"}}),
    ),
    "LkcSettings.unit": (
        sealed(),
        sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5"}, "unit": "person"}),
    ),
    "DpModel.max_records_per_person": (
        dp_joint("horizontal"),
        dp_joint("horizontal", {"max_records_per_person": "2"}),
    ),
    "LkcModel.ruled_out": (
        sealed(),
        sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5", "ruled_out": "1"}}),
    ),
    "LkcModel.diversity": (
        sealed(),
        sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5", "diversity": "2"}}),
    ),
    "LkcModel.distinct": (
        sealed(),
        sealed(model={"lkc": {"L": "2", "K": "2", "C": "0.5", "distinct": {"surgery": "2"}}}),
    ),
    "LkcModel.t": (single_job(model=_close("0.3")), single_job(model=_close("0.4"))),
    "Requirement.t": (
        single_job(model={"requirements": [{"K": "2"}]}),
        single_job(model={"requirements": [{"K": "2", "t": {"surgery": "0.3"}}]}),
    ),
    **{
        f"Requirement.{key}": (of_list({}), of_list({key: value}))
        for key, value in {
            "columns": ["age"],
            "L": "1",
            "K": "3",
            "C": {"surgery": "0.4"},
            "distinct": {"surgery": "2"},
            "colluders": "1",
            "ruled_out": "1",
            "diversity": "2",
        }.items()
    },
    "PartyEntry.address": (sealed(), sealed(parties=ELSEWHERE)),
    "PartyEntry.columns": (
        vertical_job(),
        vertical_job(
            parties={
                "loan": {"address": "127.0.0.1:7401", "columns": ["job", "age"]},
                "bank": {"address": "127.0.0.1:7402", "columns": ["surgery"]},
            }
        ),
    ),
    "Column.role": (sealed(), sealed(columns=column("patient", **AS_IT_IS))),
    "Column.taxonomy": (
        sealed(),
        sealed(columns=column("job", taxonomy={"Any": ["Janitor", "Mover", "Lawyer"]})),
    ),
    "Column.refine": (
        sealed(columns=column("job", taxonomy={"Any": ["Janitor", "Mover", "Lawyer"]})),
        sealed(columns=column("job", taxonomy={"Any": ["Janitor", "Mover", "Lawyer"]}, refine="children")),
    ),
    "Column.suppress": (
        sealed(columns=column("job", taxonomy={"*": ["Janitor", "Mover", "Lawyer"]}, refine="child")),
        sealed(columns=column("job", taxonomy=None, suppress=["Janitor", "Mover", "Lawyer"])),
    ),
    "Column.weight": (single_job(), single_job(columns=column("age", weight="2"))),
    "Column.level": (of_groups(level="1"), of_groups(level="2")),
    "Column.publish": (of_groups(level="1"), of_groups(level="1", publish="category")),
    "Column.numeric": (
        sealed(),
        sealed(columns=column("age", numeric={"min": "0", "max": "90", "step": "10"})),
    ),
    "Column.dates": (dated(), dated(step="2mo")),
    **{
        f"DateDomain.{key}": (dated(), dated(**{"from" if key == "start" else key: value}))
        for key, value in {
            "start": "2024-02-01",
            "to": "2025-02-01",
            "step": "7d",
            "form": "YYYYMMDD",
            "time": "keep",
        }.items()
    },
    "DateDomain.levels": (dated(), dated(step=None, levels=["year", "month"])),
    "DpModel.max_outside": (dp_single(), dp_single({"max_outside": "1"})),
    "SyntheticModel.max_outside": (synthetic_single(), synthetic_single({"max_outside": "1"})),
    "Column.set": (dp_single(), dp_single(columns=columns(codes=CODES))),
    "SyntheticModel.order": (
        IN_ORDER,
        {**IN_ORDER, "model": {"dp": {**IN_ORDER["model"]["dp"], "order": BOTH}}},
    ),
    "Column.normalize": (
        vertical_job(),
        vertical_job(columns=column("patient", normalize={"digits": "true"})),
    ),
    "Column.spellings": (sealed(), sealed(columns=column("surgery", spellings="distinct"))),
    "Column.publish_as_is": (
        sealed(columns=columns(ward={"role": "plain"})),
        sealed(columns=columns(ward=AS_IT_IS)),
    ),
    "Column.missing": (sealed(), sealed(columns=column("job", missing="drop"))),
    "Column.other": (dp_single(), dp_single(columns=column("job", other="Mover"))),
    "Column.outside": (single_job(), single_job(columns=column("job", outside="missing"))),
    "Column.from_data": (dp_single(), dp_single(columns=column("job", from_data="true"))),
    "Column.prefix": (
        sealed(columns=column("job", taxonomy=None, prefix={"values": ["11", "12", "2"], "lengths": ["1"]})),
        sealed(columns=column("job", taxonomy={"*": ["11", "12", "2"]})),
    ),
    "Column.order": (
        sealed(columns=column("job", taxonomy=None, order={"values": ["a", "b", "c", "d"]})),
        sealed(columns=column("job", taxonomy=None, order={"values": ["a", "b", "c", "d"], "groups": "3"})),
    ),
    "Column.icd": (
        sealed(columns=column("job", taxonomy=None, icd={"version": "10", "values": ["I21.0", "I21.4"]})),
        sealed(columns=column("job", taxonomy={"*": ["I21.0", "I21.4"]})),
    ),
    "Column.ranges": (
        sealed(columns=column("age", numeric=None, ranges=["0", "40", "65", "120"])),
        sealed(columns=column("age", numeric=None, ranges=["0", "40", "66", "120"])),
    ),
    "Column.domain": (sealed(), sealed(columns=column("surgery", domain=["Heart", "Rare"]))),
    "Column.values": (sealed(), sealed(columns=column("surgery", values=["Rare", "Knee"]))),
    "Column.at_most": (
        sealed(model=_DIVERSE),
        sealed(model=_DIVERSE, columns=column("surgery", at_most="0")),
    ),
    "Column.distance": (
        single_job(model=_close("0.3"), columns=columns(surgery=_IN_CELLS)),
        single_job(model=_close("0.3"), columns=columns(surgery={**_IN_CELLS, "distance": "ordered"})),
    ),
    "Column.C": (sealed(), sealed(columns=column("surgery", C="0.3"))),
    "Column.shared_by": (vertical_job(), vertical_job(columns=SHARED)),
    "NumericDomain.min": (
        sealed(),
        sealed(columns=column("age", numeric={"min": "-10", "max": "100", "step": "10"})),
    ),
    "NumericDomain.max": (
        sealed(),
        sealed(columns=column("age", numeric={"min": "0", "max": "110", "step": "10"})),
    ),
    "NumericDomain.step": (
        sealed(),
        sealed(columns=column("age", numeric={"min": "0", "max": "100", "step": "20"})),
    ),
    "NumericDomain.cuts": (
        sealed(columns=column("age", numeric={"min": "0", "max": "100", "cuts": ["10", "50"]})),
        sealed(columns=column("age", numeric={"min": "0", "max": "100", "cuts": ["10", "60"]})),
    ),
    **{
        f"DpModel.{key}": (dp_joint("horizontal"), dp_joint("horizontal", {key: value}))
        for key, value in {
            "epsilon": "0.5",
            "specializations": "3",
            "noise": "each",
            "max_rows": "999",
            "max_cells": "99999",
            "max_fanout": "63",
            "accept_large_epsilon": "true",
        }.items()
    },
    "DpModel.utility": (dp_single(), dp_single({"utility": "infogain"})),
    "DpModel.method": (dp_single(), synthetic_single()),
    "SyntheticModel.method": (dp_single(), synthetic_single()),
    **{
        f"SyntheticModel.{key}": (synthetic_single(), synthetic_single({key: value}))
        for key, value in {
            "epsilon": "0.5",
            "edges": "auto",
            "max_rows": "999",
            "max_records_per_person": "2",
            "accept_large_epsilon": "true",
        }.items()
    },
    "DpModel.engine": (dp_joint("vertical"), dp_joint("vertical", {"engine": "thesis", "max_rows": "70"})),
    **{
        f"SetOf.{key}": (
            dp_single(columns=columns(codes=CODES)),
            dp_single(columns=columns(codes={"role": "qid", "set": {**CODES["set"], key: value}})),  # type: ignore[dict-item]
        )
        for key, value in {"taxonomy": {"Any": ["a", "c"]}, "separator": "+", "max_items": "3"}.items()
    },
    **{
        f"SequencesModel.{key}": (wards_job(base), wards_job({**base, key: value}))
        for key, value, base in (
            ("L", "3", {}),
            ("K", "3", {}),
            ("C", "0.4", {}),
            ("suppress", "global", {}),
            ("cost", "frequent", {"suppress": "global"}),
            ("frequent", "0.02", {}),
            ("places", "first", {}),
            ("stays", "arrivals", {}),
            ("exclusion", "refuse", {}),
            ("max_items", "65", {}),
            ("max_candidates", "5", {}),
        )
    },
    **{
        f"Clock.{key}": (clocked(), clocked(**{"from" if key == "start" else key: value}))
        for key, value in {
            "start": "2026-01-01T06:00",
            "to": "2026-01-03",
            "step": "1h",
            "fold": "1d",
        }.items()
    },
    "Column.clock": (wards_job(), clocked()),
    "Column.relative": (wards_job(), wards_job(columns=wards_columns(at={**HOURS, "relative": "true"}))),
    "Column.separator": (
        sets_job(),
        sets_job(
            columns={
                **sets_job()["columns"],
                "codes": {"role": "items", "domain": list("abcd"), "separator": "+"},
            }
        ),
    ),
}


@pytest.mark.parametrize("key", list(CHANGES))
def test_jobs_that_differ_print_differently_beyond_the_hash(key: str) -> None:
    one, other = map(text_of, CHANGES[key])
    assert one != other
    assert text_of(CHANGES[key][0]) == one


def test_every_key_of_a_job_is_among_them() -> None:
    of_dp = (DpModel, SyntheticModel)
    models = (
        Job,
        LkcSettings,
        Requirement,
        *of_dp,
        SequencesModel,
        Column,
        PartyEntry,
        NumericDomain,
        DateDomain,
        SetOf,
    )
    keys = {
        f"{model.__name__}.{name}"
        for model in (*models, ClusterSettings, Clock)
        for name in model.model_fields
    }
    elsewhere = {"Column.domain_file"}  # tests/jobs/sequences
    assert keys - set(CHANGES) - elsewhere == {"Job.version"}  # there is one


@pytest.mark.parametrize(
    ("fields", "mode"),
    [
        (sealed(), "horizontal/sealed"),
        (joint_job(), "horizontal/leader"),
        (sealed(disclosure="strict"), "horizontal/strict"),
        (sealed(goal="general", method="kd"), "horizontal/sealed/kd"),
        (joint_wards_job(), "sequences/horizontal/sealed"),
        (vertical_job(), "vertical/sealed"),
        (vertical_job(disclosure="leader"), "vertical/leader"),
        (dp_joint("horizontal"), "dp/horizontal/circuit"),
        (dp_joint("vertical"), "dp/vertical/circuit"),
    ],
)
def test_what_becomes_known_is_listed(fields: Mapping[str, Any], mode: str) -> None:
    shown, told = text_of(fields), description_fields(jobs.task_of(fields))
    of_score = SCORES["added"].reveals.get(mode, ()) if fields.get("disclosure") != "strict" else ()
    listed = (*ALLOWED[mode], *of_score)
    assert [(r["name"], r["to"]) for r in told["revealed"]] == [(a.name, a.to) for a in listed]
    for allowed in listed:
        assert f"  {'!' if allowed.finer else ' '} to {allowed.to}: {allowed.meaning}" in shown


def test_an_approver_sees_the_whole_job(tmp_path: Path) -> None:
    job = write_job(tmp_path, sealed(deputy=C))
    ran = invoke("coordinator", "validate", job)
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "  disclosure   sealed",
        "  leader       hospital-a",
        "  deputy       hospital-c",
        "    age: qid; hierarchy (from 0, below 100, cells 10, sha256 ",
        "    job: qid; hierarchy (leaves 4, height 2, sha256 ",
        "    surgery: sensitive; domain Heart | Knee | Rare; missing error; protected Rare; C 1/2",
        "    hospital-b: 127.0.0.1:7402",
        "  compute pair: hospital-a and hospital-c evaluate circuits for all",
        "  delivered to: every party and the coordinator",
    ):
        assert line in ran.out
    fields = json.loads(invoke("coordinator", "validate", job, "--format", "json").out)
    assert fields["columns"]["surgery"] == {
        "role": "sensitive",
        "domain": ["Heart", "Knee", "Rare"],
        "missing": "error",
        "protected": ["Rare"],
        "C": "1/2",
    }
    assert fields["addresses"][B] == "127.0.0.1:7402"
    asked = {"L": 2, "K": 2, "C": "1/2", "method": "top-down", "score": "added", "contexts": "cells"}
    assert fields["model"] == {"lkc": asked}


def test_a_model_of_clusters_is_told_in_words() -> None:
    line = next(line for line in text_of(single_clusters()).splitlines() if line.split()[0] == "clusters")
    assert "count 3; method kmeans; columns job, age; " in line
    assert "{" not in line
    assert "[" not in line


def test_what_tests_of_a_vertical_job_take_is_said() -> None:
    task = jobs.task_of(vertical_job())
    (said,) = description_fields(task)["costs"]
    assert (
        "AND gates of 32 bytes for each group and child, and 4 bytes for each record below a candidate"
        in said
    )
    assert said in text_of(vertical_job())
    assert "costs" not in description_fields(
        jobs.task_of(vertical_job(model={"lkc": {"L": "2", "K": "2", "C": "1"}}))
    )
    assert "costs" not in description_fields(jobs.task_of(sealed()))


def test_keys_that_bound_no_inference_in_a_dp_job_are_noted() -> None:
    """A job of LKC-privacy becomes a DP job with the same columns: keys of inferences say nothing there."""
    surgery = {"role": "sensitive", "domain": ["Rare", "Usual"], "values": ["Rare"], "C": "0.5"}
    for job in (dp_single, synthetic_single):
        text = text_of(job(columns=columns(surgery=surgery)))
        for key in ("C", "values"):
            assert f"columns.surgery.{key} has no effect: in a DP job ε bounds the inference" in text
        assert "None" not in text
        plain = columns(surgery={"role": "sensitive", "domain": ["Rare", "Usual"]})
        assert "has no effect" not in text_of(job(columns=plain))


def test_the_table_of_an_engine_is_told_by_its_keys() -> None:
    table = {"name": "visits", "duckdb": {"path": "visits/*.parquet", "memory_limit": "2GB"}}
    lines = text_of(single_job(data=table)).splitlines()
    assert "  data         name visits; duckdb path visits/*.parquet; memory_limit 2GB" in lines
