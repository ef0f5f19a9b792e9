"""Certificates of every kind a test wants, and folders as `init` makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from party.owner.identity import Credentials


def certificate_for(
    names: list[str],
    *,
    days: tuple[float, float] = (-1, 30),
    key: ec.EllipticCurvePrivateKey | None = None,
    issuer: Credentials | None = None,
) -> Credentials:
    """A certificate with these common names, valid from and to so many days from now.

    issuer:  the authority that signs it, whose certificate then stands behind it; self-signed without.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    by, signing_key = (subject, key) if issuer is None else _authority(issuer)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(names[0] if names else "x")]), critical=False
        )
        .sign(signing_key, hashes.SHA256())
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM) + (issuer.certificate if issuer else b""),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


def _authority(issuer: Credentials) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    key = serialization.load_pem_private_key(issuer.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return x509.load_pem_x509_certificate(issuer.certificate).subject, key


def write_credentials(folder: Path, credentials: Credentials) -> tuple[Path, Path]:
    """Write certificate and key; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "certificate.pem").write_bytes(credentials.certificate)
    (folder / "key.pem").write_bytes(credentials.key)
    return folder / "certificate.pem", folder / "key.pem"
