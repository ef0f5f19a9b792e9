"""What deploy/ has for whoever runs a party: unit, chart, alerts, dashboard. They name what the daemon tells."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from coordinator.commands.relay import relay
from jobs.fields import parse_model
from jobs.yaml_text import parse_yaml
from party.operations.figures import FIGURES
from party.operations.tally import OUTCOMES
from party.operations.watched import Watched
from party.owner.config import PartyConfig
from party.owner.readiness import LEAST_FREE_BYTES, REASONS
from tests.support.helm import Chart

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
CHART = DEPLOY / "helm" / "jointcut-party"
UNIT, RELAY = (DEPLOY / f"jointcut-{name}.service" for name in ("party", "relay"))
MOST_EXPOSED = 12
"""Tenths of what `systemd-analyze security` counts."""


def names_in(expression: str) -> set[str]:
    return set(re.findall(r"\bjointcut_\w+", expression))


def check_labels(expression: str) -> None:
    """Labels that an expression asks for are those of their figures, with values that there are."""
    there = {"outcome": set(OUTCOMES), "reason": set(REASONS)}
    for name, inside in re.findall(r"\b(jointcut_\w+)\{([^}]*)\}", expression):
        for label, values in re.findall(r'(\w+)(?:=~|!=|=)"([^"]*)"', inside):
            assert label in {FIGURES[name].label, "instance"}, expression
            assert label == "instance" or set(values.split("|")) <= there[label], expression


# ---- Prometheus


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_alerts_ask_for_figures_that_there_are() -> None:
    asked = {rule["alert"]: names_in(rule["expr"]) for rule in rules()}
    assert len(asked) == len(rules()) >= 10
    assert set.union(*asked.values()) <= set(FIGURES)
    assert [name for name, figures in asked.items() if not figures] == ["JointcutDown"]
    for rule in rules():
        check_labels(rule["expr"])


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "action"}
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"]


def test_every_reason_why_a_party_is_not_ready_raises_an_alert() -> None:
    (rule,) = [rule for rule in rules() if rule["alert"] == "JointcutNotReady"]
    assert 'reason!="leaving"' in rule["expr"]
    (disk,) = [rule for rule in rules() if rule["alert"] == "JointcutDiskLow"]
    assert int(disk["expr"].rpartition(" ")[2]) > LEAST_FREE_BYTES


@pytest.mark.parametrize("call", [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]])
def test_prometheus_takes_the_alerts(call: list[str]) -> None:
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed (Debian: `prometheus`)")
    ran = subprocess.run([tool, *call], cwd=ALERTS.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


# ---- Grafana


def panels() -> list[dict[str, Any]]:
    found = json.loads((DEPLOY / "grafana" / "jointcut-party.json").read_text())["panels"]
    assert isinstance(found, list)
    return found


def test_the_dashboard_shows_all_figures_that_there_are_and_no_others() -> None:
    expressions = [target["expr"] for panel in panels() for target in panel["targets"]]
    assert set.union(*map(names_in, expressions)) == set(FIGURES)
    for expression in expressions:
        check_labels(expression)


def test_panels_stand_beside_each_other() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    places = [panel["gridPos"] for panel in panels()]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


# ---- systemd


@pytest.fixture(params=[UNIT, RELAY], ids=lambda each: each.stem)
def unit(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A unit, of a program that is there."""
    made = tmp_path / request.param.name
    made.write_text(
        re.sub(r"ExecStart=/opt/jointcut/bin/\w+ ", "ExecStart=/bin/true ", request.param.read_text())
    )
    return made


def analyzed(*arguments: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd is not installed")
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)


def test_systemd_takes_the_unit(unit: Path) -> None:
    ran = analyzed("verify", "--man=no", str(unit))
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if unit.name in line]) == (0, [])


def test_the_unit_is_as_hard_as_it_was(unit: Path) -> None:
    ran = analyzed("security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", str(unit))
    if "unrecognized option" in ran.stderr:
        pytest.skip("a systemd that looks at running units alone")
    assert ran.returncode == 0, ran.stdout[-300:]


def test_the_relays_unit_starts_a_relay() -> None:
    (start,) = re.findall(r"^ExecStart=/opt/jointcut/bin/coordinator (.*)$", RELAY.read_text(), re.M)
    context = relay.make_context("relay", start.split()[1:], resilient_parsing=True)
    assert start.split()[0] == "relay"
    assert context.params["listen"].endswith(":7443")
    assert str(context.params["config"]) == "/etc/jointcut-relay/coordinator.yaml"
    assert "User=root" not in RELAY.read_text()


def test_the_unit_lets_code_be_made_in_memory() -> None:
    """`jointcut[fast]` and `jointcut[spark]` do."""
    assert "\nMemoryDenyWriteExecute=" not in UNIT.read_text()


# ---- Kubernetes


def example() -> dict[str, Any]:
    found = yaml.safe_load((CHART / "example-values.yaml").read_text())
    assert isinstance(found, dict)
    return found


