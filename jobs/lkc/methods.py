"""The methods of LKC jobs by name, and the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.job import Job
from jobs.lkc.kd.method import Kd
from jobs.lkc.method import Method
from jobs.lkc.settings import KD, TOP_DOWN
from jobs.lkc.top_down import TopDown

METHODS: Mapping[str, Method] = {TOP_DOWN: TopDown(), KD: Kd()}


def method_of(job: Job) -> Method:
    """Return the method of an LKC job."""
    assert job.method is not None
    return METHODS[job.method]
