"""Whether a daemon would take a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from party.owner import readiness as module
from party.owner.in_force import InForce
from party.owner.readiness import REASONS, Readiness
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import Network, sample_network
from tests.support.samples import PARTIES

A = PARTIES[0]


@pytest.fixture
def net(tmp_path: Path) -> Network:
    found = sample_network(tmp_path / "net")
    found.config(A).state_dir.mkdir(exist_ok=True)
    return found


def readiness_of(net: Network) -> Readiness:
    return Readiness(InForce(net.config(A), net.config_path(A)), net.config(A).state_dir)


def test_ready_until_it_leaves(net: Network) -> None:
    ready = readiness_of(net)
    assert ready.why_not() == ()
    ready.leaving = True
    assert ready.why_not() == ("leaving",)


def test_a_change_that_can_be_taken_over_is_no_reason_and_is_not_taken_over(net: Network) -> None:
    in_force = InForce(net.config(A), net.config_path(A))
    before = in_force.settings
    net.change(A, lambda fields: fields["policy"].update(min_k="7"))
    assert Readiness(in_force, net.config(A).state_dir).why_not() == ()
    assert in_force.settings is before


@pytest.mark.parametrize("listen", ["127.0.0.1:1", None])
def test_files_that_cannot_be_taken_over(net: Network, listen: str | None) -> None:
    ready = readiness_of(net)
    if listen:
        net.change(A, lambda fields: fields.update(listen=listen))
    else:
        net.config_path(A).write_text("name: [")
    assert ready.why_not() == ("configuration",)


def test_an_own_certificate_that_has_expired(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = readiness_of(net)
    write_credentials(net.root / A / "tls", certificate_for([A], days=(-30, -1)))
    assert ready.why_not() == ("configuration",)  # such files cannot be taken over either
    settings = ready._in_force.settings
    expired = type(settings.credentials)(
        (net.root / A / "tls" / "certificate.pem").read_bytes(), settings.credentials.key
    )
    monkeypatch.setattr(ready._in_force, "_taken_over", lambda before: before)
    object.__setattr__(settings, "credentials", expired)
    assert ready.why_not() == ("certificate",)


def test_a_state_folder_that_is_full_or_gone(net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = readiness_of(net)
    with monkeypatch.context() as patched:
        patched.setattr(module, "free_bytes", lambda _: module.LEAST_FREE_BYTES - 1)
        assert ready.why_not() == ("state",)
        patched.setattr(module, "free_bytes", lambda _: module.LEAST_FREE_BYTES)
        assert ready.why_not() == ()
    net.config(A).state_dir.rmdir()
    assert ready.why_not() == ("state",)


def test_several_reasons_come_in_their_order(net: Network) -> None:
    ready = readiness_of(net)
    ready.leaving = True
    net.config(A).state_dir.rmdir()
    net.config_path(A).write_text("name: [")
    assert ready.why_not() == tuple(reason for reason in REASONS if reason != "certificate")
