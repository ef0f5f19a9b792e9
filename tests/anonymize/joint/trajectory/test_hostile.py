"""Sealed local suppression against parties that deviate: the run ends, and names who may have done it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anonymize.errors import PrivacyError
from anonymize.joint.lkc import root
from anonymize.joint.trajectory import kept, sealed
from anonymize.trajectory import sweep
from anonymize.trajectory.paths import Paths
from crypto.errors import RemoteProtocolError
from crypto.local import Message
from crypto.mixing import Rows, mix_rows
from tests.support.paths import ITEMS_41, bounds, table_41
from tests.support.sequences import run_sealed_sequences, split
from tests.support.tamper import first_harmed, vouched

ASKED = bounds(2, 2, "1/2", 4, [0])


@pytest.fixture(scope="module")
def tables() -> list[Paths]:
    return split(table_41(), [i % 3 for i in range(8)], 3, len(ITEMS_41))


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("step", "sender", "harm"),
    [
        ("sequences/root", "p0", lambda p: b"\2"),
        ("sequences/root", "p0", lambda p: b""),
        ("sequences/kept", "p0", lambda p: p + b"\0"),
        ("sequences/kept", "p0", lambda p: b"\x80"),
        ("shares/open", "p0", lambda p: p[:-1]),
        ("shares/share", "p2", lambda p: p[:-1]),
        ("shares/seed", "p2", lambda p: p[:-1]),
        ("mix/agreed", "p2", lambda p: p[:-1]),
        ("mix/sheet", "p2", lambda p: p[:-1]),
        ("mix/told", "p1", lambda p: p + b"\0"),
    ],
)
def test_hostile_messages_name_the_culprit(step: str, sender: str, harm: Any, tables: list[Paths]) -> None:
    _, honest = run_sealed_sequences(tables, ASKED)
    with pytest.raises(RemoteProtocolError) as caught:
        run_sealed_sequences(tables, ASKED, tamper=vouched(first_harmed(step, sender, harm), honest))
    assert (caught.value.culprit, caught.value.step) == (sender, step)


@pytest.mark.parametrize("sender", ["p0", "p1"])
@pytest.mark.parametrize("step", ["sequences/root", "sequences/kept"])
def test_a_pair_that_tells_two_things_is_found_out(step: str, sender: str, tables: list[Paths]) -> None:
    with pytest.raises(RemoteProtocolError, match="leader and deputy tell different things") as caught:
        run_sealed_sequences(
            tables, ASKED, tamper=first_harmed(step, sender, lambda p: bytes([p[0] ^ 1]) + p[1:])
        )
    assert (caught.value.culprit, caught.value.step) == ("p0 or p1", step)


def test_a_row_changed_on_its_way(tables: list[Paths]) -> None:
    harm = first_harmed("mix/sheet", "p2", lambda p: p[:-1] + bytes([p[-1] ^ 1]))
    with pytest.raises(RemoteProtocolError, match="not as its owner sent it") as caught:
        run_sealed_sequences(tables, ASKED, tamper=harm)
    assert (caught.value.culprit, caught.value.step) == ("p0 or p2", "mix/sheet")


def mixing_otherwise(monkeypatch: pytest.MonkeyPatch, change: Callable[[Rows], Rows]) -> None:
    """p2 sends other rows."""

    def otherwise(me: str, parties: Any, pair: Any, rows: Rows, total: int, rng: Any) -> Any:
        return mix_rows(me, parties, pair, change(rows) if me == "p2" else rows, total, rng)

    monkeypatch.setattr(sealed, "mix_rows", otherwise)


def test_a_row_of_another_width(tables: list[Paths], monkeypatch: pytest.MonkeyPatch) -> None:
    mixing_otherwise(monkeypatch, lambda rows: np.hstack([rows, np.zeros((len(rows), 1), np.uint8)]))
    with pytest.raises(RemoteProtocolError, match="another key, width or number of rows") as caught:
        run_sealed_sequences(tables, ASKED)
    assert (caught.value.culprit, caught.value.step) == ("p2", "mix/agreed")


def another_item(rows: Rows) -> Rows:
    """A sequence that is not kept."""
    changed = rows.copy()
    changed[0, :-1] = 0
    changed[0, :2] = ITEMS_41.index("b2") + 1, ITEMS_41.index("e8") + 1
    return changed


def another_value(rows: Rows) -> Rows:
    changed = rows.copy()
    changed[0, -1] ^= 1
    return changed


def no_record(rows: Rows) -> Rows:
    changed = rows.copy()
    changed[0, :2] = 7, 3
    return changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (no_record, "a row that no record is written as"),
        (another_value, "other sensitive values than were counted"),
        (another_item, "other sequences than were kept"),
    ],
)
def test_rows_that_are_not_what_was_answered(
    change: Any, reason: str, tables: list[Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whose they are: every party names all others."""
    mixing_otherwise(monkeypatch, change)
    with pytest.raises(RemoteProtocolError, match=reason) as caught:
        run_sealed_sequences(tables, ASKED)
    assert caught.value.culprit in {"p1 or p2", "p0 or p2", "p0 or p1"}
    assert caught.value.step == "mix/told"


