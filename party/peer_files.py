"""Installing identities and peers in a configuration folder: `init` and `peers add`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from party.config import NodeConfig
from party.errors import ConfigError, IdentityError
from party.identity import common_name, fingerprint, make_credentials, read_bytes, write_private
from party.job import NAME, parse_model
from party.yaml_text import parse_yaml, read_text

CERTIFICATE, KEY = "tls/certificate.pem", "tls/key.pem"


def make_identity(folder: Path, name: str) -> str:
    """Make a key and a certificate in ``folder``/tls; return the fingerprint. Refuses to overwrite."""
    if not NAME.fullmatch(name):
        raise ConfigError("config-invalid", "a name has letters, digits, dots, dashes and underscores only")
    if (folder / KEY).exists() or (folder / CERTIFICATE).exists():
        raise ConfigError(
            "output-exists",
            f"{folder / 'tls'} holds an identity already",
            remedy="keep it, or name another folder",
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
        raise ConfigError("output-exists", f"{config_path} exists", remedy="keep it, or name another folder")
    parse_model(model, parse_yaml(text, str(config_path)), str(config_path), "config-invalid")
    found = make_identity(folder, name)
    config_path.write_text(text, encoding="utf-8")
    return found


def add_peer(
    config_path: Path,
    config: NodeConfig,
    certificate: Path,
    name: str,
    address: str | None,
    expected: str | None,
) -> str:
    """Install a peer's certificate under its name; return the fingerprint.

    Raises, before anything is written, IdentityError if the certificate is for another name, is installed under
    another name, or does not have the expected fingerprint; ConfigError if the name is taken or the address
    malformed.
    """
    pem = read_bytes(certificate)
    _check_certificate(pem, name, expected)
    _check_unknown(config_path, config, pem, name)
    relative = Path("peers") / f"{name}.pem"
    text = with_peer(read_text(config_path), name, str(relative), address)
    parse_model(type(config), parse_yaml(text, str(config_path)), str(config_path), "config-invalid")
    target = config_path.resolve().parent / relative
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(pem)
    config_path.write_text(text, encoding="utf-8")
    return fingerprint(pem)


def _check_certificate(pem: bytes, name: str, expected: str | None) -> None:
    """Refuse a certificate of another name, or with another fingerprint than its owner told."""
    found = fingerprint(pem)
    if common_name(pem) != name:
        raise IdentityError("identity-mismatch", f"the certificate is for {common_name(pem)}, not for {name}")
    if expected is not None and expected.replace(":", "").lower() != found:
        raise IdentityError(
            "identity-mismatch",
            f"the certificate has fingerprint {found}, not the expected one",
            remedy="do not install it; ask its owner for the fingerprint again, on another channel",
        )


def _check_unknown(config_path: Path, config: NodeConfig, pem: bytes, name: str) -> None:
    """Refuse a name or a certificate that is installed already."""
    if name == config.name or name in config.peers:
        raise ConfigError(
            "config-invalid",
            f"{name} is known already",
            remedy=f"remove {name} from `peers` in {config_path} first",
        )
    for other, entry in config.peers.items():
        if fingerprint(read_bytes(entry.certificate)) == fingerprint(pem):
            raise IdentityError("identity-mismatch", f"the certificate is installed as {other} already")


def with_peer(text: str, name: str, certificate: str, address: str | None) -> str:
    """Add an entry to the `peers` mapping of a configuration, leaving everything else as it is written."""
    fields = {"certificate": certificate} | ({"address": address} if address else {})
    root = yaml.compose(text, Loader=yaml.BaseLoader)
    assert isinstance(root, yaml.MappingNode)
    for key, value in root.value:
        if key.value == "peers":
            return _with_entry(text, key, value, name, fields)
    return f"{text.rstrip()}\npeers:\n{_block(name, fields, 2)}"


def _with_entry(text: str, key: yaml.Node, value: yaml.Node, name: str, fields: Mapping[str, str]) -> str:
    """Put an entry first in the mapping it belongs to, in the style the mapping is written in."""
    if not isinstance(value, yaml.MappingNode) or not value.value:
        rest = text[value.end_mark.index :] if value.end_mark.index > key.end_mark.index else "\n"
        tail = rest.lstrip("\n") if rest.strip() else ""
        return f"{text[: key.end_mark.index]}:\n{_block(name, fields, 2)}{tail}"
    first = value.value[0][0].start_mark
    if value.flow_style:
        return f"{text[: first.index]}{name}: {json.dumps(fields)}, {text[first.index :]}"
    line = first.index - first.column
    return text[:line] + _block(name, fields, first.column) + text[line:]


def _block(name: str, fields: Mapping[str, str], indent: int) -> str:
    """An entry in block style."""
    lines = [f"{name}:", *(f"  {key}: {json.dumps(value)}" for key, value in fields.items())]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)
