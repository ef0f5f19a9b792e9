"""Certificates over their life: renewed, replaced at the peers, removed, and warned of in time."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import Exit
from party.cli import certificates
from party.net.waiting import stopped
from party.owner.config import PartyConfig, certificate_warnings, credentials_of, load_config, peers_of
from party.owner.identity import fingerprint, make_credentials
from party.owner.renewal import renew
from tests.support.commands import Ran, invoke
from tests.support.identities import certificate_for, write_credentials
from tests.support.network import GUARD_S, call

A, B = "hospital-a", "hospital-b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A that knows B, with a table."""
    assert invoke("party", "init", "--name", A, "--dir", tmp_path / "a").code == 0
    (tmp_path / "a" / "table.csv").write_text("patient\n1\n")
    added = add(tmp_path / "a", received(tmp_path, (-1, 400)))
    assert added.code == 0, added.err
    return tmp_path / "a"


def received(tmp_path: Path, days: tuple[float, float]) -> Path:
    """A new certificate of B, as it came by mail."""
    certificate, _ = write_credentials(tmp_path / "mail", certificate_for([B], days=days))
    return certificate


def config(folder: Path) -> PartyConfig:
    return load_config(PartyConfig, folder / "party.yaml")


def add(folder: Path, certificate: Path, *options: str) -> Ran:
    return invoke("party", "peers", "add", B, certificate, *options, "--config", folder / "party.yaml")


def problem(ran: Ran) -> str:
    assert ran.out == ""
    return ran.err


# ---- renew


@pytest.mark.parametrize("program", ["party", "coordinator"])
def test_renew_makes_a_new_identity_and_keeps_the_old_one(tmp_path: Path, program: str) -> None:
    assert invoke(program, "init", "--name", A, "--dir", tmp_path).code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "tls").iterdir()}
    ran = invoke(program, "renew", "--config", tmp_path / f"{program}.yaml", "--format", "json")
    made = json.loads(ran.out)
    now = (tmp_path / "tls" / "certificate.pem").read_bytes()
    assert made["fingerprint"] == fingerprint(now) != fingerprint(before["certificate.pem"])
    assert (tmp_path / "tls" / "key.pem").read_bytes() != before["key.pem"]
    kept = {Path(path).name.split(".until-")[0]: Path(path).read_bytes() for path in made["kept"]}
    assert kept == {"certificate": before["certificate.pem"], "key": before["key.pem"]}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tls").glob("key*")}
    assert modes == {0o600}
    assert invoke(program, "peers", "list", "--config", tmp_path / f"{program}.yaml").code == 0


def test_renew_says_what_the_peers_have_to_do(folder: Path) -> None:
    ran = invoke("party", "renew", "--config", folder / "party.yaml")
    own = fingerprint(credentials_of(config(folder)).certificate)
    assert f"peers add {A} CERTIFICATE --replace --fingerprint {own}" in ran.out
    assert "send the certificate to every peer" in ran.out
    assert "PRIVATE" not in ran.out


@pytest.mark.parametrize("state", ["expired", "nonsense", "absent"])
def test_renew_mends_an_identity_that_does_not_load(folder: Path, state: str) -> None:
    if state == "expired":
        write_credentials(folder / "tls", certificate_for([A], days=(-30, -1)))
    else:
        for name in ("certificate.pem", "key.pem"):
            (folder / "tls" / name).write_text("nonsense")
            if state == "absent":
                (folder / "tls" / name).unlink()
    assert invoke("party", "check", "--config", folder / "party.yaml").code in {Exit.IDENTITY, Exit.USAGE}
    renew(config(folder))
    assert invoke("party", "check", "--config", folder / "party.yaml").code == 0


