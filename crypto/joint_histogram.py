"""Joint histograms: additive shares of the counts of label a at the sender with label b at the receiver.

A one-hot product by oblivious transfer. For each record the sender grows a GGM tree (Goldreich, Goldwasser, Micali
1986) with a leaf per label of the receiver. The receiver learns all leaves except the leaf of its own label b
(all-but-one transfer: one transfer per level, of the XOR of all left or of all right children). Every leaf is
expanded to a vector with a word per label of the sender. The sender sends the sum of the record's vectors plus the
one-hot vector of its own label a. The receiver lacks only the vector of leaf b, so it obtains this vector *plus*
the one-hot vector as its share of row b. The sender's shares are minus its vectors, so rows add up to zero and row
b to the one-hot vector of a. Shares of all records are added up at once; nothing is opened.

The idea is the (n-1)-out-of-n transfer by puncturable PRFs (Schoppmann, Gascon, Reichert, Raykova, CCS 2019; Boyle
et al., CCS 2019) applied to one-hot outer products (Heath and Kolesnikov, CCS 2021). Nodes are expanded by π(x) ⊕ x
with fixed-key AES (Guo et al., IEEE S&P 2020), under keys that are fresh for every chunk.

A record may have several labels at the sender, such as a label of each of several columns. The one-hot vector then
has several 1 entries, and a single tree serves all labels.

Records may come in public groups, each with a separate histogram. The vectors of each group are added up apart,
without traffic (a secret group label would cost a leaf, or a word, per group).

A tree serves any number of labels: leaf vectors are made 16 bytes at a time, and chunks hold fewer records with
more labels, so memory stays bounded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext
from numpy.typing import NDArray

from crypto.blocks import BLOCK_BYTES, Blocks, decode_blocks, encode_blocks, random_blocks
from crypto.encoding import WORD, check_parameters, expect_length, tell_parameters
from crypto.errors import LocalProtocolError
from crypto.hashing import derive_key, fixed_key_aes
from crypto.ot.extension import (
    BEGIN_BYTES,
    CHUNK,
    OtReceiver,
    OtSender,
    random_receive,
    random_send,
    transfer_bytes,
)
from crypto.pieces import slices
from crypto.rng import SEED_BYTES, Prg, Rng
from crypto.rounds import Rounds, receive, send
from crypto.shares import WIDTHS, Shares, decode_shares, dtype, encode_shares, width_for

Labels = NDArray[np.integer[Any]]

NO_LABEL = -1
_SEVERAL = 2
"""Axes of labels where a record has several."""
CHUNK_NODES = 1 << 15
"""Maximum number of tree nodes (16-byte blocks) in working memory, unless a single record has more."""
MESSAGE_BYTES = 1 << 20
"""Maximum bytes of corrections in a message, unless a single record has more."""
BATCH_BYTES = 1 << 22
"""Bytes of corrections of a batch of records; the sender is at most two batches ahead of the receiver."""

_SHAPE, _CORRECTIONS = "joint_histogram/shape", "joint_histogram/corrections"
_PARAMETERS = 7
"""Numbers of "joint_histogram/shape"."""


@dataclass(frozen=True, slots=True)
class HistogramShape:
    """The shape of a joint histogram, known to both sides.

    records:          number of records, in a common order.
    sender_labels:    the sender's labels are in [0, sender_labels).
    receiver_labels:  the receiver's labels are in [0, receiver_labels).
    max_weight:       the sender's weights are in [0, max_weight]; 1 without weights.
    omissions:        True if the receiver may leave records out (costs a further leaf per tree). The sender
                      always may.
    share_bits:       minimum number of bits of a share, for callers that go on computing with shares.
    """

    records: int
    sender_labels: int
    receiver_labels: int
    max_weight: int = 1
    omissions: bool = False
    share_bits: int = WIDTHS[0]

    @property
    def width(self) -> int:
        """Bits of a share: the least of 16, 32 and 64 that holds every possible count, and ``share_bits``."""
        return width_for(max(self.records * self.max_weight, (1 << self.share_bits) - 1))

    @property
    def leaves(self) -> int:
        return self.receiver_labels + self.omissions

    @property
    def depth(self) -> int:
        """Levels of a tree below the root, and transfers per record."""
        return (self.leaves - 1).bit_length()

    @property
    def correction_bytes(self) -> int:
        """Bytes sent by the sender per record: two masked blocks per level, a word per label of the sender."""
        return 2 * BLOCK_BYTES * self.depth + self.sender_labels * self.width // 8

    @property
    def total_bytes(self) -> int:
        """Bytes sent by both sides, as in :func:`joint_histogram_send`."""
        transfers = [(batch.stop - batch.start) * self.depth for batch in _batches(self)]
        asked = sum(BEGIN_BYTES + transfer_bytes(count) for count in transfers if count)
        return _PARAMETERS * WORD + self.records * self.correction_bytes + asked


def joint_histogram_send(
    sender: OtSender,
    labels: Labels,
    shape: HistogramShape,
    rng: Rng,
    weights: Labels | None = None,
    groups: Labels | None = None,
) -> Rounds[Shares]:
    """Get a share of the histogram as the sender of the transfers; the peer receives.

    Weights belong to the sender: the sender adds its one-hot vectors, so a weight instead of the 1 is free, while
    the receiver can only select. A party with weights takes this role.

    Functionality:  (a, w; b) -> shares of H[i, j] = sum of w_r over records r with a_r = i and b_r = j,
                    modulo 2**width, uniform if there is any record.
    Input:          sender: ``labels`` a, integers, shape (records,), NO_LABEL to leave a record out, and
                    ``weights`` w of the same shape; receiver: ``labels`` b. ``shape`` is public, and so are
                    ``groups``: the numbers of records of consecutive groups, shape (g,); by default a
                    single group. Labels of shape (records, k) are k different labels of each record, and
                    a_r = i means that i is among the labels of r; k stays with the sender.
    Output, each:   uint16, uint32 or uint64 (shape.width), shape (sender_labels, receiver_labels); with
                    ``groups`` a histogram for each group, shape (g, sender_labels, receiver_labels).
    Leakage:        the shape and the groups.
    Rounds:         2 ("joint_histogram/shape" and the transfers' steps; "joint_histogram/corrections"); the
                    receiver's transfers go a batch of records ahead of the sender's corrections.
    Bytes:          sender: 56, and per record, with d = shape.depth,
                    c = 32 * d + sender_labels * width / 8; receiver: if d > 0, the bytes of n * d transfers
                    (:func:`crypto.ot.extension.random_send`) for every batch of n records, n the lesser of
                    65,536 // d and 4 MiB // c (but 1 at least).
    Assumes:        semi-honest parties; private authenticated channel; random transfers as in
                    :func:`crypto.ot.extension.random_send`; AES-128 an ideal cipher.
    Source:         module docstring.

    Raises LocalProtocolError before anything is sent if labels, weights or groups break the shape;
    RemoteProtocolError if the peer's transfers are malformed.
    """
    _check_shape(shape)
    own_labels = _checked_labels(labels, shape, shape.sender_labels, labels.ndim == _SEVERAL)
    _check_weights(weights, shape)
    ends = _group_ends(groups, shape)
    yield from tell_parameters(sender.peer, _SHAPE, _parameters(shape, ends))
    roots = Prg(rng.bytes(SEED_BYTES))
    share = _no_share(shape, ends)
    for batch in _batches(shape):
        count = batch.stop - batch.start
        key = derive_key(sender.session_key, b"joint_histogram", sender.next_number())
        masks = yield from _send_transfers(sender, count * shape.depth)
        for index, part in enumerate(_chunks(shape, count)):
            records = slice(batch.start + part.start, batch.start + part.stop)
            one_hot = _one_hot(own_labels[records], None if weights is None else weights[records], shape)
            chunk = _Chunk(key, index, _Runs(ends, records), shape)
            own = slice(part.start * shape.depth, part.stop * shape.depth)
            sums, corrections = chunk.grow(random_blocks(roots, chunk.records), share)
            masked = np.concatenate([sums[0] ^ masks[0][own], sums[1] ^ masks[1][own]])
            payload = encode_blocks(masked) + encode_shares(corrections[:, : shape.sender_labels] + one_hot)
            yield from send(_CORRECTIONS, {sender.peer: payload})
    return _histograms(np.zeros_like(share) - share, shape, groups)


def joint_histogram_receive(
    receiver: OtReceiver, labels: Labels, shape: HistogramShape, groups: Labels | None = None
) -> Rounds[Shares]:
    """Get the peer share, as the receiver of the transfers; see :func:`joint_histogram_send`.

    ``labels`` may hold NO_LABEL only if the shape allows omissions. Raises RemoteProtocolError if the sender's
    shape or groups differ from ours or a message of the sender has a wrong length.
    """
    _check_shape(shape)
    leaves = _checked_labels(labels, shape, shape.receiver_labels)
    if not shape.omissions and (leaves == NO_LABEL).any():
        raise LocalProtocolError("records without a label, which the shape does not allow the receiver")
    leaves[leaves == NO_LABEL] = shape.receiver_labels
    ends = _group_ends(groups, shape)
    share = _no_share(shape, ends)
    batches = _batches(shape)
    asked = yield from _ask(receiver, leaves, shape, next(batches, None))
    yield from check_parameters(receiver.peer, _SHAPE, _parameters(shape, ends))
    while asked is not None:
        # The sender has the next batch's transfers while we work on this one.
        ahead = yield from _ask(receiver, leaves, shape, next(batches, None))
        yield from _receive_batch(receiver.peer, shape, ends, asked, share)
        asked = ahead
    return _histograms(share, shape, groups)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A batch of records with transfers under way: start, key, own leaves, own blocks."""

    start: int
    key: bytes = field(repr=False)
    leaves: NDArray[np.int64] = field(repr=False)
    transfers: Blocks = field(repr=False)


def _ask(
    receiver: OtReceiver, leaves: NDArray[np.int64], shape: HistogramShape, batch: slice | None
) -> Rounds[_Asked | None]:
    """Send the transfers of a batch: at each level, choose the side opposite to the path to our leaf."""
    if batch is None:
        return None
    key = derive_key(receiver.session_key, b"joint_histogram", receiver.next_number())
    if shape.depth == 0:
        return _Asked(batch.start, key, leaves[batch], np.empty((0, 2), np.uint64))
    bits = [_choice_bits(leaves[batch][part], shape) for part in _chunks(shape, batch.stop - batch.start)]
    transfers = yield from random_receive(receiver, np.concatenate(bits))
    return _Asked(batch.start, key, leaves[batch], transfers)


def _receive_batch(
    peer: str, shape: HistogramShape, ends: NDArray[np.int64], asked: _Asked, share: Shares
) -> Rounds[None]:
    """Receive the corrections of a batch and add the vectors of the batch to our share."""
    depth = shape.depth
    for index, part in enumerate(_chunks(shape, len(asked.leaves))):
        leaves = asked.leaves[part]
        runs = _Runs(ends, slice(asked.start + part.start, asked.start + part.stop))
        chunk = _Chunk(asked.key, index, runs, shape)
        payload = yield from receive(_CORRECTIONS, peer)
        sums_bytes = 2 * BLOCK_BYTES * chunk.records * depth
        words = chunk.records * shape.sender_labels
        expect_length(payload, sums_bytes + words * shape.width // 8, peer, _CORRECTIONS)
        masked = decode_blocks(payload[:sums_bytes], 2 * chunk.records * depth, peer, _CORRECTIONS)
        zero, one = masked.reshape(2, -1, 2)
        corrections = decode_shares(payload[sums_bytes:], words, shape.width, peer, _CORRECTIONS)
        own = slice(part.start * depth, part.stop * depth)
        masks = np.where(_choice_bits(leaves, shape)[:, np.newaxis] == 1, one, zero)
        chunk.puncture(leaves, asked.transfers[own] ^ masks, corrections.reshape(chunk.records, -1), share)


class _Runs:
    """The groups of consecutive records.

    groups:  numbers of the groups, ascending. starts: place of the first record of each group among the
             records.
    """

    def __init__(self, ends: NDArray[np.int64], records: slice) -> None:
        """Find the groups.

        ``ends``: running number of records by group.
        """
        self.records = records.stop - records.start
        group = np.searchsorted(ends, np.arange(records.start, records.stop), side="right")
        self.groups, self.starts = np.unique(group, return_index=True)

    def add(self, vectors: Shares, share: Shares, columns: slice) -> None:
        """Add vectors (leaves, records, words) to the groups' part of ``share``."""
        sums = np.add.reduceat(vectors, self.starts, axis=1, dtype=vectors.dtype)
        share[self.groups, :, columns] += sums.swapaxes(0, 1)


class _Chunk:
    """The trees of some records under a set of keys, in working memory of bounded size.

    A level's nodes are an array of shape (nodes, records, 2). Node i has the children i and nodes + i, so a leaf's
    number holds its path, lowest bit first. On the last level only existing leaves are made.
    """

    def __init__(self, key: bytes, index: int, runs: _Runs, shape: HistogramShape) -> None:
        self.records = runs.records
        self._runs = runs
        self._shape = shape
        self._key = derive_key(key, index)
        self._left, self._right = self._permutation(0), self._permutation(1)

    def _permutation(self, number: int) -> CipherContext:
        return fixed_key_aes(derive_key(self._key, number))

    def grow(self, roots: Blocks, share: Shares) -> tuple[Blocks, Shares]:
        """Grow whole trees and add their vectors to ``share``, shape (groups, leaves, words).

        Returns the XORs of all left and of all right nodes, shape (2, depth * records, 2), in the order of
        the transfers, and each record's sum of vectors, shape (records, words).
        """
        nodes = roots.reshape(1, self.records, 2)
        sums = np.empty((2, self._shape.depth, self.records, 2), dtype=np.uint64)
        for level in range(self._shape.depth):
            parents = len(nodes)
            nodes = self._children(nodes)
            np.bitwise_xor.reduce(nodes[:parents], axis=0, out=sums[0, level])
            np.bitwise_xor.reduce(nodes[parents:], axis=0, out=sums[1, level])
        corrections = np.empty((self.records, share.shape[2]), dtype=share.dtype)
        for columns, vectors in self._vectors(nodes, share):
            np.add.reduce(vectors, axis=0, dtype=share.dtype, out=corrections[:, columns])
            self._runs.add(vectors, share, columns)
        return sums.reshape(2, -1, 2), corrections

    def puncture(
        self, leaves: NDArray[np.int64], transferred: Blocks, corrections: Shares, share: Shares
    ) -> None:
        """Grow the trees without each record's own leaf, and add the vectors to ``share``.

        transferred:  for every level, the XOR of the side opposite to the path to the own leaf, in the order of
                      the transfers.
        corrections:  shape (records, sender_labels).
        """
        places = np.arange(self.records)
        received = transferred.reshape(self._shape.depth, self.records, 2)
        nodes = np.zeros((1, self.records, 2), dtype=np.uint64)
        for level in range(self._shape.depth):
            nodes = self._children(nodes)
            self._fill_in(nodes, leaves, level, received[level])
        padded = np.zeros((self.records, share.shape[2]), dtype=share.dtype)
        padded[:, : self._shape.sender_labels] = corrections
        for columns, vectors in self._vectors(nodes, share):
            known = np.add.reduce(vectors, axis=0, dtype=share.dtype) - vectors[leaves, places]
            vectors[leaves, places] = padded[:, columns] - known
            self._runs.add(vectors, share, columns)

    def _fill_in(self, nodes: Blocks, leaves: NDArray[np.int64], level: int, received: Blocks) -> None:
        """Replace the children of each record's unknown node: the child on the path by zero, the sibling by its
        value.
        """
        parents = 1 << level
        unknown, turns_right = leaves & (parents - 1), (leaves >> level) & 1 == 1
        places = np.arange(self.records)
        nodes[unknown, places] = 0
        # On the last level the right child may not be: then the path goes left and nothing is missing.
        two = np.flatnonzero(unknown + parents < len(nodes))
        nodes[parents + unknown[two], places[two]] = 0
        left, right = (np.bitwise_xor.reduce(half, axis=0) for half in (nodes[:parents], nodes[parents:]))
        value = received ^ np.where(turns_right[:, np.newaxis], left, right)
        known = np.where(turns_right, unknown, parents + unknown)
        nodes[known[two], places[two]] = value[two]

    def _children(self, nodes: Blocks) -> Blocks:
        """Return the next level: all left children, then the right children that lead to a leaf."""
        parents = len(nodes)
        total = min(2 * parents, self._shape.leaves)
        memory = np.empty(2 * self.records * total + 2, dtype=np.uint64)
        children = memory[:-2].reshape(total, self.records, 2)
        target = memory.data.cast("B")
        split = parents * self.records * BLOCK_BYTES
        _expand(self._left, nodes, target, children[:parents])
        _expand(self._right, nodes[: total - parents], target[split:], children[parents:])
        return children

    def _vectors(self, leaves: Blocks, share: Shares) -> Iterator[tuple[slice, Shares]]:
        """Yield the leaves' vectors, 16 bytes at a time: columns of ``share`` and (leaves, records, words).

        What is yielded is working memory, overwritten by the next.
        """
        memory = np.empty(leaves.size + 2, dtype=np.uint64)
        words = BLOCK_BYTES // share.itemsize
        for number in range(share.shape[2] // words):
            _expand(self._permutation(2 + number), leaves, memory.data.cast("B"), memory[:-2])
            vectors = memory[:-2].view(share.dtype).reshape(len(leaves), self.records, words)
            yield slice(number * words, (number + 1) * words), vectors


def _expand(permutation: CipherContext, x: Blocks, target: memoryview, out: NDArray[np.uint64]) -> None:
    """Write π(x) ⊕ x to ``out``, the start of ``target``; the library needs 16 bytes after ``out``."""
    permutation.update_into(x.data.cast("B"), target)
    np.bitwise_xor(out, x.reshape(out.shape), out=out)


def _send_transfers(sender: OtSender, count: int) -> Rounds[tuple[Blocks, Blocks]]:
    if count == 0:
        return np.empty((0, 2), np.uint64), np.empty((0, 2), np.uint64)
    return (yield from random_send(sender, count))


def _choice_bits(leaves: NDArray[np.int64], shape: HistogramShape) -> NDArray[np.uint8]:
    """Return 1 minus the path bits of the leaves of a chunk, level by level; shape (depth * records,)."""
    levels = np.arange(shape.depth)[:, np.newaxis]
    return (1 - (leaves >> levels & 1)).astype(np.uint8).ravel()


def _one_hot(labels: NDArray[np.int64], weights: Labels | None, shape: HistogramShape) -> Shares:
    """Return a row per record with its weight, or 1, at its label or labels; zero without label."""
    rows = np.zeros((len(labels), shape.sender_labels), dtype=dtype(shape.width))
    labelled = np.nonzero(labels != NO_LABEL)
    values = 1 if weights is None else weights[labelled[0]].astype(rows.dtype)
    rows[labelled[0], labels[labelled]] = values
    return rows


def _row_words(shape: HistogramShape) -> int:
    """Return the number of words of a leaf's vector: a word per label of the sender, filled up to whole blocks."""
    words = BLOCK_BYTES * 8 // shape.width
    return -(-shape.sender_labels // words) * words


def _no_share(shape: HistogramShape, ends: NDArray[np.int64]) -> Shares:
    """Return zeros for the vectors of every group's leaves; shape (groups, leaves, words)."""
    return np.zeros((len(ends), shape.leaves, _row_words(shape)), dtype=dtype(shape.width))


def _histograms(share: Shares, shape: HistogramShape, groups: Labels | None) -> Shares:
    """Cut the leaves' vectors to the existing labels; without groups, return the single histogram."""
    cut = share[:, : shape.receiver_labels, : shape.sender_labels].swapaxes(1, 2).copy()
    return cut[0] if groups is None else cut


def _parameters(shape: HistogramShape, ends: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the parameters on which both sides must agree; groups enter as a digest."""
    digest = hashlib.sha256(ends.astype("<i8").tobytes()).digest()
    return (*astuple(shape), int.from_bytes(digest[:WORD], "little"))


def _batches(shape: HistogramShape) -> Iterator[slice]:
    """Cut the records into batches: transfers for one message, corrections of bounded size."""
    bounded = min(CHUNK // max(shape.depth, 1), BATCH_BYTES // shape.correction_bytes)
    return slices(shape.records, max(bounded, 1))


def _chunks(shape: HistogramShape, records: int) -> Iterator[slice]:
    """Cut a batch into chunks whose trees fit the working memory and whose corrections fit a message."""
    bounded = min(CHUNK_NODES // shape.leaves, MESSAGE_BYTES // shape.correction_bytes)
    return slices(records, max(bounded, 1))


def _check_shape(shape: HistogramShape) -> None:
    if (
        shape.records < 0
        or shape.max_weight < 1
        or min(shape.sender_labels, shape.receiver_labels, shape.share_bits) < 1
    ):
        raise LocalProtocolError(f"no histogram has {shape}")


def _checked_labels(
    labels: Labels, shape: HistogramShape, declared: int, several: bool = False
) -> NDArray[np.int64]:
    """Return labels as int64, a copy."""
    prescribed = (shape.records, *labels.shape[1:]) if several else (shape.records,)
    if labels.shape != prescribed or labels.dtype.kind not in "iu":
        raise LocalProtocolError(
            f"{shape.records} integer labels are prescribed, not {labels.dtype} of shape {labels.shape}"
        )
    if labels.size and (labels.min() < NO_LABEL or labels.max() >= declared):
        raise LocalProtocolError(f"labels outside the {declared} declared")
    return labels.astype(np.int64)


def _group_ends(groups: Labels | None, shape: HistogramShape) -> NDArray[np.int64]:
    """Return the running number of records by group."""
    if groups is None:
        return np.array([shape.records], dtype=np.int64)
    if groups.ndim != 1 or groups.dtype.kind not in "iu" or (groups.size and groups.min() < 0):
        raise LocalProtocolError(
            f"sizes of groups are a vector of integers, not {groups.dtype} of {groups.ndim} axes"
        )
    ends = np.cumsum(groups, dtype=np.int64)
    if (int(ends[-1]) if ends.size else 0) != shape.records:
        raise LocalProtocolError(f"{len(groups)} groups that do not add up to {shape.records} records")
    return ends


def _check_weights(weights: Labels | None, shape: HistogramShape) -> None:
    if weights is None:
        return
    if weights.shape != (shape.records,) or weights.dtype.kind not in "iu":
        raise LocalProtocolError(
            f"{shape.records} integer weights are prescribed, not {weights.dtype} of shape {weights.shape}"
        )
    if weights.size and (weights.min() < 0 or weights.max() > shape.max_weight):
        raise LocalProtocolError(f"weights outside [0, {shape.max_weight}] as declared")
