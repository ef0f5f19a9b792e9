"""The methods of LKC jobs by name, and the only place that knows all of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from jobs.file.job import Job
from jobs.lkc.method import Method
from jobs.lkc.settings import KD, TOP_DOWN

METHODS: Mapping[str, str] = {TOP_DOWN: "jobs.lkc.top_down", KD: "jobs.lkc.kd.method"}
"""By name the module of a method: it is imported for a job that asks for it."""


def method_of(job: Job) -> Method:
    """Return the method of an LKC job."""
    assert job.method is not None
    found: Method = import_module(METHODS[job.method]).METHOD
    return found