def test_a_certificate_of_an_authority_is_the_authoritys_to_renew(folder: Path) -> None:
    write_credentials(folder / "tls", certificate_for([A], issuer=certificate_for(["authority"])))
    before = sorted((path.name, path.read_bytes()) for path in (folder / "tls").iterdir())
    ran = invoke("party", "renew", "--config", folder / "party.yaml")
    assert ran.code == Exit.IDENTITY
    assert "comes from an authority" in problem(ran)
    assert sorted((path.name, path.read_bytes()) for path in (folder / "tls").iterdir()) == before


def test_serve_with_an_expired_certificate_says_how_to_renew_it(folder: Path) -> None:
    write_credentials(folder / "tls", certificate_for([A], days=(-30, -1)))
    ran = call("serve", "--config", folder / "party.yaml", "--format", "json", program="party")
    assert (ran.code, ran.out) == (Exit.IDENTITY, "")
    assert f"the certificate of {A} is valid from 20" in ran.problem["message"]
    assert ran.problem["message"].count(" UTC") == 3
    assert (
        ran.problem["remedy"]
        == "correct the clock if the clock is wrong; otherwise make a new certificate with `renew`"
    )


# ---- peers add --replace


def test_a_new_certificate_of_a_peer_replaces_the_old_one(folder: Path, tmp_path: Path) -> None:
    text, old = (folder / "party.yaml").read_text(), (folder / "peers" / f"{B}.pem").read_bytes()
    new = received(tmp_path, (-1, 500))
    found = fingerprint(new.read_bytes())
    ran = add(folder, new, "--replace", "--fingerprint", found)
    assert ran.code == 0
    assert "compare the fingerprint" not in ran.out
    assert peers_of(config(folder))[B].fingerprint == found
    (aside,) = (folder / "peers").glob(f"{B}.until-*.pem")
    assert aside.read_bytes() == old
    assert (folder / "party.yaml").read_text() == text


def test_replacing_needs_a_fingerprint_and_a_known_name(folder: Path, tmp_path: Path) -> None:
    new = received(tmp_path, (-1, 500))
    found = fingerprint(new.read_bytes())
    before = (folder / "peers" / f"{B}.pem").read_bytes()
    for options, says in (
        (["--replace"], "--replace needs --fingerprint"),
        (["--replace", "--fingerprint", "00" * 32], "not the expected fingerprint"),
        (["--replace", "--fingerprint", found, "--address", "h:1"], "the certificate alone"),
        ([], "give --replace for a new certificate"),
    ):
        ran = add(folder, new, *options)
        assert ran.code != 0
        assert says in problem(ran)
    assert (folder / "peers" / f"{B}.pem").read_bytes() == before
    assert invoke("party", "peers", "remove", B, "--config", folder / "party.yaml").code == 0
    assert f"{B} is not known" in problem(add(folder, new, "--replace", "--fingerprint", found))


def test_an_expired_certificate_is_not_installed(folder: Path, tmp_path: Path) -> None:
    invoke("party", "peers", "remove", B, "--config", folder / "party.yaml")
    ran = add(folder, received(tmp_path, (-30, -1)))
    assert ran.code == Exit.IDENTITY
    assert f"the certificate of {B} is valid from 20" in problem(ran)
    assert f"ask {B} for a new certificate" in problem(ran)
    assert config(folder).peers == {}


def test_an_early_certificate_is_installed_with_a_warning(folder: Path, tmp_path: Path) -> None:
    invoke("party", "peers", "remove", B, "--config", folder / "party.yaml")
    ran = add(folder, received(tmp_path, (0.01, 30)))
    assert ran.code == 0
    assert "the certificate is not valid yet: no job until then; compare the clocks" in ran.out


# ---- peers remove


def test_a_peer_is_removed(folder: Path) -> None:
    ran = invoke("party", "peers", "remove", B, "--config", folder / "party.yaml", "--format", "json")
    assert json.loads(ran.out) == {"name": B, "certificate": str(folder / "peers" / f"{B}.pem")}
    assert config(folder).peers == {}
    assert "# party peers add" in (folder / "party.yaml").read_text()
    again = invoke("party", "peers", "remove", B, "--config", folder / "party.yaml")
    assert again.code == Exit.USAGE
    assert f"{B} is not known" in problem(again)


