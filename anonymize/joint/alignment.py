"""Alignment of a vertical run: the common records of the parties, and agreement on the class ([T] 5.6)."""

from __future__ import annotations

import hashlib

import numpy as np

from anonymize.errors import DataError
from anonymize.joint.conjunction import agreement_circuit
from anonymize.joint.disclosure import RevealLedger
from anonymize.joint.engine import opened
from anonymize.joint.messages import decode_bit, encode_bit, receive_codes, send_codes
from anonymize.joint.roster import Roster
from anonymize.joint.sessions import CircuitSessions
from anonymize.table import Codes, Ints
from anonymize.tds import Observer
from crypto.intersection import intersect
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send

_AGREE, _CLASSES = "vertical/agree", "vertical/classes"
_DIGEST_WORDS = 4


def align(
    roster: Roster, ids: list[bytes], job_hash: bytes, rng: Rng, ledger: RevealLedger, observer: Observer
) -> Rounds[Ints]:
    """Return the positions in ``ids`` of the records that all parties have, in a common order.

    As :func:`crypto.intersection.intersect`, with the leader as collector. ``observer`` receives the set sizes before
    anything made from ids is sent, and later the number of common records. If the observer raises, the run ends.
    Raises DataError without common records.
    """
    ledger.reveal("set_sizes", None, "all", (len(roster.parties),))
    positions = yield from intersect(
        roster.me, roster.parties, roster.leader, ids, job_hash, rng, observer.announced
    )
    ledger.reveal("common_records", positions, "all")
    if not len(positions):
        raise DataError(
            "no-common-records",
            "no record is common to all parties",
            remedy="compare the id columns at all parties: the same ids in the same spelling",
        )
    observer.aligned(len(positions))
    return positions


def check_class(
    roster: Roster, classes: Codes, job_hash: bytes, sessions: CircuitSessions, ledger: RevealLedger
) -> Rounds[None]:
    """Check that every party has the same class value for every common record.

    Functionality:  equality of all vectors of class values; one bit to all.
    Input, each:    ``classes``: of the common records, in the common order. ``sessions``: the leader garbles with
                    everybody.
    Output, each:   nothing; DataError for different vectors.
    Leakage:        the bit; to the leader, the parties with a vector different from its own.
    Rounds:         3 ("two_party/..."), 1 ("vertical/agree").
    Bytes:          about 8 KiB by the leader and 6 KiB to it for every other party, for any number of records; 1 by
                    the leader to each.
    Assumes:        semi-honest parties; SHA-256 collision resistant.
    Source:         digests compared inside a garbled circuit: a digest of a few class values could be guessed.

    Raises DataError ("class-mismatch") at every party, naming neither party nor record; RemoteProtocolError for a
    malformed message.
    """
    digest = hashlib.sha256(b"jointcut class" + job_hash + classes.astype("<u4").tobytes()).digest()
    words = np.frombuffer(digest, dtype="<u8").astype(np.uint64).reshape(1, _DIGEST_WORDS)
    circuit = agreement_circuit(_DIGEST_WORDS)
    for _ in roster.others:
        ledger.reveal("class_agreement", None, "leader", ())
    if not roster.leads:
        engine = sessions.evaluating[roster.leader].engine
        yield from engine.run(circuit, 1, {engine.role.value: words})
        payload = yield from receive(_AGREE, roster.leader)
        same = decode_bit(payload, roster.leader, _AGREE)
    else:
        same = True
        for party in roster.others:
            engine = sessions.garbling[party].engine
            outputs = yield from engine.run(circuit, 1, {engine.role.value: words})
            same &= opened(outputs, "same") == 1
        yield from send(_AGREE, dict.fromkeys(roster.others, encode_bit(same)))
    if not ledger.reveal("class_agreement", same, "all"):
        raise DataError(
            "class-mismatch",
            "the parties hold different class values for at least one common record; nobody learns the records, or "
            "how many",
            remedy="in LKC jobs let a party give the class: `shared_by: NAME` at the class column of the job, and "
            "`share_class: true` in the party's policy; or find the records outside the job and correct them "
            "(docs/errors.md, class-mismatch)",
        )


def share_class(
    roster: Roster, giver: str, classes: Codes | None, shape: tuple[int, int], ledger: RevealLedger
) -> Rounds[Ints]:
    """Send the class of every common record from its holder to the other parties: a stated disclosure.

    shape:  number of records and of class values.

    Rounds: 1 ("vertical/classes") per CODES_PIECE records. Bytes: ceil(log2(class values)) bits a record to each
    other party. Raises RemoteProtocolError for a message of wrong length or a class out of range.
    """
    n_records, n_classes = shape
    if roster.me != giver:
        known = yield from receive_codes(_CLASSES, giver, n_records, n_classes)
    else:
        assert classes is not None
        known = classes.astype(np.int64)
        yield from send_codes(_CLASSES, roster.others, known, n_classes)
    return ledger.reveal("class_values", known, "all")
