"""The mix: all rows and nobody's order, what each sees, cost, hostile messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.public import PrivateKey, SealedBox

from crypto import mixing
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.local import Message, Tamper, Transcript, run_local
from crypto.mixing import (
    KEY_BYTES,
    SEAL_BYTES,
    SLIP_BYTES,
    VOUCHER_BYTES,
    Mixed,
    OpeningKey,
    Rows,
    agree_width,
    checked_key,
    mix_for_recipient,
    mix_rows,
    sealed,
    slips_of,
)
from crypto.rng import Prg
from crypto.shares import ComputePair
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.vectors import Golden

PAIR = ComputePair("b", "c")
"""Not the first of the roster, so that no order of names helps."""
WIDTH = 3
COINED = WIDTH + 16
SLOT = WIDTH + VOUCHER_BYTES
LADDER = (4, 8, 16)
RECIPIENT = OpeningKey(SeededRng("recipient"))


def array(rows: list[bytes], width: int = WIDTH) -> Rows:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)


def as_bytes(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows]


def numbered(counts: Mapping[str, int]) -> dict[str, list[bytes]]:
    """Rows that are all different, the greatest first."""
    numbers = iter(range(sum(counts.values()), 0, -1))
    return {party: [next(numbers).to_bytes(WIDTH, "big") for _ in range(m)] for party, m in counts.items()}


def all_of(rows: Mapping[str, list[bytes]]) -> list[bytes]:
    return [row for held in rows.values() for row in held]


THREE = numbered({"a": 2, "b": 3, "c": 1})
TWO = numbered({"b": 2, "c": 3})


def mixed(
    rows: Mapping[str, list[bytes]],
    seed: object = 0,
    tamper: Tamper | None = None,
    recipients: Mapping[str, bytes] | None = None,
    totals: Mapping[str, int] | None = None,
) -> tuple[dict[str, Any], Transcript]:
    """A run; with ``recipients`` one for a recipient outside, as each party knows its key."""
    total, names = sum(map(len, rows.values())), list(rows)

    def party(me: str) -> Any:
        ours, rng = array(rows[me]), SeededRng((seed, me))
        known = (totals or {}).get(me, total)
        if recipients is None:
            return mix_rows(me, names, PAIR, ours, known, rng)
        return mix_for_recipient(me, names, PAIR, ours, known, recipients[me], rng)

    return run_local({me: party(me) for me in names}, tamper=tamper)


def for_recipient(
    rows: Mapping[str, list[bytes]], tamper: Tamper | None = None
) -> tuple[dict[str, Mixed], Transcript]:
    return mixed(rows, tamper=tamper, recipients=dict.fromkeys(rows, RECIPIENT.public))


# ---- what comes of it


@settings(max_examples=examples(30), deadline=None)
@given(
    data=st.data(),
    n=st.integers(2, 4),
    rows=st.lists(st.binary(min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=12),
)
def test_every_party_has_all_rows_sorted(data: st.DataObject, n: int, rows: list[bytes]) -> None:
    """Equal rows stay as many as they were; parties may have none."""
    names = ["b", "c", "a", "d"][:n]
    held: dict[str, list[bytes]] = {party: [] for party in names}
    for row in rows:
        held[data.draw(st.sampled_from(names))].append(row)
    outputs, _ = mixed(held)
    assert all(as_bytes(table) == sorted(rows) for table in outputs.values())


@pytest.mark.parametrize("rows", [THREE, TWO], ids=["three", "two"])
def test_a_recipient_outside_has_all_rows(rows: Mapping[str, list[bytes]]) -> None:
    outputs, _ = for_recipient(rows)
    boxes = outputs["c"].boxes
    assert boxes is not None
    assert sorted(as_bytes(RECIPIENT.opened(boxes, "anybody", "step"))) == sorted(all_of(rows))
    for party, found in outputs.items():
        assert found.slips.tolist() == slips_of(boxes).tolist()
        assert (found.boxes is None) == (party != "c")


def test_rows_of_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "PIECE_BYTES", 4 * SLOT)
    rows = numbered({"a": 5, "b": 3, "c": 2, "d": 4})
    outputs, transcript = mixed(rows)
    assert all(as_bytes(table) == sorted(all_of(rows)) for table in outputs.values())
    assert [len(sheet) for sheet in sheets(transcript, "a")] == [4 * SLOT, 4 * SLOT, 4 * SLOT, 2 * SLOT]
    assert transcript.rounds == 6


def test_slots_of_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party may have more rows than one message holds slots."""
    monkeypatch.setattr(mixing, "PIECE_BYTES", 16)
    rows = numbered({"a": 5, "b": 3, "c": 2})
    outputs, transcript = mixed(rows)
    assert all(as_bytes(table) == sorted(all_of(rows)) for table in outputs.values())
    sizes = [len(m.payload) for m in transcript.messages if (m.step, m.recipient) == ("mix/slots", "a")]
    assert sizes == [16, 16, 8]


