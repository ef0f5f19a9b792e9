"""Conversions between gRPC's messages and our own values: ten, and two for the pieces inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.errors import PartyError, Problem, printable
from party.net import control
from party.owner.approvals import State
from protos import jointcut_pb2 as pb


def to_envelope(message: pb.Envelope) -> control.Envelope:
    """Return a protocol's message unchanged."""
    return control.Envelope(
        message.job,
        message.run,
        message.sender,
        message.recipient,
        message.sequence,
        message.step,
        message.payload,
        message.last,
    )


def from_envelope(envelope: control.Envelope) -> pb.Envelope:
    """Convert a request for sending."""
    return pb.Envelope(
        job=envelope.job,
        run=envelope.run,
        sender=envelope.sender,
        recipient=envelope.recipient,
        sequence=envelope.sequence,
        step=envelope.step,
        payload=envelope.payload,
        last=envelope.last,
    )


def _to_piece(piece: pb.Piece) -> control.Piece:
    """Convert a piece. Raises PartyError for an empty piece before the last: such a stream has no bound."""
    if not piece.content and not piece.last:
        raise PartyError("peer-protocol", "a part without content is not the last")
    return control.Piece(piece.name, piece.content, piece.last)


def _from_piece(piece: control.Piece) -> pb.Piece:
    return pb.Piece(name=piece.name, content=piece.content, last=piece.last)


def to_request(message: pb.Request) -> control.Request:
    """Convert a coordinator's request. Raises PartyError (peer-protocol) for a kind we do not know."""
    match message.WhichOneof("kind"):
        case "submit":
            return control.Submit(message.submit.run, _to_piece(message.submit.bundle))
        case "read":
            return control.Read()
        case "start":
            return control.Start(message.start.key)
        case "release":
            return control.Release(_to_piece(message.release))
        case "stored":
            return control.Stored(message.stored.release)
        case "cancel":
            return control.Cancel(message.cancel.problem)
        case _:
            raise PartyError("peer-protocol", "an empty request; compare versions")


def from_request(request: control.Request) -> pb.Request:
    """Convert a request for sending."""
    match request:
        case control.Submit(run, bundle):
            return pb.Request(submit=pb.Submit(run=run, bundle=_from_piece(bundle)))
        case control.Read():
            return pb.Request(read=pb.Read())
        case control.Start(key):
            return pb.Request(start=pb.Start(key=key))
        case control.Release(piece):
            return pb.Request(release=_from_piece(piece))
        case control.Stored(release):
            return pb.Request(stored=pb.Stored(release=release))
        case control.Cancel(problem):
            return pb.Request(cancel=pb.Cancel(problem=problem))


def to_proposal(message: pb.Proposal) -> control.Proposal:
    """Convert a part of a proposal. Raises PartyError as for a piece."""
    return control.Proposal(_to_piece(message.bundle), message.ask)


def from_proposal(proposal: control.Proposal) -> pb.Proposal:
    """Convert a part of a proposal for sending."""
    return pb.Proposal(bundle=_from_piece(proposal.bundle), ask=proposal.ask)


_STATES: Mapping[State, Any] = {
    "unknown": pb.Answer.UNKNOWN,
    "waiting": pb.Answer.WAITING,
    "approved": pb.Answer.APPROVED,
    "denied": pb.Answer.DENIED,
}


def to_answer(message: pb.Answer, party: str) -> control.Answer:
    """Convert an owner's decision. Raises PartyError (peer-protocol) for a state we do not know."""
    for state, number in _STATES.items():
        if message.state == number:
            return control.Answer(state, printable(message.reason))
    raise PartyError("peer-protocol", f"{party} sent an unknown answer; compare versions", party=party)


def from_answer(answer: control.Answer) -> pb.Answer:
    """Convert an owner's decision for sending."""
    return pb.Answer(state=_STATES[answer.state], reason=answer.reason)


def to_event(message: pb.Event, party: str) -> control.Event:
    """Convert a party's event. Raises PartyError (peer-protocol) for a kind we do not know."""
    match message.WhichOneof("kind"):
        case "allowed":
            return control.Allowed(message.allowed.job)
        case "admitted":
            return control.Admitted(message.admitted.job)
        case "progress":
            progress = message.progress
            return control.Progress(progress.phase, progress.iteration, progress.column, progress.applied)
        case "finished":
            return control.Finished(message.finished.result, message.finished.summary)
        case "result":
            return control.ResultPart(_to_piece(message.result))
        case "delivered":
            return control.Delivered(message.delivered.release)
        case "failed":
            return control.Failed(Problem.told(message.failed.problem, party))
        case _:
            raise PartyError("peer-protocol", f"{party} sent an empty event; compare versions", party=party)


def from_event(event: control.Event) -> pb.Event:
    """Convert an event for sending. Only the shared fields of a problem go out."""
    match event:
        case control.Allowed(job):
            return pb.Event(allowed=pb.Allowed(job=job))
        case control.Admitted(job):
            return pb.Event(admitted=pb.Admitted(job=job))
        case control.Progress(phase, iteration, column, applied):
            progress = pb.Progress(phase=phase, iteration=iteration, column=column, applied=applied)
            return pb.Event(progress=progress)
        case control.Finished(result, summary):
            return pb.Event(finished=pb.Finished(result=result, summary=summary))
        case control.ResultPart(piece):
            return pb.Event(result=_from_piece(piece))
        case control.Delivered(release):
            return pb.Event(delivered=pb.Delivered(release=release))
        case control.Failed(problem):
            return pb.Event(failed=pb.Failed(problem=problem.for_others()))
