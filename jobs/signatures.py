"""What every party of a joint run signs in the end, and how a report says it.

A *statement* names the job, the run, what each party committed to (:mod:`jobs.commitment`), a digest of everything
that went over each of the signer's links, in either direction, and the digest of the result. The two ends of a link
hash the same messages, so that neither can say later that it sent or received others. Digests of links hide what went
through them: each begins with 32 random bytes. Which parties have a link with each other, a mode says
(:mod:`jobs.links`); what those signed who have none is passed on.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from crypto.errors import RemoteProtocolError
from crypto.rounds import Round, Rounds
from jobs.errors import IdentityError, PartyError, json_object
from jobs.links import Links, pass_on
from jobs.report import require_same_fields

STATEMENT = "run/statement"
FORMAT = "jointcut/run/1"
_HEX = re.compile(r"[0-9a-f]{64}")
_LENGTH_BYTES, _DIGEST_BYTES = 2, 32
_OF_EACH = ("commitments", "sent", "received", "result")
"""What of a statement is the signer's own word."""

Digests = dict[str, str]
"""SHA-256, hexadecimal, by party."""


@dataclass(frozen=True)
class Statement:
    """What one party signs; digests and the run are hexadecimal.

    sent, received:  of everything that went over its link with each other party, in order.
    """

    party: str
    job: str
    run: str
    commitments: Digests
    sent: Digests
    received: Digests
    result: str

    @property
    def encoded(self) -> bytes:
        """The bytes that are signed: canonical JSON."""
        fields = {"format": FORMAT, **asdict(self)}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Signed:
    """A statement with its signature and the signer's certificate, DER."""

    statement: Statement
    signature: bytes = field(repr=False)
    certificate: bytes = field(repr=False)


Sign = Callable[[bytes], bytes]
Check = Callable[[str, bytes, bytes], None]
"""Party, signature, signed bytes. Raises IdentityError if the signature is not that party's."""


def attest(
    ours: Statement, links: Links, sign: Sign, check: Check
) -> Rounds[dict[str, tuple[Statement, bytes]]]:
    """Sign our statement, exchange statements with all others, and compare them.

    Functionality:  every party's statement and signature, to every party.
    Input, each:    ``ours``; ``sign``, with our own key; ``check``, with the certificates of all.
    Output, each:   statements and signatures by party: they agree with each other.
    Leakage:        digests of links with the others, and whether all agree.
    Rounds:         1 ("run/statement"), and those of :func:`jobs.links.pass_on`.
    Bytes:          over each link 2, the signature (P-256: 64) and the statement (of three: some 800); of each is
                    passed on its signature, and 64 for each of its links.
    Assumes:        signatures cannot be forged; SHA-256 is collision-resistant; as :func:`jobs.links.pass_on`.
    Source:         folklore.

    Raises PartyError where two statements contradict each other, RemoteProtocolError for what is no statement, and as
    :func:`jobs.links.pass_on`.
    """
    peers, signature = links[ours.party], sign(ours.encoded)
    payload = len(signature).to_bytes(_LENGTH_BYTES, "little") + signature + ours.encoded
    inbox = yield Round(STATEMENT, dict.fromkeys(peers, payload), frozenset(peers))
    found = {ours.party: (ours, signature)}
    for peer in peers:
        theirs, signature = _read(inbox[peer], peer, ours, links)
        check(peer, signature, theirs.encoded)
        found[peer] = (theirs, signature)
    compare(ours, _statements(found))
    said = {party: _own_word(*statement, links) for party, statement in found.items()}
    found |= yield from pass_on(ours.party, links, STATEMENT, said, partial(_passed_on, ours, links, check))
    compare(ours, _statements(found))
    return found


def _statements(found: Mapping[str, tuple[Statement, bytes]]) -> dict[str, Statement]:
    return {party: statement for party, (statement, _) in found.items()}


def _own_word(statement: Statement, signature: bytes, links: Links) -> bytes:
    """What of a statement that agrees with ours nobody else knows: its signature and the digests of its links."""
    digests = [each[peer] for peer in links[statement.party] for each in (statement.sent, statement.received)]
    return signature + bytes.fromhex("".join(digests))


def _passed_on(
    ours: Statement, links: Links, check: Check, party: str, said: bytes
) -> tuple[Statement, bytes]:
    """The statement of a party with whom we have no link. Raises RemoteProtocolError if it did not sign that."""
    peers = links[party]
    end = len(said) - 2 * len(peers) * _DIGEST_BYTES
    if end < 0:
        raise RemoteProtocolError(party, STATEMENT, "no digests of its links")
    digests = [said[start : start + _DIGEST_BYTES].hex() for start in range(end, len(said), _DIGEST_BYTES)]
    sent, received = dict(zip(peers, digests[::2], strict=True)), dict(zip(peers, digests[1::2], strict=True))
    theirs = Statement(party, ours.job, ours.run, ours.commitments, sent, received, ours.result)
    try:
        check(party, said[:end], theirs.encoded)
    except IdentityError as error:
        raise RemoteProtocolError(party, STATEMENT, error.problem.message) from error
    return theirs, said[:end]