def sheets(transcript: Transcript, sender: str) -> list[bytes]:
    return [m.payload for m in transcript.messages if (m.step, m.sender) == ("mix/sheet", sender)]


def slots(transcript: Transcript, party: str) -> list[int]:
    """Return the slots that the leader gives a party."""
    (told,) = [m for m in transcript.messages if (m.step, m.recipient) == ("mix/slots", party)]
    return np.frombuffer(told.payload, "<u8").tolist()


# ---- what each sees


def test_rows_are_in_the_clear_nowhere_before_they_are_mixed() -> None:
    rows = {"a": [b"canary of a"] * 2, "b": [b"canary of b"], "c": [b"canary of c"]}
    names = list(rows)
    _, transcript = run_local(
        {me: mix_rows(me, names, PAIR, array(rows[me], 11), 4, SeededRng(me)) for me in names}
    )
    told = [m for m in transcript.messages if b"canary" in m.payload]
    assert {(m.sender, m.step) for m in told} == {("c", "mix/told")}


def test_the_deputy_sees_rows_only_where_all_sheets_are_added_up() -> None:
    """A slot of one sheet alone, or of two of three, has no zeros even where nobody of these has a row."""
    rows = numbered({"a": 2, "b": 2, "c": 0, "d": 2})
    _, transcript = mixed(rows)
    of = {party: np.frombuffer(*sheets(transcript, party), np.uint8).reshape(6, SLOT) for party in "abd"}
    for seen in (of["a"], of["b"], of["d"], of["a"] ^ of["b"], of["a"] ^ of["d"], of["b"] ^ of["d"]):
        assert all(row.any() for row in seen)
    for one, other in (("a", "b"), ("a", "d"), ("b", "d")):
        assert not any((of[one] == of[other]).all(axis=1))


def test_the_leader_sees_no_sheet() -> None:
    """It has the keystreams."""
    _, transcript = mixed(THREE)
    assert {m.recipient for m in transcript.messages if m.step == "mix/sheet"} == {"c"}


def test_a_sheet_without_rows_is_the_keystream_of_the_seed_that_the_leader_was_given() -> None:
    _, transcript = mixed({"a": [], "b": [b"row"], "c": [b"one"]})
    (agreed,) = [m for m in transcript.view("b") if (m.step, m.sender) == ("mix/agreed", "a")]
    assert sheets(transcript, "a") == [Prg(agreed.payload[-16:]).bytes(2 * SLOT)]


def test_slots_are_dealt_out_at_random() -> None:
    """All that the deputy could tell a row's owner by: every way to give three parties a slot each comes up."""
    one_each = numbered({"a": 1, "b": 1, "c": 1})
    dealt = Counter(
        (*slots(t, "a"), *slots(t, "c")) for t in (mixed(one_each, seed)[1] for seed in range(60))
    )
    assert len(dealt) == 6
    assert max(dealt.values()) < 30


def test_the_slots_of_a_party_come_in_no_order() -> None:
    """Else the deputy could tell the rows of a party from others by the order that they have in its table."""
    _, transcript = mixed(numbered({"a": 20, "b": 1, "c": 1}))
    given = slots(transcript, "a")
    assert given != sorted(given)
    assert given != sorted(given, reverse=True)


def test_no_slot_is_given_twice_and_none_is_left() -> None:
    _, transcript = mixed(THREE)
    given = slots(transcript, "a") + slots(transcript, "c")
    assert len(set(given)) == 3
    assert set(given) <= set(range(6))


