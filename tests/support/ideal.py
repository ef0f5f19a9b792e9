"""Insecure ideal twins: the same signatures as the protocols, with a trusted party that trusts everyone.

What uses a building block is tested with the twin in its place, as the hybrid model does it: the sender's
secrets travel in the clear and the functionality is evaluated literally.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from crypto.blocks import Blocks, decode_blocks, encode_blocks, random_blocks
from crypto.circuit import Circuit, Held, InputGroup, OutputGroup, To, Values, evaluate
from crypto.encoding import Words, decode_words, encode_words
from crypto.lookup import Question
from crypto.oprf import Identifiers, Tags
from crypto.ot.extension import Bits
from crypto.point_function import Transfers, UnitVectors
from crypto.rng import Rng, uniform_words
from crypto.rounds import Round, Rounds, exchange, receive, send
from crypto.signs import Prepared
from tests.support.rng import SeededRng


class IdealOtSender:
    """A session that keeps nothing but the peer, the offset and the coins."""

    def __init__(self, peer: str, rng: Rng) -> None:
        self.peer = peer
        self.delta = random_blocks(rng, 1)[0] | np.array([1, 0], dtype=np.uint64)
        self.rng = rng


class IdealOtReceiver:
    def __init__(self, peer: str) -> None:
        self.peer = peer


def setup_sender(me: str, peer: str, rng: Rng) -> Rounds[IdealOtSender]:
    return IdealOtSender(peer, rng)
    yield


def setup_receiver(me: str, peer: str, rng: Rng) -> Rounds[IdealOtReceiver]:
    return IdealOtReceiver(peer)
    yield


def correlated_send(sender: IdealOtSender, count: int) -> Rounds[Blocks]:
    q = random_blocks(sender.rng, count)
    yield from chosen_send(sender, (q, q ^ sender.delta))
    return q


def random_send(sender: IdealOtSender, count: int) -> Rounds[tuple[Blocks, Blocks]]:
    pairs = random_blocks(sender.rng, count), random_blocks(sender.rng, count)
    yield from chosen_send(sender, pairs)
    return pairs


def chosen_send(sender: IdealOtSender, message_pairs: tuple[Blocks, Blocks]) -> Rounds[None]:
    yield from send("ideal/ot", {sender.peer: encode_blocks(np.concatenate(message_pairs))})


def chosen_receive(receiver: IdealOtReceiver, choice_bits: Bits) -> Rounds[Blocks]:
    payload = yield from receive("ideal/ot", receiver.peer)
    count = len(choice_bits)
    zero, one = decode_blocks(payload, 2 * count, receiver.peer, "ideal/ot").reshape(2, count, 2)
    return np.where(choice_bits[:, np.newaxis] == 1, one, zero)


correlated_receive = random_receive = chosen_receive


class IdealCarried:
    """Carried words in the clear; the evaluator's copy holds zeros."""

    def __init__(self, values: Words, width: int) -> None:
        self.values = values
        self.width = width

    def __len__(self) -> int:
        return len(self.values)

    def take(self, indices: Sequence[int]) -> IdealCarried:
        return IdealCarried(self.values[np.asarray(indices, dtype=np.intp)], self.width)

    @staticmethod
    def concatenate(vectors: Sequence[IdealCarried]) -> IdealCarried:
        return IdealCarried(np.concatenate([v.values for v in vectors]), vectors[0].width)


Value: TypeAlias = "Values | IdealCarried"


