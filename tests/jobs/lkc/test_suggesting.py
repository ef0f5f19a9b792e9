"""Single changes of a job: the figures are those of runs of the changed jobs, and the order is that of the loss
that is counted in the released rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.data.sources import Csv
from jobs.lkc import suggesting
from jobs.lkc.exploring import Explorer, joined, measured
from jobs.lkc.forms.form import form_of
from jobs.lkc.suggesting import Suggested, changes_of, number_of_runs, suggested
from jobs.loading import load_task
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.exploring import explorer_of, lkc
from tests.support.joint import sample_rows
from tests.support.network import write_job
from tests.support.samples import COLUMNS, columns, joint_job, single_job

GROUPS = {"Blue": {"Janitor", "Mover"}, "White": {"Lawyer"}, "Any": {"Janitor", "Mover", "Lawyer", "?"}}
"""Leaves of each group of the sample taxonomy."""
TOGETHER = columns(job={**COLUMNS["job"], "refine": "children"})
"""Sample columns whose values part together, not one by one as by default."""
CELLS = 10
"""Cells of the sample ages."""


def suggested_of(folder: Path, fields: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> Suggested:
    return suggested(explorer_of(folder, fields, rows), lambda number: None)


def leaves_of(label: str, cut: Sequence[str]) -> set[str]:
    """Return the leaves of a published job; a rest lacks the leaves of the finer values of the cut."""
    named = label.removeprefix("other ")
    below = GROUPS.get(named, {named})
    finer = (leaves_of(other, cut) for other in cut if other != label and not other.endswith(f" {named}"))
    return below.difference(*(own for own in finer if own < below)) if label != named else below


def ages(label: str) -> int:
    """Return the number of cells of a published interval, in cells of the sample grid."""
    low, high = label[1:-1].split(",")
    return (int(high) - int(low)) // 10


def lost(out: Path, n_rows: int) -> float:
    """Return the loss of the published rows among all rows; the sample has two quasi-identifiers."""
    cut = json.loads((out / REPORT).read_text())["cut"]
    kept = 0.0
    with (out / TABLE).open(newline="") as file:
        for row in csv.DictReader(file):
            if "job" in row:
                kept += 1 - (len(leaves_of(row["job"], cut["job"])) - 1) / 3
            if "age" in row:
                kept += 1 - (ages(row["age"]) - 1) / (CELLS - 1)
    return 1 - kept / (2 * n_rows)


def changed(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job with changes, without the keys that are changed to None."""
    made = joined([fields, changes])
    keys = {key: value for key, value in made["model"]["lkc"].items() if value is not None}
    return {
        **made,
        "model": {"lkc": keys},
        "columns": {name: column for name, column in made["columns"].items() if column is not None},
    }


