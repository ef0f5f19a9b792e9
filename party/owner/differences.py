"""Differences between two jobs in few lines, for an owner who agreed to the first.

A coordinator writes both jobs, and could bury a changed requirement under ten thousand changed texts. So the keys
that protect people come first and in words, and everything has a bound.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

from jobs.data.counted import counted

MOST_KEYS = 40
"""Most changed keys that are told, critical keys included."""
MOST_LINES, MOST_FILES = 10, 5
"""Most changed lines of a file, and most files whose lines are told."""
_MOST_CHARS, _KEPT = 200, 20
_MOST_VALUES = 10

Key: TypeAlias = tuple[str, ...]
_WHOLE: Mapping[str, str] = {
    "partition": "division of the table",
    "disclosure": "disclosure",
    "deliver": "receivers of the release",
}
"""Critical keys of a job, in words."""
_GREATER = frozenset({"L", "K"})
"""Keys of a requirement that grow stricter with their number."""
_SMALLER = frozenset({"C", "epsilon", "delta"})
"""Keys of a requirement that grow stricter as their number shrinks."""
_REQUIRED = _GREATER | _SMALLER | {"distinct", "t", "ruled_out", "diversity", "colluders", "unit"}
_WORDS: Mapping[str, str] = {"epsilon": "ε", "delta": "δ"}
_COMPUTE = ("leader", "deputy")
_NOT_THERE = "not there"


@dataclass(frozen=True)
class Differences:
    """Differences of a job from another.

    stricter:  True if every difference only makes the requirement stricter.
    """

    lines: Sequence[str] = field(repr=False)
    stricter: bool


@dataclass(frozen=True)
class _Change:
    """Changed key, in words.

    stricter:  True if the change only makes the requirement stricter.
    added:     True for a key or a value that was not there; a coordinator can add any number of these.
    """

    words: str = field(repr=False)
    stricter: bool = False
    added: bool = False


def differences(before: bytes, after: bytes) -> Differences:
    """Return the differences between the jobs of two bundles."""
    old, new = json.loads(before), json.loads(after)
    changes = sorted(_critical(old["job"], new["job"]), key=lambda change: (change.added, change.stricter))
    told, others = [change.words for change in changes], list(_others(old["job"], new["job"]))
    lines = [*told, *others][:MOST_KEYS]
    if (rest := len(told) + len(others) - len(lines)) > 0:
        lines.append(f"and {counted(rest, 'more changed key', 'more changed keys')}")
    files = list(_files(old["files"], new["files"]))
    if is_renamed(before, after):
        return Differences(["the name alone"], stricter=True)
    if not lines and not files:
        return Differences(["the same values in another order"], stricter=False)
    stricter = not others and not files and all(change.stricter for change in changes)
    return Differences([*lines, *files], stricter)


def is_renamed(before: bytes, after: bytes) -> bool:
    """Return True if the jobs of two bundles differ in the name of the job alone."""
    return _without_name(before) == _without_name(after)


def _without_name(encoded: bytes) -> str:
    bundle = json.loads(encoded)
    return json.dumps({**bundle, "job": {**bundle["job"], "name": ""}})


# ---- critical keys


def _critical(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    """Yield the changes of critical keys."""
    yield from _model(old["model"], new["model"])
    for key, words in _WHOLE.items():
        if old.get(key) != new.get(key):
            yield _Change(f"{words}: {_cut(old.get(key))} before, {_cut(new.get(key))} now")
    yield from _parties(old, new)
    yield from _requirement(old, new)
    yield from _protection(old["columns"], new["columns"])
    yield from _roles(old["columns"], new["columns"])


def _model(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    before, now = (
        ", ".join(" ".join((key, inner.get("method", ""))).strip() for key, inner in model.items())
        for model in (old, new)
    )
    if before != now:
        yield _Change(f"model: {before} before, {now} now")


def _requirement(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    before, now = dict(_required(old)), dict(_required(new))
    for key in sorted({*before, *now}):
        was, is_now = before.get(key), now.get(key)
        if was != is_now:
            words = f"{_named(key)}: {_cut(was)} before, {_cut(is_now)} now"
            yield _Change(words, stricter=_is_stricter(key, was, is_now), added=was is None)


def _required(job: Mapping[str, Any]) -> Iterator[tuple[Key, Any]]:
    """Yield the keys of a job that state how far people are protected."""
    for key, value in _leaves(job, ()):
        if _is_required(key):
            yield key, value


def _is_required(key: Key) -> bool:
    return key[2:3] == ("requirements",) or _of_requirement(key) in _REQUIRED


def _of_requirement(key: Key) -> str:
    """Return the name of a key of a requirement, whatever columns are called; empty for another key."""
    match key:
        case ("columns", _, name):
            return name
        case ("model", _, "requirements", _, name, *_) | ("model", _, name, *_):
            return name
        case _:
            return ""


def _named(key: Key) -> str:
    """Return a key of a requirement in few words: `K`, or `C of surgery`."""
    match key:
        case ("columns", column, name):
            return f"{name} of {_cut_text(column)}"
        case ("model", _, "requirements", number, name, *column):
            return f"requirement {number}, {' of '.join((name, *map(_cut_text, column)))}"
        case _:
            name = _WORDS.get(key[2], key[2])
            return " of ".join((name, *map(_cut_text, key[3:])))


def _is_stricter(key: Key, old: Any, new: Any) -> bool:
    """Return True if a changed number makes a requirement stricter."""
    name, before, now = _of_requirement(key), _number(old), _number(new)
    if before is None or now is None:
        return False
    return (name in _GREATER and now > before) or (name in _SMALLER and now < before)


def _number(value: Any) -> Fraction | float | None:
    """Return a number of a requirement; `all` is larger than any; None for no number."""
    if value == "all":
        return float("inf")
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        return None


def _protection(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    """Yield the changed protected values of the columns that both jobs call sensitive."""
    for name in new:
        if not all(columns.get(name, {}).get("role") == "sensitive" for columns in (old, new)):
            continue
        before, now = _protected(old[name]), _protected(new[name])
        if before != now:
            added = now is None or (before is not None and set(before) <= set(now))
            yield _Change(f"{_cut_text(name)}: {_moved(before, now)}", added=added)


def _protected(column: Mapping[str, Any]) -> Sequence[str] | None:
    """Return the protected values of a sensitive column; None: all, of a domain in another place."""
    found: Sequence[str] | None = column.get("values", column.get("domain"))
    return found


def _moved(before: Sequence[str] | None, now: Sequence[str] | None) -> str:
    if now is None:
        return "all values are protected now"
    if before is None:
        return f"of all values only {_several(now)} protected now"
    gone = [value for value in before if value not in set(now)]
    come = [value for value in now if value not in set(before)]
    parts = [f"{_several(gone)} no longer protected"] if gone else []
    parts += [f"{_several(come)} protected now"] if come else []
    return "; ".join(parts) or "the protected values in another order"


def _several(values: Sequence[str]) -> str:
    """Return values as the subject of a sentence, with its verb."""
    names = [_cut_text(value) for value in values[:_MOST_VALUES]]
    if len(values) > _MOST_VALUES:
        return f"{', '.join(names)} and {len(values) - _MOST_VALUES:,} more are"
    *others, last = names or ["nothing"]
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"


def _parties(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    before, now = old.get("parties") or {}, new.get("parties") or {}
    if come := [name for name in now if name not in before]:
        yield _Change(f"parties: new: {_listed(come)}")
    if gone := [name for name in before if name not in now]:
        yield _Change(f"parties: no longer there: {_listed(gone)}")
    if not come and not gone and list(before) != list(now):
        yield _Change("parties: the same in another order, which names leader and deputy if the job does not")
    for key in _COMPUTE:
        if old.get(key) != new.get(key):
            yield _Change(f"{key}: {_cut(old.get(key))} before, {_cut(new.get(key))} now")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_VALUES:,} more" if len(names) > _MOST_VALUES else ""
    return ", ".join(_cut_text(name) for name in names[:_MOST_VALUES]) + more


def _roles(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[_Change]:
    for name in [*new, *(name for name in old if name not in new)]:
        before, now = old.get(name, {}).get("role"), new.get(name, {}).get("role")
        if before == now:
            continue
        if before is None:
            yield _Change(f"{_cut_text(name)}: a new column, `role: {now}`", added=True)
        elif now is None:
            yield _Change(f"{_cut_text(name)}: no longer a column; was `role: {before}`")
        else:
            yield _Change(f"{_cut_text(name)}: `role: {before}` before, `role: {now}` now")


# ---- other keys


def _others(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changes of all other keys. The keys of a column that is gone are gone with the column."""
    before, now = _flat(old), _flat(new)
    for key in sorted({*before, *now}):
        was, is_now = before.get(key, _NOT_THERE), now.get(key, _NOT_THERE)
        gone = key[0] in ("columns", "parties") and len(key) > 1 and key[1] not in (new.get(key[0]) or {})
        if was != is_now and not gone and not _is_told(key, old, new):
            yield f"`{_cut_text('.'.join(key))}`: {' -> '.join(_both(was, is_now))}"
    if list(old["columns"]) != list(new["columns"]) and set(old["columns"]) == set(new["columns"]):
        yield "`columns`: the same columns in another order"


