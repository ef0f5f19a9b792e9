"""Sentences about errors in a job or a configuration: the key, its line, and a correction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from anonymize.errors import SchemaError
from jobs.errors import printable
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
_LENGTHS = {
    "string_too_short": ("min_length", "a text of {} or more characters"),
    "string_too_long": ("max_length", "a text of at most {} characters"),
    "too_long": ("max_length", "at most {} entries"),
}
_FORMS = {
    **dict.fromkeys(
        ("float_parsing", "float_type", "finite_number", "decimal_parsing"), "a number, e.g. 2.5"
    ),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), "a date, e.g. 2024-05-31"),
    "path_type": "a path",
}
_OWN = {"value_error", "assertion_error"}
"""Kinds of findings with a sentence of ours. All other kinds have a sentence of pydantic."""
_OF_TAXONOMIES = {"taxonomy-invalid", "taxonomy-two-parents"}
"""Errors with a place in the hierarchy file."""


Advice: TypeAlias = Callable[[Sequence[str], Any], str]
"""Function from the path of an unknown key, and the file, to advice; empty without advice."""


@dataclass(frozen=True)
class Problems:
    """Sentences about a file, with unknown keys first.

    are_unknown_keys:  True if the file has an unknown key.
    remedy:            common remedy; empty: the remedy of the error.
    """

    sentences: tuple[str, ...]
    are_unknown_keys: bool
    remedy: str


@dataclass(frozen=True)
class _Finding:
    """Fault with its key.

    remedy:   empty if unknown.
    is_told:  True if the sentence ends with the remedy.
    """

    keys: tuple[str, ...]
    sentence: str
    remedy: str = ""
    is_told: bool = True


def explained(
    items: Iterable[Mapping[str, Any]],
    fields: Any,
    advice: Advice,
    known: Callable[[Sequence[str]], Iterable[str]],
    *,
    show: bool = False,
) -> Problems:
    """Return pydantic's findings in sentences. fields: the file, with lines if read from YAML.

    Unknown keys with the same advice share a sentence, with the line of the first key.

    known:  returns the keys that may stand below a path.
    show:   quote wrong values: everybody may read them.
    """
    found = [(_keys(item["loc"], fields), item) for item in _causes(list(items))]
    unknown = [keys for keys, item in found if item["type"] == "extra_forbidden"]
    told = {keys: advice(keys, fields) or _below(keys, fields, known) for keys in unknown}
    meant = {keys: _meant(keys, fields, known) for keys in unknown if not told[keys]}
    cut = {(*keys[:-1], before) for keys in unknown if (before := _cut_by_comma(keys, fields))}
    settled = cut | {(*keys[:-1], key) for keys, key in meant.items() if key}
    findings = [
        *_unknown(told, fields, meant),
        *(
            _finding(keys, item, show)
            for keys, item in found
            if item["type"] != "extra_forbidden" and keys not in settled
        ),
    ]
    sentences = tuple(_at_line(each.keys, fields, each.sentence) for each in findings)
    if len(findings) == 1:
        return Problems(sentences, bool(unknown), findings[0].remedy)
    is_all_told = all(each.remedy and each.is_told for each in findings)
    return Problems(sentences, bool(unknown), _AS_SAID if is_all_told else "")


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


def _unknown(
    told: Mapping[tuple[str, ...], str],
    fields: Any,
    meant: Mapping[tuple[str, ...], str],
) -> Iterator[_Finding]:
    """Yield the findings about unknown keys.

    told:   the advice by path; empty without advice.
    meant:  the likely key by path, where there is no advice.
    """
    alike: dict[str, list[tuple[str, ...]]] = {}
    for keys, words in told.items():
        alike.setdefault(words or ".".join(keys), []).append(keys)
    for paths in alike.values():
        keys = paths[0]
        *first, last = [f"`{'.'.join(each)}`" for each in paths]
        fault = f"unknown keys {', '.join(first)} and {last}" if first else f"unknown key {last}"
        remedy = told[keys] or (f"write `{meant[keys]}`" if meant[keys] else "")
        if before := _cut_by_comma(keys, fields):
            whole, fraction = _at((*keys[:-1], before), fields), keys[-1]
            fault = f"`{'.'.join((*keys[:-1], before))}: {whole},{fraction}` has a decimal comma"
            remedy = f"write `{before}: {whole}.{fraction}`, with a decimal point"
        yield _Finding(keys, f"{fault}: {remedy}" if remedy else fault, remedy)


def _cut_by_comma(keys: Sequence[str], fields: Any) -> str:
    """Return the key whose number a decimal comma cut in two, as in `{C: 0,1}`, or an empty text."""
    beside = _at(keys[:-1], fields)
    if not isinstance(beside, Mapping) or not _is_digits(keys[-1]) or beside.get(keys[-1]) != "":
        return ""
    names = list(beside)
    before = names[max(names.index(keys[-1]) - 1, 0)]
    return before if _is_digits(str(beside[before]).lstrip("+-")) else ""


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _below(keys: Sequence[str], fields: Any, known: Callable[[Sequence[str]], Iterable[str]]) -> str:
    """Return the advice on a key that belongs below a key beside it; empty if no key beside it has such a key."""
    *above, key = keys
    beside = _at(above, fields)
    for name in beside if isinstance(beside, Mapping) else ():
        if isinstance(beside[name], Mapping) and key in known([*above, name]):
            return f"write the key under `{'.'.join([*above, name])}`"
    return ""


def _meant(keys: Sequence[str], fields: Any, known: Callable[[Sequence[str]], Iterable[str]]) -> str:
    """Return the known key that is most like an unknown key, unless the file has the known key; or an empty text."""
    *above, key = keys
    beside = _at(above, fields)
    there = [each for each in known(above) if not isinstance(beside, Mapping) or each not in beside]
    if (meant := _OTHER_WORDS.get(key.casefold(), "")) in there:
        return meant
    same = [each for each in there if each.casefold() == key.casefold()]
    return next(iter([*same, *get_close_matches(key[:_LONGEST_KEY], there, 1, _LIKE)]), "")


_OTHER_WORDS = {
    **dict.fromkeys(("min", "start", "begin"), "from"),
    **dict.fromkeys(("max", "end", "until"), "to"),
    **dict.fromkeys(("case", "lower", "lowercase", "casefold"), "ignore_case"),
    "prefix": "strip_prefix",
    "pad": "zfill",
}
"""Keys by other words of the same meaning."""
_LONGEST_KEY = 64
_LIKE = 0.65
"""Least likeness of two keys, from 0 to 1, of which one may be a slip for the other."""


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


def _finding(keys: tuple[str, ...], item: Mapping[str, Any], show: bool) -> _Finding:
    path = ".".join(keys)
    if item["type"] == "missing":
        where = f" under `{'.'.join(keys[:-1])}`" if keys[:-1] else ""
        remedy = f"add `{keys[-1]}: ...`{where}"
        return _Finding(keys, f"`{path}` is missing: {remedy}", remedy)
    message = fault_of(item)
    fault, remedy = with_remedy(message)
    value = _shown(item) if show and not fault else ""
    sentence = f"`{path}`{f' is {value}' if value else ''}: {message}" if path else message
    if remedy:
        return _Finding(keys, sentence, remedy)
    named = _FIRST_KEY.match(fault)
    own = (*keys, named[1]) if named else ()
    return _Finding(keys, sentence, _remedy_by_form(fault, ".".join(own)), is_told=False)


_FIRST_KEY = re.compile("`([a-z_]+)")


def _shown(item: Mapping[str, Any]) -> str:
    """Return the value of a finding in a few words; empty for a value without a short form."""
    value = item.get("input")
    if isinstance(value, Mapping | list | tuple):
        kind = "keys and values" if isinstance(value, Mapping) else "a list"
        return "" if item["type"] == "value_error" else kind if value else "empty"
    if value == "" or value is None:
        return "empty"
    return printable(value) if len(str(value)) <= _MOST_SHOWN else f"{printable(value, _MOST_SHOWN)}..."


_MOST_SHOWN = 40
_IMPERATIVE = re.compile(
    r"(?:^|[:;.] )(?=(?:add|allow|ask|choose|give|keep|leave|list|lower|make|name|protect|put|raise|remove|rename|"
    r"replace|say|set|take|use|write)\b)",
    re.IGNORECASE,
)
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


def with_remedy(message: str) -> tuple[str, str]:
    """Return the fault in a message `fault: what to write`, and what to write; either may be empty."""
    found = _IMPERATIVE.search(message)
    if found is None:
        return message, ""
    remedy = message[found.end() :].rstrip(".")
    return message[: found.start()], remedy[:1].lower() + remedy[1:]


def remedy_of(message: str, fields: Any) -> str:
    """Return the remedy of a message about a file; empty if the message shows no remedy."""
    fault, remedy = with_remedy(message)
    return remedy or _remedy_by_form(fault, ".".join(path_named(fault, fields)))


def _remedy_by_form(fault: str, path: str) -> str:
    """Return the remedy that follows from the form of a sentence: a key is for something, or needs something."""
    named = f"`{path}`" if path else "the key"
    if _HAS_NO.match(fault):
        return f"leave {named} out"
    if _IS_FOR.search(fault):
        return f"leave {named} out, or change the rest of the job"
    needed = _NEEDED.search(fault)
    if needed is None:
        return ""
    added = f"add {needed[1].strip(' ,')}"
    is_about_key = bool(path) and fault.lstrip("`").startswith(path)
    return f"{added}; or leave {named} out" if is_about_key and path not in _REQUIRED else added


_REQUIRED = ("version", "name", "partition", "model", "columns")
"""Keys of every job, which no job can leave out."""
_HAS_NO = re.compile(r"(?:partition \w+|a joint job|(?:`[^`]*`: )?a column of role \w+) has no ")
_IS_FOR = re.compile(r"\b(?:is|are)(?: not)? for ")
_NEEDED = re.compile(r" needs (?:its )?((?:`[^`]*`|\([^)]*\)|(?!, and )[^`;:(])+)")
"""Part of a sentence that names what is needed, up to the reason or the next part."""


_EXAMPLES = {
    "order": "{values: [low, medium, high]}",
    "icd": "{version: 10, values: [I21.4, E11.9]}",
    "prefix": "{values: [01067, 80331], lengths: [1, 3]}",
    "normalize": "{ignore_case: true}",
    "numeric": "{min: 0, max: 100, step: 5}",
    "dates": "{from: 2020-01-01, to: 2021-01-01, step: 1mo}",
}
"""Values of keys with keys below, by the last key."""
_ONE_CHARACTER = {"delimiter": '";", or "\\t" for a tab', "quote": '"\'"'}


def fault_of(item: Mapping[str, Any]) -> str:
    """Return a sentence on a finding of pydantic, without the key: mostly what to write."""
    kind, value = item["type"], item.get("input")
    if kind in _LISTS:
        shown = value if isinstance(value, str) else "VALUE"
        return f"write a list, e.g. [{shown}]"
    if kind in _MAPPINGS and item["loc"] == ("parties",):
        names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
        return f"write a key for each party, e.g. {{{', '.join(f'{name}: {{}}' for name in names[:3]) or 'a: {}'}}}"
    if kind in _MAPPINGS:
        return f"write keys and values, e.g. {_EXAMPLES.get(str(item['loc'][-1]), '{key: value}')}"
    if kind == "string_pattern_mismatch" and item["loc"][-1] in _ONE_CHARACTER:
        return f"it is no single ASCII character: write one, e.g. {_ONE_CHARACTER[item['loc'][-1]]}"
    if kind in _WHOLE_NUMBERS:
        return "write a whole number, e.g. 5"
    if kind in _TRUTHS:
        return "write true or false"
    if kind == "too_short" and item["loc"] == ("columns",):
        return "name 1 or more columns, e.g. {sex: {role: qid, suppress: [F, M]}}"
    if kind == "too_short":
        what = "entries, each `column: number`" if isinstance(item.get("input"), Mapping) else "entries"
        return f"list {item['ctx']['min_length']} or more {what}, or leave the key out"
    if kind == "string_type":
        return "write a single value"
    if kind == "literal_error" and item["loc"][-1] == "outside" and value == "drop":
        return f"write {item['ctx']['expected']}, and `missing: drop` to leave such rows out"
    if kind == "literal_error":
        return f"write {item['ctx']['expected']}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"write a number {words.format(item['ctx'][key])}"
    if kind in _LENGTHS:
        bound, words = _LENGTHS[kind]
        return f"write {words.format(item['ctx'][bound])}"
    if kind in _FORMS:
        return f"write {_FORMS[kind]}"
    if kind == "string_pattern_mismatch":
        return f"write a text of the form {item['ctx']['pattern']}"
    if kind not in _OWN:
        return "write a value of another form: the documentation of jobs and of configurations has the forms"
    said = str(item["msg"]).removeprefix("Value error, ")
    if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value) and "number" in said:
        return f"write {value.replace(',', '.')}, with a decimal point"
    return said


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


def place_of(path: Path | str, keys: Iterable[str], fields: Any) -> str:
    """Return a file with the line of a key, if the line is known."""
    line = line_of(keys, fields)
    return f"{path}: line {line}" if line else str(path)


def located(error: SchemaError, path: Path, fields: Any, named: Mapping[str, str | None]) -> SchemaError:
    """Return an error about a key or a column of a job file with the place.

    The place is a line of the hierarchy file if the error has such a line; otherwise the job file, with the line of
    the named key or of the column.

    named: the file of values, by column.
    """
    said = str(error)
    column = () if error.column is None else ("columns", error.column)
    keys = path_named(said, fields, column) or column
    if not keys:
        return error
    where = place_of(path, keys, fields)
    file = None if error.column is None else named.get(error.column)
    names_a_key = said.startswith(f"columns.{error.column}.")
    if file is not None and error.error_id in _OF_TAXONOMIES and not names_a_key:
        filed = str(path.parent / file)
        where = filed if error.line is not None else f"{where}: {filed}"
    return SchemaError(
        error.error_id,
        f"{where}: {said}",
        column=error.column,
        remedy=error.remedy,
        private=error.private,
        cause=error.cause,
        line=error.line,
    )


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
