"""Compiled engines for CPUs of every width that this one can stand for; needs llvmlite."""

from __future__ import annotations

from functools import cache

import pytest
from llvmlite import binding

from crypto.compiled.aes import lanes_of
from crypto.compiled.engine import Compiled
from tests.support.engines import compiled

WIDTHS = ((2,), (4, 2), (8, 2))


@cache
def made(lanes: tuple[int, ...]) -> Compiled:
    if isinstance(reason := compiled(), str):
        pytest.skip(reason)
    if lanes[0] > lanes_of(binding.get_host_cpu_features())[0]:
        pytest.skip(f"this CPU does not do AES on {lanes[0]} words at once")
    return Compiled(lanes)
