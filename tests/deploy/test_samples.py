"""Everything in deploy/ is loaded or parsed, so that samples do not rot."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from jobs.data.postgres import Postgres
from jobs.data.postgres_address import read_address
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.objections import check_policy
from jobs.release_csv import TABLE
from party.owner.config import CoordinatorConfig, PartyConfig, credentials_of, load_config, peers_of
from party.owner.identity import is_loopback
from tests.support.databases import DSN_ENV, PASSWORD, Database
from tests.support.installing import BESIDE, packages
from tests.support.loopback import free_ports
from tests.support.network import call, command

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


def test_hospitals_without_an_inbound_port_and_a_relay_run_the_example(tmp_path: Path) -> None:
    """What the script makes of the samples, with addresses and paths of containers made those of this machine."""
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    folder, example = tmp_path / "compose", ROOT / "examples" / "transfusion"
    script = DEPLOY / "compose-setup.sh"
    subprocess.run([str(script), str(folder), "relay"], check=True, env=environment, capture_output=True)
    ports = free_ports(["relay", *HOSPITALS])
    for name in (*HOSPITALS, "coordinator"):
        path = folder / name / ("party.yaml" if name in HOSPITALS else "coordinator.yaml")
        text = path.read_text().replace("relay:7443", f"127.0.0.1:{ports['relay']}")
        if name in HOSPITALS:
            text = text.replace("127.0.0.1:7400", f"127.0.0.1:{ports[name]}")
            text = text.replace("/data/table.csv", str(example / f"{name}.csv"))
            text = text.replace("/var/lib/jointcut", str(tmp_path / "state" / name))
        path.write_text(text)
    relay, parties = (
        folder / "relay" / "coordinator.yaml",
        [folder / name / "party.yaml" for name in HOSPITALS],
    )
    listen = f"127.0.0.1:{ports['relay']}"
    commands = [command("relay", "--config", relay, "--listen", listen)]
    commands += [command("serve", "--config", path, program="party") for path in parties]
    config, out = folder / "coordinator" / "coordinator.yaml", tmp_path / "out"
    with ExitStack() as stack:
        for words in commands:
            stack.enter_context(started(words))
        ran = call("run", example / "job.yaml", "--config", config, "--out", out)
    assert ran.code == 0, ran.err
    assert (out / TABLE).is_file()


@contextmanager
def started(words: list[str]) -> Iterator[None]:
    """A program of ours that has said its first line, until it is not needed any more."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        assert process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize("name", HOSPITALS)
def test_hospitals_behind_a_relay_are_those_of_the_other_samples(name: str) -> None:
    """The same but for how they are reached: on this machine alone, and through the relay."""
    config, other = (
        load_config(PartyConfig, DEPLOY / f / f"{name}.yaml") for f in ("relay", "three-machines")
    )
    assert (config.policy, set(config.peers)) == (other.policy, set(other.peers))
    assert is_loopback(config.listen)
    assert config.relay is not None
    assert not [peer for peer in config.peers.values() if peer.address]


def test_compose_keeps_hospitals_apart_but_for_the_relay() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.relay.yaml").read_text())
    services = compose["services"]
    assert set(services) == {*HOSPITALS, "coordinator", "relay"}
    relay = set(services["relay"]["networks"])
    each = [set(services[name]["networks"]) for name in (*HOSPITALS, "coordinator")]
    assert all(len(networks) == 1 and networks <= relay for networks in each)
    assert len(set.union(*each)) == len(each)
    assert not [name for name, service in services.items() if "ports" in service]
    listen = services["relay"]["command"][-1]
    config = load_config(PartyConfig, DEPLOY / "relay" / "hospital-a.yaml")
    assert config.relay is not None
    assert config.relay.address.rpartition(":")[2] == listen.rpartition(":")[2]
    for name, service in services.items():
        assert f"./compose-relay/{name}:/etc/jointcut:ro" in service["volumes"]
        assert service["tmpfs"] == ["/tmp"]  # noqa: S108  of the container
        assert (DEPLOY / "relay" / f"{name}.yaml").is_file()


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


def test_a_database_beside_a_party_has_no_password_in_a_configuration() -> None:
    """The party finds it by a file that the address names."""
    compose = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())
    party, server = (compose["services"][name] for name in ("hospital-a", "database"))
    address = read_address(party["environment"]["JOINTCUT_DSN"])
    assert "password" not in address.parameters
    assert address.host == "database"
    assert [f"/run/secrets/{name}" for name in party["secrets"]] == [address.parameters["passfile"]]
    assert server["environment"]["POSTGRES_PASSWORD_FILE"].removeprefix("/run/secrets/") in server["secrets"]
    assert server["environment"]["POSTGRES_DB"] == address.database
    assert not [key for key in server["environment"] if key.endswith("PASSWORD")]
    assert {*party["secrets"], *server["secrets"]} == set(compose["secrets"])
    assert set(server["networks"]) == {"clinic"}
    extra = party["build"]["args"]["EXTRAS"]
    assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()
    assert "ARG EXTRAS" in (DEPLOY / "Dockerfile").read_text()


def test_the_database_beside_a_party_gets_the_table_and_a_reader(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script that the image of PostgreSQL runs, with the paths of a container made those of this machine."""
    script = (DEPLOY / "database-setup.sh").read_text()
    container = tmp_path / "a contäiner"
    container.mkdir()
    (container / "reader").write_text("it's a secret\n")
    table = container / "table.csv"
    shutil.copy(ROOT / "examples" / "transfusion" / "hospital-a.csv", table)
    script = script.replace("/run/secrets/", f"{container}/").replace(
        "=/data/table.csv", f"={shlex.quote(str(table))}"
    )
    database.run("DROP ROLE IF EXISTS reader")
    environment = {
        "PATH": f"{database.server.programs}:{os.environ['PATH']}",
        "PGHOST": str(database.server.socket),
        "PGPASSWORD": PASSWORD,
        "POSTGRES_USER": "postgres",
        "POSTGRES_DB": database.name,
    }
    subprocess.run(["sh", "-c", script], check=True, env=environment, capture_output=True)  # noqa: S607
    source = Postgres(DSN_ENV, table="public.patients")
    monkeypatch.setenv(DSN_ENV, database.dsn("reader", "it's a secret"))
    task = load_task(ROOT / "examples" / "transfusion" / "job.yaml")
    assert task.load(source, "hospital-a").canonical() == task.load(Csv(table), "hospital-a").canonical()
