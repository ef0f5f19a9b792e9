"""Installing identities and peers in a configuration folder: `init`, `peers add` and `peers remove`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from jobs.errors import ConfigError, IdentityError, PartyError
from jobs.file.fields import NAME, parse_model
from jobs.file.yaml_text import parse_yaml, read_text
from party.owner.config import NodeConfig, credentials_of, parse_config
from party.owner.identity import (
    Peer,
    check_validity,
    common_name,
    fingerprint,
    has_expired,
    is_put_aside,
    make_credentials,
    private_files,
    put_aside,
    read_bytes,
    replace_file,
    validity,
    write_private,
)
from party.owner.roster import read_roster

CERTIFICATE, KEY = "tls/certificate.pem", "tls/key.pem"


def make_identity(folder: Path, name: str) -> str:
    """Make a key and a certificate in ``folder``/tls; return the fingerprint. Refuses to overwrite."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            "config-invalid",
            f"{name!r} is no name",
            remedy="write a name of letters, digits, dots, dashes and underscores, 64 at most",
        )
    if (folder / KEY).exists() or (folder / CERTIFICATE).exists():
        raise ConfigError(
            "output-exists",
            f"{folder / 'tls'} holds an identity already",
            remedy="keep the file, or name a different folder",
        )
    (folder / "tls").mkdir(parents=True, exist_ok=True)
    (folder / "peers").mkdir(exist_ok=True)
    credentials = make_credentials(name)
    write_private(folder / KEY, credentials.key)
    (folder / CERTIFICATE).write_bytes(credentials.certificate)
    return fingerprint(credentials.certificate)


def set_up(folder: Path, name: str, config_path: Path, model: type[NodeConfig], text: str) -> str:
    """Make an identity and write a new configuration; return the fingerprint.

    Raises ConfigError, before anything is written, if either exists or the configuration would be invalid.
    """
    if config_path.exists():
        raise ConfigError(
            "output-exists", f"{config_path} exists", remedy="keep the file, or name a different folder"
        )
    fields = json.loads(
        json.dumps(parse_yaml(text, "the options"))
    )  # without lines of a file that is not there
    parse_model(model, fields, "the options", "config-invalid")
    with private_files():
        found = make_identity(folder, name)
        config_path.write_text(text, encoding="utf-8")
    return found


@dataclass(frozen=True)
class Added:
    """Certificate installed for a peer.

    early:  the certificate is not yet valid by our clock, so a clock may be wrong.
    """

    fingerprint: str
    until: datetime
    early: bool


def add_peer(
    config_path: Path,
    config: NodeConfig,
    certificate: Path,
    name: str,
    address: str | None,
    expected: str | None,
) -> Added:
    """Install a peer's certificate under its name.

    Raises, before anything is written, IdentityError if the certificate is for another name, has expired, is
    installed under another name, or does not have the expected fingerprint; ConfigError if the name is taken or the
    address malformed.
    """
    pem = read_bytes(certificate)
    _check_certificate(pem, name, expected)
    if name == config.name or name in config.peers:
        raise ConfigError(
            "config-invalid",
            f"{name} is known already",
            remedy=f"give --replace for a new certificate of {name}, or see: {config.PROGRAM} peers remove {name}",
        )
    _check_new(config, pem)
    _install(config_path, config, [Peer(name, pem, address)])
    return _added(pem)


def _install(config_path: Path, config: NodeConfig, peers: Sequence[Peer]) -> None:
    """Write certificates of new peers, and then the configuration. Raises ConfigError before anything is written.

    Another certificate in the file of a new peer is of a time before the peer was removed. The certificate stays
    beside the new, dated: earlier signatures stay valid.
    """
    text = read_text(config_path)
    for peer in peers:
        if is_put_aside(_file_of(peer.name)):  # the certificate would count as an earlier one of another peer
            raise ConfigError("config-invalid", f"{peer.name} is the name of a file that is kept aside")
        text = with_peer(text, peer.name, str(_file_of(peer.name)), peer.address)
    _check_text(config_path, config, text)
    for peer in peers:
        target = config_path.resolve().parent / _file_of(peer.name)
        target.parent.mkdir(exist_ok=True)
        if target.exists() and _fingerprint_of(target) != fingerprint(peer.certificate):
            _put_aside(target)
        replace_file(target, peer.certificate)
    replace_file(config_path, text.encode())


def _put_aside(certificate: Path) -> None:
    put_aside(certificate, f"{datetime.now(UTC):%Y%m%dT%H%M%S}")


def _file_of(name: str) -> Path:
    """Return the file of a new peer's certificate, relative to the folder of the configuration."""
    return Path("peers") / f"{name}.pem"