def test_wide_jobs_compare_columns_before_they_search_for_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tried changes are measured as before; changes of columns beyond the bound are left out."""
    fields = single_job(goal="general", model=lkc(L="2", K="8", C="0.4", withhold="1/20"))
    everything = suggested_of(tmp_path, fields, sample_rows(70))
    assert everything.compared == 0
    monkeypatch.setattr(suggesting, "MOST_SEARCHES", 2)
    explorer = explorer_of(tmp_path, fields, sample_rows(70))
    of_columns = [change for change in changes_of(explorer.task) if change.reads]
    runs: list[int] = []
    found = suggested(explorer, runs.append)
    assert found.compared == len(of_columns) > 2
    assert runs == [*range(1, number_of_runs(explorer.task) + 1)]
    assert found.before == everything.before
    full = {each.change.words: each.after for each in everything.best}
    assert {each.change.words: each.after for each in found.best}.items() <= full.items()
    plain = {key: value for key, value in fields["model"]["lkc"].items() if key != "withhold"}
    worth = {}
    for change in of_columns:
        (tmp_path / "plain").mkdir(exist_ok=True)
        changed_job = changed({**fields, "model": {"lkc": plain}}, change.changes)
        out = tmp_path / "plain" / f"out-{len(worth)}"
        jobs.write_csv(tmp_path / "plain" / "table.csv", sample_rows(70))
        write_job(tmp_path / "plain", changed_job, "job.yaml")
        assert invoke("coordinator", "run", tmp_path / "plain" / "job.yaml", "--out", out).code == 0
        worth[change.words] = round(lost(out, 70), 9)
    limit = sorted(worth.values())[1]
    assert all(worth[each.change.words] <= limit for each in found.best if each.change in of_columns)


@pytest.mark.by_lot(1)
@pytest.mark.parametrize("goal", ["general", "classification"])
@pytest.mark.parametrize("seed", range(3))
def test_every_change_is_measured_as_a_run_of_the_changed_job(tmp_path: Path, goal: str, seed: int) -> None:
    n = 70
    fields = single_job(goal=goal, model=lkc(L="2", K="8", C="0.4"))
    explorer = explorer_of(tmp_path, fields, sample_rows(n, seed))
    found = suggested(explorer, lambda number: None)
    worth = []
    for place, change in enumerate([None, *changes_of(explorer.task)]):
        out = tmp_path / f"out-{place}"
        write_job(tmp_path, fields if change is None else changed(fields, change.changes), "other.yaml")
        ran = invoke("coordinator", "run", tmp_path / "other.yaml", "--out", out)
        assert ran.code == 0, ran.err
        loss = lost(out, n)
        if change is None:
            assert found.before == pytest.approx(loss, abs=1e-12)
            before = loss
            continue
        worth.append((-round(before - loss, 9), place, change.words))
        own = next((each for each in found.best if each.change == change), None)
        assert (own is None) == (round(before - loss, 9) <= 0)
        if own is not None:
            report = json.loads((out / REPORT).read_text())
            assert own.after == pytest.approx(loss, abs=1e-12)
            assert own.figures.losses == report["metrics"]["generalization_loss"]
            assert own.figures.groups == report["metrics"]["leaf_partitions"]
            assert own.figures.unique == report["risk"]["unique"]
            assert own.figures.withheld == report["data"]["used"] - report["rows"]
    assert [each.change.words for each in found.best] == [
        words for less, _, words in sorted(worth) if less < 0
    ]
    assert found.tried == len(worth)


def test_the_changes_of_a_job() -> None:
    fields = single_job(
        goal="general", columns=TOGETHER, model=lkc(L="all", K="10", C="0.5", withhold="1/100")
    )
    found = changes_of(jobs.task_of(fields))
    assert [change.words for change in found] == [
        "`refine: child` at job",
        "`withhold: 1/50`",
        "`withhold: 1/20`",
        "`K: 8`",
        "`K: 5`",
        "`C: 3/5`",
        "`L: 1`",
        "`level: 1` at job",
        "`step: 20` at age",
        "no column job",
        "no column age",
    ]
    assert [change.weaker for change in found] == [4 <= place <= 7 for place in range(1, 12)]
    assert [change.reads for change in found] == [place in {1, 8, 9, 10, 11} for place in range(1, 12)]


@pytest.mark.parametrize(
    ("model", "own", "changes"),
    [
        ({"C": "0.5"}, None, {"model": {"lkc": {"C": "3/5"}}}),
        ({"C": {"surgery": "0.5"}}, None, {"model": {"lkc": {"C": {"surgery": "3/5"}}}}),
        ({}, "0.5", {"columns": {"surgery": {"C": "3/5"}}}),
        ({"C": "0.95"}, None, None),
        ({"C": "1"}, None, None),
    ],
)
def test_c_changes_where_the_job_states_c(model: Any, own: str | None, changes: Any) -> None:
    own_c = {} if own is None else {"C": own}
    surgery = {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"], "values": ["Rare"], **own_c}
    task = jobs.task_of(single_job(columns=columns(surgery=surgery), model=lkc(L="2", K="2", **model)))
    assert [c.changes for c in changes_of(task) if "`C:" in c.words] == ([] if changes is None else [changes])


def test_grids_with_every_second_edge() -> None:
    added = {
        "born": {"role": "qid", "dates": {"from": "2000-01-01", "to": "2001-01-01", "step": "2mo"}},
        "size": {"role": "qid", "numeric": {"min": "0", "max": "9", "cuts": ["1", "2", "4", "5"]}},
        "half": {"role": "qid", "numeric": {"min": "0", "max": "2", "step": "1"}},
    }
    task = jobs.task_of(single_job(columns=columns(**added)))
    coarser = {change.words: change.changes["columns"] for change in changes_of(task) if change.coarser}
    assert coarser == {
        "`level: 1` at job": {"job": {"level": 1}},
        "`step: 20` at age": {"age": {"numeric": {"step": "20"}}},
        "`step: 4mo` at born": {"born": {"dates": {"step": "4mo"}}},
        "every second of the `cuts` at size": {"size": {"numeric": {"cuts": ["2", "5"]}}},
    }


def came(**dates: Any) -> dict[str, Any]:
    return {
        "role": "qid",
        "dates": {"from": "2023-01-01", "to": "2025-01-01", "levels": ["year", "month"], **dates},
    }


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        ({}, ["`levels: [year]` at came"]),
        ({"levels": ["year", "quarter", "day"]}, ["`levels: [year, quarter]` at came"]),
        ({"levels": ["year", "month"], "from": "2023-02-01"}, []),
        ({"levels": ["year", "quarter", "day"], "from": "2023-02-01"}, []),
        (
            {"levels": ["quarter", "month", "day"], "from": "2023-02-01"},
            ["`levels: [quarter, month]` at came"],
        ),
        ({"levels": ["year"]}, []),
    ],
)
def test_dates_lose_their_finest_level(dates: Mapping[str, Any], words: Sequence[str]) -> None:
    """Levels whose units the domain's ends cut are not offered: the changed job would be refused."""
    task = jobs.task_of(
        single_job(
            goal="general", columns={"job": COLUMNS["job"], "came": came(**dates)}, model=lkc(L="1", K="2")
        )
    )
    found = [change for change in changes_of(task) if change.coarser == "came"]
    assert [change.words for change in found] == words


