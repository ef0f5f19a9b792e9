"""support2's cancer (`ca`) and order not to resuscitate (`dnr`), of three values each: three values cover any group.

So nothing is more than 3-diverse, however large its groups are (../shared/data).
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import SchemaError
from jobs.lkc.requirement import check_opened
from jobs.release.csv import REPORT, TABLE
from tests.support import jobs
from tests.support.blocks import released
from tests.support.samples import single_job
from tests.support.shared import shared

SENSITIVE = {"ca": ["metastatic", "no", "yes"], "dnr": ["dnr after sadm", "dnr before sadm", "no dnr"]}


def job(diversity: int, at_most: str | None = None) -> dict[str, Any]:
    limit = {} if at_most is None else {"at_most": at_most}
    columns: dict[str, Any] = {
        "age": {"role": "qid", "numeric": {"min": "18", "max": "102", "step": "1"}},
        "sex": {"role": "qid", "taxonomy": {"Any": ["female", "male"]}, "missing": "drop"},
        **{name: {"role": "sensitive", "domain": own, **limit} for name, own in SENSITIVE.items()},
    }
    model = {"lkc": {"L": "all", "K": "50", "C": "1", "diversity": str(diversity)}}
    return single_job(method="kd", goal="general", model=model, columns=columns)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """The 9,075 records that say both."""
    names = ("age", "sex", *SENSITIVE)
    with gzip.open(shared("data/support2/support2.csv.gz"), "rt", newline="") as file:
        read = [{name: row[name] for name in names} for row in csv.DictReader(file)]
    return [row for row in read if row["ca"] and row["dnr"]]


def fewest_that_cover(group: Sequence[tuple[str, ...]]) -> int:
    """Return the fewest values of which every record of a group has one ([MSA] Definition 6)."""
    values = sorted({(i, value) for record in group for i, value in enumerate(record)})
    return next(
        size
        for size in itertools.count(1)
        for chosen in itertools.combinations(values, size)
        if all(any(record[i] == value for i, value in chosen) for record in set(group))
    )


def test_groups_are_3_diverse_and_no_more(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    assert len(rows) == 9075
    assert fewest_that_cover([(row["ca"], row["dnr"]) for row in rows]) == 3
    _, out = released(tmp_path, job(3), rows)
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row in csv.DictReader((out / TABLE).read_text().splitlines()):
        groups.setdefault((row["age"], row["sex"]), []).append((row["ca"], row["dnr"]))
    assert len(groups) == json.loads((out / REPORT).read_text())["metrics"]["groups"] > 20
    assert {fewest_that_cover(group) for group in groups.values()} == {3}


def test_more_is_refused_before_a_table_is_read() -> None:
    with pytest.raises(SchemaError) as caught:
        check_opened(jobs.task_of(job(4)))
    assert "`at_most: 2` in columns.ca" in str(caught.value.remedy)
    check_opened(jobs.task_of(job(4, "2")))
