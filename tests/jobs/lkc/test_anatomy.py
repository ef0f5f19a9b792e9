"""`release: anatomy`, `quasi: exact`: counts of groups and of their sensitive values, and raw quasi-identifiers."""

from __future__ import annotations

import csv
import itertools
import json
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import PartyError
from jobs.lkc.checked import verify_table
from jobs.lkc.forms.anatomy import BLOCK, GROUP, RECORDS
from jobs.lkc.forms.form import GROUPS, SENSITIVE
from jobs.loading import parse_job
from jobs.options import NO_OPTIONS
from jobs.owner.objections import allowance
from jobs.page.page import PAGE
from jobs.release.csv import PARTS_OF_TABLE, REPORT, TABLE, read_csv
from jobs.release.delivery import checked_release
from jobs.release.folder import OWN_PAGE
from jobs.release.making import write_joint_release
from jobs.release.sums import SUMS, file_fields, sums_of
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Task
from tests.support import jobs
from tests.support.blocks import COLUMNS, counts_of, job_of, read, released, rows_of
from tests.support.blocks import SENSITIVE as DOMAINS
from tests.support.commands import invoke
from tests.support.lkc_runs import run_lkc
from tests.support.network import write_job
from tests.support.pages import Reader
from tests.support.refusals import objected, refused
from tests.support.ruled_out import Sensitive, is_diverse
from tests.support.samples import PARTIES, joint_job, vertical_job

QID, NAMES = ["age", "job"], list(DOMAINS)
ANATOMY: dict[str, Any] = {"release": "anatomy"}
EXACT: dict[str, Any] = {**ANATOMY, "quasi": "exact"}
NO_CLASS = {name: column for name, column in COLUMNS.items() if name != "paid"}
TOP_DOWN = {"method": "top-down"}