def test_every_row_has_a_coin_of_its_own() -> None:
    """Else who knows a row could change it together with its digest."""
    vouched = mixing._vouched(mixing._coined(array([b"row"] * 3), SeededRng(0)))
    assert len(set(as_bytes(vouched[:, WIDTH : WIDTH + 16]))) == 3
    assert len(set(as_bytes(vouched[:, WIDTH + 16 :]))) == 3


def test_a_box_is_libsodiums() -> None:
    secret = PrivateKey.generate()
    (box,) = sealed(array([b"row"]), bytes(secret.public_key), SeededRng(0))
    assert len(box) == WIDTH + SEAL_BYTES
    assert SealedBox(secret).decrypt(box.tobytes()) == b"row"


def test_every_box_has_coins_of_its_own() -> None:
    boxes = sealed(array([b"row"] * 3), RECIPIENT.public, SeededRng(0))
    assert len(set(as_bytes(boxes[:, :KEY_BYTES]))) == 3


def test_what_is_told_depends_on_the_rows_alone() -> None:
    """Not on who has which, in which order."""
    moved = {"a": [THREE["b"][2], *THREE["c"]], "b": [*THREE["a"][::-1], THREE["b"][0]], "c": [THREE["b"][1]]}
    tables = [mixed(rows, seed)[0]["a"].tolist() for rows, seed in ((THREE, 1), (moved, 2))]
    assert tables[0] == tables[1]


def test_only_the_leader_is_told_numbers_of_rows() -> None:
    _, transcript = mixed(THREE)
    lengths = {(m.recipient, len(m.payload)) for m in transcript.messages if m.step == "mix/agreed"}
    assert lengths == {("a", 32), ("b", 32 + 8 + 16), ("c", 32)}


def test_the_recipient_and_leader_together_know_no_box_again() -> None:
    """The leader hears only digests of the boxes, sorted, when they are mixed."""
    outputs, transcript = for_recipient(THREE)
    seen = b"".join(m.payload for m in transcript.view("b"))
    assert all(box[:KEY_BYTES] not in seen for box in as_bytes(outputs["c"].boxes))  # type: ignore[arg-type]


def test_keys_have_no_repr() -> None:
    assert repr(RECIPIENT) == "OpeningKey(<secret>)"
    outputs, _ = for_recipient(TWO)
    assert repr(outputs["c"]) == "Mixed()"


# ---- cost


@pytest.mark.parametrize("run", [mixed, for_recipient])
def test_cost_is_as_documented(run: Callable[..., tuple[Any, Transcript]]) -> None:
    _, transcript = run(THREE)
    total, n, width = 6, 3, WIDTH if run is mixed else WIDTH + SEAL_BYTES
    told = COINED if run is mixed else SLIP_BYTES
    steps = ("mix/agreed", "mix/slots", "mix/sheet", "mix/told", "mix/found", "mix/settled")
    assert transcript.steps == steps
    assert transcript.rounds == 6
    assert transcript.bytes_sent("a") == 32 * (n - 1) + 24 + (width + 32) * total + 16
    assert transcript.bytes_sent("b") == 33 * (n - 1) + 8 * (total - 3) + (width + 32) * total
    assert transcript.bytes_sent("c") == (32 + told * total) * (n - 1) + 24
    assert run(TWO)[1].rounds == 4


def test_golden_transcripts(golden: Golden) -> None:
    golden.check("mixing", "rows", mixed(THREE, "golden")[1].digest())
    golden.check("mixing", "two parties", mixed(TWO, "golden")[1].digest())
    golden.check("mixing", "recipient", for_recipient(THREE)[1].digest())
    golden.check("mixing", "width", widths({"a": 5, "b": 1, "c": 4})[1].digest())


# ---- hostile messages


def changing(step: str, sender: str, harm: Callable[[bytes], bytes], to: str | None = None) -> Tamper:
    def tamper(message: Message) -> bytes | None:
        if (message.step, message.sender) == (step, sender) and to in (None, message.recipient):
            return harm(message.payload)
        return message.payload

    return tamper


def flipped(payload: bytes) -> bytes:
    """The last bit, which no order of rows rests on."""
    return payload[:-1] + bytes([payload[-1] ^ 1])


