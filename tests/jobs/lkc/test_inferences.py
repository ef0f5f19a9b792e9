"""Shares of sensitive values on the page, against shares counted by hand from the released rows."""

from __future__ import annotations

import csv
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from jobs.page import parts
from jobs.page.page import PAGE
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file
from tests.support.pages import Reader

QID = ("sex", "ward", "age")
ILL = {"skin": ["eczema", "acne"], "lung": ["asthma", "flu"]}
GROUP_OF = {ill: group for group, found in ILL.items() for ill in found}


def page_of(folder: Path, ill: Mapping[str, Any], lkc: Mapping[str, Any]) -> tuple[str, list[dict[str, str]]]:
    """Return the page of a release as text, and the released rows."""
    fields: dict[str, Any] = {
        "version": "1",
        "name": "shares",
        "partition": "single",
        "goal": "general",
        "data": "t.csv",
        "model": {"lkc": lkc},
        "columns": {
            "sex": {"role": "qid", "taxonomy": {"*": ["f", "m"]}},
            "ward": {"role": "qid", "taxonomy": {"*": ["a", "b", "c"]}},
            "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "5"}},
            "ill": {"role": "sensitive", **ill},
        },
    }
    rng = random.Random(4)  # noqa: S311
    rows = [
        {
            "sex": rng.choice("fm"),
            "ward": rng.choice("abc"),
            "age": str(rng.randrange(100)),
            "ill": rng.choice(["eczema", "acne", "asthma", "flu", "flu", "flu"]),
        }
        for _ in range(150)
    ]
    jobs.write_csv(folder / "t.csv", rows)
    ran = invoke("coordinator", "run", job_file(folder, fields), "--out", folder / "out")
    assert ran.code == 0, ran.err
    page = (folder / "out" / PAGE).read_text()
    text = " ".join(" ".join(Reader(page).texts).split())  # without no-break spaces
    with (folder / "out" / "anonymized.csv").open(newline="") as file:
        return text, list(csv.DictReader(file))


def greatest(rows: Sequence[Mapping[str, str]], known: int, value_of: Mapping[str, str]) -> float:
    """Return the greatest share of a value among the records that agree on some columns; the slow way."""
    shares = []
    for n in range(known + 1):
        for names in combinations(QID, n):
            groups = defaultdict(list)
            for row in rows:
                groups[tuple(row[name] for name in names)].append(value_of[row["ill"]])
            shares += [Fraction(max(Counter(g).values()), len(g)) for g in groups.values()]
    return float(max(shares))


def percent(share: float) -> str:
    return parts.percent(share).replace("\u00a0", " ")


SAME = {ill: ill for ill in GROUP_OF}
DOMAIN = {"domain": list(GROUP_OF)}
OF_LEVEL = {"taxonomy": {"any": ILL}, "level": "1"}


@pytest.mark.parametrize(
    ("ill", "lkc", "known", "value_of"),
    [
        (DOMAIN, {"L": "2", "K": "4", "C": "1"}, 2, SAME),
        (DOMAIN, {"L": "1", "K": "4", "C": "9/10"}, 1, SAME),
        (OF_LEVEL, {"L": "1", "K": "10", "C": "9/10"}, 1, GROUP_OF),
        (OF_LEVEL, {"L": "2", "K": "4", "C": "1"}, 2, GROUP_OF),
        (DOMAIN, {"L": "all", "K": "4", "C": "1", "method": "kd"}, 3, SAME),
    ],
    ids=["no C", "low L", "categories", "categories without C", "kd"],
)
def test_the_greatest_shares(
    tmp_path: Path, ill: dict[str, Any], lkc: dict[str, str], known: int, value_of: dict[str, str]
) -> None:
    text, rows = page_of(tmp_path, ill, lkc)
    within, of_all = greatest(rows, known, value_of), greatest(rows, len(QID), value_of)
    assert f"ill, L={known} K={lkc['K']} {percent(within)}" in text
    assert f"ill, all attributes {percent(of_all)}" in text
    if lkc["C"] == "1":
        assert "Nothing bounds inferences of ill: a reader who knows every quasi-identifier" in text
        assert "No C below 1 bounds the share." in text
    else:
        assert of_all > Fraction(lkc["C"]), "a table with the risk"
        assert "and holds for readers within the requirement alone" in text
    assert f"of ill with up to {percent(of_all)}." in text


def test_a_kd_page_has_the_fewest_values_and_the_distance(tmp_path: Path) -> None:
    text, rows = page_of(tmp_path, DOMAIN, {"L": "all", "K": "4", "C": "1/2", "method": "kd"})
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in QID)].append(row["ill"])
    fewest = min(len(set(found)) for found in groups.values())
    whole = Counter(row["ill"] for row in rows)
    distance = max(
        sum(abs(Fraction(found.count(v), len(found)) - Fraction(n, len(rows))) for v, n in whole.items()) / 2
        for found in groups.values()
    )
    assert f"ill, fewest values {fewest} " in text
    assert f"ill, distance of a group {percent(float(distance))} " in text
    assert "Nothing bounds" not in text


def test_many_sets_of_columns_have_the_share_of_all_columns_as_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.lkc.page._MOST_SUBSETS", 2)
    text, rows = page_of(tmp_path, DOMAIN, {"L": "2", "K": "4", "C": "1"})
    of_all = percent(greatest(rows, 3, SAME))
    assert f"ill, L=2 K=4 at most {of_all} " in text
