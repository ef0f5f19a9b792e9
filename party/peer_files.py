"""Installing identities and peers in a configuration folder: `init` and `peers add`."""

from __future__ import annotations

from pathlib import Path

import yaml

from party.config import NodeConfig
from party.errors import ConfigError, IdentityError
from party.identity import common_name, fingerprint, make_credentials, read_bytes, write_private
from party.job import NAME
from party.yaml_text import read_text

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


def write_new(path: Path, text: str) -> None:
    """Write a configuration file that must not exist yet."""
    if path.exists():
        raise ConfigError("output-exists", f"{path} exists", remedy="keep it, or name another folder")
    path.write_text(text)


def add_peer(
    config_path: Path,
    config: NodeConfig,
    certificate: Path,
    name: str,
    address: str | None,
    expected: str | None,
) -> str:
    """Install a peer's certificate under its name; return the fingerprint.

    Raises IdentityError if the certificate is for another name, is installed under another name, or does not
    have the expected fingerprint; ConfigError if the name is taken.
    """
    pem = read_bytes(certificate)
    found = fingerprint(pem)
    if common_name(pem) != name:
        raise IdentityError("identity-mismatch", f"the certificate is for {common_name(pem)}, not for {name}")
    if expected is not None and expected.replace(":", "").lower() != found:
        raise IdentityError(
            "identity-mismatch",
            f"the certificate has fingerprint {found}, not the expected one",
            remedy="do not install it; ask its owner for the fingerprint again, on another channel",
        )
    if name == config.name or name in config.peers:
        raise ConfigError(
            "config-invalid",
            f"{name} is known already",
            remedy=f"remove {name} from `peers` in {config_path} first",
        )
    for other, entry in config.peers.items():
        if fingerprint(read_bytes(entry.certificate)) == found:
            raise IdentityError("identity-mismatch", f"the certificate is installed as {other} already")
    relative = Path("peers") / f"{name}.pem"
    text = with_peer(read_text(config_path), name, str(relative), address)
    target = config_path.resolve().parent / relative
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(pem)
    config_path.write_text(text)
    return found


def with_peer(text: str, name: str, certificate: str, address: str | None) -> str:
    """Add an entry to the `peers` mapping of a configuration, leaving everything else as it is written."""
    entry = f"  {name}:\n    certificate: {certificate}\n" + (
        f'    address: "{address}"\n' if address else ""
    )
    root = yaml.compose(text, Loader=yaml.BaseLoader)
    assert isinstance(root, yaml.MappingNode)
    for key, value in root.value:
        if key.value != "peers":
            continue
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            at = text.rindex("\n", 0, value.value[0][0].start_mark.index) + 1
            return text[:at] + entry + text[at:]
        rest = text[value.end_mark.index :] if value.end_mark.index > key.end_mark.index else "\n"
        return f"{text[: key.end_mark.index]}:\n{entry}{rest.lstrip(chr(10)) if rest.strip() else ''}"
    return f"{text.rstrip()}\npeers:\n{entry}"