HARMS = {
    "another digest": ("mix/agreed", "a", lambda p: bytes(32) + p[32:], "a"),
    "no number of rows": ("mix/agreed", "a", lambda p: p[:32], "a"),
    "no seed": ("mix/agreed", "a", lambda p: p[:-1], "a"),
    "a number of rows above all": ("mix/agreed", "a", lambda p: p[:32] + b"\x07" + bytes(7) + p[40:], "a"),
    "a number of rows that does not add up": (
        "mix/agreed",
        "a",
        lambda p: p[:32] + bytes(8) + p[40:],
        "a or c",
    ),
    "a slot missing": ("mix/slots", "b", lambda p: p[:-8], "b"),
    "a slot twice": ("mix/slots", "b", lambda p: p[:8] * 2, "b"),
    "a slot beyond the last": ("mix/slots", "b", lambda p: b"\x06" + bytes(7) + p[8:], "b"),
    "a sheet of another length": ("mix/sheet", "a", lambda p: p + b"\0", "a"),
    "a row changed by its owner": ("mix/sheet", "a", flipped, "a or b"),
    "a row changed by the leader": ("mix/sheet", "b", flipped, "a or b"),
    "a content changed by the leader": ("mix/sheet", "b", lambda p: bytes([p[0] ^ 1]) + p[1:], "a or b"),
    "a table of another length": ("mix/told", "c", lambda p: p + b"\0", "c"),
    "a table out of order": ("mix/told", "c", lambda p: p[COINED:] + p[:COINED], "c"),
    "what was found of another length": ("mix/found", "a", lambda p: p[:-1], "a"),
    "no answer": ("mix/settled", "b", lambda _: b"", "b"),
    "an answer that is none": ("mix/settled", "b", lambda _: b"\2", "b"),
}


@pytest.mark.parametrize(("step", "sender", "harm", "culprit"), HARMS.values(), ids=HARMS)
def test_a_harmed_message_names_the_culprit(
    step: str, sender: str, harm: Callable[[bytes], bytes], culprit: str
) -> None:
    """Compared digests go to the leader, slots to a party outside the pair."""
    to = {"mix/agreed": "b", "mix/slots": "a"}.get(step)
    with pytest.raises(RemoteProtocolError) as caught:
        mixed(THREE, tamper=changing(step, sender, harm, to))
    assert caught.value.culprit == culprit


def test_a_leader_that_gives_a_slot_to_two_parties_is_found_out() -> None:
    """Their rows would come out as one that is neither's."""
    given: dict[str, bytes] = {}

    def tamper(message: Message) -> bytes:
        if message.step != "mix/slots":
            return message.payload
        return given.setdefault("first", message.payload[:8]) + message.payload[8:]

    with pytest.raises(RemoteProtocolError, match="not as its owner sent it") as caught:
        mixed(THREE, tamper=tamper)
    assert caught.value.culprit == "a or b"


def ends(run: Callable[[str], Any], names: Sequence[str], tamper: Tamper) -> tuple[dict[str, Any], list[Any]]:
    """Return the end of every party of a run that goes wrong: its error, or what it has. And all messages."""

    def caught(me: str) -> Any:
        try:
            return (yield from run(me))
        except RemoteProtocolError as error:
            return error.culprit, error.step, str(error).replace(error.culprit, "")

    outputs, transcript = run_local({me: caught(me) for me in names}, tamper=tamper)
    return outputs, [(m.sender, m.recipient, m.step, len(m.payload)) for m in transcript.messages]


def told_otherwise(row: bytes, to: str | None = None) -> Tamper:
    """The deputy replaces one row of such a content, its coin included."""

    def replaced(payload: bytes) -> bytes:
        entries = [payload[start : start + COINED] for start in range(0, len(payload), COINED)]
        at = next(i for i, entry in enumerate(entries) if entry.startswith(row))
        return b"".join(sorted([*entries[:at], b"EVI" + entries[at][WIDTH:], *entries[at + 1 :]]))

    return changing("mix/told", "c", replaced, to)


def mixing_of(rows: Mapping[str, list[bytes]]) -> Callable[[str], Any]:
    total = len(all_of(rows))
    return lambda me: mix_rows(me, list(rows), PAIR, array(rows[me]), total, SeededRng(me))


OWNED = {"a": [b"aa1", b"aa2"], "b": [b"bb1"], "c": [b"cc1"], "d": [b"dd1"]}
ENDED = {me: (" or ".join(party for party in OWNED if party != me), "mix/told") for me in OWNED}