def rendered() -> dict[str, list[Any]]:
    return Chart(CHART, "hospital-a", example()).rendered()


def pod() -> dict[str, Any]:
    (made,) = rendered()["statefulset.yaml"]
    found = made["spec"]["template"]["spec"]
    assert isinstance(found, dict)
    return found


def test_the_charts_configuration_is_one() -> None:
    (made,) = rendered()["config.yaml"]
    text = made["data"]["party.yaml"]
    config = parse_model(PartyConfig, parse_yaml(text, "party.yaml"), "party.yaml", "config-invalid")
    assert (config.name, config.policy.min_k) == ("hospital-a", 20)
    (container,) = pod()["containers"]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert not mounts[str(config.state_dir.parent)]
    certificates = {entry.certificate.parent for entry in config.peers.values()}
    assert [mounts[str(folder)] for folder in certificates] == [True]
    assert config.operations is not None
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["operations"] == int(config.operations.listen.rpartition(":")[2])
    assert ports["party"] == int(config.listen.rpartition(":")[2])


def test_the_keys_that_the_configuration_names_are_mounted() -> None:
    (config,) = [volume for volume in pod()["volumes"] if volume["name"] == "config"]
    (secret,) = [source["secret"] for source in config["projected"]["sources"] if "secret" in source]
    assert {item["path"] for item in secret["items"]} == {"tls/certificate.pem", "tls/key.pem"}
    assert config["projected"]["defaultMode"] == 0o440


def test_probes_ask_for_pages_that_there_are() -> None:
    pages = Watched(*[None] * 4).pages()  # type: ignore[arg-type]
    (container,) = pod()["containers"]
    probes = {
        name: container[name]["httpGet"] for name in ("livenessProbe", "readinessProbe", "startupProbe")
    }
    assert {probe["path"] for probe in probes.values()} <= set(pages)
    assert {probe["port"] for probe in probes.values()} == {"operations"}
    assert probes["livenessProbe"]["path"] == "/livez"


def test_the_pod_may_do_little() -> None:
    found = pod()
    (container,) = found["containers"]
    assert found["automountServiceAccountToken"] is False
    assert found["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    user = re.findall(r"--uid (\d+)", (DEPLOY / "Dockerfile").read_text())
    assert [str(found["securityContext"]["runAsUser"])] == user


def test_state_outlives_the_chart_and_has_one_pod() -> None:
    (made,) = rendered()["statefulset.yaml"]
    assert made["spec"]["replicas"] == 1
    assert set(made["spec"]["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}


def test_figures_are_for_whom_the_policy_names() -> None:
    (policy,) = rendered()["networkpolicy.yaml"]
    by_port = {rule["ports"][0]["port"]: rule.get("from") for rule in policy["spec"]["ingress"]}
    assert by_port == {
        name: example()["networkPolicy"][key]
        for name, key in (("party", "peers"), ("operations", "operations"))
    }
    nobody = example() | {"networkPolicy": {"operations": []}}
    (policy,) = Chart(CHART, "hospital-a", nobody).rendered()["networkpolicy.yaml"]
    assert [rule["ports"][0]["port"] for rule in policy["spec"]["ingress"]] == ["party"]


@pytest.mark.parametrize(
    ("section", "key"),
    [("config", "name"), ("config", "data"), ("identity", "secret"), ("peers", "configMap")],
)
def test_what_has_no_default_has_to_be_given(section: str, key: str) -> None:
    given = example()
    given[section] = {name: value for name, value in given[section].items() if name != key}
    with pytest.raises(LookupError):
        Chart(CHART, "hospital-a", given).rendered()


def leaves(values: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict) and value and path.count(".") < 1 and key != "requests":
            yield from leaves(value, f"{path}.{key}")
        else:
            yield f"{path}.{key}"


def test_all_values_are_used_and_none_is_missing() -> None:
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    used = set(re.findall(r"\.Values(\.[\w.]+)", text))
    own = set(leaves(yaml.safe_load((CHART / "values.yaml").read_text())))
    covered = {leaf for leaf in own for name in used if leaf == name or leaf.startswith(f"{name}.")}
    assert own == covered
    assert {
        name for name in used if not any(leaf == name or leaf.startswith(f"{name}.") for leaf in own)
    } == set()


def test_helm_itself_makes_the_same() -> None:
    """Where its library is installed (PyPI: `helm-python-sdk`, 0.2 GB)."""
    if importlib.util.find_spec("helm_python") is None:
        pytest.skip("helm-python-sdk is not installed")
    helm: Any = importlib.import_module("helm_python")
    assert helm.lint(str(CHART), example(), strict=True)["errors"] == []
    made = helm.Chart.load(str(CHART)).render(example(), name="hospital-a")
    theirs = {Path(name).name: list(yaml.safe_load_all(text)) for name, text in made.items()}
    assert theirs == rendered()