# ---- who is told


def spoil(folder: Path, how: str) -> None:
    file = folder / "peers" / f"{B}.pem"
    if how == "absent":
        file.unlink()
        return
    file.write_bytes(
        {
            "expired": certificate_for([B], days=(-30, -1)).certificate,
            "early": certificate_for([B], days=(1, 30)).certificate,
            "of another": make_credentials("stranger").certificate,
            "nonsense": b"nonsense",
        }[how]
    )


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["expired", "early", "of another", "nonsense", "absent"])
def test_a_bad_certificate_of_a_peer_is_shown_and_stops_nothing(folder: Path, how: str) -> None:
    spoil(folder, how)
    for command in (["check"], ["peers", "list"]):
        ran = invoke("party", *command, "--config", folder / "party.yaml", "--format", "json")
        assert ran.code == 0, ran.err
        fields: dict[str, Any] = json.loads(ran.out)
        assert list(fields["warnings"]) == [B]
        assert "cannot be used: " in fields["warnings"][B]
        text = invoke("party", *command, "--config", folder / "party.yaml").out
        (line,) = [line for line in text.splitlines() if "warning" in line or "WARN" in line]
        assert f"certificate of {B}" in line
        assert "cannot be used: " in line
        assert (line.count("certificate of"), line.count(f"{B}.pem") <= 1) == (
            1,
            True,
        )  # nothing is said twice
    assert peers_of(config(folder)) == {}


def test_who_expires_within_thirty_days_is_named(folder: Path, tmp_path: Path) -> None:
    assert certificate_warnings(config(folder)) == {}
    new = received(tmp_path, (-1, 29))
    assert add(folder, new, "--replace", "--fingerprint", fingerprint(new.read_bytes())).code == 0
    write_credentials(folder / "tls", certificate_for([A], days=(-1, 20)))
    warnings = certificate_warnings(config(folder))
    assert set(warnings) == {A, B}
    assert all(text.startswith("expires at 20") and " UTC" in text for text in warnings.values())
    assert "party renew makes a new one" in warnings[A]
    assert (
        "warning: the certificate of hospital-b expires at"
        in invoke("party", "peers", "list", "--config", folder / "party.yaml").out
    )


def test_serve_and_run_warn_at_the_start(folder: Path, tmp_path: Path) -> None:
    """Nobody is served or asked here: the address is not ours, and there is no such peer."""
    write_credentials(folder / "tls", certificate_for([A], days=(-1, 20)))
    text = (folder / "party.yaml").read_text().replace("127.0.0.1:7400", "192.0.2.1:1")
    (folder / "party.yaml").write_text(text)
    ran = call("serve", "--config", folder / "party.yaml", "--format", "json", program="party")
    assert ran.lines[0]["event"] == "note"
    assert f"the certificate of {A} expires at" in ran.lines[0]["message"]
    assert "cannot listen on" in ran.problem["message"]


# ---- servers


def test_a_server_warns_every_day(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also after a day on which the configuration could not be read."""
    monkeypatch.setattr(certificates, "DAY_S", 0.01)
    file = folder / "peers" / f"{B}.pem"
    file.write_bytes(certificate_for([B], days=(-1, 20)).certificate)
    text, days = (folder / "party.yaml").read_text(), 0

    def in_force() -> PartyConfig:
        nonlocal days
        days += 1
        (folder / "party.yaml").write_text("{" if days == 1 else text)
        return config(folder)

    async def scenario() -> None:
        warning = asyncio.create_task(certificates.warn_daily(in_force))
        async with asyncio.timeout(GUARD_S):
            while days < 4:
                await asyncio.sleep(0.01)
        await stopped(warning)

    asyncio.run(scenario())
    assert capsys.readouterr().err.count(f"warning: the certificate of {B} ") >= 2
