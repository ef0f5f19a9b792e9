"""Sentences about errors in a job or a configuration: the key, its line, and a correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from jobs.file.yaml_text import Keys

_TAXONOMY = {"str", "dict[str,any]", "list[str]"}
"""Pydantic's names for the branches of a taxonomy, in paths. Other branches have names in angle brackets."""
_LISTS = {"tuple_type", "list_type"}
_MAPPINGS = {"model_type", "model_attributes_type", "dict_type", "mapping_type"}
_WHOLE_NUMBERS = {"int_parsing", "int_type", "int_from_float", "int_parsing_size"}
_TRUTHS = {"bool_parsing", "bool_type"}
_BOUNDS = {
    "greater_than_equal": ("ge", "from {} on"),
    "greater_than": ("gt", "above {}"),
    "less_than_equal": ("le", "up to {}"),
    "less_than": ("lt", "below {}"),
}


Advice: TypeAlias = Callable[[Sequence[str], Any], str]
"""Function from the path of an unknown key, and the file, to advice; empty without advice."""


def no_advice(keys: Sequence[str], fields: Any) -> str:
    """Return no advice on an unknown key."""
    return ""


@dataclass(frozen=True)
class Problems:
    """Sentences about a file, with unknown keys first.

    are_unknown_keys:  True if the file has an unknown key.
    remedy:            common remedy; empty: the remedy of the error.
    """

    sentences: tuple[str, ...]
    are_unknown_keys: bool
    remedy: str


def explained(items: Iterable[Mapping[str, Any]], fields: Any, advice: Advice = no_advice) -> Problems:
    """Return pydantic's findings in sentences. fields: the file, with lines if read from YAML.

    Unknown keys with the same advice share a sentence, with the line of the first key.
    """
    found = [(_keys(item["loc"], fields), item) for item in _causes(list(items))]
    others = [(keys, item) for keys, item in found if item["type"] != "extra_forbidden"]
    unknown = [keys for keys, item in found if item["type"] == "extra_forbidden"]
    alike: dict[str, list[tuple[str, ...]]] = {}
    for keys in unknown:
        alike.setdefault(advice(keys, fields) or ".".join(keys), []).append(keys)
    sentences = (
        *(_at_line(paths[0], fields, _unknown(paths, advice(paths[0], fields))) for paths in alike.values()),
        *(_at_line(keys, fields, _about(".".join(keys), item)) for keys, item in others),
    )
    is_all_advised = all(advice(keys, fields) for keys in unknown) and bool(unknown) and not others
    return Problems(sentences, bool(unknown), _AS_SAID if is_all_advised else "")


