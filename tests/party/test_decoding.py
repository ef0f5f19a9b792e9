"""Foreign bundles are read in a process of their own, with a bound on memory and time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from jobs.errors import ConfigError
from party import decoding
from party.decoding import READER, open_foreign
from tests.support import jobs
from tests.support.samples import joint_job

BUNDLE = jobs.bundle_of(joint_job()).encoded


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    READER.stop()


def test_a_bundle_comes_out_as_the_same_task() -> None:
    task = open_foreign(BUNDLE)
    assert task.bundle.encoded == BUNDLE
    assert task.taxonomies


def test_what_is_wrong_is_said_as_without_it() -> None:
    parts = json.loads(BUNDLE)
    parts["job"]["columns"]["job"]["taxonomy"] = {"Any": ["a", "a"]}
    twice = json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
    for encoded, error_id in ((b"{", "job-invalid"), (twice, "taxonomy-two-parents")):
        with pytest.raises(ConfigError) as caught:
            open_foreign(encoded)
        assert caught.value.problem.error_id == error_id
    assert caught.value.problem.column == "job"


def test_a_reader_that_was_killed_is_started_again() -> None:
    open_foreign(BUNDLE)
    assert READER._process is not None
    READER._process.kill()
    READER._process.wait()
    assert open_foreign(BUNDLE).bundle.encoded == BUNDLE


def test_a_process_that_comes_to_no_end_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(READER, "ask", lambda encoded: b"")
    with pytest.raises(ConfigError, match="cannot be read within 15 s and 1024 MiB"):
        open_foreign(BUNDLE)


def test_memory_that_does_not_suffice_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(encoded: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(decoding, "decode_task", greedy)
    assert decoding._verdict(BUNDLE) == b""
