"""The blocks of docs/operation.md: commands as processes in a bare environment, and keys in a configuration."""

from __future__ import annotations

import json
import re
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from party.owner.config import CoordinatorConfig, PartyConfig, parse_config
from tests.support.bare import bare
from tests.support.commands import Ran
from tests.support.loopback import HOST, free_ports
from tests.support.network import GUARD_S, call, command, yaml_of

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "operation.md").read_text("utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def block_with(text: str) -> list[list[str]]:
    """Return the commands of the block that has a text, as words without comments."""
    (block,) = [block for block in SHELL if text in block]
    return [line.split("#")[0].split() for line in block.splitlines()]


def done(words: list[str], folder: Path, places: Mapping[str, str]) -> Ran:
    """Run a shown command in a folder, with some of its words replaced. It must succeed."""
    program, *rest = [places.get(word, word) for word in words]
    ran = call(*rest, program=program, cwd=folder)
    assert ran.code == 0, ran.err
    return ran


def fingerprint(certificate: Path) -> str:
    return x509.load_pem_x509_certificate(certificate.read_bytes()).fingerprint(hashes.SHA256()).hex()


def fingerprint_word(words: list[str]) -> str:
    return words[words.index("--fingerprint") + 1]


def a_party(folder: Path, name: str) -> Path:
    """Make a party; return its certificate."""
    words = [
        "party",
        "init",
        "--name",
        name,
        "--dir",
        str(folder),
        "--listen",
        f"{HOST}:7400",
        "--data",
        "t.csv",
    ]
    done(words, folder.parent, {})
    return folder / "tls" / "certificate.pem"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return the folder of hospital-a, with hospital-b and hospital-c as peers."""
    a_party(tmp_path / "a", "hospital-a")
    for name in ("hospital-b", "hospital-c"):
        pem = a_party(tmp_path / name, name)
        words = ["party", "peers", "add", name, str(pem), "--fingerprint", fingerprint(pem)]
        done(words, tmp_path / "a", {})
    return tmp_path / "a"


def test_every_block_is_tested_here() -> None:
    assert len(SHELL) == len(re.findall(r"^def test_block", Path(__file__).read_text("utf-8"), re.MULTILINE))


def test_block_renew(home: Path) -> None:
    ((*words,),) = block_with("party renew")
    before = fingerprint(home / "tls" / "certificate.pem")
    done(words, home, {})
    assert fingerprint(home / "tls" / "certificate.pem") != before
    (kept,) = (home / "tls").glob("certificate.until-*.pem")
    assert fingerprint(kept) == before


def test_block_new_certificate_of_a_peer(home: Path) -> None:
    add, remove = block_with("--replace")
    done(["party", "renew"], home.parent / "hospital-b", {})
    new = home.parent / "hospital-b" / "tls" / "certificate.pem"
    shutil.copy(new, home / "hospital-b.pem")
    done(add, home, {fingerprint_word(add): fingerprint(new)})
    assert fingerprint(home / "peers" / "hospital-b.pem") == fingerprint(new)
    assert len(list((home / "peers").glob("hospital-b.until-*.pem"))) == 1
    done(remove, home, {})
    assert yaml.safe_load((home / "party.yaml").read_text())["peers"].keys() == {"hospital-b"}


def test_block_roster(home: Path) -> None:
    export, add = block_with("roster export")
    folder = home.parent / "coordinator"
    done(["coordinator", "init", "--name", "coordinator", "--dir", str(folder)], home.parent, {})
    for name, place in (
        ("hospital-a", home),
        *((each, home.parent / each) for each in ("hospital-b", "hospital-c")),
    ):
        pem = place / "tls" / "certificate.pem"
        done(["coordinator", "peers", "add", name, str(pem), "--fingerprint", fingerprint(pem)], folder, {})
    assert export[-2] == ">"
    (home / export[-1]).write_text(done(export[:-2], folder, {}).out)
    done(add, home, {fingerprint_word(add): fingerprint(folder / "tls" / "certificate.pem")})
    known = yaml.safe_load((home / "party.yaml").read_text())["peers"]
    assert known.keys() == {"hospital-b", "hospital-c", "coordinator"}


def test_block_relay(home: Path) -> None:
    """The commands in their order, at another folder and port; the relay stops when it is told to."""
    init, cd, add, relay = block_with("coordinator relay")
    folder = home.parent / "etc" / "jointcut"
    folder.parent.mkdir()
    done(init, home, {cd[1]: str(folder)})
    shutil.copy(home / "tls" / "certificate.pem", folder / "hospital-a.pem")
    done(add, folder, {fingerprint_word(add): fingerprint(folder / "hospital-a.pem")})
    listen = f"{HOST}:{free_ports(['relay'])['relay']}"
    words = [listen if word == "0.0.0.0:7443" else word for word in relay]
    start = command(*words[1:], "--format", "json", program=words[0])
    with subprocess.Popen(
        start, cwd=folder, env=bare(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], GUARD_S)[0]
            said = json.loads(process.stdout.readline())
            assert said["event"] == "listening"
            process.send_signal(signal.SIGINT)
            assert process.wait(GUARD_S) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("block", YAML, ids=lambda block: next(iter(yaml.safe_load(block))))
def test_keys_of_a_block(block: str) -> None:
    """A configuration takes the keys as they are shown; also a coordinator's, if it has them."""
    keys = yaml.safe_load(block)
    least = {"version": 1, "name": "hospital-a", "tls": {"certificate": "c.pem", "key": "k.pem"}}
    parse_config(
        PartyConfig, yaml_of({**least, "data": {"csv": {"path": "t.csv"}}, **keys}), Path("party.yaml")
    )
    if keys.keys() <= CoordinatorConfig.model_fields.keys():
        parse_config(CoordinatorConfig, yaml_of({**least, **keys}), Path("coordinator.yaml"))