def _causes(items: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield pydantic's findings, without lists that are too short because of a wrong entry."""
    for item in items:
        loc = tuple(item["loc"])
        inside = (
            other for other in items if len(other["loc"]) > len(loc) and other["loc"][: len(loc)] == loc
        )
        if item["type"] != "too_short" or not any(inside):
            yield item


_AS_SAID = "do what the error says of each key"


def _at_line(keys: Sequence[str], fields: Any, sentence: str) -> str:
    line = line_of(keys, fields)
    return f"line {line}: {sentence}" if line else sentence


def _unknown(paths: Sequence[Sequence[str]], instead: str) -> str:
    *first, last = [f"`{'.'.join(keys)}`" for keys in paths]
    named = f"unknown keys {', '.join(first)} and {last}" if first else f"unknown key {last}"
    return f"{named}: {instead}" if instead else named


def _keys(loc: Iterable[Any], fields: Any) -> tuple[str, ...]:
    """Return the keys of a path of pydantic, without pydantic's names for branches of unions."""
    keys: list[str] = []
    for part in map(str, loc):
        is_branch = (part[:1] == "<" and part[-1:] == ">") or part in _TAXONOMY
        if is_branch and not (isinstance(fields, Mapping) and part in fields):
            continue
        keys.append(part)
        fields = _inner(fields, part)
    return tuple(keys)


def _inner(fields: Any, key: str) -> Any:
    if isinstance(fields, Mapping):
        return fields.get(key)
    is_place = isinstance(fields, list) and key.isascii() and key.isdigit() and int(key) < len(fields)
    return fields[int(key)] if is_place else None


def _about(path: str, item: Mapping[str, Any]) -> str:
    if item["type"] == "missing":
        return f"`{path}` is missing"
    return f"`{path}`: {_message(item)}" if path else _message(item)


def _message(item: Mapping[str, Any]) -> str:
    kind, value = item["type"], item.get("input")
    if kind in _LISTS:
        shown = value if isinstance(value, str) else "VALUE"
        return f"write a list, e.g. [{shown}]"
    if kind in _MAPPINGS:
        return "write keys and values, e.g. {key: value}"
    if kind in _WHOLE_NUMBERS:
        return "write a whole number, e.g. 5"
    if kind in _TRUTHS:
        return "write true or false"
    if kind == "too_short":
        what = "entries, each `column: number`" if isinstance(item.get("input"), Mapping) else "entries"
        return f"list {item['ctx']['min_length']} or more {what}, or leave the key out"
    if kind == "string_type":
        return "write a single value"
    if kind == "literal_error":
        return f"write {item['ctx']['expected']}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"write a number {words.format(item['ctx'][key])}"
    return str(item["msg"]).removeprefix("Value error, ")


def line_of(keys: Iterable[str], fields: Any) -> int | None:
    """Return the line of the innermost key of a path in the file; for a list's entry, its first line."""
    line = None
    for key in keys:
        if isinstance(fields, Keys) and key in fields:
            line = fields.lines[key]
        inner = _inner(fields, key)
        if isinstance(fields, list) and isinstance(inner, Keys):
            line = min(inner.lines.values(), default=line)
        if inner is None:
            break
        fields = inner
    return line


def path_named(message: str, fields: Any, above: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the path of the first key of the file named in a message; empty without a named key.

    A message names a key by a path of two keys or more (`model.lkc.K`, columns.age). A single key in backticks
    names a key at the top of the file, under `model`, or under the path above. A message may also begin with a key
    and a colon. Only the file's keys count, so all characters are allowed.
    """
    model = _inner(fields, "model")
    places = ((), *(("model", key) for key in (model if isinstance(model, Mapping) else ())), tuple(above))
    for at in range(min(len(message), _MOST_READ)):
        before = message[at - 1 : at]
        if before and before not in _BEFORE_KEYS:
            continue
        path, end = _spelled(message, at, fields)
        if len(path) > 1 or (path and not before and message[end : end + 1] == ":"):
            return path
        for place in places if before == "`" else ():
            path, _ = _spelled(message, at, _at(place, fields))
            if path:
                return (*place, *path)
    return ()


_BEFORE_KEYS = "` ("
_MOST_READ = 4096
"""Number of characters of a message to look at. A file from outside may have names of millions of characters."""


def _at(keys: Iterable[str], fields: Any) -> Any:
    for key in keys:
        fields = _inner(fields, key)
    return fields


def _spelled(message: str, at: int, fields: Any) -> tuple[tuple[str, ...], int]:
    """Return the longest path of keys of a file at a place in a message, and the end of the path."""
    keys = map(str, range(len(fields))) if isinstance(fields, list) else fields
    if not isinstance(fields, Mapping | list):
        return (), at
    found = [key for key in keys if key and message.startswith(key, at) and _ends(message, at + len(key))]
    if not found:
        return (), at
    key = max(found, key=len)
    end = at + len(key)
    inner, end_of_all = _spelled(message, end + 1, _inner(fields, key))
    return ((key, *inner), end_of_all) if inner and message[end] == "." else ((key,), end)


def _ends(message: str, at: int) -> bool:
    """Return whether no character of a name stands at a place."""
    after = message[at : at + 1]
    return not (after.isalnum() or after in ("_", "-"))
