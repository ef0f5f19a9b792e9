"""Refusals that come again and again."""

from __future__ import annotations

import asyncio

import pytest

from jobs.errors import Problem
from party.owner.repeated import MOST, Repeated
from tests.support.duplex import run


def refusal(words: str = "no") -> Problem:
    return Problem("policy-refused", words)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_refusals_are_told_again_when_the_window_is_over(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        repeated = Repeated(window_s=0.05)
        assert [repeated.is_told("b", refusal()) for _ in range(3)] == [False, True, True]
        assert not repeated.is_told("c", refusal())
        while not caplog.records:
            await asyncio.sleep(0.01)
        repeated.close()

    run(scenario())
    assert lines(caplog)[0] == "2 times more told to b: policy-refused: no"


def test_refusals_of_many_words_count_as_one(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        repeated = Repeated()
        told = [repeated.is_told("b", refusal(f"no {i}")) for i in range(MOST + 10)]
        assert told == [False] * (MOST + 1) + [True] * 9
        assert not repeated.is_told("c", refusal("no 0"))
        repeated.close()

    run(scenario())
    assert lines(caplog) == ["9 times more told to b: refusals of other words"]
