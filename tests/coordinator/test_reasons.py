"""`coordinator run` of a single holder says why a column is no finer, and what to try."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import Ran, invoke
from tests.support.jobs import write_csv
from tests.support.network import yaml_of
from tests.support.samples import single_job

QIDS = {
    "sex": {"role": "qid", "taxonomy": {"Any": ["F", "M"]}, "refine": "children"},
    "job": {"role": "qid", "taxonomy": {"Any": {"Office": ["Clerk", "Lawyer"], "Craft": ["Mover", "Cook"]}}},
}


def run(folder: Path, rows: Sequence[Mapping[str, str]], **changes: Any) -> Ran:
    folder.mkdir(exist_ok=True)
    write_csv(folder / "table.csv", rows)
    fields = {"goal": "general", "columns": QIDS, "model": {"lkc": {"L": "2", "K": "5"}}, **changes}
    (folder / "job.yaml").write_text(yaml_of(single_job(**fields)))
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    return ran


def people(**counts: int) -> list[dict[str, str]]:
    """Return rows by `sex_job`, so many of each."""
    return [
        {"sex": sex, "job": job}
        for key, n in counts.items()
        for sex, job in [key.split("_")]
        for _ in range(n)
    ]


def test_a_missing_cell_is_named(tmp_path: Path) -> None:
    ran = run(tmp_path, [*people(F_Clerk=9, M_Mover=9, F_Mover=9, M_Clerk=9), {"sex": "", "job": "Clerk"}])
    assert "sex              Any\n                   no finer: K: sex = ? would have 1 record\n" in ran.out
    (line,) = [line for line in ran.out.splitlines() if line.startswith("sex: to free detail")]
    assert "`missing: drop` at sex" in line
    assert "`refine: child` at sex" in line
    assert "`withhold: 1/50`" in line
    report = (tmp_path / "out" / "report.json").read_text()
    assert "would have" not in report
    assert json.loads(report)["stopped"]["sex"] == [{"reason": "K", "columns": 1, "values": ["Any"]}]


def test_a_group_on_two_columns_is_named(tmp_path: Path) -> None:
    """The column of the refused step first."""
    ran = run(
        tmp_path,
        people(F_Clerk=9, M_Mover=9, F_Mover=2, M_Cook=5),
        columns={"job": QIDS["job"], "sex": QIDS["sex"]},
    )
    assert "no finer: K: " in ran.out
    assert " would have 2 records" in ran.out


def test_a_sensitive_column_is_named(tmp_path: Path) -> None:
    rows = [
        {**row, "ill": "HIV" if i % 9 < 7 else "Flu"} for i, row in enumerate(people(F_Clerk=9, M_Clerk=27))
    ]
    rows = [{**row, "ill": "Flu"} if row["sex"] == "M" else row for row in rows]
    changes = {**QIDS, "ill": {"role": "sensitive", "C": "0.5", "values": ["HIV"]}}
    ran = run(tmp_path, rows, columns=changes)
    n = sum(row["sex"] == "F" and row["ill"] == "HIV" for row in rows)
    share = f"{n} of them ({n / 9:.1%}) with HIV, and C=1/2 allows 50.0%"
    assert f"no finer: C of ill: sex = F would have 9 records, {share}\n" in ran.out
    for name in ("report.json", "report.html"):
        assert f"{n / 9:.1%}) with" not in (tmp_path / "out" / name).read_text()
    (frees,) = [line for line in ran.out.splitlines() if line.startswith("sex: to free detail")]
    assert ", or raise C, or protect fewer values" in frees
    assert "lower K" not in frees


def test_columns_that_were_cut_have_a_remedy(tmp_path: Path) -> None:
    """On the console and on the page: a line for both columns, which the same threshold stops after a first step."""
    rows = people(F_Clerk=40, F_Lawyer=40, F_Mover=40, F_Cook=2)
    rows = [{**row, "trade": row["job"]} for row in rows]
    columns = {"job": QIDS["job"], "trade": deepcopy(QIDS["job"])}
    ran = run(tmp_path, rows, columns=columns, model={"lkc": {"L": "1", "K": "5"}})
    assert ran.out.count("no finer: K: ") == 2
    frees = "job, trade: to free detail, suppress a few rows of rare groups (`withhold: 1/50`), or lower K"
    assert [line for line in ran.out.splitlines() if "to free detail" in line] == [frees]
    page = (tmp_path / "out" / "report.html").read_text()
    assert frees.replace("`withhold: 1/50`", "<code>withhold: 1/50</code>") in page


def test_a_cut_column_that_predicts_no_more(tmp_path: Path) -> None:
    """A part of the column is no finer because of K, and a part because the class is the same everywhere."""
    rows = people(F_Clerk=20, F_Lawyer=20, F_Mover=20, F_Cook=2)
    rows = [{**row, "died": "Y" if row["job"] in ("Mover", "Cook") else "N"} for row in rows]
    columns = {"job": QIDS["job"], "died": {"role": "class"}}
    model = {"lkc": {"L": "1", "K": "5"}}
    ran = run(tmp_path, rows, goal="classification", columns=columns, model=model)
    assert "job: `goal: general` keeps detail that predicts no class" in ran.out


def test_a_column_that_predicts_nothing(tmp_path: Path) -> None:
    rows = [{**row, "died": "YN"[i % 2]} for i, row in enumerate(people(F_Clerk=20, M_Clerk=20))]
    ran = run(tmp_path, rows, goal="classification", columns={**QIDS, "died": {"role": "class"}})
    assert ran.out.count("no finer: a step tells nothing more of died") == 1
    assert "sex: `goal: general` keeps detail that predicts no class" in ran.out


def test_several_reasons_of_a_column_are_told_with_their_values(tmp_path: Path) -> None:
    rows = [*people(F_Clerk=9, F_Lawyer=9), *people(M_Mover=9, M_Cook=1)]
    rows += people(F_Mover=9, M_Clerk=9)
    ran = run(tmp_path, rows, columns={"job": QIDS["job"]}, model={"lkc": {"L": "1", "K": "9"}})
    assert "no finer: K: job = Cook would have 1 record\n" in ran.out
    rows = [{**row, "died": "Y" if row["job"] == "Mover" else "N"} for row in rows]
    ran = run(
        tmp_path / "two",
        rows,
        columns={"job": QIDS["job"], "died": {"role": "class"}},
        model={"lkc": {"L": "1", "K": "9"}},
        goal="classification",
    )
    assert "no finer: Office: a step tells nothing more of died; Craft: K\n" in ran.out


def test_suppressed_values_are_told_in_words(tmp_path: Path) -> None:
    """`*` alone would look like a value of the table, in the reason and in the named group."""
    columns = {"job": {"role": "qid", "suppress": ["Clerk", "Cook", "Mover"]}}
    lkc = {"lkc": {"L": "1", "K": "4"}}
    ran = run(tmp_path, people(F_Clerk=9, F_Cook=2, F_Mover=1), columns=columns, model=lkc)
    assert "no finer: K: job = the suppressed values (*) would have 3 records\n" in ran.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the suppressed values (*): no finer, because a finer value would leave groups" in page


def test_leaves_need_no_reason(tmp_path: Path) -> None:
    ran = run(tmp_path, people(F_Clerk=9, M_Mover=9, F_Mover=9, M_Clerk=9))
    assert "no finer: " not in ran.out
    assert "to free detail" not in ran.out


def test_kd_has_boxes_and_no_reasons(tmp_path: Path) -> None:
    sex = {"role": "qid", "taxonomy": {"Any": ["F", "M"]}}
    model = {"lkc": {"L": "all", "K": "5", "method": "kd"}}
    ran = run(tmp_path, people(F_Clerk=9, M_Mover=9), columns={"sex": sex, "job": QIDS["job"]}, model=model)
    assert "no finer" not in ran.out


def jointly(folder: Path, partition: str, rows: Sequence[Mapping[str, str]], **changes: Any) -> Ran:
    """Run a joint job in this process; every party of a vertical job has its columns of all rows."""
    parties: dict[str, Any] = {"a": {}, "b": {}}
    if partition == "vertical":
        parties = {"a": {"columns": ["sex"]}, "b": {"columns": ["job"]}}
    ids = [{"id": str(i), **row} for i, row in enumerate(rows)]
    held = {"a": ids[::2], "b": ids[1::2]} if partition == "horizontal" else {"a": ids, "b": ids}
    fields = {
        "partition": partition,
        "goal": "general",
        "model": {"lkc": {"L": "2", "K": "5"}},
        "parties": parties,
    }
    fields |= {"columns": {"id": {"role": "id"}, **QIDS}, "data": None, **changes}
    (folder / "job.yaml").write_text(yaml_of(single_job(**fields)))
    tables = [f"--data={name}={write_csv(folder / f'{name}.csv', own)}" for name, own in held.items()]
    ran = invoke(
        "coordinator", "simulate", folder / "job.yaml", *tables, "--in-process", "--out", folder / "out"
    )
    assert ran.code == 0, ran.err
    return ran


RARE = people(F_Clerk=30, F_Mover=30, M_Clerk=2)


def test_a_horizontal_run_says_that_a_step_was_refused(tmp_path: Path) -> None:
    """The report lists discarded candidates. The threshold is known if the job has a single one, and no group is."""
    ran = jointly(tmp_path, "horizontal", RARE)
    assert "sex: no finer, because a step breaks K; the parties do not open the group" in ran.out
    assert "record" not in next(line for line in ran.out.splitlines() if line.startswith("sex: no finer"))
    frees = (
        "sex: to free detail, let children leave one by one (`refine: child` at sex), or lower K, or lower L, or ask "
        "for coarser values of the neighbours"
    )
    assert frees in ran.out
    assert "To keep more detail" in (tmp_path / "out" / "report.html").read_text()


def test_a_horizontal_run_names_the_values_that_stopped(tmp_path: Path) -> None:
    """Only the values, with no count of records; a small value is freed by K alone."""
    rows = [*people(F_Clerk=40, F_Lawyer=40), *people(M_Mover=6, M_Cook=2)]
    columns = {"id": {"role": "id"}, "job": QIDS["job"]}
    ran = jointly(tmp_path, "horizontal", rows, columns=columns, disclosure="strict")
    assert "job (Craft): no finer, because any step that parts the records leaves fewer than K" in ran.out
    assert "job: to free detail, lower K\n" in ran.out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Craft: no finer, because any step that parts the records leaves fewer than K" in page


def test_k_of_1_is_no_reason(tmp_path: Path) -> None:
    """An interval with a single record: no step parts it, and no smaller K would free it."""
    ages = [5] * 30 + [95]
    rows = [{"age": str(age), "ill": "NNY"[i % 3]} for i, age in enumerate(ages)]
    columns = {
        "id": {"role": "id"},
        "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}},
        "ill": {"role": "sensitive", "domain": ["Y", "N"], "values": ["Y"]},
    }
    ran = jointly(
        tmp_path, "horizontal", rows, columns=columns, model={"lkc": {"L": "1", "K": "1", "C": "0.9"}}
    )
    assert "no finer, because a value has a single record, which no step parts" in ran.out
    assert "lower K" not in ran.out


def test_a_horizontal_run_of_several_thresholds_tells_none(tmp_path: Path) -> None:
    rows = [{**row, "ill": "NNY"[i % 3]} for i, row in enumerate(RARE)]
    columns = {
        "id": {"role": "id"},
        **QIDS,
        "ill": {"role": "sensitive", "domain": ["Y", "N"], "values": ["Y"]},
    }
    model = {"lkc": {"L": "2", "K": "5", "C": "0.9"}}
    ran = jointly(tmp_path, "horizontal", rows, columns=columns, model=model)
    assert "sex: no finer, because a step breaks the requirement; the parties open neither" in ran.out
    (frees,) = [line for line in ran.out.splitlines() if ": to free detail" in line]
    assert "lower K, or raise C, or protect fewer values, or lower L" in frees


@pytest.mark.parametrize(("partition", "disclosure"), [("vertical", "sealed"), ("horizontal", "strict")])
def test_other_joint_runs_open_no_reason(partition: str, disclosure: str, tmp_path: Path) -> None:
    ran = jointly(tmp_path, partition, RARE, disclosure=disclosure)
    assert "sex: no finer; the parties open no reason, which would be finer than the table" in ran.out


def test_a_horizontal_run_that_gains_nothing(tmp_path: Path) -> None:
    rows = [{**row, "died": "YN"[i // 2 % 2]} for i, row in enumerate(people(F_Clerk=40, M_Clerk=40))]
    columns = {"id": {"role": "id"}, **QIDS, "died": {"role": "class", "domain": ["Y", "N"]}}
    ran = jointly(tmp_path, "horizontal", rows, goal="classification", columns=columns)
    assert "sex: no finer, because no step that K allows tells more of died" in ran.out
    assert "sex: `goal: general` keeps detail that predicts no class" in ran.out


def test_a_horizontal_run_of_c_does_not_speak_of_k_alone(tmp_path: Path) -> None:
    rows = [
        {**row, "died": "YN"[i // 2 % 2], "ill": "NNY"[i % 3]} for i, row in enumerate(people(F_Clerk=84))
    ]
    columns = {
        "id": {"role": "id"},
        **QIDS,
        "died": {"role": "class", "domain": ["Y", "N"]},
        "ill": {"role": "sensitive", "domain": ["Y", "N"], "values": ["Y"]},
    }
    model = {"lkc": {"L": "2", "K": "5", "C": "0.9"}}
    ran = jointly(tmp_path, "horizontal", rows, goal="classification", columns=columns, model=model)
    assert "no finer, because no step that the requirement allows tells more of died" in ran.out


def test_a_finer_column_has_no_sentence(tmp_path: Path) -> None:
    ran = jointly(tmp_path, "horizontal", people(F_Clerk=30, M_Mover=30, F_Mover=30, M_Clerk=30))
    assert "no finer" not in ran.out
