"""Joint histograms: output for any shape, cost, keys, hostile messages, uniform shares and views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto import joint_histogram
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.hashing import derive_key
from crypto.joint_histogram import (
    HistogramShape,
    Labels,
    joint_histogram_receive,
    joint_histogram_send,
)
from crypto.local import Message, Transcript, run_local
from crypto.ot.extension import OtReceiver, OtSender, setup_receiver, setup_sender
from crypto.rounds import Rounds, send
from crypto.shares import Shares
from tests.support.chi_square import byte_counts, chi_square
from tests.support.examples import examples
from tests.support.rng import SeededRng
from tests.support.sessions import OPENING_BYTES, ot_sessions, transfer_bytes
from tests.support.statistics import BYTE_LIMIT
from tests.support.vectors import Golden

SHAPE_STEP, CORRECTIONS = "joint_histogram/shape", "joint_histogram/corrections"
Work = tuple[Labels, Labels, HistogramShape, Labels | None]
Groups = Labels | None


def sender(work: list[Work], seed: object, groups: Groups = None) -> Rounds[list[Shares]]:
    rng = SeededRng((seed, "s"))
    session = yield from setup_sender("s", "r", rng)
    shares = []
    for labels, _, shape, weights in work:
        shares.append((yield from joint_histogram_send(session, labels, shape, rng, weights, groups)))
    return shares


def receiver(work: list[Work], seed: object, groups: Groups = None) -> Rounds[list[Shares]]:
    session = yield from setup_receiver("r", "s", SeededRng((seed, "r")))
    shares = []
    for _, labels, shape, _ in work:
        shares.append((yield from joint_histogram_receive(session, labels, shape, groups)))
    return shares


def run(
    work: list[Work], seed: object = 0, groups: Groups = None, **how: Any
) -> tuple[list[tuple[Shares, Shares]], Transcript]:
    parties = {"s": sender(work, seed, groups), "r": receiver(work, seed, groups)}
    outputs, transcript = run_local(parties, **how)
    return list(zip(outputs["s"], outputs["r"], strict=True)), transcript


def labels(values: list[int], dtype: Any = np.int32) -> Labels:
    return np.array(values, dtype=dtype)


def plain(work: Work) -> list[list[int]]:
    a, b, shape, weights = work
    counts = [[0] * shape.receiver_labels for _ in range(shape.sender_labels)]
    for record in range(shape.records):
        if a[record] >= 0 and b[record] >= 0:
            counts[a[record]][b[record]] += 1 if weights is None else int(weights[record])
    return counts


@st.composite
def works(draw: st.DrawFn) -> Work:
    omissions, weighted = draw(st.booleans()), draw(st.booleans())
    shape = HistogramShape(
        records=draw(st.integers(0, 12)),
        sender_labels=draw(st.integers(1, 20)),
        receiver_labels=draw(st.integers(1, 20)),
        max_weight=draw(st.sampled_from([1, 100, 2**20, 2**40])) if weighted else 1,
        omissions=omissions,
    )

    def column(least: int, greatest: int) -> Labels:
        n = shape.records
        return labels(draw(st.lists(st.integers(least, greatest), min_size=n, max_size=n)), np.int64)

    return (
        column(-1, shape.sender_labels - 1),
        column(-1 if omissions else 0, shape.receiver_labels - 1),
        shape,
        column(0, shape.max_weight) if weighted else None,
    )


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(works(), min_size=1, max_size=3), st.sampled_from([1, 7, 40, 1 << 15]))
def test_shares_add_up_to_the_plain_histogram(work: list[Work], chunk_nodes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_histogram, "CHUNK_NODES", chunk_nodes)
        results, _ = run(work)
    for one, (mine, theirs) in zip(work, results, strict=True):
        shape = one[2]
        assert mine.shape == theirs.shape == (shape.sender_labels, shape.receiver_labels)
        assert mine.dtype == theirs.dtype == f"u{shape.width // 8}"
        assert (mine + theirs).tolist() == plain(one)


@settings(max_examples=examples(40), deadline=None)
@given(works(), st.data(), st.sampled_from([7, 40, 1 << 15]))
def test_every_group_has_a_histogram_of_its_own(work: Work, data: st.DataObject, chunk_nodes: int) -> None:
    """Groups of any size, empty ones and ones cut by chunks too."""
    a, b, shape, weights = work
    cuts = sorted(data.draw(st.lists(st.integers(0, shape.records), max_size=4)))
    edges = [0, *cuts, shape.records]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_histogram, "CHUNK_NODES", chunk_nodes)
        ((mine, theirs),), _ = run([work], groups=np.diff(edges))
    assert mine.shape == (len(edges) - 1, shape.sender_labels, shape.receiver_labels)
    for i, (start, stop) in enumerate(pairwise(edges)):
        part = HistogramShape(stop - start, shape.sender_labels, shape.receiver_labels)
        own = None if weights is None else weights[start:stop]
        assert (mine + theirs)[i].tolist() == plain((a[start:stop], b[start:stop], part, own))


@settings(max_examples=examples(20), deadline=None)
@given(
    st.lists(works(), min_size=2, max_size=2), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data()
)
def test_several_labels_of_a_record_are_as_many_histograms(
    work: list[Work], sizes: list[int], data: st.DataObject
) -> None:
    """One column after the other gives the same, with omissions, weights and groups; messages have the same sizes."""
    _, b, given_shape, weights = work[0]
    n = given_shape.records
    starts = np.cumsum([0, *sizes])
    columns = [
        labels(data.draw(st.lists(st.integers(-1, size - 1), min_size=n, max_size=n)), np.int64)
        for size in sizes
    ]
    shape = replace(given_shape, sender_labels=sum(sizes))
    several = np.stack(
        [np.where(c < 0, -1, c + start) for c, start in zip(columns, starts, strict=False)], axis=1
    )
    groups = np.array([n // 2, 0, n - n // 2])
    ((mine, theirs),), together = run([(several, b, shape, weights)], groups=groups)
    for column, size, start in zip(columns, sizes, starts, strict=False):
        part = (column, b, replace(shape, sender_labels=size), weights)
        ((one, other),), _ = run([part], groups=groups)
        assert ((mine + theirs)[:, start : start + size] == one + other).all()
    _, alone = run([(columns[0], b, shape, weights)], groups=groups)
    assert [len(m.payload) for m in together.messages] == [len(m.payload) for m in alone.messages]


def test_groups_cost_no_traffic() -> None:
    shape, zeros = HistogramShape(5000, 3, 4), np.zeros(5000, np.int64)
    _, whole = run([(zeros, zeros, shape, None)])
    _, cut = run([(zeros, zeros, shape, None)], groups=np.full(50, 100))
    assert [len(m.payload) for m in cut.messages] == [len(m.payload) for m in whole.messages]


def test_groups_that_differ_are_noticed() -> None:
    shape, zeros = HistogramShape(4, 2, 2), np.zeros(4, np.int64)
    work: list[Work] = [(zeros, zeros, shape, None)]
    with pytest.raises(RemoteProtocolError) as caught:
        run_local({"s": sender(work, 0, labels([1, 3])), "r": receiver(work, 0, labels([2, 2]))})
    assert (caught.value.culprit, caught.value.step) == ("s", SHAPE_STEP)


@pytest.mark.parametrize("groups", [labels([1, 1]), labels([-1, 4]), np.ones(3), labels([]), labels([[3]])])
def test_bad_groups_are_refused_before_anything_is_sent(groups: Labels) -> None:
    column = labels([0, 1, 0])
    with pytest.raises(LocalProtocolError, match="group"):
        next(joint_histogram_send(session("s"), column, SHAPE, SeededRng(0), None, groups))
    with pytest.raises(LocalProtocolError, match="group"):
        next(joint_histogram_receive(session("r"), column, SHAPE, groups))


@pytest.mark.parametrize(("share_bits", "width"), [(1, 16), (16, 16), (17, 32), (32, 32), (33, 64), (64, 64)])
def test_shares_have_the_bits_asked_for(share_bits: int, width: int) -> None:
    assert HistogramShape(3, 1, 1, share_bits=share_bits).width == width
    assert HistogramShape(2**32, 1, 1, share_bits=share_bits).width == 64


@pytest.mark.parametrize(("records", "receiver_labels"), [(70_000, 2), (20_000, 9), (300, 700), (3, 40_000)])
def test_many_records_and_many_labels_go_in_several_chunks(records: int, receiver_labels: int) -> None:
    rng = np.random.default_rng(1)
    shape = HistogramShape(records, 3, receiver_labels)
    a, b = rng.integers(0, 3, records), rng.integers(0, receiver_labels, records)
    expected = np.zeros((3, receiver_labels), np.int64)
    np.add.at(expected, (a, b), 1)
    ((mine, theirs),), _ = run([(a, b, shape, None)])
    assert np.array_equal((mine + theirs).astype(np.int64), expected)


@pytest.mark.some(11)
@pytest.mark.parametrize("omissions", [False, True])
@pytest.mark.parametrize("receiver_labels", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33])
def test_every_label_of_every_tree_size(receiver_labels: int, omissions: bool) -> None:
    own = list(range(-omissions, receiver_labels))
    shape = HistogramShape(len(own), 2, receiver_labels, omissions=omissions)
    work = (labels([i % 2 for i in range(len(own))]), labels(own), shape, None)
    ((mine, theirs),), _ = run([work])
    assert (mine + theirs).tolist() == plain(work)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64, np.int64])
def test_labels_of_any_integer_type(dtype: Any) -> None:
    shape = HistogramShape(3, 100, 100, omissions=dtype in (np.int8, np.int64))
    work = (labels([0, 99, 5], dtype), labels([99, 0, 5], dtype), shape, None)
    ((mine, theirs),), _ = run([work])
    assert (mine + theirs).tolist() == plain(work)


@pytest.mark.parametrize(
    ("records", "max_weight", "width"),
    [
        (0, 1, 16),
        (2**16 - 1, 1, 16),
        (2**16, 1, 32),
        (2**32 - 1, 1, 32),
        (2**32, 1, 64),
        (1, 2**16 - 1, 16),
        (3, 2**62, 64),
    ],
)
def test_the_width_of_shares_follows_the_greatest_count(records: int, max_weight: int, width: int) -> None:
    assert HistogramShape(records, 1, 1, max_weight).width == width


def test_the_greatest_count_fits() -> None:
    n = 2**16 - 1
    shape = HistogramShape(n, 1, 1)
    ((mine, theirs),), _ = run([(np.zeros(n, np.int8), np.zeros(n, np.int8), shape, None)])
    assert (mine + theirs).tolist() == [[n]]
    shape = HistogramShape(1, 1, 1, max_weight=2**64 - 1)
    heavy = labels([2**64 - 1], np.uint64)
    ((mine, theirs),), _ = run([(labels([0]), labels([0]), shape, heavy)])
    assert (mine + theirs).tolist() == [[2**64 - 1]]


@pytest.mark.some(5)
@pytest.mark.parametrize("omissions", [False, True])
@pytest.mark.parametrize(
    ("records", "a", "b"), [(0, 3, 3), (1, 1, 1), (10, 5, 4), (20_000, 3, 16), (9, 3, 33), (5_000, 500, 2)]
)
def test_cost_is_as_documented(records: int, a: int, b: int, omissions: bool) -> None:
    shape = HistogramShape(records, a, b, omissions=omissions)
    zeros = np.zeros(records, np.int64)
    _, setup = run([])
    _, transcript = run([(zeros, zeros, shape, None)])
    d = shape.depth
    assert d == (b + omissions - 1).bit_length()
    batch = min(65_536 // max(d, 1), 2**22 // (32 * d + a * shape.width // 8))
    batches = [min(batch, records - start) for start in range(0, records, batch)]
    sent = 56 + records * (32 * d + a * shape.width // 8)
    assert transcript.bytes_sent("s") - setup.bytes_sent("s") == sent
    received = sum(24 + transfer_bytes(n * d) for n in batches) if d else 0
    opening = OPENING_BYTES if received else 0
    assert transcript.bytes_sent("r") - setup.bytes_sent("r") == received + opening
    assert shape.total_bytes == sent + received
    assert max((len(m.payload) for m in transcript.messages), default=0) <= (1 << 20) + 2096
    steps = {m.step for m in transcript.messages} - set(setup.steps)
    transfers = {"ot/begin", "ot/extend"} if records and d else set()
    assert steps == {SHAPE_STEP} | ({CORRECTIONS} if records else set()) | transfers


def test_two_rounds_and_the_transfers_go_ahead() -> None:
    """The first two batches' transfers wait for no corrections; the third's for the first's."""
    shape = HistogramShape(3 * 32_768, 2, 4)
    zeros = np.zeros(3 * 32_768, np.int64)
    _, setup = run([])
    _, transcript = run([(zeros, zeros, shape, None)])
    depths = [m.depth - setup.rounds for m in transcript.messages if m.step == "ot/extend"]
    corrections = [m.depth - setup.rounds for m in transcript.messages if m.step == CORRECTIONS]
    assert depths == [1, 1, 3]
    assert (min(corrections), max(corrections)) == (2, 4)
    _, small = run([(zeros[:9], zeros[:9], HistogramShape(9, 2, 4), None)])
    assert small.rounds - setup.rounds == 2


