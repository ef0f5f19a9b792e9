"""`party audit` on an audit that somebody wrote to, or took away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crypto.rng import SystemRng
from party.owner.audit import Audit
from tests.support.commands import Ran, invoke
from tests.support.network import Network, sample_network
from tests.support.samples import PARTIES

A = PARTIES[0]


@pytest.fixture
def net(tmp_path: Path) -> Network:
    return sample_network(tmp_path / "net")


def audit_of(net: Network) -> Audit:
    return Audit(net.config(A).state_dir, SystemRng())


def audit(net: Network, *arguments: str) -> Ran:
    return invoke("party", "audit", *arguments, "--config", net.config_path(A))


def forge(net: Network, **fields: Any) -> None:
    own = {"line": 2, "time": "2026-01-02T12:00:00+00:00", "event": "stop", "salt": "", "before": ""}
    with audit_of(net).path.open("ab") as file:
        file.write(json.dumps(own | fields).encode() + b"\n")


def test_forged_lines_are_exported(net: Network) -> None:
    audit_of(net).note("serve", {})
    forge(net, time="yesterday")
    forge(net, time="2026-01-02T12:00:00")
    forge(net, user="\ud800")
    ran = audit(net, "export", "--from", "2026-01-02", "--to", "2026-01-02")
    assert (ran.code, ran.err) == (0, "")
    head, *rows = ran.out.splitlines()
    assert head == "line,time,event,facts"
    assert [row.split(",")[1] for row in rows] == [
        "yesterday",
        "2026-01-02T12:00:00",
        "2026-01-02T12:00:00+00:00",
    ]
    assert "\\ud800" in rows[2]