TREE = {"Any": {"A": {"A1": ["a", "b"], "A2": ["c"]}, "B": ["d", "e"]}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"taxonomy": TREE}, ["`level: 2` at code"]),
        ({"taxonomy": TREE, "level": "2"}, ["`level: 1` at code"]),
        ({"taxonomy": TREE, "level": "1"}, []),
        ({"taxonomy": {"Any": ["a", "b", "c"]}}, []),
        ({"suppress": ["a", "b", "c"]}, []),
        ({"prefix": {"values": ["123", "124", "345"], "lengths": ["1", "2"]}}, ["`level: 2` at code"]),
        ({"order": {"values": ["low", "middle", "high"]}}, ["`level: 1` at code"]),
    ],
)
def test_taxonomies_lose_their_lowest_level(keys: Mapping[str, Any], words: Sequence[str]) -> None:
    fields = single_job(goal="general", columns={"code": {"role": "qid", **keys}}, model=lkc(L="1", K="2"))
    found = [change for change in changes_of(jobs.task_of(fields)) if change.coarser]
    assert [change.words for change in found] == words


def test_a_taxonomy_without_its_lowest_level_frees_another_column(tmp_path: Path) -> None:
    """A user who adds the suggested key gets a table with as much more detail as told, counted in its rows."""
    fields = single_job(goal="general", model=lkc(L="2", K="6", C="0.9"))
    found = suggested_of(tmp_path, fields, sample_rows(90))
    (own,) = [each for each in found.best if each.change.words == "`level: 1` at job"]
    assert own.sentence.startswith("`level: 1` at job lowers the mean loss from ")
    write_job(tmp_path, {**fields, "columns": columns(job={**COLUMNS["job"], "level": "1"})}, "other.yaml")
    losses = []
    for place, job in enumerate(("job.yaml", "other.yaml")):
        out = tmp_path / f"out-{place}"
        assert invoke("coordinator", "run", tmp_path / job, "--out", out).code == 0
        assert invoke("coordinator", "verify", tmp_path / job, out).code == 0
        losses.append(lost(out, 90))
    assert losses[1] < losses[0]
    assert own.freed == pytest.approx(losses[0] - losses[1])


def test_a_lower_level_is_measured_in_the_values_of_the_job(tmp_path: Path) -> None:
    """The loss of each row is the number of the job's values below the published value, counted in the release."""
    code = {"role": "qid", "taxonomy": TREE, "missing": "drop", "level": "2"}
    fields = single_job(
        goal="general", columns={"code": code, "age": COLUMNS["age"]}, model=lkc(L="2", K="9")
    )
    rows = [{"code": "abcde"[i * i % 5], "age": str(i * 7 % 100)} for i in range(80)]
    path = write_job(tmp_path, fields)
    source = Csv(jobs.write_csv(tmp_path / "table.csv", rows, ["code", "age"]))
    explorer = Explorer.of(str(path), lambda changes: load_task(path, changes), source)
    (change,) = [change for change in changes_of(explorer.task) if change.coarser == "code"]
    task = explorer.load(change.changes)
    made = measured(task, form_of(task.job).load(source, task))
    column = made.release.columns["code"]
    of_level_2 = {"Any": 4, "A": 2, "B": 2}  # A1, A2, d, e
    sizes = [of_level_2[label] for label in (column.labels[code] for code in column.codes)]
    code_loss = np.average([(size - 1) / 3 for size in sizes], weights=made.release.counts)
    age_loss = made.figures.losses["age"]
    assert suggesting._loss(explorer, made, change) == pytest.approx((code_loss + age_loss) / 2)