def joint(**changes: Any) -> dict[str, Any]:
    kd = {"method": "kd", "goal": "general", "disclosure": "sealed"}
    model = {"lkc": {"L": "all", "K": "4", "C": "0.8"}}
    return joint_job(**{**kd, "columns": NO_CLASS, "model": model, **ANATOMY, **changes})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (job_of(**ANATOMY, columns={"age": COLUMNS["age"]}), "the job has no such column"),
        (
            job_of(**ANATOMY, columns={**COLUMNS, "note": {"role": "plain"}}),
            "columns.note: `release: anatomy` publishes counts",
        ),
        (
            job_of(**ANATOMY, columns={**COLUMNS, "block": COLUMNS["age"]}),
            "columns.block: `release: anatomy` has",
        ),
        (job_of(release="tables"), "`model.lkc.release`"),
        (job_of(quasi="exact"), "would publish the raw table"),
        (
            job_of({"L": "1"}, method="top-down", **EXACT),
            "`quasi: exact` needs a single requirement, with `L: all`",
        ),
        (
            job_of(method="top-down", withhold="1/50", **EXACT),
            "without `colluders`, `unit: person` and `withhold`",
        ),
        (
            joint(quasi="exact"),
            "`quasi: exact` is for the table of a single holder",
        ),
        (joint(columns=COLUMNS), "does not link paid with sensitive values"),
        (vertical_job(**ANATOMY), "`release: anatomy` is not for vertical jobs"),
        (
            job_of(**TOP_DOWN, **ANATOMY, goal="classification", contexts="cells"),
            "`contexts: cells` needs class and sensitive values",
        ),
    ],
)
def test_what_it_does_not_take_is_refused(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_jobs_that_write_rows_have_the_form_they_had() -> None:
    plain = parse_job(job_of(), "job").canonical()
    said = {"release": "rows", "quasi": "generalized"}
    assert plain == parse_job(job_of(**said), "job").canonical()
    assert "release" not in plain
    digests = {jobs.bundle_of(job_of(**changes)).digest for changes in ({}, ANATOMY, EXACT)}
    assert len(digests) == 3


def test_a_policy_lists_what_a_release_may_be_written_as() -> None:
    assert objected(joint(), "hospital-b") == ""
    assert "release anatomy is not allowed, only rows (`policy.releases`)" in objected(
        joint(), "hospital-b", releases=["rows"]
    )
    assert "release rows is not allowed" in objected(joint_job(), "hospital-b", releases=["anatomy"])
    assert "releases" not in allowance(jobs.task_of(joint_job()), "hospital-b", "coordinator")


# ---- what is written


def made(
    folder: Path, name: str, rows: Sequence[Mapping[str, str]], *lkc: Any, **changes: Any
) -> tuple[Task, Path]:
    (folder / name).mkdir()
    return released(folder / name, job_of(*lkc, **changes), rows)


def sensitive_of(
    table: Sequence[Mapping[str, str]], block: Sequence[str]
) -> dict[str, Counter[tuple[str, ...]]]:
    """By group the records with each combination of values of a block."""
    found: dict[str, Counter[tuple[str, ...]]] = {}
    for row in table:
        own = tuple(row[name] for name in block)
        if all(own):
            found.setdefault(row[GROUP], Counter())[own] += int(row[RECORDS])
    return found


@pytest.mark.parametrize("method", ["kd", "top-down"])
def test_groups_and_their_values_are_those_of_linked_rows(tmp_path: Path, method: str) -> None:
    rows, link = rows_of(150), [["disease", "end"]]
    table = read(*made(tmp_path, "rows", rows, method=method), TABLE)
    task, out = made(tmp_path, "anatomy", rows, method=method, link=link, **ANATOMY)
    assert not (out / TABLE).exists()
    groups, sensitive = read(task, out, GROUPS), read(task, out, SENSITIVE)
    numbers = {row[GROUP]: tuple(row[name] for name in QID) for row in groups}
    assert sorted(map(int, numbers)) == list(range(1, len(counts_of(table, QID, [])) + 1))
    described = Counter({tuple(row[n] for n in (*QID, "paid")): int(row[RECORDS]) for row in groups})
    assert described == counts_of(table, QID, ["paid"])
    for block in (["disease", "end"], ["treatment"]):
        linked = counts_of(table, QID, block)
        found = sensitive_of(sensitive, block)
        assert {(*numbers[g], *v): n for g, own in found.items() for v, n in own.items()} == linked
    assert {
        (row[BLOCK], bool(row["disease"]), bool(row["treatment"]), bool(row["end"])) for row in sensitive
    } == {
        ("1", True, False, True),
        ("2", False, True, False),
    }
    assert verify_table(task, out).fields["rows"] == 150


def test_groups_are_numbered_at_random(tmp_path: Path) -> None:
    rows = rows_of(60)
    orders = {
        tuple(row["age"] for row in read(*made(tmp_path, str(i), rows, **ANATOMY), GROUPS)) for i in range(3)
    }
    assert len(orders) > 1


@pytest.mark.parametrize("method", ["kd", "top-down"])
def test_exact_quasi_identifiers_stand_beside_their_groups(tmp_path: Path, method: str) -> None:
    """Every record is there as the table has it; groups and values are those that the generalized table has."""
    rows = [
        {**row, "age": f"{i * 79 / 150:.3f}".rstrip("0").rstrip(".")} for i, row in enumerate(rows_of(150))
    ]
    rows[0]["age"] = "0"
    by_age = {row["age"]: row for row in rows}
    asked = {"C": "0.9", "diversity": "2"}
    table = read(*made(tmp_path, "rows", rows, asked, method=method), TABLE)
    task, out = made(tmp_path, "exact", rows, asked, method=method, link="none", **EXACT)
    groups, sensitive = read(task, out, GROUPS), read(task, out, SENSITIVE)
    assert counts_of(groups, QID, ["paid"]) == counts_of(rows, QID, ["paid"])
    assert [row["age"] for row in groups] != sorted((row["age"] for row in groups), key=float)
    members: dict[str, list[dict[str, str]]] = {}
    for row in groups:
        members.setdefault(row[GROUP], []).append(by_age[row["age"]])
    for name in NAMES:
        assert sensitive_of(sensitive, [name]) == {
            g: counts_of(own, [], [name]) for g, own in members.items()
        }
    kinds = [Counter(tuple(row[n] for n in (*NAMES, "paid")) for row in own) for own in members.values()]
    linked: dict[Any, Counter[Any]] = {}
    for row in table:
        linked.setdefault((row["age"], row["job"]), Counter())[tuple(row[n] for n in (*NAMES, "paid"))] += 1
    assert Counter(frozenset(k.items()) for k in kinds) == Counter(
        frozenset(k.items()) for k in linked.values()
    )
    report = json.loads((out / REPORT).read_text())
    checked = verify_table(task, out)
    asked = report["model"]["lkc"]
    assert (asked["release"], asked["quasi"]) == ("anatomy", "exact")
    assert report["requirements"][0]["smallest_group"] == min(map(len, members.values())) >= 4
    assert report["risk"]["unique"] == 150
    assert "everybody learns who is in the release" in report["risk"]["meaning"]
    assert any("Everybody learns who is in the table" in note for note in report["notes"])
    assert "`release: anatomy` does not link paid with sensitive values" in report["notes"]
    assert not {"ncp", "generalization_loss"} & set(report["metrics"])
    assert checked.fields["requirements"] == report["requirements"]


def test_the_pages_of_exact_quasi_identifiers_tell_the_risk_of_the_published_values(tmp_path: Path) -> None:
    """Readers find a record by its raw values, though its group has K records."""
    rows = rows_of(300, 3)
    path = write_job(tmp_path / "job", job_of({"C": "0.8"}, link="none", method="kd", **EXACT))
    jobs.write_csv(tmp_path / "job" / "table.csv", rows)
    ran = invoke("coordinator", "run", path, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    sizes = counts_of(rows, QID, []).values()
    assert min(sizes) == 1
    for page, of in ((PAGE, ", within L"), (PAGE, ", all attributes"), (OWN_PAGE, "")):
        text = " ".join(Reader((tmp_path / "out" / page).read_text()).texts).replace("\u00a0", " ")
        text = " ".join(text.split())
        assert f"Prosecutor risk{of} 100 % " in text
        assert f"Marketer risk {100 * len(sizes) / 300:.1f} %".replace(".0 %", " %") in text
        assert f"Unique records {100 * list(sizes).count(1) / 300:.1f} %".replace(".0 %", " %") in text
        assert "records that agree on all" not in text
        assert "Cluster of the record" not in text


MSA = {
    "method": "kd", "split": "median", "link": "none", **EXACT,
}  # fmt: skip


def test_all_that_the_paper_describes_as_one_job(tmp_path: Path) -> None:
    """[MSA]: a k-d tree of medians; anatomy with exact quasi-identifiers, and a table for each sensitive column."""
    rows = rows_of(300, 3)
    limited = {**NO_CLASS, "end": {**COLUMNS["end"], "at_most": "1"}}
    fields = job_of({"K": "10", "diversity": "3"}, columns=limited, **MSA)
    path = write_job(tmp_path / "job", fields)
    jobs.write_csv(tmp_path / "job" / "table.csv", rows)
    ran = invoke("coordinator", "run", path, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "Everybody learns who is in the table" in ran.out
    assert f"table:  {tmp_path / 'out' / SENSITIVE}" in ran.out
    checked = invoke("coordinator", "verify", path, tmp_path / "out")
    assert (checked.code, checked.err) == (0, "")
    assert "a reader who links the blocks again" in checked.out
    task, out = jobs.task_of(fields), tmp_path / "out"
    groups = read(task, out, GROUPS)
    assert counts_of(groups, QID, []) == counts_of(rows, QID, [])
    n_groups = len({row[GROUP] for row in groups})
    assert n_groups > 8
    assert json.loads((out / REPORT).read_text())["metrics"]["groups"] == n_groups
    by_qid: dict[Any, list[dict[str, str]]] = {}
    for row in rows:
        by_qid.setdefault((row["age"], row["job"]), []).append(row)
    unique = {key: own[0] for key, own in by_qid.items() if len(own) == 1}
    members: dict[str, list[tuple[str, ...]]] = {}
    whole = set(members)
    for row in groups:
        record = unique.get((row["age"], row["job"]))
        if record is None:
            whole.add(row[GROUP])
        else:
            members.setdefault(row[GROUP], []).append(tuple(record[name] for name in NAMES))
    columns = [Sensitive(DOMAINS[n], DOMAINS[n], Fraction(1), 1 if n == "end" else None) for n in NAMES]
    known = [own for group, own in members.items() if group not in whole]
    assert len(known) > 4
    assert all(len(own) >= 10 and is_diverse(own, columns, 3) for own in known)


# ---- read by others


def rewritten(out: Path, name: str, change: Callable[[list[dict[str, str]]], object]) -> None:
    """Change the rows of a file, and nothing else of the folder but the report, which nobody needs."""
    (out / REPORT).unlink(missing_ok=True)
    with (out / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])
    change(rows)
    jobs.write_csv(out / name, rows, names)


@pytest.fixture(scope="module")
def anatomies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Task, Path]]:
    folder, rows = tmp_path_factory.mktemp("anatomies"), rows_of(60, 2)
    link = [["disease", "end"]]
    return {
        "generalized": made(folder, "generalized", rows, {"C": "0.8"}, link=link, **ANATOMY),
        "exact": made(folder, "exact", rows, {"C": "0.8"}, link=link, **EXACT),
    }


