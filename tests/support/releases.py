"""Releases written by hand."""

from __future__ import annotations

import numpy as np

from anonymize.release import LabelledColumn, Release

Rows = list[tuple[str, ...]]


def release_of(names: list[str], rows: Rows) -> Release:
    columns = {}
    for i, name in enumerate(names):
        labels = tuple(dict.fromkeys(row[i] for row in rows)) or ("-",)
        columns[name] = LabelledColumn(
            labels, np.array([labels.index(row[i]) for row in rows], dtype=np.int64)
        )
    return Release(columns)
