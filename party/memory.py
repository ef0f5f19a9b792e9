"""Memory of a daemon: what a job no longer needs goes back to the system.

The functions change no result. Where the C library is not glibc, only objects are freed.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

from jobs.data.arrow import pa

_ARENA_MAX = -8
"""Name of the setting in glibc's malloc.h."""


def use_one_arena() -> None:
    """Let all threads of the process allocate from one arena. Otherwise each thread keeps freed memory of its own.

    To be called before the first thread: 1 M rows of three parties then take 530 in place of 660 MB a daemon.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def free_ended() -> None:
    """Free the objects of an ended run that refer to each other: tables, and connections that would stay open.

    Takes some milliseconds: a daemon's own objects are left out (:mod:`party.decoding`).
    """
    gc.collect()


def give_back() -> None:
    """Give freed memory back to the system. Takes some milliseconds."""
    if "pyarrow" in sys.modules:  # else there is nothing of Arrow
        pa.default_memory_pool().release_unused()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