@pytest.mark.parametrize("to", [None, "a", "b"])
def test_a_deputy_that_tells_another_row_learns_nothing(to: str | None) -> None:
    """Whoever's it is, and whomever it is told to, every party sends the same, and ends in the same way."""
    runs = [ends(mixing_of(OWNED), list(OWNED), told_otherwise(row, to)) for row in (b"aa1", b"bb1", b"dd1")]
    assert runs[0] == runs[1] == runs[2]
    assert {me: end[:2] for me, end in runs[0][0].items()} == ENDED
    assert len({end[2] for end in runs[0][0].values()}) == 1
    answers = [end for end in runs[0][1] if end[2] == "mix/settled"]
    assert answers == [("b", peer, "mix/settled", 1) for peer in "acd"]


def test_a_row_of_one_of_two_parties_that_is_replaced() -> None:
    rows = {"b": [b"bb1"], "c": [b"cc1"]}
    outputs, _ = ends(mixing_of(rows), list(rows), told_otherwise(b"bb1"))
    assert {me: end[:2] for me, end in outputs.items()} == {"b": ("c", "mix/told"), "c": ("b", "mix/told")}


def test_equal_rows_of_two_owners_are_told_as_often_as_there_are() -> None:
    """As many copies as one of them has are not enough: each looks for its own."""
    rows = {"a": [b"row"] * 3, "b": [b"row"] * 2, "c": [b"two"]}
    outputs, _ = mixed(rows)
    assert as_bytes(outputs["a"]) == sorted(all_of(rows))
    with pytest.raises(RemoteProtocolError, match="rows are missing"):
        mixed(rows, tamper=told_otherwise(b"row"))


def test_a_row_told_twice_is_not_another_one_like_it() -> None:
    """The deputy knows the coins of rows, and can repeat one."""
    rows = {"a": [b"row", b"row"], "b": [b"row"], "c": [b"two"]}

    def repeated(payload: bytes) -> bytes:
        return payload[:COINED] * 3 + payload[3 * COINED :]

    with pytest.raises(RemoteProtocolError, match="rows are missing"):
        mixed(rows, tamper=changing("mix/told", "c", repeated))


def test_a_slip_that_is_not_told_is_missed_by_its_owner() -> None:
    with pytest.raises(RemoteProtocolError, match="rows are missing") as caught:
        for_recipient(THREE, changing("mix/told", "c", flipped))
    assert caught.value.culprit in {"a or b", "a or c", "b or c"}


def test_a_party_does_not_take_a_table_without_its_rows_from_a_leader_that_settles_it() -> None:
    def tamper(message: Message) -> bytes | None:
        payload = told_otherwise(b"aa1")(message)
        return b"\1" if message.step == "mix/settled" else payload

    outputs, _ = ends(mixing_of(OWNED), list(OWNED), tamper)
    assert outputs["a"][:2] == ENDED["a"]


def test_a_recipient_whose_key_differs_by_party_gets_no_box() -> None:
    """Else it could tell rows apart by the key that opens them."""
    keys = {party: OpeningKey(SeededRng(party)).public for party in THREE}
    sent = []

    def tamper(message: Message) -> bytes:
        sent.append(message.step)
        return message.payload

    with pytest.raises(RemoteProtocolError, match="another key"):
        mixed(THREE, tamper=tamper, recipients=keys)
    assert set(sent) == {"mix/agreed"}


def test_parties_that_know_another_total_find_out_before_a_row_leaves() -> None:
    with pytest.raises(RemoteProtocolError, match="another key, width or number of rows"):
        mixed(THREE, totals={"a": 7})


def test_parties_with_rows_of_other_widths_find_out_before_a_row_leaves() -> None:
    rows = {"b": array([b"row"]), "c": array([b"rows"], 4)}
    parties = {me: mix_rows(me, ["b", "c"], PAIR, rows[me], 2, SeededRng(me)) for me in rows}
    with pytest.raises(RemoteProtocolError, match="another key, width or number of rows"):
        run_local(parties)


