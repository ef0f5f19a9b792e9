"""YAML as text. Scalars stay strings: `0.2` and `1/5` are read as rationals, and `N`, `No` or `010` stay
unchanged. Duplicate keys and aliases are refused.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from jobs.errors import ConfigError

MAX_TEXT_BYTES = 8 << 20
MAX_NODES = 1 << 16
MAX_DEPTH = 150
_AS_UTF_8 = 'save the file as UTF-8 (in a spreadsheet "CSV UTF-8")'
_READER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


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
    if any("\ud800" <= character <= "\udfff" for character in value):  # PyYAML itself accepts surrogates
        raise _wrong("half of a pair of surrogates is no character", event)
    return value


def _wrong(what: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # libyaml's have the same fields
    return yaml.MarkedYAMLError(None, None, what, mark)


def is_too_deep(value: Any) -> bool:
    """Return True if mappings and lists are nested on more than ``MAX_DEPTH`` levels."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for found in level for each in _inside(found)]
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
            raise ConfigError("file-missing", f"{path} is no regular file")
        with path.open("rb") as file:
            content = file.read(MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:  # a path with a zero byte
        raise ConfigError("file-missing", f"cannot read {str(path)!r}: {error}") from error
    if len(content) > MAX_TEXT_BYTES:
        raise ConfigError("file-missing", f"{path} has more than {MAX_TEXT_BYTES} bytes")
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
        place = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or "not valid YAML"
        raise ConfigError("yaml-invalid", f"{where}{place}: {what}") from error
    except UnicodeEncodeError as error:  # half of a pair of surrogates: no UTF-8
        raise ConfigError("yaml-invalid", f"{where}: not valid YAML") from error