def test_golden_transcript(golden: Golden) -> None:
    shape = HistogramShape(6, 3, 5, max_weight=9, omissions=True)
    work = (labels([0, 1, 2, -1, 1, 1]), labels([4, 3, -1, 2, 0, 0]), shape, labels([9, 8, 7, 6, 5, 4]))
    golden.check("joint_histogram", "weighted", run([work], "golden")[1].digest())


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("label", [0, 3])
def test_each_share_is_uniform_whatever_the_labels(side: int, label: int) -> None:
    shape = HistogramShape(2, 8, 4)
    column = labels([label, label])
    results, _ = run([(column, column, shape, None)] * 60)
    shares = [result[side] for result in results]
    assert chi_square(byte_counts(np.concatenate(shares).ravel())) < BYTE_LIMIT


@pytest.mark.parametrize("view", ["s", "r"])
@pytest.mark.parametrize("label", [0, 3])
def test_messages_are_uniform_whatever_the_labels(view: str, label: int) -> None:
    """Look at the messages of either party: the transfers' matrix, and the masked sums with the corrections."""
    shape, column = HistogramShape(640, 8, 4), np.full(640, label)
    seen = np.zeros(256, np.int64)
    for seed in range(3):
        _, transcript = run([(column, column, shape, None)], seed)
        for message in transcript.view(view):
            if message.step in ("ot/extend", CORRECTIONS):
                seen += np.bincount(np.frombuffer(message.payload, np.uint8), minlength=256)
    assert chi_square(seen) < BYTE_LIMIT


