"""Several coordinators at once, and daemons that are told things by signals: real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.errors import Exit
from tests.support.bare import bare
from tests.support.network import (
    GUARD_S,
    Network,
    command,
    processes,
    report_of,
    sample_network,
    write_job,
)
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


def until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GUARD_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def started(net: Network, job: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    config = net.config_path("coordinator")
    return subprocess.Popen(
        command("run", job, "--out", out, "--config", config, "--format", "json", *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=bare(),
    )


def test_coordinators_whose_jobs_need_the_same_parties_never_wait_for_each_other(tmp_path: Path) -> None:
    """Their rosters are in opposite orders, and all begin at once: without an order each would hold a party."""
    net = sample_network(tmp_path / "net")
    forth = joint_job()["parties"]
    jobs = [
        write_job(tmp_path / "forth", joint_job()),
        write_job(tmp_path / "back", joint_job(parties=dict(reversed(forth.items())))),
    ]
    with processes(net):
        outs = [tmp_path / f"out-{i}" for i in range(4)]
        running = [started(net, jobs[i % 2], out, "--wait", "2m") for i, out in enumerate(outs)]
        done = [process.communicate(timeout=2 * GUARD_S) for process in running]
    assert [process.returncode for process in running] == [0] * 4, done
    assert [report_of(out)["rows"] for out in outs] == [60] * 4
    told = [json.loads(line) for _, err in done for line in err.splitlines()]
    queued = [(line["party"], line["before"]) for line in told if line["event"] == "queued"]
    assert max(before for party, before in queued if party == A) >= 1


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill it when the block ends, whatever state it is in."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_daemon_that_is_told_to_stop_ends_its_job_first_and_refuses_others(tmp_path: Path) -> None:
    """The coordinator of its job is frozen for a while, and goes on when others have been refused."""
    net = sample_network(tmp_path / "net")
    for name in PARTIES:  # long enough to take a coordinator that is frozen for one that is slow
        net.change(name, lambda fields: fields.update(timeouts={"keepalive_s": 30}))
    job = write_job(tmp_path, joint_job())
    with processes(net) as daemons, ended(started(net, job, tmp_path / "one")) as first:
        until(lambda: "started by" in daemons.log(A))
        first.send_signal(signal.SIGSTOP)
        daemons.signal(A, signal.SIGTERM)
        until(lambda: "no more jobs are taken" in daemons.log(A))
        with ended(started(net, job, tmp_path / "two", "--wait", "1m")) as second:
            _, err = second.communicate(timeout=GUARD_S)
        said = json.loads(err.splitlines()[-1])
        assert (said["error"], said["party"], second.returncode) == ("stopping", A, Exit.UNREACHABLE)
        assert daemons.running[A].process.poll() is None
        first.send_signal(signal.SIGCONT)
        _, err = first.communicate(timeout=GUARD_S)
        assert first.returncode == 0, err
        assert daemons.running[A].process.wait(GUARD_S) == 0
    assert [len(net.releases(party)) for party in PARTIES] == [1] * 3


def test_a_daemon_rereads_its_files_when_told(tmp_path: Path) -> None:
    net = sample_network(tmp_path / "net")
    with processes(net, only=[B]) as daemons:

        def says(words: str) -> None:
            daemons.signal(B, signal.SIGHUP)
            until(lambda: words in daemons.log(B))

        says("nothing changed in the configuration")
        net.change(B, lambda fields: fields["policy"].update(min_k=7))
        says("in force; changed: policy.min_k")
        good = net.config_path(B).read_text()
        net.change(B, lambda fields: fields.update(listen="127.0.0.1:1"))
        says("restart the daemon: listen changed")
        net.config_path(B).write_text(good)
        net.change(B, lambda fields: fields["peers"].pop(C))
        says(f"in force; changed: peer {C} removed")
        assert daemons.running[B].process.poll() is None
