"""Sums of private vectors modulo 2**64, for three and more parties.

Two protocols with the same functionality: :func:`masked_sum`, whose masks resist n − 2 colluders, and the published
:func:`ring_sum` ([T] 5.4.2), whose masks a party's two neighbours can remove. With two parties the sum minus a
party's vector *is* the peer's vector, so both refuse fewer than three.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from crypto.encoding import Words, decode_words, encode_words, expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.rng import SEED_BYTES, Prg, Rng, uniform_words
from crypto.rounds import Round, Rounds, receive, send

MIN_PARTIES = 3
_KEY, _NONCE = 32, 16


class PairwiseMasks:
    """The secrets that a party shares with its peers for a run, and the number of uses."""

    def __init__(self, me: str, context: bytes, secrets: dict[str, tuple[bytes, bytes]]) -> None:
        self._me = me
        self._context = context
        self._secrets = secrets
        self._sequence = 0

    def __repr__(self) -> str:
        return f"PairwiseMasks(me={self._me!r}, <secret>)"

    def next_mask(self, step: str, count: int) -> Words:
        """Return the party's mask for its next sum; over all parties the masks add up to zero."""
        mask = np.zeros(count, dtype=np.uint64)
        for peer, (secret, nonces) in self._secrets.items():
            stream = uniform_words(Prg(self._seed(secret, nonces, step)), count)
            mask = mask + stream if self._me < peer else mask - stream
        self._sequence += 1
        return mask

    def _seed(self, secret: bytes, nonces: bytes, step: str) -> bytes:
        info = nonces + self._context + self._sequence.to_bytes(8, "little") + step.encode()
        return HKDF(hashes.SHA256(), SEED_BYTES, salt=None, info=info).derive(secret)


def agree_masks(me: str, parties: Sequence[str], job_hash: bytes, rng: Rng) -> Rounds[PairwiseMasks]:
    """Agree on a secret with every peer, for all masked sums of a run.

    Functionality:  a fresh common secret for every pair of parties.
    Input, each:    ``job_hash``, public and equal for all.
    Output, each:   :class:`PairwiseMasks`, good for any number of sums; no seed is used twice.
    Leakage:        none beyond the roster.
    Rounds:         1 ("secure_sum/keys").
    Bytes:          48 * (n - 1) sent by each party.
    Assumes:        semi-honest parties; authenticated channels; n >= 3; ephemeral keys.
    Source:         X25519 and HKDF-SHA256 as in Bonawitz et al., CCS 2017, section 4, without drop-outs;
                    info = both nonces, job hash, roster, sequence, step.

    Raises LocalProtocolError for fewer than three parties, RemoteProtocolError for a malformed key.
    """
    peers = _peers(me, parties)
    private = X25519PrivateKey.from_private_bytes(rng.bytes(_KEY))
    hello = private.public_key().public_bytes_raw() + rng.bytes(_NONCE)
    step = "secure_sum/keys"
    inbox = yield Round(step, dict.fromkeys(peers, hello), frozenset(peers))
    roster = "\0".join(sorted(parties)).encode()
    context = len(job_hash).to_bytes(2, "little") + job_hash + len(roster).to_bytes(4, "little") + roster
    secrets = {}
    for peer in peers:
        payload = inbox[peer]
        expect_length(payload, _KEY + _NONCE, peer, step)
        secret = _exchange(private, payload[:_KEY], peer, step)
        first, second = (hello, payload) if me < peer else (payload, hello)
        secrets[peer] = (secret, first[_KEY:] + second[_KEY:])
    return PairwiseMasks(me, context, secrets)