@dataclass(frozen=True)
class Enrolled:
    """Outcome of a roster, by name.

    added:   new peers.
    known:   peers that were installed before with the same certificate, and our own name if the roster has it.
    removed: peers whose certificate was installed here once, and taken out: they are not installed again.
    moved:   peers of ``known`` with an address that differs from the roster's: the configuration stays.
    """

    added: Mapping[str, Added]
    addresses: Mapping[str, str | None]
    known: Sequence[str]
    removed: Sequence[str]
    moved: Mapping[str, str]


def add_roster(config_path: Path, config: NodeConfig, roster: Path, expected: str) -> Enrolled:
    """Install all peers of a roster that are not known yet: all of them, or nobody.

    A certificate that was removed here stays away: an old roster must not bring back a stolen key. ``peers add`` of
    the certificate itself installs the peer again.

    Raises, before anything is written, the errors of :func:`read_roster`; IdentityError if the roster has another
    certificate of our own name or of a known peer; ConfigError if the configuration would be invalid.
    """
    peers = read_roster(roster, expected)
    installed = {name: _fingerprint_of(entry.certificate) for name, entry in config.peers.items()}
    installed[config.name] = fingerprint(credentials_of(config).certificate)
    for peer in peers:
        _check_installed(config, installed, peer, roster)
    kept = _kept_aside(config_path)
    unknown = [peer for peer in peers if peer.name not in installed]
    new = [peer for peer in unknown if peer.fingerprint not in kept]
    known = [peer for peer in peers if peer.name in installed]
    if new:
        _install(config_path, config, new)
    entries = {peer.name: config.peers.get(peer.name) for peer in known}
    return Enrolled(
        {peer.name: _added(peer.certificate) for peer in new},
        {peer.name: peer.address for peer in new},
        [peer.name for peer in known],
        [peer.name for peer in unknown if peer.fingerprint in kept],
        {
            peer.name: peer.address
            for peer in known
            if peer.address and (entry := entries[peer.name]) and entry.address != peer.address
        },
    )


def _kept_aside(config_path: Path) -> frozenset[str | None]:
    """Return the fingerprints of all certificates in the folder of peers, installed or not."""
    return frozenset(map(_fingerprint_of, (config_path.resolve().parent / "peers").glob("*.pem")))


def _check_installed(
    config: NodeConfig, installed: Mapping[str, str | None], peer: Peer, roster: Path
) -> None:
    """Refuse another certificate of a known name. A certificate has one name, so no name has a known certificate."""
    if peer.name == config.name and installed[peer.name] != peer.fingerprint:
        raise IdentityError(
            "identity-mismatch",
            f"{roster} has another certificate of {config.name} than our own",
            remedy="install nothing; send our certificate to the coordinator again, and ask for another roster",
        )
    if peer.name in installed and installed[peer.name] != peer.fingerprint:
        raise IdentityError(
            "identity-mismatch",
            f"{roster} has another certificate of {peer.name} than the installed certificate",
            remedy=f"ask {peer.name} for the fingerprint over a separate channel, then: {config.PROGRAM} peers add "
            f"{peer.name} CERTIFICATE --replace --fingerprint SHA256",
        )


def replace_peer(config: NodeConfig, certificate: Path, name: str, expected: str | None) -> Added:
    """Install a new certificate of a known peer, in the file named by the configuration.

    The old certificates stay beside the new, dated: earlier signatures stay valid.

    Raises, before anything is written, IdentityError as :func:`add_peer`; ConfigError if the peer is not known, or
    nobody gave the fingerprint.
    """
    if name not in config.peers:
        raise ConfigError("usage", f"{name} is not known", remedy="leave --replace out")
    if expected is None:
        raise ConfigError(
            "usage",
            "--replace needs --fingerprint, because a stranger may bring a new certificate",
            remedy=f"ask {name} for the fingerprint over a separate channel",
        )
    pem = read_bytes(certificate)
    _check_certificate(pem, name, expected)
    _check_new(config, pem)
    target = config.peers[name].certificate
    if target.exists():
        _put_aside(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, pem)
    return _added(pem)


def remove_peer(config_path: Path, config: NodeConfig, name: str) -> Path:
    """Take a peer out of the configuration; return its certificate's file, which stays.

    Raises ConfigError, before anything is written, if there is no such peer.
    """
    if name not in config.peers:
        raise ConfigError("usage", f"{name} is not known", remedy=f"see: {config.PROGRAM} peers list")
    text = without_peer(read_text(config_path), name)
    _check_text(config_path, config, text)
    replace_file(config_path, text.encode())
    return config.peers[name].certificate


def _added(pem: bytes) -> Added:
    since, until = validity(pem)
    return Added(fingerprint(pem), until, since > datetime.now(UTC))


def _check_text(config_path: Path, config: NodeConfig, text: str) -> None:
    parse_config(type(config), text, config_path)


