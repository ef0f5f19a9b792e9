"""Checks of `party check`: PASS, WARN or FAIL, and what to do."""

from __future__ import annotations

import errno
import json
import shutil
import tempfile
import types
from pathlib import Path
from typing import Any

import pytest

from jobs.version import __version__
from party.cli.checks import FAIL_BYTES, WARN_BYTES, checks_of_peers, checks_of_state
from party.net import server
from tests.support.commands import Ran, invoke
from tests.support.five import horizontal
from tests.support.identities import certificate_for
from tests.support.network import Network, sample_network, served, write_job
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    made = sample_network(tmp_path / "net")
    made.change(A, lambda fields: fields["peers"]["coordinator"].pop("address", None))
    return made


def checked(net: Network, *more: str) -> Ran:
    return invoke("party", "check", "--config", net.config_path(A), *more)


def statuses(ran: Ran) -> dict[str, str]:
    return {each["about"]: each["status"] for each in json.loads(ran.out)["checks"]}


def test_a_party_in_order_passes(net: Network) -> None:
    net.change(A, lambda fields: fields["peers"][B].update(address=net.addresses[B]))
    net.change(A, lambda fields: fields["peers"][C].update(address=net.addresses[C]))
    with served(net):
        ran = checked(net, "--peers", "--format", "json")
        assert ran.code == 0, ran.err
        found = statuses(ran)
        assert set(found.values()) == {"PASS"}
        assert {f"peer {B}", f"peer {C}", "state folder", "disk", f"certificate of {A}"} <= set(found)
        assert f"PASS         peer {B}: {net.addresses[B]}, version" in checked(net, "--peers").out


def test_a_party_that_is_not_reached_fails(net: Network) -> None:
    net.change(A, lambda fields: fields["peers"][B].update(address=net.addresses[B]))
    net.change(A, lambda fields: fields.update(timeouts={"connect_s": 1}))
    ran = checked(net, "--peers")
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if f"peer {B}" in line]
    assert line.startswith("  FAIL")
    assert "Connection refused" in line
    assert "What to do" in line
    assert f"checks failed: peer {B}" in ran.err


@pytest.mark.parametrize(("days", "status"), [((-1, 400), "PASS"), ((-1, 20), "WARN"), ((-30, -1), "WARN")])
def test_the_certificate_of_the_relay_is_checked(net: Network, days: tuple[int, int], status: str) -> None:
    file = net.root / "relay.pem"
    file.write_bytes(certificate_for(["relay"], days=days).certificate)
    relay = {"address": "127.0.0.1:1", "certificate": str(file)}
    net.change(A, lambda fields: fields.update(relay=relay))
    ran = checked(net, "--format", "json")
    assert ran.code == 0, ran.err
    fields = json.loads(ran.out)
    checks = {each["about"]: each for each in fields["checks"]}
    found = checks["certificate of relay"]
    assert found["status"] == status
    assert fields["warnings"] == ({} if status == "PASS" else {"relay": found["words"]})
    assert checks[f"certificate of {A}"]["status"] == "PASS"


def test_nobody_is_called_without_being_asked_for(net: Network) -> None:
    net.change(A, lambda fields: fields["peers"][B].update(address=net.addresses[B]))
    assert checked(net).code == 0