def _moved(rows: list[dict[str, str]]) -> None:
    """One record's values go from the first group to another one."""
    (one,) = [row for row in rows if row[GROUP] == "1" and row[BLOCK] == "1"][:1]
    other = next(row for row in rows if row[GROUP] == "2" and row[BLOCK] == "1")
    one[RECORDS] = str(int(one[RECORDS]) - 1)
    other[RECORDS] = str(int(other[RECORDS]) + 1)
    if one[RECORDS] == "0":
        rows.remove(one)


def _of_another_block(rows: list[dict[str, str]]) -> None:
    """The first row is of the first block, which has no treatments."""
    rows[0].update(treatment="IV")


def _crossed(rows: list[dict[str, str]]) -> None:
    """Records of two groups, of one class each, exchange what is printed of them."""
    several = [group for group, n in Counter(row[GROUP] for row in rows).items() if n > 1]
    one, other = (next(row for row in rows if row[GROUP] == group) for group in several[:2])
    for name in QID:
        one[name], other[name] = other[name], one[name]


HOSTILE: dict[str, tuple[str, Callable[[list[dict[str, str]]], object], str]] = {
    "moved": (SENSITIVE, _moved, "not as many in sensitive.csv as in groups.csv"),
    "one more": (SENSITIVE, lambda rows: rows[0].update(records="9"), "not as many in sensitive.csv"),
    "a group too many": (
        SENSITIVE,
        lambda rows: rows[0].update(group="999"),
        "a group that is missing in groups.csv",
    ),
    "a block too many": (
        SENSITIVE,
        lambda rows: rows[0].update(block="3"),
        "a block that the job does not have",
    ),
    "of another block": (SENSITIVE, _of_another_block, "has values of a second block"),
    "no group": (SENSITIVE, lambda rows: rows[0].update(group="0"), "is not a whole number from 1"),
    "no number": (SENSITIVE, lambda rows: rows[0].update(records="1e1"), "is not a whole number from 1"),
    "zeros": (
        SENSITIVE,
        lambda rows: rows[0].update(records=f"0{rows[0]['records']}"),
        "written without leading zeros",
    ),
    "twice": (SENSITIVE, lambda rows: rows.append(dict(rows[0])), "a row of sensitive.csv stands twice"),
    "unknown value": (SENSITIVE, lambda rows: rows[0].update(disease="plague"), "column disease has a value"),
    "a gap": (
        GROUPS,
        lambda rows: [row.update(group="77") for row in rows if row[GROUP] == "2"],
        "lacks a number",
    ),
    "unknown label": (
        GROUPS,
        lambda rows: [r.update(age="[0,3)") for r in rows if r[GROUP] == "2"],
        "column age has",
    ),
    "one missing": (
        GROUPS,
        lambda rows: rows.pop(),
        "not as many|lacks a number|that is missing in groups.csv",
    ),
    "too many": (GROUPS, lambda rows: rows[0].update(records="4000000000"), "more than 2147483647 records"),
    "two in one": (
        GROUPS,
        lambda rows: [r.update(age=rows[0]["age"], job=rows[0]["job"]) for r in rows if r[GROUP] == "2"],
        "do not correspond one to one",
    ),
    "crossed": (GROUPS, _crossed, "one to one"),
    "one in two": (
        GROUPS,
        lambda rows: rows.append({**rows[0], "age": "[0,80)", "job": "Any"}),
        "one to one",
    ),
}
OF_GENERALIZED = {"too many", "two in one", "one in two", "crossed"}