def test_a_table_without_one_of_our_rows(tables: list[Paths]) -> None:
    """The deputy tells another record in place of the one it was given."""
    harm = first_harmed("mix/told", "p1", lambda p: p[25:] + p[-25:])
    with pytest.raises(RemoteProtocolError, match="rows are missing") as caught:
        run_sealed_sequences(tables, ASKED, tamper=harm)
    assert caught.value.step == "mix/told"


def test_a_row_less_of_those_that_two_parties_have() -> None:
    """The deputy leaves as many as either has, and what it tells is kept: but each looks for its own."""
    records = [([0, 1], 0)] * 6 + [([0], 0)] * 2 + [([1], 0)] * 2
    equal = split(records, [0] * 3 + [2] * 3 + [1] * 4, 3, 4)
    asked = bounds(2, 2, "1/2", 2, [1])

    def shortened(message: Message) -> bytes:
        if (message.step, message.sender) != ("mix/told", "p1"):
            return message.payload
        rows = [message.payload[i : i + 25] for i in range(0, len(message.payload), 25)]
        at = next(i for i, row in enumerate(rows) if row[:2] == b"\1\2")
        return b"".join(sorted([*rows[:at], b"\1\0" + rows[at][2:], *rows[at + 1 :]]))

    assert len(run_sealed_sequences(equal, asked)[0]["p0"].rows) == 10
    with pytest.raises(RemoteProtocolError, match="rows are missing") as caught:
        run_sealed_sequences(equal, asked, tamper=shortened)
    assert caught.value.step == "mix/told"


def test_a_pair_that_keeps_everything_is_found_out(
    tables: list[Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a release is made: what comes out has sequences that should not be there."""

    def lying(engine: Any, circuit: Any, shared: Any) -> Any:
        return np.ones(len(shared), dtype=np.uint8)
        yield

    monkeypatch.setattr(kept, "_judged", lying)
    with pytest.raises(RemoteProtocolError, match="other sequences than were kept") as caught:
        run_sealed_sequences(tables, ASKED)
    assert caught.value.step == "mix/told"


def test_a_pair_that_drops_one_sequence_in_every_sweep_does_not_go_on(
    tables: list[Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sweep keeps less, so none is the last; the bound is public, and an honest run of three sweeps meets it."""

    def dripping(engine: Any, circuit: Any, shared: Any) -> Any:
        return (np.arange(len(shared)) > 0).astype(np.uint8)
        yield

    monkeypatch.setattr(sealed, "MOST_SWEEPS", 3)
    assert len(run_sealed_sequences(tables, ASKED)[0]["p0"].sweeps) == 3
    monkeypatch.setattr(kept, "_judged", dripping)
    with pytest.raises(PrivacyError, match="does not come to an end: 3 sweeps were made") as caught:
        run_sealed_sequences(tables, bounds(1, 1, "9/10", 4, [0]))
    assert caught.value.error_id == "too-many-sequences"


def test_a_party_that_drops_nothing_is_found_out(
    tables: list[Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares the counts of records that it should have changed; its rows show it."""
    remove = sweep.Search.remove

    def lazy(search: sweep.Search) -> None:
        if search._paths is not tables[2]:
            remove(search)

    monkeypatch.setattr(sweep.Search, "remove", lazy)
    with pytest.raises(RemoteProtocolError, match="other sequences than were kept") as caught:
        run_sealed_sequences(tables, ASKED)
    assert caught.value.step == "mix/told"


def test_a_root_that_should_not_have_been_opened(
    tables: list[Paths], monkeypatch: pytest.MonkeyPatch
) -> None:
    def always(tests: Any, engine: Any, share: Any) -> Any:
        return True
        yield

    monkeypatch.setattr(root.RootTests, "met", always)
    with pytest.raises(RemoteProtocolError, match="counts were opened that do not meet") as caught:
        run_sealed_sequences(tables, bounds(2, 9, "1/2", 4, [0]))
    assert caught.value.culprit == "p0 or p1"
