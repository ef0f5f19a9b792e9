"""Ends of other parties' audits: what each told us last, to be told it again with the next run.

A party that is told of an end which its chain does not have knows that somebody changed it. What we were told stands
in our own chain (lines `heads`); the file here is a note of the last of each: whoever deletes it loses that alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from crypto.encoding import expect_length
from jobs.errors import json_object
from jobs.folder import as_json, place_for_owner
from party.owner.audit import FOLDER
from party.owner.chain import Head

FILE = "heads.json"
_BYTES = 32
NONE = bytes(_BYTES)


class LastHeads:
    """The last end that each party told us. Reading and writing never fail: the note is not needed."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FOLDER / FILE

    def all(self) -> dict[str, bytes]:
        """By party, 32 bytes."""
        found: dict[str, bytes] = {}
        with suppress(OSError, ValueError):
            for party, told in (json_object(self._path.read_bytes()) or {}).items():
                if isinstance(told, str) and len(digest := bytes.fromhex(told)) == _BYTES:
                    found[party] = digest
        return found

    def keep(self, told: Mapping[str, bytes]) -> None:
        """Note what parties told us."""
        with suppress(OSError):
            place_for_owner(self._path, as_json(in_hex({**self.all(), **told})))


def telling(ours: Head | None, held: bytes) -> bytes:
    """What we tell a party: the end of our chain, and the last one of its own that we hold; zeros for none."""
    return (bytes.fromhex(ours.digest) if ours else NONE) + held


def told_in(payload: bytes, party: str, step: str) -> tuple[bytes, bytes]:
    """The inverse: the end of the party's chain, and the one of ours that it holds. Raises RemoteProtocolError."""
    expect_length(payload, 2 * _BYTES, party, step)
    return payload[:_BYTES], payload[_BYTES:]


def in_hex(digests: Mapping[str, bytes]) -> dict[str, str]:
    """Those that are some."""
    return {party: digest.hex() for party, digest in digests.items() if digest != NONE}
