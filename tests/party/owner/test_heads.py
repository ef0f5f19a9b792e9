"""Ends of audits that others told us: what is said to them, and the note of the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from crypto.errors import RemoteProtocolError
from party.owner.audit import Audit
from party.owner.chain import Head
from party.owner.heads import FILE, NONE, LastHeads, in_hex, telling, told_in


def test_what_is_told_is_taken() -> None:
    ours, held = Head(7, "ab" * 32), b"h" * 32
    assert told_in(telling(ours, held), "b", "commit/head") == (b"\xab" * 32, held)
    assert told_in(telling(None, NONE), "b", "commit/head") == (NONE, NONE)
    assert in_hex({"a": NONE, "b": held}) == {"b": held.hex()}


@pytest.mark.parametrize("length", [0, 63, 65])
def test_another_length_is_the_peers_fault(length: int) -> None:
    with pytest.raises(RemoteProtocolError):
        told_in(bytes(length), "b", "commit/head")


def test_the_last_of_each_party_is_noted(tmp_path: Path) -> None:
    audit, last = Audit(tmp_path), LastHeads(tmp_path)
    assert last.all() == {}
    last.keep({"b": b"1" * 32})  # no folder yet: the note is not needed
    audit.write("start")
    last.keep({"b": b"1" * 32, "c": b"2" * 32})
    LastHeads(tmp_path).keep({"b": b"3" * 32})
    assert last.all() == {"b": b"3" * 32, "c": b"2" * 32}
    audit.write("end")


@pytest.mark.parametrize("text", ["", "[]", '{"b": 7}', '{"b": "zz"}', '{"b": "00"}', "\0"])
def test_a_note_that_is_damaged_says_nothing(tmp_path: Path, text: str) -> None:
    Audit(tmp_path).write("start")
    path = tmp_path / "audit" / FILE
    path.write_text(text)
    assert LastHeads(tmp_path).all() == {}