def masked_sum(
    me: str, parties: Sequence[str], collector: str, values: Words, masks: PairwiseMasks
) -> Rounds[Words | None]:
    """Give the collector the element-wise sum of every party's vector, modulo 2**64.

    Functionality:  f(x_1, ..., x_n) = sum_i x_i mod 2**64, to ``collector``.
    Input, each:    ``values``, uint64, shape (m,); m is public and equal for all. ``masks`` of
                    :func:`agree_masks`.
    Output:         the m sums at the collector, None elsewhere.
    Leakage:        the sums and m, to the collector. n - 1 parties including the collector can subtract
                    their own vectors.
    Rounds:         1 ("secure_sum/masked").
    Bytes:          8 * m sent by each party but the collector.
    Assumes:        semi-honest parties; authenticated channels; n >= 3; at most n - 2 colluders.
    Source:         pairwise additive masks, Bonawitz et al., CCS 2017, section 4, without drop-outs.

    Raises LocalProtocolError for fewer than three parties, an unknown collector or values that are no vector of
    uint64, before anything is sent; RemoteProtocolError if a peer's message is not exactly 8 * m bytes.
    """
    peers = _peers(me, parties, collector)
    _check_values(values)
    step = "secure_sum/masked"
    masked = values + masks.next_mask(step, len(values))
    if me != collector:
        yield from send(step, {collector: encode_words(masked)})
        return None
    inbox = yield Round(step, {}, frozenset(peers))
    for peer in peers:
        masked = masked + decode_words(inbox[peer], len(values), peer, step)
    return masked


def ring_sum(
    me: str, parties: Sequence[str], collector: str, values: Words, rng: Rng
) -> Rounds[Words | None]:
    """Give the collector the element-wise sum of every party's vector, modulo 2**64, around a ring.

    Functionality:  f(x_1, ..., x_n) = sum_i x_i mod 2**64, to ``collector``.
    Input, each:    ``values``, uint64, shape (m,); m is public and equal for all.
    Output:         the m sums at the collector, None elsewhere.
    Leakage:        the sums and m, to the collector. The parties before and after party i together learn
                    the vector of party i: the protocol is as published, kept for comparison.
    Rounds:         n ("secure_sum/ring").
    Bytes:          8 * m sent by each party.
    Assumes:        semi-honest parties that do not collude; private authenticated channels; n >= 3.
    Source:         [T] 5.4.2 (secure sum protocol).

    Raises as :func:`masked_sum`.
    """
    _peers(me, parties, collector)
    _check_values(values)
    step = "secure_sum/ring"
    start = parties.index(collector)
    ring = [*parties[start:], *parties[:start]]
    place = ring.index(me)
    before, after = ring[place - 1], ring[(place + 1) % len(ring)]
    if me == collector:
        mask = uniform_words(rng, len(values))
        yield from send(step, {after: encode_words(values + mask)})
        payload = yield from receive(step, before)
        return decode_words(payload, len(values), before, step) - mask
    payload = yield from receive(step, before)
    running = decode_words(payload, len(values), before, step)
    yield from send(step, {after: encode_words(running + values)})
    return None


def _peers(me: str, parties: Sequence[str], collector: str | None = None) -> list[str]:
    """Check the roster and return the peers, in roster order."""
    if len(parties) < MIN_PARTIES or len(set(parties)) != len(parties):
        raise LocalProtocolError(
            f"a secure sum needs {MIN_PARTIES} or more different parties, not {len(parties)}: with two, the "
            "sum minus one's own vector is the other's"
        )
    for name in (me, collector):
        if name is not None and name not in parties:
            raise LocalProtocolError(f"{name} is not in the roster")
    return [party for party in parties if party != me]


def _check_values(values: Words) -> None:
    """Raise LocalProtocolError unless ``values`` is a vector of uint64."""
    if not isinstance(values, np.ndarray):
        raise LocalProtocolError(f"a vector of uint64 is summed, not a {type(values).__name__}")
    if values.ndim != 1 or values.dtype != np.uint64:
        raise LocalProtocolError(f"a vector of uint64 is summed, not {values.dtype} of shape {values.shape}")


def _exchange(private: X25519PrivateKey, public: bytes, peer: str, step: str) -> bytes:
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError as error:  # an all-zero result: the peer's point has small order
        raise RemoteProtocolError(peer, step, "a key of small order") from error
