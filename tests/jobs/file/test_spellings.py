"""One spelling of each value, wherever values are compared: tables, jobs, policies, releases."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import DataError, SchemaError
from jobs.data.sources import Csv
from jobs.errors import ConfigError, Exit, PartyError
from jobs.file.schema import check_values
from jobs.lkc.verify import verify_release
from jobs.loading import open_task
from jobs.owner.policy import Policy
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.network import write_job
from tests.support.samples import columns, release_of, single_job

REGION = {"role": "qid", "taxonomy": {"Any": ["north", "south"]}}


def regions(**diagnosis: Any) -> dict[str, Any]:
    sensitive = {"role": "sensitive", "values": ["HIV"], **diagnosis}
    return single_job(
        model={"lkc": {"L": "1", "K": "5", "C": "0.6"}},
        goal="general",
        columns={"region": REGION, "diagnosis": sensitive},
    )


def rows(spelled: str) -> list[dict[str, str]]:
    """Return twenty rows: nine of ten of the south have HIV, and two of ten of the north."""
    south = [spelled] * 9 + ["flu"]
    north = ["HIV"] * 2 + ["flu"] * 8
    return [
        {"region": region, "diagnosis": value}
        for region, values in (("south", south), ("north", north))
        for value in values
    ]


def run(folder: Path, spelled: str, **diagnosis: Any) -> Ran:
    folder.mkdir(exist_ok=True)
    job = write_job(folder, regions(**diagnosis))
    jobs.write_csv(folder / "table.csv", rows(spelled), ("region", "diagnosis"))
    return invoke("coordinator", "run", job, "--out", folder / "out")


@pytest.mark.parametrize("spelled", ["HIV ", " HIV", "\tHIV", "HIV\u00a0"])
def test_blanks_at_the_ends_are_no_part_of_a_value(tmp_path: Path, spelled: str) -> None:
    """Eleven of twenty have it; the south by itself would be above C."""
    ran = run(tmp_path, spelled)
    assert ran.code == 0, ran.err
    released = (tmp_path / "out" / "anonymized.csv").read_text().splitlines()
    assert set(released) == {"region,diagnosis", "Any,HIV", "Any,flu"}
    assert released.count("Any,HIV") == 11


@pytest.mark.parametrize("spelled", ["hiv", "H\u200bIV", "\u041dIV", "H IV", "\uff28IV"])
def test_two_spellings_of_one_value_end_the_run(tmp_path: Path, spelled: str) -> None:
    ran = run(tmp_path, spelled)
    assert ran.code == Exit.DATA
    assert "data-two-spellings: column diagnosis has two spellings of the same value" in ran.err
    for place, text in (("line 2", spelled), ("line 12", "HIV")):
        assert f"{place}: {text!r}" in ran.err
        assert ascii(text) in ran.err  # letters that look alike are told apart by their numbers
    assert not (tmp_path / "out").exists()
    assert run(tmp_path / "mended", "HIV").code == 0


def test_a_column_may_say_that_spellings_are_values(tmp_path: Path) -> None:
    ran = run(tmp_path, "hiv", spellings="distinct")
    assert ran.code == 0, ran.err
    assert "south,hiv" in (tmp_path / "out" / "anonymized.csv").read_text()
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 0


def test_a_released_table_with_two_spellings_is_refused() -> None:
    task = jobs.task_of(regions())
    table = [("Any", "HIV")] * 4 + [("Any", "flu")] * 12
    for other in ("hiv", "HIV\u200b"):
        release = release_of(["region", "diagnosis"], [*table, *[("Any", other)] * 9])
        with pytest.raises(PartyError, match="two spellings of the same value"):
            verify_release(release, task)
    only = release_of(["region", "diagnosis"], [("Any", "hiv")] * 9 + [("Any", "flu")] * 9)
    with pytest.raises(PartyError, match="'HIV' and 'hiv'"):  # the job protects the other spelling
        verify_release(only, task)
    assert verify_release(release_of(["region", "diagnosis"], table), task) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"columns": columns(surgery={"role": "sensitive", "domain": ["HIV", "hiv"]})},
        {"columns": columns(surgery={"role": "sensitive", "values": ["HIV", "hiv"]})},
        {"columns": columns(transfused={"role": "class", "domain": ["Y", "y"]})},
        {"columns": columns(Age={"role": "plain"})},
        {"columns": columns(job={"role": "qid", "suppress": ["Mover", "mover "]})},
    ],
)
def test_a_job_that_lists_two_spellings_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="two spellings of the same"):
        jobs.task_of(single_job(**fields))


def test_a_taxonomy_with_two_spellings_is_refused() -> None:
    tree = {"Any": {"Blue": ["Mover", "mover"], "White": ["Lawyer"]}}
    two = {"role": "qid", "taxonomy": tree}
    task = jobs.task_of(single_job(columns=columns(job=two)))
    with pytest.raises(SchemaError, match="'Mover' and 'mover', two spellings of the same value"):
        check_values(task.job, task.taxonomies)
    said = jobs.task_of(single_job(columns=columns(job=two | {"spellings": "distinct"})))
    check_values(said.job, said.taxonomies)


def test_a_policy_that_protects_two_spellings_is_refused() -> None:
    roles: dict[str, Any] = {"surgery": ("sensitive",)}
    Policy(columns=roles, protected={"surgery": ("HIV", "flu")})
    with pytest.raises(ValueError, match="two spellings of the same value"):
        Policy(columns=roles, protected={"surgery": ("HIV", "Hiv")})


@pytest.mark.parametrize("key", ["protected", "domains"])
@pytest.mark.parametrize("other", [unicodedata.normalize("NFD", "größe"), "Größe", "groesse"])
def test_a_policy_that_spells_a_column_otherwise_is_refused(key: str, other: str) -> None:
    """Nothing would be protected, and nothing pinned."""
    of = {"protected": ["HIV"], "domains": "ab" * 32}[key]
    roles = {unicodedata.normalize("NFC", "größe"): ["sensitive"]}
    Policy.model_validate({"columns": roles, key: dict.fromkeys(roles, of)})
    with pytest.raises(ValueError, match=r"is not in `policy\.columns`: list the column there, in the same"):
        Policy.model_validate({"columns": roles, key: {other: of}})


def test_the_owner_is_told_which_listed_value_is_meant(tmp_path: Path) -> None:
    fields = regions(domain=["HIV", "flu"])
    path = jobs.write_csv(tmp_path / "t.csv", rows("hiv"), ("region", "diagnosis"))
    with pytest.raises(DataError) as caught:
        open_task(jobs.bundle_of(fields)).load(Csv(path), "")
    assert "would fit as 'HIV'" in caught.value.private
