"""The mailbox: order, bounds, and an end that is never lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.errors import TransportError
from party.net.mailbox import Mailbox
from tests.support.duplex import run
from tests.support.examples import examples


async def everything(box: Mailbox[int]) -> list[int]:
    items = []
    while (item := await box.get()) is not None:
        items.append(item)
    return items


@settings(max_examples=examples(60), deadline=None)
@given(n=st.integers(0, 30), capacity=st.integers(1, 5), reader_first=st.booleans())
def test_items_arrive_in_order_whoever_comes_first(n: int, capacity: int, reader_first: bool) -> None:
    async def scenario() -> list[int]:
        box: Mailbox[int] = Mailbox(capacity)

        async def fill() -> None:
            for i in range(n):
                await box.put(i)
            box.close()

        tasks = [everything(box), fill()] if reader_first else [fill(), everything(box)]
        results = await asyncio.gather(*tasks)
        return next(result for result in results if result is not None)

    assert run(scenario()) == list(range(n))


def test_a_full_box_makes_its_writer_wait() -> None:
    async def scenario() -> None:
        box: Mailbox[int] = Mailbox(2)
        await box.put(1)
        await box.put(2)
        third = asyncio.create_task(box.put(3))
        await asyncio.sleep(0.01)
        assert not third.done()
        assert await box.get() == 1
        await third
        assert [await box.get(), await box.get()] == [2, 3]

    run(scenario())


def test_what_is_left_comes_before_the_end() -> None:
    async def scenario() -> None:
        box: Mailbox[int] = Mailbox(5)
        await box.put(1)
        box.close()
        await box.put(2)
        assert [await box.get(), await box.get(), await box.get()] == [1, None, None]

    run(scenario())


def test_an_error_is_the_end_and_the_first_end_counts() -> None:
    async def scenario() -> None:
        box: Mailbox[int] = Mailbox(5)
        await box.put(1)
        box.close(TransportError("peer-lost", "gone"))
        box.close()
        assert await box.get() == 1
        for _ in range(2):
            with pytest.raises(TransportError):
                await box.get()

    run(scenario())


def test_a_close_wakes_both_sides() -> None:
    async def scenario() -> None:
        empty: Mailbox[int] = Mailbox(1)
        reader = asyncio.create_task(empty.get())
        full: Mailbox[int] = Mailbox(1)
        await full.put(1)
        writers = [asyncio.create_task(full.put(i)) for i in (2, 3)]
        await asyncio.sleep(0.01)
        empty.close()
        full.close()
        assert await reader is None
        await asyncio.gather(*writers)
        assert [await full.get(), await full.get()] == [1, None]

    run(scenario())


def test_waiting_can_be_cancelled_without_losing_an_item() -> None:
    async def scenario() -> None:
        box: Mailbox[int] = Mailbox(5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await box.get()
        await box.put(1)
        assert await box.get() == 1

    run(scenario())