def test_a_recipient_refuses_boxes_for_somebody_else_or_twice() -> None:
    other = sealed(array([b"row"]), OpeningKey(SeededRng(1)).public, SeededRng(0))
    with pytest.raises(RemoteProtocolError, match="cannot be opened"):
        RECIPIENT.opened(other, "a or b", "step")
    box = sealed(array([b"row"]), RECIPIENT.public, SeededRng(0))
    with pytest.raises(RemoteProtocolError, match="the same box twice"):
        RECIPIENT.opened(np.concatenate([box, box]), "a or b", "step")


@pytest.mark.parametrize("payload", [bytes(32), b"\1" + bytes(31), bytes(31)], ids=["zero", "one", "short"])
def test_what_can_be_no_key_is_refused(payload: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        checked_key(payload, "coordinator", "start")
    assert checked_key(RECIPIENT.public, "coordinator", "start") == RECIPIENT.public


BAD_INPUTS: dict[str, tuple[Any, int]] = {
    "another type": (np.zeros((1, 3), np.int64), 1),
    "no width": (np.zeros((1, 0), np.uint8), 1),
    "one row": (np.zeros(3, np.uint8), 3),
    "more than all": (np.zeros((2, 3), np.uint8), 1),
}


@pytest.mark.parametrize(("rows", "total"), BAD_INPUTS.values(), ids=BAD_INPUTS)
def test_what_are_no_rows_is_refused_before_anything_is_sent(rows: Any, total: int) -> None:
    with pytest.raises(LocalProtocolError):
        next(mix_rows("c", ["a", "b", "c"], PAIR, rows, total, SeededRng(0)))


@pytest.mark.parametrize("pair", [ComputePair("a", "a"), ComputePair("a", "x")])
def test_a_pair_that_cannot_be_is_refused(pair: ComputePair) -> None:
    with pytest.raises(LocalProtocolError):
        next(mix_rows("a", ["a", "b"], pair, array([b"row"]), 1, SeededRng(0)))


# ---- the width


def widths(needed: Mapping[str, int], tamper: Tamper | None = None) -> tuple[dict[str, int], Transcript]:
    names = list(needed)
    return run_local(
        {
            me: agree_width(me, names, PAIR, needed[me], LADDER, bytes(32), SeededRng(("width", me)))
            for me in names
        },
        tamper=tamper,
    )


@given(needed=st.lists(st.integers(0, 16), min_size=2, max_size=4))
def test_the_width_is_the_least_that_holds_all_rows(needed: list[int]) -> None:
    outputs, _ = widths(dict(zip(["b", "c", "a", "d"], needed, strict=False)))
    least = next(width for width in LADDER if width >= max(needed))
    assert set(outputs.values()) == {least}


def test_whose_rows_are_longest_does_not_show() -> None:
    """Opened bytes are 0 from the width on, and below it uniform whoever sent them: here compared as views."""
    seen = Counter[int]()
    for longest in "abc":
        _, transcript = widths({**dict.fromkeys("abc", 1), longest: 9})
        (one, other) = [m.payload for m in transcript.view("a") if m.step == "shares/open"]
        words = np.frombuffer(one, np.uint64) + np.frombuffer(other, np.uint64)
        assert words[2] == 0
        assert words[:2].all()
        seen.update(words[:2].tolist())
    assert max(seen.values()) == 1


def test_a_row_longer_than_all_widths_is_our_callers_fault() -> None:
    with pytest.raises(LocalProtocolError, match="at most 16 bytes"):
        next(agree_width("a", "abc", PAIR, 17, LADDER, bytes(32), SeededRng(0)))


def test_a_width_that_our_rows_do_not_fit_is_refused() -> None:
    """The pair opens other shares than it has: 0 everywhere."""
    harmed: dict[str, bytes] = {}

    def tamper(message: Message) -> bytes:
        if message.step != "shares/open" or message.recipient != "a":
            return message.payload
        first = harmed.setdefault("first", message.payload)
        return message.payload if first is message.payload else negated(first)

    with pytest.raises(RemoteProtocolError, match="an impossible width") as caught:
        widths({"a": 9, "b": 1, "c": 1}, tamper)
    assert caught.value.culprit == "b or c"


def negated(words: bytes) -> bytes:
    return (-np.frombuffer(words, np.uint64)).tobytes()


def test_no_width_at_all_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="an impossible width"):
        widths(dict.fromkeys("abc", 1), changing("shares/open", "c", lambda words: b"\1" * len(words)))
