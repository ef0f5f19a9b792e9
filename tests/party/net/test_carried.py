"""Carried links: four parties in memory, a and b the pair that carries; carriers that misbehave."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import party.net.mesh
from crypto.errors import RemoteProtocolError
from crypto.rng import SystemRng
from jobs.errors import PartyError, Problem, TransportError, problem_of
from party.net.carried import CARRIED, GONE, MOST_FRAMES, WINDOW, Carried
from party.net.control import PIECE_BYTES, Envelope
from party.net.link import MAX_MESSAGE_BYTES, Duplex
from party.net.mesh import Mesh
from party.net.wiring import Wiring
from party.owner.identity import Credentials, make_credentials
from party.owner.signing import Signer, der_of
from tests.support.duplex import KEY, MemoryDuplex, OnWay, pair, run

NAMES = ("a", "b", "c", "d", "e")
IDENTITIES = {name: make_credentials(name) for name in NAMES}
CERTIFICATES = {name: der_of(found.certificate) for name, found in IDENTITIES.items()}


def signer(name: str, credentials: Credentials | None = None) -> Signer:
    return Signer(name, credentials or IDENTITIES[name], CERTIFICATES)


def honest(envelope: Envelope) -> Iterable[Envelope]:
    return [envelope]


@dataclass
class _Dial:
    net: Net
    me: str

    def begin(self, peer: str, address: str) -> None:
        pass

    async def __call__(self, peer: str, address: str) -> Duplex:
        return await self.net.dialled(self.me, peer)

    async def close(self) -> None:
        pass


@dataclass
class Net:
    """Meshes of parties; ``on_way`` sees each envelope of a carrier's carriage, by carrier and party."""

    roster: tuple[str, ...] = NAMES[:4]
    on_way: Callable[[str, str, Envelope], Iterable[Envelope]] = lambda carrier, party, envelope: [envelope]
    signers: Mapping[str, Signer] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    called: list[tuple[str, str]] = field(default_factory=list)
    patience_s: float = 10

    def wiring(self, me: str) -> Wiring:
        return Wiring(me, self.roster, ("a", "b"))

    async def dialled(self, me: str, peer: str) -> Duplex:
        carriage = (me, peer) in self.called
        self.called.append((me, peer))
        meddled: OnWay = lambda envelope: self.on_way(me, peer, envelope)  # noqa: E731
        ours, theirs = pair(meddled if carriage else honest)
        asyncio.get_running_loop().create_task(self._accept(me, peer, theirs, carriage=carriage))
        return ours

    async def _accept(self, caller: str, peer: str, stream: MemoryDuplex, *, carriage: bool) -> None:
        assert await stream.read() is not None  # the server reads the hello
        self.meshes[peer].accept(caller, stream, carriage=carriage)

    async def connect(self, me: str) -> None:
        wiring, mesh = self.wiring(me), self.meshes[me]
        called = {peer: "there:1" for peer in wiring.direct if wiring.after(peer)}
        await mesh.connect(called, self.patience_s)
        await mesh.carry(wiring, called, self.signers.get(me, signer(me)), SystemRng(), self.patience_s)

    async def open(self) -> None:
        for me in self.roster:
            wiring, mesh = self.wiring(me), Mesh(me, KEY, _Dial(self, me), MAX_MESSAGE_BYTES)
            self.meshes[me] = mesh
            mesh.expect(
                [p for p in wiring.direct if not wiring.after(p)],
                [p for p in wiring.carriages if not wiring.after(p)],
            )

    async def close(self) -> None:
        await asyncio.gather(*(mesh.close() for mesh in self.meshes.values()))


def between(net: Net, work: Callable[[Net], Coroutine[Any, Any, Any]]) -> Any:
    async def scenario() -> Any:
        await net.open()
        try:
            await asyncio.gather(*(net.connect(me) for me in net.roster))
            return await work(net)
        finally:
            await net.close()

    return run(scenario())


async def heard(mesh: Mesh, peer: str, step: str) -> bytes:
    """Receive, unless a link breaks."""
    return await mesh.unless_broken(mesh.links[peer].receive(step))


