"""The example table of [TDR] 3.3, which the paper's text has lost, and jobs of its form."""

from __future__ import annotations

from typing import Any

from anonymize.table import CodedTable
from jobs.file.bundle import Bundle
from tests.support import jobs


def class_job(columns: dict[str, Any]) -> Bundle:
    """One holder's job on these columns and a class: L=3 K=4."""
    return jobs.bundle_of(
        {
            "version": "1",
            "name": "one",
            "partition": "single",
            "data": "table.csv",
            "model": {"lkc": {"L": "3", "K": "4", "C": "1"}},
            "columns": {**columns, "cls": {"role": "class", "domain": ["Y", "N"]}},
        }
    )


def rebuilt(refine: str = "children") -> tuple[Bundle, CodedTable]:
    """The example table of [TDR] 3.3, rebuilt so that every statement there holds; refine: of the grades."""
    rows = [
        ("10th", "M", 40, "Y", 20),
        ("10th", "M", 30, "N", 4),
        ("9th", "M", 30, "N", 2),
        ("9th", "F", 30, "N", 4),
        ("9th", "F", 40, "N", 6),
        ("8th", "F", 30, "N", 2),
        ("8th", "F", 40, "N", 2),
    ]
    columns = {
        "edu": {"role": "qid", "refine": refine, "taxonomy": {"Any": ["8th", "9th", "10th"]}},
        "sex": {"role": "qid", "refine": "children", "taxonomy": {"Any": ["M", "F"]}},
        "hours": {"role": "qid", "numeric": {"min": "1", "max": "99", "cuts": ["37"]}},
    }
    bundle = class_job(columns)
    names = [*columns, "cls"]
    table = [dict(zip(names, map(str, row[:4]), strict=True)) for row in rows for _ in range(row[4])]
    return bundle, jobs.coded(bundle, table)
