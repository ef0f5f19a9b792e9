"""Small files that stand for much, names that steer a terminal, tables that are none: what a parser is handed."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from anonymize.errors import DataError
from jobs.data.sources import Csv
from jobs.errors import MAX_LINE_CHARS, MAX_SHARED_CHARS, ConfigError
from party.decoding import READER, open_foreign
from party.net import control
from party.net.client import Calls
from party.owner.config import credentials_of, peers_of
from tests.support import jobs
from tests.support.by_hand import reached
from tests.support.hostile import encoded_with
from tests.support.network import call, command, processes, sample_network
from tests.support.samples import joint_job

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mALL IS WELL\u202e"
A, B, COORDINATOR = "hospital-a", "hospital-b", "coordinator"

JOB = """version: 1
name: sample
partition: single
model: {{lkc: {{L: 2, K: 2, C: 0.5}}}}
data: table.csv
columns:
  job: {{role: qid, taxonomy: {taxonomy}}}
  {name}: {{role: qid, numeric: {{min: 0, max: 100, step: 10}}}}
  class: {{role: class}}
"""


def tower(levels: int, ways: int = 10) -> str:
    """A mapping that stands for ``ways`` to the power of ``levels`` values, by aliases."""
    lines = ["a0: &a0 [v]"]
    for i in range(1, levels):
        lines.append(f"a{i}: &a{i} {{" + ", ".join(f"k{j}: *a{i - 1}" for j in range(ways)) + "}")
    return "{Any: {" + ", ".join(lines) + "}}"


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("taxonomy", "name", "says"),
    [
        (tower(12), "age", "an alias"),
        ("&x {Any: *x}", "age", "an alias"),
        ("{Any: " + "[" * 100_000 + "]" * 100_000 + "}", "age", "nested too deeply"),
        ("{Any: [" + "a, " * 200_000 + "b]}", "age", "values"),
        ("/dev/zero", "age", "no regular file"),
        ("{Any: [a, b]}", '"\\ud800"', "yaml-invalid"),
    ],
)
def test_a_job_file_that_somebody_else_wrote(tmp_path: Path, taxonomy: str, name: str, says: str) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(taxonomy=taxonomy, name=name))

    # The shell sets the limit: a function that runs between fork and exec would run gRPC's handlers of forks, too.
    limited = [
        "sh",
        "-c",
        f'ulimit -v {2 << 20} && exec "$@"',
        "sh",
        *command("validate", path, "--files-anywhere"),
    ]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert says in done.stderr


def test_names_of_a_job_file_steer_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(taxonomy="{Any: [a, b]}", name=json.dumps(EVIL)))
    done = call("validate", path)
    assert done.code == 2
    assert "ALL IS WELL" in done.err
    assert not [c for c in done.err if not c.isprintable() and c != "\n"]


def bomb(megabytes: float) -> bytes:
    """A canonical bundle whose taxonomy has a branch of a hundred levels on every line."""
    job = json.loads(jobs.bundle_of(joint_job()).job.canonical())
    job["columns"]["job"] = {"role": "qid", "taxonomy": "job.csv", "refine": "child"}
    tail = ";".join(["x"] * 98)
    n = int(megabytes * 2**20) // (len(tail) + 18)
    text = "\n".join(f"v{i:06d};{tail};g{i:06d};r" for i in range(n))
    parts = {"bundle": 1, "job": job, "files": {"job": text}}
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def test_a_taxonomy_that_takes_gigabytes() -> None:
    """It is refused, and no memory of this process went into it."""
    open_foreign(jobs.bundle_of(joint_job()).encoded)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    encoded = bomb(3)
    with pytest.raises(ConfigError, match=r"more than 1048576 nodes|cannot be read within"):
        open_foreign(encoded)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
    READER.stop()


def test_what_a_daemon_logs_and_says_of_a_hostile_job(tmp_path: Path) -> None:
    """Names of columns are in it: in one line of bounded length, without what steers a terminal."""
    net = sample_network(tmp_path)
    evil = {f"{EVIL}{i:03d}" + "x" * 5000: {"role": "plain"} for i in range(500)}
    content = encoded_with(joint_job(), evil)

    async def refusal() -> str:
        config = net.coordinator
        calls = Calls(config, credentials_of(config), peers_of(config))
        stream = await reached(calls, A, net.addresses[A])
        run = os.urandom(16)
        for piece in control.pieces("bundle", content):
            await stream.write(control.Submit(run, piece))
        event = await stream.read()
        await stream.close()
        await calls.close()
        assert isinstance(event, control.Failed)
        return event.problem.message

    with processes(net, [A]) as running:
        said = asyncio.run(asyncio.wait_for(refusal(), 60))
        assert said
        assert len(said) <= MAX_SHARED_CHARS
        assert said.isprintable()
        log = running.log(A)
    assert "job-invalid" in log
    assert max(map(len, log.splitlines())) < 6 * MAX_LINE_CHARS
    assert not [c for c in log if not c.isprintable() and c != "\n"]


def test_a_table_that_is_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "table.csv")
    signal.alarm(30)
    with pytest.raises(DataError) as caught:
        Csv(tmp_path / "table.csv").column_names()
    signal.alarm(0)
    assert caught.value.error_id == "data-unreadable"
    assert "no regular file" in caught.value.private
