"""Unit, chart, alerts and dashboard of a party that is watched."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from party.cli.commands import COMMANDS
from party.monitor import _Metrics
from party.owner.config import Timeouts
from party.owner.counts import Counts, Watched
from party.owner.in_force import InForce
from party.place import Place
from tests.support.network import sample_network
from tests.support.samples import PARTIES

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "jointcut-party"
PARTY_UNIT, RELAY_UNIT = "jointcut-party.service", "jointcut-relay.service"
ACCOUNTS_S = 20


@pytest.fixture
def told(tmp_path: Path) -> set[str]:
    """Names of the metrics of a monitor."""
    config = sample_network(tmp_path / "net").config(PARTIES[0])
    watched = Watched(Counts(), Place(), InForce(config))
    return {sample.name for family in _Metrics(watched).collect() for sample in family.samples}


@pytest.mark.parametrize("file", ["alerts.yaml", "dashboard.json"])
def test_only_metrics_that_exist_are_asked_for(told: set[str], file: str) -> None:
    text = (DEPLOY / "monitoring" / file).read_text()
    assert json.loads(text) if file.endswith("json") else yaml.safe_load(text)
    asked = set(re.findall(r"jointcut_[a-z_]+", text))
    assert asked
    assert asked <= told


def test_each_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text())["groups"]
    assert all(set(rule["annotations"]) == {"summary", "action"} for rule in group["rules"])


def rendered(values: Any) -> list[Any]:
    """Render the template of the chart as helm does, for the few forms that it uses."""
    text = (CHART / "templates" / "party.yaml").read_text().replace("{{ .Release.Name }}", "north")

    def value(path: str) -> Any:
        found = values
        for part in path.split("."):
            found = found[part]
        return found

    def block(match: re.Match[str]) -> str:
        indent = " " * int(match[2])
        return (
            "\n"
            + "".join(f"{indent}{line}\n" for line in yaml.safe_dump(value(match[1])).splitlines()).rstrip()
        )

    text = re.sub(r"\s*\{\{- toYaml \.Values\.([A-Za-z.]+) \| nindent ([0-9]+) \}\}", block, text)
    text = re.sub(r"\{\{ \.Values\.([A-Za-z.]+) \}\}", lambda match: str(value(match[1])), text)
    assert "{{" not in text
    return list(yaml.safe_load_all(text))


def test_the_chart_makes_a_party_with_probes() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    party, service = rendered(values)
    pod = party["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    commands = {command.name for command in COMMANDS}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        program, name, question, *_ = container[probe]["exec"]["command"]
        assert (program, name in commands, question in ("livez", "readyz")) == ("party", True, True)
    assert container["args"][0] in commands
    assert container["resources"] == values["resources"]
    assert pod["terminationGracePeriodSeconds"] >= Timeouts().stop_s + ACCOUNTS_S
    assert party["spec"]["replicas"] == 1
    volumes = {volume["name"] for volume in pod["volumes"]} | {"state"}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert service["spec"]["ports"][0]["port"] == values["port"]


@pytest.mark.skipif(
    not (shutil.which("helm") and shutil.which("kubeconform")), reason="needs helm and kubeconform"
)
def test_the_chart_passes_its_check() -> None:
    subprocess.run([str(DEPLOY / "helm" / "check.sh")], check=True)


def test_a_daemon_has_time_to_stop() -> None:
    stop_s = re.search("^TimeoutStopSec=([0-9]+)$", (DEPLOY / PARTY_UNIT).read_text(), re.MULTILINE)
    assert stop_s is not None
    assert int(stop_s[1]) >= Timeouts().stop_s + ACCOUNTS_S
    for file in ("compose.yaml", "compose-relay.yaml"):
        assert f"stop_grace_period: {stop_s[1]}s" in (DEPLOY / file).read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("file", [PARTY_UNIT, RELAY_UNIT])
def test_a_unit_is_valid_and_exposes_little(tmp_path: Path, file: str) -> None:
    text = (DEPLOY / file).read_text()
    # Neither the program nor the user of the unit is on this machine.
    here = re.sub("^ExecStart=.*$", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    (tmp_path / file).write_text(here.replace("User=jointcut", "User=daemon"))
    for words in (["verify"], ["security", "--offline=true", "--threshold=20", "--no-pager"]):
        done = subprocess.run(
            [str(shutil.which("systemd-analyze")), *words, str(tmp_path / file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