def _is_told(key: Key, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True for a key that :func:`_critical` tells, and for the name of a job, which titles tell."""
    if key == ("name",) or key[0] in (*_WHOLE, *_COMPUTE) or _is_required(key):
        return True
    if key[0] == "parties" and len(key) == len(("parties", "hospital-a")):
        return True
    if key[0] == "model" and key[2:] == ("method",):
        return True
    if key[0] != "columns":
        return False
    sensitive = all(job["columns"].get(key[1], {}).get("role") == "sensitive" for job in (old, new))
    return key[2:] == ("role",) or (sensitive and key[2:] == ("values",))


def _flat(job: Mapping[str, Any]) -> dict[Key, str]:
    """Return the values of a job by the path of their keys."""
    return {key: _as_json(value) for key, value in _leaves(job, ())}


def _leaves(value: Any, path: Key) -> Iterator[tuple[Key, Any]]:
    """Yield the values below a value with the path of their keys. Entries of a list have their numbers as keys."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = {str(number): each for number, each in enumerate(value, 1)}
    if not isinstance(value, dict) or not value:
        yield path, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, (*path, key))


def _both(old: str, new: str) -> tuple[str, str]:
    """Return two texts, of long texts the part where they begin to differ."""
    if max(len(old), len(new)) <= _MOST_CHARS:
        return old, new
    start = max(0, _n_alike(old, new) - _KEPT)
    return _cut_text(old, start), _cut_text(new, start)


