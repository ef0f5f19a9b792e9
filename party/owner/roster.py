"""A roster: the certificates and addresses of many, in one file that a coordinator signed.

Whoever installs one compares one fingerprint on another channel, that of the roster, in place of one for each
certificate in it. It is the SHA-256 of all that is signed, so whoever was told the same fingerprint has the same
peers.
The signature says who made the file; nobody is trusted for it alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from jobs.errors import ConfigError, IdentityError, json_object
from jobs.fields import Address, Fields, Name, parse_model
from party.owner.config import NodeConfig, credentials_of, usable_peer
from party.owner.identity import common_name, fingerprint, read_bytes
from party.owner.signing import check_signature, der_of, sign

_MOST_BYTES = 8 << 20
_CONTEXT = b"jointcut roster 1\n"
"""Before what is signed: our keys sign other things, too."""


class Member(Fields):
    """Somebody on a roster."""

    certificate: str = Field(max_length=20_000, description="PEM.")
    address: Address | None = Field(default=None, description="host:port where others reach it.")


class _File(Fields):
    version: Literal["1"] = Field(description="Version of this format.")
    made_by: Name = Field(description="The coordinator that signed it.")
    members: dict[Name, Member] = Field(description="All of them, the coordinator included.")
    signature: str = Field(pattern="^[0-9a-f]{2,2048}$", description="Hexadecimal.")


@dataclass(frozen=True)
class Roster:
    """A roster whose signature is that of who made it."""

    made_by: str
    members: Mapping[str, Member]
    fingerprint: str


def made_roster(config: NodeConfig) -> tuple[str, bytes]:
    """The roster of all peers of a coordinator, and itself: the fingerprint, and the file's content.

    Raises PartyError for a peer with whom nobody can work now.
    """
    own = credentials_of(config)
    peers = {name: usable_peer(config, name) for name in config.peers}
    members = {name: _fields(peer.certificate, peer.address) for name, peer in peers.items()}
    members[config.name] = _fields(own.certificate, None)
    fields = {"version": "1", "made_by": config.name, "members": members}
    signed = _signed(fields)
    text = json.dumps(fields | {"signature": sign(own, signed).hex()}, indent=1, sort_keys=True) + "\n"
    return _fingerprint(signed), text.encode()


def read_roster(path: Path, expected: str | None) -> Roster:
    """Read a roster. Raises ConfigError for what is none, or if nobody told its fingerprint; IdentityError if it has
    another, is signed by somebody else, or has a certificate of another name or one twice.
    """
    if expected is None:
        raise ConfigError(
            "usage",
            "--roster needs --fingerprint: whoever brings a roster may be anybody",
            remedy="ask the coordinator for the roster's fingerprint on another channel",
        )
    content = read_bytes(path)
    fields = json_object(content) if len(content) <= _MOST_BYTES else None
    if fields is None:
        raise ConfigError("config-invalid", f"{path} is no roster")
    file = parse_model(_File, fields, str(path), "config-invalid")
    signed = _signed({key: value for key, value in fields.items() if key != "signature"})
    found = _fingerprint(signed)
    if expected.replace(":", "").lower() != found:
        raise IdentityError(
            "identity-mismatch",
            f"the roster has fingerprint {found}, not the expected one",
            remedy="do not install it; ask the coordinator for the fingerprint again, on another channel",
        )
    _check_members(file)
    maker = der_of(file.members[file.made_by].certificate.encode())
    check_signature(maker, bytes.fromhex(file.signature), signed, file.made_by)
    return Roster(file.made_by, file.members, found)


def _check_members(file: _File) -> None:
    """Every certificate is that of its name and nobody else's, and who made the file is one of them."""
    for name, member in file.members.items():
        if (found := common_name(member.certificate.encode())) != name:
            raise IdentityError("identity-mismatch", f"the roster has a certificate of {found} for {name}")
    if len({fingerprint(each.certificate.encode()) for each in file.members.values()}) < len(file.members):
        raise IdentityError("identity-mismatch", "the roster has one certificate under two names")
    if file.made_by not in file.members:
        raise ConfigError("config-invalid", f"the roster lacks {file.made_by}, who made it")


def _fields(certificate: bytes, address: str | None) -> dict[str, str]:
    return {"certificate": certificate.decode()} | ({"address": address} if address else {})


def _signed(fields: Mapping[str, Any]) -> bytes:
    """What is signed: one text for the same fields, however the file lays them out."""
    return _CONTEXT + json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _fingerprint(signed: bytes) -> str:
    return hashlib.sha256(signed).hexdigest()
