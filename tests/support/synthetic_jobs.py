"""Small jobs with `method: synthetic`, and releases of them."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.stopwatch import Stopwatch
from jobs.synthetic.result import SyntheticResult
from jobs.synthetic.single import synthesize_to_folder
from jobs.task import Task
from tests.support import jobs
from tests.support.dp_jobs import Site, dp_joint, dp_tables
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS, PARTIES, columns, single_job

N_ROWS = 300


def synthetic_model(**changes: str) -> dict[str, Any]:
    return {"dp": {"method": "synthetic", "epsilon": "5", "edges": "1", "max_rows": "1000", **changes}}


def synthetic_single(model: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    return single_job(**{"model": synthetic_model(**(model or {})), "columns": own_columns(), **changes})


def synthetic_joint(partition: str, model: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """A horizontal job of three parties, or a vertical one of two."""
    fields = {**dp_joint(partition, columns=own_columns()), "model": synthetic_model(**(model or {}))}
    return {key: value for key, value in {**fields, **changes}.items() if value is not None}


def general(model: Mapping[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """A job without a class."""
    of_class = {"role": "sensitive", "domain": ["Y", "N"]}
    return synthetic_single(
        model, **{"goal": "general", "columns": own_columns(transfused=of_class), **changes}
    )


def own_columns(**changes: Any) -> dict[str, Any]:
    """The sample columns; the sensitive one has nothing to protect."""
    return columns(**{"surgery": {"role": "sensitive", "domain": ["Heart", "Knee", "Rare"]}, **changes})


def synthetic_site(folder: Path, partition: str, *, with_class: bool = True, **model: str) -> Site:
    """The parties of a joint job, each with its ledger on disk."""
    fields = synthetic_joint(partition, model)
    if not with_class:
        of_class = {"role": "sensitive", "domain": ["Y", "N"]}
        fields |= {"goal": "general", "columns": own_columns(transfused=of_class)}
        if partition == "vertical":
            fields["parties"][PARTIES[0]]["columns"].append("transfused")
    bundle = jobs.bundle_of(fields)
    return Site(folder / "site", bundle, dp_tables(folder / "tables", bundle, sample_rows(N_ROWS)))


@functools.cache
def made(partition: str, *, with_class: bool = True) -> tuple[Site, SyntheticResult]:
    """A joint run that several tests look at."""
    with tempfile.TemporaryDirectory() as folder:
        site = synthetic_site(Path(folder), partition, with_class=with_class)
        results, _ = site.run()
    result = results[PARTIES[0]]
    assert isinstance(result, SyntheticResult)
    return site, result


def write_table(folder: Path, rows: Sequence[Mapping[str, str]] | None = None) -> Csv:
    return Csv(jobs.write_csv(folder / "table.csv", rows or sample_rows(N_ROWS), COLUMNS))


def synthesize(task: Task, source: Csv, out: Path, options: Options = NO_OPTIONS) -> Noted:
    return synthesize_to_folder(task, source, out, options, Stopwatch(lambda name: None), Observer())