@pytest.mark.parametrize("missing", [{}, {"missing": "leaf"}])
def test_coarser_levels_are_measured_in_units_of_the_job(tmp_path: Path, missing: Mapping[str, str]) -> None:
    """The loss of each row is the number of the job's months in the published unit, counted in the release."""
    months = [f"{year}-{month:02d}" for year in (2023, 2024) for month in range(1, 13)]
    rows = [
        {"came": "" if missing and i % 9 == 0 else f"{months[i * i % 24]}-11", "job": "Mover"}
        for i in range(60)
    ]
    columns = {"came": {**came(), **missing}}
    fields = single_job(goal="general", columns=columns, model=lkc(L="1", K="8"))
    path = write_job(tmp_path, fields)
    source = Csv(jobs.write_csv(tmp_path / "table.csv", rows, ["came", "job"]))
    explorer = Explorer.of(str(path), lambda changes: load_task(path, changes), source)
    (change,) = [change for change in changes_of(explorer.task) if change.coarser == "came"]
    task = explorer.load(change.changes)
    found = measured(task, form_of(task.job).load(source, task))
    column = found.release.columns["came"]
    n_cells = 24 + len(missing)
    inside = {**dict.fromkeys(months, 1), "2023": 12, "2024": 12, "?": 1, "*": n_cells}

    def cells_of(label: str) -> int:
        rest = label.removeprefix("other ")
        return (
            inside[label] if rest == label else n_cells - sum(inside[o] for o in column.labels if o != label)
        )

    lost = [(cells_of(column.labels[code]) - 1) / (n_cells - 1) for code in column.codes]
    weights = found.release.counts
    assert suggesting._loss(explorer, found, change) == pytest.approx(np.average(lost, weights=weights))


def test_told_losses_are_those_of_reports(tmp_path: Path) -> None:
    """Figures are told of the rows that stay, as in the report of each changed job."""
    rows = [{**row, "job": "Mover" if i > 1 else "Lawyer"} for i, row in enumerate(sample_rows(100))]
    fields = single_job(goal="general", columns=TOGETHER, model=lkc(L="1", K="5", C="1", withhold="1/100"))
    found = suggested_of(tmp_path, fields, rows)
    told = {"": found.before} | {each.change.words: each.fields["loss_after"] for each in found.best}
    changes = {"": {}} | {each.change.words: each.change.changes for each in found.best}
    assert len(told) > 2
    for place, (words, loss) in enumerate(told.items()):
        write_job(tmp_path, changed(fields, changes[words]), "other.yaml")
        out = tmp_path / f"out-{place}"
        assert invoke("coordinator", "run", tmp_path / "other.yaml", "--out", out).code == 0
        losses = json.loads((out / REPORT).read_text())["metrics"]["generalization_loss"].values()
        assert loss == pytest.approx(sum(losses) / len(losses))
    for each in found.best:
        assert f"{each.figures.loss:.1%}" in each.sentence
        assert (each.figures.loss < found.before) == ("lowers the mean loss" in each.sentence)


def test_changes_with_equal_tables_are_shown_once(tmp_path: Path) -> None:
    """Two rows suffice for each share: the smaller share is shown, and the other one stays in the list."""
    rows = [{**row, "job": "Mover" if i > 1 else "Lawyer"} for i, row in enumerate(sample_rows(100))]
    fields = single_job(goal="general", columns={"job": TOGETHER["job"]}, model=lkc(L="1", K="5"))
    found = suggested_of(tmp_path, fields, rows)
    shares = [each.change.words for each in found.best if "withhold" in each.change.words]
    assert shares == ["`withhold: 1/50`", "`withhold: 1/20`"]
    shown = [*found.as_strong(9), *found.weaker(9)]
    assert [each.change.words for each in shown if "withhold" in each.change.words] == shares[:1]
    assert len({each.change.words.split(":")[0] for each in shown}) == len(shown)


