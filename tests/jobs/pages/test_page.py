"""`report.html`: it says what the report says, escapes all of it, loads nothing, and is the same whoever makes it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import PartyError, json_object
from jobs.loading import load_task
from jobs.pages.page import PAGE, page_of, write_page
from jobs.pages.words import number, seconds, share, size
from jobs.release_csv import REPORT
from jobs.task import Task
from tests.support.commands import invoke
from tests.support.installing import ROOT

EXAMPLES = ROOT / "examples"
LKC = EXAMPLES / "transfusion" / "job.yaml"
_PARTIES = {
    "transfusion": ("hospital-a", "hospital-b", "hospital-c"),
    "wards": ("hospital-a", "hospital-b", "hospital-c"),
    "loan": ("loan-company", "bank"),
    "discharges": (),
}
RELEASES = (
    "transfusion/job",
    "loan/job",
    "discharges/job",
    "transfusion/dp",
    "discharges/synthetic",
    "wards/job",
)


class _Page(HTMLParser):
    """What a browser would see: text, tags, ids and what links point to."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "rect"):
            self._open.append(tag)
        named = dict(attrs)
        self.attributes |= set(named)
        self.ids += [value for value in [named.get("id")] if value]
        self.links += [value for key in ("href", "src") if (value := named.get(key))]

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module", params=RELEASES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, Path]:
    """A release of every kind: its task and its folder."""
    folder, job = request.param.split("/")
    return released(EXAMPLES / folder, job, tmp_path_factory.mktemp(f"{folder}-{job}"))


def released(folder: Path, job: str, into: Path) -> tuple[Task, Path]:
    tables = [f"--data={party}={folder / f'{party}.csv'}" for party in _PARTIES[folder.name]]
    path = folder / f"{job}.yaml"
    how = ["simulate", path, *tables, "--in-process"] if tables else ["run", path]
    ran = invoke("coordinator", *how, "--out", into / "out")
    assert ran.code == 0, ran.err
    return load_task(path), into / "out"


def report_in(out: Path) -> dict[str, Any]:
    return json_object((out / REPORT).read_bytes()) or {}


def test_every_release_has_a_page_that_its_report_makes(made: tuple[Task, Path]) -> None:
    task, out = made
    assert (out / PAGE).read_bytes() == page_of(task, report_in(out))


def test_a_page_is_whole_loads_nothing_and_runs_nothing(made: tuple[Task, Path]) -> None:
    page = _Page((made[1] / PAGE).read_bytes())
    assert not {"script", "iframe", "object", "img", "link", "form", "input"} & set(page.tags)
    assert not any(name.startswith("on") for name in page.attributes)
    assert len(set(page.ids)) == len(page.ids)
    assert {link.removeprefix("#") for link in page.links} == set(page.ids)
    assert all(link.startswith("#") for link in page.links)
    assert page.tags.count("h1") == 1
    assert (
        b"default-src &#39;none&#39;" in (made[1] / PAGE).read_bytes()
        or b"default-src 'none'" in (made[1] / PAGE).read_bytes()
    )


def test_a_page_names_every_column_and_what_was_asked(made: tuple[Task, Path]) -> None:
    task, out = made
    words = _Page((out / PAGE).read_bytes()).words
    assert task.model.requirement_words(task) in words
    for name in task.job.columns:
        assert name in words
    assert report_in(out)["job_sha256"] in words


def test_every_reveal_is_on_the_page(made: tuple[Task, Path]) -> None:
    task, out = made
    words = _Page((out / PAGE).read_bytes()).words
    assert all(" ".join(each.meaning.split()) in words for each in task.reveals)
    assert bool(task.reveals) == bool(task.job.roster)


@pytest.fixture(scope="module")
def lkc(tmp_path_factory: pytest.TempPathFactory) -> tuple[Task, dict[str, Any]]:
    task, out = released(LKC.parent, "job", tmp_path_factory.mktemp("lkc"))
    return task, report_in(out)


