"""Foreign bundles are read in a process of their own, with a bound on memory and time."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobs.errors import ConfigError
from party import decoding
from party.decoding import READER, open_foreign
from tests.support import jobs
from tests.support.network import GUARD_S
from tests.support.samples import joint_job

BUNDLE = jobs.bundle_of(joint_job()).encoded


@pytest.fixture(autouse=True, scope="module")
def stopped() -> Iterator[None]:
    """Start the reader once, and stop it after all tests: starting takes a second of processor time."""
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


FORKED = """
import os, sys
from party.decoding import READER, open_foreign
READER.start()
encoded = sys.stdin.buffer.read()
forked = READER._process
assert open_foreign(encoded).bundle.encoded == encoded
assert forked.poll() is None and os.getsid(forked._pid) == forked._pid
assert os.readlink(f"/proc/{forked._pid}/fd/0") == os.devnull
READER._process.kill()
READER._process.wait()
assert forked.poll() == -9
assert open_foreign(encoded).bundle.encoded == encoded
assert READER._process is not forked
READER.stop()
print("done", flush=True)
"""
"""In a process of its own: one that has threads should not fork."""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_daemon_forks_its_reader_which_is_started_again_by_its_command() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKED],
        input=BUNDLE,
        capture_output=True,
        timeout=GUARD_S,
        check=True,
    )
    assert done.stdout == b"done\n"
    assert b"ended: code -9; a new process is started" in done.stderr
    assert b"Warning" not in done.stderr


IMPORTED = """
import sys
from jobs.errors import problem_of
from jobs.loading import decode_task
from party import decoding
decoding.import_models()
bundle, faulty = sys.stdin.buffer.read().splitlines()
decode_task(bundle)
before = set(sys.modules)
try:
    decode_task(faulty)
except Exception as error:
    print(problem_of(error).error_id)
print(sorted(set(sys.modules) - before), flush=True)
"""


def test_a_faulty_bundle_pays_for_no_import() -> None:
    unknown = json.loads(BUNDLE)
    unknown["job"]["model"]["lkc"]["epsilon"] = 1
    faulty = json.dumps(unknown, ensure_ascii=False, separators=(",", ":")).encode()
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        input=b"\n".join([BUNDLE, faulty]),
        capture_output=True,
        timeout=GUARD_S,
        check=True,
    )
    assert done.stdout.decode().split("\n") == ["unknown-key", "[]", ""]


FAILING = """
import os, sys
from party import decoding
def failing(control):
    raise OSError("no more processes")
decoding._serve = failing
decoding.READER.start()
os.waitid(os.P_PID, decoding.READER._process._pid, os.WEXITED | os.WNOWAIT)
encoded = sys.stdin.buffer.read()
assert decoding.open_foreign(encoded).bundle.encoded == encoded
decoding.READER.stop()
"""


@pytest.mark.more
@pytest.mark.skipif(sys.platform != "linux", reason="reads a line that only Linux keeps for a closed end")
def test_a_reader_that_could_not_start_says_why() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING], input=BUNDLE, capture_output=True, timeout=GUARD_S, check=True
    )
    assert b"OSError: no more processes; a new process is started" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_a_daemon_imports_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = (
        "import os, sys; from jointcut import isolated; "
        "isolated._main_of = lambda program: lambda: __import__('party.cli.serve'); "
        "sys.argv = ['', 'party']; isolated.run(); print(len(os.listdir('/proc/self/task')))"
    )
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    done = subprocess.run([sys.executable, "-c", counting], capture_output=True, timeout=GUARD_S, check=True)
    assert done.stdout == b"1\n"


def test_a_process_that_comes_to_no_end_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(READER, "ask", lambda encoded: b"")
    with pytest.raises(ConfigError, match="cannot be read within 15 s and 1024 MiB"):
        open_foreign(BUNDLE)


ANSWERING = """
import socket, sys
from party import decoding
decoding.{bound}
decoding.decode_task = lambda encoded: {hostile}
with socket.socket(fileno=int(sys.argv[1])) as connection:
    decoding._answer(connection)
"""
"""The reader's child, with a decoder that takes what it can get."""


def answered(bound: str, hostile: str) -> tuple[int, bytes]:
    """With which code the child ends under this bound, and what it says."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        script = ANSWERING.format(bound=bound, hostile=hostile)
        command = [sys.executable, "-c", script, str(theirs.fileno())]
        child = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        ours.sendall(BUNDLE)
        ours.shutdown(socket.SHUT_WR)
        return child.wait(2 * GUARD_S), decoding._all_of(ours)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel keeps to RLIMIT_AS on Linux")
def test_more_memory_than_the_bound_is_not_to_be_had() -> None:
    """The bound is the kernel's: asking for more at once, or piece by piece, ends in no verdict."""
    at_once, by_pieces = "bytearray(1 << 28)", "[bytes(1 << 16) for _ in iter(int, 1)]"
    assert answered("MEMORY_BYTES = 1 << 30", at_once) == (0, b"{}")
    assert answered("MEMORY_BYTES = 1 << 26", by_pieces) == (0, b"")


def test_more_time_than_the_bound_is_not_to_be_had() -> None:
    """The clock is the kernel's, too: nothing that the decoder does catches its signal."""
    assert answered("SECONDS = 0.5", "sum(1 for _ in iter(int, 1))") == (-signal.SIGALRM, b"")


def test_memory_that_does_not_suffice_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(encoded: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(decoding, "decode_task", greedy)
    assert decoding._verdict(BUNDLE) == b""
