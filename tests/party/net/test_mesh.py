"""The streams of one run: called or awaited, one for each peer, and ended whatever became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import party.net.mesh
from jobs.errors import PartyError, Problem, TransportError
from party.net.control import Envelope
from party.net.link import ABORT, HELLO, MAX_MESSAGE_BYTES, Duplex
from party.net.mesh import Mesh
from tests.support.duplex import KEY, MemoryDuplex, ScriptedDuplex, pair, run


class Dialled:
    """Gives the stream to a peer that is written here; notes whom it called where."""

    def __init__(self, **streams: Duplex) -> None:
        self.streams = streams
        self.begun: list[tuple[str, str]] = []
        self.called: list[tuple[str, str]] = []
        self.closed = False

    def begin(self, peer: str, address: str) -> None:
        self.begun.append((peer, address))

    async def __call__(self, peer: str, address: str) -> Duplex:
        self.called.append((peer, address))
        if peer not in self.streams:
            raise TransportError("peer-unreachable", f"{peer} is not there", party=peer)
        return self.streams[peer]

    async def close(self) -> None:
        self.closed = True


class Nobody(Dialled):
    async def __call__(self, peer: str, address: str) -> Duplex:
        raise AssertionError("nobody is called")


nobody = Nobody()


def meshes() -> tuple[Mesh, Mesh, MemoryDuplex]:
    """a calls b; the stream that b is to accept."""
    ours, theirs = pair()
    return (
        Mesh("a", KEY, Dialled(b=ours), MAX_MESSAGE_BYTES),
        Mesh("b", KEY, nobody, MAX_MESSAGE_BYTES),
        theirs,
    )


async def greeting(stream: MemoryDuplex) -> Envelope:
    """Return the envelope that b's server reads before it hands the stream on."""
    hello = await stream.read()
    assert hello is not None
    return hello


def test_one_calls_and_the_other_accepts() -> None:
    async def scenario() -> None:
        a, b, stream = meshes()
        a.expect([])
        b.expect(["a"])

        async def answered() -> None:
            hello = await greeting(stream)
            assert (hello.step, hello.sender, hello.job, hello.run) == (HELLO, "a", KEY.job, KEY.run)
            b.accept("a", stream)

        await asyncio.gather(a.connect({"b": "there:1"}, 1), b.connect({}, 1), answered())
        await a.links["b"].send("x", b"to b")
        await b.links["a"].send("x", b"to a")
        assert await b.links["a"].receive("x") == b"to b"
        assert await a.links["b"].receive("x") == b"to a"
        await asyncio.gather(a.close(), b.close())

    run(scenario())


def test_each_peer_is_called_where_it_is() -> None:
    async def scenario() -> None:
        dial = Dialled(b=ScriptedDuplex([], gone=False), c=ScriptedDuplex([], gone=False))
        mesh = Mesh("a", KEY, dial, MAX_MESSAGE_BYTES)
        await mesh.connect({"b": "there:1", "c": "elsewhere:2"}, 1)
        assert sorted(dial.called) == [("b", "there:1"), ("c", "elsewhere:2")]
        assert set(mesh.links) == {"b", "c"}
        await mesh.close()

    run(scenario())


def test_a_hello_waits_for_no_other_peer() -> None:
    """Of n parties the last would otherwise be greeted after n - 1 hellos, one after the other."""

    async def scenario() -> Envelope:
        called = ScriptedDuplex([], gone=False)
        mesh = Mesh("b", KEY, Dialled(c=called), MAX_MESSAGE_BYTES)
        mesh.expect(["a"])
        connecting = asyncio.create_task(mesh.connect({"c": "there:1"}, 1000))
        while not called.heard:
            await asyncio.sleep(0)
        assert not connecting.done()  # a has not called
        mesh.accept("a", ScriptedDuplex([], gone=False))
        await connecting
        await mesh.close()
        return called.heard[0]

    hello = run(scenario())
    assert (hello.step, hello.recipient) == (HELLO, "c")


@pytest.mark.parametrize("before", ["never expected", "of somebody else", "a second time"])
def test_a_stream_that_is_not_due_is_refused(before: str) -> None:
    async def scenario() -> Problem:
        mesh = Mesh("b", KEY, nobody, MAX_MESSAGE_BYTES)
        mesh.expect({"never expected": [], "of somebody else": ["c"], "a second time": ["a"]}[before])
        if before == "a second time":
            mesh.accept("a", ScriptedDuplex([]))
        with pytest.raises(PartyError) as caught:
            mesh.accept("a", ScriptedDuplex([]))
        await mesh.close()
        return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-protocol", "a")
    assert "out of turn" in problem.message