def test_shares_of_values_are_those_of_the_table(made: tuple[Task, Path]) -> None:
    """Each published value of a column that has several stands beside its number of records."""
    report = report_in(made[1])
    if "published" not in report:
        assert made[0].model.name != "lkc"
        return
    words = _Page((made[1] / PAGE).read_bytes()).words
    several = [found for found in report["published"].values() if 1 < found["values"] <= 30]
    assert several
    for found in several:
        for value, n in found["most_frequent"].items():
            assert f"{' '.join(value.split())} {number(n)} ({share(n / report['rows'])})" in words


def test_what_a_report_says_is_text(lkc: tuple[Task, dict[str, Any]]) -> None:
    task, report = lkc
    evil = "<script>alert('x')</script><b a=\"1\">&amp;"
    told = json.loads(json.dumps(report).replace('"Any"', json.dumps(evil)))
    told["notes"] = [evil]
    page = _Page(page_of(task, told))
    assert "script" not in page.tags
    assert "b" not in page.tags
    assert evil in page.words


def _without(report: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name != key}


@pytest.mark.parametrize(
    "key", ["rows", "published", "risk", "requirements", "sensitive", "metrics", "verified"]
)
def test_a_report_of_another_shape_makes_no_page(lkc: tuple[Task, dict[str, Any]], key: str) -> None:
    task, report = lkc
    for spoiled in (_without(report, key), {**report, key: 7} if key != "rows" else {**report, key: 0}):
        if key == "verified" and key in spoiled:
            continue  # any text is one
        with pytest.raises(PartyError, match="does not say what reports of such jobs do"):
            page_of(task, spoiled)


def test_a_page_that_was_changed_fails_verification(tmp_path: Path) -> None:
    job = EXAMPLES / "discharges" / "job.yaml"
    _, out = released(job.parent, "job", tmp_path)
    assert json.loads(invoke("coordinator", "verify", job, out, "--format", "json").out)["page"] is True
    page = (out / PAGE).read_bytes()
    (out / PAGE).write_bytes(page.replace(b"1,500", b"1,501"))
    ran = invoke("coordinator", "verify", job, out, "--format", "json")
    assert ran.problem["error"] == "verification-failed"
    assert f"is not the page that {REPORT} makes" in ran.problem["message"]
    (out / PAGE).unlink()
    assert "page" not in json.loads(invoke("coordinator", "verify", job, out, "--format", "json").out)


def test_a_page_of_another_version_is_not_compared(tmp_path: Path) -> None:
    from jobs.sums import write_sums

    job = EXAMPLES / "discharges" / "job.yaml"
    _, out = released(job.parent, "job", tmp_path)
    report = report_in(out)
    report["versions"]["jointcut"] = "0.0.1"
    (out / REPORT).write_text(json.dumps(report))
    write_sums(out, ("anonymized.csv", REPORT))
    checked = invoke("coordinator", "verify", job, out, "--format", "json")
    assert json.loads(checked.out)["page"] is None
    write_page(load_task(job), out)
    assert json.loads(invoke("coordinator", "verify", job, out, "--format", "json").out)["page"] is True


def test_numbers_in_words() -> None:
    assert [share(x) for x in (0, 0.0004, 0.05, 0.123, 0.9999, 1)] == [
        "0 %",
        "under 0.1 %",
        "5 %",
        "12.3 %",
        "over 99.9 %",
        "100 %",
    ]
    assert [number(x) for x in (1234567, 0.123456, True, "a")] == ["1,234,567", "0.1235", "True", "a"]
    assert [seconds(x) for x in (0.04, 59.9, 90)] == ["0.0 s", "59.9 s", "1.5 min"]
    assert [size(x) for x in (999, 1000, 2_500_000, 3_000_000_000)] == [
        "999 bytes",
        "1.0 kB",
        "2.5 MB",
        "3.0 GB",
    ]


def test_bars_are_as_long_as_shares(lkc: tuple[Task, dict[str, Any]]) -> None:
    task, report = lkc
    widths = [float(found) for found in re.findall(rb'<rect width="([0-9.]+)"', page_of(task, report))]
    n, rows = report["published"]["age"]["most_frequent"].popitem()[1], report["rows"]
    assert round(1000 * n / rows, 1) in widths
    assert all(0 <= width <= 1000 for width in widths)
