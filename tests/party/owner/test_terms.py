"""What a daemon works under, as its audit has it; and that nothing is in force that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, PartyError
from party.owner.audit import FOLDER, Audit
from party.owner.audit_check import lines_of
from party.owner.in_force import InForce
from party.owner.terms import terms
from tests.support.network import Network, sample_network
from tests.support.samples import PARTIES

A, B, C = PARTIES


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def watched(net: Network, told: Any) -> InForce:
    return InForce(net.config(A), net.config_path(A), told)


def test_the_first_line_has_policy_and_certificates(net: Network) -> None:
    settings = watched(net, None).settings
    found = terms(settings, None)
    assert (found["name"], found["since"]) == (A, "start")
    assert found["peers"] == {name: settings.peers[name].fingerprint for name in (B, C, "coordinator")}
    assert found["policy"]["coordinators"] == ["coordinator"]
    assert "changed" not in found


def test_what_changed_is_named(net: Network) -> None:
    found: list[dict[str, Any]] = []
    in_force = watched(net, lambda now, before: found.append(terms(now, before)))
    in_force.refresh()
    assert found == []
    net.change(A, lambda fields: fields["policy"].update(min_k=7))
    net.change(A, lambda fields: fields.update(timeouts={"round_s": 5}))
    net.change(A, lambda fields: fields["peers"].pop(C))
    in_force.refresh()
    (line,) = found
    assert line["changed"] == [
        "peers.hospital-c",
        "peers.hospital-c.certificate",
        "policy.min_k",
        "timeouts.round_s",
    ]
    assert line["policy"]["min_k"] == 7
    Audit(net.root / A / "state").write("configuration", **line)
    (written,) = lines_of(net.root / A / "state" / FOLDER)
    assert written.fields["changed"] == line["changed"]


def test_nothing_is_in_force_that_is_not_in_the_audit(net: Network) -> None:
    def refuse(*_: Any) -> None:
        raise PartyError("audit-failed", "says the test")

    in_force = watched(net, refuse)
    before = in_force.settings
    net.change(A, lambda fields: fields["policy"].update(min_k=7))
    with pytest.raises(ConfigError):
        in_force.refresh()
    assert in_force.latest() is before
