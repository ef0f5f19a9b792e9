"""Identity: P-256 keys made on site, certificates, fingerprints (semantics §9.5).

A certificate is an identity only together with its installed name; a root certificate alone identifies nobody.
Every peer's certificate is installed beforehand and compared, out of band, by its SHA-256 fingerprint.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from jobs.errors import ConfigError, IdentityError, PartyError, printable

VALID_DAYS = 825
WARN_DAYS = 30
PRIVATE = 0o600
_OTHERS = 0o077


@dataclass(frozen=True)
class Credentials:
    """Our own key and certificate, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"Credentials({fingerprint(self.certificate)}, <secret>)"


@dataclass(frozen=True)
class Peer:
    """Peer as installed here: name, its own certificate (PEM, exactly one), address if we call the peer.

    TLS in either direction trusts only the certificate and not its issuer: a second certificate of the same
    authority for the same name is a different identity.
    """

    name: str
    certificate: bytes
    address: str | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as hex, compared on every stream."""
        return fingerprint(self.certificate)


def make_credentials(name: str) -> Credentials:
    """Make a P-256 key and a self-signed certificate with ``name`` as common name and DNS name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


@contextmanager
def private_files() -> Iterator[None]:
    """Give files and folders made in the block to their owner alone, under any umask."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def lax_files(private: Iterable[Path], trusted: Iterable[Path]) -> list[str]:
    """Return warnings on files and folders with lax permissions, and the remedies.

    private:  nobody but the owner may read or write.
    trusted:  nobody but the owner may write.
    """
    found = []
    for paths, others, what in ((private, _OTHERS, "read or write"), (trusted, 0o022, "write")):
        for path in paths:
            if path.exists() and stat.S_IMODE(path.stat().st_mode) & others:
                found.append(f"others may {what} {path}: chmod {'700' if path.is_dir() else '600'} {path}")
    return found


def write_private(path: Path, content: bytes) -> None:
    """Write a file readable by its owner only."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "wb") as file:
        file.write(content)


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file so that readers see the old content or the new, never a part. A link stays a link.

    mode:  permissions; None: the permissions of the old file. The file's owner stays the same, if the
           system permits.
    """
    path = path.resolve()
    before = path.stat() if path.exists() else None
    if mode is None and before is not None:
        mode = stat.S_IMODE(before.st_mode)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o644), "wb") as file:
        if before is not None and os.geteuid() == 0:
            os.fchown(file.fileno(), before.st_uid, before.st_gid)
        file.write(content)
        if mode is not None:
            os.fchmod(file.fileno(), mode)
    new.replace(path)


def fingerprint(pem: bytes) -> str:
    """Return SHA-256 of the first certificate of a PEM file, as hex. Raises IdentityError without a certificate."""
    return hashlib.sha256(_first(pem).public_bytes(serialization.Encoding.DER)).hexdigest()


def common_name(pem: bytes) -> str:
    """Return the common name of the first certificate, fit for a terminal. Raises IdentityError without a name."""
    subject, _ = _names(pem)
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise IdentityError("identity-mismatch", "a certificate has no single common name")
    return printable(names[0].value)


_AS_PEM = "name a file that begins with -----BEGIN CERTIFICATE-----"
_ANOTHER = "ask the owner of the certificate for another one"


def _first(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except (ValueError, IndexError, x509.InvalidVersion) as error:
        raise IdentityError("tls-failed", "not a PEM certificate", remedy=_AS_PEM) from error


def _names(pem: bytes) -> tuple[x509.Name, x509.Name]:
    """Return subject and issuer of the first certificate. Raises IdentityError if malformed."""
    certificate = _first(pem)
    try:
        return certificate.subject, certificate.issuer
    except (ValueError, TypeError) as error:  # read when asked for, not before
        raise IdentityError(
            "tls-failed", "the subject of a certificate is malformed", remedy=_ANOTHER
        ) from error


def alone(pem: bytes) -> bytes:
    """Return the first certificate of a PEM file, without an authority's certificates behind."""
    return _first(pem).public_bytes(serialization.Encoding.PEM)


