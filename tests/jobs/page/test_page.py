"""`report.html` of every model: a function of the files beside it, in a real Chromium without a fault of access."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome

from jobs.dp.report import half_width
from jobs.loading import load_task
from jobs.page.learned import words_of
from jobs.page.page import PAGE, page_of, page_of_folder
from jobs.page.parts import about_joined, in_few, percent
from jobs.promises import weakness
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, release_digest
from tests.jobs.page.releases import EVIL, JOBS, table
from tests.support import jobs
from tests.support.browser import (
    expect_access,
    expect_no_table_is_cut_in_print,
    expect_no_table_scrolls,
    printed_page,
)
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader


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
    (digest,) = re.findall(r"digest of the release: ([0-9a-f]{64})", checked.out)
    assert f"Digest of the release: <code>{digest}</code>" in page


@pytest.mark.parametrize("name", JOBS)
def test_no_value_becomes_an_element(releases: Mapping[str, Path], name: str) -> None:
    page, _ = read(releases[name])
    found = Reader(page)
    assert not {"script", "img"} & set(found.tags)
    assert not any(attribute.startswith("on") or attribute == "style" for attribute in found.names)
    shown = name not in ("classified", "vertical")  # the column is a single value
    assert any(EVIL in text for text in found.texts) == shown


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
        meaning = report["withheld"]["meaning"].replace("`", "<code>", 1).replace("`", "</code>", 1)
        assert meaning in page


@pytest.mark.parametrize(
    ("name", "aim", "earlier"),
    [
        (
            "single",
            "for general use",
            "do not count: the promises hold for this table alone. Releases are listed in",
        ),
        ("classified", "to predict died", "<code>coordinator budget</code>"),
        (
            "joint",
            "for general use",
            "count only for a party whose policy sets a least number of its own records",
        ),
        ("vertical", "to predict died", "do not count: the promises hold for this table alone"),
        ("sequences", "to study sequences", "do not count"),
        ("dp", "to predict died", "count: the ε of all adds up. The sum stands in the holder's ledger"),
        ("synthetic", "to predict died", "count: the ε of all adds up"),
    ],
)
def test_the_page_says_its_aim_and_if_earlier_releases_count(
    releases: Mapping[str, Path], name: str, aim: str, earlier: str
) -> None:
    page, _ = read(releases[name])
    assert f"The table is made {aim}." in page
    assert re.search(f"<p>[^\n]*?Earlier releases of the same data [^\n]*?{re.escape(earlier)}", page)


def test_a_release_that_is_given_again_says_so(releases: Mapping[str, Path]) -> None:
    folder = releases["dp"] / "out"
    task, (_, report) = load_task(releases["dp"] / "job.yaml"), read(releases["dp"])
    page = page_of(task, report | {"repeated": True}, (), release_digest((folder / SUMS).read_bytes()))
    assert "This is the release of an earlier run, given again: nothing more was charged." in page


def test_what_parties_learned_is_on_the_page(releases: Mapping[str, Path]) -> None:
    page, _ = read(releases["joint"])
    task = load_task(releases["joint"] / "job.yaml")
    text = " ".join(" ".join(Reader(page).texts).split())
    for each in task.reveals:
        assert words_of(task, each) in text
    alone, _ = read(releases["single"])
    assert "Nobody else took part." in alone


@pytest.mark.parametrize("name", ["single", "kd", "anatomy", "joint", "vertical"])
def test_the_page_says_what_the_table_does_not_promise(releases: Mapping[str, Path], name: str) -> None:
    page, _ = read(releases[name])
    text = " ".join(" ".join(Reader(page).texts).split())
    promised, left_out = text.split("What the table does not promise")
    assert "No reader outside the holders who knows" in promised or name not in ("joint", "vertical")
    assert ("can subtract its own rows" in left_out) == (name == "joint")


def test_noise_is_on_the_page(releases: Mapping[str, Path]) -> None:
    page, report = read(releases["dp"])
    text = " ".join(Reader(page).texts)
    assert f"e^ε = {2.718281828:.4g}" in text
    assert "Checked: every cell is listed once" in text
    drawn, report = read(releases["synthetic"])
    text = " ".join(Reader(drawn).texts)
    assert report["use"] in text
    assert "Two columns at a time" in text


def test_the_cells_to_trust_are_those_far_from_the_noise(releases: Mapping[str, Path]) -> None:
    """Verdicts, counted by hand from the released counts and the width that the rate of the noise has."""
    page, report = read(releases["dp"])
    with (releases["dp"] / "out" / "counts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counts = sorted((int(row["count"]) for row in rows), reverse=True)
    (rate,) = (
        float(Fraction(each["epsilon"])) for each in report["privacy"]["account"] if "cells" in each["for"]
    )
    width = half_width(rate, 1 - 0.95 ** (1 / len(rows)))
    text = " ".join(" ".join(Reader(page).texts).split())
    rough = sum(width < n < 10 * width for n in counts)
    assert f"Noise ± {half_width(rate):,} The error of at least 95 of 100 counts" in text
    assert f"Noise of the worst count ± {width:,} With a chance of at least 95 %" in text
    assert f"Records in all {sum(counts):,} ±" in text
    assert f"trust {sum(n >= 10 * width for n in counts)} " in text
    assert f"rough {rough} " in text
    assert f"noise {sum(n <= width for n in counts)} " in text
    best, n = max(rows, key=lambda row: int(row["count"])), counts[0]
    word = "noise" if n <= width else "rough" if n < 10 * width else "trust"
    told = f"{max(n - width, 0):,}–{max(n + width, 0):,}"
    assert f"age {best['age']}, town {best['town']}, died {best['died']} {word} {n} {told}" in text
    if others := counts[20:]:
        assert f"{len(others)} cell" in text
        assert f"with counts of {max(others)} or less, of which" in text
    else:
        assert "Not shown" not in text


@pytest.mark.parametrize("name", ["single", "joint"])
def test_a_changed_page_is_found(releases: Mapping[str, Path], tmp_path: Path, name: str) -> None:
    """No digest covers the page, so the release stays right. The last line warns, and the field tells programs."""
    folder = releases[name]
    out = tmp_path / "out"
    out.mkdir()
    for path in (folder / "out").iterdir():
        if path.is_file():
            (out / path.name).write_bytes(path.read_bytes())
    assert PAGE not in (out / SUMS).read_text()
    (out / PAGE).write_text((out / PAGE).read_text().replace("1 in ", "1 in 9"))
    checked = invoke("coordinator", "verify", folder / "job.yaml", out)
    assert checked.code == 0
    last = checked.out.strip().splitlines()[-1]
    assert last.startswith(
        f"WARNING: {out / PAGE} is not the page of this release: somebody changed the page."
    )
    assert "delete it" in last
    told = invoke("coordinator", "verify", folder / "job.yaml", out, "--format", "json")
    assert json.loads(told.out)["page"] is False
    (out / PAGE).unlink()
    assert "WARNING" not in invoke("coordinator", "verify", folder / "job.yaml", out).out


# ---- in a browser


EACH_TIME = ("anatomy", "joint", "dp")
"""One page with each part that others have, too: groups, blocks, what parties learned, noise."""


@pytest.mark.parametrize(
    "name",
    [name if name in EACH_TIME else pytest.param(name, marks=pytest.mark.more) for name in JOBS],
)
def test_nothing_hinders_access(releases: Mapping[str, Path], browser: Chrome, name: str) -> None:
    expect_access(browser, releases[name] / "out" / PAGE)


@pytest.mark.parametrize("name", JOBS)
def test_no_table_scrolls_on_a_narrow_screen(
    releases: Mapping[str, Path], browser: Chrome, name: str
) -> None:
    expect_no_table_scrolls(browser, releases[name] / "out" / PAGE)


def test_long_names_and_names_from_right_to_left(tmp_path: Path, browser: Chrome) -> None:
    """The pages are as wide as the window, print no wider than the sheet, and keep the order of names and values."""
    long = "x" * 200
    fields = {
        "version": "1",
        "name": "names",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"lkc": {"L": "all", "K": "5", "method": "kd"}},
        "columns": {
            "גיל": {"role": "qid", "numeric": {"min": "0", "max": "96", "step": "1"}},
            "מין": {"role": "qid", "taxonomy": {"*": ["M", "זכר"]}},
            long: {"role": "qid", "numeric": {"min": "0", "max": "96", "step": "1"}},
        },
    }
    rows = [{"גיל": "95" if i > 8 else "0", "מין": "M", long: "5"} for i in range(11)]  # nothing to cut
    jobs.write_csv(tmp_path / "t.csv", rows)
    ran = invoke("coordinator", "run", job_file(tmp_path, fields), "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    for name in (PAGE, OWN_PAGE):
        expect_access(browser, tmp_path / "out" / name)
        expect_no_table_scrolls(browser, tmp_path / "out" / name)
        expect_no_table_is_cut_in_print(browser, tmp_path / "out" / name)
    assert "<bdi>גיל</bdi> [0,96), <bdi>מין</bdi> M, xxx" in (tmp_path / "out" / PAGE).read_text()
    own = (tmp_path / "out" / OWN_PAGE).read_text()
    assert "of a person: <bdi>גיל</bdi>, <bdi>מין</bdi>, xxx" in own
    assert "<h3><bdi>מין</bdi></h3>" in own


@pytest.mark.parametrize("name", ["single", "dp"])
def test_the_page_prints_on_few_sheets(releases: Mapping[str, Path], browser: Chrome, name: str) -> None:
    """A PDF of A4 sheets: the text is whole, black on white, and no sheet is empty."""
    printed = printed_page(browser, releases[name] / "out" / PAGE)
    assert printed.startswith(b"%PDF")
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", printed)) <= 6


def test_columns_without_protection_are_a_warning(tmp_path: Path) -> None:
    """Names that are published as they are stand in a red box; a sensitive column with C=1 is called unbounded."""
    fields = {
        "version": "1",
        "name": "names",
        "partition": "single",
        "goal": "classification",
        "data": "t.csv",
        "model": {"lkc": {"L": "all", "K": "5", "C": "1"}},
        "columns": {
            "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "50"}},
            "ill": {"role": "sensitive", "domain": ["flu", "HIV"]},
            "name": {"role": "plain", "publish_as_is": "true"},
            "grade": {"role": "class"},
        },
    }
    rows = [
        {
            "age": str(i),
            "ill": "HIV" if i < 50 else "flu",
            "name": f"person {i}" if i < 89 else "staff",
            "grade": "often" if i < 81 else f"rare {i % 2}",
        }
        for i in range(100)
    ]
    jobs.write_csv(tmp_path / "t.csv", rows)
    ran = invoke("coordinator", "run", job_file(tmp_path, fields), "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    page = (tmp_path / "out" / PAGE).read_text()
    top, warning, of_ill = re.findall(r'<div class="warning">(.*?)</div>', page)
    assert top == '<p>This page has 2 warnings, in: <a href="#risk">Risk</a>.</p>'
    assert page.index(top) < page.index("The table is made")
    assert "A reader who knows a column published unchanged may do better" in page
    assert "Nothing bounds inferences of ill" in of_ill
    assert "name is published unchanged, without protection" in warning
    assert "Sensitive: published as it is; no C below 1 bounds inferences." in page
    text = " ".join(" ".join(Reader(page).texts).split())
    assert "person" not in text.split("Columns")[1].split("Worth of")[0]
    assert "staff 11 % 89 values of fewer than 10 records 89 %" in text
    assert "often 81 % rare 1 10 % 1 value of fewer than 10 records 9 %" in text


def test_bars_that_join_values_say_so() -> None:
    ages = {f"[{year},{year + 1})": 3 for year in range(44)}
    assert len(in_few(ages, list(ages))) < 24
    assert about_joined(ages) == (
        "The table has 44 different values here, finer than the bars: a bar joins up to 3 neighbouring intervals."
    )
    towns = {f"town {n}": n for n in range(1, 31)}
    assert about_joined(towns) == (
        "The table has 30 different values here, finer than the bars: the rarest values have one bar."
    )
    few = {f"[{year},{year + 1})": 3 for year in range(24)}
    assert (len(in_few(few, list(few))), about_joined(few)) == (24, "")


def test_inference_of_a_reader_who_knows_all_columns_is_shown(tmp_path: Path) -> None:
    """L=1 bounds a reader of one column. The share in a group on both columns, counted by hand, is above C."""
    fields = {
        "version": "1",
        "name": "low",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"lkc": {"L": "1", "K": "4", "C": "1/2"}},
        "columns": {
            "sex": {"role": "qid", "taxonomy": {"*": ["f", "m"]}, "refine": "children"},
            "ward": {"role": "qid", "taxonomy": {"*": ["a", "b"]}, "refine": "children"},
            "ill": {"role": "sensitive", "domain": ["flu", "HIV"], "values": ["HIV"]},
        },
    }
    groups = {("f", "a"): "HHHf", ("f", "b"): "fffH", ("m", "a"): "fffH", ("m", "b"): "ffff"}
    rows = [
        {"sex": sex, "ward": ward, "ill": "HIV" if each == "H" else "flu"}
        for (sex, ward), found in groups.items()
        for each in found
    ]
    jobs.write_csv(tmp_path / "t.csv", rows)
    ran = invoke("coordinator", "run", job_file(tmp_path, fields), "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    text = " ".join(Reader((tmp_path / "out" / PAGE).read_text()).texts).replace("\u00a0", " ")
    assert "ill, L=1 K=4 50 %" in text
    assert "ill, all attributes 75 %" in text


def test_costs_of_parties_are_on_the_page(releases: Mapping[str, Path]) -> None:
    folder = releases["joint"]
    task, (_, report) = load_task(folder / "job.yaml"), read(folder)
    phases = [
        {"seconds": 1.25, "bytes_sent": 1000, "bytes_received": 20, "rounds": 3, "gates": 0},
        {"bytes_sent": 500, "bytes_received": 1, "rounds": 4, "gates": 7},
    ]
    parties = {
        "b": {"phases": {"read": phases[1]}, "links": {}},
        "a": {"phases": dict(zip("xy", phases, strict=True)), "links": {}},
    }
    cost = {"seconds": {"run": 2.0, "read": 0.5}, "parties": parties}
    digest = release_digest((folder / "out" / SUMS).read_bytes())
    text = " ".join(" ".join(Reader(page_of(task, report | {"cost": cost}, (), digest)).texts).split())
    assert "The run took 2.5 s." in text
    assert (
        "party run data gates a 1.2 s, 7 rounds 1.5 kB sent, 21 B received 7 b 4 rounds 500 B sent, 1 B received 7"
        in text
    )
    assert "does not tell how long the run took" in read(releases["synthetic"])[0]


def test_groups_of_a_record_each_and_columns_that_tell_nobody_apart(tmp_path: Path) -> None:
    """One group is no plural, and an unprotected column without a rare value is no warning."""
    fields = {
        "version": "1",
        "name": "one",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"lkc": {"L": "all", "K": "30"}},
        "columns": {
            "sex": {"role": "qid", "taxonomy": {"*": ["f", "m"]}},
            "year": {"role": "plain"},
        },
    }
    jobs.write_csv(tmp_path / "t.csv", [{"sex": "fm"[i % 2], "year": str(i % 3)} for i in range(42)])
    ran = invoke("coordinator", "run", job_file(tmp_path, fields), "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    page = (tmp_path / "out" / PAGE).read_text()
    assert "1 group among 42 records" in page
    assert "year is published unchanged, without protection: 3 different values" in page
    assert 'class="warning"' not in page


def test_figures_of_sequences_are_those_of_the_table(releases: Mapping[str, Path]) -> None:
    """The risks of whole sequences, counted by hand from the released lines."""
    page, _ = read(releases["sequences"])
    with (releases["sequences"] / "out" / "anonymized.csv").open(newline="") as file:
        wholes = [row["town"] for row in csv.DictReader(file)]
    sizes = [wholes.count(whole) for whole in wholes]
    n = len(wholes)
    text = " ".join(" ".join(Reader(page).texts).split())
    assert f"Prosecutor risk, whole sequence {shown(1 / min(sizes))} " in text
    groups = len(set(wholes))
    assert f"{groups} group{'s' if groups > 1 else ''} among {n} records" in text
    below = sum(size < 5 for size in sizes)
    assert f"Unique records, whole sequence {shown(sizes.count(1) / n)} " in text
    assert f"Records below K=5, whole sequence {shown(below / n)} " in text
    values = [value for whole in wholes for value in whole.split(";") if value]
    for value in set(values):
        assert f"{value} {shown(values.count(value) / len(values))}" in text
    assert "A smaller K:" in text
    assert "Group The records that agree on all quasi-identifiers, or in the whole sequence. " in text


def shown(share: float) -> str:
    return percent(share).replace("\u00a0", " ")


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("name", ["single", "kd", "joint", "sequences"])
def test_a_weak_k_is_a_warning_and_the_check_no_approval(
    releases: Mapping[str, Path], tmp_path: Path, name: str, k: int
) -> None:
    """The warning stands above the check, and the check says what it is not."""
    text = (releases[name] / "job.yaml").read_text()
    (tmp_path / "job.yaml").write_text(re.sub(r"""(["']?K["']?: ["']?)\d+""", rf"\g<1>{k}", text))
    task, (_, report) = load_task(tmp_path / "job.yaml"), read(releases[name])
    page = page_of_folder(task, releases[name] / "out")
    promised = page.partition("What the table promises")[2].partition("</section>")[0]
    above, _, behind = promised.partition("Checked: ")
    assert (
        "K=2 is weak: a reader may find the record of a person with a chance of up to 1 in 2" in above
    ) == (k == 2)
    assert "not that the job asks for enough" in behind
    assert 'class="warning"' not in behind
    for lines in (task.model.shown(task, report).lines, task.model.described(task).notes):
        assert any(line.startswith("warning: K=2 is weak") for line in lines) == (k == 2)


@pytest.mark.parametrize("epsilon", ["10", "20"])
@pytest.mark.parametrize("name", ["dp", "synthetic"])
def test_a_large_epsilon_is_a_warning(tmp_path: Path, name: str, epsilon: str) -> None:
    """On the page, on the console, and for the owners who approve the job."""
    job = JOBS[name]
    accepted = {"epsilon": epsilon, "accept_large_epsilon": "true"}
    fields = {"version": "1", "name": name, "partition": "single", "data": "t.csv", **job}
    fields["model"] = {"dp": {**job["model"]["dp"], **accepted}}
    jobs.write_csv(tmp_path / "t.csv", table())
    ran = invoke("coordinator", "run", job_file(tmp_path, fields), "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    words = (
        f"ε = {epsilon} protects very little, so the job had to accept it (`accept_large_epsilon`): the release may "
        f"be {math.exp(20):,.0f} times as likely with one record as without"
    )
    page, _ = read(tmp_path)
    promised = page.partition("What the table promises")[2].partition("</section>")[0]
    above = promised.partition("Checked: ")[0]
    is_weak = epsilon == "20"
    assert (words.replace("`accept_large_epsilon`", "<code>accept_large_epsilon</code>") in above) == is_weak
    assert ('<a href="#what-the-table-promises">' in page) == is_weak
    assert (f"warning: {words}" in ran.out) == is_weak
    notes = load_task(tmp_path / "job.yaml").model.described(load_task(tmp_path / "job.yaml")).notes
    assert any(note.startswith(f"warning: {words}") for note in notes) == is_weak


@pytest.mark.parametrize(
    ("least", "said"), [([1], "for certain"), ([4], "of up to 1 in 4"), ([1, 3, 20], "of up to 1 in 3")]
)
def test_small_groups_are_weak(least: list[int], said: str) -> None:
    (words,) = weakness(least)
    assert said in words
    assert weakness([5]) == weakness([1, 5]) == []
