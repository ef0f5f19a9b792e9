"""Our own values to gRPC and back: what survives, what stays here, what is refused."""

from __future__ import annotations

import pytest

from jobs.errors import PartyError, Problem
from party.net import control
from party.net.control import Envelope
from party.net.conversions import from_envelope, from_event, from_request, to_envelope, to_event, to_request
from protos import jointcut_pb2 as pb


@pytest.mark.parametrize(
    "request_",
    [
        control.Submit(b"r" * 16, control.Piece("bundle", b"x", False)),
        control.Read(),
        control.Start(),
        control.Start(b"k" * 32),
        control.Release(control.Piece("report.json", b"y", True)),
        control.Stored(b"d" * 32),
        control.Cancel(),
    ],
)
def test_requests_survive_their_way(request_: control.Request) -> None:
    assert to_request(from_request(request_)) == request_


@pytest.mark.parametrize(
    "event",
    [
        control.Allowed(b"j" * 32),
        control.Admitted(b"j" * 32),
        control.Progress("score", 3, "age", True),
        control.Finished(b"d" * 32, "{}"),
        control.ResultPart(control.Piece("result", b"x", True)),
        control.Delivered(b"d" * 32),
        control.Failed(Problem("busy", "later", "b", "submit")),
    ],
)
def test_events_survive_their_way(event: control.Event) -> None:
    assert to_event(from_event(event), "b") == event


def test_envelopes_survive_their_way() -> None:
    envelope = Envelope(b"j", b"r", "a", "b", 2**40, "x/y", b"payload", False)
    assert to_envelope(from_envelope(envelope)) == envelope


def test_what_is_private_does_not_travel() -> None:
    failed = control.Failed(Problem("data-empty", "no rows", "b", private="Zebra"))
    assert b"Zebra" not in from_event(failed).SerializeToString()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"error": 3}', "[" * 10**5])
def test_a_failure_without_a_reason_is_the_partys(text: str) -> None:
    event = to_event(pb.Event(failed=pb.Failed(problem=text)), "b")
    assert isinstance(event, control.Failed)
    assert (event.problem.error_id, event.problem.party) == ("peer-protocol", "b")


def test_empty_messages_are_refused() -> None:
    for convert in (to_request, lambda m: to_event(m, "b")):
        with pytest.raises(PartyError) as caught:
            convert(pb.Request() if convert is to_request else pb.Event())  # type: ignore[arg-type]
        assert caught.value.problem.error_id == "peer-protocol"


def test_a_part_without_content_is_the_last_one() -> None:
    """A stream of others would have no bound."""
    empty = pb.Piece(name="bundle", content=b"", last=False)
    with pytest.raises(PartyError, match="a part without content"):
        to_request(pb.Request(submit=pb.Submit(run=bytes(16), bundle=empty)))
    last = pb.Piece(name="bundle", content=b"", last=True)
    assert to_request(pb.Request(submit=pb.Submit(run=bytes(16), bundle=last))).bundle.last  # type: ignore[union-attr]