@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.parametrize("form", ["generalized", "exact"])
def test_a_folder_that_does_not_fit_together_is_refused(
    anatomies: dict[str, tuple[Task, Path]], tmp_path: Path, form: str, how: str
) -> None:
    if form == "exact" and how in OF_GENERALIZED:
        how = "no number"
    task, original = anatomies[form]
    out = tmp_path / "out"
    shutil.copytree(original, out)
    verify_table(task, out)
    name, change, says = HOSTILE[how]
    rewritten(out, name, change)
    with pytest.raises(PartyError, match=says):
        verify_table(task, out)


def test_a_record_in_a_group_that_is_not_its_own_leaves_one_below_k(
    anatomies: dict[str, tuple[Task, Path]], tmp_path: Path
) -> None:
    """Both files agree, and are counted: a group of three."""
    task, original = anatomies["exact"]
    out, sizes = tmp_path / "out", Counter(row[GROUP] for row in read(task, original, GROUPS))
    shutil.copytree(original, out)
    small = min(sizes, key=lambda group: sizes[group])
    other = next(group for group in sizes if group != small)
    left = sizes[small] - 3

    def moved(rows: list[dict[str, str]]) -> None:
        for row in [row for row in rows if row[GROUP] == small][:left]:
            row[GROUP] = other

    def counted(rows: list[dict[str, str]]) -> None:
        for block in ("1", "2"):
            gone = left
            for row in [row for row in rows if (row[GROUP], row[BLOCK]) == (small, block)]:
                took = min(gone, int(row[RECORDS]))
                row[RECORDS], gone = str(int(row[RECORDS]) - took), gone - took
            first = next(row for row in rows if (row[GROUP], row[BLOCK]) == (other, block))
            first[RECORDS] = str(int(first[RECORDS]) + left)
        rows[:] = [row for row in rows if row[RECORDS] != "0"]

    rewritten(out, GROUPS, moved)
    rewritten(out, SENSITIVE, counted)
    with pytest.raises(PartyError, match="a group on group violates K"):
        verify_table(task, out)