def _check_certificate(pem: bytes, name: str, expected: str | None) -> None:
    """Refuse a certificate of a wrong name, with a wrong fingerprint, or past its time."""
    found = fingerprint(pem)
    if common_name(pem) != name:
        raise IdentityError("identity-mismatch", f"the certificate is for {common_name(pem)}, not for {name}")
    if expected is not None and expected.replace(":", "").lower() != found:
        raise IdentityError(
            "identity-mismatch",
            f"the certificate has fingerprint {found}, not the expected fingerprint",
            remedy="do not install the certificate; ask the owner for the fingerprint again, over a separate "
            "channel",
        )
    if has_expired(pem):
        check_validity(pem, name, f"ask {name} for a new certificate (made by `renew`), or correct the clock")


def _check_new(config: NodeConfig, pem: bytes) -> None:
    """Refuse a certificate already installed."""
    for other, entry in config.peers.items():
        if _fingerprint_of(entry.certificate) == fingerprint(pem):
            raise IdentityError("identity-mismatch", f"the certificate is installed as {other} already")


def _fingerprint_of(file: Path) -> str | None:
    """Return the fingerprint of an installed certificate of any name, or None without a readable certificate."""
    try:
        return fingerprint(read_bytes(file))
    except PartyError:
        return None


# ---- the text of a configuration: a single entry changes, everything else stays as the owner wrote


def with_peer(text: str, name: str, certificate: str, address: str | None) -> str:
    """Put an entry last in the `peers` mapping of a configuration."""
    fields = {"certificate": certificate} | ({"address": address} if address else {})
    found = _peers_in(text)
    if found is None:
        return f"{text.rstrip()}\npeers:\n{_block(name, fields, 2)}"
    key, value = found
    if not isinstance(value, yaml.MappingNode) or not value.value:
        return _with_first(text, key, value, _block(name, fields, key.start_mark.column + 2))
    end = _end_of(value.value[-1][1])
    if value.flow_style:
        return f"{text[:end]}, {name}: {json.dumps(fields)}{text[end:]}"
    return _inserted(text, _after_line(text, end), _block(name, fields, value.value[0][0].start_mark.column))


def without_peer(text: str, name: str) -> str:
    """Take an existing entry out of the `peers` mapping of a configuration."""
    found = _peers_in(text)
    assert found is not None
    key, value = found
    entries = {entry.value: (entry, content) for entry, content in value.value}
    start, end = entries[name][0].start_mark, _end_of(entries[name][1])
    if value.flow_style:
        return _without_item(text, start.index, end)
    rest = text[: start.index - start.column] + text[_after_line(text, end) :]
    if len(entries) > 1:
        return rest
    colon = _behind_colon(rest, key)
    return f"{rest[:colon]} {{}}{rest[colon:]}"


def _peers_in(text: str) -> tuple[Any, Any] | None:
    """Return the nodes of `peers` and of its value."""
    root = yaml.compose(text, Loader=yaml.BaseLoader)
    assert isinstance(root, yaml.MappingNode)
    return next(((key, value) for key, value in root.value if key.value == "peers"), None)


def _with_first(text: str, key: yaml.Node, value: yaml.Node, block: str) -> str:
    """Put a block under a `peers` with an empty value or `{}`; a comment behind stays in place."""
    start, end = value.start_mark.index, value.end_mark.index
    if end > start:
        text = text[:start] + " " * (end - start) + text[end:]
    line = _after_line(text, _behind_colon(text, key))
    return f"{text[:line].rstrip()}\n{block}{text[line:]}"


def _inserted(text: str, place: int, block: str) -> str:
    """Put a block at the beginning of a line; the line before may lack its end."""
    before = text[:place]
    return before + ("" if before.endswith("\n") else "\n") + block + text[place:]


def _without_item(text: str, start: int, end: int) -> str:
    """Take an item out of a flow mapping, with the comma behind the item, or else the comma before."""
    behind = re.match(r"\s*,[ \t]*", text[end:])
    if behind is not None:
        return text[:start] + text[end + behind.end() :]
    before = re.search(r",\s*$", text[:start])
    return text[: before.start() if before else start] + text[end:]


def _behind_colon(text: str, key: yaml.Node) -> int:
    return text.index(":", key.end_mark.index) + 1


def _end_of(node: yaml.Node) -> int:
    """Return the end of a node; the end mark of a block mapping stands behind the comments that follow."""
    while isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        node = node.value[-1][1]
    return int(node.end_mark.index)


def _after_line(text: str, place: int) -> int:
    """Return the beginning of the next line."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def _block(name: str, fields: Mapping[str, str], indent: int) -> str:
    """Return an entry in block style."""
    lines = [f"{name}:", *(f"  {key}: {json.dumps(value)}" for key, value in fields.items())]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)
