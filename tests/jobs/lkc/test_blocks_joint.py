"""`link` in sealed joint jobs: the blocks of one holder's release, and no count of linked values on the way."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.errors import SchemaError
from anonymize.kd.table import BoxedTable
from anonymize.linked_columns import Entries, counted_blocks, relinked
from anonymize.partition import GeneralizedTable
from jobs.errors import PartyError
from jobs.lkc.checked import verify_table
from jobs.lkc.forms.form import GROUPS, SENSITIVE
from jobs.lkc.kd.result import KdResult
from jobs.lkc.linked_columns import blocks_of, linked_columns
from jobs.lkc.requirement import requirement
from jobs.loading import decode_task, parse_job
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.delivery import checked_release
from jobs.release.sums import SUMS, sums_of
from tests.support import jobs
from tests.support.blocks import COLUMNS, block_by_block, counts_of, job_of, read, released, rows_of
from tests.support.horizontal import recorded
from tests.support.kd_runs import Run
from tests.support.kd_told import table_of_release, told_of_blocks
from tests.support.refusals import refused
from tests.support.samples import AS_IT_IS, joint_job

QID = ["age", "job"]
VALUES_OF = ("disease", "treatment", "end")
ASKED = {"ruled_out": "1", "diversity": "3", "C": "0.9"}
DECIDED = {"kd": ("cuts",), "top-down": ("cut", "specializations")}
"""By method what a report says was done."""
LIMITED = {**COLUMNS, "end": {**COLUMNS["end"], "at_most": "1"}}


def joint(asked: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    fields = job_of(asked, **changes)
    fields = {key: value for key, value in fields.items() if key not in ("partition", "data")}
    return joint_job(**{"disclosure": "sealed", **fields, "columns": fields["columns"]})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (joint(link="none", method=None, goal=None, disclosure="strict"), "needs `disclosure: sealed`"),
        (joint(link="none", method=None, goal=None, disclosure="leader"), "needs `disclosure: sealed`"),
        (
            joint(link="none", columns={**COLUMNS, "id": AS_IT_IS}),
            "has no plain columns",
        ),
        *(
            (joint(link="none", goal=None, **said), "needs one requirement with `L: all`")
            for said in (
                {"asked": {"L": "1", "ruled_out": "1"}, "method": None},
                {
                    "model": {"requirements": [{"K": "4", "C": "1"}, {"K": "4", "diversity": "3"}]},
                    "method": None,
                },
            )
        ),
        (joint(release="anatomy"), "does not link paid with sensitive values"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


@pytest.mark.some(1)
@pytest.mark.parametrize("form", ["rows", "anatomy"])
@pytest.mark.parametrize("method", DECIDED)
def test_the_blocks_are_those_of_one_holder_of_all_rows(tmp_path: Path, method: str, form: str) -> None:
    """The requirement of the one holder is of each block by itself, too."""
    said = {
        "link": "none",
        "release": form,
        "columns": LIMITED,
        "method": method,
    }
    rows = rows_of(160, 1)
    run = Run(jobs.task_of(joint(ASKED, **said)), tmp_path, rows)
    files = run.written(tmp_path / "out")
    for result in run.results.values():
        checked_release(run.task, result, files, {})
    (tmp_path / "single").mkdir()
    with block_by_block():
        alone, out = released(tmp_path / "single", job_of(ASKED, **said), rows)
    names = [TABLE] if form == "rows" else [GROUPS, SENSITIVE]
    if form == "rows":
        tables = [read(run.task, tmp_path / "out", TABLE), read(alone, out, TABLE)]
        for block in (["paid"], ["disease"], ["treatment"], ["end"]):
            assert counts_of(tables[0], QID, block) == counts_of(tables[1], QID, block)
    reports = [json.loads((folder / REPORT).read_text()) for folder in (tmp_path / "out", out)]
    for key in (*DECIDED[method], "metrics", "requirements", "rows"):
        assert reports[0][key] == reports[1][key]
    assert set(names) <= set(files)
    checked = verify_table(run.task, tmp_path / "out")
    assert "relinking" not in checked.fields.get("not_verified", [])
    words = " ".join(reports[0]["protection"])
    assert "a count of one block of columns" in words
    assert "the counts link some block's values or its paid with the rest" in words
    assert "tested in circuits alone" not in words


@pytest.mark.parametrize("method", DECIDED)
def test_the_others_link_what_they_leave_of_a_group(tmp_path: Path, method: str) -> None:
    """By what is printed: each party's rows are those that stay when the others take theirs out."""
    rows = rows_of(60, 2)
    run = Run(jobs.task_of(joint({"K": "3"}, link="none", method=method)), tmp_path, rows)
    roster, found = run.task.job.roster, []
    whole = run.written(tmp_path / "out")
    for me in roster:
        own = run.results[me].own["records"]
        printed = run.results[me].own_counted(run.tables[me])
        left: dict[Any, list[Any]] = {}
        columns = [printed.columns[name] for name in (*QID, *VALUES_OF, "paid")]
        for row in zip(*([c.labels[code] for code in c.codes] for c in columns), strict=True):
            left.setdefault(row[: len(QID)], []).append(row[len(QID) :])
        alike = [len(own) for own in left.values() if any(len(set(v)) == 1 for v in zip(*own, strict=True))]
        assert own["linked"] == sum(alike)
        (said,) = own["in_words"]
        assert f"of {sum(alike)} record" in said
        assert f"the other {len(roster) - 1} parties together learn" in said
        found.append(sum(alike))
    assert sum(found) > json.loads(whole[REPORT])["risk"]["linked"]
    assert max(found) < len(rows) // len(roster)