def _n_alike(old: str, new: str) -> int:
    """Count the characters with which both texts begin."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))


def _cut(value: Any) -> str:
    if value is None:
        return _NOT_THERE
    return _cut_text(value if isinstance(value, str) else _as_json(value))


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut_text(text: str, start: int = 0) -> str:
    part = text[start : start + _MOST_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + len(part) < len(text) else ''}"


# ---- files


def _files(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that differ between the files of values of two jobs."""
    changed = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    for name in changed[:MOST_FILES]:
        for line in _changed_lines(old.get(name, ""), new.get(name, "")):
            yield f"file of {_cut_text(name)}: {line}"
    if more := changed[MOST_FILES:]:
        yield f"and {counted(len(more), 'more changed file', 'more changed files')}: of {_listed(more)}"


def _changed_lines(old: str, new: str) -> Iterator[str]:
    """Yield changed lines. A few lines of one kind are not buried under many of the other."""
    before, now = Counter(old.splitlines()), Counter(new.splitlines())
    gone, come = before - now, now - before
    n_gone, n_come = gone.total(), come.total()
    if not n_gone and not n_come:
        yield "the same lines in another order"
        return
    shown_gone = min(n_gone, max(MOST_LINES // 2, MOST_LINES - n_come))
    shown_come = min(n_come, MOST_LINES - shown_gone)
    yield from (f"-{_cut_text(line)}" for line in islice(gone.elements(), shown_gone))
    yield from (f"+{_cut_text(line)}" for line in islice(come.elements(), shown_come))
    if more := n_gone + n_come - shown_gone - shown_come:
        yield f"and {more:,} more: {counted(n_come, 'line', 'lines')} added, {n_gone:,} removed"
