"""Commands of a coordinator and of the owners of a network, about one job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from party.owner.audit import AUDIT
from tests.support.commands import Ran, invoke
from tests.support.network import Network
from tests.support.samples import PARTIES


def lines_of(state_dir: Path) -> list[dict[str, Any]]:
    """Return the lines of an audit."""
    return [json.loads(line) for line in (state_dir / AUDIT).read_bytes().splitlines()]


class House:
    """Commands of the coordinator and of the owners, about the job beside a network."""

    def __init__(self, net: Network, name: str = "coordinator") -> None:
        self.net = net
        self.name = name
        self.job = net.root.parent / "job.yaml"

    @property
    def digest(self) -> str:
        return self.net.task.digest.hex()

    def coordinator(self, command: str, *more: str | Path) -> Ran:
        return invoke("coordinator", command, self.job, *more, "--config", self.net.config_path(self.name))

    def run(self, out: str) -> Ran:
        return self.coordinator("run", "--out", self.net.root / out, "--format", "json")

    def states(self) -> dict[str, str]:
        said = self.coordinator("status", "--format", "json")
        found = json.loads(said.out)["parties"]
        assert isinstance(found, dict)
        return found

    def audit(self, name: str) -> list[dict[str, Any]]:
        return lines_of(self.net.config(name).state_dir)

    def owner(self, name: str, command: str, *more: str | Path) -> Ran:
        return invoke("party", command, *more, "--config", self.net.config_path(name))

    def all_approve(self, *more: str) -> None:
        for name in PARTIES:
            assert self.owner(name, "approve", self.digest[:8], *more).code == 0