class IdealSession:
    """Two-party computation in the clear: the evaluator sends everything, the garbler evaluates."""

    def __init__(self, role: Held, peer: str, rng: Rng) -> None:
        self.role = role
        self.peer = peer
        self.rng = rng
        self.transfers = IdealOtReceiver(peer)

    def run(self, circuit: Circuit, batch: int, inputs: Mapping[str, Value]) -> Rounds[dict[str, Value]]:
        groups = {name: g for name, g in circuit.inputs.items() if g.held is not Held.MASK}
        mine = {name: self._summand(g, batch, inputs.get(name)) for name, g in groups.items()}
        if self.role is Held.GARBLER:
            outputs = yield from self._evaluate(circuit, batch, groups, mine)
        else:
            yield from send("ideal/inputs", {self.peer: _encode(mine.values())})
            payload = yield from receive("ideal/outputs", self.peer)
            outputs = _decode(payload, {name: (batch, g.count) for name, g in circuit.outputs.items()})
        other = To.EVALUATOR if self.role is Held.GARBLER else To.GARBLER
        kept = {name: g for name, g in circuit.outputs.items() if g.to is not other}
        return {name: self._carried(g, outputs[name]) for name, g in kept.items()}

    def run_all(self, asked: Sequence[Any]) -> Rounds[list[dict[str, Value]]]:
        outputs = []
        for each in asked:
            outputs.append((yield from self.run(*each)))
        return outputs

    def _evaluate(
        self, circuit: Circuit, batch: int, groups: Mapping[str, InputGroup], mine: Mapping[str, Values]
    ) -> Rounds[dict[str, Values]]:
        """Add up the inputs, evaluate, and send the evaluator its part of every output."""
        payload = yield from receive("ideal/inputs", self.peer)
        theirs = _decode(payload, {name: (batch, g.count) for name, g in groups.items()})
        outputs = evaluate(circuit, batch, {n: _joined(g, mine[n], theirs[n]) for n, g in groups.items()})
        kept = {n: self._part(circuit.outputs[n], v) for n, v in outputs.items()}
        yield from send(
            "ideal/outputs",
            {self.peer: _encode(_rest(circuit.outputs[n], v, kept[n]) for n, v in outputs.items())},
        )
        return kept

    def _summand(self, group: InputGroup, batch: int, given: Value | None) -> Values:
        """Our summand of what the group stands for."""
        shape = (batch, group.count)
        if group.held is Held.COINS:
            drawn = np.frombuffer(self.rng.bytes(8 * batch * group.count), dtype=np.uint64)
            return drawn.reshape(shape) & _mask(group.width)
        if given is None or (group.held is Held.PUBLIC and self.role is Held.EVALUATOR):
            return np.zeros(shape, dtype=np.uint64)
        return (given.values if isinstance(given, IdealCarried) else given).reshape(shape).astype(np.uint64)

    def _part(self, group: OutputGroup, values: Values) -> Values:
        """The garbler's part of an output."""
        if group.to in (To.XOR_SHARED, To.ADDITIVE_SHARED):
            drawn = np.frombuffer(self.rng.bytes(8 * values.size), dtype=np.uint64)
            return drawn.reshape(values.shape) & _mask(group.width)
        return values

    def _carried(self, group: OutputGroup, values: Values) -> Value:
        return IdealCarried(values.reshape(-1), group.width) if group.to is To.CARRIED else values


def ideal_sessions(seed: object = 0) -> tuple[IdealSession, IdealSession]:
    return (
        IdealSession(Held.GARBLER, "e", SeededRng((seed, "g"))),
        IdealSession(Held.EVALUATOR, "g", SeededRng((seed, "e"))),
    )


def unit_vectors(transfers: Transfers, counts: Mapping[int, int], rng: Rng) -> Rounds[dict[int, UnitVectors]]:
    """As :func:`crypto.point_function.unit_vectors`: the garbler draws all of both and sends the evaluator's part."""
    made = {}
    for bits, count in counts.items():
        made[bits] = yield from _of_one_size(transfers, bits, count, rng)
    return made


