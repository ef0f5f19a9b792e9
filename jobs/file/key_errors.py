"""What pydantic finds wrong with a job or a configuration, in words of the file: key, line, what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jobs.file.yaml_text import Keys

_BRANCHES = {
    "str",
    "dict[str,any]",
    "list[str]",
    "<path>",
    "<file>",
    "<bound>",
    "<bounds>",
    "<word>",
    "<blocks>",
    "<diffgen>",
    "<synthetic>",
    "<one>",
    "<several>",
}
"""How pydantic names the branches of unions in a path; the user's file has no such keys."""
_UNIONS = {"taxonomy", "data", "model", "C", "t", "link", "dp", "lkc"}
_UNDER_LKC = (
    *("clusters", "contexts", "insider", "link", "method", "quasi"),
    *("release", "score", "secure_sum", "split", "withhold"),
)
_OF_ENTRIES = ("L", "K", "C", "columns", "distinct", "t", "ruled_out", "diversity", "colluders")
INSTEAD: Mapping[str, str] = {
    **{key: f": write it under `model.lkc`, as `model: {{lkc: {{{key}: ...}}}}`" for key in _UNDER_LKC},
    "accept_exact_quasi_identifiers": ": leave it out, since `quasi: exact` says the same",
    "policy.diversity_by_block": ": leave it out; with `link` in a joint job `diversity` above 2 counts as 2",
    "relinkable": ": leave it out; of one holder's table `diversity` and `ruled_out` hold even for whoever links the "
    "blocks again, and in a joint job block by block",
    **{f"model.lkc.{key}": ": beside `requirements` each of these has its own" for key in _OF_ENTRIES},
    "model.unit": ": write it under `model.lkc`, as `model: {lkc: {unit: ...}}`",
    "model.requirements": ": write it under `model.lkc`, as `model: {lkc: {requirements: [...]}}`",
}
"""By key of earlier versions what to write instead."""
_AT_MOST: Mapping[str, str] = {
    "ruled_out": "write `ruled_out: 1`, or `diversity` for readers who rule out more values",
}
"""By key what to write instead of a number that is too large."""
_LISTS = {"tuple_type", "list_type"}
_MAPPINGS = {"model_type", "model_attributes_type", "dict_type", "mapping_type"}
_WHOLE_NUMBERS = {"int_parsing", "int_type", "int_from_float", "int_parsing_size"}
_TRUTHS = {"bool_parsing", "bool_type"}


def explained(item: Mapping[str, Any], fields: Any) -> str:
    """One problem. ``fields``: what was validated, with lines where it was read from YAML."""
    loc = [str(part) for part in item["loc"]]
    keys = [part for i, part in enumerate(loc) if not _is_branch(loc, i)]
    line = line_of(keys, fields)
    return (f"line {line}: " if line else "") + _about(".".join(keys), item)


def _about(path: str, item: Mapping[str, Any]) -> str:
    if item["type"] == "extra_forbidden":
        return f"unknown key `{path}`{INSTEAD.get(path, '')}"
    if item["type"] == "missing":
        return f"`{path}` is missing"
    key = path.rpartition(".")[2]
    if item["type"] == "less_than_equal" and key in _AT_MOST:
        return f"`{path}`: {_AT_MOST[key]}"
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
    return str(item["msg"]).removeprefix("Value error, ")


def _is_branch(loc: Sequence[str], i: int) -> bool:
    return i > 0 and loc[i - 1] in _UNIONS and loc[i] in _BRANCHES


def line_of(keys: Sequence[str], fields: Any) -> int | None:
    """The line of the innermost key of a path that the file has."""
    line = None
    for key in keys:
        if isinstance(fields, Keys) and key in fields:
            line, fields = fields.lines[key], fields[key]
        elif isinstance(fields, list) and key.isdigit() and int(key) < len(fields):
            fields = fields[int(key)]
        else:
            break
    return line


def line_named(message: str, fields: Any) -> int | None:
    """Return the line of the first key of a file that a message names and the file has; None: it names no such key.

    A message names a key by its path (`model.lkc.K`, columns.age) or, in backticks, by itself.
    """
    model = fields.get("model") if isinstance(fields, Mapping) else None
    above: list[list[str]] = [[], *(["model", key] for key in (model if isinstance(model, Mapping) else ()))]
    for path, key in _NAMED.findall(message):
        named = (path or key).split(".")
        for keys in [named] if path else ([*first, *named] for first in above):
            if _has(keys[:2] if path else keys, fields):
                return line_of(keys, fields)
    return None


_NAMED = re.compile(r"((?:columns|model|parties)(?:\.\w+)+)|`(\w+)")


def _has(keys: Sequence[str], fields: Any) -> bool:
    for key in keys:
        if not isinstance(fields, Mapping) or key not in fields:
            return False
        fields = fields[key]
    return True