def test_equal_records_give_unequal_messages() -> None:
    """No tree, mask or correction of one record is that of another."""
    shape, column = HistogramShape(100, 8, 4), np.zeros(100, np.int64)
    _, transcript = run([(column, column, shape, None)] * 2)
    blocks: list[bytes] = []
    for message in transcript.view("r"):
        if message.step == CORRECTIONS:
            blocks += [message.payload[i : i + 16] for i in range(0, len(message.payload), 16)]
    assert len(blocks) == 2 * 100 * (4 + 1)
    assert len(set(blocks)) == len(blocks)


def test_every_chunk_has_keys_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    original = joint_histogram.fixed_key_aes

    def recording(key: bytes) -> Any:
        keys.append(key)
        return original(key)

    monkeypatch.setattr(joint_histogram, "fixed_key_aes", recording)
    monkeypatch.setattr(joint_histogram, "CHUNK_NODES", 40)
    shape = HistogramShape(25, 9, 4)  # chunks of 10, 10 and 5 records; two blocks of words per leaf
    column = np.zeros(25, np.int64)
    run([(column, column, shape, None)] * 2)
    assert len(keys) == 2 * 2 * 3 * (2 + 2)  # parties, histograms, chunks, keys
    assert len(set(keys)) == len(keys) // 2
    keys.clear()
    one_label = HistogramShape(90, 9, 1)  # no transfers; chunks of 40, 40 and 10 records
    column = np.zeros(90, np.int64)
    run([(column, column, one_label, None)] * 2)
    assert len(keys) == 2 * 2 * 3 * (2 + 2)
    assert len(set(keys)) == len(keys) // 2


