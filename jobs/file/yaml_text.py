"""YAML as text. Scalars stay strings: `0.2` and `1/5` are read as rationals, and `N`, `No` or `010` stay
unchanged. Duplicate keys and aliases are refused.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from jobs.errors import ConfigError

MAX_TEXT_BYTES = 8 << 20
MAX_NODES = 1 << 16
MAX_DEPTH = 150
_AS_UTF_8 = 'save the file as UTF-8 (in a spreadsheet "CSV UTF-8")'
_READER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_HALF = re.compile("[\ud800-\udfff]")
_SCALARS = str | int | float | None


class Keys(dict[Any, Any]):
    """Mapping with the line (from 1) of each key in its file."""

    lines: Mapping[str, int]


class _Builder:
    """Builder of values from a parser's events. The writer of a file cannot exceed our bounds.

    A scalar is a string. Errors are: an alias, a repeated key, a key that is no scalar, a second document, too many
    nodes, too many levels.
    """

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_READER)
        self._n_nodes = 0

    def document(self) -> Any:
        """Return the only document, or None without a document."""
        next(self._events)  # the start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        found = self._node(next(self._events), 0)
        next(self._events)  # the end of the document
        if not isinstance(after := next(self._events), yaml.StreamEndEvent):
            raise _wrong("a second document begins; write a single document", after)
        return found

    def _node(self, event: yaml.Event, depth: int) -> Any:
        self._n_nodes += 1
        if self._n_nodes > MAX_NODES:
            raise _wrong(f"more than {MAX_NODES} values; put large taxonomies into separate files", event)
        if depth > MAX_DEPTH:
            raise _wrong("nested too deeply", event)
        match event:
            case yaml.ScalarEvent():
                return _text(event)
            case yaml.SequenceStartEvent():
                return list(self._items(depth + 1))
            case yaml.MappingStartEvent():
                return self._mapping(depth + 1)
            case _:
                raise _wrong("an alias (*name) is not allowed; write out the value", event)

    def _items(self, depth: int) -> Iterator[Any]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth)

    def _mapping(self, depth: int) -> Keys:
        found, lines = Keys(), {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _wrong("a key must be plain text", event)
            key = _text(event)
            if key in found:
                raise _wrong(f"key {key!r} stands twice", event)
            mark: Any = event.start_mark
            lines[key] = mark.line + 1
            found[key] = self._node(next(self._events), depth)
        found.lines = lines
        return found


def _text(event: yaml.ScalarEvent) -> str:
    value: str = event.value
    if _HALF.search(value):  # PyYAML itself accepts surrogates
        raise _wrong("half of a pair of surrogates is no character", event)
    return value


def _wrong(what: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # libyaml's have the same fields
    return yaml.MarkedYAMLError(None, None, what, mark)


def is_too_deep(value: Any) -> bool:
    """Return True if mappings and lists are nested on more than ``MAX_DEPTH`` levels."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for found in level if not isinstance(found, _SCALARS) for each in _inside(found)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def read_text(path: Path) -> str:
    """Read a UTF-8 file of at most ``MAX_TEXT_BYTES``. Raises ConfigError if that is not possible.

    Only regular files are opened: a pipe would be waited for, and a device may have no end.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise ConfigError("file-missing", f"{path} is no regular file", remedy="name a regular file")
        with path.open("rb") as file:
            content = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # a path with a zero byte
        raise ConfigError("file-missing", f"cannot read {str(path)!r}: {error}") from error
    if len(content) > MAX_TEXT_BYTES:
        raise ConfigError(
            "file-missing", f"{path} has more than {MAX_TEXT_BYTES} bytes", remedy="name a smaller file"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            "file-missing", f"{path} {_not_text(content, error.start)}", remedy=_AS_UTF_8
        ) from error
    if "\0" in text:  # as in UTF-16 without a mark
        raise ConfigError("file-missing", f"{path} {_not_text(content, content.index(0))}", remedy=_AS_UTF_8)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _not_text(content: bytes, at: int) -> str:
    """Return the likely kind of a file that is not UTF-8 text. at: first invalid byte."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 text"
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return "is an Excel workbook or a different archive"
    line = content.count(b"\n", 0, at) + 1
    if content[at] == 0:
        return f"has a zero byte (NUL) on line {line}: perhaps UTF-16 text"
    return f"is not UTF-8 text (line {line}; perhaps Latin-1 or Windows-1252)"


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML into nested dicts, lists and strings. Raises ConfigError with line and column.

    There are no aliases, at most ``MAX_NODES`` values and ``MAX_DEPTH`` levels: a few bytes cannot stand for more.
    """
    try:
        return _Builder(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if mark is not None and (found := _slip(error, mark.line, text.split("\n"))):
            line, what, remedy = found
            column = f", column {mark.column + 1}" if what == _SECOND_COLON else ""
            raise ConfigError(
                "yaml-invalid", f"{where}: line {line + 1}{column}: {what}", remedy=remedy
            ) from error
        place = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or "not valid YAML"
        raise ConfigError("yaml-invalid", f"{where}{place}: {what}") from error
    except UnicodeEncodeError as error:  # half of a pair of surrogates: no UTF-8
        raise ConfigError("yaml-invalid", f"{where}: not valid YAML") from error


_SECOND_COLON = "a second colon"
_ALIKE = "indent all keys of the same mapping alike"
_NO_COLON = "no colon with a blank after it", "write `key: value`"


def _slip(error: yaml.YAMLError, at: int, lines: Sequence[str]) -> tuple[int, str, str] | None:
    """Return the line of a usual slip, what is wrong there, and the remedy. The parser names a later line.

    at:  the line that the parser names; lines count from 0.
    """
    problem, mark = str(getattr(error, "problem", "")), getattr(error, "context_mark", None)
    if problem == "could not find expected ':'" and mark is not None:
        return (mark.line, *_NO_COLON)
    if problem.startswith("did not find expected ',' or") and mark is not None:
        opened = "{" if "}" in problem else "["
        what = f"the `{opened}` is not closed, or a comma is missing before line {at + 1}"
        return mark.line, what, f"write `{problem[-2]}` or the comma"
    if "quoted scalar" in str(getattr(error, "context", "")) and mark is not None:
        return mark.line, "a quote is not closed", "write the same quote at the end of the text"
    if problem.startswith(("mapping values are not allowed", "did not find expected <document start>")):
        return _second_colon(at, lines)
    if problem == "did not find expected key":
        return at, "an indent unlike the lines above", _ALIKE
    if lines[at : at + 1] and lines[at].startswith("\t"):
        return at, "a tab at the beginning", "indent with blanks"
    return None


def _second_colon(at: int, lines: Sequence[str]) -> tuple[int, str, str]:
    """Return the slip that lets a key stand inside a value."""
    head = re.split("[{\\[\"']", lines[at])[0]
    n_colons = head.count(": ") + head.rstrip().endswith(":")
    if not n_colons:
        return (at, *_NO_COLON)
    if n_colons > 1:
        return at, _SECOND_COLON, "put a text with a colon and a blank into quotes"
    before = next((n for n in range(at - 1, -1, -1) if lines[n].strip() and lines[n].lstrip()[0] != "#"), at)
    if ": " not in lines[before]:
        return (before, *_NO_COLON)
    return at, "a key below a value", _ALIKE
