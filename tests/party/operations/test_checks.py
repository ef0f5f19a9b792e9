"""What `party check` finds, thing by thing, and over real daemons."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit, TransportError
from party.net.control import Described
from party.net.protocol import OURS, Talked
from party.operations import checks as module
from party.operations.checks import (
    FAIL,
    PASS,
    WARN,
    Finding,
    first_failed,
    own_findings,
    peer_findings,
    worst,
)
from party.owner.config import RELAYED
from party.owner.identity import WARN_DAYS
from party.owner.in_force import Running
from tests.support.commands import invoke
from tests.support.duplex import run
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import Network, call, processes, sample_network
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    found = sample_network(tmp_path / "net")
    found.config(A).state_dir.mkdir(mode=0o700, exist_ok=True)
    return found


def own(net: Network, subject: str, daemon: Running | None = None) -> Finding:
    (found,) = [each for each in own_findings(net.config(A), daemon) if each.subject == subject]
    return found


def test_a_party_in_order(net: Network) -> None:
    running = Running(7, "now", True, ())
    assert {each.result for each in own_findings(net.config(A), running)} == {PASS}
    subjects = [each.subject for each in own_findings(net.config(A), running)]
    assert subjects == ["certificate", B, C, "coordinator", "key", "state", "disk", "daemon"]


def test_a_certificate_near_its_end(net: Network) -> None:
    write_credentials(net.root / A / "tls", certificate_for([A], days=(-1, WARN_DAYS - 1)))
    assert own(net, "certificate").result == WARN
    assert "party renew" in own(net, "certificate").remedy


def test_a_key_for_everybody(net: Network) -> None:
    key = net.config(A).tls.key
    for mode, result in ((0o640, PASS), (0o644, WARN)):
        key.chmod(mode)
        assert own(net, "key").result == result


def test_a_state_folder_for_others_gone_or_not_ours(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    state = net.config(A).state_dir
    state.chmod(0o755)
    assert own(net, "state").result == WARN
    state.rmdir()
    assert own(net, "state").result == PASS
    assert not state.exists()

    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(module, "_touch", refused)
    found = own(net, "state")
    assert (found.result, "Permission denied" in found.message) == (FAIL, True)


def test_looking_leaves_nothing_in_the_state_folder(net: Network) -> None:
    own(net, "state")
    assert list(net.config(A).state_dir.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "result"),
    [
        (module.LEAST_FREE_BYTES - 1, FAIL),
        (module.LEAST_FREE_BYTES, WARN),
        (module.ENOUGH_FREE_BYTES - 1, WARN),
        (module.ENOUGH_FREE_BYTES, PASS),
    ],
)
def test_room_on_the_disk(net: Network, monkeypatch: pytest.MonkeyPatch, free: int, result: str) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda _: free)
    assert own(net, "disk").result == result


def test_what_the_daemon_works_under(net: Network) -> None:
    assert own(net, "daemon").result == WARN
    assert own(net, "daemon", Running(7, "now", False, ())).result == PASS
    assert own(net, "daemon", Running(7, "now", False, ("listen",))).result == WARN


# ---- peers


def saying(**said: Any) -> Callable[[str, str], Awaitable[Described]]:
    async def describe(peer: str, address: str) -> Described:
        return Described(**{"name": peer, "talked": OURS, "clock_s": 0.0, "round_trip_s": 0.5} | said)

    return describe


def peers(
    net: Network, describe: Callable[[str, str], Awaitable[Described]], subject: str = B
) -> list[Finding]:
    found = run(peer_findings(net.config(A), describe))
    return [each for each in found if each.subject == subject]


def test_a_peer_in_order(net: Network) -> None:
    assert [each.result for each in peers(net, saying())] == [PASS] * 3
    (called,) = peers(net, saying(), "coordinator")
    assert (called.result, "not called" in called.message) == (PASS, True)


@pytest.mark.parametrize(
    ("clock_s", "result"),
    [
        (0.0, PASS),
        (60.2, PASS),
        (-60.2, PASS),
        (60.3, WARN),
        (-60.3, WARN),
        (300.2, WARN),
        (300.3, FAIL),
        (-300.3, FAIL),
        (None, WARN),
    ],
)
def test_clocks_that_differ(net: Network, clock_s: float | None, result: str) -> None:
    """By more than a minute beyond what the round trip leaves open; by five a new certificate is refused."""
    assert peers(net, saying(clock_s=clock_s))[2].result == result


def test_another_version_and_another_name(net: Network) -> None:
    former = Talked(OURS.oldest, OURS.oldest, "0.9")
    assert [each.result for each in peers(net, saying(talked=former))] == [PASS, WARN, PASS]
    assert f"both speak protocol {OURS.oldest}" in peers(net, saying(talked=former))[1].message
    later = Talked(OURS.newest + 1, OURS.newest + 2, "9.9")
    assert [each.result for each in peers(net, saying(talked=later))] == [PASS, FAIL, PASS]
    assert [each.result for each in peers(net, saying(name=C))] == [FAIL, PASS, PASS]


def test_a_peer_that_is_not_reached_hides_no_other(net: Network) -> None:
    async def describe(peer: str, address: str) -> Described:
        if peer == B:
            raise TransportError("peer-unreachable", "no", party=B, private="at the owner's address")
        return await saying()(peer, address)

    (found,) = peers(net, describe)
    assert (found.result, "the owner's address" in found.message) == (FAIL, True)
    assert len(peers(net, describe, C)) == 3
    error = first_failed([found])
    assert error is not None
    assert error.problem.exit_code is Exit.UNREACHABLE


def test_a_peer_without_an_address(net: Network) -> None:
    net.change(A, lambda fields: fields["peers"][B].pop("address"))
    net.change(A, lambda fields: fields.update(addresses_from_jobs=False))
    (found,) = peers(net, saying())
    assert found.result == WARN


def test_a_party_behind_our_relay_is_called_through_it_and_a_coordinator_is_not(net: Network) -> None:
    net.change(A, lambda fields: fields["peers"][B].pop("address"))
    relay = {"address": "relay:7443", "certificate": "peers/relay.pem"}
    net.change(A, lambda fields: fields.update(relay=relay))
    found = peers(net, saying())
    assert [each.result for each in found] == [PASS] * 3
    assert f"answers at {RELAYED}" in found[0].message
    (called,) = peers(net, saying(), "coordinator")
    assert "not called" in called.message


def test_the_worst_counts() -> None:
    found = [Finding(result, "x", "y") for result in (PASS, FAIL, WARN)]
    assert (worst(found), worst(found[::2]), worst([])) == (FAIL, WARN, PASS)
    assert first_failed(found[::2]) is None
    assert first_failed(found) is not None


# ---- the command, over real daemons


def test_check_calls_the_peers(net: Network) -> None:
    with processes(net, [A, B]):
        ran = call("check", "--config", net.config_path(A), "--format", "json", program="party")
        assert ran.code == Exit.UNREACHABLE
        said = json.loads(ran.out)
        assert said["result"] == FAIL
        by_peer = {name: [each for each in said["checks"] if each["subject"] == name] for name in (B, C)}
        assert [each["result"] for each in by_peer[B]] == [PASS] * 4
        assert [each["result"] for each in by_peer[C]] == [PASS, FAIL]
        assert by_peer[C][1]["error"] == ran.problem["error"] == "peer-unreachable"
        text = call("check", "--config", net.config_path(A), program="party")
    assert f"{B}   PASS  answers at {net.addresses[B]}" in text.out
    (line,) = [line for line in text.out.splitlines() if "FAIL" in line]
    assert "Connection refused" in line
    assert "What to do: " in line


def test_offline_nobody_is_called(net: Network) -> None:
    ran = invoke("party", "check", "--config", net.config_path(A), "--offline", "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["result"] == WARN  # no daemon runs
