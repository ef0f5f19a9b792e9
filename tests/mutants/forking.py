"""Run pytest again and again, each time in a fork of this process, in which all libraries are imported already.

A line of standard input asks for a run: JSON with the folder of the sources, the arguments, and the files for what
pytest prints and for the test that fails. The answer is a line with the exit code. Nothing of the project is imported
before a fork, so each run takes the sources as they are.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TextIO

import blake3
import grpc
import hypothesis
import hypothesis.extra.numpy
import nacl.bindings
import numpy
import pydantic
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.ciphers import aead

LIBRARIES = (aead, blake3, grpc, hypothesis, nacl, numpy, pydantic, x509, yaml)
"""Libraries that most tests import, half a second of processor time each time."""


def main(asking: TextIO) -> None:
    while line := asking.readline():
        pid = os.fork()
        if pid == 0:
            sys.exit(_code(line))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _code(line: str) -> int:
    """Run what a line asks for. Return pytest's exit code; an error of our own is not that of a test that failed."""
    try:
        return _run(**json.loads(line))
    except Exception:  # noqa: BLE001  else Python would end with the code of a test that failed
        traceback.print_exc()
        return pytest.ExitCode.INTERNAL_ERROR


class _Failed:
    """Writes down which test fails."""

    def __init__(self, path: str) -> None:
        self._path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with open(self._path, "w", encoding="utf-8") as file:
                file.write(report.nodeid)


def _run(folder: str, arguments: list[str], printed: str, failed: str) -> int:
    with open(os.devnull, "rb") as nothing, open(printed, "wb") as out:
        for stream, descriptor in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(stream.fileno(), descriptor)
    os.chdir(folder)
    sys.path.insert(0, folder)
    return int(pytest.main([*arguments, "-W", "ignore:Module already imported"], [_Failed(failed)]))


if __name__ == "__main__":
    main(sys.stdin)
