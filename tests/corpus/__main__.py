"""`python -m tests.corpus record`: record the corpus anew. `show NAME`: print what is seen of a job."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from crypto.ot import base
from tests.corpus.cases import CASES
from tests.corpus.faults import faults, said
from tests.corpus.observed import digest, observe
from tests.support.group import INTEGERS

HERE = Path(__file__).parent


def seen(name: str) -> dict[str, str]:
    """Observe a job in a folder of its own, as the test does."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for operation, cheap in INTEGERS.items():
            patch.setattr(base, operation, cheap)
        return observe(CASES[name], Path(folder), patch)


def record() -> None:
    """Write what is seen of every job, and of every wrong one."""
    jobs = {name: {part: digest(text) for part, text in seen(name).items()} for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        wrong = {name: said(fields, Path(folder)) for name, fields in faults()}
    text = json.dumps({"jobs": jobs, "faults": wrong}, indent=1)
    (HERE / "recorded.json").write_text(f"{text}\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    if arguments == ["record"]:
        record()
        return
    for part, text in seen(" ".join(arguments[1:])).items():
        print(f"== {part}\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
