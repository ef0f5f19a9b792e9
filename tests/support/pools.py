"""Threads of pools: what a piece of work leaves running."""

from __future__ import annotations

import threading


def pool_threads() -> set[threading.Thread]:
    """Return the threads of pools in this process. An earlier test may have left some in a cycle of references."""
    return {each for each in threading.enumerate() if each.name.startswith("ThreadPoolExecutor")}
