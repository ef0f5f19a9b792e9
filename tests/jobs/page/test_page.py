"""`report.html` of every model: a function of the files beside it, in a real Chromium without a fault of access."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from jobs.loading import load_task
from jobs.page.page import PAGE, page_of_folder
from tests.support import jobs
from tests.support.browser import chromium
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader

EVIL = "<img src=x onerror=alert(1)>"
QID = {
    "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}, "missing": "leaf"},
    "town": {"role": "qid", "suppress": ["Bonn", "Lyon", EVIL]},
}
ILL = {"role": "sensitive", "domain": ["flu", "cold", "HIV"], "values": ["HIV"], "C": "1/2"}
PARTIES = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")}
JOINT = {"partition": "horizontal", "parties": PARTIES, "disclosure": "sealed", "data": None}
TREE = {**QID, "town": {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon", EVIL]}}}
OF_LKC = {"L": "2", "K": "5", "C": "1/2"}
OF_DP = {
    name: {key: value for key, value in column.items() if key != "missing"} for name, column in TREE.items()
}
CLASS = {"died": {"role": "class", "domain": ["N", "Y"]}}
JOBS: Mapping[str, dict[str, Any]] = {
    "single": {"model": {"lkc": OF_LKC}, "columns": {**QID, "ill": ILL}},
    "withheld": {"model": {"lkc": {**OF_LKC, "withhold": "1/20"}}, "columns": {**QID, "ill": ILL}},
    "kd": {"model": {"lkc": {**OF_LKC, "L": "all", "method": "kd"}}, "columns": {**TREE, "ill": ILL}},
    "anatomy": {
        "model": {"lkc": {**OF_LKC, "L": "all", "release": "anatomy"}},
        "columns": {**QID, "ill": ILL},
    },
    "joint": {"model": {"lkc": OF_LKC}, "columns": {**QID, "ill": ILL}, **JOINT},
    "dp": {
        "model": {"dp": {"epsilon": "1", "specializations": "3"}},
        "columns": {**OF_DP, **CLASS},
        "goal": "classification",
    },
    "synthetic": {
        "model": {"dp": {"epsilon": "2", "method": "synthetic"}},
        "columns": {**OF_DP, **CLASS},
        "goal": "classification",
    },
}


def table() -> list[dict[str, str]]:
    rng = random.Random(9)  # noqa: S311
    return [
        {
            "age": "" if i % 20 == 0 else str(rng.randrange(100)),
            "town": rng.choice(["Bonn", "Lyon", "Lyon", EVIL]),
            "ill": rng.choice(["flu", "flu", "cold", "cold", "HIV"]),
            "died": rng.choice("NNY"),
        }
        for i in range(240)
    ]


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """A release of every model, by name; the job lies beside."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        whole = {
            "version": "1",
            "name": name,
            "partition": "single",
            "goal": "general",
            "data": "t.csv",
        } | JOBS[name]
        job = job_file(folder, {key: value for key, value in whole.items() if value is not None})
        rows = table()
        jobs.write_csv(folder / "t.csv", rows)
        if "parties" in whole:
            data = [
                f"--data={party}={jobs.write_csv(folder / f'{party}.csv', rows[place::3])}"
                for place, party in enumerate(PARTIES)
            ]
            ran = invoke("coordinator", "simulate", job, *data, "--in-process", "--out", folder / "out")
        else:
            ran = invoke("coordinator", "run", job, "--out", folder / "out")
        assert ran.code == 0, ran.err
        return folder

    class Made(dict[str, Path]):
        def __missing__(self, name: str) -> Path:
            return made(name)

    return Made()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def read(folder: Path) -> tuple[str, dict[str, Any]]:
    return (folder / "out" / PAGE).read_text(), json.loads((folder / "out" / "report.json").read_text())


@pytest.mark.parametrize("name", JOBS)
def test_the_page_follows_from_the_files_beside_it(releases: Mapping[str, Path], name: str) -> None:
    folder = releases[name]
    page, _ = read(folder)
    assert page == page_of_folder(load_task(folder / "job.yaml"), folder / "out")
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err
    assert f"{PAGE}: as job, report and table say" in checked.out


@pytest.mark.parametrize("name", JOBS)
def test_no_value_becomes_an_element(releases: Mapping[str, Path], name: str) -> None:
    page, _ = read(releases[name])
    found = Reader(page)
    assert not {"script", "img"} & set(found.tags)
    assert not any(attribute.startswith("on") or attribute == "style" for attribute in found.names)
    assert any(EVIL in text for text in found.texts)


@pytest.mark.parametrize("name", ["single", "withheld", "kd", "joint"])
def test_figures_are_those_of_the_table(releases: Mapping[str, Path], name: str) -> None:
    """The risks, counted by hand from the released rows."""
    page, report = read(releases[name])
    with (releases[name] / "out" / "anonymized.csv").open(newline="") as file:
        rows = [(row["age"], row["town"]) for row in csv.DictReader(file)]
    sizes = [rows.count(row) for row in rows]
    text = " ".join(Reader(page).texts).replace("\u00a0", " ")
    assert f"1 in {min(sizes):,}" in text
    assert f"{len(set(rows)):,} groups among {len(rows):,} records" in text
    assert f"{sizes.count(1):,} record" in text
    shares = {
        value: 100 * [row[1] for row in rows].count(value) / len(rows) for value in {row[1] for row in rows}
    }
    for value, share in shares.items():
        assert f"{value} {f'{share:.1f}'.removesuffix('.0')} %" in " ".join(text.split())
    if "withheld" in report:
        assert report["withheld"]["meaning"] in text


def test_what_parties_learned_is_on_the_page(releases: Mapping[str, Path]) -> None:
    page, report = read(releases["joint"])
    text = " ".join(Reader(page).texts)
    for each in report["revealed_by_design"]:
        assert each["name"] in text
    alone, _ = read(releases["single"])
    assert "Nobody else took part." in alone


def test_noise_is_on_the_page(releases: Mapping[str, Path]) -> None:
    page, report = read(releases["dp"])
    text = " ".join(Reader(page).texts)
    assert "Counts above the noise" in text
    assert f"e^ε = {2.718281828:.4g}" in text
    drawn, report = read(releases["synthetic"])
    text = " ".join(Reader(drawn).texts)
    assert report["use"] in text
    assert "Two columns at a time" in text


def test_a_changed_page_is_found(releases: Mapping[str, Path], tmp_path: Path) -> None:
    folder = releases["single"]
    out = tmp_path / "out"
    out.mkdir()
    for path in (folder / "out").iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    (out / PAGE).write_text((out / PAGE).read_text().replace("1 in ", "1 in 9"))
    checked = invoke("coordinator", "verify", folder / "job.yaml", out)
    assert checked.code == 0
    assert "somebody changed the page; do not read it" in checked.out
    (out / PAGE).unlink()
    assert invoke("coordinator", "verify", folder / "job.yaml", out).code == 0


# ---- in a browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["single", "joint", "dp", "synthetic"])
def test_nothing_hinders_access(
    releases: Mapping[str, Path], browser: Chrome, name: str, scheme: str
) -> None:
    """axe-core finds no violation; the page is as wide as the window, also a narrow one; the console is silent."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for width in (360, 1280):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get((releases[name] / "out" / PAGE).as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    browser.execute_script(files("axe_core_python").joinpath("axe.min.js").read_text())
    found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []
    assert len(found["passes"]) > 10
    assert browser.get_log("browser") == []
