"""Monitor of a daemon: probes, metrics, `grpc.health.v1`."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from jobs.errors import ANSWERS, ConfigError, Exit, Problem
from party import monitor
from party.cli import serve
from party.monitor import Monitor
from party.net.server import PartyServer
from party.owner.approvals import Approvals
from party.owner.counts import TOLD, Counts, Watched
from party.owner.in_force import InForce
from party.place import Place, Ticket
from tests.support.calls import raw
from tests.support.commands import Ran, invoke
from tests.support.house import House
from tests.support.loopback import free_ports
from tests.support.monitors import asked, watched
from tests.support.network import GUARD_S, Network, processes, sample_network, serving, write_job
from tests.support.samples import PARTIES, joint_job
from tests.support.waiting import until

A, B, C = PARTIES


def metrics(address: str) -> dict[str, float]:
    """Return the samples by name and labels."""
    status, text = asked(address, "/metrics")
    assert status == 200
    return {
        "".join([sample.name, *(f"{{{value}}}" for value in sample.labels.values())]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def net(tmp_path: Path) -> Network:
    made = sample_network(tmp_path / "net")
    write_job(tmp_path, joint_job())
    return made


def test_a_daemon_is_watched(net: Network) -> None:
    address, house = watched(net, A), House(net)
    with processes(net) as daemons:
        until(lambda: _answers(address))
        assert asked(address, "/livez") == (200, "ok\n")
        assert asked(address, "/readyz") == (200, "ok\n")
        before = metrics(address)
        assert before["jointcut_jobs_begun_total"] == before["jointcut_job_running"] == 0
        assert house.run("out").code == 0
        until(lambda: metrics(address)["jointcut_jobs_ended_total"] == 1)
        after = metrics(address)
        assert after["jointcut_jobs_begun_total"] == 1
        assert after["jointcut_problems_total{policy-refused}"] == 0
        ends = {name for name in after if name.startswith("jointcut_certificate_expiry")}
        assert len(ends) == len(PARTIES) + 1
        net.change(A, lambda fields: fields["policy"].update(min_k=1000))
        assert house.run("again").code == 4
        until(lambda: metrics(address)["jointcut_problems_total{policy-refused}"] == 1)
        net.change(A, lambda fields: fields["policy"].update(min_k="many"))
        assert asked(address, "/readyz") == (503, "config-changed: see the log\n")
        assert asked(address, "/livez")[0] == 200
        daemons.signal(A, signal.SIGTERM)
        daemons.running[A].process.wait(GUARD_S)
        assert not _answers(address)


def probed(net: Network, question: str) -> Ran:
    return invoke("party", "probe", question, "--config", net.config_path(A), "--format", "json")


def test_a_probe_says_what_is_wrong_with_the_own_daemon(net: Network) -> None:
    address = watched(net, A)
    ran = probed(net, "livez")
    assert (ran.code, ran.problem["error"]) == (Exit.UNREACHABLE, "daemon-not-ready")
    assert ran.problem["message"] == f"the daemon does not answer at {address} (`monitor`)"
    assert "party serve" in ran.problem["remedy"]
    with processes(net, only=[A]):
        until(lambda: _answers(address))
        ran = probed(net, "readyz")
        assert (ran.code, json.loads(ran.out)) == (0, {"name": A, "readyz": "ok"})
        state = net.config(A).state_dir
        state.rename(net.root / "moved")
        assert "config-changed" in probed(net, "readyz").problem["message"]
        (net.root / "moved").rename(state)
        assert probed(net, "readyz").code == 0
        net.change(A, lambda fields: fields.update(listen="127.0.0.1:1"))
        ran = probed(net, "readyz")
        assert (ran.code, ran.problem["error"]) == (Exit.UNREACHABLE, "daemon-not-ready")
        assert ran.problem["message"] == "the daemon is not ready for a job: config-changed: see the log"
        assert ran.problem["party"] == A
        assert probed(net, "livez").code == 0
        net.change(A, lambda fields: fields.update(no_such_key=1))
        assert (ran := probed(net, "livez")).code == Exit.USAGE, ran.err
        there = invoke("party", "probe", "livez", "--at", address, "--format", "json")
        assert (there.code, json.loads(there.out)) == (0, {"name": None, "livez": "ok"})


@pytest.mark.parametrize("at", ["9464", "10.0.0.1:9464", "localhost:9464", "127.0.0.1:0", "127.0.0.1:99999"])
def test_a_probe_asks_this_machine_alone(at: str) -> None:
    ran = invoke("party", "probe", "livez", "--at", at, "--format", "json")
    assert (ran.code, ran.problem["error"]) == (Exit.USAGE, "usage")
    assert f"--at {at}: " in ran.problem["message"]


def _answers(address: str) -> bool:
    try:
        return asked(address, "/livez")[0] == 200
    except OSError:
        return False


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def address() -> str:
    """Address at which nobody listens."""
    (port,) = free_ports(["m"]).values()
    return f"127.0.0.1:{port}"


def alone(
    net: Network, counts: Counts, address: str, asking: Callable[[], Any], *, stopping: bool = False
) -> Any:
    """Ask a monitor of an event loop that runs meanwhile."""
    place = Place(closed=stopping, _queue=[Ticket("coordinator")] * 3)

    async def scenario() -> Any:
        made = Monitor(Watched(counts, place, InForce(net.config(A))), address)
        made.start()
        try:
            return await asyncio.to_thread(asking)
        finally:
            await asyncio.to_thread(made.stop)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("method", "path", "host", "status"),
    [
        ("GET", "/livez", "localhost:9464", 200),
        ("HEAD", "/livez", "127.0.0.1", 200),
        ("GET", "/livez", "evil.example:9464", 403),
        ("GET", "/metrics", "127.0.0.1.evil.example", 403),
        ("POST", "/livez", "127.0.0.1", 405),
        ("DELETE", "/metrics", "127.0.0.1", 405),
        ("GET", "/", "127.0.0.1", 404),
        ("GET", "/metrics/../livez", "127.0.0.1", 404),
    ],
)
def test_what_is_answered(
    net: Network, counts: Counts, address: str, method: str, path: str, host: str, status: int
) -> None:
    assert alone(net, counts, address, lambda: asked(address, path, method, host=host))[0] == status


def test_a_daemon_that_stops_is_not_ready(net: Network, counts: Counts, address: str) -> None:
    said = alone(net, counts, address, lambda: asked(address, "/readyz"), stopping=True)
    assert said == (503, "the daemon is about to stop\n")


def test_an_event_loop_that_hangs_is_told(
    net: Network, counts: Counts, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_LOOP_S", 0.1)

    async def scenario() -> tuple[int, str]:
        made = Monitor(Watched(counts, Place(), InForce(net.config(A))), address)
        made.start()
        asking = asyncio.get_running_loop().run_in_executor(None, asked, address, "/livez")
        time.sleep(1)  # the loop hangs
        try:
            return await asking
        finally:
            await asyncio.to_thread(made.stop)

    assert asyncio.run(scenario()) == (503, "the event loop does not answer\n")


def test_silent_clients_do_not_pile_up(
    net: Network, counts: Counts, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "_CLIENT_S", 0.3)
    host, port = address.rsplit(":", 1)

    def asking() -> tuple[int, str]:
        silent = [
            socket.create_connection((host, int(port)), timeout=GUARD_S) for _ in range(monitor._MOST + 8)
        ]
        try:
            hung_up = sum(each.recv(1) == b"" for each in silent)
            assert hung_up == len(silent)
            return asked(address, "/livez")
        finally:
            for each in silent:
                each.close()

    assert alone(net, counts, address, asking) == (200, "ok\n")


def test_a_client_that_sends_a_byte_now_and_then_is_hung_up_on(
    net: Network, counts: Counts, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes before the time is over, the request after it."""
    monkeypatch.setattr(monitor, "_CLIENT_S", 0.5)
    host, port = address.rsplit(":", 1)

    def asking() -> int:
        with socket.create_connection((host, int(port)), timeout=GUARD_S) as slow:
            slow.settimeout(0.1)
            for number in range(int(GUARD_S / 0.1)):
                try:
                    slow.send(b"G")
                    if slow.recv(1) == b"":
                        return number
                except TimeoutError:
                    continue
                except OSError:
                    return number
        raise AssertionError("the monitor still reads")

    assert alone(net, counts, address, asking) > 0