def test_a_peer_that_does_not_call_is_waited_for_as_long_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party.net.mesh, "_MARGIN_S", 0.0)

    async def scenario() -> Problem:
        mesh = Mesh("b", KEY, nobody, MAX_MESSAGE_BYTES)
        mesh.expect(["a"])
        with pytest.raises(TransportError) as caught:
            await mesh.connect({}, 0.01)
        await mesh.close()
        return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-unreachable", "a")
    assert problem.message == "a did not connect to b"


def test_a_peer_that_is_not_reached_ends_the_waiting_for_others() -> None:
    """The one who waits longest is not the one who tells."""

    async def scenario() -> Problem:
        mesh = Mesh("b", KEY, Dialled(), MAX_MESSAGE_BYTES)
        mesh.expect(["a"])
        with pytest.raises(TransportError) as caught:
            await mesh.connect({"c": "nowhere:1"}, 1000)
        await mesh.close()
        return caught.value.problem

    assert run(scenario()).party == "c"


def test_work_ends_when_a_link_breaks() -> None:
    """b is gone while we wait for nothing of it."""

    async def scenario() -> Problem:
        mesh = Mesh("a", KEY, Dialled(b=ScriptedDuplex([], gone=True)), MAX_MESSAGE_BYTES)
        await mesh.connect({"b": "there:1"}, 1)
        with pytest.raises(PartyError) as caught:
            await mesh.unless_broken(asyncio.sleep(1000))
        await mesh.close()
        return caught.value.problem

    problem = run(scenario())
    assert (problem.error_id, problem.party) == ("peer-lost", "b")


def test_work_that_ends_first_gives_what_it_gives() -> None:
    async def scenario() -> str:
        mesh = Mesh("a", KEY, Dialled(b=ScriptedDuplex([], gone=False)), MAX_MESSAGE_BYTES)
        await mesh.connect({"b": "there:1"}, 1)
        found = await mesh.unless_broken(asyncio.sleep(0, "done"))
        await mesh.close()
        return found

    assert run(scenario()) == "done"


class Stuck(ScriptedDuplex):
    """A stream that takes nothing any more."""

    async def write(self, envelope: Envelope) -> None:
        if envelope.step == ABORT:
            await asyncio.Event().wait()
        await super().write(envelope)


class Gone(ScriptedDuplex):
    async def write(self, envelope: Envelope) -> None:
        if envelope.step == ABORT:
            raise TransportError("peer-lost", "gone", party=envelope.recipient)
        await super().write(envelope)


@pytest.mark.parametrize("other", [Stuck, Gone])
def test_every_peer_is_told_why_the_run_ends_whatever_the_others_do(
    other: Callable[..., ScriptedDuplex], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(party.net.mesh, "_ABORT_S", 0.05)

    async def scenario() -> list[Envelope]:
        well = ScriptedDuplex([], gone=False)
        mesh = Mesh("a", KEY, Dialled(b=other([], gone=False), c=well), MAX_MESSAGE_BYTES)
        await mesh.connect({"b": "there:1", "c": "there:2"}, 1)
        while not well.heard:  # the hello
            await asyncio.sleep(0)
        await mesh.abort(Problem("data-unreadable", "the table is gone", party="a"))
        await mesh.close()
        return well.heard

    last = run(scenario())[-1]
    assert (last.step, last.sender, last.recipient) == (ABORT, "a", "c")
    assert b"data-unreadable" in last.payload


def test_a_mesh_without_links_tells_nobody() -> None:
    async def scenario() -> None:
        mesh = Mesh("a", KEY, nobody, MAX_MESSAGE_BYTES)
        await mesh.abort(Problem("cancelled", "no run yet"))
        await mesh.close()

    run(scenario())


def test_all_streams_are_closed_also_those_that_were_never_used() -> None:
    async def scenario() -> list[bool]:
        called, early = ScriptedDuplex([], gone=False), ScriptedDuplex([], gone=False)
        mesh = Mesh("b", KEY, Dialled(c=called), MAX_MESSAGE_BYTES)
        mesh.expect(["a", "d"])
        mesh.accept("a", early)
        connecting = asyncio.create_task(mesh.connect({"c": "there:1"}, 1000))
        while not mesh.links:
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)
        await mesh.close()
        return [called.closed, early.closed]

    assert run(scenario()) == [True, True]
