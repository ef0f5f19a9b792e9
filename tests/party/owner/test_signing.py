"""Signing with the keys that certificates have: what was signed passes, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import NameOID

from crypto.errors import RemoteProtocolError
from jobs.errors import IdentityError
from party.owner.identity import Credentials, make_credentials
from party.owner.signing import CERTIFICATE, Signer, check_signature, der_of, read_certificate, sign


def credentials_with(key: Any, algorithm: hashes.HashAlgorithm | None) -> Credentials:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, algorithm)
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )


KINDS = {
    "P-256": lambda: credentials_with(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()),
    "P-384": lambda: credentials_with(ec.generate_private_key(ec.SECP384R1()), hashes.SHA384()),
    "RSA": lambda: credentials_with(rsa.generate_private_key(65537, 2048), hashes.SHA256()),
    "Ed25519": lambda: credentials_with(ed25519.Ed25519PrivateKey.generate(), None),
    "ours": lambda: make_credentials("a"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_signed_passes_and_nothing_else(kind: str) -> None:
    credentials = KINDS[kind]()
    certificate, content = der_of(credentials.certificate), b"what was signed"
    signature = sign(credentials, content)
    check_signature(certificate, signature, content, "a")
    other = der_of(make_credentials("a").certificate)
    flipped = bytes([*signature[:-1], signature[-1] ^ 1])
    for wrong in [
        (certificate, signature, content + b"."),
        (certificate, flipped, content),
        (certificate, b"", content),
        (other, signature, content),
        (b"no certificate", signature, content),
    ]:
        with pytest.raises(IdentityError) as caught:
            check_signature(*wrong, "a")
        assert (caught.value.problem.error_id, caught.value.problem.party) == ("identity-mismatch", "a")


def test_a_key_that_cannot_sign_is_said_to_be_one() -> None:
    credentials = credentials_with(ed448.Ed448PrivateKey.generate(), None)
    with pytest.raises(IdentityError, match="cannot sign"):
        sign(credentials, b"x")
    with pytest.raises(IdentityError, match="cannot sign"):
        check_signature(der_of(credentials.certificate), b"x", b"x", "a")


def test_a_signer_signs_as_itself_and_checks_by_installed_certificates() -> None:
    keys = {name: make_credentials(name) for name in ("a", "b")}
    certificates = {name: der_of(each.certificate) for name, each in keys.items()}
    a, b = (Signer(name, keys[name], certificates) for name in ("a", "b"))
    b.check("a", a.sign(b"x"), b"x")
    with pytest.raises(IdentityError):
        b.check("b", a.sign(b"x"), b"x")
    assert "PRIVATE" not in repr(a)


def test_certificates_that_we_are_told_have_to_be_those_installed_here() -> None:
    keys = {name: make_credentials(name) for name in ("a", "b", "c")}
    certificates = {name: der_of(each.certificate) for name, each in keys.items()}
    us = Signer("a", keys["a"], {"a": certificates["a"]}, {"b": certificates["b"]})
    told = us.with_told({"b": certificates["b"], "c": certificates["c"]})
    told.check("c", sign(keys["c"], b"x"), b"x")
    with pytest.raises(IdentityError) as caught:
        us.with_told({"b": der_of(make_credentials("b").certificate)})
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("identity-mismatch", "a")


def test_a_certificate_that_is_passed_on_is_one_and_of_that_name() -> None:
    certificate = der_of(make_credentials("b").certificate)
    assert read_certificate("b", certificate) == certificate
    for party, wrong in [("c", certificate), ("b", b""), ("b", certificate[:-1]), ("b", certificate + b"0")]:
        with pytest.raises(RemoteProtocolError) as caught:
            read_certificate(party, wrong)
        assert (caught.value.culprit, caught.value.step) == (party, CERTIFICATE)