def _read(payload: bytes, peer: str, ours: Statement, links: Links) -> tuple[Statement, bytes]:
    """A peer's statement, which is one about this run and of this shape. Raises RemoteProtocolError."""
    end = _LENGTH_BYTES + int.from_bytes(payload[:_LENGTH_BYTES], "little")
    fields = json_object(payload[end:]) or {}
    try:
        theirs = Statement(peer, ours.job, ours.run, *(fields[key] for key in _OF_EACH))
        shaped = (
            _are_digests(theirs.commitments, links)
            and _are_digests(theirs.sent, links[peer])
            and _are_digests(theirs.received, links[peer])
            and _is_digest(theirs.result)
            and theirs.encoded == payload[end:]
        )
    except (KeyError, TypeError):
        shaped = False
    if not shaped:
        raise RemoteProtocolError(peer, STATEMENT, "no statement about this run")
    return theirs, payload[_LENGTH_BYTES:end]


def _are_digests(said: Any, names: Iterable[str]) -> bool:
    return isinstance(said, dict) and said.keys() == set(names) and all(map(_is_digest, said.values()))


def _is_digest(said: Any) -> bool:
    return isinstance(said, str) and _HEX.fullmatch(said) is not None


def compare(ours: Statement, all_of_them: Mapping[str, Statement]) -> None:
    """Raise PartyError for the first thing that two statements say differently, with whose statements they are.

    A link is looked at where the statements of both its ends are there.
    """
    for party, theirs in all_of_them.items():
        if theirs.result != ours.result:
            raise PartyError("result-mismatch", f"{party} ended with another result than {ours.party}")
        for who, commitment in theirs.commitments.items():
            if commitment != ours.commitments[who]:
                what = f"{party} and {ours.party} were told of different commitments of {who}"
                raise PartyError("peer-protocol", what, party=party if who == ours.party else who)
    for sender, theirs in all_of_them.items():
        for recipient, digest in theirs.sent.items():
            if recipient in all_of_them and all_of_them[recipient].received[sender] != digest:
                what = (
                    f"{sender} and {recipient} signed different records of what {sender} sent to {recipient}"
                )
                raise PartyError("peer-protocol", what, party=recipient if sender == ours.party else sender)


# ---- in a report

SIGNATURES = "signatures"
"""The key of a report."""


def signature_fields(signed: Sequence[Signed]) -> dict[str, Any]:
    """Statements that agree, as a report says them: what they share once; each party's certificate and signature."""
    first = signed[0].statement
    return {
        "run": first.run,
        "result": first.result,
        "commitments": first.commitments,
        "links": {each.statement.party: each.statement.sent for each in signed},
        "parties": {
            each.statement.party: {
                "certificate": base64.b64encode(each.certificate).decode(),
                "signature": base64.b64encode(each.signature).decode(),
            }
            for each in signed
        },
    }


def check_signatures_told(report: bytes, signed: Sequence[Signed]) -> None:
    """Raise PartyError unless a delivered report says what was signed."""
    require_same_fields({SIGNATURES: signature_fields(signed)}, json_object(report) or {})


def read_signatures(fields: Any, job: bytes, roster: Sequence[str]) -> list[Signed]:
    """What each party of a job signed, as a report says it, its links included; the signatures are not looked at.

    Raises PartyError (verification-failed) if the fields are not of this shape.
    """
    try:
        commitments, links, parties = fields["commitments"], fields["links"], fields["parties"]
        whole = parties.keys() == set(roster) == links.keys() and _are_digests(commitments, roster)
        whole = whole and all(_are_digests(links[p], links[p]) and p not in links[p] for p in roster)
        if not whole or not _is_digest(fields["result"]) or not isinstance(fields["run"], str):
            raise ValueError("another shape")
        return [_signed(party, fields, job) for party in roster]
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise PartyError("verification-failed", "the signatures of the report are malformed") from error


def _signed(party: str, fields: Mapping[str, Any], job: bytes) -> Signed:
    links, own = fields["links"], fields["parties"][party]
    received = {peer: links[peer][party] for peer in links[party]}
    commitments, run, result = dict(fields["commitments"]), fields["run"], fields["result"]
    statement = Statement(party, job.hex(), run, commitments, dict(links[party]), received, result)
    decoded = (base64.b64decode(own[key], validate=True) for key in ("signature", "certificate"))
    return Signed(statement, *decoded)
