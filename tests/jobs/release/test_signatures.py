"""Statements: equal ones pass; whatever two of them say differently names a party; a report says them whole."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from jobs.errors import IdentityError, PartyError
from jobs.release.signatures import (
    STATEMENT,
    Signed,
    Statement,
    attest,
    check_signatures_told,
    read_signatures,
    signature_fields,
)

ROSTER = ("a", "b", "c")
JOB, RUN = b"j" * 32, b"r" * 16


def digest(*of: str) -> str:
    return hashlib.sha256("/".join(of).encode()).hexdigest()


def others(me: str) -> list[str]:
    return [name for name in ROSTER if name != me]


def statement(me: str) -> Statement:
    return Statement(
        me,
        JOB.hex(),
        RUN.hex(),
        {name: digest("table", name) for name in ROSTER},
        {peer: digest(me, peer) for peer in others(me)},
        {peer: digest(peer, me) for peer in others(me)},
        digest("result"),
        {"anonymized.csv": digest("table")},
    )


def ideal_sign(me: str) -> Callable[[bytes], bytes]:
    return lambda content: hmac.digest(me.encode(), content, "sha256")


def ideal_check(party: str, signature: bytes, content: bytes) -> None:
    if not hmac.compare_digest(signature, ideal_sign(party)(content)):
        raise IdentityError("identity-mismatch", f"not signed by {party}", party=party)


Said = dict[str, tuple[Statement, bytes]]


def attested(statements: Mapping[str, Statement], **how: Any) -> tuple[dict[str, Said], Transcript]:
    return run_local(
        {me: attest(each, others(me), ideal_sign(me), ideal_check) for me, each in statements.items()}, **how
    )


def all_of_them(**changed: Statement) -> dict[str, Statement]:
    return {me: changed.get(me, statement(me)) for me in ROSTER}


def test_everybody_has_every_statement_and_its_signature() -> None:
    found, transcript = attested(all_of_them())
    expected = {me: (statement(me), ideal_sign(me)(statement(me).encoded)) for me in ROSTER}
    assert all(said == expected for said in found.values())
    assert transcript.rounds == 1
    assert transcript.bytes_sent("a") == 2 * (2 + 32 + len(statement("a").encoded))
    assert 700 < len(statement("a").encoded) < 900


@pytest.mark.parametrize(
    ("lie", "error_id", "at_a", "words"),
    [
        (
            replace(statement("b"), result=digest("other")),
            "result-mismatch",
            None,
            "b ended with another result than a",
        ),
        (
            replace(statement("b"), commitments=statement("b").commitments | {"c": digest("x")}),
            "peer-protocol",
            "c",
            "b and a were told of different commitments of c",
        ),
        (
            replace(statement("b"), commitments=statement("b").commitments | {"b": digest("x")}),
            "peer-protocol",
            "b",
            "b and a were told of different commitments of b",
        ),
        (
            replace(statement("b"), commitments=statement("b").commitments | {"a": digest("x")}),
            "peer-protocol",
            "b",
            "b and a were told of different commitments of a",
        ),
        (
            replace(statement("b"), sent=statement("b").sent | {"a": digest("x")}),
            "peer-protocol",
            "b",
            "b and a signed different records of what b sent to a",
        ),
        (
            replace(statement("b"), received=statement("b").received | {"a": digest("x")}),
            "peer-protocol",
            "b",
            "a and b signed different records of what a sent to b",
        ),
        (
            replace(statement("b"), received=statement("b").received | {"c": digest("x")}),
            "peer-protocol",
            "c",
            "c and b signed different records of what c sent to b",
        ),
    ],
)
def test_what_two_statements_say_differently_is_named(
    lie: Statement, error_id: str, at_a: str | None, words: str
) -> None:
    with pytest.raises(PartyError) as caught:
        attested(all_of_them(b=lie))
    problem = caught.value.problem
    assert (problem.error_id, problem.party, problem.message) == (error_id, at_a, words)


def bent(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Another statement, signed by b."""

    def harm(payload: bytes) -> bytes:
        fields = json.loads(payload[34:])
        change(fields)
        content = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        return (32).to_bytes(2, "little") + ideal_sign("b")(content) + content

    return harm


