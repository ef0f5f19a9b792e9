"""Messages as version 0.2 writes them, stored in tests/vectors/wire.json: later versions read them unchanged.

A new version adds its own messages, and changes none: :func:`jobs.version.talks_with` says who talks with whom.
"""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from jobs.errors import Problem
from party.net import control
from party.net.control import Envelope
from party.net.conversions import (
    from_answer,
    from_envelope,
    from_event,
    from_proposal,
    from_request,
    to_answer,
    to_envelope,
    to_event,
    to_proposal,
    to_request,
)
from protos import jointcut_pb2 as pb
from tests.support.vectors import Golden

REQUESTS: dict[str, control.Request] = {
    "submit": control.Submit(bytes(range(16)), control.Piece("bundle", b"{}", True)),
    "read": control.Read(),
    "start": control.Start(),
    "start, sealed": control.Start(bytes(range(32))),
    "release": control.Release(control.Piece("report.json", b"y", True)),
    "stored": control.Stored(bytes(range(32))),
    "cancel": control.Cancel('{"error": "busy"}'),
}
EVENTS: dict[str, control.Event] = {
    "allowed": control.Allowed(bytes(range(32))),
    "admitted": control.Admitted(bytes(range(32))),
    "progress": control.Progress("score", 3, "age", True),
    "finished": control.Finished(bytes(range(32)), "{}"),
    "result": control.ResultPart(control.Piece("result", b"x", True)),
    "delivered": control.Delivered(bytes(range(32))),
    "failed": control.Failed(Problem("busy", "later", "b", "submit")),
}
ENVELOPE = Envelope(bytes(32), bytes(range(16)), "a", "b", 2**40, "x/y", b"payload", False)
PROPOSAL = control.Proposal(control.Piece("bundle", b"{}", True), True)
ANSWER = control.Answer("denied", "too fine")
SMALL: dict[str, Message] = {
    "still here": pb.StillHere(),
    "position": pb.Position(ahead=3),
    "description": pb.Description(name="a", version="0.2.0", time_ms=1_700_000_000_000),
    "description with protocols": pb.Description(name="a", version="0.2.0", protocols="0011aabb"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_written_and_read_as_stored(golden: Golden, name: str) -> None:
    sent = from_request(REQUESTS[name]).SerializeToString(deterministic=True)
    golden.check("wire", f"0.2 request: {name}", sent.hex())
    assert to_request(pb.Request.FromString(sent)) == REQUESTS[name]


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_is_written_and_read_as_stored(golden: Golden, name: str) -> None:
    sent = from_event(EVENTS[name]).SerializeToString(deterministic=True)
    golden.check("wire", f"0.2 event: {name}", sent.hex())
    assert to_event(pb.Event.FromString(sent), "b") == EVENTS[name]


def test_other_messages_are_written_and_read_as_stored(golden: Golden) -> None:
    sent = from_envelope(ENVELOPE).SerializeToString(deterministic=True)
    golden.check("wire", "0.2 envelope", sent.hex())
    assert to_envelope(pb.Envelope.FromString(sent)) == ENVELOPE
    sent = from_proposal(PROPOSAL).SerializeToString(deterministic=True)
    golden.check("wire", "0.2 proposal", sent.hex())
    assert to_proposal(pb.Proposal.FromString(sent)) == PROPOSAL
    sent = from_answer(ANSWER).SerializeToString(deterministic=True)
    golden.check("wire", "0.2 answer", sent.hex())
    assert to_answer(pb.Answer.FromString(sent), "b") == ANSWER


@pytest.mark.parametrize("name", SMALL)
def test_small_messages_are_written_as_stored(golden: Golden, name: str) -> None:
    golden.check("wire", f"0.2 {name}", SMALL[name].SerializeToString(deterministic=True).hex())


def test_a_field_of_a_later_version_is_no_error() -> None:
    later = from_event(EVENTS["allowed"]).SerializeToString() + b"\xfa\x3f\x03new"  # field 1023
    assert to_event(pb.Event.FromString(later), "b") == EVENTS["allowed"]
