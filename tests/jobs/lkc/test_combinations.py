"""Lists of requirements with `withhold`, `unit: person`, `refine: child` and `suppress` together: table to table.

The released files are counted again here, from their texts and those of the input, by the definition alone.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from anonymize.release import release_of_rows
from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.lkc.parts import ROWS
from jobs.lkc.single import anonymized, rows_kept
from jobs.lkc.verify import require_verified
from jobs.options import NO_OPTIONS
from jobs.reading import load_table
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.folder import new_folder
from jobs.release.making import write_joint_release
from jobs.stopwatch import Stopwatch
from jobs.task import Collected
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.joint import sample_rows
from tests.support.lkc_runs import run_lkc
from tests.support.network import write_job
from tests.support.samples import COLUMNS, columns, joint_job, single_job
from tests.support.scores import PUBLISHED_NAMES

Row = Mapping[str, str]

CITIES = ["Rome", "Oslo", "Bern", "Kiel", "Graz"]
ABOVE = {"Janitor": ["Blue", "Any"], "Mover": ["Blue", "Any"], "Lawyer": ["White", "Any"]}
TREE = {
    "role": "qid",
    "taxonomy": {"Any": {"Blue": ["Janitor", "Mover"], "White": ["Lawyer"], "None": ["Idle", "Ill"]}},
}
ABOVE |= {"Idle": ["None", "Any"], "Ill": ["None", "Any"]}

ENTRIES: list[dict[str, Any]] = [
    {"columns": ["age", "city"], "K": "6", "C": {"surgery": "0.6"}},
    {"columns": ["job", "city"], "L": "1", "K": "9", "distinct": {"surgery": "2"}},
    {"columns": ["job", "age"], "L": "2", "K": "4"},
]

COMBINED: dict[str, dict[str, Any]] = {
    "list": {},
    "child": {"refine": "child"},
    "suppress": {"suppress": True},
    "withhold": {"withhold": "1/10"},
    "person": {"unit": "person"},
    "person, child, suppress": {"unit": "person", "refine": "child", "suppress": True},
    "withhold, child, suppress": {"withhold": "1/10", "refine": "child", "suppress": True},
    "withhold, person, child": {"withhold": "1/10", "unit": "person", "refine": "child"},
}


def fields_of(make: Any, goal: str, how: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    refine = {"refine": how.get("refine", "children")}
    city = {"suppress": CITIES} if "suppress" in how else {"taxonomy": {"*": CITIES}, **refine}
    model = {"requirements": ENTRIES, "unit": how.get("unit", "record")}
    described = columns(job={**TREE, **refine}, city={"role": "qid", **city})
    also = {"withhold": how["withhold"]} if "withhold" in how else {}
    fields: dict[str, Any] = make(
        model=model, goal=goal, score=PUBLISHED_NAMES[goal], columns=described, **also, **changes
    )
    return fields


def rows_of(how: Mapping[str, Any], n: int = 160) -> list[dict[str, str]]:
    """Sample rows with a city, of fewer people where these are counted; the last cities and some jobs are rare."""
    people = 12 if "unit" in how else n
    return [
        {
            **row,
            "patient": str(i * 7 % people),
            "job": ["Idle", "Ill"][i // 13 % 2] if i % 13 == 0 else row["job"],
            "city": CITIES[min(i * i % 11 // 2, 4)],
        }
        for i, row in enumerate(sample_rows(n, seed=3))
    ]


def printed(row: Row, cut: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The published quasi-identifiers of a row of the input: as a reader of the report's cut would write it."""
    found = []
    for name in ("job", "age", "city"):
        if name == "age":
            low, high = next(
                (low, high)
                for low, high in (map(int, label.strip("[)").split(",")) for label in cut[name])
                if low <= int(row[name]) < high
            )
            found.append(f"[{low},{high})")
            continue
        above = ABOVE[row[name]] if name == "job" else ["*"]
        labels = [row[name], *(text for each in above for text in (each, f"other {each}"))]
        found.append(next(label for label in labels if label in cut[name]))
    return tuple(found)


def groups(rows: Sequence[Mapping[str, str]], known: Sequence[str]) -> Iterator[list[Mapping[str, str]]]:
    found: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in known)].append(row)
    yield from found.values()