def test_a_column_leaves_the_requirement_too() -> None:
    model = lkc(L="2", K="2", C="0.5", columns=["job", "age"])
    dropped = [c.changes for c in changes_of(jobs.task_of(single_job(model=model))) if "no column" in c.words]
    assert dropped[0] == {"columns": {"job": None}, "model": {"lkc": {"columns": ["age"]}}}


def test_wide_jobs_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggesting, "MOST_CHANGES", 3)
    assert len(changes_of(jobs.task_of(single_job()))) == 3


def test_changes_that_are_not_tried_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner reads the number, on the console and in Python; without any the owner reads nothing."""
    rows = sample_rows(60)
    all_of_them = suggested_of(tmp_path / "all", single_job(goal="general"), rows)
    assert all_of_them.untried == 0
    assert "not tried" not in " ".join(all_of_them.why)
    monkeypatch.setattr(suggesting, "MOST_CHANGES", 3)
    cut = suggested_of(tmp_path / "cut", single_job(goal="general"), rows)
    assert cut.untried == len(list(suggesting._changes(jobs.task_of(single_job(goal="general"))))) - 3
    assert cut.why[-1].startswith(f"{cut.untried} further changes were not tried")


def test_what_is_said(tmp_path: Path) -> None:
    """Two rare values block a step: a share of the rows frees the column, and so does a smaller K."""
    rows = [{**row, "job": "Mover" if i > 1 else "Lawyer"} for i, row in enumerate(sample_rows(100))]
    fields = single_job(goal="general", columns=TOGETHER, model=lkc(L="1", K="5", C="1"))
    found = suggested_of(tmp_path, fields, rows)
    assert "job" in found.reasons
    assert found.reasons["job"] == "K: job = Lawyer would have 2 records"
    (share,) = [each for each in found.best if each.change.words == "`withhold: 1/50`"]
    assert share.sentence.endswith("2 rows of 100 leave the table.")
    assert f"from {found.before:.1%} to {share.figures.loss:.1%}" in share.sentence
    weaker = [each for each in found.best if each.change.weaker]
    assert all("Weaker: " in each.sentence for each in weaker)
    assert [each.freed for each in found.best] == sorted((each.freed for each in found.best), reverse=True)


def test_changes_that_protect_as_much_are_shown_first(tmp_path: Path) -> None:
    found = suggested_of(
        tmp_path, single_job(goal="general", model=lkc(L="2", K="8", C="0.4")), sample_rows(70)
    )
    as_strong = [each for each in found.best if not each.change.weaker]
    weaker = [each for each in found.best if each.change.weaker]
    assert as_strong
    assert weaker
    assert found.as_strong()[0] is as_strong[0]
    assert found.weaker()[0] is weaker[0]
    assert not any(each.change.weaker for each in found.as_strong())
    assert all(each.change.weaker for each in found.weaker())
    lines = found.lines
    assert lines[0] == "that keep K, L and C:"
    assert lines[1] == f"  {as_strong[0].sentence}"
    assert lines[lines.index("that protect less:") + 1] == f"  {weaker[0].sentence}"
    assert (len(found.as_strong()), len(found.weaker())) <= (3, 2)


def test_a_job_that_cannot_be_met(tmp_path: Path) -> None:
    fields = single_job(goal="general", model=lkc(L="2", K="2", C="0.1"))
    found = suggested_of(tmp_path, fields, sample_rows(70))
    assert found.before is None
    assert "already violates C for column surgery" in found.unmet
    assert [each.change.words for each in found.best] == ["`C: 1/5`"]
    assert "`C: 1/5` makes a table possible, with a mean loss of" in found.best[0].sentence


def test_a_joint_job_takes_no_share_of_rows(tmp_path: Path) -> None:
    found = suggested_of(
        tmp_path,
        joint_job(disclosure="sealed", leader=None, model=lkc(L="2", K="8", C="0.4")),
        sample_rows(70),
    )
    assert found.tried > 0
    assert not any("withhold" in each.change.words for each in found.best)


def test_kd_jobs_have_changes_of_kd(tmp_path: Path) -> None:
    fields = single_job(goal="general", model=lkc(L="all", K="10", C="0.6", method="kd"))
    found = suggested_of(tmp_path, fields, sample_rows(80))
    assert {each.change.words for each in found.best} <= {
        "`K: 8`",
        "`K: 5`",
        "`C: 7/10`",
        "no column job",
        "no column age",
    }
    assert found.best
    assert found.tried == 5