@pytest.mark.parametrize("spelling", ["{}0", "+{}", " {}", "0{}", "{}00000000000000000001", "{}e0"])
def test_numbers_that_are_spelled_in_another_way_are_refused(
    anatomies: dict[str, tuple[Task, Path]], tmp_path: Path, spelling: str
) -> None:
    task, original = anatomies["exact"]
    shutil.copytree(original, tmp_path / "out")

    def respelled(rows: list[dict[str, str]]) -> None:
        row = next(row for row in rows if "." in row["age"])
        row["age"] = spelling.format(row["age"])

    rewritten(tmp_path / "out", GROUPS, respelled)
    with pytest.raises(PartyError, match="column age has a value that is not in its domain"):
        verify_table(task, tmp_path / "out")


def test_a_folder_lacks_a_file(anatomies: dict[str, tuple[Task, Path]], tmp_path: Path) -> None:
    task, original = anatomies["generalized"]
    shutil.copytree(original, tmp_path / "out")
    (tmp_path / "out" / SENSITIVE).unlink()
    with pytest.raises(PartyError, match="there is no table at"):
        verify_table(task, tmp_path / "out")
    with pytest.raises(PartyError, match="there is no table at"):
        verify_table(task, tmp_path / "out" / GROUPS)


def test_a_report_of_other_groups_is_found(anatomies: dict[str, tuple[Task, Path]], tmp_path: Path) -> None:
    for form, key in (("generalized", "groups"), ("exact", "average_group")):
        task, original = anatomies[form]
        shutil.copytree(original, tmp_path / form)
        path = tmp_path / form / REPORT
        report = json.loads(path.read_text())
        report["metrics"][key] = 7
        path.write_text(json.dumps(report))
        with pytest.raises(PartyError, match=f"`metrics.{key}` is not as job and table say"):
            verify_table(task, tmp_path / form)


# ---- joint


