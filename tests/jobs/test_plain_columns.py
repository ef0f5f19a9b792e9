"""Columns that are published as they are: told wherever somebody says yes, and counted in the risk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs import plain_columns
from jobs.errors import ConfigError, Exit
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import sample_network, write_job
from tests.support.samples import AS_IT_IS, COLUMNS, PARTIES, columns, joint_job, release_of, single_job

WAGE = {"role": "plain"}


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "subject_id",
        "PatientID",
        "last_name",
        "lastName",
        "E-Mail",
        "phone number",
        "SSN",
        "date of birth (DOB)",
        "IDs",
        "date_of_birth",
        "birthday",
        "patientid",
        "insurance_number",
        "card_number",
    ],
)
def test_names_that_tell_of_a_person(name: str) -> None:
    assert plain_columns.names_a_person(name) is not None
    fields = {name: {"role": "plain"}}
    with pytest.raises(ConfigError, match="suggests values of a single person"):
        jobs.task_of(single_job(columns=columns(patient=None, **fields)))
    jobs.task_of(single_job(columns=columns(patient=None, **{name: AS_IT_IS})))


@pytest.mark.parametrize(
    "name",
    [
        "wage",
        "earnings",
        "ward",
        "note",
        "identity_matrix",
        "width",
        "age",
        "day",
        "drug_name",
        "hospital_name",
        "street_type",
    ],
)
def test_other_names(name: str) -> None:
    assert plain_columns.names_a_person(name) is None


def test_false_is_as_if_it_were_not_said() -> None:
    said = jobs.task_of(single_job(columns=columns(ward={"role": "plain", "publish_as_is": "false"})))
    assert said.digest == jobs.task_of(single_job(columns=columns(ward=WAGE))).digest


def test_rows_alone_are_counted_by_column_and_together() -> None:
    job = jobs.task_of(single_job(columns=columns(wage=WAGE, ward=WAGE))).job.columns
    rows = [
        ("Any", "10", "a", "Y"),
        ("Any", "10", "b", "Y"),
        ("Any", "12", "b", "N"),
        ("Any", "13", "b", "N"),
    ]
    release = release_of(["job", "wage", "ward", "transfused"], rows)
    found = plain_columns.measure(job, release)
    assert found["columns"] == {
        "wage": {"role": "plain", "values": 3, "alone": 2, "few": 4, "formulas": 0},
        "ward": {"role": "plain", "values": 2, "alone": 1, "few": 4, "formulas": 0},
        "transfused": {"role": "class", "values": 2, "alone": 0, "few": 4, "formulas": 0},
    }
    assert found["alone"] == 4
    assert found["meaning"] == (
        "transfused is published unchanged, without protection: 2 different values; 0 rows are alone with theirs, "
        "and 4 rows have a value of fewer than 10 rows. wage is published unchanged, without protection: 3 different "
        "values; 2 rows are alone with theirs, and 4 rows have a value of fewer than 10 rows. ward is published "
        "unchanged, without protection: 2 different values; 1 row is alone with its value, and 4 rows have a value "
        "of fewer than 10 rows. In transfused, wage, ward together 4 rows are alone of 4."
    )


def test_a_class_is_told_where_a_row_is_alone_with_it() -> None:
    job = jobs.task_of(single_job()).job.columns
    rare = release_of(["job", "transfused"], [("Any", "Y")] * 10 + [("Any", "N")])
    assert "transfused is published unchanged" in plain_columns.measure(job, rare)["meaning"]
    assert plain_columns.measure(job, release_of(["job", "transfused"], [("Any", "Y")] * 10))["meaning"] == ""


def table(folder: Path, wages: list[int], **column: Any) -> Path:
    rows = [{**row, "wage": str(wage)} for row, wage in zip(sample_rows(len(wages)), wages, strict=True)]
    jobs.write_csv(folder / "table.csv", rows, [*COLUMNS, "wage"])
    return write_job(folder, single_job(columns=columns(wage={**WAGE, **column})))


def test_run_validate_and_verify_say_so(tmp_path: Path) -> None:
    job = table(tmp_path, [i // 6 for i in range(59)] + [1000])
    assert "published unchanged, without protection: wage" in invoke("coordinator", "validate", job).out
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    said = (
        "wage is published unchanged, without protection: 11 different values; 1 row is alone with its value, and 60 "
        "rows have a value of fewer than 10 rows."
    )
    assert said in ran.err + ran.out
    assert said in invoke("coordinator", "verify", job, tmp_path / "out").out
    assert said in invoke("coordinator", "verify", job, tmp_path / "out" / "anonymized.csv").out


def test_most_rows_alone_with_their_value_end_the_run(tmp_path: Path) -> None:
    wages = [*range(31), *[31] * 29]
    ran = invoke("coordinator", "run", table(tmp_path, wages), "--out", tmp_path / "out")
    assert ran.code == Exit.DATA
    assert "data-published-as-is: column wage is `plain`" in ran.err
    assert "31 of 60 rows" in ran.err
    assert not (tmp_path / "out").exists()
    meant = table(tmp_path, wages, publish_as_is="true")
    assert invoke("coordinator", "run", meant, "--out", tmp_path / "out").code == 0
    half = table(tmp_path, [*range(30), *[31] * 30])
    assert invoke("coordinator", "run", half, "--out", tmp_path / "half").code == 0


def test_ids_of_people_with_several_rows_end_the_run(tmp_path: Path) -> None:
    """No row is alone with its value, and each value is of one person."""
    ran = invoke(
        "coordinator", "run", table(tmp_path, [i // 2 for i in range(60)]), "--out", tmp_path / "out"
    )
    assert ran.code == Exit.DATA
    assert "most rows would have a value of fewer than 5 rows" in ran.err
    assert "60 of 60 rows" in ran.err
    five = table(tmp_path, [i // 5 for i in range(60)])
    assert invoke("coordinator", "run", five, "--out", tmp_path / "five").code == 0


def test_check_tells_the_owner(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net", columns=columns(patient=AS_IT_IS))
    job = write_job(tmp_path / "job", joint_job(columns=columns(patient=AS_IT_IS)))
    ran = invoke("party", "check", "--job", job, "--config", net.config_path(PARTIES[0]))
    said = (
        "patient: unchanged, without protection; 20 different values; 20 rows of ours are alone with theirs"
    )
    assert f"published    {said}" in ran.out
    net.change(PARTIES[0], lambda fields: fields["policy"]["columns"].update(patient=["id"]))
    refused = invoke("party", "check", "--job", job, "--config", net.config_path(PARTIES[0]))
    assert (
        "column patient may not be used as plain, which publishes the column unchanged, only id"
        in refused.out
    )


def test_a_class_that_tells_of_single_people_is_meant(tmp_path: Path) -> None:
    """Of one value a row; and by its name."""
    rows = [{**row, "case": str(i)} for i, row in enumerate(sample_rows(60))]
    numbers = {"role": "class", "domain": [row["case"] for row in rows]}
    jobs.write_csv(tmp_path / "table.csv", rows, [*COLUMNS, "case"])
    for name, meant in (("case", {}), ("case", {"publish_as_is": "true"})):
        job = write_job(
            tmp_path, single_job(columns=columns(transfused=None, **{name: {**numbers, **meant}}))
        )
        ran = invoke("coordinator", "run", job, "--out", tmp_path / f"out{len(meant)}")
        assert (ran.code, "data-published-as-is" in ran.err) == ((0, False) if meant else (7, True))
    with pytest.raises(ConfigError, match="`role: class` publishes the column unchanged"):
        jobs.task_of(
            single_job(columns=columns(transfused=None, patient_id={"role": "class", "domain": ["1", "2"]}))
        )
