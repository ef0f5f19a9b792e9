"""Rosters: one fingerprint for many certificates, and nothing is installed that it does not cover."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit
from party.owner.config import CoordinatorConfig, PartyConfig, load_config, peers_of
from party.owner.identity import fingerprint, make_credentials
from party.owner.roster import made_roster
from tests.support.commands import Ran, invoke
from tests.support.identities import certificate_for

A, B, C = (f"hospital-{each}" for each in "abc")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A coordinator that knows three parties, of which nobody knows anybody."""
    assert invoke("coordinator", "init", "--name", "coordinator", "--dir", tmp_path / "coordinator").code == 0
    config = tmp_path / "coordinator" / "coordinator.yaml"
    for name in (A, B, C):
        assert invoke("party", "init", "--name", name, "--dir", tmp_path / name).code == 0
        certificate = tmp_path / name / "tls" / "certificate.pem"
        address = ("--address", f"{name}:7400")
        assert (
            invoke("coordinator", "peers", "add", name, certificate, *address, "--config", config).code == 0
        )
    return tmp_path


def exported(site: Path) -> tuple[Path, str]:
    file = site / "roster.json"
    command = ("roster", "export", file, "--config", site / "coordinator" / "coordinator.yaml")
    ran = invoke("coordinator", *command, "--format", "json")
    assert ran.code == 0, ran.err
    assert invoke("coordinator", *command).code == Exit.USAGE  # it exists
    return file, json.loads(ran.out)["fingerprint"]


def install(site: Path, at: str, file: Path, *options: str) -> Ran:
    config = site / at / "party.yaml"
    return invoke("party", "peers", "add", "--roster", file, *options, "--config", config, "--format", "json")


def peers(site: Path, at: str) -> dict[str, str | None]:
    found = peers_of(load_config(PartyConfig, site / at / "party.yaml"))
    return {name: peer.address for name, peer in found.items()}


def test_everybody_knows_everybody_by_one_fingerprint(site: Path) -> None:
    file, told = exported(site)
    for name in (A, B, C):
        ran = install(site, name, file, "--fingerprint", told.upper())
        assert ran.code == 0, ran.err
        others = {other: f"{other}:7400" for other in (A, B, C) if other != name}
        assert peers(site, name) == others | {"coordinator": None}
    before = (site / A / "party.yaml").read_text()
    again = json.loads(install(site, A, file, "--fingerprint", told).out)
    assert (again["added"], again["known"]) == ({}, ["coordinator", A, B, C])
    assert (site / A / "party.yaml").read_text() == before


def test_who_is_known_stays_as_its_owner_wrote_it(site: Path) -> None:
    config, certificate = site / A / "party.yaml", site / B / "tls" / "certificate.pem"
    assert (
        invoke("party", "peers", "add", B, certificate, "--address", "near:1", "--config", config).code == 0
    )
    file, told = exported(site)
    assert install(site, A, file, "--fingerprint", told).code == 0
    assert peers(site, A) == {B: "near:1", C: f"{C}:7400", "coordinator": None}


def test_a_roster_is_not_installed_unasked(site: Path) -> None:
    file, told = exported(site)
    without, wrong = install(site, A, file), install(site, A, file, "--fingerprint", "00" * 32)
    assert (without.problem["error"], wrong.problem["error"]) == ("usage", "identity-mismatch")
    mixed = invoke("party", "peers", "add", B, "x.pem", "--roster", file, "--fingerprint", told)
    assert mixed.code == Exit.USAGE
    assert invoke("party", "peers", "add", B, "--config", site / A / "party.yaml").code == Exit.USAGE
    assert peers(site, A) == {}


def remade(file: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """Change a roster and give it the fingerprint that it has then: whoever tells it helps the attacker."""
    from party.owner.roster import _fingerprint, _signed

    fields = json.loads(file.read_text())
    change(fields)
    file.write_text(json.dumps(fields))
    return _fingerprint(_signed({key: value for key, value in fields.items() if key != "signature"}))


def other_of(name: str) -> str:
    return make_credentials(name).certificate.decode()


FORGED: list[tuple[Callable[[dict[str, Any]], object], str, str]] = [
    (lambda f: f["members"][B].update(address="evil:1"), "identity-mismatch", "signature"),
    (lambda f: f["members"][B].update(certificate=other_of(B)), "identity-mismatch", "signature"),
    (lambda f: f.update(signature="00" * 64), "identity-mismatch", "signature"),
    (lambda f: f.update(made_by=B), "identity-mismatch", f"certificate of {B}"),
    (lambda f: f.update(made_by="nobody"), "config-invalid", "lacks nobody"),
    (lambda f: f["members"][B].update(certificate=other_of("x")), "identity-mismatch", "of x for"),
    (lambda f: f["members"][B].update(certificate="none"), "tls-failed", ""),
    (lambda f: f["members"].update({"../b": f["members"][B]}), "config-invalid", ""),
    (lambda f: f.update(more="1"), "unknown-key", "more"),
    (lambda f: f.update(members=[]), "config-invalid", "members"),
]


@pytest.mark.parametrize(("change", "error_id", "says"), FORGED)
def test_what_its_maker_did_not_sign_is_refused_whole(
    site: Path, change: Callable[[dict[str, Any]], object], error_id: str, says: str
) -> None:
    file, _ = exported(site)
    ran = install(site, A, file, "--fingerprint", remade(file, change))
    assert ran.problem["error"] == error_id
    assert says in ran.problem["message"]
    assert peers(site, A) == {}
    assert not list((site / A / "peers").glob("*.pem"))


def test_another_certificate_of_ours_or_of_a_peer_stops_it(site: Path) -> None:
    file, told = exported(site)
    config, certificate = site / A / "party.yaml", site / "b.pem"
    certificate.write_text(other_of(B))
    assert invoke("party", "peers", "add", B, certificate, "--config", config).code == 0
    ran = install(site, A, file, "--fingerprint", told)
    assert (ran.problem["error"], f"another certificate of {B}" in ran.problem["message"]) == (
        "identity-mismatch",
        True,
    )
    assert set(peers(site, A)) == {B}
    assert invoke("party", "renew", "--config", site / C / "party.yaml").code == 0
    ran = install(site, C, file, "--fingerprint", told)
    assert "the coordinator needs our new one" in ran.problem["remedy"]


def test_no_roster_is_made_of_what_nobody_can_use(site: Path) -> None:
    settings = load_config(CoordinatorConfig, site / "coordinator" / "coordinator.yaml")
    first, content = made_roster(settings)
    again, other = made_roster(settings)
    assert first == again  # whatever the signature
    assert json.loads(content)["members"] == json.loads(other)["members"]
    expired = certificate_for([B], days=(-30, -1)).certificate
    settings.peers[B].certificate.write_bytes(expired)
    ran = invoke(
        "coordinator",
        "roster",
        "export",
        site / "new.json",
        "--config",
        site / "coordinator" / "coordinator.yaml",
    )
    assert ran.code == Exit.IDENTITY
    assert not (site / "new.json").exists()
    assert fingerprint(expired) not in content.decode()
