"""Rosters: exported by a coordinator, installed whole by a party; a hostile roster changes nothing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError, PartyError
from party.owner.config import CoordinatorConfig, PartyConfig, load_config
from party.owner.identity import Credentials, fingerprint, make_credentials
from party.owner.peer_files import Enrolled, add_roster
from party.owner.roster import MAX_BYTES, Content, Roster, make_roster
from party.owner.signing import sign
from tests.support.commands import Ran, invoke
from tests.support.identities import certificate_for

A, B, C = "hospital-a", "hospital-b", "hospital-c"


@dataclass(frozen=True)
class Agency:
    """A coordinator with its own key, and the folder of the party A."""

    folder: Path
    credentials: Credentials
    party: Path

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.credentials.certificate)

    def signed(self, content: Content, by: Credentials | None = None) -> Roster:
        signature = sign(by or self.credentials, content.encoded)
        return Roster(content=content, signature=base64.b64encode(signature).decode())

    def add(self, text: str | bytes) -> Enrolled:
        file = self.folder / "roster.json"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        config = self.party / "party.yaml"
        return add_roster(config, load_config(PartyConfig, config), file, self.fingerprint)


def certificate(folder: Path, name: str) -> Path:
    return folder / name / "tls" / "certificate.pem"


@pytest.fixture
def agency(tmp_path: Path) -> Agency:
    """A coordinator that knows A, B and C."""
    folder = tmp_path / "agency"
    assert invoke("coordinator", "init", "--name", "agency", "--dir", folder).code == 0
    config = folder / "coordinator.yaml"
    for number, name in enumerate((A, B, C)):
        assert invoke("party", "init", "--name", name, "--dir", tmp_path / name).code == 0
        add: list[str | Path] = [
            "peers",
            "add",
            name,
            certificate(tmp_path, name),
            "--address",
            f"{name}:{7400 + number}",
        ]
        assert invoke("coordinator", *add, "--config", config).code == 0
    tls = folder / "tls"
    own = Credentials((tls / "certificate.pem").read_bytes(), (tls / "key.pem").read_bytes())
    return Agency(folder, own, tmp_path / A)


def exported(agency: Agency) -> Ran:
    return invoke("coordinator", "roster", "export", "--config", agency.folder / "coordinator.yaml")


def content(agency: Agency) -> Content:
    return make_roster(load_config(CoordinatorConfig, agency.folder / "coordinator.yaml")).content


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def enrol(agency: Agency, expected: str, *options: str) -> Ran:
    file = agency.folder / "roster.json"
    file.write_text(exported(agency).out)
    arguments: list[str | Path] = ["peers", "add", "--roster", file, "--fingerprint", expected, *options]
    return invoke("party", *arguments, "--config", agency.party / "party.yaml")


def test_a_party_installs_everybody_after_one_comparison(agency: Agency, tmp_path: Path) -> None:
    told = exported(agency).err
    assert agency.fingerprint in told
    ran = enrol(agency, ":".join(agency.fingerprint[i : i + 2] for i in range(0, 64, 2)).upper())
    assert ran.code == 0, ran.err
    peers = load_config(PartyConfig, agency.party / "party.yaml").peers
    assert {name: entry.address for name, entry in peers.items()} == {
        "agency": None,
        B: f"{B}:7401",
        C: f"{C}:7402",
    }
    for name in (B, C):
        assert peers[name].certificate.read_bytes() == certificate(tmp_path, name).read_bytes()
        assert fingerprint(certificate(tmp_path, name).read_bytes()) in ran.out
    assert agency.fingerprint in ran.out
    assert "the coordinator vouches for these certificates" in ran.out
    assert f"known before, with the same certificate: {A}" in ran.out


def test_a_second_roster_adds_who_is_new(agency: Agency, tmp_path: Path) -> None:
    assert enrol(agency, agency.fingerprint).code == 0
    before = files(agency.party)
    again = json.loads(enrol(agency, agency.fingerprint, "--format", "json").out)
    assert (again["added"], again["known"]) == ({}, ["agency", A, B, C])
    assert files(agency.party) == before
    assert invoke("party", "init", "--name", "d", "--dir", tmp_path / "d").code == 0
    config: list[str | Path] = ["--config", agency.folder / "coordinator.yaml"]
    assert invoke("coordinator", "peers", "add", "d", certificate(tmp_path, "d"), *config).code == 0
    assert list(json.loads(enrol(agency, agency.fingerprint, "--format", "json").out)["added"]) == ["d"]


@pytest.mark.parametrize("renewed", [False, True])
def test_an_old_roster_does_not_bring_back_a_removed_peer(
    agency: Agency, tmp_path: Path, renewed: bool
) -> None:
    """Its key may be stolen. The certificate itself, given by the owner, installs the peer again."""
    assert enrol(agency, agency.fingerprint).code == 0
    config: list[str | Path] = ["--config", agency.party / "party.yaml"]
    old = agency.party / "old.pem"
    old.write_bytes(certificate(tmp_path, C).read_bytes())
    if renewed:
        new = agency.party / "new.pem"
        new.write_bytes(certificate_for([C]).certificate)
        again: list[str | Path] = [
            "peers",
            "add",
            C,
            new,
            "--replace",
            "--fingerprint",
            fingerprint(new.read_bytes()),
        ]
        assert invoke("party", *again, *config).code == 0
    assert invoke("party", "peers", "remove", C, *config).code == 0
    ran = enrol(agency, agency.fingerprint)
    assert ran.code == 0
    assert f"not installed, as after `peers remove`: {C}" in ran.out
    assert json.loads(enrol(agency, agency.fingerprint, "--format", "json").out)["removed_before"] == [C]
    assert C not in load_config(PartyConfig, agency.party / "party.yaml").peers
    assert invoke("party", "peers", "add", C, old, *config).code == 0
    assert C in load_config(PartyConfig, agency.party / "party.yaml").peers


def test_an_address_of_a_known_peer_stays_as_its_owner_wrote_it(agency: Agency, tmp_path: Path) -> None:
    add: list[str | Path] = ["peers", "add", B, certificate(tmp_path, B), "--address", "elsewhere:1"]
    assert invoke("party", *add, "--config", agency.party / "party.yaml").code == 0
    told = json.loads(enrol(agency, agency.fingerprint, "--format", "json").out)
    assert told["other_addresses"] == {B: f"{B}:7401"}
    assert load_config(PartyConfig, agency.party / "party.yaml").peers[B].address == "elsewhere:1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "nobody to add"),
        (["--roster", "x"], "--roster needs --fingerprint"),
        ([B, "--roster", "x", "--fingerprint", "00"], "a roster has names and addresses itself"),
    ],
)
def test_command_lines(agency: Agency, arguments: list[str], said: str) -> None:
    ran = invoke("party", "peers", "add", *arguments, "--config", agency.party / "party.yaml")
    assert ran.code == 2
    assert said in ran.err


def test_a_coordinator_without_parties_has_no_roster(tmp_path: Path) -> None:
    assert invoke("coordinator", "init", "--name", "agency", "--dir", tmp_path).code == 0
    ran = invoke("coordinator", "roster", "export", "--config", tmp_path / "coordinator.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "a roster would be empty" in ran.err


# ---- hostile rosters


def party_changed(index: int, **fields: Any) -> Callable[[Agency], str]:
    """A roster whose coordinator itself signed another entry of a party."""

    def made(agency: Agency) -> str:
        whole = content(agency)
        parties = list(whole.parties)
        parties[index] = parties[index].model_copy(update=fields)
        return agency.signed(whole.model_copy(update={"parties": tuple(parties)})).text

    return made


def edited(agency: Agency) -> str:
    return make_text(agency).replace(f"{B}:7401", "evil:7401")


def make_text(agency: Agency) -> str:
    return agency.signed(content(agency)).text


def of_somebody_else(agency: Agency) -> str:
    mallory = make_credentials("agency")
    whole = content(agency)
    signer = whole.coordinator.model_copy(update={"certificate": mallory.certificate.decode()})
    return agency.signed(whole.model_copy(update={"coordinator": signer}), mallory).text


def under_a_borrowed_certificate(agency: Agency) -> str:
    return agency.signed(content(agency), make_credentials("agency")).text


def unnamed(agency: Agency, name: str) -> str:
    fields = json.loads(make_text(agency))
    fields["content"]["parties"][1]["name"] = name
    return json.dumps(fields)


def stranger(name: str) -> str:
    return make_credentials(name).certificate.decode()


HOSTILE: dict[str, tuple[Callable[[Agency], str | bytes], str]] = {
    "changed": (edited, "was changed after agency signed it"),
    "other-signer": (of_somebody_else, "not with the expected fingerprint"),
    "borrowed": (under_a_borrowed_certificate, "was changed after agency signed it"),
    "no-base64": (
        lambda agency: json.dumps(json.loads(make_text(agency)) | {"signature": "ü"}),
        "was changed after agency signed it",
    ),
    "same-name": (
        lambda agency: party_changed(2, name=B, certificate=content(agency).parties[1].certificate)(agency),
        f"names {B} twice",
    ),
    "second-coordinator": (
        lambda agency: (
            agency.signed(
                content(agency).model_copy(
                    update={"parties": (*content(agency).parties, content(agency).coordinator)}
                )
            ).text
        ),
        "names agency twice",
    ),
    "shared-certificate": (
        lambda agency: party_changed(2, certificate=content(agency).parties[1].certificate)(agency),
        f"gives {C} a certificate for {B}",
    ),
    "our-name": (party_changed(0, certificate=stranger(A)), f"another certificate of {A} than our own"),
    "no-certificate": (party_changed(1, certificate="none"), f"no usable certificate of {B}"),
    "expired": (
        party_changed(1, certificate=certificate_for([B], days=(-9, -1)).certificate.decode()),
        f"the certificate of {B} is valid from",
    ),
    "path": (lambda agency: unnamed(agency, "../../hospital-b"), "write a name of letters"),
    "absolute-path": (lambda agency: unnamed(agency, "/etc/passwd"), "write a name of letters"),
    "kept-aside": (
        party_changed(
            1,
            name=f"{C}.until-20260101T000000",
            certificate=stranger(f"{C}.until-20260101T000000"),
        ),
        "the name of a file that is kept aside",
    ),
    "address": (
        lambda agency: make_text(agency).replace(f"{B}:7401", "nowhere"),
        "write host:port",
    ),
    "huge": (lambda _: b"{" + b" " * MAX_BYTES + b"}", "is larger than 4 MiB, so no roster"),
    "not-json": (lambda _: b"\x00\xff", "is no roster: not a JSON object"),
    "deep": (lambda _: "[" * 100_000, "is no roster: not a JSON object"),
    "repeated-key": (
        lambda agency: make_text(agency).replace('"content"', '"signature": "", "content"', 1),
        "is no roster: not a JSON object",
    ),
    "more": (
        lambda agency: json.dumps(json.loads(make_text(agency)) | {"policy": {}}),
        "policy",
    ),
    "empty": (
        lambda agency: agency.signed(content(agency).model_copy(update={"parties": ()})).text,
        "content.parties",
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_roster_changes_nothing(agency: Agency, kind: str) -> None:
    make, said = HOSTILE[kind]
    text, before = make(agency), files(agency.party)
    with pytest.raises(PartyError) as caught:
        agency.add(text)
    assert said in caught.value.problem.message
    assert len(caught.value.problem.message) < 400
    assert files(agency.party) == before


def test_a_roster_without_a_signature_is_not_mended_by_hand(agency: Agency) -> None:
    with pytest.raises(PartyError) as caught:
        agency.add(json.dumps({"content": json.loads(make_text(agency))["content"]}))
    assert "signature" in caught.value.problem.message
    assert caught.value.problem.remedy == "install nothing; ask the coordinator for another roster"


def test_a_known_peer_keeps_its_certificate(agency: Agency, tmp_path: Path) -> None:
    mine = tmp_path / "b.pem"
    mine.write_text(stranger(B))
    assert invoke("party", "peers", "add", B, mine, "--config", agency.party / "party.yaml").code == 0
    before = files(agency.party)
    with pytest.raises(PartyError) as caught:
        agency.add(make_text(agency))
    assert f"another certificate of {B} than the installed certificate" in caught.value.problem.message
    assert files(agency.party) == before


def test_a_missing_roster(agency: Agency, tmp_path: Path) -> None:
    config = agency.party / "party.yaml"
    with pytest.raises(ConfigError) as caught:
        add_roster(config, load_config(PartyConfig, config), tmp_path / "none", agency.fingerprint)
    assert caught.value.problem.error_id == "file-missing"