@pytest.mark.parametrize(
    "harm",
    [
        lambda p: b"",
        lambda p: p[:-1],
        lambda p: p + b" ",
        lambda p: b"\xff" * 100,
        lambda p: p[:34] + b"[" * 5000,
        bent(lambda f: f.update(job="0" * 64)),
        bent(lambda f: f.update(run="0" * 32)),
        bent(lambda f: f.update(party="c")),
        bent(lambda f: f.update(format="jointcut/run/1")),
        bent(lambda f: f["tables"].clear()),
        bent(lambda f: f["tables"].update(more="0" * 64)),
        bent(lambda f: f.update(more=1)),
        bent(lambda f: f.pop("sent")),
        bent(lambda f: f.update(result=3)),
        bent(lambda f: f.update(sent=[])),
        bent(lambda f: f["sent"].pop("a")),
        bent(lambda f: f["sent"].update(d="0" * 64)),
        bent(lambda f: f["commitments"].update(c="0" * 63)),
        bent(lambda f: f["received"].update(c=None)),
    ],
)
def test_what_is_no_statement_about_the_run_is_its_senders_fault(harm: Callable[[bytes], bytes]) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if (message.sender, message.recipient) == ("b", "a") else message.payload

    with pytest.raises(RemoteProtocolError) as caught:
        attested(all_of_them(), tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("b", STATEMENT)


@pytest.mark.parametrize("place", [2, 20, 33])
def test_a_signature_that_is_not_the_senders_is_refused(place: int) -> None:
    def tamper(message: Message) -> bytes:
        flipped = bytearray(message.payload)
        flipped[place] ^= 1
        return bytes(flipped) if message.sender == "b" else message.payload

    with pytest.raises(IdentityError) as caught:
        attested(all_of_them(), tamper=tamper)
    assert caught.value.problem.party == "b"


# ---- in a report


def signed() -> list[Signed]:
    return [
        Signed(statement(me), ideal_sign(me)(statement(me).encoded), f"certificate of {me}".encode())
        for me in ROSTER
    ]


def test_a_report_gives_back_what_was_signed() -> None:
    fields = json.loads(json.dumps(signature_fields(signed())))
    assert read_signatures(fields, JOB, ROSTER) == signed()


def test_every_part_of_it_is_part_of_what_was_signed() -> None:
    """After any change some statement is not the one that was signed."""
    fields = signature_fields(signed())
    for path in [
        ("run",),
        ("result",),
        ("tables", "anonymized.csv"),
        *(("commitments", p) for p in ROSTER),
        *_ways(),
    ]:
        changed = json.loads(json.dumps(fields))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "0" * len(place[path[-1]])
        read = read_signatures(changed, JOB, ROSTER)
        assert [each.statement.encoded for each in read] != [each.statement.encoded for each in signed()]
    assert read_signatures(fields, b"k" * 32, ROSTER) != signed()


def _ways() -> list[tuple[str, ...]]:
    return [("links", me, peer) for me in ROSTER for peer in others(me)]


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.pop("run"),
        lambda f: f.update(run=1),
        lambda f: f.update(result="0"),
        lambda f: f.update(commitments=None),
        lambda f: f.pop("tables"),
        lambda f: f.update(tables={"anonymized.csv": 3}),
        lambda f: f.update(tables=[]),
        lambda f: f["commitments"].pop("a"),
        lambda f: f["links"].pop("a"),
        lambda f: f["links"].update(a="0"),
        lambda f: f["links"]["a"].update(a="0" * 64),
        lambda f: f["parties"].pop("a"),
        lambda f: f["parties"].update(d=f["parties"]["a"]),
        lambda f: f["parties"].update(a=[]),
        lambda f: f["parties"]["a"].update(signature="no base64!"),
        lambda f: f["parties"]["a"].update(certificate=3),
        lambda f: f.update(parties=3),
        lambda f: f.update(note="checked by the regulator"),
        lambda f: f["parties"]["a"].update(note="checked by the regulator"),
    ],
)
def test_malformed_signatures_of_a_report(change: Callable[[Any], object]) -> None:
    fields = json.loads(json.dumps(signature_fields(signed())))
    change(fields)
    with pytest.raises(PartyError) as caught:
        read_signatures(fields, JOB, ROSTER)
    assert caught.value.problem.error_id == "verification-failed"


@pytest.mark.parametrize("fields", [None, [], 3, "", {}])
def test_what_is_no_account_of_signatures(fields: Any) -> None:
    with pytest.raises(PartyError):
        read_signatures(fields, JOB, ROSTER)


@pytest.mark.parametrize("report", [b"{}", b"[]", b'{"signatures": {}}', b"\xff"])
def test_a_delivered_report_must_say_what_was_signed(report: bytes) -> None:
    check_signatures_told(json.dumps({"signatures": signature_fields(signed())}).encode(), signed())
    with pytest.raises(PartyError) as caught:
        check_signatures_told(report, signed())
    assert caught.value.problem.error_id == "result-mismatch"
