"""Rosters: names, certificates and addresses of the parties of a coordinator, in a file that the coordinator signed.

A party compares the fingerprint of the coordinator, and installs all parties from the file. The signature covers the
canonical JSON of the parsed content, so every value in use is signed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field

from jobs.errors import ConfigError, IdentityError, PartyError, json_object
from jobs.file.fields import Fields, Name, parse_model
from party.owner.config import NodeConfig, PeerAddress, credentials_of, usable_peer
from party.owner.identity import Peer, alone, check_validity, common_name, fingerprint, has_expired
from party.owner.signing import check_signature, der_of, sign

MAX_BYTES = 4 << 20
"""Largest roster: some thousand parties."""
_MAX_CERTIFICATE_CHARS = 1 << 14

T = TypeVar("T")


class Entry(Fields):
    """A party of a roster, or the coordinator."""

    name: Name = Field(description="Name, as in the certificate and in job files.")
    certificate: str = Field(max_length=_MAX_CERTIFICATE_CHARS, description="Certificate (PEM).")
    address: PeerAddress | None = Field(default=None, description="host:port of the party, or `relay`.")


class Content(Fields):
    """Signed content of a roster."""

    format: Literal["jointcut/roster/1"] = Field(description="Version of this format.")
    coordinator: Entry = Field(description="The signer.")
    parties: tuple[Entry, ...] = Field(min_length=1, description="The parties.")

    @property
    def encoded(self) -> bytes:
        """Signed bytes: canonical JSON."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":")).encode()


class Roster(Fields):
    """File of a roster."""

    content: Content = Field(description="Names, certificates and addresses.")
    signature: str = Field(max_length=2048, description="Signature of the coordinator, base64.")

    @property
    def text(self) -> str:
        """Text of the file."""
        return json.dumps(self.model_dump(mode="json"), indent=1) + "\n"


def make_roster(config: NodeConfig) -> Roster:
    """Sign all our peers as ourselves.

    Raises ConfigError without a peer, and PartyError, with name and remedy, for a peer with an unusable certificate.
    """
    if not config.peers:
        raise ConfigError(
            "config-invalid",
            f"{config.name} knows no party, so a roster would be empty",
            remedy=f"install the parties first: {config.PROGRAM} peers add NAME CERTIFICATE --address HOST:PORT",
        )
    own = credentials_of(config)
    peers = [usable_peer(config, name) for name in sorted(config.peers)]
    content = Content(
        format="jointcut/roster/1",
        coordinator=_entry(Peer(config.name, alone(own.certificate))),
        parties=tuple(map(_entry, peers)),
    )
    return Roster(content=content, signature=base64.b64encode(sign(own, content.encoded)).decode())


def _entry(peer: Peer) -> Entry:
    return Entry(name=peer.name, certificate=peer.certificate.decode(), address=peer.address)


def read_roster(path: Path, expected: str) -> list[Peer]:
    """Return the peers of a roster, the coordinator first, if the coordinator has the expected fingerprint.

    Raises ConfigError for a file that is no roster, or names two peers alike; IdentityError for a different signer, a
    changed file, or a certificate that is unusable or for another name: so two names never share a certificate.
    """
    roster = _parsed(path)
    _check_signer(roster, expected, path)
    peers = [_peer(entry, path) for entry in (roster.content.coordinator, *roster.content.parties)]
    if (name := _repeated(peer.name for peer in peers)) is not None:
        raise ConfigError("config-invalid", f"{path} names {name} twice", remedy=_ASK)
    return peers


_ASK = "install nothing; ask the coordinator for another roster"


def _parsed(path: Path) -> Roster:
    """Read a file of bounded size. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}") from error
    if len(text) > MAX_BYTES:
        raise ConfigError(
            "config-invalid", f"{path} is larger than {MAX_BYTES >> 20} MiB, so no roster", remedy=_OF_EXPORT
        )
    fields = json_object(text)
    if fields is None:
        raise ConfigError("config-invalid", f"{path} is no roster: not a JSON object", remedy=_OF_EXPORT)
    try:
        return parse_model(Roster, fields, str(path), "config-invalid")
    except ConfigError as error:  # nobody mends a signed file by hand
        raise ConfigError("config-invalid", error.problem.message, remedy=_ASK) from error


_OF_EXPORT = "name a file that `coordinator roster export` printed"


def _check_signer(roster: Roster, expected: str, path: Path) -> None:
    """Refuse a roster of another coordinator, and a roster that was changed."""
    signer = roster.content.coordinator
    pem = _certificate(signer, path)
    found = fingerprint(pem)
    if expected.replace(":", "").lower() != found:
        raise IdentityError(
            "identity-mismatch",
            f"{path} is signed with fingerprint {found}, not with the expected fingerprint",
            remedy="install nothing; ask the coordinator for the fingerprint again, over a separate channel",
        )
    try:
        signature = base64.b64decode(roster.signature, validate=True)
        check_signature(der_of(pem), signature, roster.content.encoded, signer.name)
    except (binascii.Error, ValueError, IdentityError) as error:
        message = f"{path} was changed after {signer.name} signed it"
        raise IdentityError("identity-mismatch", message, remedy=_ASK) from error


def _peer(entry: Entry, path: Path) -> Peer:
    """Return an entry as a peer. Raises IdentityError if the certificate is for another name, or has expired."""
    pem = _certificate(entry, path)
    if (found := common_name(pem)) != entry.name:
        message = f"{path} gives {entry.name} a certificate for {found}"
        raise IdentityError("identity-mismatch", message, remedy=_ASK)
    if has_expired(pem):
        check_validity(pem, entry.name, f"correct the clock, or wait for a new certificate of {entry.name}")
    return Peer(entry.name, pem, entry.address)


def _certificate(entry: Entry, path: Path) -> bytes:
    """Return the first certificate of an entry, PEM. Raises IdentityError without a certificate."""
    try:
        pem = alone(entry.certificate.encode())
        common_name(pem)
    except (PartyError, UnicodeEncodeError) as error:
        message = f"{path} has no usable certificate of {entry.name}"
        raise IdentityError("tls-failed", message, remedy=_ASK) from error
    return pem


def _repeated(values: Iterable[T]) -> T | None:
    """Return the first value that occurred before."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
