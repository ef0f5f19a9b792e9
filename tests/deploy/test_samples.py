"""Everything in deploy/ is loaded or parsed, so that samples do not rot."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jobs.loading import load_task
from jobs.owner.objections import check_policy
from party.owner.config import CoordinatorConfig, PartyConfig, credentials_of, load_config, peers_of
from tests.support.installing import BESIDE, packages

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
HOSPITALS = ("hospital-a", "hospital-b", "hospital-c")


@pytest.mark.parametrize("name", HOSPITALS)
def test_sample_policies_allow_the_example_job_and_not_more(name: str) -> None:
    config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
    task = load_task(ROOT / "examples" / "transfusion" / "job.yaml")
    job = task.job
    check_policy(config.policy, task, name, "coordinator")
    assert config.name == name
    assert set(config.policy.columns) == set(job.columns)
    assert config.policy.min_k == job.model.lkc.K
    assert config.policy.min_l == job.model.lkc.L
    assert config.policy.max_c == job.model.lkc.C


def test_sample_peers_know_each_other() -> None:
    coordinator = load_config(CoordinatorConfig, DEPLOY / "three-machines" / "coordinator.yaml")
    assert set(coordinator.peers) == set(HOSPITALS)
    for name in HOSPITALS:
        config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
        assert set(config.peers) == {*HOSPITALS, "coordinator"} - {name}
        for other in set(HOSPITALS) - {name}:
            assert config.peers[other].address == f"{other}:{config.listen.rsplit(':')[-1]}"


def test_compose_setup_makes_working_identities(tmp_path: Path) -> None:
    """The script is run; its folders load as the containers would load them."""
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    script = DEPLOY / "compose-setup.sh"
    subprocess.run([str(script), str(tmp_path / "compose")], check=True, env=environment, capture_output=True)
    for name in HOSPITALS:
        config = load_config(PartyConfig, tmp_path / "compose" / name / "party.yaml")
        credentials_of(config)
        assert set(peers_of(config)) == set(config.peers)
    config = load_config(CoordinatorConfig, tmp_path / "compose" / "coordinator" / "coordinator.yaml")
    credentials_of(config)
    assert set(peers_of(config)) == set(HOSPITALS)


def test_compose_has_three_parties_and_a_coordinator() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {*HOSPITALS, "coordinator"}
    for name, service in services.items():
        assert (
            DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]
        ).resolve() == DEPLOY / "Dockerfile"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("../"):
                assert (DEPLOY / source).exists(), volume
            elif not source.startswith("./compose/"):
                assert source in compose["volumes"], volume
        if name in HOSPITALS:
            assert f"./compose/{name}:/etc/jointcut:ro" in service["volumes"]
            config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
            assert f"{name}-state:{config.state_dir}" in service["volumes"]
            assert any(v.endswith(f":{config.source.path}:ro") for v in service["volumes"])


def test_the_image_copies_what_the_package_is_made_of() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [
        word
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for word in line.split()[1:-1]
    ]
    assert all((ROOT / path).exists() for path in copied)
    assert {
        "protos",
        "crypto",
        "anonymize",
        "party",
        "coordinator",
        "examples",
        "jointcut",
        "requirements.lock",
    } <= set(copied)
    assert any(re.match(r"USER (?!root)", line) for line in lines)


def test_the_image_has_the_folders_that_its_user_writes_to() -> None:
    """A new volume takes owner and mode from the folder of the image; without one it belongs to root."""
    (made,) = re.findall(r"install -d -o jointcut .* (/\S+)", (DEPLOY / "Dockerfile").read_text())
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("hospital-a", "hospital-b", "hospital-c"):
        config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
        assert str(config.state_dir) == made
        assert any(volume.endswith(f":{made}") for volume in services[name]["volumes"])


def test_the_unit_parses_and_starts_the_daemon() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "jointcut-party.service")
    assert {"Unit", "Service", "Install"} == set(unit.sections())
    command = shlex.split(unit["Service"]["ExecStart"])
    assert Path(command[0]).name == "party"
    assert command[1:] == ["serve", "--config", "/etc/jointcut/party.yaml"]
    assert unit["Service"]["User"] != "root"
    assert unit["Service"]["NoNewPrivileges"] == "yes"


def test_the_unit_lets_its_user_read_the_key_and_write_the_state() -> None:
    """The samples' `state_dir` is the one folder that the unit opens; `init` is run by the user of the unit."""
    text = (DEPLOY / "jointcut-party.service").read_text()
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    assert (service["ProtectSystem"], service["StateDirectoryMode"]) == ("strict", "0700")
    for name in HOSPITALS:
        config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
        assert str(config.state_dir) == f"/var/lib/{service['StateDirectory']}"
    (init,) = [line for line in text.splitlines() if " party init" in line.replace("/bin/party", " party")]
    assert f"runuser -u {service['User']} -- " in init
    folder = str(Path(shlex.split(service["ExecStart"])[-1]).parent)
    assert f"install -d -o {service['User']} -g {service['User']} -m 700 {folder}" in text
    assert f"--dir {folder}" in init


def test_the_image_is_made_of_all_that_the_wheel_is_made_of() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [words.split() for words in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)]
    sources = {name for *names, _ in copied for name in names} - {"requirements.lock"}
    assert sources == {*packages(), *BESIDE}
    assert all(names == [target] for *names, target in copied if target != "./")


def test_base_images_are_named_by_digest() -> None:
    """A later build, or one elsewhere, starts from the same files."""
    text = (DEPLOY / "Dockerfile").read_text()
    named = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    for base in bases:
        image = named.get(base.removeprefix("$"), base)
        assert re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", image)
