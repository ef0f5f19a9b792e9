"""Sentences of the page on noisy cells, against the true counts of a sparse table."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import tostring

import numpy as np
import pytest

from anonymize.release import LabelledColumn, Release
from jobs.dp.page import sections
from jobs.loading import load_task
from jobs.task import Task
from tests.support.job_files import job_file
from tests.support.pages import Reader

DOMAIN = [f"v{i}" for i in range(12)]
NAMES = ("a", "b", "c")
RATE = 0.9


def task_of(folder: Path) -> Task:
    fields: dict[str, Any] = {
        "version": "1",
        "name": "sparse",
        "data": "t.csv",
        "partition": "single",
        "goal": "classification",
        "model": {"dp": {"epsilon": "1", "specializations": "3"}},
        "columns": {name: {"role": "qid", "taxonomy": {"*": DOMAIN}} for name in NAMES}
        | {"died": {"role": "class", "domain": ["N", "Y"]}},
    }
    return load_task(job_file(folder, fields))


def report_of(n_cells: int, listed: int, threshold: int | None) -> dict[str, Any]:
    """Return the fields of a report that the page reads."""
    privacy = {
        "epsilon": "1",
        "delta": "0",
        "unit": "one record",
        "guarantees": [],
        "noise": "central",
        "account": [{"for": "noisy counts of cells", "epsilon": str(RATE), "iteration": None}],
    }
    return {
        "cells": n_cells,
        "cells_listed": listed,
        "threshold": threshold,
        "cut": {},
        "privacy": privacy,
    }


def text_of(task: Task, counts: np.ndarray[Any, Any], threshold: int | None = None) -> str:
    cells = list(product(*[range(len(DOMAIN))] * 3, range(2)))
    listed = np.arange(len(cells)) if threshold is None else np.flatnonzero(counts >= threshold)
    of_cells = np.array(cells)[listed]
    columns = {
        name: LabelledColumn(tuple(labels), of_cells[:, place])
        for place, (name, labels) in enumerate([*((name, DOMAIN) for name in NAMES), ("died", ["N", "Y"])])
    }
    labels, codes = np.unique(counts[listed], return_inverse=True)
    columns["count"] = LabelledColumn(tuple(map(str, labels.tolist())), codes)
    report = report_of(len(cells), len(listed), threshold)
    parts = [tostring(each.element(), "unicode", "html") for each in sections(task, report, Release(columns))]
    return " ".join(" ".join(Reader("".join(parts)).texts).replace("\u00a0", " ").split())


def noise(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    """Draw discrete Laplace noise as the difference of two geometric variables."""
    chance = 1 - np.exp(-RATE)
    drawn: np.ndarray[Any, Any] = rng.geometric(chance, n) - rng.geometric(chance, n)
    return drawn


def test_no_empty_cell_is_called_a_record(tmp_path: Path) -> None:
    """In 40 sparse tables: the lines and ranges of the page against true counts. By chance 2 of 40 may fail."""
    task, wrong_lines, wrong_ranges = task_of(tmp_path), 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = np.bincount(rng.integers(0, 12**3 * 2, 300), minlength=12**3 * 2)
        true[:3] = (20, 90, 300)
        counts = true + noise(rng, len(true))
        text = text_of(task, counts)
        (line,) = re.findall(r"Counts from (\d+) on: there are such records", text)
        wrong_lines += bool((true[counts >= int(line)] == 0).any())
        (width,) = re.findall(r"Noise of the worst count ± (\d+) ", text)
        top = np.argsort(-counts, kind="stable")[:20]
        wrong_ranges += bool((np.abs(counts[top] - true[top]) > int(width)).any())
        assert f"{int(counts[top[0]])} {counts[top[0]] - int(width)}–{counts[top[0]] + int(width)}" in text
    assert wrong_lines <= 4
    assert wrong_ranges <= 4


def test_a_table_of_noise_alone_is_a_warning(tmp_path: Path) -> None:
    task, rng = task_of(tmp_path), np.random.default_rng(1)
    counts = noise(rng, 12**3 * 2)
    assert "No cell tells that it has a record" in text_of(task, counts)
    counts[5] = 100
    assert "No cell tells that it has a record" not in text_of(task, counts)


@pytest.mark.parametrize("most", [3, 100])
def test_an_empty_release_is_a_warning(tmp_path: Path, most: int) -> None:
    """Counts that reach a threshold are too large, so their sum has no range of noise."""
    counts = np.zeros(12**3 * 2, dtype=np.int64)
    counts[7] = most
    text = text_of(task_of(tmp_path), counts, threshold=16)
    assert ("Nothing is left: no count reached the threshold." in text) == (most < 16)
    assert (
        f"Records in listed cells {most if most >= 16 else 0} Sum of the listed counts: not the number"
        in text
    )
    assert "records or less" not in text
