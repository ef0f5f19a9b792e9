"""A small table of visits as CSV and as tables in memory, with jobs for the Python interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import jointcut as jc

SEXES, PLACES, RESULTS = ("f", "m"), ("north", "south", "east"), ("ill", "well")
N_ROWS = 60


def visits(n_rows: int = N_ROWS) -> pd.DataFrame:
    """Return the table; the age of every seventh visit is missing."""
    rows = range(n_rows)
    return pd.DataFrame(
        {
            "sex": [SEXES[i % 2] for i in rows],
            "age": [None if i % 7 == 3 else 20 + (i * 13) % 60 for i in rows],
            "weight": [50 + (i * 7 % 40) / 4 for i in rows],
            "place": [None if i % 11 == 5 else PLACES[i % 3] for i in rows],
            "day": [f"2024-{1 + i % 12:02}-15" for i in rows],
            "result": [RESULTS[i % 5 == 0] for i in rows],
        }
    )


def as_csv(path: Path, table: pd.DataFrame) -> Path:
    """Write a table as CSV, as a user of pandas does; return the file."""
    table.to_csv(path, index=False)
    return path


def columns() -> dict[str, Any]:
    return {
        "sex": jc.Column(role="qid", suppress=SEXES),
        "age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=10), missing="leaf"),
        "weight": jc.Column(role="qid", numeric=jc.Numeric(min=40, max=80, step=2.5)),
        "place": jc.Column(role="qid", taxonomy={"any": {"land": ["north", "south"], "sea": ["east"]}}),
        "day": jc.Column(role="qid", dates=jc.Dates(start="2024-01-01", to="2025-01-01", step="1mo")),
        "result": jc.Column(role="class", domain=RESULTS),
    }


def visits_job(**keys: Any) -> jc.Job:
    """Return an LKC job of one holder."""
    return jc.Job(**{"name": "visits", "model": jc.Lkc(L=2, K=3), "columns": columns(), **keys})


def drawn_job(**keys: Any) -> jc.Job:
    """Return a job of a synthetic table."""
    own = {
        "sex": jc.Column(role="qid", taxonomy={"any": SEXES}),
        "age": jc.Column(role="qid", numeric=jc.Numeric(min=0, max=100, step=10)),
    }
    return visits_job(**{"model": jc.Synthetic(epsilon=5), "columns": {**columns(), **own}, **keys})


def shared_job(**keys: Any) -> jc.Job:
    """Return a horizontal job of two parties."""
    parties = {"north": jc.Party(), "south": jc.Party()}
    return visits_job(partition="horizontal", parties=parties, model=jc.Lkc(L=2, K=3), **keys)


def rows_of(folder: Path, name: str = "anonymized.csv") -> list[str]:
    """Return the lines of a table in a fixed order: a release is shuffled."""
    header, *lines = (folder / name).read_text().splitlines()
    return [header, *sorted(lines)]
