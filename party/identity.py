"""Who is who: P-256 keys made on site, certificates, fingerprints (DESIGN §9).

A certificate is identity only together with the name it is installed under: roots alone are not. Every peer's
certificate is put in place beforehand and compared, out of band, by its SHA-256 fingerprint.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from party.errors import ConfigError, IdentityError

VALID_DAYS = 825
_PRIVATE = 0o600


@dataclass(frozen=True)
class Credentials:
    """Our own key and certificate, PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"Credentials({fingerprint(self.certificate)}, <secret>)"


@dataclass(frozen=True)
class Peer:
    """A peer as installed here: name, its own certificate (PEM, exactly one), address if we call it.

    TLS in either direction trusts this certificate and nothing else, not even who issued it: another one that
    the same authority gave to the same name is another identity.
    """

    name: str
    certificate: bytes
    address: str | None = None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate, as hex: what is compared on every stream."""
        return fingerprint(self.certificate)


def make_credentials(name: str) -> Credentials:
    """Make a P-256 key and a self-signed certificate whose common name and DNS name are ``name``."""
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


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "wb") as file:
        file.write(content)


def fingerprint(pem: bytes) -> str:
    """SHA-256 of the first certificate of a PEM file, as hex. Raises IdentityError if there is none."""
    return hashlib.sha256(_first(pem).public_bytes(serialization.Encoding.DER)).hexdigest()


def common_name(pem: bytes) -> str:
    """The common name of the first certificate. Raises IdentityError if it has none."""
    names = _first(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise IdentityError("identity-mismatch", "a certificate has no single common name")
    return str(names[0].value)


def _first(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(pem)[0]
    except (ValueError, IndexError) as error:
        raise IdentityError("tls-failed", "not a PEM certificate") from error


def _alone(pem: bytes) -> bytes:
    """The first certificate of a PEM file, without those of authorities behind it."""
    return _first(pem).public_bytes(serialization.Encoding.PEM)


def load_credentials(name: str, certificate: Path, key: Path) -> Credentials:
    """Read our own key and certificate. Raises ConfigError or IdentityError."""
    credentials = Credentials(read_bytes(certificate), read_bytes(key))
    if common_name(credentials.certificate) != name:
        raise IdentityError(
            "identity-mismatch",
            f"the certificate in {certificate} is for {common_name(credentials.certificate)}, not for {name}",
        )
    _check_validity(credentials.certificate, name)
    try:
        private = serialization.load_pem_private_key(credentials.key, None)
    except (ValueError, TypeError) as error:
        raise IdentityError("tls-failed", f"{key} is not an unencrypted PEM key") from error
    if private.public_key() != _first(credentials.certificate).public_key():
        raise IdentityError("tls-failed", f"{key} does not belong to {certificate}")
    return credentials


def load_peer(name: str, certificate: Path, address: str | None) -> Peer:
    """Read a peer's certificate, the first of the file; it must carry the name it is installed under."""
    pem = _alone(read_bytes(certificate))
    if common_name(pem) != name:
        raise IdentityError(
            "identity-mismatch", f"the certificate in {certificate} is for {common_name(pem)}, not for {name}"
        )
    _check_validity(pem, name)
    return Peer(name, pem, address)


def _check_validity(pem: bytes, name: str) -> None:
    certificate = _first(pem)
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise IdentityError(
            "tls-failed",
            f"the certificate of {name} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} "
            f"to {certificate.not_valid_after_utc:%Y-%m-%d} only",
            remedy="make a new one with `init` and send it to the peers, or correct the clock",
        )


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises ConfigError if that is not possible."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}") from error


def is_loopback(address: str) -> bool:
    """Return whether ``host:port`` is on this machine only."""
    host = address.rsplit(":", 1)[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
