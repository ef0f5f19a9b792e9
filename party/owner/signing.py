"""Signatures with the keys of TLS: making, and checking against a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from jobs.errors import IdentityError, PartyError
from jobs.release.signatures import Signed
from party.owner.config import NodeConfig, credentials_of, trusted_peers, usable_peer
from party.owner.identity import Credentials, earlier_files, read_bytes


@dataclass(frozen=True)
class Signer:
    """Signers of a run: our own credentials, and the certificates of all parties, DER."""

    name: str
    credentials: Credentials
    certificates: Mapping[str, bytes] = field(repr=False)

    def sign(self, content: bytes) -> bytes:
        """Sign as ourselves. Raises IdentityError for an unsuitable key."""
        return sign(self.credentials, content)

    def check(self, party: str, signature: bytes, content: bytes) -> None:
        """Raise IdentityError unless the signature is of a party's installed certificate."""
        check_signature(self.certificates[party], signature, content, party)


def installed_certificates(config: NodeConfig) -> dict[str, bytes]:
    """Return the certificates of all peers, DER, including expired certificates: earlier signatures stay valid."""
    return {name: der_of(peer.certificate) for name, peer in trusted_peers(config).items()}


def earlier_certificates(config: NodeConfig) -> dict[str, dict[bytes, str]]:
    """Return the earlier certificates (DER) by name, our own included, with their last day."""
    files = {
        config.name: config.tls.certificate,
        **{n: entry.certificate for n, entry in config.peers.items()},
    }
    found: dict[str, dict[bytes, str]] = {}
    for name, file in files.items():
        for earlier, until in earlier_files(file).items():
            with suppress(PartyError, ValueError):  # an unreadable file vouches for nothing
                found.setdefault(name, {})[der_of(read_bytes(earlier))] = until
    return found


def signer_of(config: NodeConfig, peers: Iterable[str]) -> Signer:
    """Return a signer with our identity and the peers' certificates. Raises ConfigError or IdentityError."""
    own = credentials_of(config)
    certificates = {peer: der_of(usable_peer(config, peer).certificate) for peer in peers}
    return Signer(config.name, own, {config.name: der_of(own.certificate), **certificates})


_HASH = hashes.SHA256()
_PSS = padding.PSS(padding.MGF1(_HASH), _HASH.digest_size)


def sign(credentials: Credentials, content: bytes) -> bytes:
    """Sign with our own key: ECDSA or RSA-PSS with SHA-256, or Ed25519, by kind of key.

    An ECDSA signature is written as r and s, each as wide as the curve, so that every signature of a key has the
    same length. Raises IdentityError for a key of another kind.
    """
    match serialization.load_pem_private_key(credentials.key, None):
        case ec.EllipticCurvePrivateKey() as key:
            width = _width(key.curve)
            numbers = decode_dss_signature(key.sign(content, ec.ECDSA(_HASH)))
            return b"".join(number.to_bytes(width, "big") for number in numbers)
        case rsa.RSAPrivateKey() as key:
            return key.sign(content, _PSS, _HASH)
        case ed25519.Ed25519PrivateKey() as key:
            return key.sign(content)
    raise IdentityError("tls-failed", "our key cannot sign a run", remedy=f"take {_KEYS}")


_KEYS = "a key of P-256, RSA or Ed25519, as `init` and `renew` make them"


def check_signature(certificate: bytes, signature: bytes, content: bytes, name: str) -> None:
    """Raise IdentityError unless the key of a certificate (DER) made the signature. ``name``: the expected signer."""
    try:
        match x509.load_der_x509_certificate(certificate).public_key():
            case ec.EllipticCurvePublicKey() as key:
                key.verify(_as_dss(signature, _width(key.curve)), content, ec.ECDSA(_HASH))
            case rsa.RSAPublicKey() as key:
                key.verify(signature, content, _PSS, _HASH)
            case ed25519.Ed25519PublicKey() as key:
                key.verify(signature, content)
            case _:
                raise IdentityError(
                    "tls-failed",
                    f"the key of {name} cannot sign a run",
                    party=name,
                    remedy=f"at {name}: take {_KEYS}",
                )
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, x509.InvalidVersion) as error:
        message = f"the signature does not belong to the certificate of {name}"
        raise IdentityError("identity-mismatch", message, party=name) from error


def _width(curve: ec.EllipticCurve) -> int:
    """Return the number of bytes of a number below the order of a curve."""
    return (curve.key_size + 7) // 8


def _as_dss(signature: bytes, width: int) -> bytes:
    """Return the signature in DSS form. Raises InvalidSignature for another length."""
    if len(signature) != 2 * width:
        raise InvalidSignature
    return encode_dss_signature(
        *(int.from_bytes(part, "big") for part in (signature[:width], signature[width:]))
    )


def der_of(pem: bytes) -> bytes:
    """Return the first certificate of a PEM file, DER."""
    return x509.load_pem_x509_certificates(pem)[0].public_bytes(serialization.Encoding.DER)


def check_signed(
    signed: Iterable[Signed], known: Mapping[str, bytes], earlier: Mapping[str, Mapping[bytes, str]] = {}
) -> dict[str, str]:
    """Check signed statements, each by its own certificate. Return the signers with a certificate installed here,
    with the last day of an earlier certificate, or an empty text for a present certificate.

    known:    installed certificates by name, DER.
    earlier:  earlier certificates, with their last day here (:func:`earlier_certificates`).

    Raises PartyError (verification-failed) for a signature that does not fit its certificate, or a certificate
    different from the installed certificate.
    """
    compared = {}
    for each in signed:
        name = each.statement.party
        installed, until = known.get(name), earlier.get(name, {}).get(each.certificate)
        if installed == each.certificate:
            compared[name] = ""
        elif until is not None:
            compared[name] = until
        elif installed is not None:
            message = (
                f"the run is signed with a different certificate than the certificate installed for {name}"
            )
            raise PartyError("verification-failed", message)
        try:
            check_signature(each.certificate, each.signature, each.statement.encoded, name)
        except IdentityError as error:
            raise PartyError("verification-failed", error.problem.message) from error
    return compared
