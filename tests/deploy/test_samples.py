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

from coordinator.relay import Relay
from jobs.data.postgres import Postgres
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.owner.objections import check_policy
from party.owner.config import (
    CoordinatorConfig,
    NodeConfig,
    PartyConfig,
    credentials_of,
    load_config,
    peers_of,
    relay_of,
)
from tests.support.installing import BESIDE, packages
from tests.support.postgres import serving

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
HOSPITALS = ("hospital-a", "hospital-b", "hospital-c")
IN_FILES = HOSPITALS[:2]
"""Hospitals with a CSV. The table of the third is in a database."""
DATABASE = "hospital-c-database"


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


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the containers, made by the script."""
    folder = tmp_path_factory.mktemp("composed") / "compose"
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    script = DEPLOY / "compose-setup.sh"
    subprocess.run([str(script), str(folder)], check=True, env=environment, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def relayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of the containers around a relay."""
    folder = tmp_path_factory.mktemp("relayed") / "compose"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    script = DEPLOY / "compose-relay-setup.sh"
    subprocess.run([str(script), str(folder)], check=True, env=environment, capture_output=True)
    return folder


def test_hospitals_of_the_relay_have_no_inbound_port() -> None:
    """Also not by accident: each shares a network with the relay alone."""
    services = yaml.safe_load((DEPLOY / "compose-relay.yaml").read_text())["services"]
    assert set(services) == {*HOSPITALS, "coordinator", "relay"}
    for name in (*HOSPITALS, "coordinator"):
        (network,) = services[name]["networks"]
        others = [other for other, service in services.items() if network in service["networks"]]
        assert sorted(others) == sorted([name, "relay"])
        assert "ports" not in services[name]
        assert services[name]["tmpfs"] == ["/tmp"]  # noqa: S108  of the container


@pytest.mark.more
def test_hospitals_of_the_relay_listen_to_themselves_alone(relayed: Path) -> None:
    for name in HOSPITALS:
        config = load_config(PartyConfig, relayed / name / "party.yaml")
        assert config.listen == "127.0.0.1:7400"
        assert {config.peers[other].address for other in set(HOSPITALS) - {name}} == {"relay"}
        assert set(peers_of(config)) == {*HOSPITALS, "coordinator"} - {name}
        assert isinstance(config.source, Csv)


@pytest.mark.more
def test_everybody_knows_the_relay_and_the_relay_everybody(relayed: Path) -> None:
    words = yaml.safe_load((DEPLOY / "compose-relay.yaml").read_text())["services"]["relay"]["command"]
    port = words[words.index("--listen") + 1].rsplit(":", 1)[1]
    relay = load_config(CoordinatorConfig, relayed / "relay" / "coordinator.yaml")
    assert set(peers_of(relay)) == {*HOSPITALS, "coordinator"}
    Relay(relay)
    nodes: list[NodeConfig] = [load_config(PartyConfig, relayed / name / "party.yaml") for name in HOSPITALS]
    for config in (*nodes, load_config(CoordinatorConfig, relayed / "coordinator" / "coordinator.yaml")):
        found = relay_of(config)
        assert found.certificate == credentials_of(relay).certificate
        assert found.address == f"relay:{port}"


@pytest.mark.more
def test_the_database_of_compose_gives_the_table_of_the_csv(tmp_path: Path, composed: Path) -> None:
    """The script fills a real server; hospital-c reads with the password that the other script has made."""
    config = load_config(PartyConfig, composed / "hospital-c" / "party.yaml")
    source, passwords = config.source, composed / DATABASE
    assert isinstance(source, Postgres)
    assert {path.name: path.stat().st_mode & 0o777 for path in passwords.iterdir()} == {
        "reader": 0o600,
        "superuser": 0o600,
    }
    dsn = source.dsn.read("table")
    assert f"host={DATABASE} dbname=hospital user=reader " in dsn
    with serving() as server:
        text = (DEPLOY / "compose-database.sql").read_text().replace("/etc/database", str(passwords))
        (tmp_path / "table.sql").write_text(text.replace("/data/table.csv", str(TABLE_OF_C)))
        server.sql("DROP ROLE reader")
        server.sql_file(tmp_path / "table.sql")
        assert server.csv("patients") == TABLE_OF_C.read_text()
        here = dsn.replace(f"host={DATABASE} dbname=hospital", f"host={server.folder} dbname=postgres")
        (composed / "hospital-c" / "dsn").write_text(here)
        names = source.column_names()
        rows = [list(row.values()) for batch in source.batches(names) for row in batch.to_pylist()]
    assert [names, *rows] == [line.split(",") for line in TABLE_OF_C.read_text().splitlines()]


TABLE_OF_C = ROOT / "examples" / "transfusion" / "hospital-c.csv"


def test_compose_setup_makes_working_identities(composed: Path) -> None:
    """The folders load as the containers would load them."""
    for name in HOSPITALS:
        config = load_config(PartyConfig, composed / name / "party.yaml")
        credentials_of(config)
        assert set(peers_of(config)) == set(config.peers)
    config = load_config(CoordinatorConfig, composed / "coordinator" / "coordinator.yaml")
    credentials_of(config)
    assert set(peers_of(config)) == set(HOSPITALS)


def test_compose_has_three_parties_and_a_coordinator() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    assert set(services) == {*HOSPITALS, DATABASE, "coordinator"}
    for name, service in services.items():
        if name != DATABASE:
            assert (
                DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]
            ).resolve() == DEPLOY / "Dockerfile"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("../") or source.endswith(".sql"):
                assert (DEPLOY / source).exists(), volume
            elif not source.startswith("./compose/"):
                assert source in compose["volumes"], volume
        if name in HOSPITALS:
            assert f"./compose/{name}:/etc/jointcut:ro" in service["volumes"]
            config = load_config(PartyConfig, DEPLOY / "three-machines" / f"{name}.yaml")
            assert f"{name}-state:{config.state_dir}" in service["volumes"]
        if name in IN_FILES:
            assert isinstance(config.source, Csv)
            assert any(v.endswith(f":{config.source.path}:ro") for v in service["volumes"])


def test_only_its_hospital_reaches_the_database() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    (network,) = services[DATABASE]["networks"]
    assert compose["networks"][network] == {"internal": True}
    assert [name for name, service in services.items() if network in service["networks"]] == [
        "hospital-c",
        DATABASE,
    ]
    assert "ports" not in services[DATABASE]
    mounted = {volume.split(":")[1] for volume in services[DATABASE]["volumes"]}
    script = (DEPLOY / "compose-database.sql").read_text()
    assert {"/data/table.csv", "/etc/database", "/docker-entrypoint-initdb.d/table.sql"} <= mounted
    assert all(path in script for path in ("/data/table.csv", "/etc/database/reader"))


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
        "requirements-postgres.lock",
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


@pytest.mark.parametrize(
    ("program", "file", "words"),
    [
        ("party", "jointcut-party.service", "serve --config /etc/jointcut/party.yaml"),
        (
            "coordinator",
            "jointcut-relay.service",
            "relay --listen 0.0.0.0:7443 --config /etc/jointcut-relay/coordinator.yaml",
        ),
    ],
)
def test_a_unit_parses_and_starts_its_program(program: str, file: str, words: str) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / file)
    assert {"Unit", "Service", "Install"} == set(unit.sections())
    command = shlex.split(unit["Service"]["ExecStart"])
    assert Path(command[0]).name == program
    assert command[1:] == words.split()
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
    sources = {name for *names, _ in copied for name in names if not name.endswith(".lock")}
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