def test_every_tree_has_a_root_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over chunks, batches, histograms and sessions: no root twice."""
    roots: list[bytes] = []
    original = joint_histogram._Chunk.grow

    def recording(self: Any, own: Any, share: Shares) -> Any:
        roots.extend(root.tobytes() for root in own)
        return original(self, own, share)

    monkeypatch.setattr(joint_histogram._Chunk, "grow", recording)
    monkeypatch.setattr(joint_histogram, "CHUNK_NODES", 40)
    monkeypatch.setattr(joint_histogram, "BATCH_BYTES", 2_000)
    column = np.zeros(50, np.int64)
    for seed in range(2):
        run([(column, column, HistogramShape(50, 9, 4), None)] * 2, seed)
    assert len(set(roots)) == len(roots) == 200


def test_the_corrections_depend_on_the_senders_coins() -> None:
    """The same transfers and labels, other coins for the trees: no block of what the receiver gets is the same."""
    shape, column = HistogramShape(20, 8, 4), np.zeros(20, np.int64)
    blocks: list[bytes] = []
    for seed in range(2):
        sending, receiving = ot_sessions()
        _, transcript = run_local(
            {
                "s": joint_histogram_send(sending, column, shape, SeededRng(seed)),
                "r": joint_histogram_receive(receiving, column, shape),
            }
        )
        payload = b"".join(m.payload for m in transcript.view("r") if m.step == CORRECTIONS)
        blocks += [payload[i : i + 16] for i in range(0, len(payload), 16)]
    assert len(set(blocks)) == len(blocks) == 2 * 20 * (4 + 1)


def test_trees_and_vectors_are_those_of_the_definition() -> None:
    """One record after the other with whole blocks of bytes: the tree, its sums, the leaves' vectors."""
    records, shape = 3, HistogramShape(3, 6, 5)
    key = derive_key(bytes(16), 4)
    keys = [derive_key(key, number) for number in range(4)]
    roots = np.frombuffer(SeededRng(0).bytes(16 * records), np.uint64).reshape(records, 2)

    def expand(number: int, block: bytes) -> bytes:
        cipher = Cipher(algorithms.AES(keys[number]), modes.ECB()).encryptor()  # noqa: S305
        return bytes(a ^ b for a, b in zip(cipher.update(block), block, strict=True))

    def xor(blocks: list[bytes]) -> list[int]:
        total = np.zeros(2, np.uint64)
        for block in blocks:
            total ^= np.frombuffer(block, np.uint64)
        return total.tolist()

    share = np.zeros((1, 5, 8), np.uint16)
    runs = joint_histogram._Runs(np.array([records]), slice(0, records))
    sums, corrections = joint_histogram._Chunk(bytes(16), 4, runs, shape).grow(roots, share)
    expected = np.zeros((5, 8), np.uint16)
    for record in range(records):
        nodes = {"": roots[record].tobytes()}  # a node's name is its path, root first
        for level in range(3):
            children = {
                path + side: expand(int(side), node)
                for path, node in nodes.items()
                for side in "01"
                if int((path + side)[::-1], 2) < 5
            }
            for side in (0, 1):
                chosen = [node for path, node in children.items() if path[-1] == str(side)]
                assert sums[side, level * records + record].tolist() == xor(chosen)
            nodes = children
        vectors = {
            int(path[::-1], 2): np.frombuffer(expand(2, leaf), np.uint16) for path, leaf in nodes.items()
        }
        assert sorted(vectors) == list(range(5))
        assert corrections[record].tolist() == sum(vectors.values()).tolist()  # type: ignore[union-attr]
        for leaf, vector in vectors.items():
            expected[leaf] += vector
    assert np.array_equal(share[0], expected)


