"""Beginnings of an audit: kept once, accepted by the owner alone, and never a false alarm after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from crypto.rng import SystemRng
from jobs.errors import PartyError
from party.owner.approvals import APPROVALS
from party.owner.audit import Audit
from party.owner.beginning import Beginnings
from tests.support.killed import killed_at

ONE, OTHER = "1" * 64, "2" * 64


def test_the_first_beginning_counts_until_another_is_accepted(tmp_path: Path) -> None:
    beginnings = Beginnings(tmp_path)
    assert beginnings.last() == ""
    assert not (tmp_path / APPROVALS).exists()
    assert [beginnings.keep(each) for each in (ONE, ONE, OTHER)] == [ONE, ONE, ONE]
    assert beginnings.last() == ONE
    beginnings.accept(OTHER)
    assert [beginnings.last(), beginnings.keep(ONE)] == [OTHER, OTHER]


def test_a_beginning_stays_whatever_follows(tmp_path: Path) -> None:
    audit = Audit(tmp_path, SystemRng())
    assert audit.beginning() == ""
    audit.path.write_bytes(b'{"half a li')
    assert audit.beginning() == ""
    audit.note("serve", {})  # ends the half line
    first = audit.beginning()
    assert first
    for _ in range(3):
        audit.note("serve", {})
    assert audit.beginning() == first
    audit.path.unlink()
    audit.note("serve", {})
    assert audit.beginning() not in ("", first)


def test_a_store_that_is_killed_while_it_keeps_a_beginning(tmp_path: Path) -> None:
    """The beginning is kept, or none is: the next start keeps it."""
    for statement in range(20):
        folder = tmp_path / str(statement)
        folder.mkdir()
        done = killed_at(statement, lambda folder=folder: Beginnings(folder).keep(ONE))
        assert Beginnings(folder).last() == (ONE if done else "")
        assert Beginnings(folder).keep(ONE) == ONE
        if done:
            break
    else:
        pytest.fail("no process came to its end")


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / APPROVALS).write_bytes(b"no database at all" * 100)
    with pytest.raises(PartyError) as caught:
        Beginnings(tmp_path).last()
    assert caught.value.problem.error_id == "io-failed"
