"""Certificates: a name, a key that fits, a time, a fingerprint, and nothing of the key in sight."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from jobs.errors import ConfigError, Exit, IdentityError, PartyError
from party.owner.identity import (
    common_name,
    fingerprint,
    is_loopback,
    load_credentials,
    load_peer,
    make_credentials,
    write_private,
)
from tests.support.identities import certificate_for, write_credentials


def refused(folder: Path, name: str = "a") -> PartyError:
    with pytest.raises(PartyError) as caught:
        load_credentials(name, folder / "certificate.pem", folder / "key.pem")
    return caught.value


def test_what_is_made_is_a_p256_identity_of_one_name() -> None:
    credentials = make_credentials("hospital-a")
    certificate = x509.load_pem_x509_certificate(credentials.certificate)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"
    assert common_name(credentials.certificate) == "hospital-a"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["hospital-a"]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert make_credentials("hospital-a").key != credentials.key


def test_the_fingerprint_is_the_sha256_of_the_first_certificate() -> None:
    one, other = make_credentials("a").certificate, make_credentials("b").certificate
    der = x509.load_pem_x509_certificate(one).public_bytes(serialization.Encoding.DER)
    assert fingerprint(one) == hashlib.sha256(der).hexdigest() == fingerprint(one + other)
    assert fingerprint(other) != fingerprint(one)


def test_the_key_is_no_part_of_any_text() -> None:
    credentials = make_credentials("a")
    text = f"{credentials!r} {credentials}"
    assert "PRIVATE" not in text
    assert credentials.key.decode().splitlines()[1] not in text
    assert fingerprint(credentials.certificate) in text


def test_a_private_file_is_its_owners_and_never_overwritten(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"secret")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "key", b"other")
    assert (tmp_path / "key").read_bytes() == b"secret"


def test_our_own_identity_loads(tmp_path: Path) -> None:
    made = make_credentials("a")
    assert load_credentials("a", *write_credentials(tmp_path, made)) == made


def test_our_certificate_must_carry_our_name(tmp_path: Path) -> None:
    write_credentials(tmp_path, make_credentials("b"))
    error = refused(tmp_path)
    assert error.problem.error_id == "identity-mismatch"
    assert error.problem.exit_code == Exit.IDENTITY
    assert "is for b, not for a" in error.problem.message


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_a_certificate_has_one_common_name(tmp_path: Path, names: list[str]) -> None:
    write_credentials(tmp_path, certificate_for(names))
    assert refused(tmp_path).problem.message == "a certificate has no single common name"


@pytest.mark.parametrize("days", [(-30, -1), (1, 30)])
def test_a_certificate_has_its_time(tmp_path: Path, days: tuple[int, int]) -> None:
    write_credentials(tmp_path, certificate_for(["a"], days=days))
    for error in (refused(tmp_path), _refused_peer(tmp_path)):
        assert error.problem.error_id == "tls-failed"
        assert "the certificate of a is valid from " in error.problem.message


def _refused_peer(folder: Path) -> PartyError:
    with pytest.raises(PartyError) as caught:
        load_peer("a", folder / "certificate.pem", None)
    return caught.value


def test_the_key_must_fit_the_certificate(tmp_path: Path) -> None:
    write_credentials(tmp_path, make_credentials("a"))
    (tmp_path / "key.pem").write_bytes(make_credentials("a").key)
    error = refused(tmp_path)
    assert error.problem.error_id == "tls-failed"
    assert "does not belong to" in error.problem.message


def test_a_key_must_be_a_plain_pem_key(tmp_path: Path) -> None:
    credentials = make_credentials("a")
    key = serialization.load_pem_private_key(credentials.key, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    for content in (encrypted, b"", b"nonsense", credentials.certificate):
        write_credentials(tmp_path, credentials)
        (tmp_path / "key.pem").write_bytes(content)
        error = refused(tmp_path)
        assert error.problem.error_id == "tls-failed"
        assert "is not an unencrypted PEM key" in error.problem.message


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_certificate_must_be_one(tmp_path: Path, content: bytes) -> None:
    write_credentials(tmp_path, make_credentials("a"))
    (tmp_path / "certificate.pem").write_bytes(content)
    assert refused(tmp_path).problem.message == "not a PEM certificate"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    error = refused(tmp_path)
    assert isinstance(error, ConfigError)
    assert error.problem.error_id == "file-missing"


def test_a_peer_is_installed_under_its_own_name(tmp_path: Path) -> None:
    certificate, _ = write_credentials(tmp_path, make_credentials("b"))
    peer = load_peer("b", certificate, "h:1")
    assert (peer.name, peer.address, peer.fingerprint) == ("b", "h:1", fingerprint(certificate.read_bytes()))
    with pytest.raises(IdentityError) as caught:
        load_peer("a", certificate, None)
    assert caught.value.problem.error_id == "identity-mismatch"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("0.0.0.0:1", False),
        ("10.0.0.1:1", False),
        ("[::]:1", False),
        ("hospital.example:1", False),
        ("localhost.example:1", False),
    ],
)
def test_loopback(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected
