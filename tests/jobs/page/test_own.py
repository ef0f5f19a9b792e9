"""`owner-report.html`: for the owner alone, with figures counted again by hand from the raw rows."""

from __future__ import annotations

import csv
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

from anonymize.release import LabelledColumn
from jobs.dp.own_page import distance_of_sums
from jobs.page import parts as shares
from jobs.page.own import Aligned, aligned
from jobs.page.page import PAGE
from jobs.release.folder import OWN, OWN_PAGE
from tests.jobs.page.releases import EVIL, JOBS, PARTIES
from tests.support import jobs
from tests.support.browser import expect_access, expect_no_table_scrolls
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader

SINGLE = [name for name, job in JOBS.items() if "parties" not in job]


def text_of(path: Path) -> str:
    """Return the text of a page with plain blanks, one between two texts."""
    return " ".join(" ".join(Reader(path.read_text()).texts).replace("\u00a0", " ").split())


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def decade(age: str) -> str:
    return str(int(age) // 10) if age else "?"


def percent(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + " %"


@pytest.mark.parametrize("name", SINGLE)
def test_only_the_owner_can_read_the_page_and_no_digest_covers_the_page(
    releases: Mapping[str, Path], name: str
) -> None:
    out = releases[name] / "out"
    page = out / OWN_PAGE
    assert page.stat().st_mode & 0o777 == 0o600
    assert OWN_PAGE not in (out / "SHA256SUMS").read_text()
    assert OWN_PAGE not in (out / "report.json").read_text()
    assert "do not publish, send or deliver the page" in text_of(page)
    checked = invoke("coordinator", "verify", releases[name] / "job.yaml", out)
    assert checked.code == 0, checked.err
    assert f"only for the owner: {OWN_PAGE}. Do not publish it\n" in checked.out


@pytest.mark.parametrize("name", SINGLE)
def test_risk_before_is_counted_in_the_raw_rows(releases: Mapping[str, Path], name: str) -> None:
    """Ages are cells of ten years. DP counts leave rows without an age out; sequences have no age."""
    folder = releases[name]
    found = [row for row in rows_of(folder / "t.csv") if name != "dp" or row["age"]]
    raw = [("" if name == "sequences" else decade(row["age"]), row["town"]) for row in found]
    sizes = Counter(raw)
    text = text_of(folder / "out" / OWN_PAGE)
    assert f"Prosecutor risk {percent(1 / min(sizes.values()))}" in text
    assert f"Marketer risk {percent(len(sizes) / len(raw))}" in text


def test_a_simple_model_is_measured_before_and_after(releases: Mapping[str, Path]) -> None:
    for name in ("synthetic", "classified"):
        folder = releases[name]
        text = text_of(folder / "out" / OWN_PAGE)
        classes = Counter(row["died"] for row in rows_of(folder / "t.csv"))
        assert f"Most frequent class {percent(max(classes.values()) / sum(classes.values()))}" in text
        assert "predicted by naive Bayes" in text
    assert "naive Bayes" not in text_of(releases["single"] / "out" / OWN_PAGE)  # no class


def test_synthetic_rows_are_compared_with_raw_rows(releases: Mapping[str, Path]) -> None:
    folder = releases["synthetic"]
    raw = Counter(row["town"] for row in rows_of(folder / "t.csv"))
    drawn = Counter(row["town"] for row in rows_of(folder / "out" / "synthetic.csv"))
    away = sum(abs(raw[town] / raw.total() - drawn[town] / drawn.total()) for town in {*raw, *drawn}) / 2
    text = text_of(folder / "out" / OWN_PAGE)
    assert f"town {percent(away)}" in text.split("One column against raw rows")[1]
    assert "Two columns against raw rows" in text
    assert "against raw rows" not in text_of(folder / "out" / PAGE)


def test_noisy_counts_are_compared_with_true_counts(releases: Mapping[str, Path]) -> None:
    folder = releases["dp"]
    cells = rows_of(folder / "out" / "counts.csv")
    raw = [row for row in rows_of(folder / "t.csv") if row["age"]]
    away = [abs(int(cell["count"]) - sum(within(row, cell) for row in raw)) for cell in cells]
    text = text_of(folder / "out" / OWN_PAGE)
    assert f"Mean error of a cell {sum(away) / len(away):,.3g}" in text


def test_sums_of_noisy_counts_are_compared_with_true_counts(releases: Mapping[str, Path]) -> None:
    """Noise below 0 takes from the sum of a value; only a sum below 0 counts as 0."""
    folder = releases["dp"]
    cells = rows_of(folder / "out" / "counts.csv")
    raw = [row for row in rows_of(folder / "t.csv") if row["age"]]
    text = text_of(folder / "out" / OWN_PAGE).split("equal to the true counts.")[1]
    for column in ("age", "town", "died"):
        sums, true = Counter[str](), Counter[str]()
        for cell in cells:
            sums[cell[column]] += int(cell["count"])
        for value in sums:
            true[value] = sum(is_in(column, row, value) for row in raw)
        noisy = {value: max(n, 0) for value, n in sums.items()}
        of_noisy = sum(noisy.values())
        away = sum(abs(noisy[value] / of_noisy - true[value] / len(raw)) for value in sums) / 2
        assert f"{column} {shares.percent(away)} ".replace("\u00a0", " ") in f"{text} "


def test_noise_below_0_takes_from_a_sum() -> None:
    """Sums of 6 and -2, which counts as 0, against true counts of 5 and 1."""
    raw = LabelledColumn(("a", "b"), np.array([0, 1]))
    cells = LabelledColumn(("b", "a"), np.array([1, 1, 0, 0]))
    pair = aligned(raw, cells)
    away = distance_of_sums(pair, np.array([5, 1]), np.array([10, -4, -3, 1]))
    assert away == pytest.approx(1 / 6)


def within(row: Mapping[str, str], cell: Mapping[str, str]) -> bool:
    """Return True if a raw row lies in a released cell."""
    return all(is_in(column, row, cell[column]) for column in ("age", "town", "died"))


def is_in(column: str, row: Mapping[str, str], value: str) -> bool:
    """Return True if a raw row lies in a released value of a column."""
    if column == "age":
        low, _, high = value.strip("[)").partition(",")
        return int(low) <= int(row["age"]) < int(high)
    return value in ("*", row[column])


def test_every_party_has_a_page_of_its_own_rows(releases: Mapping[str, Path]) -> None:
    folder = releases["joint"]
    own = folder / "out" / OWN
    assert sorted(path.name for path in own.iterdir()) == sorted(
        f"{party}.{kind}" for party in PARTIES for kind in ("html", "json")
    )
    for party in PARTIES:
        page = own / f"{party}.html"
        assert page.stat().st_mode & 0o777 == 0o600
        ages = [row["age"] for row in rows_of(folder / f"{party}.csv")]
        assert f"{len(ages)} rows read, 0 left out, {len(ages)} used" in text_of(page)
        assert "The release has the records of all parties." in text_of(page)


@pytest.mark.parametrize("name", [*SINGLE, "joint"])
def test_no_raw_value_becomes_an_element(releases: Mapping[str, Path], name: str) -> None:
    out = releases[name] / "out"
    found = Reader((out / OWN / "a.html" if name == "joint" else out / OWN_PAGE).read_text())
    assert not {"script", "img"} & set(found.tags)
    assert not any(attribute.startswith("on") or attribute == "style" for attribute in found.names)
    assert any(EVIL in text for text in found.texts) == (name != "sequences")  # no figure by item


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["classified", "kd", "dp", "synthetic"])
def test_nothing_hinders_access(releases: Mapping[str, Path], browser: Chrome, name: str) -> None:
    expect_access(browser, releases[name] / "out" / OWN_PAGE)


@pytest.mark.parametrize("name", SINGLE)
def test_no_table_scrolls_on_a_narrow_screen(
    releases: Mapping[str, Path], browser: Chrome, name: str
) -> None:
    expect_no_table_scrolls(browser, releases[name] / "out" / OWN_PAGE)


def test_distances_of_many_values_are_those_of_few() -> None:
    """Sorted and counted, against the definition with a dictionary."""
    rng = random.Random(3)  # noqa: S311
    ours, theirs = ([str(rng.randrange(9)) for _ in range(n)] for n in (40, 25))
    one, other = (
        LabelledColumn(tuple(sorted(set(of))), np.array([sorted(set(of)).index(v) for v in of]))
        for of in (ours, theirs)
    )
    pair, ones = aligned(one, other), (np.ones(40, dtype=np.int64), np.ones(25, dtype=np.int64))
    expected = sum(abs(ours.count(v) / 40 - theirs.count(v) / 25) for v in {*ours, *theirs}) / 2
    assert pair.distance(*ones) == pytest.approx(expected)
    assert Aligned(pair.one, pair.other, 1 << 40).distance(*ones) == pytest.approx(expected)


def test_the_owner_reads_the_records_at_which_a_column_stopped(releases: Mapping[str, Path]) -> None:
    """The page for all says the threshold; the number of records is the owner's alone."""
    out = releases["single"] / "out"
    own, public = (" ".join(Reader((out / name).read_text()).texts) for name in (OWN_PAGE, PAGE))
    assert "Why values are no finer" in own
    assert re.search(r"would have [0-9,]+ record", own)
    assert not re.search(r"would have [0-9,]+ record", public)


@pytest.mark.parametrize(("ours", "theirs", "expected"), [(3, 0, 1), (0, 3, 1), (0, 0, 0), (3, 2, 0)])
def test_no_records_are_away_from_any_records(ours: int, theirs: int, expected: float) -> None:
    """Noisy counts of a very small epsilon can all be negative: no record is left."""
    column = LabelledColumn(("a",), np.zeros(1, dtype=np.int64))
    pair = aligned(column, column)
    assert pair.distance(np.array([ours]), np.array([theirs])) == expected


def test_a_party_with_own_columns_compares_these_columns(tmp_path: Path) -> None:
    """Before and after are counted on the columns of the party, not on columns that the party does not have."""
    fields = {
        "version": "1",
        "name": "columns",
        "partition": "vertical",
        "goal": "classification",
        "disclosure": "sealed",
        "parties": {
            "a": {"address": "127.0.0.1:7401", "columns": ["age"]},
            "b": {"address": "127.0.0.1:7402", "columns": ["town"]},
        },
        "model": {"lkc": {"L": "all", "K": "5", "C": "1"}},
        "columns": {
            "person": {"role": "id"},
            "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "50"}},
            "town": {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon"]}, "refine": "children"},
            "died": {"role": "class", "domain": ["N", "Y"]},
        },
    }
    rng = random.Random(5)  # noqa: S311
    rows = [
        {
            "person": f"p{i}",
            "age": str(rng.randrange(100)),
            "town": "Bonn" if i % 4 else "Lyon",
            "died": "Y" if i % 4 else "N",
        }
        for i in range(80)
    ]
    data = [f"--data={party}={jobs.write_csv(tmp_path / f'{party}.csv', rows)}" for party in "ab"]
    ran = invoke(
        "coordinator",
        "simulate",
        job_file(tmp_path, fields),
        *data,
        "--in-process",
        "--out",
        tmp_path / "out",
    )
    assert ran.code == 0, ran.err
    text = text_of(tmp_path / "out" / OWN / "b.html")
    assert "For a reader who knows of a person: town." in text
    assert "Prosecutor risk 5 % 5 %" in text  # 20 people of Lyon, before and in the release
    assert "Raw rows 100 %" in text
    assert "Release 100 %" in text


@pytest.mark.parametrize("model", ["lkc", "dp"])
def test_a_party_with_ids_alone_reads_the_fate_of_its_rows(tmp_path: Path, model: str) -> None:
    """A party of a vertical job may contribute no column, so there is nothing to compare."""
    models = {
        "lkc": {"lkc": {"L": "all", "K": "5", "C": "1"}},
        "dp": {"dp": {"method": "synthetic", "epsilon": "1", "max_rows": "100"}},
    }
    fields = {
        "version": "1",
        "name": "ids",
        "partition": "vertical",
        "goal": "general",
        "disclosure": "sealed",
        "parties": {"a": {"columns": ["age"]}, "b": {"columns": []}},
        "model": models[model],
        "columns": {
            "person": {"role": "id"},
            "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "50"}},
        },
    }
    rows = [{"person": f"p{i}", "age": str(i)} for i in range(40)]
    a = jobs.write_csv(tmp_path / "a.csv", rows)
    b = jobs.write_csv(tmp_path / "b.csv", [{"person": row["person"]} for row in rows])
    data = (f"--data=a={a}", f"--data=b={b}", "--in-process")
    ran = invoke("coordinator", "simulate", job_file(tmp_path, fields), *data, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "40 rows read" in text_of(tmp_path / "out" / OWN / "b.html")
