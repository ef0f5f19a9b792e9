"""Signatures of every party at the end of a joint run, and their form in a report.

A *statement* names the job, the run, each party's commitment (:mod:`jobs.release.commitment`), the digest of the
result, and for each of the signer's links a digest of all traffic, in either direction. Both ends of a link hash
the same messages, so neither can later claim different messages. Digests of links begin with 32 random bytes, and
so hide the messages.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from crypto.errors import RemoteProtocolError
from crypto.rounds import Round, Rounds
from jobs.errors import PartyError, json_object
from jobs.release.report import SIGNATURES, require_same_fields
from jobs.release.sums import Digests

STATEMENT = "run/statement"
FORMAT = "jointcut/run/2"
_HEX = re.compile(r"[0-9a-f]{64}")
_LENGTH_BYTES = 2
_OF_EACH = ("commitments", "sent", "received", "result", "tables")
"""Keys of a statement with the signer's own claims."""


@dataclass(frozen=True)
class Statement:
    """Statement for signature by a party; digests and the run are hexadecimal.

    sent, received:  digests of all traffic on the link with each peer, in order.
    tables:          digests by file name, of files that follow from the result to the byte but do not give
                it back.
    """

    party: str
    job: str
    run: str
    commitments: Digests
    sent: Digests
    received: Digests
    result: str
    tables: Digests = field(default_factory=dict)

    @property
    def encoded(self) -> bytes:
        """Signed bytes: canonical JSON."""
        fields = {"format": FORMAT, **asdict(self)}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Signed:
    """Statement with its signature and the signer's certificate, DER."""

    statement: Statement
    signature: bytes = field(repr=False)
    certificate: bytes = field(repr=False)


Sign = Callable[[bytes], bytes]
Check = Callable[[str, bytes, bytes], None]
"""Check of party, signature and signed bytes. Raises IdentityError for a signature of anybody else."""


def attest(
    ours: Statement, peers: Sequence[str], sign: Sign, check: Check
) -> Rounds[dict[str, tuple[Statement, bytes]]]:
    """Sign our statement, exchange statements with all peers, and compare the statements.

    Functionality:  every party's statement and signature, to every party.
    Input, each:    ``ours``; ``sign``, with our own key; ``check``, with the installed certificates.
    Output, each:   statements and signatures by party; the statements agree with each other.
    Leakage:        digests of links between the peers, and whether all agree.
    Rounds:         1 ("run/statement").
    Bytes:          to each peer 2, the signature (P-256: 64) and the statement (three parties: some 800).
    Assumes:        signatures cannot be forged; SHA-256 is collision-resistant.
    Source:         folklore.

    Raises PartyError if two statements contradict each other, RemoteProtocolError for a malformed statement.
    """
    signature = sign(ours.encoded)
    payload = len(signature).to_bytes(_LENGTH_BYTES, "little") + signature + ours.encoded
    inbox = yield Round(STATEMENT, dict.fromkeys(peers, payload), frozenset(peers))
    found = {ours.party: (ours, signature)}
    for peer in peers:
        theirs, signature = _read(inbox[peer], peer, ours)
        check(peer, signature, theirs.encoded)
        found[peer] = (theirs, signature)
    compare(ours, {party: statement for party, (statement, _) in found.items()})
    return found


def _read(payload: bytes, peer: str, ours: Statement) -> tuple[Statement, bytes]:
    """Return a peer's statement on this run, of the same shape as ours. Raises RemoteProtocolError."""
    end = _LENGTH_BYTES + int.from_bytes(payload[:_LENGTH_BYTES], "little")
    fields = json_object(payload[end:]) or {}
    roster = ours.commitments.keys()
    try:
        theirs = Statement(peer, ours.job, ours.run, *(fields[key] for key in _OF_EACH))
        shaped = (
            _are_digests(theirs.commitments, roster)
            and _are_digests(theirs.sent, roster - {peer})
            and _are_digests(theirs.received, roster - {peer})
            and _is_digest(theirs.result)
            and _are_digests(theirs.tables, ours.tables)
            and theirs.encoded == payload[end:]
        )
    except (KeyError, TypeError):
        shaped = False
    if not shaped:
        raise RemoteProtocolError(peer, STATEMENT, "no statement about this run")
    return theirs, payload[_LENGTH_BYTES:end]


def _are_digests(said: Any, names: Any) -> bool:
    return isinstance(said, dict) and said.keys() == set(names) and all(map(_is_digest, said.values()))


def _is_digest(said: Any) -> bool:
    return isinstance(said, str) and _HEX.fullmatch(said) is not None


def compare(ours: Statement, all_of_them: Mapping[str, Statement]) -> None:
    """Raise PartyError for the first contradiction between two statements, with the two parties' names."""
    for party, theirs in all_of_them.items():
        if (theirs.result, theirs.tables) != (ours.result, ours.tables):
            raise PartyError("result-mismatch", f"{party} ended with another result than {ours.party}")
        for who, commitment in theirs.commitments.items():
            if commitment != ours.commitments[who]:
                what = f"{party} and {ours.party} were told of different commitments of {who}"
                raise PartyError("peer-protocol", what, party=party if who == ours.party else who)
    for sender, theirs in all_of_them.items():
        for recipient, digest in theirs.sent.items():
            if all_of_them[recipient].received[sender] != digest:
                what = (
                    f"{sender} and {recipient} signed different records of what {sender} sent to {recipient}"
                )
                raise PartyError("peer-protocol", what, party=recipient if sender == ours.party else sender)


# ---- in a report


def signature_fields(signed: Sequence[Signed]) -> dict[str, Any]:
    """Return agreeing statements in the form of reports: common content once; certificates and signatures."""
    first = signed[0].statement
    return {
        "run": first.run,
        "result": first.result,
        "tables": first.tables,
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
    """Raise PartyError unless a delivered report has the signed statements."""
    require_same_fields({SIGNATURES: signature_fields(signed)}, json_object(report) or {})


def read_signatures(fields: Any, job: bytes, roster: Sequence[str]) -> list[Signed]:
    """Read the parties' signed statements on a job from a report, without checking the signatures.

    Raises PartyError (verification-failed) for fields of another shape.
    """
    try:
        commitments, links, tables = fields["commitments"], fields["links"], fields["tables"]
        whole = _are_digests(commitments, roster)
        whole = whole and all(_are_digests(links[party], set(roster) - {party}) for party in roster)
        whole = whole and _are_digests(tables, tables) and _is_digest(fields["result"])
        if not whole or not isinstance(fields["run"], str):
            raise ValueError("another shape")
        signed = [_signed(party, fields, job, roster) for party in roster]
        if signature_fields(signed) != fields:
            raise ValueError("more than was signed")
        return signed
    except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise PartyError("verification-failed", "the signatures of the report are malformed") from error


def _signed(party: str, fields: Mapping[str, Any], job: bytes, roster: Sequence[str]) -> Signed:
    links, own = fields["links"], fields["parties"][party]
    received = {peer: links[peer][party] for peer in roster if peer != party}
    commitments, run, result = dict(fields["commitments"]), fields["run"], fields["result"]
    sent, tables = dict(links[party]), dict(fields["tables"])
    statement = Statement(party, job.hex(), run, commitments, sent, received, result, tables)
    decoded = (base64.b64decode(own[key], validate=True) for key in ("signature", "certificate"))
    return Signed(statement, *decoded)
