"""`method: kd` between real daemons: the table of one holder of all rows, signed and verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.lkc.forms.form import GROUPS, SENSITIVE
from jobs.loading import load_task
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.folder import OWN
from jobs.release.sums import SUMS
from tests.support import blocks, jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, PARTIES, joint_job, single_job

KD = {"method": "kd", "goal": "general", "model": {"lkc": {"L": "all", "K": "3", "C": "0.5"}}}


@pytest.mark.some(1)
@pytest.mark.parametrize(("n", "how"), [(2, ["--in-process"]), (3, [])], ids=["two", "three daemons"])
def test_parties_make_the_table_of_one_holder(tmp_path: Path, n: int, how: list[str]) -> None:
    rows = sample_rows(90)
    parties = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(PARTIES[:n])}
    joint = write_job(tmp_path / "joint", joint_job(**KD, disclosure="sealed", parties=parties))
    given = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::n], COLUMNS)}"
        for i, name in enumerate(PARTIES[:n])
    ]
    ran = invoke("coordinator", "simulate", joint, *given, *how, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    single = write_job(tmp_path / "single", single_job(**KD))
    jobs.write_csv(tmp_path / "single" / "table.csv", rows, COLUMNS)
    assert invoke("coordinator", "run", single, "--out", tmp_path / "alone").code == 0
    published = load_task(joint).job.published
    tables = [jobs.multiset(read_csv(tmp_path / out / TABLE, published)) for out in ("out", "alone")]
    assert tables[0] == tables[1]
    reports = [json.loads((tmp_path / out / REPORT).read_text()) for out in ("out", "alone")]
    assert reports[0]["cuts"] == reports[1]["cuts"]
    assert reports[0]["metrics"] == reports[1]["metrics"]
    listed = {each["name"] for each in reports[0]["revealed_by_design"]}
    assert {each["name"] for each in reports[0]["reveals"]} <= listed
    checked = invoke("coordinator", "verify", joint, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert (f": {TABLE}, byte for byte" in checked.out) == (how == [])


@pytest.mark.more
def test_daemons_write_an_anatomy(tmp_path: Path) -> None:
    """Every party receives both files, and has checked them."""
    without_class = {name: column for name, column in COLUMNS.items() if column["role"] != "class"}
    joint = write_job(
        tmp_path / "joint",
        joint_job(**KD, disclosure="sealed", columns=without_class, release="anatomy"),
    )
    given = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', sample_rows(90)[i::3], COLUMNS)}"
        for i, name in enumerate(PARTIES)
    ]
    ran = invoke("coordinator", "simulate", joint, *given, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        GROUPS,
        SENSITIVE,
        PAGE,
        REPORT,
        SUMS,
        OWN,
    }
    checked = invoke("coordinator", "verify", joint, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert f": {GROUPS}, {SENSITIVE}, byte for byte" in checked.out
    groups = (tmp_path / "out" / GROUPS).read_text()
    (tmp_path / "out" / GROUPS).write_text(groups.replace("\n1,", "\n2,", 1))
    assert invoke("coordinator", "verify", joint, tmp_path / "out").code != 0


@pytest.mark.more
def test_daemons_publish_blocks_and_are_told_no_more(tmp_path: Path) -> None:
    """Groups are cut as the requirement of each block has it; what is delivered and verified are the blocks."""
    columns = {**blocks.COLUMNS, "end": {**blocks.COLUMNS["end"], "at_most": "1"}}
    asked = {"lkc": {"L": "all", "K": "4", "C": "0.9", "ruled_out": "1", "diversity": "3"}}
    said = {**KD, "model": asked, "columns": columns, "link": "none"}
    joint = write_job(tmp_path / "joint", joint_job(**said, disclosure="sealed"))
    rows = blocks.rows_of(150, 1)
    given = [
        f"--data={name}={jobs.write_csv(tmp_path / f'{name}.csv', rows[i::3])}"
        for i, name in enumerate(PARTIES)
    ]
    ran = invoke("coordinator", "simulate", joint, *given, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    (tmp_path / "alone").mkdir()
    with blocks.block_by_block():
        all_rows = rows[0::3] + rows[1::3] + rows[2::3]
        task, out = blocks.released(tmp_path / "alone", single_job(**said), all_rows)
    mine, theirs = blocks.read(task, tmp_path / "out", TABLE), blocks.read(task, out, TABLE)
    for block in (["paid"], ["disease"], ["treatment"], ["end"]):
        counted = [blocks.counts_of(table, ["age", "job"], block) for table in (mine, theirs)]
        assert counted[0] == counted[1]
    assert len(blocks.counts_of(mine, ["age", "job"], [])) > 1
    checked = invoke("coordinator", "verify", joint, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert f": {TABLE}, byte for byte" in checked.out
    assert "a reader who links the blocks again" not in checked.out
