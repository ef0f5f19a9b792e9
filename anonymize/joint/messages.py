"""What the parties of a joint run tell each other besides counts: candidates, in canonical encodings."""

from __future__ import annotations

import struct

import numpy as np

from anonymize.candidates import profile_length
from anonymize.cut import Candidate, Cut, interval_children
from anonymize.table import Ints, Schema
from crypto.encoding import expect_length
from crypto.errors import RemoteProtocolError

_CANDIDATE = struct.Struct("<Iqq")
CANDIDATE_BYTES = _CANDIDATE.size
_NONE = (1 << 32) - 1


def encode_candidate(candidate: Candidate | None) -> bytes:
    """Encode a candidate by column, first leaf and (for intervals) the first leaf of its second child."""
    if candidate is None:
        return _CANDIDATE.pack(_NONE, 0, 0)
    return _CANDIDATE.pack(candidate.column, candidate.node.first, candidate.children[1].first)


def decode_candidate(payload: bytes, schema: Schema, cut: Cut, peer: str, step: str) -> Candidate | None:
    """Decode a candidate of the current cut; anything else is the peer's fault."""
    expect_length(payload, CANDIDATE_BYTES, peer, step)
    number, first, second = _CANDIDATE.unpack(payload)
    if number == _NONE:
        return None
    if number >= len(schema.qid):
        raise RemoteProtocolError(peer, step, "a candidate of a column that does not exist")
    column = schema.qid[number]
    nodes = [node for node in cut.nodes[number] if node.first == first]
    if not nodes or profile_length(column, nodes[0]) < 2:
        raise RemoteProtocolError(peer, step, "a candidate that the current cut does not have")
    (node,) = nodes
    if not column.is_numeric:
        candidate = Candidate(number, node, column.children(node))
        if candidate.children[1].first != second:
            raise RemoteProtocolError(peer, step, "a candidate with other children than its taxonomy has")
        return candidate
    if not node.first < second < node.last:
        raise RemoteProtocolError(peer, step, "a candidate split outside its interval")
    return Candidate(number, node, interval_children(node, second - node.first))


def encode_bit(value: bool) -> bytes:
    """One byte, 0 or 1."""
    return bytes([value])


def decode_bit(payload: bytes, peer: str, step: str) -> bool:
    """Decode one bit; anything else is the peer's fault."""
    if payload not in (b"\0", b"\1"):
        raise RemoteProtocolError(peer, step, "neither yes nor no")
    return payload == b"\1"


def check_opened(opened: Ints, own: Ints, totals: Ints | None, culprit: str, step: str) -> None:
    """Refuse opened counts that no table can have: below our own part, or rows above their public totals."""
    if (opened < own).any() or (totals is not None and (opened.sum(axis=1) > totals).any()):
        raise RemoteProtocolError(culprit, step, "counts that contradict what is known")
    if opened.size and int(opened.max()) >= np.iinfo(np.int32).max:
        raise RemoteProtocolError(culprit, step, "counts of more records than any table may have")