@pytest.mark.parametrize("method", ["kd", "top-down"])
def test_parties_check_the_counts_that_they_made(tmp_path: Path, method: str) -> None:
    """A joint run's table is the same whatever it is written as, and a party finds out another one."""
    rows = rows_of(80, 4)
    run = run_lkc(jobs.task_of(joint(method=method)), tmp_path, rows=rows)
    assert run.task.delivered == (REPORT, SUMS)
    (tmp_path / "out").mkdir()
    write_joint_release(
        run.task, tmp_path / "out", Collected(run.result, {}, {}), NO_OPTIONS, Stopwatch(lambda _: None)
    )
    verify_table(run.task, tmp_path / "out")
    sensitive = read(run.task, tmp_path / "out", SENSITIVE)
    numbers = {row[GROUP]: (row["age"], row["job"]) for row in read(run.task, tmp_path / "out", GROUPS)}
    changes = {"method": method, "columns": NO_CLASS, "model": {"lkc": {"L": "all", "K": "4", "C": "0.8"}}}
    alone = read(*made(tmp_path, "alone", rows, **changes), TABLE)
    found = sensitive_of(sensitive, NAMES)
    assert {(*numbers[g], *v): n for g, own in found.items() for v, n in own.items()} == counts_of(
        alone, QID, NAMES
    )
    files = {name: (tmp_path / "out" / name).read_bytes() for name in (GROUPS, SENSITIVE, REPORT, SUMS)}
    other = run.results[PARTIES[1]]
    assert checked_release(run.task, other, {REPORT: files[REPORT], SUMS: files[SUMS]}, {}).files == files
    rewritten(tmp_path / "out", SENSITIVE, _swapped)
    tables = {name: (tmp_path / "out" / name).read_bytes() for name in (GROUPS, SENSITIVE)}
    report = json.loads(files[REPORT]) | {"files": file_fields(tables)}
    changed = {**tables, REPORT: json.dumps(report).encode()}
    with pytest.raises(PartyError, match="not the one that was computed"):
        checked_release(run.task, other, {**changed, SUMS: sums_of(changed)}, {})


def _swapped(rows: list[dict[str, str]]) -> None:
    """Two records of one group exchange their treatments: no size, and no count of any column, is another."""
    for one, other in itertools.combinations(rows, 2):
        there = {tuple(row[n] for n in NAMES) for row in rows if row[GROUP] == one[GROUP]}
        swapped = [(one["disease"], other["treatment"], one["end"])]
        swapped += [(other["disease"], one["treatment"], other["end"])]
        if one[GROUP] == other[GROUP] and len({*there, *swapped}) == len(there) + 2:
            for row, values in zip((one, other), swapped, strict=True):
                rows.append({**row, **dict(zip(NAMES, values, strict=True)), RECORDS: "1"})
                row[RECORDS] = str(int(row[RECORDS]) - 1)
            rows[:] = [row for row in rows if row[RECORDS] != "0"]
            return
    raise AssertionError("no such records")


def test_what_is_read_is_no_other_file(anatomies: dict[str, tuple[Task, Path]]) -> None:
    """Its columns are those that the job says, in order."""
    task, out = anatomies["exact"]
    with pytest.raises(PartyError, match=f"{GROUPS} has columns"):
        read_csv(out / GROUPS, [GROUP, *QID, "paid", RECORDS])
    assert task.model.made == (TABLE, PARTS_OF_TABLE, GROUPS, SENSITIVE)


def test_checking_costs_what_the_files_cost(tmp_path: Path) -> None:
    """Two files of a few lines stand for 2^31 - 1 records: they are counted, and not written out."""
    task, n = jobs.task_of(job_of(**ANATOMY, columns=NO_CLASS, link="none")), (1 << 31) - 1
    no = '""'
    values = {f"1,flu,{no},{no}": n - 7, f"1,cold,{no},{no}": 7, f"2,{no},IV,{no}": n}
    values |= {f"3,{no},{no},home": 9, f"3,{no},{no},ward": n - 9}
    lines = [f"1,{of},{records}" for of, records in values.items()]
    (tmp_path / GROUPS).write_text(f'{GROUP},age,job,{RECORDS}\n1,"[0,80)",Any,{n}\n')
    (tmp_path / SENSITIVE).write_text(
        "\n".join([f"{GROUP},{BLOCK},disease,treatment,end,{RECORDS}", *lines, ""])
    )
    size = sum((tmp_path / name).stat().st_size for name in (GROUPS, SENSITIVE))
    verify_table(task, tmp_path)  # what is imported, and kept, is not counted
    tracemalloc.start()
    try:
        checked = verify_table(task, tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert checked.fields["rows"] == n
    assert most < 4_000 * size
