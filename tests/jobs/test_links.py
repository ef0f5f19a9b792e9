"""Who talks with whom: what a run needs of the links between parties, and how the others' words are passed on."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from crypto.encoding import expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from crypto.mixing import OpeningKey
from crypto.rounds import Round, Rounds
from jobs.account import Unaccounted
from jobs.charge import LkcAccount
from jobs.data.sources import Csv
from jobs.errors import IdentityError, PartyError
from jobs.ledger import PrivacyLedger
from jobs.links import COMPARED, PASSED, between_all, hubs, pass_on, speaks_with_all, tell_all, with_pair
from jobs.modes import MODES, protocol_of
from jobs.signatures import (
    STATEMENT,
    Signed,
    Statement,
    _own_word,
    attest,
    compare,
    read_signatures,
    signature_fields,
)
from jobs.task import Account, Besides, Task
from tests.support import jobs
from tests.support.dp_jobs import dp_joint
from tests.support.joint import sample_rows
from tests.support.rng import SeededRng
from tests.support.samples import COLUMNS, columns, joint_job
from tests.support.synthetic_jobs import synthetic_joint
from tests.support.wards import dealt_records, joint_wards_job, movements

ROSTER = tuple("abcde")
PLACES: dict[str, Any] = {
    "parties": {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate(ROSTER)},
    "leader": "b",
    "deputy": "d",
}
PAIRED = {frozenset((each, of)) for of in "bd" for each in ROSTER if each != of}
SEALED = jobs.task_of(joint_job(disclosure="sealed", **PLACES))
LINKS = SEALED.links
PLAIN = columns(patient={"role": "plain"})
RUNS: dict[str, dict[str, Any]] = {
    "infogain": joint_job(disclosure="sealed", score="infogain", **PLACES),
    "added": joint_job(disclosure="sealed", score="added", **PLACES),
    "general": joint_job(disclosure="sealed", goal="general", **PLACES),
    "child": joint_job(
        disclosure="sealed", columns=columns(job={**COLUMNS["job"], "refine": "child"}), **PLACES
    ),
    "rows": joint_job(disclosure="sealed", columns=PLAIN, **PLACES),
    "rows to the coordinator": joint_job(disclosure="sealed", columns=PLAIN, deliver="coordinator", **PLACES),
    "strict": joint_job(disclosure="strict", **PLACES),
    "kd": joint_job(disclosure="sealed", method="kd", goal="general", **PLACES),
    "sequences": joint_wards_job(**PLACES),
    "dp": dp_joint("horizontal", **PLACES),
    "synthetic": synthetic_joint("horizontal", **PLACES),
}


# ---- which links there are


def test_links_of_a_pair_are_those_of_the_two_with_all() -> None:
    assert LINKS == {
        "a": ("b", "d"),
        "b": tuple("acde"),
        "c": ("b", "d"),
        "d": tuple("abce"),
        "e": ("b", "d"),
    }
    assert sum(map(len, LINKS.values())) == 2 * (2 * (len(ROSTER) - 2) + 1)
    assert hubs(LINKS) == ("b", "d")
    assert [party for party in ROSTER if speaks_with_all(LINKS, party)] == ["b", "d"]


@pytest.mark.parametrize("n", [2, 3])
def test_of_three_all_have_links_with_all_and_nobody_passes_on(n: int) -> None:
    parties = {name: PLACES["parties"][name] for name in ROSTER[:n]}
    job = jobs.task_of(joint_job(disclosure="sealed", parties=parties, leader="b", deputy="a")).job
    assert with_pair(job) == between_all(job)
    assert hubs(with_pair(job)) == ()


@pytest.mark.parametrize("links", [{"a": "b", "b": "ac", "c": "b"}, {"a": "", "b": ""}])
def test_links_that_leave_nobody_or_one_to_pass_on_are_none(links: Mapping[str, str]) -> None:
    with pytest.raises(LocalProtocolError):
        hubs(links)


def test_only_horizontal_modes_of_a_compute_pair_have_fewer_links() -> None:
    few = {mode.name for mode in MODES if mode.links is with_pair}
    assert few == {jobs.task_of(fields).mode.name for fields in RUNS.values()}
    assert all(mode.paired and mode.partition == "horizontal" for mode in MODES if mode.name in few)


@pytest.mark.parametrize("name", list(RUNS))
def test_a_run_needs_no_other_links_than_its_mode_says(tmp_path: Path, name: str) -> None:
    """The protocol with its charge; commitments and statements are below."""
    task = jobs.task_of(RUNS[name])
    if name == "sequences":
        paths = dealt_records(tmp_path, ROSTER, movements(60))
    else:
        rows = sample_rows(300 if name == "synthetic" else 100)
        paths = {
            me: jobs.write_csv(tmp_path / f"{me}.csv", rows[i::5], COLUMNS) for i, me in enumerate(ROSTER)
        }
    key = OpeningKey(SeededRng("key")).public if task.job.deliver == "coordinator" else None
    results, transcript = run_local(
        {
            me: protocol_of(
                task,
                me,
                task.partition.load(task, Csv(path), me),
                SeededRng(me),
                Observer(),
                account(task, tmp_path, me),
                Besides(Csv(path), key),
            )
            for me, path in paths.items()
        }
    )
    assert len({result.encoded for result in results.values()}) == 1
    assert ways(transcript) == PAIRED
    assert len(PAIRED) == 2 * (len(ROSTER) - 2) + 1


def account(task: Task, folder: Path, me: str) -> Account:
    if task.model.name != "lkc":
        return Unaccounted()
    return LkcAccount(PrivacyLedger(folder / me / "privacy.sqlite", me), task, bytes(16), None)


def ways(transcript: Transcript) -> set[frozenset[str]]:
    return {frozenset((message.sender, message.recipient)) for message in transcript.messages}


# ---- what is passed on


def told(words: Mapping[str, bytes], **how: Any) -> tuple[dict[str, dict[str, bytes]], Transcript]:
    """Everybody tells all others 16 bytes."""
    return run_local({me: tell_all(me, LINKS, "x", words[me]) for me in ROSTER}, **how)


WORDS = {me: me.encode() * 16 for me in ROSTER}


def test_everybody_learns_everybodys_word_over_the_links_there_are() -> None:
    found, transcript = told(WORDS)
    assert all(list(each.items()) == list(WORDS.items()) for each in found.values())
    assert ways(transcript) == PAIRED
    assert transcript.rounds == 3
    assert transcript.bytes_sent("a") == 2 * 16
    assert transcript.bytes_sent("b") == 4 * 16 + 3 * 32 + 3 * (3 * (16 + 4))
    assert transcript.bytes_sent("d") == 4 * 16 + 3 * 32 + 3 * 32


def test_with_links_between_all_it_is_one_round() -> None:
    links = between_all(SEALED.job)
    found, transcript = run_local({me: tell_all(me, links, "x", WORDS[me]) for me in ROSTER})
    assert all(each == WORDS for each in found.values())
    assert transcript.rounds == 1
    assert transcript.bytes_sent("a") == 4 * 16


Change = Callable[[bytes], bytes]


def bent(step: str, sender: str, change: Change, to: str | None = None) -> Callable[[Message], bytes | None]:
    def tamper(message: Message) -> bytes:
        if message.step == step and message.sender == sender and to in (None, message.recipient):
            return change(message.payload)
        return message.payload

    return tamper


def last(payload: bytes) -> bytes:
    return payload[:-1] + bytes([payload[-1] ^ 1])


BOTH = "b or d"


@pytest.mark.parametrize(
    ("step", "sender", "to", "change", "culprit"),
    [
        ("x", "a", None, lambda p: p[:-1], "a"),
        ("x", "a", None, lambda p: p + b"0", "a"),
        (f"x/{COMPARED}", "d", None, last, "e or d"),
        (f"x/{COMPARED}", "d", None, lambda p: p[:-1], "d"),
        (f"x/{COMPARED}", "d", None, lambda p: b"", "d"),
        (f"x/{PASSED}", "b", None, last, BOTH),
        (f"x/{PASSED}", "b", "a", last, BOTH),
        (f"x/{PASSED}", "b", "a", lambda p: p[20:] + p[:20], BOTH),
        (f"x/{PASSED}", "b", "a", lambda p: b"", BOTH),
        (f"x/{PASSED}", "d", "a", last, BOTH),
        (f"x/{PASSED}", "d", "a", lambda p: b"", BOTH),
    ],
)
def test_whoever_says_what_is_not_so_is_named(
    step: str, sender: str, to: str | None, change: Change, culprit: str
) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        told(WORDS, tamper=bent(step, sender, change, to))
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


@pytest.mark.parametrize("to", ["b", "d"])
def test_whoever_tells_the_hubs_different_things_is_named_before_anything_is_passed_on(to: str) -> None:
    """By b, who compares first here: it knows that a or d is not honest, not which."""
    passed = []

    def tamper(message: Message) -> bytes | None:
        passed.extend([message] if message.step == f"x/{PASSED}" else [])
        return bent("x", "a", last, to)(message)

    with pytest.raises(RemoteProtocolError) as caught:
        told(WORDS, tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == ("a or d", f"x/{COMPARED}")
    assert passed == []


def a_s_part(first: bytes, second: bytes) -> Rounds[dict[str, bytes]]:
    """Party a, whom the hubs b and d tell these."""
    rounds = pass_on("a", LINKS, "x", WORDS, read_sixteen)
    turn = next(rounds)
    assert turn == Round(f"x/{PASSED}", {}, frozenset("bd"), hops=3)
    return rounds.send({"b": first, "d": second})  # type: ignore[return-value]


def read_sixteen(party: str, said: bytes) -> bytes:
    expect_length(said, 16, party, "x")
    return said


def framed(*words: bytes) -> bytes:
    return b"".join(len(word).to_bytes(4, "little") + word for word in words)


GOOD = [WORDS[party] for party in "ace"]


@pytest.mark.parametrize(
    "whole",
    [
        framed(*GOOD[1:], GOOD[0]),
        framed(*GOOD[:2]),
        framed(*GOOD, GOOD[0]),
        framed(*GOOD)[:-1],
        framed(*GOOD) + b"0",
        framed(*GOOD[:2], GOOD[2][:-1]),
        framed(GOOD[0][:-1], *GOOD[1:]),
        framed(*GOOD[:2]) + b"\xff\xff\xff\xff" + GOOD[2],
        b"",
    ],
    ids=["swapped", "one less", "one more", "short", "long", "not valid", "not ours", "endless", "nothing"],
)
def test_what_both_hubs_say_alike_is_still_looked_at(whole: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        a_s_part(whole, hashlib.sha256(whole).digest())
    assert (caught.value.culprit, caught.value.step) == (BOTH, f"x/{PASSED}")


def test_both_hubs_together_can_say_what_others_did_not() -> None:
    """As they can open what is shared between them."""
    whole = framed(GOOD[0], b"0" * 16, GOOD[2])
    with pytest.raises(StopIteration) as ended:
        a_s_part(whole, hashlib.sha256(whole).digest())
    assert ended.value.value == {"c": b"0" * 16, "e": GOOD[2]}


# ---- what is signed


def digest(*of: str) -> str:
    return hashlib.sha256("/".join(of).encode()).hexdigest()


def statement(me: str) -> Statement:
    commitments = {name: digest("table", name) for name in ROSTER}
    sent = {peer: digest(me, peer) for peer in LINKS[me]}
    received = {peer: digest(peer, me) for peer in LINKS[me]}
    return Statement(me, "00" * 32, "00" * 16, commitments, sent, received, digest("result"))


def ideal_sign(me: str) -> Callable[[bytes], bytes]:
    return lambda content: hmac.digest(me.encode(), content, "sha256")


def ideal_check(party: str, signature: bytes, content: bytes) -> None:
    if not hmac.compare_digest(signature, ideal_sign(party)(content)):
        raise IdentityError("identity-mismatch", f"not signed by {party}", party=party)


def attested(lie: Statement | None = None, **how: Any) -> tuple[dict[str, Any], Transcript]:
    statements = {me: statement(me) for me in ROSTER} | ({lie.party: lie} if lie else {})
    return run_local(
        {me: attest(each, LINKS, ideal_sign(me), ideal_check) for me, each in statements.items()}, **how
    )


def test_everybody_has_every_statement_and_its_signature() -> None:
    found, transcript = attested()
    expected = {me: (statement(me), ideal_sign(me)(statement(me).encoded)) for me in ROSTER}
    assert all(said == expected for said in found.values())
    assert ways(transcript) == PAIRED
    report = signature_fields([Signed(*expected[me], b"certificate") for me in ROSTER])
    read = read_signatures(json.loads(json.dumps(report)), bytes(32), ROSTER)
    assert [each.statement for each in read] == [statement(me) for me in ROSTER]


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (replace(statement("e"), result=digest("other")), "e ended with another result than b"),
        (
            replace(statement("e"), commitments=statement("e").commitments | {"c": digest("other")}),
            "e and b were told of different commitments of c",
        ),
        (
            replace(statement("e"), sent=statement("e").sent | {"b": digest("other")}),
            "e and b signed different records of what e sent to b",
        ),
    ],
)
def test_hubs_pass_on_no_statement_that_contradicts_another(lie: Statement, words: str) -> None:
    passed = []

    def tamper(message: Message) -> bytes:
        passed.extend([message] if message.step.startswith(f"{STATEMENT}/") else [])
        return message.payload

    with pytest.raises(PartyError) as caught:
        attested(lie, tamper=tamper)
    assert caught.value.problem.message == words
    assert passed == []


def test_records_of_links_between_others_are_compared_by_all_who_have_both() -> None:
    """c signed another record of its link with d than d did. Had d kept quiet: found by a, who has no link with c."""
    lie = replace(statement("c"), received=statement("c").received | {"d": digest("other")})
    everybody = {me: statement(me) for me in ROSTER} | {"c": lie}
    with pytest.raises(PartyError, match="d and c signed different records of what d sent to c"):
        compare(statement("a"), everybody)
    del everybody["c"]
    compare(statement("a"), everybody)


@pytest.mark.parametrize(
    "said",
    [
        lambda word: b"0" * 32 + word[32:],
        lambda word: word[:-1] + bytes([word[-1] ^ 1]),
        lambda word: word[:32],
        lambda word: b"",
    ],
    ids=["another signature", "another digest", "no digests", "nothing"],
)
def test_what_a_party_did_not_sign_is_not_taken_of_both_hubs_either(said: Change) -> None:
    """Together they can keep a statement back; they cannot make one."""
    words = {me: _own_word(statement(me), ideal_sign(me)(statement(me).encoded), LINKS) for me in "ace"}
    whole = framed(words["a"], said(words["c"]), words["e"])
    of_hubs = {
        hub: (32).to_bytes(2, "little") + ideal_sign(hub)(statement(hub).encoded) + statement(hub).encoded
        for hub in "bd"
    }
    rounds = attest(statement("a"), LINKS, ideal_sign("a"), ideal_check)
    next(rounds)
    rounds.send(of_hubs)
    with pytest.raises(RemoteProtocolError) as caught:
        rounds.send({"b": whole, "d": hashlib.sha256(whole).digest()})
    assert (caught.value.culprit, caught.value.step) == (BOTH, f"{STATEMENT}/{PASSED}")
