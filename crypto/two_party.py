"""Two-party computation of circuits: a garbler and an evaluator, garbling plus oblivious transfer.

A session serves a pair of parties for a job. :func:`open_garbler` and :func:`open_evaluator` run the base transfers
once. Then ``session.run(circuit, batch, inputs)`` evaluates any number of circuits, each on any number of
instances. The circuit alone decides the inputs and outputs of each side:

=================  =======================================  ==============================================
input held         the garbler passes                       the evaluator passes
=================  =======================================  ==============================================
GARBLER            the values                               nothing
EVALUATOR          nothing                                  the values
PUBLIC             the values                               the same values
XOR_SHARED         its share                                its share
ADDITIVE_SHARED    its share modulo 2**width                its share modulo 2**width
CARRIED            words returned by an earlier run         words returned by an earlier run
COINS              nothing (drawn by the session)           nothing (drawn by the session)
=================  =======================================  ==============================================

Outputs are returned by name to their receivers; shares and carried words to both sides. Values are uint64 arrays of
shape (batch, count). Carried words stay labels of the session and cost nothing.

Both sides must run the same circuits in the same order. The first message of every run opens with a digest of
session, run number, circuit, batch, public inputs and the origin of carried words. The digest is compared before
anything else, and a run with different digests ends. If the circuit has choices of the evaluator, the evaluator
opens, before any table or decoding bit is sent. Otherwise the garbler opens, and its first table (or, if the
circuit has no AND gates, the decoding bits of its first chunk) comes with the digest. An evaluator of a different
run has received these bits, and refuses them unread.

Semi-honest means here: a party that sends wrong tables, labels or choices can make the peer's output wrong, and is
not always detected. Detected are a wrong length, step or run, and labels of garbler outputs that are no label of the
wire: by the garbler, and before that by the evaluator, who has a hash of both labels and returns no other. A bit
flipped inside a table makes the evaluator's labels of the gate's instance worthless, if the half is used at all:
where the evaluator refuses them, a garbler who bent the table learns the bit of the operand that uses the half. An
output for the evaluator alone may then be wrong.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from crypto.batch import (
    DIGEST_BYTES,
    CarriedWords,
    Inputs,
    Outputs,
    Results,
    Run,
    Turn,
    Value,
    lowest_bits,
    turns_of,
)
from crypto.blocks import pack_bits
from crypto.circuit import (
    Bits,
    Circuit,
    Held,
    InputGroup,
    Region,
    Rows,
    To,
    checked_values,
    values_of_bits,
)
from crypto.encoding import WORD, Words, decode_bits, decode_words, encode_bits, encode_words, expect_length
from crypto.errors import LocalProtocolError, RemoteProtocolError
from crypto.garbling import Evaluation, Garbling
from crypto.hashing import BlockHash, derive_key
from crypto.keystreams import stream_of
from crypto.ot.extension import OtReceiver, OtSender, parts, setup_receiver, setup_sender
from crypto.rng import Rng
from crypto.rounds import Rounds, receive, send

__all__ = [
    "Asked",
    "CarriedWords",
    "Computation",
    "EvaluatorSession",
    "GarblerSession",
    "Inputs",
    "Outputs",
    "Value",
    "open_evaluator",
    "open_garbler",
]

_CHOICES, _TABLES, _OUTPUTS = "two_party/choices", "two_party/tables", "two_party/outputs"
_NONE: Words = np.empty((0, 2), dtype=np.uint64)
_ZERO: Bits = np.zeros((1, 1), dtype=np.uint8)
_ONE = np.uint64(1)


Asked: TypeAlias = tuple[Circuit, int, Inputs]
"""A circuit, the number of instances, and our inputs."""


class Computation(Protocol):
    """Runner of circuits with a peer: the sessions here, and their ideal twins in the tests.

    role:  Held.GARBLER or Held.EVALUATOR, the holder of our private inputs.
    """

    peer: str
    role: Held

    def run(self, circuit: Circuit, batch: int, inputs: Inputs) -> Rounds[Outputs]:
        """Evaluate ``batch`` instances of the circuit."""
        ...

    def run_all(self, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        """Evaluate several independent batches; return the outputs of each batch."""
        ...


def open_garbler(me: str, peer: str, rng: Rng) -> Rounds[GarblerSession]:
    """Open a session in which ``me`` garbles; the peer calls :func:`open_evaluator`.

    Functionality:  base transfers for a session of :class:`GarblerSession` and :class:`EvaluatorSession`.
    Input:          none.
    Output:         the session.
    Leakage:        none.
    Rounds:         2 ("ot/base/offer" from the evaluator, "ot/base/answer" from the garbler).
    Bytes:          4,096 sent by the garbler, 32 by the evaluator.
    Assumes:        as :func:`crypto.ot.extension.setup_sender`. The coins of all runs of the session come
                    from ``rng``.
    Source:         as there; the offset Δ of the transfers is the garbler's free-XOR offset.

    Raises RemoteProtocolError for a malformed message of the peer.
    """
    ot = yield from setup_sender(me, peer, rng)
    return GarblerSession(ot, rng)


def open_evaluator(me: str, peer: str, rng: Rng) -> Rounds[EvaluatorSession]:
    """Open a session in which ``me`` evaluates; see :func:`open_garbler`."""
    ot = yield from setup_receiver(me, peer, rng)
    return EvaluatorSession(ot, rng)


class _Session(ABC):
    """The part common to both sides: the peer, keys, counters that must agree, and the checks before a run."""

    _passed: frozenset[Held]

    def __init__(self, peer: str, session_key: bytes, rng: Rng) -> None:
        self.peer = peer
        self._key = session_key
        self._rng = rng
        self._runs = 0
        self._words = 0
        self._usable = True
        self._proof_key = self._share_key = b""  # of the current chunk

    def __repr__(self) -> str:
        return f"{type(self).__name__}(peer={self.peer!r}, <secret>)"

    def run(self, circuit: Circuit, batch: int, inputs: Inputs) -> Rounds[Outputs]:
        """Evaluate ``batch`` instances of a circuit; see :meth:`GarblerSession.run_all`."""
        (outputs,) = yield from self.run_all([(circuit, batch, inputs)])
        return outputs

    def run_all(self, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        """Evaluate several batches side by side; see :meth:`GarblerSession.run_all`."""
        runs = self._enter(asked)
        results = yield from self._rounds(runs)
        self._usable = True
        return [each.ordered(self._carry(each.labels)) for each in results]

    @abstractmethod
    def _rounds(self, runs: Sequence[Run]) -> Rounds[list[Results]]:
        """Run our side."""

    def _enter(self, asked: Sequence[Asked]) -> list[Run]:
        """Check the caller's arguments. From here on the session belongs to these runs until they end well."""
        if not self._usable:
            raise LocalProtocolError("a run of the session is not finished, or broke off: open a new session")
        checked = [
            (circuit, batch, self._fitting(circuit, batch, inputs)) for circuit, batch, inputs in asked
        ]
        self._usable = False
        runs = []
        for circuit, batch, inputs in checked:
            self._runs += 1
            runs.append(Run(circuit, batch, inputs, self._digest(circuit, batch, inputs)))
        return runs

    def _fitting(self, circuit: Circuit, batch: int, inputs: Inputs) -> dict[str, Value]:
        """Check and return our inputs for the circuit."""
        groups = {name: g for name, g in circuit.inputs.items() if g.held in self._passed}
        if batch < 0 or inputs.keys() != groups.keys():
            raise LocalProtocolError(
                f"{circuit.name}: a batch of {batch} with inputs {sorted(inputs)}; "
                f"this side passes {sorted(groups)}"
            )
        return {name: self._checked(circuit, g, batch, inputs[name]) for name, g in groups.items()}

    def _checked(self, circuit: Circuit, group: InputGroup, batch: int, value: Value) -> Value:
        if (group.held is Held.CARRIED) != isinstance(value, CarriedWords):
            raise LocalProtocolError(f"{circuit.name}: input {group.name} is held as {group.held.value}")
        if not isinstance(value, CarriedWords):
            return checked_values(circuit, group, value, batch)
        given, expected = (len(value), value.width), (batch * group.count, group.width)
        if given != expected or value.session is not self:
            raise LocalProtocolError(
                f"{circuit.name}: input {group.name} needs {expected[0]} words of {expected[1]} bits of this "
                f"session, not {given[0]} of {given[1]}"
            )
        return value

    def _digest(self, circuit: Circuit, batch: int, inputs: Inputs) -> bytes:
        """Return the digest of all inputs on which both sides must agree before anything is sent."""
        h = hashlib.sha256(b"jointcut/two_party" + self._key + circuit.digest)
        h.update(self._runs.to_bytes(8, "little") + batch.to_bytes(8, "little"))
        for name, group in circuit.inputs.items():
            value = inputs.get(name)
            if isinstance(value, CarriedWords):
                h.update(encode_words(value.ids))
            elif group.held is Held.PUBLIC and value is not None:
                h.update(encode_words(value))
        return h.digest()[:DIGEST_BYTES]

    def _coins(self, bits: int, n: int) -> Bits:
        """Draw uniform rows of bits; uint8, shape (bits, n)."""
        octets = np.frombuffer(self._rng.bytes((bits * n + 7) // 8), dtype=np.uint8)
        return np.unpackbits(octets, count=bits * n, bitorder="little").reshape(bits, n)

    def _hashed(self, labels: Words) -> Words:
        """Return 64 bits of a hash of each output label of the chunk; shape (rows, n, 2) becomes (rows, n)."""
        rows, n, _ = labels.shape
        if not n:
            return np.empty((rows, 0), dtype=np.uint64)
        hashing = BlockHash(self._proof_key, rows * n)
        return hashing.hash(labels.reshape(rows, 2 * n))[:, 0::2]

    def _share_bits(self, run: Run, half: Garbling | Evaluation) -> Bits:
        """Return XOR shares: the lowest bits of the two sides' labels, which differ if the wire is 1.

        Labels of inputs, and sums of them, have lowest bits that are a side's inputs. Coins that both sides draw from
        a common seed make each share uniform to all others.
        """
        bits = lowest_bits(half.labels[run.shared.rows])
        coins = np.frombuffer(stream_of(self._share_key).update(bytes((bits.size + 7) // 8)), dtype=np.uint8)
        return bits ^ np.unpackbits(coins, count=bits.size, bitorder="little").reshape(bits.shape)

    def _carry(self, labels: Mapping[str, Words]) -> dict[str, Value]:
        """Make labels available to later runs."""
        carried: dict[str, Value] = {}
        for name, words in labels.items():
            ids = np.arange(self._words, self._words + words.shape[1], dtype=np.uint64)
            self._words += words.shape[1]
            carried[name] = CarriedWords(self, words, ids)
        return carried


class GarblerSession(_Session):
    """The garbler's side of a session: Δ, and the sender's end of the transfers.

    Several may share the transfers of one pair: chunks are numbered there, so no key or label is used twice.
    """

    role = Held.GARBLER
    _passed = frozenset({Held.GARBLER, Held.PUBLIC, Held.XOR_SHARED, Held.ADDITIVE_SHARED, Held.CARRIED})

    def __init__(self, ot: OtSender, rng: Rng) -> None:
        super().__init__(ot.peer, ot.session_key, rng)
        self._ot = ot

    @property
    def transfers(self) -> OtSender:
        """Our end of the pair's transfers, for further uses."""
        return self._ot

    def run_all(self, asked: Sequence[Asked]) -> Rounds[list[Outputs]]:
        """Evaluate batches of circuits together with the evaluator, who sends the choices for all batches at once.

        Functionality:  the circuits, on the values of both sides' inputs.
        Input:          see the module; circuits, batches and public inputs are public and equal. No batch takes
                        outputs of a batch of the same call.
        Output:         each side, for every batch: its output groups, as values; its shares; its carried words.
        Leakage:        circuits, batches; the outputs.
        Rounds:         1 ("two_party/choices") if a circuit has evaluator, shared or coin inputs, + 1
                        ("two_party/tables") unless there is nothing to send, + 1 ("two_party/outputs") if the
                        garbler gets outputs. Large batches go in chunks of instances, at most LOOKAHEAD chunks
                        under way: the first two then come once for each chunk
                        (:func:`crypto.batch.more_rounds`).
        Bytes:          of every batch, sent by the garbler: for every chunk of n instances, 32 * n for every
                        AND gate, half of it if a side knows an operand, ceil(bits * n / 8) for output bits that
                        the evaluator decodes (outputs for the evaluator, for both, and additive shares), and
                        16 * n for every output bit of the garbler, by which the evaluator checks its label. Sent
                        by the evaluator: the transfers of every chunk, as
                        :func:`crypto.ot.extension.correlated_send` without its 24 bytes; 8 * n for every output
                        bit of the garbler. 16 by the side that speaks first: the evaluator if the circuit has
                        choices of the evaluator, else the garbler.
        Assumes:        semi-honest parties; private authenticated channels; AES-128 an ideal cipher, a PRG. An
                        evaluator that deviates in the transfers is stopped as stated there.
        Source:         Yao's protocol (Lindell, Pinkas, J. Cryptology 2009, protocol 5) with half-gates (Zahur
                        et al. 2015) and correlated transfers as evaluator labels.

        Raises LocalProtocolError for inputs that do not fit the circuit or a session that broke off, before
        anything is sent; RemoteProtocolError for a peer that runs something else, for a message of a wrong length,
        and for labels of no wire (on either side).
        """
        return (yield from super().run_all(asked))

    def _rounds(self, runs: Sequence[Run]) -> Rounds[list[Results]]:
        results = [Results(run, (To.GARBLER, To.BOTH, To.XOR_SHARED, To.ADDITIVE_SHARED)) for run in runs]
        awaited: deque[tuple[Turn, Words]] = deque()
        garbling: Garbling | None = None
        for place, turn in enumerate(turns_of(runs)):
            while place - len(awaited) < turn.after:
                yield from self._receive_outputs(runs, *awaited.popleft(), results)
            run, zero = runs[turn.run], _NONE
            if turn.chunk is None:
                yield from _run_nothing(run, self.peer, opens=not run.evaluator_opens)
            else:
                garbling = self._prepare(run, turn.chunk, garbling)
                yield from self._garble(run, turn.chunk, garbling, results[turn.run])
                zero = garbling.labels[run.returned.rows, 1::2]
            awaited.append((turn, zero))
        while awaited:
            yield from self._receive_outputs(runs, *awaited.popleft(), results)
        return results

    def _garble(self, run: Run, chunk: slice, garbling: Garbling, results: Results) -> Rounds[None]:
        yield from self._receive_choices(run, chunk, garbling)
        self._fill_own(run, chunk, garbling, results)
        yield from self._send_tables(run, chunk, garbling)
        bits = self._share_bits(run, garbling)
        results.put(run.shared, bits ^ run.shared.inverted, chunk)
        results.put_carried(garbling.labels, chunk, self._ot.delta)

    def _prepare(self, run: Run, chunk: slice, garbling: Garbling | None) -> Garbling:
        """Prepare working memory for a chunk, under a fresh key, and draw the garbler's input labels."""
        number, n = self._ot.next_number(), chunk.stop - chunk.start
        key = derive_key(self._key, b"two_party/gates", number)
        self._proof_key = derive_key(self._key, b"two_party/outputs", number)
        self._share_key = derive_key(self._key, b"two_party/shares", number)
        if garbling is None or garbling.n != n or garbling.circuit is not run.circuit:
            garbling = Garbling(run.circuit, n, self._ot.delta, key)
        else:
            garbling.rekey(key)
        _draw_labels(derive_key(self._key, b"two_party/labels", number), run.circuit, garbling)
        run.fill_shared(chunk, garbling)
        return garbling

    def _receive_choices(self, run: Run, chunk: slice, garbling: Garbling) -> Rounds[None]:
        """Turn the evaluator's choices into zero labels."""
        labels = garbling.labels[run.circuit.region(Region.EVALUATOR)].reshape(-1, 2)
        opens = chunk.start == 0
        for part in parts(len(labels)):
            payload = yield from receive(_CHOICES, self.peer)
            if opens and part.start == 0:
                payload = _expect_digest(payload, run.digest, self.peer, _CHOICES)
            labels[part] = self._ot.extend(payload, part.stop - part.start, _CHOICES)
        for group in run.known_to_evaluator:
            _colour(garbling.labels[group.rows(Region.EVALUATOR)], _ZERO)

    def _fill_own(self, run: Run, chunk: slice, garbling: Garbling, results: Results) -> None:
        """Adjust the drawn labels to our own bits: where the bit is 1, the opposite label is the zero label."""
        for group in run.circuit.inputs.values():
            region = Region.GARBLER if Region.GARBLER in group.first_rows else Region.EVALUATOR
            if group.held in (Held.GARBLER, Held.XOR_SHARED, Held.ADDITIVE_SHARED):
                bits = run.bits(group.name, chunk)
            elif group.held in (Held.COINS, Held.MASK):
                bits = self._coins(group.bits, garbling.n)
            else:
                continue
            _flip(garbling.labels[group.rows(region)], bits, self._ot.delta)
            if group.held is Held.MASK:
                results.values[_masked_by(run.circuit, group)][chunk] = values_of_bits(bits, group.width)

    def _send_tables(self, run: Run, chunk: slice, garbling: Garbling) -> Rounds[None]:
        messages = run.table_messages(garbling, chunk.start == 0)
        for (digest, size, decoding), table in zip(messages, garbling.tables(), strict=True):
            payload = run.digest[:digest] + table.tobytes()
            if decoding:
                payload += encode_bits(
                    (lowest_bits(garbling.labels[run.decoded.rows]) ^ run.decoded.inverted).ravel()
                )
                payload += self._proof(run, garbling)
            if digest + size + decoding:
                yield from send(_TABLES, {self.peer: payload})

    def _proof(self, run: Run, garbling: Garbling) -> bytes:
        """Return a hash of both labels of every wire whose label comes back, the label with lowest bit 0 first."""
        first = garbling.labels[run.returned.rows]
        _flip(first, lowest_bits(first), self._ot.delta)
        first = first.reshape(-1, 2)
        return encode_words(self._hashed(np.stack([first, first ^ self._ot.delta])).T)

    def _receive_outputs(
        self, runs: Sequence[Run], turn: Turn, zero: Words, results: Sequence[Results]
    ) -> Rounds[None]:
        """Read output bits off the high words of the evaluator's labels; zero: ours for 0."""
        if turn.chunk is None or not len(zero):
            return
        payload = yield from receive(_OUTPUTS, self.peer)
        active = decode_words(payload, zero.size, self.peer, _OUTPUTS).reshape(zero.shape)
        difference = active ^ zero
        bits = (difference != 0).astype(np.uint8)
        if (difference[bits == 1] != self._ot.delta[1]).any():
            raise RemoteProtocolError(
                self.peer, _OUTPUTS, "an output label differs from both labels of the wire"
            )
        returned = runs[turn.run].returned
        results[turn.run].put(returned, bits ^ returned.inverted, turn.chunk)


class EvaluatorSession(_Session):
    """The evaluator's side of a session: the receiver's end of the transfers."""

    role = Held.EVALUATOR
    _passed = frozenset({Held.EVALUATOR, Held.PUBLIC, Held.XOR_SHARED, Held.ADDITIVE_SHARED, Held.CARRIED})

    def __init__(self, ot: OtReceiver, rng: Rng) -> None:
        super().__init__(ot.peer, ot.session_key, rng)
        self._ot = ot

    @property
    def transfers(self) -> OtReceiver:
        """Our end of the pair's transfers, for further uses."""
        return self._ot

    def _rounds(self, runs: Sequence[Run]) -> Rounds[list[Results]]:
        results = [Results(run, (To.EVALUATOR, To.BOTH, To.XOR_SHARED, To.ADDITIVE_SHARED)) for run in runs]
        chosen: deque[Words] = deque()
        evaluation: Evaluation | None = None
        ahead = deque(turns := turns_of(runs))
        for place, turn in enumerate(turns):
            while ahead and ahead[0].after <= place:
                chosen.append((yield from self._choose(runs, ahead.popleft())))
            run, labels = runs[turn.run], chosen.popleft()
            if turn.chunk is None:
                if not run.evaluator_opens:
                    yield from _run_nothing(run, self.peer, opens=False)
                continue
            evaluation = self._prepare(run, turn.chunk, evaluation, labels)
            yield from self._evaluate(run, turn.chunk, evaluation, results[turn.run])
        return results

    def _choose(self, runs: Sequence[Run], turn: Turn) -> Rounds[Words]:
        """Choose the labels of our bits of a turn, if there are bits."""
        run = runs[turn.run]
        if turn.chunk is not None:
            return (yield from self._send_choices(run, turn.chunk))
        if run.evaluator_opens:
            yield from _run_nothing(run, self.peer, opens=True)
        return _NONE

    def _evaluate(self, run: Run, chunk: slice, evaluation: Evaluation, results: Results) -> Rounds[None]:
        yield from self._receive_tables(run, chunk, evaluation, results)
        results.put(run.shared, self._share_bits(run, evaluation), chunk)
        results.put_carried(evaluation.labels, chunk, None)
        if len(run.returned.rows):
            payload = encode_words(evaluation.labels[run.returned.rows, 1::2])
            yield from send(_OUTPUTS, {self.peer: payload})

    def _send_choices(self, run: Run, chunk: slice) -> Rounds[Words]:
        """Choose the labels of our bits; uint64, shape (bits * n, 2)."""
        rows = [np.empty((0, chunk.stop - chunk.start), dtype=np.uint8)]
        for group in run.groups(Region.EVALUATOR):
            coins = group.held is Held.COINS
            n = chunk.stop - chunk.start
            rows.append(self._coins(group.bits, n) if coins else run.bits(group.name, chunk))
        choices = np.concatenate(rows).reshape(-1)
        labels = np.empty((len(choices), 2), dtype=np.uint64)
        for part in parts(len(choices)):
            payload, labels[part] = self._ot.extend(pack_bits(choices[part]), part.stop - part.start)
            opens = chunk.start == 0 and part.start == 0
            yield from send(_CHOICES, {self.peer: run.digest + payload if opens else payload})
        return labels

    def _prepare(self, run: Run, chunk: slice, evaluation: Evaluation | None, chosen: Words) -> Evaluation:
        """Prepare working memory for a chunk, with all input labels in place."""
        number, n = self._ot.next_number(), chunk.stop - chunk.start
        key = derive_key(self._key, b"two_party/gates", number)
        self._proof_key = derive_key(self._key, b"two_party/outputs", number)
        self._share_key = derive_key(self._key, b"two_party/shares", number)
        if evaluation is None or evaluation.n != n or evaluation.circuit is not run.circuit:
            evaluation = Evaluation(run.circuit, n, key)
        else:
            evaluation.rekey(key)
        _draw_labels(derive_key(self._key, b"two_party/labels", number), run.circuit, evaluation)
        evaluation.labels[run.circuit.region(Region.EVALUATOR)] = chosen.reshape(-1, 2 * n)
        for group in run.known_to_evaluator:
            _colour(evaluation.labels[group.rows(Region.EVALUATOR)], run.bits(group.name, chunk))
        run.fill_shared(chunk, evaluation)
        return evaluation

    def _receive_tables(
        self, run: Run, chunk: slice, evaluation: Evaluation, results: Results
    ) -> Rounds[None]:
        evaluation.begin()
        messages = run.table_messages(evaluation, chunk.start == 0)
        for (digest, size, decoding), piece in zip(messages, evaluation.pieces, strict=True):
            payload = b""
            if digest + size + decoding:
                payload = yield from receive(_TABLES, self.peer)
                if digest:
                    payload = _expect_digest(payload, run.digest, self.peer, _TABLES)
                expect_length(payload, size + decoding, self.peer, _TABLES)
            evaluation.feed(piece, np.frombuffer(payload, dtype="<u8", count=size // WORD))
            if decoding:
                proof = size + run.decoding_bytes(evaluation.n)
                self._check(run, payload[proof:], evaluation)
                self._decode(run, payload[size:proof], chunk, evaluation, results)

    def _check(self, run: Run, payload: bytes, evaluation: Evaluation) -> None:
        """Require that every label that goes back is one of two that the garbler knew before.

        A label of a bent table depends on more of our bits than the output.
        """
        rows = evaluation.labels[run.returned.rows]
        bits, labels = lowest_bits(rows).reshape(-1), rows.reshape(1, -1, 2)
        proof = decode_words(payload, 2 * len(bits), self.peer, _TABLES).reshape(-1, 2)
        if (self._hashed(labels)[0] != proof[np.arange(len(bits)), bits]).any():
            raise RemoteProtocolError(self.peer, _TABLES, "an output label is neither label of the wire")

    def _decode(
        self, run: Run, payload: bytes, chunk: slice, evaluation: Evaluation, results: Results
    ) -> None:
        """Read output bits off the lowest bits of our labels and the garbler's."""
        shape = (len(run.decoded.rows), evaluation.n)
        zero = decode_bits(payload, shape[0] * shape[1], self.peer, _TABLES).reshape(shape)
        results.put(run.decoded, lowest_bits(evaluation.labels[run.decoded.rows]) ^ zero, chunk)


def expect_outcome(number: int, bound: int, peer: str) -> int:
    """Return an opened number, which is below ``bound`` in every honest run with ``peer``.

    Raises RemoteProtocolError for larger numbers: bent tables give wrong outcomes, which labels alone do not show.
    """
    if not 0 <= number < bound:
        raise RemoteProtocolError(peer, _OUTPUTS, "an outcome is impossible in an honest run")
    return number


def _run_nothing(run: Run, peer: str, *, opens: bool) -> Rounds[None]:
    """Run an empty batch: the digest of one side replaces the circuit's first message."""
    step = _CHOICES if run.evaluator_opens else _TABLES
    if opens:
        yield from send(step, {peer: run.digest})
    else:
        payload = yield from receive(step, peer)
        expect_length(_expect_digest(payload, run.digest, peer, step), 0, peer, step)


def _expect_digest(payload: bytes, digest: bytes, peer: str, step: str) -> bytes:
    """Check that a message opens the current run; return the rest of the message."""
    if payload[:DIGEST_BYTES] != digest:
        raise RemoteProtocolError(
            peer, step, "another run: session, circuit, batch, public inputs or carried words differ"
        )
    return payload[DIGEST_BYTES:]


def _draw_labels(seed: bytes, circuit: Circuit, half: Garbling | Evaluation) -> None:
    """Fill the rows of the garbler's inputs with labels that both sides draw from a common seed: 0 bytes.

    The evaluator's active labels have lowest bit 0, for whatever bit.
    """
    rows = half.labels[circuit.region(Region.GARBLER)]
    stream = stream_of(seed)
    if rows.size:
        stream.update_into(bytes(rows.nbytes), rows.data.cast("B"))
        _colour(rows, _ZERO)


def _colour(rows: Rows, bits: Bits) -> None:
    """Set the lowest bit of every label; bits: uint8, shape (rows, n) or one for all."""
    rows[:, 0::2] = (rows[:, 0::2] & ~_ONE) | bits


def _flip(rows: Rows, bits: Bits, delta: Words) -> None:
    """Add Δ to the labels whose bit is 1."""
    masks = np.uint64(0) - bits.astype(np.uint64)
    rows[:, 0::2] ^= masks & delta[0]
    rows[:, 1::2] ^= masks & delta[1]


def _masked_by(circuit: Circuit, mask: InputGroup) -> str:
    """Return the name of the additive output behind a mask."""
    return next(g.name for g in circuit.outputs.values() if g.mask == mask.name)