def test_the_receiver_never_holds_its_own_leaf() -> None:
    """With the sender's nodes at hand: all leaves agree but the receiver's own, which it has as zero."""
    shape = HistogramShape(5, 2, 6)
    own = np.array([0, 1, 3, 4, 5])
    rng = SeededRng(0)
    roots = np.frombuffer(rng.bytes(80), np.uint64).reshape(5, 2)
    seen: list[np.ndarray] = []

    class Recording(joint_histogram._Chunk):
        def _vectors(self, leaves: Any, share: Shares) -> Any:
            seen.append(leaves.copy())
            return super()._vectors(leaves, share)

    share = np.zeros((1, 6, 8), np.uint16)
    runs = joint_histogram._Runs(np.array([5]), slice(0, 5))
    sums, corrections = Recording(bytes(16), 0, runs, shape).grow(roots, share)
    bits = joint_histogram._choice_bits(own, shape)
    chosen = np.where(bits[:, np.newaxis] == 1, sums[1], sums[0])
    Recording(bytes(16), 0, runs, shape).puncture(own, chosen, corrections[:, :2], np.zeros_like(share))
    same = (seen[0] == seen[1]).all(axis=2)
    assert not same[own, np.arange(5)].any()
    assert same.sum() == 5 * 6 - 5
    assert not seen[1][own, np.arange(5)].any()


