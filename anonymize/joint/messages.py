"""Messages of a joint run besides counts: candidates and codes, canonically encoded."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from anonymize.candidates import Prospect, marked, profile_length
from anonymize.criteria.criterion import Bools
from anonymize.cut import Candidate, Cut
from anonymize.table import MAX_RECORDS, Codes, Ints, Schema
from anonymize.taxonomy import Node
from crypto.encoding import decode_bits, encode_bits, expect_length
from crypto.errors import RemoteProtocolError
from crypto.rounds import Rounds, receive, send
from crypto.two_party import expect_outcome

_CANDIDATE = struct.Struct("<Iqq")
CANDIDATE_BYTES = _CANDIDATE.size
_NODE = struct.Struct("<Iq")
_NONE = (1 << 32) - 1
CODES_PIECE = 1 << 20
"""Codes in a message."""


def encode_candidate(candidate: Candidate | None) -> bytes:
    """Encode a candidate by column, first leaf of its node, and mark."""
    if candidate is None:
        return _CANDIDATE.pack(_NONE, 0, 0)
    return _CANDIDATE.pack(candidate.column, candidate.node.first, candidate.mark)


def decode_candidate(payload: bytes, schema: Schema, cut: Cut, peer: str, step: str) -> Candidate | None:
    """Decode a candidate of the current cut; anything else is the peer's fault."""
    expect_length(payload, CANDIDATE_BYTES, peer, step)
    number, first, mark = _CANDIDATE.unpack(payload)
    if number == _NONE:
        return None
    node, column = _node_of(number, first, schema, cut, peer, step), schema.qid[number]
    candidate = marked(number, column, node, mark)
    if candidate is None:
        wrong = (
            "split outside its interval"
            if column.is_numeric
            else "with children that differ from the taxonomy"
        )
        raise RemoteProtocolError(peer, step, f"a candidate {wrong}")
    return candidate


def opened_candidate(prospect: Prospect, option: int, peer: str) -> Candidate:
    """Return the candidate of a prospect and an option.

    option:  as opened with ``peer``; ignored for fixed children.

    Raises RemoteProtocolError for a missing option.
    """
    if prospect.n_options:
        option = 1 + expect_outcome(option - 1, prospect.n_options, peer)
    return prospect.specialized(option)


def encode_node(place: tuple[int, Node] | None) -> bytes:
    """Encode a node of a column that may be specialized, without the split point of an interval."""
    return _NODE.pack(_NONE, 0) if place is None else _NODE.pack(place[0], place[1].first)


def decode_node(payload: bytes, schema: Schema, cut: Cut, peer: str, step: str) -> tuple[int, Node] | None:
    """Decode a node of the current cut; anything else is the peer's fault."""
    expect_length(payload, _NODE.size, peer, step)
    number, first = _NODE.unpack(payload)
    return None if number == _NONE else (number, _node_of(number, first, schema, cut, peer, step))


def _node_of(number: int, first: int, schema: Schema, cut: Cut, peer: str, step: str) -> Node:
    """Return the node of the current cut with a given first leaf, if it can be a candidate."""
    if number >= len(schema.qid):
        raise RemoteProtocolError(peer, step, "a candidate of an unknown column")
    nodes = [node for node in cut.nodes[number] if node.first == first]
    if not nodes or profile_length(schema.qid[number], nodes[0]) < 2:
        raise RemoteProtocolError(peer, step, "a candidate outside the current cut")
    return nodes[0]


def send_codes(step: str, peers: Sequence[str], codes: Codes, bound: int) -> Rounds[None]:
    """Send codes in [0, bound), ceil(log2 bound) bits each, in messages of CODES_PIECE codes."""
    bits = np.arange((bound - 1).bit_length())[:, np.newaxis]
    for start in range(0, len(codes), CODES_PIECE):
        planes = codes[start : start + CODES_PIECE].astype(np.int64) >> bits & 1
        yield from send(step, dict.fromkeys(peers, encode_bits(planes.astype(np.uint8).ravel())))


def receive_codes(step: str, peer: str, count: int, bound: int) -> Rounds[Ints]:
    """Receive ``count`` codes; shape (count,). Raises RemoteProtocolError for an impossible length or code."""
    bits = (bound - 1).bit_length()
    codes = np.zeros(count, dtype=np.int64)
    for start in range(0, count, CODES_PIECE):
        piece = codes[start : start + CODES_PIECE]
        payload = yield from receive(step, peer)
        planes = decode_bits(payload, bits * len(piece), peer, step).reshape(bits, len(piece))
        piece += (planes.astype(np.int64) << np.arange(bits)[:, np.newaxis]).sum(axis=0)
    if codes.size and codes.max() >= bound:
        raise RemoteProtocolError(peer, step, "a code out of range")
    return codes


def encode_only_children(bits: Sequence[Bools]) -> bytes:
    """Encode the bits of the children, node after node: 1 if a child has all records of its node."""
    flat = np.concatenate([np.zeros(0, dtype=bool), *bits])
    return encode_bits(flat.astype(np.uint8))


def decode_only_children(
    payload: bytes, own: Sequence[Ints], peer: str, suspects: str, step: str
) -> list[int | None]:
    """Return, for each node, the child with all its records, from the bits of ``peer``; None if several have records.

    own:       own records of the children of every node: int64, shape (n_children,) each.
    suspects:  possible causes of an answer that contradicts own records.

    Raises RemoteProtocolError for more than one child with all records, or if another child has own records.
    """
    flat = decode_bits(payload, sum(len(sizes) for sizes in own), peer, step)
    bits = np.split(flat, np.cumsum([len(sizes) for sizes in own])[:-1]) if own else []
    for told, sizes in zip(bits, own, strict=True):
        if told.any() and (told.sum() > 1 or sizes[told == 0].any()):
            raise RemoteProtocolError(suspects, step, "a value of all records differs between parties")
    return [int(told.argmax()) if told.any() else None for told in bits]


def encode_bit(value: bool) -> bytes:
    """Encode a bit in a byte, 0 or 1."""
    return bytes([value])


def decode_bit(payload: bytes, peer: str, step: str) -> bool:
    """Decode a bit; anything else is the peer's fault."""
    if payload not in (b"\0", b"\1"):
        raise RemoteProtocolError(peer, step, "neither yes nor no")
    return payload == b"\1"


def checked_counts(opened: Ints, own: Ints, totals: Ints | None, suspects: str, step: str) -> Ints:
    """Complete opened counts, and refuse impossible counts.

    opened:    sums of all parties' counts: int64, shape as ``own``, without the last column if ``totals`` gives it.
    own:       own part.
    totals:    public row sums of the completed counts, or None.
    suspects:  possible causes of impossible counts; a sum does not identify the party.

    Raises RemoteProtocolError for a count below the own part, for example the last count if the others exceed their
    total, or above the number of records of any table.
    """
    counts = opened if totals is None else np.column_stack([opened, totals - opened.sum(axis=1)])
    if opened.size and int(opened.max()) > MAX_RECORDS:
        raise RemoteProtocolError(suspects, step, "counts of more records than any table may have")
    if (counts < own).any():
        raise RemoteProtocolError(suspects, step, "counts contradict known counts")
    return counts