def _of_one_size(transfers: Transfers, bits: int, count: int, rng: Rng) -> Rounds[UnitVectors]:
    entries = 1 << bits
    if transfers.role is not Held.GARBLER:
        payload = yield from receive("ideal/unit_vectors", transfers.peer)
        words = np.frombuffer(payload, dtype=np.uint64).reshape(count, -1)
        return UnitVectors(bits, words[:, 0], words[:, 5:], Prepared(*words[:, 1:5].T))
    points, own = uniform_words(rng, 2 * count).reshape(2, count) & np.uint64(entries - 1)
    vectors = uniform_words(rng, count * entries // 64).reshape(count, -1)
    unit = np.zeros((count, entries), dtype=np.uint8)
    unit[np.arange(count), points.astype(np.int64)] = 1
    theirs = vectors ^ np.packbits(unit, axis=1, bitorder="little").view(np.uint64)
    (zero, one), (their_zero, their_one) = uniform_words(rng, 4 * count).reshape(2, 2, count)
    coin, their_coin = uniform_words(rng, 2 * count).reshape(2, count) & np.uint64(1)
    signs = their_zero, their_one, their_coin, np.where(their_coin == 1, one, zero)
    told = np.column_stack([(points - own) & np.uint64(entries - 1), *signs, theirs])
    yield from send("ideal/unit_vectors", {transfers.peer: told.tobytes()})
    chosen = np.where(coin == 1, their_one, their_zero)
    return UnitVectors(bits, own, vectors, Prepared(zero, one, coin, chosen))


class IdealLookUps:
    """As :class:`crypto.lookup.LookUps`: the evaluator sends its shares, and gets the answers but for a summand."""

    def __init__(self, role: Held, peer: str, rng: Rng) -> None:
        self.role = role
        self.peer = peer
        self._rng = rng
        self.bits = 0

    def start(self, *sizes: int) -> None:
        self.bits = max(sizes)

    def look_up(self, questions: Sequence[Question], width: int) -> Rounds[list[Words]]:
        sizes = [len(question) for question in questions]
        assert all(question.tables.size <= 1 << self.bits for question in questions)
        own = np.concatenate([question.shares for question in questions])
        if self.role is not Held.GARBLER:
            yield from send("ideal/look_up", {self.peer: encode_words(own)})
            told = decode_words((yield from receive("ideal/look_up", self.peer)), len(own), self.peer, "")
            return np.split(told, np.cumsum(sizes)[:-1])
        theirs = decode_words((yield from receive("ideal/look_up", self.peer)), len(own), self.peer, "")
        places = np.split(own + theirs, np.cumsum(sizes)[:-1])
        answers = [
            question.tables.words[question.of, (place & np.uint64(question.tables.size - 1)).astype(np.int64)]
            for question, place in zip(questions, places, strict=True)
        ]
        kept = [uniform_words(self._rng, n) & _mask(width) for n in sizes]
        rest = (np.concatenate(answers) - np.concatenate(kept)) & _mask(width)
        yield from send("ideal/look_up", {self.peer: encode_words(rest)})
        return kept


def _joined(group: InputGroup, x: Values, y: Values) -> Values:
    return (x ^ y if group.held in (Held.XOR_SHARED, Held.COINS) else x + y) & _mask(group.width)


def _rest(group: OutputGroup, values: Values, kept: Values) -> Values:
    """The evaluator's part of an output."""
    if group.to is To.XOR_SHARED:
        return values ^ kept
    if group.to is To.ADDITIVE_SHARED:
        return (values - kept) & _mask(group.width)
    return np.zeros_like(values) if group.to is To.CARRIED else values


def _mask(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _encode(arrays: Iterable[Values]) -> bytes:
    return b"".join(array.astype(np.uint64).tobytes() for array in arrays)


def _decode(payload: bytes, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Values]:
    ends = np.cumsum([rows * columns for rows, columns in shapes.values()], dtype=np.intp)
    parts = np.split(np.frombuffer(payload, dtype=np.uint64), ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def share_vector(me: str, pair: tuple[str, str], others: Sequence[str], words: Words) -> Rounds[Words | None]:
    """Additive shares of the sum of all vectors at the pair: all sent to the first, the second gets zeros."""
    if me != pair[0]:
        yield from send("ideal/share", {pair[0]: words.tobytes()})
        return np.zeros_like(words) if me == pair[1] else None
    inbox = yield Round("ideal/share", {}, frozenset(others))
    return words + sum(np.frombuffer(inbox[p], dtype=np.uint64) for p in others)


def oprf_receive(me: str, peer: str, own: Identifiers, rng: Rng) -> Rounds[Tags]:
    """The key in the clear."""
    key = yield from receive("ideal/oprf", peer)
    return _tags(key, own)


def oprf_send(me: str, peer: str, own: Identifiers, receivers: int, rng: Rng) -> Rounds[Tags]:
    key = rng.bytes(16)
    yield from send("ideal/oprf", {peer: key})
    return _tags(key, own)


def oprf_first(me: str, peer: str, own: Identifiers, theirs: int, rng: Rng) -> Rounds[list[Tags]]:
    key = rng.bytes(16)
    other = yield from exchange("ideal/oprf", peer, key)
    return [_tags(key, own), _tags(other, own)]


oprf_second = oprf_first


def _tags(key: bytes, own: Identifiers) -> Tags:
    hashes = b"".join(hashlib.sha256(key + words.tobytes()).digest()[:16] for words in own.hashed.words)
    return np.frombuffer(hashes, dtype="<u8").astype(np.uint64).reshape(-1, 2)
