"""Commitments to tables: everybody learns everybody's, they fit one table only, and an opening is its owner's."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crypto.errors import RemoteProtocolError
from crypto.local import Message, Transcript, run_local
from jobs.data.tables import Loaded
from jobs.errors import PartyError
from jobs.release.commitment import COMMITMENT, Opening, commit, keep_opening, kept_opening, opening_of
from tests.support import jobs
from tests.support.joint import sample_tables
from tests.support.rng import SeededRng
from tests.support.samples import PARTIES, joint_job
from tests.support.tamper import first_harmed

A, B, C = PARTIES
RUN = b"r" * 16


@pytest.fixture(scope="module")
def tables() -> Mapping[str, Loaded]:
    return sample_tables(jobs.bundle_of(joint_job()))


def openings(tables: Mapping[str, Loaded], seed: object = 0) -> dict[str, Opening]:
    return {me: opening_of(table, SeededRng((me, seed))) for me, table in tables.items()}


def committed(opened: Mapping[str, Opening], **how: Any) -> tuple[dict[str, Mapping[str, bytes]], Transcript]:
    return run_local(
        {
            me: commit(me, [peer for peer in PARTIES if peer != me], opening, SeededRng((me, "blind")))
            for me, opening in opened.items()
        },
        **how,
    )


def test_everybody_learns_every_commitment(tables: Mapping[str, Loaded]) -> None:
    opened = openings(tables)
    learned, transcript = committed(opened)
    expected = {me: opening.commitment for me, opening in opened.items()}
    assert all(found == expected for found in learned.values())
    assert transcript.rounds == 1
    assert transcript.steps == (COMMITMENT,)
    assert [transcript.bytes_sent(me) for me in PARTIES] == [2 * 64] * 3


def test_what_else_is_sent_is_different_on_every_way(tables: Mapping[str, Loaded]) -> None:
    """So that no digest of a link can be made by whoever knows what went over it but this."""
    _, transcript = committed(openings(tables))
    assert len({message.payload[32:] for message in transcript.messages}) == 6


@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"0", lambda p: b""])
def test_a_message_of_another_length_is_its_senders_fault(tables: Mapping[str, Loaded], harm: Any) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        committed(openings(tables), tamper=first_harmed(COMMITMENT, B, harm))
    assert (caught.value.culprit, caught.value.step) == (B, COMMITMENT)


def test_an_opening_fits_its_table_in_any_order_and_no_other(tables: Mapping[str, Loaded]) -> None:
    opening = openings(tables)[A]
    loaded = tables[A]
    assert opening.fits(loaded)
    assert not opening.fits(tables[B])
    turned = loaded.table
    order = np.arange(len(turned.cells))[::-1]
    other = type(turned)(
        turned.schema,
        tuple(column[order] for column in turned.qid),
        turned.cells[order],
        turned.weights[order],
    )
    assert opening.fits(Loaded(other, loaded.rows))
    more = type(turned)(turned.schema, turned.qid, turned.cells, turned.weights + (order == 0))
    assert not opening.fits(Loaded(more, loaded.rows))


def test_the_same_table_has_another_commitment_in_every_run(tables: Mapping[str, Loaded]) -> None:
    found = {openings(tables, seed)[A].commitment for seed in range(20)}
    assert len(found) == 20


def test_an_opening_is_kept_for_its_owner(tmp_path: Path, tables: Mapping[str, Loaded]) -> None:
    opening, folder = openings(tables)[A], tmp_path / "openings"
    keep_opening(folder, "sample", RUN, opening)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert kept_opening(folder, RUN.hex()) == opening
    assert opening.salt.hex() not in repr(opening)
    with pytest.raises(PartyError, match="the number of an earlier one"):
        keep_opening(folder, "sample", RUN, openings(tables, 1)[A])


@pytest.mark.parametrize(
    ("content", "error_id"),
    [
        (None, "file-missing"),
        ("", "verification-failed"),
        ("[]", "verification-failed"),
        ('{"salt": 1, "commitment": ""}', "verification-failed"),
        ('{"salt": "xy", "commitment": ""}', "verification-failed"),
    ],
)
def test_an_opening_that_is_not_there_or_malformed(
    tmp_path: Path, content: str | None, error_id: str
) -> None:
    if content is not None:
        (tmp_path / f"{RUN.hex()}.json").write_text(content)
    with pytest.raises(PartyError) as caught:
        kept_opening(tmp_path, RUN.hex())
    assert caught.value.problem.error_id == error_id


def test_a_tampered_commitment_is_what_the_others_learn(tables: Mapping[str, Loaded]) -> None:
    """Nothing tells here: the statements do (tests/jobs/release/test_signatures.py)."""
    opened = openings(tables)

    def to_a_alone(message: Message) -> bytes:
        return b"\0" * 64 if (message.sender, message.recipient) == (B, A) else message.payload

    learned, _ = committed(opened, tamper=to_a_alone)
    assert learned[A][B] == b"\0" * 32
    assert learned[C][B] == opened[B].commitment