def test_every_pair_of_parties_speaks() -> None:
    async def work(net: Net) -> None:
        for one, other in itertools.permutations(net.roster, 2):
            await net.meshes[one].links[other].send("x", f"{one} to {other}".encode())
        for one, other in itertools.permutations(net.roster, 2):
            assert await heard(net.meshes[other], one, "x") == f"{one} to {other}".encode()
        for one, other in itertools.combinations(net.roster, 2):
            ours, theirs = net.meshes[one].links[other], net.meshes[other].links[one]
            assert ours.transcript() == tuple(reversed(theirs.transcript()))
            assert ours.traffic.bytes_sent == len("a to b")
        for mesh in net.meshes.values():
            for link in mesh.links.values():
                await link.end()
        for one, other in itertools.permutations(net.roster, 2):
            assert await net.meshes[one].links[other].take() is None

    net = Net(NAMES)
    between(net, work)
    assert len(set(net.called)) == 2 * 3 + 1


def test_large_messages_pass_and_wait_for_who_reads_slowly() -> None:
    """c sends more than the window to d, which reads late; c and e speak meanwhile, through the same carrier. Each
    frame is a single envelope of its carriage: the carrier puts nothing together.
    """
    large = bytes(PIECE_BYTES * 4 * WINDOW + 17)
    frames: list[Envelope] = []

    def watch(carrier: str, party: str, envelope: Envelope) -> Iterable[Envelope]:
        frames.append(envelope)
        return [envelope]

    async def work(net: Net) -> None:
        sending = asyncio.create_task(net.meshes["c"].links["d"].send("x", large))
        for _ in range(3):
            await net.meshes["c"].links["e"].send("y", b"quick")
            assert await heard(net.meshes["e"], "c", "y") == b"quick"
        assert await heard(net.meshes["d"], "c", "x") == large
        await sending

    between(Net(NAMES, on_way=watch), work)
    assert all(frame.last and len(frame.payload) <= PIECE_BYTES for frame in frames)
    assert max(len(frame.payload) for frame in frames) > PIECE_BYTES - 1024


def test_nothing_of_a_message_is_seen_by_the_carrier() -> None:
    seen: list[bytes] = []

    def watch(carrier: str, party: str, envelope: Envelope) -> Iterable[Envelope]:
        seen.append(envelope.step.encode() + envelope.payload)
        return [envelope]

    async def work(net: Net) -> None:
        await net.meshes["c"].links["d"].send("secret/step", b"a secret")
        assert await heard(net.meshes["d"], "c", "secret/step") == b"a secret"

    between(Net(on_way=watch), work)
    assert seen
    assert not any(b"secret" in content for content in seen)


# ---- hostile carriers


class Numbered:
    """Numbers envelopes anew: a carrier has its own numbers right."""

    def __init__(self) -> None:
        self.next: dict[tuple[str, str], int] = {}

    def __call__(self, envelopes: Iterable[Envelope]) -> Iterable[Envelope]:
        found = []
        for envelope in envelopes:
            way = (envelope.sender, envelope.recipient)
            number = self.next.get(way, 0)
            self.next[way] = number + 1
            found.append(replace(envelope, sequence=number))
        return found


class Hostile:
    """Meddles with the frames of c to d that follow the keys, once ``begun``."""

    def __init__(self, how: Callable[[Hostile, Envelope], Iterable[Envelope]]) -> None:
        self.how = how
        self.n = 0
        self.held: list[Envelope] = []
        self.numbered = Numbered()

    def __call__(self, carrier: str, party: str, envelope: Envelope) -> Iterable[Envelope]:
        if party != "d" or envelope.step != f"{CARRIED}c":
            return self.numbered([envelope])
        self.n += 1
        return self.numbered([envelope] if self.n == 1 else self.how(self, envelope))