def broken(rows: Sequence[Mapping[str, str]], counted: str | None) -> list[Any]:
    """The groups that some entry does not allow; counted: the column with whose each row is, None: rows count."""
    found = []
    for entry in ENTRIES:
        most = int(entry.get("L", len(entry["columns"])))
        for size in range(most + 1):
            for known in combinations(entry["columns"], size):
                for group in groups(rows, known):
                    n = len({row[counted] for row in group}) if counted else len(group)
                    values = Counter(row["surgery"] for row in group)
                    bound = Fraction(entry.get("C", {}).get("surgery", "1"))
                    least = int(entry.get("distinct", {}).get("surgery", "1"))
                    if n < int(entry["K"]) or len(values) < least or values["Rare"] > bound * len(group):
                        found.append((entry, known, group))
    return found


@pytest.mark.some(9)
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("how", list(COMBINED))
def test_from_table_to_table_by_one_holder(tmp_path: Path, how: str, goal: str) -> None:
    asked, rows = COMBINED[how], rows_of(COMBINED[how])
    job = write_job(tmp_path, fields_of(single_job, goal, asked))
    jobs.write_csv(tmp_path / "table.csv", rows, [*COLUMNS, "city"])
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", job, tmp_path / "out")
    assert checked.code == 0, checked.err
    with (tmp_path / "out" / TABLE).open(newline="") as file:
        released: list[Row] = list(csv.DictReader(file))
    report = json.loads((tmp_path / "out" / REPORT).read_text())
    assert len(released) == report["rows"]
    assert broken(released, None) == []
    assert report["specializations"]
    kept = ("transfused", "surgery")
    names = ("job", "age", "city", *kept)
    of_input = Counter((*printed(row, report["cut"]), *(row[name] for name in kept)) for row in rows)
    of_release = Counter(tuple(row[name] for name in names) for row in released)
    assert of_release <= of_input
    assert (
        sum((of_input - of_release).values()) == report.get("withheld", {}).get("rows", 0) <= len(rows) // 10
    )
    if "withhold" not in asked:
        generalized = [{**row, **dict(zip(names, printed(row, report["cut"]), strict=False))} for row in rows]
        assert broken(generalized, "patient" if "unit" in asked else None) == []


@pytest.mark.some(2)
@pytest.mark.parametrize("level", ["sealed", "leader"])
@pytest.mark.parametrize("goal", ["classification", "general"])
@pytest.mark.parametrize("how", [how for how in COMBINED if "withhold" not in how])
def test_parties_come_to_the_table_of_one_holder(tmp_path: Path, how: str, goal: str, level: str) -> None:
    """Ids are told apart by party."""
    asked, rows = COMBINED[how], rows_of(COMBINED[how])
    task = jobs.task_of(fields_of(joint_job, goal, asked, disclosure=level))
    run = run_lkc(task, tmp_path, rows=rows)
    own_ids = [{**row, "patient": f"{i % 3}-{row['patient']}"} for i, row in enumerate(rows)]
    single = jobs.task_of(fields_of(single_job, goal, asked))
    source = Csv(jobs.write_csv(tmp_path / "whole.csv", own_ids, [*COLUMNS, "city"]))
    loaded = load_table(source, single)
    outcome = anonymized(single, loaded, Observer())
    assert jobs.turns(run.result.outcome) == jobs.turns(outcome)
    with new_folder(tmp_path / "out") as folder:
        write_joint_release(
            task, folder, Collected(run.result, run.parts(ROWS), {}), NO_OPTIONS, Stopwatch(lambda _: None)
        )
    table = read_csv(tmp_path / "out" / TABLE, task.job.published)
    expected = release_of_rows(loaded.table, outcome.cut).ordered(task.job.published)
    assert jobs.multiset(table) == jobs.multiset(expected)
    require_verified(table, task)
    cut = json.loads((tmp_path / "out" / REPORT).read_text())["cut"]
    generalized = [
        {**row, **dict(zip(("job", "age", "city"), printed(row, cut), strict=True))} for row in own_ids
    ]
    assert broken(generalized, "patient" if "unit" in asked else None) == []


def test_every_part_of_a_combination_matters(tmp_path: Path) -> None:
    """Of the same rows every job has a cut of its own, so a run without one of its parts would have another table."""
    people, cuts = {"unit": "person"}, set()
    source = Csv(jobs.write_csv(tmp_path / "table.csv", rows_of(people), [*COLUMNS, "city"]))
    for asked in COMBINED.values():
        with_people = jobs.task_of(fields_of(single_job, "classification", {**asked, **people}))
        task = jobs.task_of(fields_of(single_job, "classification", asked))
        loaded = rows_kept(task, load_table(source, with_people))
        cuts.add((anonymized(task, loaded, Observer()).cut, loaded.table.n_records))
    assert len(cuts) == len(COMBINED)
