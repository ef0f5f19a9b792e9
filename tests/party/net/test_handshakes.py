"""Connections that began, and those over which somebody spoke: what is left, and when it is said."""

from __future__ import annotations

import party.net.handshakes
from party.net.handshakes import Handshakes


def test_what_began_before_the_last_look_and_did_not_speak_is_told_once() -> None:
    seen = Handshakes()
    seen.begun = 5
    seen.spoke("a")
    assert (seen.look(), seen.n_without_peer) == (0, 0)
    seen.begun = 6
    assert (seen.look(), seen.n_without_peer) == (4, 4)
    assert (seen.look(), seen.n_without_peer) == (1, 5)
    assert (seen.look(), seen.n_without_peer) == (0, 5)


def test_who_speaks_often_counts_once() -> None:
    seen = Handshakes()
    seen.begun = 3
    for _ in range(10):
        seen.spoke("a")
        seen.spoke("b")
    assert seen.look(over=True) == 1


def test_who_speaks_late_takes_nothing_back() -> None:
    seen = Handshakes()
    seen.begun = 2
    assert seen.look(over=True) == 2
    seen.spoke("a")
    assert (seen.look(), seen.n_without_peer) == (0, 2)
    seen.begun = 4
    assert (seen.look(over=True), seen.n_without_peer) == (1, 3)


def test_few_connections_are_remembered() -> None:
    seen = Handshakes()
    most = party.net.handshakes._REMEMBERED
    for i in range(most + 1):
        seen.spoke(str(i))
    assert len(seen._known) == most
    seen.begun = most + 2
    seen.spoke(str(most))  # is remembered
    assert seen.look(over=True) == 1
