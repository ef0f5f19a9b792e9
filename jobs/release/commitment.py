"""Commitment of a party to its table, before the first share. Later the party can open it to an auditor."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crypto.encoding import expect_length
from crypto.rng import Rng
from crypto.rounds import Round, Rounds
from jobs.data.tables import Table
from jobs.errors import PartyError, json_object
from jobs.release.folder import write_for_owner

COMMITMENT = "run/commitment"
_BYTES = 32
OPENINGS = "openings"
"""Folder in a party's state folder, with a file for each run."""


@dataclass(frozen=True)
class Opening:
    """Opening of a commitment. salt, commitment: 32 bytes."""

    salt: bytes = field(repr=False)
    commitment: bytes

    def fits(self, table: Table) -> bool:
        """Return True if the commitment is to the given table."""
        return hmac.compare_digest(_commitment(self.salt, table), self.commitment)


def opening_of(table: Table, rng: Rng) -> Opening:
    """Commit to the content of a table after pass 1, in any order of rows. The salt hides the content."""
    salt = rng.bytes(_BYTES)
    return Opening(salt, _commitment(salt, table))


def _commitment(salt: bytes, table: Table) -> bytes:
    return hashlib.sha256(salt + table.canonical()).digest()


def commit(me: str, peers: Sequence[str], opening: Opening, rng: Rng) -> Rounds[Mapping[str, bytes]]:
    """Send our commitment to all peers; receive the peers' commitments.

    Functionality:  (c_1, ..., c_n) to every party.
    Input, each:    ``opening``, private; only its commitment is sent.
    Output, each:   every party's commitment, 32 bytes, by name.
    Leakage:        nothing of a table: SHA-256 of 32 random bytes and the table hides the table.
    Rounds:         1 ("run/commitment").
    Bytes:          64 to each peer: the commitment, and 32 random bytes that nobody publishes. Because of the
    random
                    bytes, digests of a link's traffic (:mod:`jobs.release.signatures`) tell an outsider nothing.
    Assumes:        SHA-256 is collision-resistant, and hides the input behind a random salt.
    Source:         folklore.

    Raises RemoteProtocolError for a message of another length.
    """
    outgoing = {peer: opening.commitment + rng.bytes(_BYTES) for peer in peers}
    inbox = yield Round(COMMITMENT, outgoing, frozenset(peers))
    for peer in peers:
        expect_length(inbox[peer], 2 * _BYTES, peer, COMMITMENT)
    return {me: opening.commitment, **{peer: inbox[peer][:_BYTES] for peer in peers}}


def keep_opening(folder: Path, job: str, run: bytes, opening: Opening) -> None:
    """Write an opening for its owner's eyes only, before anything is sent.

    Raises PartyError if an opening of the run exists: nothing is overwritten.
    """
    folder.mkdir(exist_ok=True)
    said = {"job": job, "run": run.hex(), "salt": opening.salt.hex(), "commitment": opening.commitment.hex()}
    try:
        write_for_owner(folder / f"{run.hex()}.json", json.dumps(said, indent=1) + "\n")
    except FileExistsError as error:
        message = "the coordinator gave the run the number of an earlier one"
        raise PartyError("peer-protocol", message) from error


def kept_opening(folder: Path, run: str) -> Opening:
    """Return the opening of a run, by its number in hexadecimal. Raises PartyError if missing or malformed."""
    try:
        said = json_object((folder / f"{run}.json").read_bytes()) or {}
    except FileNotFoundError as error:
        raise PartyError("file-missing", f"{folder} has no opening of run {run}") from error
    try:
        return Opening(bytes.fromhex(said["salt"]), bytes.fromhex(said["commitment"]))
    except (KeyError, TypeError, ValueError) as error:
        raise PartyError("verification-failed", f"the opening of run {run} is malformed") from error
