"""Runs from Python make what the command line makes; DP on a table in memory is charged in a named ledger."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import polars as pl
import pytest

import jointcut as jc
from jobs.release.csv import REPORT
from tests.support.commands import Ran, invoke
from tests.support.visits import as_csv, columns, drawn_job, rows_of, shared_job, visits, visits_job


def ran(folder: Path, job: jc.Job, *options: str) -> Ran:
    """Run the job on the table by the command line, into `folder / "out"`."""
    as_csv(folder / "table.csv", visits())
    (folder / "job.yaml").write_text(job.to_yaml())
    return invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out", *options)


def public(folder: Path) -> dict[str, Any]:
    """Return a report without time and files."""
    report = json.loads((folder / REPORT).read_text())
    return {key: value for key, value in report.items() if key not in ("finished", "cost", "files")}


def test_a_release_is_that_of_the_command_line(tmp_path: Path) -> None:
    job = visits_job()
    said = ran(tmp_path, job)
    result = jc.anonymize(tmp_path / "table.csv", job, tmp_path / "python")
    assert result.folder == tmp_path / "python"
    assert rows_of(result.folder) == rows_of(tmp_path / "out")
    assert result.report == json.loads((tmp_path / "python" / REPORT).read_text())
    assert public(result.folder) == public(tmp_path / "out")
    assert sorted(path.name for path in result.folder.iterdir()) == sorted(
        path.name for path in (tmp_path / "out").iterdir()
    )
    for note in result.notes:
        assert note.partition("no finer: ")[2] in said.out or note in said.out + said.err


@pytest.mark.parametrize("form", ["job", "dict", "text", "path"])
def test_every_form_of_a_job_runs_with_its_own_table(form: str, tmp_path: Path) -> None:
    as_csv(tmp_path / "table.csv", visits())
    job = visits_job(data="table.csv", folder=tmp_path)
    (tmp_path / "job.yaml").write_text(job.to_yaml())
    given = {
        "job": job,
        "dict": {**job.to_dict(), "data": str(tmp_path / "table.csv")},
        "text": job.to_yaml().replace("table.csv", str(tmp_path / "table.csv")),
        "path": tmp_path / "job.yaml",
    }
    assert len(jc.anonymize(None, given[form]).table) == len(visits())


def test_a_result(tmp_path: Path) -> None:
    result = jc.anonymize(visits(), visits_job())
    table = result.table
    assert list(table) == list(columns())
    assert len(table) == result.to_arrow().num_rows == result.to_polars().height == len(visits())
    assert table["result"].value_counts().to_dict() == visits()["result"].value_counts().to_dict()
    assert result.to_polars().to_dict(as_series=False) == table.to_dict("list")
    assert result.tables == ("anonymized.csv",)
    assert result.report["job"] == "visits"
    assert result.page.startswith("<!DOCTYPE html>")
    assert result._repr_html_().startswith("<iframe srcdoc=")
    assert "<!DOCTYPE" not in result._repr_html_()
    assert len(result.digest) == 64
    assert repr(result) == f"Result(job='visits', tables=['anonymized.csv'], folder={str(result.folder)!r})"
    kept = result.save(tmp_path / "kept")
    assert rows_of(kept) == rows_of(result.folder)
    assert result.owner_page is not None
    assert not (kept / "owner-report.html").exists()  # the owner's alone
    assert (result.folder / "owner-report.html").stat().st_mode & 0o777 == 0o600
    assert jc.verify(kept, visits_job(), result.digest).fields["agreed"] is True
    with pytest.raises(jc.Error) as exists:
        result.save(tmp_path / "kept")
    assert exists.value.id == "output-exists"
    with pytest.raises(jc.Error, match=r"name one of anonymized\.csv"):
        result.to_arrow("../secret.csv")


def test_polars_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    result = jc.anonymize(visits(), visits_job())
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(jc.Error) as missing:
        result.to_polars()
    assert (missing.value.id, missing.value.remedy) == ("extra-missing", "pip install 'jointcut[polars]'")


def test_a_temporary_release_lives_as_long_as_the_result() -> None:
    result = jc.anonymize(visits(), visits_job())
    folder = result.folder
    assert folder.is_dir()
    del result
    assert not folder.parent.exists()


def test_a_result_is_read_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = jc.anonymize(visits(), visits_job(), "out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(result.table) == len(visits())
    assert rows_of(result.save("kept")) == rows_of(tmp_path / "out")


def test_a_result_whose_folder_is_gone_says_so(tmp_path: Path) -> None:
    result = jc.anonymize(visits(), visits_job(), tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    uses: list[Callable[[], object]] = [
        result.to_pandas,
        result.to_arrow,
        lambda: result.report,
        lambda: result.page,
        lambda: result.digest,
        lambda: result.save(tmp_path / "kept"),
    ]
    for use in uses:
        with pytest.raises(jc.Error, match="the folder of the release is gone") as gone:
            use()
        assert gone.value.id == "file-missing"
        assert str(tmp_path / "out") in gone.value.private
    assert not (tmp_path / "kept").exists()


def test_a_changed_release_is_refused() -> None:
    result = jc.anonymize(visits(), visits_job())
    path = result.folder / "anonymized.csv"
    path.write_text(path.read_text().replace("well", "ill", 1))
    with pytest.raises(jc.Error) as refused:
        jc.verify(result, visits_job())
    assert refused.value.id == "verification-failed"
    sound = jc.anonymize(visits(), visits_job())
    assert str(jc.verify(sound, visits_job())).startswith(f"{sound.folder}/anonymized.csv: 60 rows meet")


def test_dp_on_a_table_in_memory_needs_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(jc.Error) as refused:
        jc.anonymize(visits(), drawn_job())
    assert refused.value.id == "budget-ledger"
    assert "ledger=" in refused.value.remedy
    ledger = tmp_path / "visits.privacy.sqlite"
    result = jc.anonymize(visits(), drawn_job(), ledger=ledger, budget=8)
    assert result.tables == ("synthetic.csv", "marginals.csv")
    assert result.table["age"].dtype.kind in "if"
    assert any("epsilon 5 charged, by 1 run" in note for note in result.notes)
    with pytest.warns(UserWarning, match="an earlier run, again"):
        again = jc.anonymize(visits().head(9), drawn_job(), ledger=ledger, budget=8)
    assert any("the release of an earlier run, again" in note for note in again.notes)
    assert again.table.equals(result.table)
    with pytest.raises(jc.Error) as spent:
        jc.anonymize(pl.DataFrame(visits()), drawn_job().with_(name="another"), ledger=ledger, budget="8")
    assert (spent.value.id, spent.value.exit_code) == ("budget-exceeded", 5)


def test_labels_of_marginals_are_texts(tmp_path: Path) -> None:
    """Codes such as 0101 keep their zeros; counts are numbers, though the job has a column `count`."""
    codes, classes = ["0101", "0102", "1E5"], ["00", "01"]
    table = pd.DataFrame({"count": codes * 40, "died": classes * 60})
    job = jc.Job(
        name="codes",
        model=jc.Synthetic(epsilon=5),
        columns={
            "count": jc.Column(role="qid", taxonomy={"any": codes}, missing="never"),
            "died": jc.Column(role="class", domain=classes),
        },
    )
    marginals = jc.anonymize(table, job, ledger=tmp_path / "ledger").to_pandas("marginals.csv")
    assert marginals["value"].unique().tolist() == codes
    assert marginals["class"].unique().tolist() == ["", *classes]
    assert {marginals[each].dtype.kind for each in ("table", "count")} == {"i"}
    assert marginals["scale"].dtype.kind == "f"


def test_the_ledger_beside_a_table_counts_the_table_in_memory_too(tmp_path: Path) -> None:
    """Otherwise a reader of the CSV would have a second budget for the same people."""
    table = as_csv(tmp_path / "visits.csv", visits())
    jc.anonymize(table, drawn_job(), budget=8)
    ledger = tmp_path / "visits.csv.privacy.sqlite"
    assert ledger.is_file()
    with pytest.raises(jc.Error) as spent:
        jc.anonymize(visits(), drawn_job().with_(name="another"), ledger=ledger, budget=8)
    assert spent.value.id == "budget-exceeded"


def test_the_budget_is_that_of_the_command(tmp_path: Path) -> None:
    table = as_csv(tmp_path / "visits.csv", visits())
    ledger = tmp_path / "visits.csv.privacy.sqlite"
    job = drawn_job(data=table.name, folder=tmp_path)
    assert (jc.budget(job).charged, jc.budget(job).runs) == (0, 0)
    assert not ledger.exists()
    jc.anonymize(None, job)
    jc.anonymize(visits(), job.with_(name="another", model={"dp": {"epsilon": "1/3"}}), ledger=ledger)
    (tmp_path / "job.yaml").write_text(job.to_yaml())
    for data, kept in ((None, None), (table, None), (visits(), ledger)):
        spent = jc.budget(job, data, ledger=kept)
        assert (spent.charged, spent.runs) == (Fraction(16, 3), 2)
        assert f"{spent}\n" == invoke("coordinator", "budget", tmp_path / "job.yaml").out
    assert repr(spent) == "Budget(charged=Fraction(16, 3), runs=2)"


@pytest.mark.parametrize(
    ("job", "data", "id", "words"),
    [
        (drawn_job(), visits(), "budget-ledger", "no place for a privacy ledger, so no ledger is found"),
        (visits_job(), visits(), "budget-ledger", "no place for a privacy ledger, so no ledger is found"),
        (shared_job(), visits(), "usage", "each holder has a ledger"),
    ],
)
def test_a_budget_without_a_ledger_is_told(job: jc.Job, data: Any, id: str, words: str) -> None:
    with pytest.raises(jc.Error) as refused:
        jc.budget(job, data)
    assert refused.value.id == id
    assert words in str(refused.value)


def test_an_lkc_release_is_listed_in_a_named_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "visits.csv.privacy.sqlite"
    table = as_csv(tmp_path / "visits.csv", visits())
    result = jc.anonymize(visits(), visits_job(), ledger=ledger)
    (tmp_path / "job.yaml").write_text(visits_job(data=table.name).to_yaml())
    listed = invoke("coordinator", "budget", tmp_path / "job.yaml")
    assert result.digest[:8] in listed.out
    jc.anonymize(visits(), visits_job())
    assert sorted(path.name for path in tmp_path.iterdir() if path.name not in ("job.yaml", table.name)) == [
        ledger.name,
        f"{ledger.name}.count",
    ]


@pytest.mark.parametrize(
    ("wrong", "id", "words"),
    [
        ({"job": shared_job()}, "usage", "the job has several holders"),
        ({"data": "no-such.csv"}, "file-missing", "no-such.csv is not a file"),
        ({"data": None}, "usage", "no table is given, and the job names none"),
        ({"as_records": True}, "usage", "is for `method: diffgen`"),
        ({"budget": -1}, "usage", "budget=-1: write a number above 0"),
        ({"budget": 2}, "usage", "budget is for jobs with differential privacy"),
        ({"ledger": "no-such-folder/l.sqlite"}, "budget-ledger", "there is no folder no-such-folder"),
        ({"ledger": "."}, "budget-ledger", ". is a folder"),
        ({"out": "/"}, "output-exists", "/ exists"),
        (
            {"job": drawn_job().with_(columns={"sex": {"from_data": True}})},
            "job-invalid",
            "from_data",
        ),
        ({"job": visits_job().with_(model={"lkc": {"K": 1000}})}, "requirement-unmet", "K"),
    ],
)
def test_wrong_calls_are_told(wrong: dict[str, Any], id: str, words: str) -> None:
    with pytest.raises(jc.Error) as refused:
        jc.anonymize(**{"data": visits(), "job": visits_job(), **wrong})
    assert refused.value.id == id
    assert words in str(refused.value)


def test_rows_that_were_left_out_are_told() -> None:
    table = pd.DataFrame({"sex": ["f", "m"] * 20 + ["", ""]})
    job = jc.Job(
        name="left",
        model=jc.Lkc(L=1, K=2),
        goal="general",
        columns={"sex": jc.Column(role="qid", taxonomy={"*": ["f", "m"]}, missing="drop")},
    )
    result = jc.anonymize(table, job)
    assert len(result.table) == 40
    assert "42 rows read, 2 left out, 40 used" in result.notes
    assert not any("left out" in note for note in jc.anonymize(table[:40], job).notes)


@pytest.mark.parametrize("data", [visits()["sex"], pl.DataFrame(visits())["sex"]], ids=["pandas", "polars"])
def test_a_single_column_is_no_table(data: Any) -> None:
    with pytest.raises(jc.Error, match="a Series is a single column, not a table") as refused:
        jc.anonymize(data, visits_job())
    assert refused.value.id == "usage"


def test_a_client_without_a_configuration_is_told(tmp_path: Path) -> None:
    with pytest.raises(jc.Error, match=r"there is no configuration .*nope.yaml") as refused:
        jc.Client(tmp_path / "nope.yaml")
    assert refused.value.id == "file-missing"
    assert "jointcut.Client(" in refused.value.remedy
    assert "--config" not in refused.value.remedy


def test_an_error_of_the_caller_is_no_error_of_ours() -> None:
    with pytest.raises(TypeError):
        jc.anonymize(visits(), visits_job(), colour="red")  # type: ignore[call-arg]


def test_parties_in_one_process() -> None:
    """In a running event loop, as in a notebook; and the tables of all parties together give the same values."""
    tables = {"north": visits().head(40), "south": pl.DataFrame(visits().tail(20))}

    async def cell() -> jc.Result:
        return jc.simulate(shared_job(), tables, in_process=True)

    result = asyncio.run(cell())
    assert rows_of(result.folder) == rows_of(jc.simulate(shared_job(), tables, in_process=True).folder)
    assert jc.verify(result, shared_job()).fields["signed"] is None
    with pytest.raises(jc.Error, match="no table for south"):
        jc.simulate(shared_job(), {"north": visits()})
    with pytest.raises(jc.Error, match="the job has no party east"):
        jc.simulate(shared_job(), {"north": visits(), "south": visits(), "east": visits()})
    with pytest.raises(jc.Error, match="the job has a single holder"):
        jc.simulate(visits_job(), {})


def test_runs_in_threads() -> None:
    found: dict[int, jc.Result] = {}

    def run(number: int) -> None:
        found[number] = jc.anonymize(visits(), visits_job(), progress=False)

    threads = [Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(rows_of(result.folder)) for result in found.values()}) == 1
    assert len(found) == len({result.folder for result in found.values()}) == 4


def test_progress_is_drawn_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    jc.anonymize(visits(), visits_job())
    assert capsys.readouterr() == ("", "")
    jc.anonymize(visits(), visits_job(), progress=True)
    drawn = capsys.readouterr().err
    assert "\rvisits · one holder · anonymize" in drawn
    assert drawn.endswith(" \r")
    assert "\n" not in drawn


@pytest.mark.parametrize("progress", [None, True])
def test_a_process_without_a_console_runs(progress: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert len(jc.anonymize(visits(), visits_job(), progress=progress).table) > 0


def test_a_draft_runs(tmp_path: Path) -> None:
    table = visits(400)
    for data in (table, as_csv(tmp_path / "table.csv", table)):
        draft = jc.draft(data, sensitive="result", name="drafted")
        assert draft.job.settings.names("sensitive") == ("result",)
        assert "north" not in repr(draft)
        assert any("result" in note for note in draft.notes)
        assert draft.yaml.startswith("# A draft")
        assert len(jc.anonymize(data, draft.job).table) > 300
    assert jc.draft(table, class_="result", id=["day"]).job.settings.names("class", "id") == ("day", "result")
    with pytest.raises(jc.Error, match="the table has no such column"):
        jc.draft(table, id="person")
    with pytest.raises(jc.Error, match="model='xx'"):
        jc.draft(table, model="xx")  # type: ignore[arg-type]
    with pytest.raises(jc.Error, match=r"name='a b/c' cannot name a job.*write a name of letters, digits"):
        jc.draft(table, name="a b/c")
    with pytest.raises(jc.Error, match="name='' cannot name a job"):
        jc.draft(table, name="")
    with pytest.raises(jc.Error, match="sensitive=3 names no column"):
        jc.draft(table, sensitive=[3])  # type: ignore[list-item]
    with pytest.raises(jc.Error, match="id=3 names no column"):
        jc.draft(table, id=3)  # type: ignore[arg-type]
    plain = jc.draft(table, id=None, sensitive=None, class_=None)
    assert plain.yaml == jc.draft(table).yaml
    assert any("name a column by `sensitive='COLUMN'`" in note for note in plain.notes)
    assert jc.draft(pl.DataFrame(table), model="dp").job.settings.model.name == "synthetic"


def test_explored_points_are_those_of_the_command(tmp_path: Path) -> None:
    as_csv(tmp_path / "table.csv", visits())
    (tmp_path / "job.yaml").write_text(visits_job().to_yaml())
    command = (
        "explore",
        tmp_path / "job.yaml",
        "--K",
        "2,5",
        "--L",
        "1,all",
        "--suggest",
        "--format",
        "json",
    )
    fields = json.loads(invoke("coordinator", *command).out)
    found = jc.explore(visits_job(), visits(), K=[2, 5], L=[1, "all"], suggest=True)
    assert [point.fields for point in found.points] == fields["points"]
    assert found.suggested is not None
    assert found.suggested.tried == fields["suggested"]["tried"]
    assert found.to_frame()["K"].tolist() == [2, 5, 2, 5]
    assert found.picture == found._repr_svg_()
    assert found.picture.startswith("<svg")
    assert repr(found) == "Explored(name='visits')"
    cases: list[dict[str, Any]] = [{"K": 0}, {"K": []}, {"L": "some"}, {"C": 2}, {"goal": "profit"}]
    for wrong in cases:
        with pytest.raises(jc.Error) as refused:
            jc.explore(visits_job(), visits(), **wrong)
        assert refused.value.id == "usage"
        assert next(iter(wrong)) in refused.value.message
    with pytest.raises(jc.Error, match="explore is for a single table"):
        jc.explore(shared_job())
    assert jc.explore(shared_job(), visits()).points[0].figures is not None


def test_an_evaluation_is_that_of_the_command(tmp_path: Path) -> None:
    as_csv(tmp_path / "table.csv", visits(200))
    (tmp_path / "job.yaml").write_text(visits_job().to_yaml())
    said = json.loads(
        invoke("coordinator", "evaluate", tmp_path / "job.yaml", "--splits", "1", "--format", "json").out
    )
    found = jc.evaluate(visits_job(), visits(200), splits=1)
    assert found.fields == said
    assert str(found).startswith("visits: ")
    assert repr(found).startswith("Evaluated(ways=['")
    assert not any(letter.isdigit() for letter in repr(found)), "no figure"
    assert isinstance(found.to_frame(), pd.DataFrame)
    for wrong in ({"splits": 0}, {"scores": ["none"]}, {"seed": -1}, {"holdout": 2}):
        with pytest.raises(jc.Error) as refused:
            jc.evaluate(visits_job(), visits(), **wrong)
        assert refused.value.id == "usage"
