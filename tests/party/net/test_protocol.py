"""Which protocol a run speaks, and what is said where there is none."""

from __future__ import annotations

import pytest

from jobs.errors import PartyError
from jobs.version import __version__
from party.net.protocol import OURS, Talked, check_greeting, check_spoken, common, greeting


@pytest.mark.parametrize(
    ("ranges", "spoken"),
    [
        ([(0, 1)], 1),
        ([(0, 1), (0, 1)], 1),
        ([(0, 1), (0, 0), (0, 1)], 0),
        ([(1, 2), (0, 1), (1, 1)], 1),
        ([(1, 2), (2, 3)], 2),
        ([(0, 1), (2, 3)], None),
        ([(0, 1), (1, 2), (2, 3)], None),
        ([(3, 2), (3, 2)], None),
    ],
)
def test_the_greatest_that_all_speak(ranges: list[tuple[int, int]], spoken: int | None) -> None:
    talked = {f"p{i}": Talked(*each, f"{i}.0") for i, each in enumerate(ranges)}
    if spoken is not None:
        assert common(talked) == spoken
        return
    with pytest.raises(PartyError) as caught:
        common(talked)
    assert caught.value.problem.error_id == "version-mismatch"


def test_where_there_is_none_both_are_named_with_what_they_speak() -> None:
    talked = {"a": Talked(1, 2, "1.1"), "b": Talked(3, 3, "1.3"), "c": Talked(2, 3, "1.2")}
    with pytest.raises(PartyError) as caught:
        common(talked)
    message = "a speaks protocols 1 to 2 (version 1.1), b protocol 3 (version 1.3)"
    assert caught.value.problem.message == message


def test_a_protocol_that_we_do_not_speak_is_refused() -> None:
    talked = Talked(1, 2, "1.1")
    for protocol in (1, 2):
        check_spoken(talked, protocol, "b", "coordinator")
    for protocol in (0, 3, 2**32 - 1):
        with pytest.raises(PartyError, match=f"coordinator wants protocol {protocol}") as caught:
            check_spoken(talked, protocol, "b", "coordinator")
        assert (caught.value.problem.error_id, caught.value.problem.party) == ("version-mismatch", "b")


def test_streams_begin_with_the_protocol_and_those_of_protocol_0_with_nothing() -> None:
    assert [greeting(protocol) for protocol in (0, 1, 2**32 - 1)] == [b"", b"\0\0\0\1", b"\xff" * 4]
    for protocol in (0, 1, 7):
        check_greeting(greeting(protocol), protocol, "a", "b")


@pytest.mark.parametrize("payload", [b"", b"\0\0\0\0", b"\0\0\0\2", b"\1", b"\0\0\0\1\0", b"x" * 1000])
def test_another_greeting_is_refused(payload: bytes) -> None:
    with pytest.raises(PartyError) as caught:
        check_greeting(payload, 1, "a", "b")
    problem = caught.value.problem
    assert (problem.error_id, problem.party, len(problem.message) < 80) == ("version-mismatch", "b", True)


def test_this_program_speaks_its_own_protocol_and_the_one_before() -> None:
    assert (OURS.newest - OURS.oldest, OURS.version) == (1, __version__)