def test_approvals_that_cannot_be_read_are_told(
    net: Network, counts: Counts, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each probe hears of it; the log has one line until the reason changes."""
    (net.config(A).state_dir).mkdir(parents=True, exist_ok=True)
    approvals = net.config(A).state_dir / "approvals.sqlite"

    def probes() -> None:
        for _ in range(2):
            approvals.write_bytes(b"no database" * 100)
            for _ in range(3):
                assert asked(address, "/readyz") == (503, "io-failed: see the log\n")
            approvals.unlink()
            assert asked(address, "/readyz") == (200, "ok\n")

    alone(net, counts, address, probes)
    assert sum("not ready for a job" in line for line in caplog.messages) == 2
    approvals.write_bytes(b"no database" * 100)
    assert "jointcut_proposals_waiting" not in alone(net, counts, address, lambda: metrics(address))


@pytest.mark.parametrize(("approval", "n_waiting"), [("required", 1), ("automatic", 0)])
def test_a_proposal_waits_where_the_policy_asks_for_a_decision(
    net: Network, counts: Counts, address: str, approval: str, n_waiting: int
) -> None:
    net.change(A, lambda fields: fields["policy"].update(approval=approval))
    net.config(A).state_dir.mkdir(exist_ok=True)
    assert Approvals(net.config(A).state_dir).propose(net.task, "coordinator", datetime.now(UTC))
    assert alone(net, counts, address, lambda: metrics(address))["jointcut_proposals_waiting"] == n_waiting


def test_no_count_depends_on_rows(net: Network, counts: Counts, address: str) -> None:
    for error_id in (
        "requirement-unmet",
        "data-unknown-value",
        "too-many-sequences",
        "cancelled",
        "bug",
        "peer-lost",
    ):
        counts.note(Problem(error_id, "x"), at_the_door=False)
    counts.note(Problem("policy-refused", "x"), at_the_door=False)  # as of `own_k`, which rows decide
    assert dict(counts.problems) == {"peer-lost": 1}
    assert not TOLD & set(ANSWERS)
    found = alone(net, counts, address, lambda: metrics(address))
    assert found["jointcut_problems_total{peer-lost}"] == 1
    assert found["jointcut_jobs_queued"] == 3
    assert not any("requirement" in name for name in found)


def test_peers_hear_that_a_daemon_is_about_to_stop(net: Network) -> None:
    async def scenario() -> tuple[int, int, grpc.StatusCode]:
        request = health_pb2.HealthCheckRequest(service="jointcut.v1.Control")
        server = PartyServer(net.config(A), serve.Daemon, net.config_path(A))
        await server.answer_health()
        await server.start()
        try:
            async with raw(net, B, A) as channel:
                stub = health_pb2_grpc.HealthStub(channel)
                before = (await stub.Check(request)).status
                await server.drain()
                after = (await stub.Check(request)).status
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stub.Check(health_pb2.HealthCheckRequest(service="other"))
            return before, after, caught.value.code()
        finally:
            await server.stop()

    serving_now, stopping = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
    assert asyncio.run(scenario()) == (serving_now, stopping, grpc.StatusCode.NOT_FOUND)


def test_without_a_monitor_nobody_hears_of_health(net: Network) -> None:
    async def scenario() -> grpc.StatusCode:
        async with serving(net, only=[A]), raw(net, B, A) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            return caught.value.code()

    assert asyncio.run(scenario()) == grpc.StatusCode.UNIMPLEMENTED


def test_a_monitor_needs_its_packages(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    watched(net, A)
    monkeypatch.delitem(sys.modules, "party.monitor", raising=False)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    async def scenario() -> None:
        await serve._monitor(net.config(A), PartyServer(net.config(A), serve.Daemon))

    with pytest.raises(ConfigError) as caught:
        asyncio.run(scenario())
    assert caught.value.problem.error_id == "extra-missing"
    assert "jointcut[monitor]" in caught.value.problem.remedy


def test_a_port_that_is_taken_is_named(net: Network, counts: Counts, address: str) -> None:
    host, port = address.rsplit(":", 1)
    with socket.create_server((host, int(port))), pytest.raises(ConfigError) as caught:
        alone(net, counts, address, lambda: None)
    assert f"cannot listen on {address} (`monitor`)" in caught.value.problem.message


def test_a_monitor_is_on_this_machine_alone(net: Network) -> None:
    net.change(A, lambda fields: fields.update(monitor="0.0.0.0:9464"))
    with pytest.raises(ConfigError, match="is not on this machine alone"):
        net.config(A)


def test_the_log_has_no_line_of_a_probe(net: Network) -> None:
    address = watched(net, A)
    with processes(net, only=[A]) as daemons:
        until(lambda: _answers(address))
        before = daemons.log(A)
        for path in ("/livez", "/readyz", "/metrics", "/x"):
            asked(address, path)
        assert daemons.log(A) == before
        assert all(json.loads(line) for line in before.splitlines())
