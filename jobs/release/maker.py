"""Part of a report without an expectation: the time of making, the software, and the cost.

Only the maker knows these values. A fixed form keeps the maker from saying anything else: a time, three versions,
and numbers under names of phases and parties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from jobs.release.report import BY_MAKER, versions

_NAME = re.compile(r"[a-z][a-z _-]{0,31}")
"""Name of a phase, or of a count within a phase."""
_VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,64}")
_MOST = 2**63

Form = Callable[[Any], bool]


def first_malformed(report: Mapping[str, Any], roster: Collection[str]) -> str | None:
    """Return the first missing or malformed key of the maker; roster: of the job."""
    forms: Mapping[str, Form] = {
        "finished": _is_time,
        "versions": _are_versions,
        "cost": partial(_is_cost, roster=roster),
    }
    return next((key for key in BY_MAKER if key not in report or not forms[key](report[key])), None)


def is_cost_of_party(said: Any, roster: Collection[str]) -> bool:
    """Return True for the cost of a run for a party, in the form of reports."""
    return _has(said, {"phases", "links"}) and (
        _is_by_name(said["phases"], _is_name, _are_counts)
        and _is_by_name(said["links"], roster.__contains__, _are_counts)
    )


def _is_cost(said: Any, roster: Collection[str]) -> bool:
    whole = isinstance(said, dict) and _has({"seconds": {}, **said}, {"seconds", "parties"})
    return whole and (
        _are_counts(said.get("seconds", {}))
        and _is_by_name(said["parties"], roster.__contains__, partial(is_cost_of_party, roster=roster))
    )


def _has(said: Any, keys: Collection[str]) -> bool:
    return isinstance(said, dict) and said.keys() == set(keys)


def _is_by_name(said: Any, named: Form, valued: Form) -> bool:
    return isinstance(said, dict) and all(named(name) and valued(value) for name, value in said.items())


def _are_counts(said: Any) -> bool:
    return _is_by_name(said, _is_name, _is_count)


def _is_name(said: Any) -> bool:
    return _NAME.fullmatch(said) is not None


def _is_count(said: Any) -> bool:
    return type(said) in (int, float) and bool(0 <= said < _MOST)


def _are_versions(said: Any) -> bool:
    return _has(said, versions()) and all(
        isinstance(version, str) and _VERSION.fullmatch(version) for version in said.values()
    )


def _is_time(said: Any) -> bool:
    """Return True for a time in UTC in the form of reports."""
    try:
        return bool(datetime.fromisoformat(said).astimezone(UTC).isoformat(timespec="seconds") == said)
    except (TypeError, ValueError, OverflowError):
        return False