def load_credentials(name: str, certificate: Path, key: Path) -> Credentials:
    """Read our own key and certificate. Raises ConfigError or IdentityError."""
    credentials = Credentials(read_bytes(certificate), read_bytes(key))
    if common_name(credentials.certificate) != name:
        raise IdentityError(
            "identity-mismatch",
            f"the certificate in {certificate} is for {common_name(credentials.certificate)}, not for {name}",
        )
    check_validity(
        credentials.certificate,
        name,
        "correct the clock if the clock is wrong; otherwise make a new certificate with `renew`",
    )
    try:
        private = serialization.load_pem_private_key(credentials.key, None)
    except (ValueError, TypeError) as error:
        raise IdentityError(
            "tls-failed",
            f"{key} is not an unencrypted PEM key",
            remedy="take the password off the key, or make a new key with `renew`",
        ) from error
    if private.public_key() != _first(credentials.certificate).public_key():
        raise IdentityError(
            "tls-failed",
            f"{key} does not belong to {certificate}",
            remedy="name key and certificate of the same identity under `tls`",
        )
    return credentials


def read_peer(name: str, certificate: Path, address: str | None) -> Peer:
    """Read a peer's certificate, the first of the file. The certificate must carry the installed name.

    :func:`load_peer` checks its validity in time.
    """
    try:
        pem = alone(read_bytes(certificate))
        found = common_name(pem)
    except PartyError as error:
        found_wrong = error.problem.message
        why = found_wrong if str(certificate) in found_wrong else f"{certificate}: {found_wrong}"
        what = f"the certificate of {name} cannot be used"
        raise type(error)(error.problem.error_id, what, private=why) from error
    if found != name:
        message = f"the certificate installed for {name} belongs to a different name"
        raise IdentityError("identity-mismatch", message, private=f"{certificate} is for {found}")
    return Peer(name, pem, address)


def load_peer(name: str, certificate: Path, address: str | None) -> Peer:
    """Read a peer's certificate, which must be valid now. Raises ConfigError or IdentityError."""
    peer = read_peer(name, certificate, address)
    check_validity(
        peer.certificate,
        name,
        f"correct the clock if the clock is wrong; otherwise ask {name} for a new certificate (made by `renew`) "
        f"and install the certificate: peers add {name} CERTIFICATE --replace --fingerprint SHA256",
    )
    return peer


def check_validity(pem: bytes, name: str, remedy: str) -> None:
    """Raise IdentityError, with the given remedy, if the certificate of ``name`` is not valid now."""
    since, until = validity(pem)
    now = datetime.now(UTC)
    if not since <= now <= until:
        raise IdentityError(
            "tls-failed",
            f"the certificate of {name} is valid from {in_words(since)} to {in_words(until)} only, and the clock "
            f"says {in_words(now)}",
            remedy=remedy,
        )


def validity(pem: bytes) -> tuple[datetime, datetime]:
    """Return the first and the last moment of the first certificate's validity (UTC)."""
    certificate = _first(pem)
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def expires_soon(pem: bytes) -> bool:
    """Return True if the first certificate, valid now, will not be valid in ``WARN_DAYS`` days."""
    until, now = validity(pem)[1], datetime.now(UTC)
    return now <= until < now + timedelta(days=WARN_DAYS)


def has_expired(pem: bytes) -> bool:
    """Return True if the time of the first certificate is over."""
    return validity(pem)[1] < datetime.now(UTC)


def signs_itself(pem: bytes) -> bool:
    """Return True if no authority stands behind the first certificate."""
    subject, issuer = _names(pem)
    return issuer == subject


def in_words(moment: datetime) -> str:
    """Return a moment with date, time and time zone."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises ConfigError if impossible."""
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "let the user of this process own the file" if isinstance(error, PermissionError) else ""
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}", remedy=remedy) from error


def is_loopback(address: str) -> bool:
    """Return True if ``host:port`` is on this machine only."""
    host = address.rsplit(":", 1)[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_UNTIL = ".until-"


def put_aside(file: Path, when: str) -> Path:
    """Copy a certificate or a key beside itself before a replacement, for its owner alone.

    when:  the time, UTC, as YYYYMMDDTHHMMSS.
    """
    aside = file.with_name(f"{file.stem}{_UNTIL}{when}{file.suffix}")
    replace_file(aside, file.read_bytes(), PRIVATE)
    return aside


def is_put_aside(file: Path) -> bool:
    """Return True if a file has the name of an earlier certificate of somebody."""
    return _UNTIL in file.name


def earlier_files(certificate: Path) -> dict[Path, str]:
    """Return the file's earlier certificates, each with its last day, oldest first."""
    prefix = f"{certificate.stem}{_UNTIL}"
    return {
        file: f"{when[:4]}-{when[4:6]}-{when[6:8]}"
        for file in sorted(certificate.parent.glob(f"*{certificate.suffix}"))
        if file.name.startswith(prefix)
        and len(when := file.stem.removeprefix(prefix)) == len("YYYYMMDDTHHMMSS")
    }