def test_where_all_is_linked_the_account_says_nothing_of_links(tmp_path: Path) -> None:
    run = Run(jobs.task_of(joint({"K": "3"})), tmp_path, rows_of(60, 2))
    assert not any("records" in result.own for result in run.results.values())


def test_all_that_a_run_told_is_computed_from_the_released_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows whose blocks were shuffled apart: no link is needed, also where linked values decided."""
    seen = recorded(monkeypatch)
    run = Run(jobs.task_of(joint(ASKED, link="none", columns=LIMITED)), tmp_path, rows_of(160, 1))
    told = list(seen)
    run.written(tmp_path / "out")
    rows = read(run.task, tmp_path / "out", TABLE)
    linked = counts_of(rows, QID, ["disease", "treatment", "end"])
    assert linked != counts_of(rows_printed(run), QID, ["disease", "treatment", "end"])
    release = read_csv((tmp_path / "out" / TABLE).read_bytes(), run.task.job.published)
    table = table_of_release(run.task.schema, release)
    computed = told_of_blocks(run.task.schema, table, requirement(run.task), [(0,), (1,), (2,), (3,)])
    assert all(own == computed for own in told)
    assert table.n_groups > 1


def rows_printed(run: Run) -> list[dict[str, str]]:
    """The rows of the result, linked in the way that follows from the blocks."""
    counted = run.result.counted
    labels = {name: [c.labels[code] for code in c.codes] for name, c in counted.columns.items()}
    return [dict(zip(labels, row, strict=True)) for row in zip(*labels.values(), strict=True)]


@pytest.fixture(scope="module", params=DECIDED)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    fields = joint({"C": "0.8"}, link=[["treatment", "disease"]], method=request.param)
    return Run(jobs.task_of(fields), tmp_path_factory.mktemp("run"), rows_of(90, 4))


def test_a_result_that_is_linked_otherwise_is_malformed(run: Run) -> None:
    """Its bytes could tell links: there is one way to write blocks."""
    result, schema = run.result, run.result.schema
    again = run.task.model.decode(run.task, result.encoded, "p")
    assert again.encoded == result.encoded
    blocks = counted_blocks(schema, blocks_of(run.task.job))
    assert [block.axes for block in blocks] == [(0,), (1, 2), (3,)]
    entries = entries_of(result)
    exchanged = exchanged_ends(entries, schema.cell_shape[-1])
    assert [own.tolist() for own in relinked(schema, blocks, exchanged)] == [own.tolist() for own in entries]
    with pytest.raises(PartyError) as caught:
        run.task.model.decode(run.task, with_entries(result, exchanged).encoded, "p")
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("peer-protocol", "p")


def entries_of(result: Any) -> Entries:
    if isinstance(result, KdResult):
        return result.table.group, result.table.cell, result.table.count
    table = result.generalized
    return table.partition, table.cell, table.count


def with_entries(result: Any, entries: Entries) -> Any:
    """A result with other counts."""
    if isinstance(result, KdResult):
        return replace(result, table=BoxedTable(result.table.boxes, *entries))
    return replace(result, generalized=GeneralizedTable(result.generalized.nodes, *entries))


def exchanged_ends(entries: Entries, n_ends: int) -> Entries:
    """Two records of one group with other values of the last column exchange these."""
    counts = {(int(g), int(c)): int(n) for g, c, n in zip(*entries, strict=True)}
    one, other = next(
        (a, b)
        for a in counts
        for b in counts
        if a[0] == b[0] and a[1] % n_ends == 0 and b[1] % n_ends == 1 and a[1] // n_ends != b[1] // n_ends
    )
    for key, change in (
        (one, -1),
        (other, -1),
        ((one[0], one[1] + 1), 1),
        ((other[0], other[1] - 1), 1),
    ):
        counts[key] = counts.get(key, 0) + change
    keys = sorted(key for key, count in counts.items() if count)
    group, cell = np.array(keys, dtype=np.int64).T
    return group, cell, np.array([counts[key] for key in keys], dtype=np.int64)


@pytest.mark.parametrize("name", ["paid", "treatment", "end"])
def test_a_delivered_table_with_another_block_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    """Two rows of different groups exchange a value: all else stays; it is found in class and blocks."""
    files = run.written(tmp_path / "out")
    checked_release(run.task, run.result, files, {})
    table = read(run.task, tmp_path / "out", TABLE)
    one = table[0]
    other = next(r for r in table if [r[q] for q in QID] != [one[q] for q in QID] and r[name] != one[name])
    one[name], other[name] = other[name], one[name]
    text = io.StringIO()
    writer = csv.DictWriter(text, run.task.job.published, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    files[TABLE] = text.getvalue().encode()
    files[SUMS] = sums_of({name: files[name] for name in (TABLE, REPORT)})
    with pytest.raises(PartyError, match="not the one that was computed"):
        checked_release(run.task, run.result, files, {})


def test_what_rows_tell_of_a_record() -> None:
    job = parse_job(joint({"C": "0.8"}, link=[["treatment", "disease"]]), "job")
    assert linked_columns(job, job.published) == (
        ("age", "job", "paid"),
        ("age", "job", "disease", "treatment"),
        ("age", "job", "end"),
    )
    whole = parse_job(joint({"C": "0.8"}), "job")
    assert linked_columns(whole, whole.published) == (whole.published,)


WIDE = [str(value) for value in range(1 << 10)]


def wide(**changes: Any) -> dict[str, Any]:
    """A job of 2^31 cells."""
    of_all = {name: {"role": "sensitive", "domain": WIDE, "values": ["0"]} for name in VALUES_OF}
    return joint({"C": "0.5"}, columns=COLUMNS | of_all, **changes)


@pytest.mark.parametrize("method", DECIDED)
def test_the_limit_of_cells_is_that_of_each_block(tmp_path: Path, method: str) -> None:
    """Also of those who read the result and the release."""
    coins = random.Random(0)  # noqa: S311
    rows = [row | {name: coins.choice(WIDE) for name in VALUES_OF} for row in rows_of(60, 1)]
    run = Run(jobs.task_of(wide(link="none", method=method)), tmp_path, rows)
    files = run.written(tmp_path / "out")
    for result in run.results.values():
        checked_release(run.task, result, files, {})
    again = run.task.model.decode(run.task, run.result.encoded, "p")
    assert again.encoded == run.result.encoded
    assert counts_of(read(run.task, tmp_path / "out", TABLE), [], ["end"]) == counts_of(rows, [], ["end"])


@pytest.mark.parametrize("changes", [{}, {"link": [["disease", "treatment"], ["end"]], "method": None}])
def test_wider_blocks_are_refused(changes: Any) -> None:
    """2^20 values in one block, with a class in another, are as many as there may be."""
    bundle = jobs.bundle_of(wide(**changes))
    if changes:
        decode_task(bundle.encoded)
        changes = {**changes, "link": [["disease", "treatment", "end"]]}
        bundle = jobs.bundle_of(wide(**changes))
    with pytest.raises(SchemaError, match="combine to 2147483648 cells, more than 1048576") as caught:
        decode_task(bundle.encoded)
    assert caught.value.error_id == "domain-too-large"
