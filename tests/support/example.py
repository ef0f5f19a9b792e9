"""The transfusion example bent for tests, also into a job with so many turns that something can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from jobs.file.bundle import Bundle
from jobs.loading import load_task
from tests.support.network import Network, network, write_job

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "transfusion"


def example_job(folder: Path, *, fine: bool = False, **changes: Any) -> tuple[Path, Bundle]:
    """The example's job with some keys replaced, written to a folder; ``fine`` gives its grids many more cells."""
    fields = yaml.load((EXAMPLE / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  text only
    fields |= changes
    if fine:
        for name in ("weight", "haemoglobin"):
            fields["columns"][name]["numeric"]["step"] = "0.1"
    for column in fields["columns"].values():
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = str(EXAMPLE / column["taxonomy"])
    path = write_job(folder, fields)
    return path, load_task(path).bundle


def example_tables(folder: Path = EXAMPLE, n_rows: int | None = None) -> dict[str, Path]:
    """The example's tables; where a number is given, the first rows of each that lack nothing, in a folder."""
    tables = {f"hospital-{x}": EXAMPLE / f"hospital-{x}.csv" for x in "abc"}
    if n_rows is None:
        return tables
    folder.mkdir(parents=True)
    for name, path in tables.items():
        header, *rows = path.read_text().splitlines(keepends=True)
        whole = [row for row in rows if "?" not in row and ",," not in row]
        tables[name] = folder / path.name
        tables[name].write_text("".join([header, *whole[:n_rows]]))
    return tables


def long_network(
    folder: Path, tables: Mapping[str, Path] | None = None, **changes: Any
) -> tuple[Path, Network]:
    """A job of hundreds of turns (L=1, K=2, C=1) laid out for its three hospitals; return the job file too."""
    privacy = {"lkc": {"L": "1", "K": "2", "C": "1"}}
    path, bundle = example_job(folder / "job", fine=True, model=privacy, goal="general", **changes)
    return path, network(folder / "net", bundle, tables or example_tables())
