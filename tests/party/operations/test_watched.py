"""Probes, figures and the log's level of real daemons."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from jobs.errors import ConfigError, Exit
from party.operations.figures import FIGURES
from party.owner.in_force import InForce
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, Network, Processes, call, processes, sample_network, write_job
from tests.support.samples import PARTIES, joint_job

A, B, C = PARTIES


@dataclass
class Site:
    """A network of which one daemon tells what it does, and where."""

    net: Network
    address: str

    def asked(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=GUARD_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def figure(self, name: str) -> float:
        (line,) = [line for line in self.asked("/metrics")[1].splitlines() if line.startswith(f"{name} ")]
        return float(line.split()[1])


@pytest.fixture
def site(tmp_path: Path) -> Site:
    net = sample_network(tmp_path / "net")
    address = f"{HOST}:{free_ports([A])[A]}"
    net.change(A, lambda fields: fields.update(operations={"listen": address}))
    return Site(net, address)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GUARD_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_daemon_tells_that_it_lives_and_counts_jobs_by_how_they_ended(site: Site, tmp_path: Path) -> None:
    net, job = site.net, write_job(tmp_path / "job", joint_job())
    run = ("run", job, "--config", net.config_path("coordinator"), "--out")
    with processes(net):
        assert site.asked("/livez") == (200, "alive\n")
        assert site.asked("/readyz") == (200, '{"ready": true, "why_not": []}\n')
        status, text = site.asked("/metrics")
        assert (status, [name for name in FIGURES if f"\n{name}" not in text]) == (200, [])
        assert call(*run, tmp_path / "out").code == 0
        until(lambda: site.figure("jointcut_job_running") == 0)
        assert site.figure('jointcut_jobs_total{outcome="over"}') == 1
        net.change(A, lambda fields: fields["policy"].update(coordinators=[]))
        assert call(*run, tmp_path / "other").code == Exit.REFUSED
        until(lambda: site.figure('jointcut_jobs_total{outcome="refused"}') == 1)
        net.config_path(A).write_text("name: [")
        status, body = site.asked("/readyz")
        assert (status, json.loads(body)) == (503, {"ready": False, "why_not": ["configuration"]})
        assert site.asked("/livez")[0] == 200


def test_an_address_that_is_taken_ends_the_start(site: Site) -> None:
    with socket.create_server((HOST, int(site.address.rpartition(":")[2]))):
        ran = call("serve", "--config", site.net.config_path(A), program="party")
    assert ran.code == Exit.USAGE
    assert ran.problem["error"] == "config-invalid"
    assert "operations.listen" in ran.problem["remedy"]


def test_another_address_needs_a_restart(site: Site) -> None:
    force = InForce(site.net.config(A), site.net.config_path(A))
    site.net.change(A, lambda fields: fields.update(operations={"listen": f"{HOST}:1"}))
    with pytest.raises(ConfigError) as caught:
        force.refresh()
    assert "operations.listen" in caught.value.problem.private


def test_signals_change_how_much_is_logged_and_end_neither_daemon_nor_reader(
    site: Site, tmp_path: Path
) -> None:
    with processes(site.net) as running:
        process = running.running[A].process
        (reader,) = children_of(process.pid)
        for number, level in (
            (signal.SIGUSR1, "debug"),
            (signal.SIGUSR2, "info"),
            (signal.SIGUSR2, "warning"),
        ):
            os.kill(reader, number)
            running.signal(A, number)
            until(partial(told, running, level))
        assert children_of(process.pid) == [reader]
        job = write_job(tmp_path / "job", joint_job())
        ran = call("run", job, "--config", site.net.config_path("coordinator"), "--out", tmp_path / "out")
        assert ran.code == 0
        assert {line.get("level") for line in running.log_of_this_life(A)} <= {None, "warning", "error"}


def told(running: Processes, level: str) -> bool:
    return [line["log_level"] for line in running.log_of_this_life(A) if "log_level" in line][-1:] == [level]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
