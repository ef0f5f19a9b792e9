"""Sessions: how long they last, what keeps them alive, and how often somebody may try."""

from __future__ import annotations

import pytest

from party.web.sessions import IDLE_S, LASTS_S, MOST, TRIES, WINDOW_S, Sessions
from tests.support.pages import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock=clock)


def test_a_session_is_found_by_what_the_browser_keeps_alone(sessions: Sessions) -> None:
    cookie, other = sessions.begin("anna"), sessions.begin("berta")
    assert len({cookie, other}) == 2
    assert len(cookie) == 64
    found = sessions.found(cookie)
    assert found is not None
    assert found.who == "anna"
    assert sessions.found(cookie[:-1]) is None
    assert sessions.found("") is None
    assert cookie not in repr(vars(sessions))
    sessions.end(cookie)
    assert sessions.found(cookie) is None
    assert sessions.found(other) is not None


def test_forms_are_of_their_session(sessions: Sessions) -> None:
    one, other = (sessions.found(sessions.begin("anna")) for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.brought(one.form)
    assert not one.brought(other.form)
    assert not one.brought("")
    assert not one.brought("ü")
    assert one.form not in repr(one)


def test_a_session_that_is_not_used_ends(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.begin("anna")
    for _ in range(3):
        clock.now += IDLE_S - 1
        assert sessions.found(cookie) is not None
    clock.now += IDLE_S
    assert sessions.found(cookie) is None


def test_a_page_that_comes_by_itself_keeps_no_session_alive(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.begin("anna")
    clock.now += IDLE_S / 2
    assert sessions.found(cookie, used=False) is not None
    clock.now += IDLE_S / 2
    assert sessions.found(cookie, used=False) is None


def test_a_session_ends_however_much_it_is_used(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.begin("anna")
    for _ in range(int(LASTS_S / 600) - 1):
        clock.now += 600
        assert sessions.found(cookie) is not None
    clock.now += 600
    assert sessions.found(cookie) is None


def test_sessions_do_not_pile_up(sessions: Sessions, clock: Clock) -> None:
    cookies = []
    for _ in range(MOST):
        cookies.append(sessions.begin("anna"))
        clock.now += 1
    assert sessions.found(cookies[0]) is not None
    sessions.begin("berta")
    gone = [cookie for cookie in cookies if sessions.found(cookie, used=False) is None]
    assert gone == [cookies[1]]  # the one that was used longest ago


def test_so_many_wrong_tokens_end_the_trying_for_a_while(sessions: Sessions, clock: Clock) -> None:
    for _ in range(TRIES):
        assert sessions.may_try()
        sessions.tried_wrong()
    assert not sessions.may_try()
    clock.now += WINDOW_S
    assert sessions.may_try()
