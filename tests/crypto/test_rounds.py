"""Sessions side by side: outputs, rounds, and no order of roles in which parties wait for each other."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.errors import LocalProtocolError
from crypto.local import run_local
from crypto.rounds import Rounds, abreast, exchange, receive, send
from tests.support.examples import examples

ORDER = ("a", "b", "c")


def first(peer: str, word: bytes, times: int) -> Rounds[list[bytes]]:
    """Send, wait, send several times."""
    yield from send("a", {peer: word})
    heard = yield from receive("b", peer)
    for k in range(times):
        yield from send("c", {peer: word + heard + b"%d" % k})
    return [heard]


def second(peer: str, word: bytes, times: int) -> Rounds[list[bytes]]:
    asked = yield from receive("a", peer)
    yield from send("b", {peer: word})
    heard = []
    for _ in range(times):
        heard.append((yield from receive("c", peer)))
    return [asked, *heard]


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), n=st.integers(2, 5))
def test_all_pairs_in_both_roles(data: st.DataObject, n: int) -> None:
    names = [f"p{i}" for i in range(n)]
    times = {
        pair: data.draw(st.integers(0, 4)) for pair in itertools.permutations(names, 2)
    }  # by who is first, and who second

    def sessions(me: str) -> list[Rounds[list[bytes]]]:
        peers = data.draw(st.permutations([name for name in names if name != me]))
        taken = [second(peer, me.encode(), times[peer, me]) for peer in peers]
        return [*(first(peer, me.encode(), times[me, peer]) for peer in peers), *taken], peers

    made = {me: sessions(me) for me in names}
    outputs, _ = run_local({me: abreast(ORDER, made[me][0]) for me in names})
    for me in names:
        peers = made[me][1]
        assert outputs[me] == [
            *([peer.encode()] for peer in peers),
            *(
                [peer.encode(), *(f"{peer}{me}{k}".encode() for k in range(times[peer, me]))]
                for peer in peers
            ),
        ]


def test_sessions_take_as_many_rounds_as_one() -> None:
    def rounds(peers: list[str]) -> int:
        hub = abreast(ORDER, [first(peer, b"hub", 3) for peer in peers])
        _, transcript = run_local({"hub": hub, **{peer: second("hub", b"x", 3) for peer in peers}})
        return transcript.rounds

    assert rounds(["p"]) == rounds(["p", "q", "r"]) == 3


def test_an_exchange_is_one_round() -> None:
    def two(peers: list[str]) -> Rounds[list[bytes]]:
        return abreast(ORDER, [exchange("b", peer, peer.encode()) for peer in peers])

    outputs, transcript = run_local({"p": two(["q", "r"]), "q": two(["p", "r"]), "r": two(["p", "q"])})
    assert (outputs["p"], transcript.rounds) == ([b"p", b"p"], 1)


def test_no_session_is_no_round() -> None:
    with pytest.raises(StopIteration) as end:
        next(abreast(ORDER, []))
    assert end.value.value == []


@pytest.mark.parametrize("session", [exchange("b", "q", b"x"), send("b", {"q": b"x"}), receive("b", "q")])
def test_two_sessions_with_a_peer_at_a_step_are_refused(session: Rounds[object]) -> None:
    """One of the two messages would be lost."""
    twin = {
        "exchange": exchange("b", "q", b"y"),
        "send": send("b", {"q": b"y"}),
        "receive": receive("b", "q"),
    }
    with pytest.raises(LocalProtocolError, match="two sessions with the same peer"):
        next(abreast(ORDER, [session, twin[session.__name__]]))