@pytest.mark.parametrize("harm", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b""])
@pytest.mark.parametrize(
    ("step", "culprit"), [(SHAPE_STEP, "s"), (CORRECTIONS, "s"), ("ot/extend", "r"), ("ot/begin", "r")]
)
def test_a_wrong_length_names_the_culprit(step: str, culprit: str, harm: Callable[[bytes], bytes]) -> None:
    def tamper(message: Message) -> bytes:
        return harm(message.payload) if message.step == step else message.payload

    shape, column = HistogramShape(3, 2, 4), labels([0, 1, 1])
    with pytest.raises(RemoteProtocolError) as caught:
        run([(column, column, shape, None)], tamper=tamper)
    assert (caught.value.culprit, caught.value.step) == (culprit, step)


def test_a_wrong_step_names_the_culprit() -> None:
    def confused() -> Rounds[list[Shares]]:
        yield from setup_sender("s", "r", SeededRng("s"))
        yield from send("joint_histogram/other", {"r": b""})
        return []

    shape, column = HistogramShape(3, 2, 4), labels([0, 1, 1])
    with pytest.raises(RemoteProtocolError) as caught:
        run_local({"s": confused(), "r": receiver([(column, column, shape, None)], 0)})
    assert (caught.value.culprit, caught.value.step) == ("s", SHAPE_STEP)


@pytest.mark.parametrize(
    "other",
    [HistogramShape(4, 2, 4), HistogramShape(3, 2, 5), HistogramShape(3, 3, 4), HistogramShape(3, 2, 3)],
)
def test_shapes_that_differ_are_noticed(other: HistogramShape) -> None:
    mine = HistogramShape(3, 2, 4)
    zeros = np.zeros(4, np.int64)
    work = [(zeros[:3], zeros[: other.records], mine, None)]
    theirs = [(zeros[:3], zeros[: other.records], other, None)]
    with pytest.raises(RemoteProtocolError):
        run_local({"s": sender(work, 0), "r": receiver(theirs, 0)})


SHAPE = HistogramShape(3, 2, 4, max_weight=5)


def session(kind: str) -> Any:
    parties: dict[str, Rounds[Any]] = {
        "s": setup_sender("s", "r", SeededRng("s")),
        "r": setup_receiver("r", "s", SeededRng("r")),
    }
    return run_local(parties)[0][kind]


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (labels([0, 1]), "3 integer labels are prescribed"),
        (np.zeros(3), "not float64"),
        (np.zeros((2, 1), np.int64), "of shape"),
        (np.zeros((3, 1, 1), np.int64), "of shape"),
        (np.array([[0, 1], [2, -1], [0, 4]]), "outside the|of shape"),
        (labels([0, 1, -2]), "outside the"),
        (labels([0, 1, 4]), "outside the"),
    ],
)
def test_bad_labels_are_refused_before_anything_is_sent(column: Labels, match: str) -> None:
    sending: OtSender = session("s")
    with pytest.raises(LocalProtocolError, match=match):
        next(joint_histogram_send(sending, column, SHAPE, SeededRng(0)))
    receiving: OtReceiver = session("r")
    with pytest.raises(LocalProtocolError, match=match):
        next(joint_histogram_receive(receiving, column, SHAPE))


def test_undeclared_omissions_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match="does not allow the receiver"):
        next(joint_histogram_receive(session("r"), labels([0, -1, 0]), SHAPE))


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (labels([1, 2]), "3 integer weights are prescribed"),
        (np.ones(3), "not float64"),
        (labels([1, 2, 6]), r"outside \[0, 5\]"),
        (labels([1, -1, 0]), r"outside \[0, 5\]"),
    ],
)
def test_bad_weights_are_refused_before_anything_is_sent(weights: Labels, match: str) -> None:
    with pytest.raises(LocalProtocolError, match=match):
        next(joint_histogram_send(session("s"), labels([0, 1, 0]), SHAPE, SeededRng(0), weights))


@pytest.mark.parametrize(
    "shape",
    [
        HistogramShape(-1, 2, 2),
        HistogramShape(0, 0, 2),
        HistogramShape(0, 2, 0),
        HistogramShape(0, 2, 2, max_weight=0),
        HistogramShape(0, 2, 2, share_bits=0),
    ],
)
def test_impossible_shapes_are_refused(shape: HistogramShape) -> None:
    with pytest.raises(LocalProtocolError, match="no histogram has"):
        next(joint_histogram_receive(session("r"), labels([]), shape))


def test_counts_that_fit_no_share_are_refused() -> None:
    shape = HistogramShape(3, 2, 2, max_weight=2**63)
    with pytest.raises(LocalProtocolError, match="does not fit shares of 64 bits"):
        next(joint_histogram_receive(session("r"), labels([0, 0, 0]), shape))
