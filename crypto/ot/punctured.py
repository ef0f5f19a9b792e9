"""Trees of seeds in groups: one side knows every leaf, the other every leaf but that of a secret number.

Each tree has BITS levels, so 2**BITS leaves. The GROUPS trees use 128 base transfers, a transfer for each level of
each tree. The side that received in the base transfers chose the bits Δ of the unknown leaf. Of each level it gets
the XOR of all nodes on the side that leads away from this leaf. The node missing on that side is this XOR plus the
other nodes of the side (all-but-one transfer: Schoppmann et al., CCS 2019; Boyle et al., CCS 2019).

A maker who masks sums of another tree makes leaves that depend on Δ. So every leaf has a tag of 32 bytes beside its
seed. The maker sends the XOR of the tags of each tree, which yields the missing tag, and a digest of all tags. The
digest agrees only if all leaves known here are leaves of the maker, or if the maker guessed bits of Δ.

Source of the check: Roy, *SoftSpokenOT* (CRYPTO 2022), section 6.2.
"""

from __future__ import annotations

import hmac

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from crypto.blocks import BLOCK_BITS, BLOCK_BYTES, Blocks
from crypto.encoding import WORD, Words, encode_words
from crypto.errors import RemoteProtocolError

BITS = 4
"""Levels of a tree."""
GROUPS = BLOCK_BITS // BITS
LEAVES = 1 << BITS
_TAG_WORDS = 4
_SUMS = (BITS - 1, 2, GROUPS, 2)
_N_SUMS = (BITS - 1) * 2 * GROUPS * 2
_DIGEST_BYTES = 32
MESSAGE_BYTES = WORD * (_N_SUMS + GROUPS * _TAG_WORDS) + _DIGEST_BYTES


def grow(pairs: tuple[Blocks, Blocks], key: bytes) -> tuple[Blocks, bytes]:
    """Grow the trees; return the seeds of all leaves, and the message for the other side.

    pairs:  both seeds of every base transfer, shape (128, 2) each; they have no further use. Transfer b * GROUPS + g
            belongs to level b of tree g.
    key:    public, fresh for the trees.

    Returns the seeds: uint64, shape (LEAVES, GROUPS, 2). The leaf of a number with bit b = 0 lies on the side of the
    second seed at level b.
    """
    sides = np.stack(pairs).reshape(2, BITS, GROUPS, 2).swapaxes(0, 1)
    nodes, masked = sides[0], np.empty(_SUMS, dtype=np.uint64)
    for level in range(1, BITS):
        children = _children(nodes, key)
        masked[level - 1] = np.bitwise_xor.reduce(children, axis=1) ^ sides[level]
        nodes = children.reshape(-1, GROUPS, 2)
    seeds, tags = _ends(nodes, key)
    message = encode_words(masked), encode_words(np.bitwise_xor.reduce(tags, axis=0)), _digest(tags, key)
    return np.ascontiguousarray(seeds[::-1]), b"".join(message)


def puncture(
    chosen: Blocks, delta: NDArray[np.uint8], message: bytes, key: bytes, peer: str, step: str
) -> Blocks:
    """Return the seeds of all leaves but number Δ of every tree.

    chosen:   the seed of the choice Δ of every base transfer, shape (128, 2); they have no further use.
    delta:    the bits of Δ, in the order of the transfers, shape (128,).
    message:  of the other side, MESSAGE_BYTES.

    Returns uint64, shape (LEAVES - 1, GROUPS, 2): row y - 1 has the leaves number y ⊕ Δ.

    Raises RemoteProtocolError if the leaves are not those of a tree of the peer.
    """
    words = np.frombuffer(message[:-_DIGEST_BYTES], dtype="<u8").astype(np.uint64)
    masked, tag_sums = words[:_N_SUMS].reshape(_SUMS), words[_N_SUMS:].reshape(GROUPS, _TAG_WORDS)
    own, sides = chosen.reshape(BITS, GROUPS, 2), delta.reshape(BITS, GROUPS).astype(np.intp)
    trees = np.arange(GROUPS)
    nodes = np.zeros((2, GROUPS, 2), dtype=np.uint64)
    nodes[sides[0], trees] = own[0]
    unknown = 1 - sides[0]
    for level in range(1, BITS):
        children = _children(nodes, key)
        children[:, unknown, trees] = 0
        sums = np.bitwise_xor.reduce(children, axis=1) ^ masked[level - 1]
        side = sides[level]
        children[side, unknown, trees] = sums[side, trees] ^ own[level]
        nodes = children.reshape(-1, GROUPS, 2)
        unknown = unknown + ((1 - side) << level)
    seeds, tags = _ends(nodes, key)
    tags[unknown, trees] = 0
    tags[unknown, trees] = np.bitwise_xor.reduce(tags, axis=0) ^ tag_sums
    if not hmac.compare_digest(_digest(tags, key), message[-_DIGEST_BYTES:]):
        raise RemoteProtocolError(peer, step, "the seeds of the transfers are not those of a tree")
    known: Blocks = seeds[np.arange(1, LEAVES)[:, np.newaxis] ^ unknown, trees]
    return known


def digest_of(message: bytes) -> bytes:
    """Return a digest of the message of :func:`grow`: it fixes every leaf."""
    return blake3(b"jointcut/ot/trees" + message).digest(_DIGEST_BYTES)


def _children(nodes: Blocks, key: bytes) -> Blocks:
    """Return both children of every node, shape (2, nodes, GROUPS, 2)."""
    words = _hashed(nodes, b"jointcut/ot/node" + key, 2 * BLOCK_BYTES)
    return np.ascontiguousarray(words.reshape(len(nodes), GROUPS, 2, 2).transpose(2, 0, 1, 3))


def _ends(nodes: Blocks, key: bytes) -> tuple[Blocks, Words]:
    """Return the seed and the tag of every leaf, shapes (LEAVES, GROUPS, 2) and (LEAVES, GROUPS, 4)."""
    words = _hashed(nodes, b"jointcut/ot/leaf" + key, BLOCK_BYTES + WORD * _TAG_WORDS)
    ends = words.reshape(LEAVES, GROUPS, -1)
    return ends[..., :2], ends[..., 2:].copy()


def _hashed(nodes: Blocks, context: bytes, n_bytes: int) -> Words:
    """Return ``n_bytes`` of each node."""
    octets = encode_words(nodes)
    parts = (octets[i : i + BLOCK_BYTES] for i in range(0, len(octets), BLOCK_BYTES))
    hashed = b"".join(blake3(context + part).digest(n_bytes) for part in parts)
    return np.frombuffer(hashed, dtype="<u8").astype(np.uint64)


def _digest(tags: Words, key: bytes) -> bytes:
    return blake3(b"jointcut/ot/tags" + key + encode_words(tags)).digest(_DIGEST_BYTES)
