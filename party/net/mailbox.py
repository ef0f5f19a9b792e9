"""Bounded queue between a reader of a network stream and a taker. The end is never lost."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Items in order; after :meth:`close` the remaining items, then None or the error that ended the queue.

    Waiting for an item can be cancelled without losing an item.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._changed = asyncio.Event()
        self._closed = False
        self._error: Exception | None = None

    async def put(self, item: T) -> None:
        """Add an item; waits while the box is full. Items after the end are dropped."""
        while len(self._items) >= self._capacity and not self._closed:
            await self._wait()
        if not self._closed:
            self._items.append(item)
            self._changed.set()

    async def get(self) -> T | None:
        """Take the next item; return None at the end, or raise the error that ended the queue."""
        while not self._items and not self._closed:
            await self._wait()
        if self._items:
            item = self._items.popleft()
            self._changed.set()
            return item
        if self._error is not None:
            raise self._error
        return None

    def close(self, error: Exception | None = None) -> None:
        """End the box. The first end counts."""
        if not self._closed:
            self._closed, self._error = True, error
            self._changed.set()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()
