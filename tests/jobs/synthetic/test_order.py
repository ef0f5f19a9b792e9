"""`order` of a synthetic job: drawn rows keep the order of columns, the report counts the mended rows."""

from __future__ import annotations

import csv
import json
import re
from copy import deepcopy
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.dp.settings import SYNTHETIC_TABLE
from jobs.errors import ConfigError
from jobs.loading import check_task, parse_job
from jobs.synthetic.report import many_mended
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.network import yaml_of
from tests.support.samples import single_job

STAY = {"admitted": {"min": "0", "max": "365", "step": "5"}, "left": {"min": "0", "max": "465", "step": "5"}}
COLUMNS: dict[str, Any] = {name: {"role": "qid", "numeric": grid} for name, grid in STAY.items()}
COLUMNS |= {"sex": {"role": "qid", "taxonomy": {"Any": ["M", "F"]}}}


def fields(order: object = None, columns: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    dp: dict[str, Any] = {"method": "synthetic", "epsilon": "2", "max_rows": "3000", **more}
    dp |= {} if order is None else {"order": order}
    return single_job(model={"dp": dp}, goal="general", columns=columns or COLUMNS)


def run(folder: Path, order: object = None, **more: str) -> Ran:
    days = [(i * 37 % 360, i * 37 % 360 + i % 9) for i in range(600)]
    rows = [{"admitted": str(a), "left": str(b), "sex": "MF"[i % 2]} for i, (a, b) in enumerate(days)]
    jobs.write_csv(folder / "table.csv", rows)
    (folder / "job.yaml").write_text(yaml_of(fields(order, **more)))
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    return ran


def n_broken(folder: Path) -> int:
    with (folder / "out" / SYNTHETIC_TABLE).open(newline="") as file:
        rows = [(row["admitted"], row["left"]) for row in csv.DictReader(file)]
    return sum(bool(a and b) and float(b) < float(a) for a, b in rows)


def test_no_drawn_row_ends_before_it_begins(tmp_path: Path) -> None:
    ran = run(tmp_path, ["admitted", "left"])
    assert n_broken(tmp_path) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (pair,) = report["order"]
    assert pair["columns"] == ["admitted", "left"]
    assert pair["mended_rows"] > 0
    assert f"Order: {pair['mended_rows']} drawn rows had left below admitted" in ran.out
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 0


def test_many_mended_rows_are_warned_of(tmp_path: Path) -> None:
    """An epsilon that measures no pair: the columns are drawn independently, and many rows have to be mended."""
    ran = run(tmp_path, ["admitted", "left"], edges="0")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (pair,) = report["order"]
    share = pair["mended_rows"] / report["rows"]
    assert share > 0.2
    words = f"{share:.0%} of the rows were mended to keep left from lying below admitted, because the pair was not"
    assert f"warning: {words} measured: " in ran.out
    assert words.replace("%", "\u00a0%") in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(("n", "says"), [(0, ""), (49, ""), (50, "5%"), (400, "40%")])
@pytest.mark.parametrize("edges", [[], [{"columns": ["left", "admitted"]}]])
def test_few_mended_rows_are_no_warning(n: int, says: str, edges: list[dict[str, Any]]) -> None:
    pair = {"columns": ["admitted", "left"], "mended_rows": n}
    found = many_mended({"rows": 1000, "edges": edges, "order": [pair]}, pair)
    assert found[: len(says)] == says
    assert bool(found) == bool(says)
    assert ("because the noise hides the order" in found) == (bool(says) and bool(edges))
    assert many_mended({"rows": 0, "edges": edges}, {**pair, "mended_rows": 0}) == ""


def test_without_the_key_rows_end_before_they_begin(tmp_path: Path) -> None:
    run(tmp_path)
    assert n_broken(tmp_path) > 0
    assert "order" not in json.loads((tmp_path / "out" / "report.json").read_text())


DATES: dict[str, Any] = {
    "left": {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-02-01", "step": "1mo", "form": "DD.MM.YYYY"}},
    "admitted": {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo", "time": "keep"}},
    "born": {"role": "qid", "dates": {"from": "1930-01-01", "to": "2000-01-01", "step": "10y"}},
}  # fmt: skip


def run_dates(folder: Path, order: object = None, **columns: Any) -> Ran:
    """Draw stays of two columns of dates, the later column first in the job, in different forms."""
    first = date(2024, 1, 1)
    rows = []
    for i in range(600):
        came = first + timedelta(days=i * 37 % 360)
        left = came + timedelta(days=i % 9)
        born = f"{1930 + i % 70}-05-05"
        day = "" if i % 50 == 0 else f"{came} 10:00:00"
        rows.append({"admitted": day, "left": f"{left:%d.%m.%Y}", "born": born})
    jobs.write_csv(folder / "table.csv", rows)
    (folder / "job.yaml").write_text(yaml_of(fields(order, {**DATES, **columns})))
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    return ran


def n_below(folder: Path, first: str, second: str) -> int:
    """Count the rows of a table with the second date before the first, row by row."""
    with (folder / "out" / SYNTHETIC_TABLE).open(newline="") as file:
        rows = [[in_iso(row[name][:10]) for name in (first, second)] for row in csv.DictReader(file)]
    return sum(bool(one and other) and other < one for one, other in rows)


def in_iso(text: str) -> str:
    return "-".join(text.split(".")[::-1])


def test_dates_without_an_order_are_counted(tmp_path: Path) -> None:
    ran = run_dates(tmp_path)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    found = {tuple(pair["columns"]): pair["rows_below"] for pair in report["unordered_dates"]}
    # If the noise hides the pair of the stays, chance decides which of the two orders is the rarer one.
    assert len(found) == 3
    assert {("born", "admitted"), ("born", "left")} < set(found)
    ((one, other),) = (pair for pair in found if "born" not in pair)
    assert {one, other} == {"admitted", "left"}
    assert found == {pair: n_below(tmp_path, *pair) for pair in found}
    assert found[one, other] > 0
    assert found["born", "left"] == 0
    says = f"{found[one, other]:,} drawn rows have {other} before {one}; if that is impossible, say `order: "
    assert f"Dates: {says}[{one}, {other}]`" in ran.out
    assert "Dates: 0 drawn rows have left before born." in ran.out
    page = (tmp_path / "out" / "report.html").read_text()
    red = re.findall(r'<div class="warning"><p>([^<]*) before', page)
    many = found[one, other] >= 0.05 * report["rows"]
    assert (f"{found[one, other]:,} drawn rows have {other}" in red) == many
    assert "0 drawn rows have left before born." in page
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 0
    report["unordered_dates"][0]["rows_below"] += 1
    (tmp_path / "out" / "report.json").write_text(json.dumps(report))
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 1


def test_ordered_dates_are_counted_as_mended(tmp_path: Path) -> None:
    run_dates(tmp_path, ["admitted", "left"], admitted=deepcopy(DATES["left"]))
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [pair["columns"] for pair in report["order"]] == [["admitted", "left"]]
    assert {tuple(pair["columns"]) for pair in report["unordered_dates"]} == {
        ("born", "left"),
        ("born", "admitted"),
    }


def test_a_false_number_of_mended_rows_is_found(tmp_path: Path) -> None:
    run(tmp_path, ["admitted", "left"])
    path = tmp_path / "out" / "report.json"
    report = json.loads(path.read_text())
    report["order"][0]["mended_rows"] += 1
    path.write_text(json.dumps(report))
    assert invoke("coordinator", "verify", tmp_path / "job.yaml", tmp_path / "out").code == 1


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (["admitted"], "name two columns or more, each once"),
        (["admitted", "admitted"], "name two columns or more, each once"),
        (["admitted", "sex"], "names 'sex': name columns with `numeric` or `dates`"),
        (["admitted", "discharged"], "names 'discharged'"),
    ],
)
def test_an_order_that_is_none(order: list[str], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_job(fields(order), "job.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "left",
    [{"numeric": {"min": "0", "max": "465", "step": "2.5"}}, {"numeric": {"min": "400", "max": "465", "step": "5"}},
     {"dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}}],
)  # fmt: skip
def test_columns_that_cannot_be_compared(left: dict[str, Any]) -> None:
    task = jobs.task_of(fields(["admitted", "left"], {**COLUMNS, "left": {"role": "qid", **left}}))
    with pytest.raises(Exception, match="admitted, left cannot be compared") as caught:
        check_task(task)
    assert getattr(caught.value, "error_id", "") == "job-invalid"


def test_two_columns_of_dates_without_an_order_have_a_note() -> None:
    dates = {"role": "qid", "dates": {"from": "2024-01-01", "to": "2025-01-01", "step": "1mo"}}
    task = jobs.task_of(fields(columns={"begins": dates, "ends": dates}))
    assert any("say `order: [begins, ends]`" in note for note in task.model.described(task).notes)
    task = jobs.task_of(fields(["begins", "ends"], {"begins": dates, "ends": dates}))
    assert task.model.described(task).notes == []