def changed(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [replace(e, payload=e.payload[:-1] + bytes((e.payload[-1] ^ 1,)))]


def replayed(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [e, e]


def reordered(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    meddler.held.append(e)
    return [] if len(meddler.held) == 1 else [e, meddler.held[0]]


def dropped_one(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [] if meddler.n == 2 else [e]


def shortened(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [replace(e, payload=b"")]


def made_up(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [replace(e, payload=bytes(40))]


def gone(meddler: Hostile, e: Envelope) -> Iterable[Envelope]:
    return [replace(e, step=f"{GONE}c", payload=b"")]


HOSTILE = {
    "changed": (changed, "peer-protocol", "c or b"),
    "replayed": (replayed, "peer-protocol", "c or b"),
    "reordered": (reordered, "peer-protocol", "c or b"),
    "dropped one": (dropped_one, "peer-protocol", "c or b"),
    "shortened": (shortened, "peer-protocol", "c or b"),
    "made up": (made_up, "peer-protocol", "c or b"),
    "said to be gone": (gone, "peer-lost", "c or b"),
    "for a stranger": (lambda _, e: [replace(e, step=f"{CARRIED}z")], "peer-protocol", "b"),
    "for ourselves": (lambda _, e: [replace(e, step=f"{CARRIED}d")], "peer-protocol", "b"),
    "of another step": (lambda _, e: [replace(e, step="x")], "peer-protocol", "b"),
    "too large": (lambda _, e: [replace(e, payload=bytes(PIECE_BYTES + 2000))], "peer-protocol", "b"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_carrier_ends_the_run(kind: str) -> None:
    how, error_id, named = HOSTILE[kind]

    async def work(net: Net) -> Problem:
        assert net.wiring("c").carrier("c", "d") == "b"
        for number in range(3):
            await net.meshes["c"].links["d"].send("x", bytes([number]))
        with pytest.raises((PartyError, RemoteProtocolError)) as caught:
            await all_heard(net.meshes["d"])
        return problem_of(caught.value)

    async def all_heard(mesh: Mesh) -> None:
        for number in range(4):
            assert await heard(mesh, "c", "x") == bytes([number])

    problem = between(Net(on_way=Hostile(how)), work)
    assert (problem.error_id, problem.party) == (error_id, named)


def test_a_carrier_that_stops_everything_is_named_with_the_silent_party() -> None:
    async def work(net: Net) -> str:
        await net.meshes["c"].links["d"].send("x", b"")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await heard(net.meshes["d"], "c", "x")
        return net.meshes["d"].links["c"].suspects

    assert between(Net(on_way=Hostile(lambda _, e: [])), work) == "c or b"


def test_messages_of_another_link_are_not_taken() -> None:
    """Frames for another party are not taken, even if the two carriers work together."""
    kept: list[bytes] = []

    def swap(carrier: str, party: str, envelope: Envelope) -> Iterable[Envelope]:
        if carrier == "a" and party == "e" and envelope.step == f"{CARRIED}c":
            kept.append(envelope.payload)
        return [envelope]

    swapped = Hostile(lambda _, e: [replace(e, payload=kept[-1])])

    def both(carrier: str, party: str, envelope: Envelope) -> Iterable[Envelope]:
        return swapped(carrier, party, envelope) if carrier == "b" else swap(carrier, party, envelope)

    async def work(net: Net) -> Problem:
        await net.meshes["c"].links["e"].send("x", b"for e")
        assert await heard(net.meshes["e"], "c", "x") == b"for e"
        await net.meshes["c"].links["d"].send("x", b"for d")
        with pytest.raises(RemoteProtocolError) as caught:
            await heard(net.meshes["d"], "c", "x")
        return problem_of(caught.value)

    problem = between(Net(NAMES, on_way=both), work)
    assert problem.party == "c or b"


def test_a_carrier_cannot_put_in_a_key_of_its_own() -> None:
    """The whole of a man in the middle: the key that d receives is signed, but by the carrier."""
    mallory = make_credentials("c")

    async def scenario() -> Problem:
        net = Net(signers={"c": signer("c", mallory)})
        await net.open()
        try:
            with pytest.raises((PartyError, RemoteProtocolError)) as caught:
                await asyncio.gather(*(net.connect(me) for me in net.roster))
            return problem_of(caught.value)
        finally:
            await net.close()

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-protocol", "c or b")
    assert "a key that c has not signed for this run" in problem.message


def test_a_party_that_is_not_there_is_named_with_its_carrier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.net.mesh, "_MARGIN_S", 0.0)

    def drop(carrier: str, recipient: str, envelope: Envelope) -> Iterable[Envelope]:
        return [] if envelope.step.startswith(CARRIED) else [envelope]

    async def scenario() -> Problem:
        net = Net(on_way=drop, patience_s=0.2)
        await net.open()
        try:
            with pytest.raises(PartyError) as caught:
                await asyncio.gather(*(net.connect(me) for me in net.roster))
            return caught.value.problem
        finally:
            await net.close()

    problem = run(scenario())
    assert (problem.error_id, problem.party) in [
        ("peer-unreachable", "c or b"),
        ("peer-unreachable", "d or b"),
    ]


def test_who_is_lost_is_told_to_the_parties_that_it_was_carried_to() -> None:
    async def work(net: Net) -> Problem:
        await net.meshes["c"].close()
        with pytest.raises(TransportError) as caught:
            await net.meshes["d"].links["c"].take()
        return caught.value.problem

    assert between(Net(), work).party == "c or b"


# ---- hostile ends


def ends(key: Any = KEY) -> tuple[Carried, Carried, list[bytes]]:
    """Both ends of a carried link, and what goes from c to d."""
    sent: list[bytes] = []
    both: dict[str, Carried] = {}

    def to_d(frame: bytes) -> None:
        sent.append(frame)
        both["d"].deliver(frame)

    both["c"] = Carried("c", "d", "b", KEY, to_d, lambda: None)
    both["d"] = Carried("d", "c", "b", key, lambda frame: both["c"].deliver(frame), lambda: None)
    return both["c"], both["d"], sent


async def agreed(c: Carried, d: Carried) -> None:
    await asyncio.gather(c.agree(signer("c"), SystemRng()), d.agree(signer("d"), SystemRng()))


def envelope(sequence: int = 0) -> Envelope:
    return Envelope(KEY.job, KEY.run, "c", "d", sequence, "x", b"payload", last=True)


def test_a_window_holds_back_who_sends() -> None:
    async def scenario() -> None:
        c, d, _ = ends()
        await agreed(c, d)
        for number in range(WINDOW):
            await c.write(envelope(number))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await c.write(envelope(WINDOW))
        for number in range(WINDOW // 2):
            assert await d.read() == envelope(number)
        await c.write(envelope(WINDOW))

    run(scenario())


def test_a_peer_that_ignores_the_window_is_named_alone() -> None:
    async def scenario() -> str:
        c, d, _ = ends()
        await agreed(c, d)
        c._free = 10 * WINDOW
        for number in range(WINDOW + 1):
            await c.write(envelope(number))
        for _ in range(WINDOW):
            await d.read()
        with pytest.raises(RemoteProtocolError) as caught:
            await d.read()
        return caught.value.culprit

    assert run(scenario()) == "c"


@pytest.mark.parametrize("content", [b"\x07", b"\x01\xff", b"\x00", b"\x00" + bytes(9) + b"\x01\xff", b""])
def test_a_malformed_message_is_the_peers_fault(content: bytes) -> None:
    async def scenario() -> str:
        c, d, _ = ends()
        await agreed(c, d)
        c._send(content)
        with pytest.raises(RemoteProtocolError) as caught:
            await d.read()
        return caught.value.culprit

    assert run(scenario()) == "c"


def test_frames_before_the_key_are_bounded() -> None:
    async def scenario() -> str:
        d = ends()[1]
        for _ in range(MOST_FRAMES + 2):
            d.deliver(b"x")
        with pytest.raises(RemoteProtocolError) as caught:
            await d.read()
        return caught.value.culprit

    assert run(scenario()) == "c or b"


def test_keys_of_another_run_do_not_fit() -> None:
    async def scenario() -> str:
        c, d, _ = ends(replace(KEY, run=b"s" * 16))
        with pytest.raises(RemoteProtocolError) as caught:
            await agreed(c, d)
        return caught.value.culprit

    assert run(scenario()) in {"c or b", "d or b"}


def test_each_direction_has_its_own_key() -> None:
    """A message sent back to its sender is not taken for one of the peer."""

    async def scenario() -> None:
        c, d, sent = ends()
        await agreed(c, d)
        await c.write(envelope())
        c.deliver(sent[-1])
        with pytest.raises(RemoteProtocolError):
            await c.read()

    run(scenario())
