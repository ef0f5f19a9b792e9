"""Score `tdr` in sealed runs: ranks follow each loss of anonymity, also of candidates without new groups."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from anonymize.joint.lkc.scores.rows import score_of
from anonymize.lkc.single import anonymize_single
from tests.support import jobs
from tests.support.horizontal import run_sealed

FIELDS = {
    "version": "1",
    "name": "several",
    "partition": "single",
    "model": {"lkc": {"L": "2", "K": "2", "C": "0.9"}},
    "score": "infogain",
    "data": "t.csv",
    "columns": {
        "q": {"role": "qid", "taxonomy": {"*": {"g": ["a", "b"], "h": ["c", "d"]}}},
        "n": {"role": "qid", "numeric": {"min": "0", "max": "8", "step": "1"}},
        "m": {"role": "qid", "numeric": {"min": "0", "max": "4", "step": "1"}},
        "cls": {"role": "class", "domain": ["Y", "N"]},
        "s": {"role": "sensitive", "domain": ["x", "y", "z"], "values": ["x"]},
    },
}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_sealed_run_takes_the_turns_of_a_single_holder(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for q, n, m, s, flips in zip(
        *(rng.integers(0, most, 120) for most in (4, 8, 4, 3)), rng.random(120) < 0.15, strict=True
    ):
        mix = "YN"[int((q + n + m > 7) ^ flips)]
        rows.append({"q": "abcd"[q], "n": str(n), "m": str(m), "s": "xyz"[s], "cls": mix})
    bundle = jobs.bundle_of(FIELDS)
    whole = jobs.coded(bundle, rows)
    request = dataclasses.replace(jobs.request_of(bundle), goal=score_of("tdr", None))
    alone = anonymize_single(whole, request.requirement, request.goal)
    assert sum(step.applied for step in alone.steps) > 3
    parts = jobs.split_among(whole, np.arange(whole.n_records) % 2, 2)
    assert jobs.turns(run_sealed(parts, request)[0]["p0"].outcome) == jobs.turns(alone)