def test_with_a_job_those_are_called_that_the_job_lets_us_call(tmp_path: Path) -> None:
    """Of five parties p1 and p3 are the compute pair; p2 calls p3, and p1 calls p2."""
    asked = horizontal()
    net = sample_network(tmp_path / "net", **{key: asked[key] for key in ("parties", "leader", "deputy")})
    job = write_job(tmp_path / "job", asked)
    for name in ("p0", "p1", "p3", "p4"):
        net.change("p2", lambda fields, name=name: fields["peers"][name].update(address=net.addresses[name]))
    net.change("p2", lambda fields: fields.update(timeouts={"connect_s": 2}))

    def found(*more: str | Path) -> tuple[int, dict[str, tuple[str, str]]]:
        ran = invoke(
            "party", "check", "--peers", *more, "--config", net.config_path("p2"), "--format", "json"
        )
        checks = json.loads(ran.out)["checks"]
        of_peers = [each for each in checks if each["about"].startswith("peer ")]
        return ran.code, {
            each["about"].removeprefix("peer "): (each["status"], each["words"]) for each in of_peers
        }

    with served(net, only=["p3"]):
        code, of_job = found("--job", job)
        assert code == 0
        assert list(of_job) == ["p0", "p1", "p3", "p4"]
        assert of_job["p0"] == ("PASS", "not called: in this job p1 carries the messages between us")
        assert of_job["p1"] == ("PASS", "not called: in this job the peer calls us")
        assert of_job["p3"][0] == "PASS"
        assert of_job["p3"][1].startswith(f"{net.addresses['p3']}, version")
        code, of_peers = found()
        assert code == 1
        assert [name for name, (status, _) in of_peers.items() if status == "FAIL"] == ["p0", "p1", "p4"]
        assert of_peers["p0"][1].endswith("Does a job need the call? party check --peers --job FILE")
    code, of_job = found("--job", job)
    assert (code, of_job["p3"][0], of_job["p1"][0]) == (1, "FAIL", "PASS")
    net.change("p2", lambda fields: fields["peers"]["p3"].pop("address"))
    net.change("p2", lambda fields: fields.update(addresses_from_jobs=False))
    code, of_job = found("--job", job)
    assert (code, of_job["p3"][0]) == (1, "FAIL")
    assert "does not say where p3 is reached" in of_job["p3"][1]


def test_versions_and_clocks_are_compared(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [name for name in net.roster if name != A]
    for name in others:  # nobody is absent, so nothing is waited for
        net.change(A, lambda fields, name=name: fields["peers"][name].update(address=net.addresses[name]))
    with served(net, only=others):
        first, second, *_ = __version__.split(".")
        for version, status in ((f"{first}.{int(second) + 1}.7", "WARN"), ("9.9.1", "FAIL"), ("?", "FAIL")):
            monkeypatch.setattr(server, "__version__", version)
            (found,) = [each for each in checks_of_peers(net.config(A)) if each.about == f"peer {B}"]
            assert (found.status, "agree with" in found.words) == (status, True)
        monkeypatch.undo()
        monkeypatch.setattr(
            server, "time", types.SimpleNamespace(time_ns=lambda: 10**15, sleep=lambda _: None)
        )
        (found,) = [each for each in checks_of_peers(net.config(A)) if each.about == f"peer {B}"]
        assert found.status == "WARN"
        assert "s behind ours. What to do: let both machines ask a time server" in found.words


@pytest.mark.parametrize(
    ("free", "status"),
    [(WARN_BYTES, "PASS"), (WARN_BYTES - 1, "WARN"), (FAIL_BYTES, "WARN"), (FAIL_BYTES - 1, "FAIL")],
)
def test_space_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    usage: Any = lambda _: types.SimpleNamespace(free=free)  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)
    *_, disk = checks_of_state(tmp_path / "not" / "there")
    assert disk.status == status
    assert ("What to do" in disk.words) == (status != "PASS")
    assert not (tmp_path / "not").exists()


def test_a_full_disk_asks_for_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    (found,) = checks_of_state(tmp_path)
    assert (found.status, "What to do: free space" in found.words) == ("FAIL", True)


def test_a_state_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (found,) = checks_of_state(tmp_path / "file" / "state")
    assert found.status == "FAIL"
    assert "cannot be written" in found.words


def test_a_state_folder_behind_a_link_to_nothing_fails(tmp_path: Path) -> None:
    """The disk that the link leads to is not mounted: the daemon does not start."""
    (tmp_path / "state").symlink_to(tmp_path / "nowhere")
    (found,) = checks_of_state(tmp_path / "state")
    assert (found.status, found.about) == ("FAIL", "state folder")
    assert f"{tmp_path / 'state'} cannot be written" in found.words
