"""The place for a job, and the queue for the place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from jobs.errors import PartyError
from party import place
from party.place import MOST_OF_ONE, MOST_WAITING, Place

ME = "north"


@dataclass
class Waiting:
    """Coordinator that waits for a place, and says that it is there as often as it is let."""

    caller: str
    told: list[int] = field(default_factory=list)
    signs: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)

    async def said(self) -> AsyncIterator[object]:
        while await self.signs.get():
            yield object()

    async def tell(self, ahead: int) -> None:
        self.told.append(ahead)

    def begin(self, at: Place, most_s: float = 60) -> asyncio.Task[None]:
        return asyncio.create_task(at.keep(ME, self.caller, self.said(), self.tell, most_s))

    def leave(self) -> None:
        self.signs.put_nowait(False)


async def settled() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def refused(at: Place, caller: str) -> str:
    with pytest.raises(PartyError) as caught:
        at.take(ME, caller)
    assert (caught.value.problem.error_id, caught.value.problem.party) == ("busy", ME)
    return caught.value.problem.message


def test_a_turn_comes_when_the_running_job_leaves() -> None:
    async def scenario() -> None:
        at, one, two = Place(), Waiting("one"), Waiting("two")
        at.take(ME, "first")
        first, second = one.begin(at), two.begin(at)
        await settled()
        assert (one.told, two.told) == ([1], [2])
        at.leave()
        await settled()
        assert (one.told, two.told) == ([1, 0], [2, 1])
        assert refused(at, "two") == f"{ME} keeps its place for a job that waited"
        assert refused(at, "stranger") == f"{ME} keeps its place for a job that waited"
        at.take(ME, "one")
        await first
        await settled()
        assert two.told == [2, 1]  # the job of one is still before
        at.leave()
        at_once = asyncio.create_task(settled())
        await at_once
        assert two.told == [2, 1, 0]
        two.leave()
        await second
        at.take(ME, "stranger")

    asyncio.run(scenario())


def test_jobs_that_come_and_go_are_counted() -> None:
    at = Place()
    for n_before in range(3):
        assert (at.n_begun, at.n_ended) == (n_before, n_before)
        at.take(ME, "one")
        assert refused(at, "two") == f"{ME} is running another job"
        assert (at.n_begun, at.n_ended) == (n_before + 1, n_before)
        at.leave()


def test_who_leaves_the_queue_moves_the_others_on() -> None:
    async def scenario() -> None:
        at, waiting = Place(), [Waiting(name) for name in ("one", "two", "three")]
        at.take(ME, "first")
        tasks = [each.begin(at) for each in waiting]
        await settled()
        waiting[0].leave()
        await tasks[0]
        tasks[1].cancel()  # its stream broke
        await settled()
        assert waiting[2].told[-1] == 1
        waiting[2].leave()
        await tasks[2]
        at.leave()
        at.take(ME, "anybody")

    asyncio.run(scenario())


def test_a_silent_coordinator_loses_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "SILENCE_S", 0.05)

    async def scenario() -> PartyError:
        at, silent = Place(), Waiting("silent")
        task = silent.begin(at)
        with pytest.raises(PartyError) as caught:
            await task
        at.take(ME, "another")
        return caught.value

    problem = asyncio.run(scenario()).problem
    assert (problem.error_id, problem.party) == ("peer-timeout", "silent")
    assert problem.message == "silent was silent for 0.05 s, and lost its turn"


def test_a_place_is_not_kept_for_ever() -> None:
    """Others that come and go do not prolong the time."""

    async def scenario() -> PartyError:
        at, slow = Place(), Waiting("slow")
        task = slow.begin(at, most_s=0.2)
        while not task.done():
            other = Waiting("other")
            further = other.begin(at)
            await asyncio.sleep(0.02)
            other.leave()
            await further
        assert slow.told == [0]
        at.take(ME, "another")
        with pytest.raises(PartyError) as caught:
            task.result()
        return caught.value

    message = asyncio.run(scenario()).problem.message
    assert message == "slow started no job within 0.2 s after its turn came, and lost its turn"


@pytest.mark.parametrize(
    ("callers", "most"), [(["one"] * 20, MOST_OF_ONE), (list(map(str, range(20))), MOST_WAITING)]
)
def test_the_queue_is_bounded(callers: list[str], most: int) -> None:
    async def scenario() -> int:
        at = Place()
        at.take(ME, "first")
        tasks = [Waiting(name).begin(at) for name in callers]
        await settled()
        refused = [task for task in tasks if task.done()]
        for task in refused:
            with pytest.raises(PartyError, match="may wait") as caught:
                task.result()
            assert caught.value.problem.error_id == "busy"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        at.leave()
        at.take(ME, "another")  # the queue is empty again
        return len(tasks) - len(refused)

    assert asyncio.run(scenario()) == most


def test_a_place_is_drained() -> None:
    async def scenario() -> None:
        at, waiting = Place(), Waiting("one")
        at.take(ME, "first")
        task = waiting.begin(at)
        await settled()
        draining = asyncio.create_task(at.drain())
        await settled()
        with pytest.raises(PartyError, match="is about to stop"):
            await task
        assert not draining.done()
        at.leave()
        await draining
        assert refused(at, "one") == f"{ME} is about to stop, and takes no further job"
        with pytest.raises(PartyError, match="is about to stop"):
            await Waiting("two").begin(at)

    asyncio.run(scenario())


def test_an_empty_place_is_drained_at_once() -> None:
    async def scenario() -> None:
        await Place().drain()

    asyncio.run(scenario())
