"""Everything that a job of the corpus shows is what it showed when it was recorded.

`python -m tests.corpus record` records anew, and `python -m tests.corpus show NAME` prints what is seen of a job. Say
in the commit why what is seen may change.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus.cases import CASES, SLOW
from tests.corpus.faults import faults, said
from tests.corpus.observed import digest, observe

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.more] * (name in SLOW)) for name in CASES]
)
def test_a_job_shows_what_it_showed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {part: digest(text) for part, text in observe(CASES[name], tmp_path, monkeypatch).items()}
    assert seen == RECORDED["jobs"][name]


def test_wrong_jobs_are_refused_as_they_were(tmp_path: Path) -> None:
    seen = {name: said(fields, tmp_path) for name, fields in faults()}
    assert seen == RECORDED["faults"]
