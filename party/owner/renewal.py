"""New identity in place of the old identity, for `renew`. Peers trust the new certificate once installed."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.errors import IdentityError, PartyError
from party.owner.config import NodeConfig
from party.owner.identity import (
    PRIVATE,
    fingerprint,
    in_words,
    make_credentials,
    put_aside,
    read_bytes,
    replace_file,
    signs_itself,
    validity,
)


@dataclass(frozen=True)
class Renewed:
    """New identity, with the place of the old files."""

    fingerprint: str
    certificate: Path
    until: str
    kept: tuple[Path, ...]


def renew(config: NodeConfig) -> Renewed:
    """Make a new key and certificate at the configured places; keep the old files beside the new.

    Raises IdentityError, before anything is written, for a certificate from an authority.
    """
    tls = config.tls
    if _from_an_authority(tls.certificate):
        raise IdentityError(
            "identity-mismatch",
            f"the certificate in {tls.certificate} comes from an authority",
            remedy="ask the authority for a new certificate",
        )
    made = make_credentials(config.name)
    when = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    kept = [put_aside(file, when) for file in (tls.certificate, tls.key) if file.exists()]
    tls.key.parent.mkdir(parents=True, exist_ok=True)
    replace_file(tls.key, made.key, _mode_of_key(tls.key))
    replace_file(tls.certificate, made.certificate)
    until = in_words(validity(made.certificate)[1])
    return Renewed(fingerprint(made.certificate), tls.certificate, until, tuple(kept))


def _from_an_authority(certificate: Path) -> bool:
    """Return True if a certificate exists with a signature of anybody but its owner. Unreadable ones are replaced."""
    try:
        return not signs_itself(read_bytes(certificate))
    except PartyError:
        return False


def _mode_of_key(file: Path) -> int:
    """Return the permissions of the old key, without permissions for everybody."""
    return stat.S_IMODE(file.stat().st_mode) & 0o770 if file.exists() else PRIVATE
