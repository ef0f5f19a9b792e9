"""Hierarchy files as people bring them: read, or refused with file, line and cure (cases 03 to 06)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.errors import Exit
from jobs.release.csv import TABLE
from tests.support import jobs
from tests.support.commands import Ran, invoke
from tests.support.network import write_job
from tests.support.shared import shared

CITIES = "cities.csv"
JOBS = ("Clerk", "Lawyer", "Mover", "Nurse", "Cook")


def job_of(folder: Path, hierarchy: str | bytes, cities: Sequence[str], K: int = 4, **city: Any) -> Path:
    """A job about cities with its hierarchy file and its table."""
    columns = {"city": {"role": "qid", "taxonomy": CITIES, **city}, "ill": {"role": "plain"}}
    path = write_job(
        folder,
        {
            "version": 1,
            "name": "cities",
            "partition": "single",
            "model": {"lkc": {"L": 1, "K": K}},
            "goal": "general",
            "data": "records.csv",
            "columns": columns,
        },
    )
    (folder / CITIES).write_bytes(hierarchy.encode() if isinstance(hierarchy, str) else hierarchy)
    rows = [{"city": city, "ill": "YN"[i % 2]} for i, city in enumerate(cities)]
    jobs.write_csv(folder / "records.csv", rows, list(columns))
    return path


def run(path: Path) -> Ran:
    return invoke("coordinator", "run", path, "--out", path.parent / "out")


def published(path: Path) -> Counter[str]:
    lines = (path.parent / "out" / TABLE).read_text().splitlines()[1:]
    return Counter(line.split(",")[0] for line in lines)


def refused(path: Path, *words: str) -> None:
    """Both commands refuse the hierarchy, with the file and these words."""
    for ran in (invoke("coordinator", "validate", path), run(path)):
        assert (ran.code, ran.out) == (Exit.USAGE, "")
        for part in (str(path.parent / CITIES), "What to do: ", *words):
            assert part in ran.err


FRANCE = ["Paris", "Paris", "Lyon", "Lyon", "Bonn", "Bonn", "Jena", "Jena"]


@pytest.mark.parametrize(
    "hierarchy",
    [
        "Paris;France;*\nLyon;France ;*\nBonn;Germany;*\nJena;Germany;*\n",
        "Paris;France;*;\nLyon ;France;* ;\n;;\nBonn; Germany;*;;\n\tJena;Germany;*\n",
    ],
    ids=["one blank", "trailing separators"],
)
def test_blanks_around_labels(tmp_path: Path, hierarchy: str) -> None:
    path = job_of(tmp_path, hierarchy, FRANCE)
    assert run(path).code == Exit.OK
    assert published(path) == {"France": 4, "Germany": 4}


def test_empty_levels(tmp_path: Path) -> None:
    path = job_of(tmp_path, "Linz;;*\nGraz;;*\nWels;Upper Austria;*\n", ["Linz", "Graz", "Wels"], K=2)
    refused(path, f"{CITIES}: line 1: ", "level 2 is empty")


@pytest.mark.parametrize(
    ("hierarchy", "words"),
    [
        (
            "Paris,France,*\nLyon,France,*\nBonn,Germany,*\n",
            (f"{CITIES}: line 1: ", "has no ';'", "looks ','-separated", "value;group;...;root"),
        ),
        ("Paris\tFrance\t*\nLyon\tFrance\t*\n", (f"{CITIES}: line 1: ", "looks tab-separated")),
        (
            "city;country;all\nParis;France;*\nLyon;France;*\nBonn;Germany;*\n",
            (f"{CITIES}: line 1: ", "line 1 ends with 'all', the other lines with '*'", "remove a header"),
        ),
        ("Paris;France;*\nNîmes;France;*\n".encode("latin-1"), ("line 2", "Latin-1", "UTF-8")),
        ("Paris;France;*\nLyon;France;*\n".encode("utf-16"), ("is UTF-16 text", "UTF-8")),
    ],
    ids=["commas", "tabs", "header", "latin-1", "utf-16"],
)
def test_other_forms_of_a_file(tmp_path: Path, hierarchy: str | bytes, words: tuple[str, ...]) -> None:
    refused(job_of(tmp_path, hierarchy, FRANCE), *words)


def test_the_hierarchy_of_another_column(tmp_path: Path) -> None:
    path = job_of(tmp_path, "Linz;Upper Austria;*\nGraz;Styria;*\n", [JOBS[i % 5] for i in range(60)])
    ran = run(path)
    assert (ran.code, ran.out) == (Exit.DATA, "")
    shown = " | ".join(f"line {i}: {job!r} (12 rows)" for i, job in enumerate(JOBS, 2))
    assert f", 5 different values in 60 of 60 rows: {shown} | no value of the column fits" in ran.err
    assert ran.err.splitlines()[-1].startswith("error: data-unknown-value: column city has a value that the ")


@pytest.mark.parametrize(
    ("folder", "code", "words"),
    [
        ("03-hierarchy-blanks", Exit.OK, ("France", "Germany")),
        ("04-hierarchy-gaps", Exit.USAGE, ("cities.csv: line 1: ", "level 2 is empty")),
        ("05-hierarchy-with-commas", Exit.USAGE, ("cities.csv: line 1: ", "has no ';'")),
        ("06-hierarchy-of-another-column", Exit.DATA, ("5 different values in 60 of 60 rows", "'Cook'")),
    ],
)
def test_the_folders_themselves(tmp_path: Path, folder: str, code: Exit, words: tuple[str, ...]) -> None:
    for file in shared(f"cases/{folder}").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    ran = run(tmp_path / "job.yaml")
    assert ran.code == code
    for part in words:
        assert part in ran.out + ran.err


POSTCODES = (
    "10115;Mitte;Berlin;*\n10117;Mitte;Berlin;*\n20095;Altstadt;Hamburg;*\n20097;Hammerbrook;Hamburg;*\n"
)


@pytest.mark.parametrize("more", [{}, {"goal": "classification", "score": "infogain"}, {"method": "kd"}])
def test_what_lies_below_an_only_child_is_published(tmp_path: Path, more: dict[str, str]) -> None:
    """All of Berlin is Mitte (case 07): everybody who has the hierarchy knows that these are the same people."""
    postcodes = [code for code in ("10115", "10117", "20095", "20097") for _ in range(10)]
    path = job_of(tmp_path, POSTCODES, postcodes, K=5)
    fields = yaml.safe_load(path.read_text()) | more
    if fields["goal"] == "classification":
        fields["columns"]["ill"]["role"] = "class"
        fields["columns"]["city"]["refine"] = "child"
        ill = {"10115": 0, "10117": 4, "20095": 6, "20097": 10}  # of ten
        rows = [{"city": code, "ill": "NY"[i % 10 < ill[code]]} for i, code in enumerate(postcodes)]
        jobs.write_csv(tmp_path / "records.csv", rows, ["city", "ill"])
    write_job(tmp_path, fields)
    ran = run(path)
    assert ran.code == Exit.OK, ran.err
    assert published(path) == dict.fromkeys(("10115", "10117", "20095", "20097"), 10)
    assert invoke("coordinator", "verify", path, tmp_path / "out").code == Exit.OK


def test_a_value_that_is_alone_in_its_group_is_published_as_itself(tmp_path: Path) -> None:
    path = job_of(tmp_path, "Paris;France;*\nLyon;France;*\nBonn;Germany;*\n", FRANCE[:4] + ["Bonn"] * 4)
    assert run(path).code == Exit.OK
    assert published(path) == {"France": 4, "Bonn": 4}


@pytest.mark.parametrize("how", ["above", "absolute", "link"])
def test_files_of_a_job_lie_in_its_folder(tmp_path: Path, how: str) -> None:
    """Somebody else may have written the job, and what it names goes to all parties."""
    folder = tmp_path / "a job"
    folder.mkdir()
    path = job_of(folder, "Paris;France;*\nLyon;France;*\n", FRANCE[:4])
    outside = tmp_path / "private.csv"
    (folder / CITIES).rename(outside)
    named = {"above": "../private.csv", "absolute": str(outside), "link": CITIES}[how]
    if how == "link":
        (folder / CITIES).symlink_to(outside)
    fields = yaml.safe_load(path.read_text())
    fields["columns"]["city"]["taxonomy"] = named
    path.write_text(yaml.safe_dump(fields, sort_keys=False))
    for command in ("validate", "check"):
        ran = invoke("coordinator", command, path)
        assert (ran.code, ran.out) == (Exit.USAGE, "")
        assert f"{path}: line " in ran.err
        assert "columns.city.taxonomy: the job names " in ran.err
        assert "which is outside its folder" in ran.err
        assert "--files-anywhere" in ran.err
        assert "Paris" not in ran.err
        assert invoke("coordinator", command, path, "--files-anywhere").code == Exit.OK
    assert run(path).code == Exit.USAGE
    assert not (folder / "out").exists()


def test_files_of_a_job_may_lie_deeper(tmp_path: Path) -> None:
    path = job_of(tmp_path, "Paris;France;*\nLyon;France;*\n", FRANCE[:4])
    (tmp_path / "hierarchies").mkdir()
    (tmp_path / CITIES).rename(tmp_path / "hierarchies" / CITIES)
    fields = yaml.safe_load(path.read_text())
    fields["columns"]["city"]["taxonomy"] = f"hierarchies/{CITIES}"
    write_job(tmp_path, fields)
    assert run(path).code == Exit.OK
