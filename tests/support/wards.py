"""Small jobs of sequences: movements between wards, and sets of diagnoses."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.data.sources import Csv

WARDS = ["ER", "ICU", "XR"]
HEADER = "tag,ward,at,dx"


def wards_job(sequences: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """One holder's movements: a reading a row, by the hour, with a diagnosis."""
    fields: dict[str, Any] = {
        "version": "1",
        "name": "wards",
        "partition": "single",
        "model": {"sequences": {"L": "2", "K": "2", "C": "1/2", "exclusion": "report", **(sequences or {})}},
        "columns": {
            "tag": {"role": "id"},
            "ward": {"role": "location", "domain": WARDS},
            "at": {"role": "time", "numeric": {"min": "0", "max": "24", "step": "1"}},
            "dx": {"role": "sensitive", "domain": ["HIV", "flu"], "values": ["HIV"]},
        },
        "data": "table.csv",
    }
    fields |= changes
    return {key: value for key, value in fields.items() if value is not None}


def joint_wards_job(sequences: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The same of two hospitals."""
    parties = {name: {"address": f"{name}:1"} for name in ("north", "south")}
    return wards_job(sequences, **({"partition": "horizontal", "data": None, "parties": parties} | changes))


def wards_columns(**changes: Any) -> dict[str, Any]:
    """The columns of the job; None takes one out."""
    columns = {**wards_job()["columns"], **changes}
    return {name: column for name, column in columns.items() if column is not None}


def sets_job(sequences: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """One holder's sets: a record a row."""
    columns = {
        "codes": {"role": "items", "domain": ["a", "b", "c", "d"]},
        "dx": {"role": "sensitive", "domain": ["HIV", "flu"], "values": ["HIV"]},
    }
    return wards_job(sequences, **({"columns": columns} | changes))


def table(folder: Path, *lines: str, header: str = HEADER) -> Csv:
    """A table of these lines."""
    path = folder / "table.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return Csv(path)


def movements(n: int, seed: int = 1) -> list[list[str]]:
    """The readings of some patients, each in a ward or two at a few of the first hours."""
    coins = random.Random(seed)  # noqa: S311
    found = []
    for tag in range(n):
        dx = coins.choices(["HIV", "flu"], [1, 4])[0]
        hours = coins.sample(range(4), coins.randint(1, 3))
        found.append([f"{tag},{coins.choices(WARDS, [5, 3, 1])[0]},{hour},{dx}" for hour in hours])
    return found


def dealt_records(
    folder: Path, roster: Sequence[str], records: Sequence[Sequence[str]], header: str = HEADER
) -> dict[str, Path]:
    """A table of every party: the lines of the records that it has, which are dealt out in turn."""
    paths = {name: folder / f"{name}.csv" for name in roster}
    for i, path in enumerate(paths.values()):
        lines = [line for own in records[i :: len(roster)] for line in own]
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return paths
