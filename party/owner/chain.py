"""Lines that follow each other: every line of the audit has the hash of the one before it. No files, no clock.

A line is one JSON object in ASCII and a line end. ``n`` counts from 1; ``before`` is SHA-256, hexadecimal, of the
line before without its line end, ``START`` in the first one; ``at`` is the time by the writer's clock, ``what`` the
kind. Bytes that are no line are a *torn* line: a writer was cut off. They belong to the chain only with the line of
kind TORN behind them, which has their number and hash, and the hash of the last whole line as ``before``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.errors import json_object

START = "0" * 64
TORN = "torn"
_OURS = ("n", "before", "at", "what")


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain. n: of its last line, 0 if there is none. digest: of that line, hexadecimal."""

    n: int = 0
    digest: str = START


@dataclass(frozen=True, slots=True)
class Line:
    """One line, as it was read."""

    n: int
    before: str
    at: str
    what: str
    fields: Mapping[str, Any]
    digest: str

    @property
    def head(self) -> Head:
        return Head(self.n, self.digest)


class BrokenChainError(Exception):
    """A line does not follow. n: the first that is missing, changed or too many; text: says it."""

    def __init__(self, n: int, text: str) -> None:
        super().__init__(text)
        self.n = n


def line_after(head: Head, at: str, what: str, fields: Mapping[str, Any]) -> bytes:
    """The next line of a chain, with its line end."""
    whole = {"n": head.n + 1, "before": head.digest, "at": at, "what": what, **fields}
    return json.dumps(whole, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def line_in(raw: bytes) -> Line | None:
    """What a line says; None if it is no whole line."""
    found = json_object(raw) if raw.endswith(b"\n") else None
    if found is None:
        return None
    n, before, at, what = (found.pop(name, None) for name in _OURS)
    texts = all(isinstance(text, str) for text in (before, at, what))
    if not texts or not isinstance(n, int) or isinstance(n, bool):
        return None
    return Line(n, before, at, what, found, digest_of(raw))


@dataclass
class Chain:
    """Follows lines in order, from after ``head``. torn: bytes since the last whole line that are none."""

    head: Head = field(default_factory=Head)
    torn: bytes = b""

    def take(self, raw: bytes) -> Line | None:
        """Follow the next line; None if it is no whole one. Raises BrokenChainError if it does not belong there."""
        line = line_in(raw)
        if line is None:
            self.torn += raw
            return None
        self._check(line)
        self.head, self.torn = line.head, b""
        return line

    def _check(self, line: Line) -> None:
        due = self.head.n + 1
        if line.n > due:
            gone = f"line {due} is" if line.n == due + 1 else f"lines {due} to {line.n - 1} are"
            raise BrokenChainError(due, f"{gone} missing")
        if line.n < due:
            raise BrokenChainError(due, f"line {line.n} comes after line {self.head.n}")
        if line.before != self.head.digest:
            raise BrokenChainError(
                max(due - 1, 1), f"line {due} was not written after line {due - 1} as it is now"
            )
        if (line.what == TORN) != bool(self.torn) or not _covers(line, self.torn):
            raise BrokenChainError(due, f"what stands before line {due} is no line")

    def closing(self, at: str) -> tuple[bytes, bytes]:
        """What closes torn bytes: a line end if they have none, and a line that says so.

        With a mark before the line end: bytes that lack nothing else would be a line with it.
        """
        end = b"" if self.torn.endswith(b"\n") else b"~\n"
        return end, line_after(self.head, at, TORN, _told(self.torn + end))


def _covers(line: Line, torn: bytes) -> bool:
    return not torn or dict(line.fields) == _told(torn)


def _told(torn: bytes) -> dict[str, Any]:
    return {"bytes": len(torn), "sha256": hashlib.sha256(torn).hexdigest()}


def digest_of(raw: bytes) -> str:
    """SHA-256 of a line without its line end, hexadecimal."""
    return hashlib.sha256(raw.removesuffix(b"\n")).hexdigest()
