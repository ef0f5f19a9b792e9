"""docs/report.md defines every key that a report can have, and no other; and the figures beside K are right."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import jobs
from tests.support.clusters import single_clusters
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.loan import loan_job, loan_tables
from tests.support.network import write_job
from tests.support.samples import COLUMNS, PARTIES, columns, joint_job, single_job
from tests.support.synthetic_jobs import synthetic_single
from tests.support.ward_stays import wards_alone

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "report.md").read_text()
NAMED_BY_THE_JOB = (
    "risk.as_it_is.columns",
    "bins", "files", "model", "cut", "cuts", "versions", "sensitive", "metrics.inference",
    "metrics.generalization_loss", "stopped", "data.dropped",
    "contributed", "exposed_to_parties.one_value", "exposed_to_parties.above_c", "cost.seconds", "cost.parties",
    "requirements[].C", "requirements[].distinct", "requirements[].at_most",
    "requirements[].largest_share", "requirements[].fewest_distinct",
    "requirements[].t", "requirements[].largest_t", "requirement.C", "requirement.largest_share",
    "signatures.tables", "signatures.commitments", "signatures.links", "signatures.links.*", "signatures.parties",
)  # fmt: skip
IN_ORDER = columns(
    patient={"role": "qid", "numeric": {"min": "0", "max": "100", "step": "1"}},
    age={"role": "qid", "numeric": {"min": "0", "max": "100", "step": "1"}},
)
DATED = columns(
    patient={"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}},
    age={"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "3mo"}},
)
OPAQUE = ("model.*", "cost.parties.*", "cut.*", "cuts.*")


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """Every key of a report, as the document writes it."""
    if isinstance(value, dict) and value and path not in OPAQUE:
        for key, item in value.items():
            name = "*" if path in NAMED_BY_THE_JOB else key
            yield from keys_of(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict) and path not in OPAQUE:
        for item in value:
            yield from keys_of(item, f"{path}[]")
    elif not (path in NAMED_BY_THE_JOB and value == {}):
        yield path


def run_single(folder: Path, fields: dict[str, Any], **cells: str) -> dict[str, Any]:
    folder.parent.mkdir()
    rows = [{**row, **cells} if i == 0 else row for i, row in enumerate(sample_rows(60))]
    jobs.write_csv(folder.parent / "table.csv", rows, COLUMNS)
    done = invoke("coordinator", "run", write_job(folder.parent, fields), "--out", folder)
    assert done.code == 0, done.err
    return report_of(folder)


def run_joint(folder: Path, fields: dict[str, Any], *how: str) -> dict[str, Any]:
    rows, folder = sample_rows(60), folder.parent
    folder.mkdir()
    tables = [
        f"--data={n}={jobs.write_csv(folder / f'{n}.csv', rows[i::3], COLUMNS)}"
        for i, n in enumerate(PARTIES)
    ]
    done = invoke(
        "coordinator", "simulate", write_job(folder, fields), *tables, *how, "--out", folder / "out"
    )
    assert done.code == 0, done.err
    return report_of(folder / "out")


def report_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def vertical_report(folder: Path) -> dict[str, Any]:
    tables = [f"--data={party}={path}" for party, path in loan_tables(folder / "tables").items()]
    done = invoke(
        "coordinator", "simulate", loan_job(folder), *tables, "--in-process", "--out", folder / "out"
    )
    assert done.code == 0, done.err
    return report_of(folder / "out")


def test_every_key_of_a_report_is_defined_and_every_definition_occurs(tmp_path: Path) -> None:
    lkc = single_job(model={"lkc": {"L": "2", "K": "2", "C": "0.2"}})
    of_list = {
        "requirements": [
            {"K": "2", "distinct": {"surgery": "2"}, "diversity": "2", "colluders": "1"},
            {"K": "2"},
        ]
    }
    tree = {"Any": {"Chest": ["Heart"], "Limb": ["Knee", "Rare"]}}
    ruled = {"requirements": [{"K": "2", "C": "0.9", "ruled_out": "1", "diversity": "2"}]}
    limited = columns(surgery={"role": "sensitive", "values": ["Rare"], "at_most": "1"})
    of_groups = columns(surgery={"role": "sensitive", "taxonomy": tree, "level": "1", "C": "1"})
    cells = {
        "role": "sensitive",
        "numeric": {"min": "0", "max": "100", "cuts": ["50"]},
        "distance": "ordered",
    }
    in_cells = columns(age=cells)
    close = {"requirements": [{"K": "2", "t": "0.9"}]}
    apart = {
        "link": "none",
        "release": "anatomy",
        "quasi": "exact",
        "model": {"lkc": {"L": "all", "K": "2", "C": "1"}},
        "columns": columns(patient={"role": "sensitive"}),
    }
    small = dp_joint("horizontal", {"max_cells": "8", "specializations": "2"})
    reports = [
        run_single(tmp_path / "a" / "out", lkc, age=""),
        run_single(tmp_path / "b" / "out", single_job(goal="general", withhold="1/5")),
        run_single(tmp_path / "values" / "out", single_job(columns=of_groups)),
        run_single(tmp_path / "ruled" / "out", single_job(model=ruled, columns=limited)),
        run_single(tmp_path / "c" / "out", dp_single()),
        run_single(
            tmp_path / "drawn" / "out", synthetic_single({"order": ["age", "patient"]}, columns=IN_ORDER)
        ),
        run_single(tmp_path / "dated" / "out", synthetic_single({"max_outside": "1"}, columns=DATED)),
        run_joint(tmp_path / "d" / "out", joint_job(disclosure="sealed")),
        run_joint(tmp_path / "i" / "out", joint_job(disclosure="sealed", model=of_list), "--in-process"),
        run_joint(tmp_path / "e" / "out", joint_job(), "--in-process"),
        run_joint(tmp_path / "f" / "out", small, "--in-process"),
        vertical_report(tmp_path / "g"),
        run_single(tmp_path / "h" / "out", single_clusters()),
        run_single(tmp_path / "j" / "out", single_job(goal="general", method="kd")),
        run_single(tmp_path / "apart" / "out", single_job(goal="general", **apart)),
        report_of(wards_alone(tmp_path / "wards")),
        run_single(tmp_path / "close" / "out", single_job(goal="general", model=close, columns=in_cells)),
    ]
    found = {key for report in reports for key in keys_of(report)}
    defined = re.findall(r"^\| `([^`]+)` \|", DOCUMENT, re.MULTILINE)
    assert [key for key, times in Counter(defined).items() if times > 1] == []
    assert found - set(defined) == set()
    assert set(defined) - found == set()


# ---- figures beside K


def loose_job(**lkc: str) -> dict[str, Any]:
    return single_job(score="infogain", model={"lkc": {"L": "1", "K": "5", "C": "1", **lkc}})


def test_records_below_k_are_counted_in_the_table_and_explained(tmp_path: Path) -> None:
    report = run_single(tmp_path / "job" / "out", loose_job())
    lines = (tmp_path / "job" / "out" / "anonymized.csv").read_text().splitlines()[1:]
    groups = Counter(line.rsplit(",", 2)[0] for line in lines)
    unique = sum(size for size in groups.values() if size == 1)
    below = sum(size for size in groups.values() if size < 5)
    assert below > unique >= 0
    risk = report["risk"]
    assert (risk["columns"], risk["unique"], risk["below_k"]) == (2, unique, below)
    assert (risk["unique_share"], risk["below_k_share"]) == (unique / 60, below / 60)
    assert risk["meaning"].startswith(
        "K=5 holds toward a reader who knows at most L=1 of the 2 quasi-identifiers."
    )
    assert f"{below:,} ({below / 60:.1%}) are in groups below K" in risk["meaning"]
    shown = invoke("coordinator", "run", tmp_path / "job" / "job.yaml", "--out", tmp_path / "again")
    assert risk["meaning"] in shown.out.splitlines()


def test_with_l_on_all_columns_no_group_is_below_k(tmp_path: Path) -> None:
    report = run_single(tmp_path / "job" / "out", loose_job(L="2"))
    assert (report["risk"]["unique"], report["risk"]["below_k"]) == (0, 0)
    assert report["risk"]["meaning"] == "No group of records on all 2 quasi-identifiers is smaller than K=5."


# ---- settings without effect


@pytest.mark.parametrize(
    ("lkc", "more", "note"),
    [
        (
            {"L": "9", "K": "2", "C": "1"},
            {},
            "L=9 is more than the 2 quasi-identifiers: the job is the same with L=2",
        ),
        (
            {"L": "2", "K": "2", "C": "0.7"},
            {"surgery": None},
            "C=7/10 bounds nothing: no column has `role: sensitive`",
        ),
    ],
)
def test_settings_without_effect_are_noted(
    tmp_path: Path, lkc: dict[str, str], more: dict[str, Any], note: str
) -> None:
    fields = single_job(model={"lkc": lkc}, columns=columns(**more))
    report = run_single(tmp_path / "job" / "out", fields)
    assert report["notes"] == [note]
    assert "at most L=2 quasi-identifiers" in report["verified"]
    job = tmp_path / "job" / "job.yaml"
    assert f"note         {note}" in invoke("coordinator", "validate", job).out
    told, weak = json.loads(invoke("coordinator", "validate", job, "--format", "json").out)["notes"]
    assert (told, weak.split(" is ")[0]) == (note, "warning: K=2")
    assert note in invoke("coordinator", "run", job, "--out", tmp_path / "again").out


def test_a_job_without_such_settings_has_no_notes(tmp_path: Path) -> None:
    fields = single_job(model={"lkc": {"L": "2", "K": "5", "C": "0.9"}})
    assert run_single(tmp_path / "job" / "out", fields)["notes"] == []
    assert "note" not in invoke("coordinator", "validate", tmp_path / "job" / "job.yaml").out


# ---- cells are no rows


def test_a_dp_release_is_counted_in_cells(tmp_path: Path) -> None:
    report = run_single(tmp_path / "job" / "out", dp_single())
    assert report["cells_listed"] == report["cells"]
    assert "rows" not in report
    job, out = tmp_path / "job" / "job.yaml", tmp_path / "again"
    ran = invoke("coordinator", "run", job, "--out", out)
    assert ran.out.startswith(f"sample: {report['cells']} cells, ")
    assert " rows" not in ran.out
    checked = invoke("coordinator", "verify", job, out)
    assert f"{report['cells']} cells, all cells" in checked.out
    assert (
        json.loads(invoke("coordinator", "verify", job, out, "--format", "json").out)["cells"]
        == report["cells"]
    )
