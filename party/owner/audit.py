"""Audit of a party: who asked for what, who decided, what was opened to whom, and what left the house.

The audit is a file of JSON lines that the program only adds to. Each line has the SHA-256 of the line before, so a
changed, removed or added line shows, up to the end of the file. With their votes on a release, and with the reasons
of a failed run, the parties tell each other the SHA-256 of their last lines (*heads*): an owner who shortens or
rewrites the audit cannot change the heads at the other parties. Each line has 16 random bytes, so that a head tells
nothing about its line.

Without a line there is no work: a line that cannot be written ends the job.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crypto.rng import Rng
from jobs.errors import PartyError, printable
from party.owner.config import PartyConfig

AUDIT = "audit.jsonl"
HEAD_BYTES = 32
_SALT_BYTES = 16
_FIRST = "0" * 64
_MOST_LINE = 1 << 16
"""Most bytes of a line."""
_MOST_TEXT = 500
_CHANGED = "does not follow from the line before: a line was changed, removed or added"


@dataclass(frozen=True)
class Line:
    """Line of an audit.

    number:  from 1.
    event:   as in docs/operation.md.
    facts:   further fields.
    """

    number: int
    time: str
    event: str
    facts: Mapping[str, Any] = field(repr=False)

    def is_between(self, since: datetime | None, until: datetime | None) -> bool:
        """Return True if the line is of a time between two, or of a time that cannot be read."""
        try:
            written = datetime.fromisoformat(self.time)
        except ValueError:
            return True
        if written.tzinfo is None:
            return True
        return (since is None or written >= since) and (until is None or written <= until)


@dataclass(frozen=True)
class Broken:
    """Line that does not follow from the line before."""

    number: int
    reason: str


@dataclass(frozen=True)
class Checked:
    """Findings about an audit.

    head:    SHA-256 of the last line, hexadecimal.
    broken:  lines that do not follow from the line before: a line was changed, removed or added there.
    torn:    numbers of lines that are not whole: the program was ended while it wrote, or the file was cut.
    """

    n_lines: int
    head: str
    broken: Sequence[Broken]
    torn: Sequence[int]


class Audit:
    """Audit in the state folder of a party."""

    def __init__(self, state_dir: Path, rng: Rng) -> None:
        self.path = state_dir / AUDIT
        self._rng = rng

    def note(self, event: str, facts: Mapping[str, Any], *, durable: bool = True) -> None:
        """Add a line. Raises PartyError if the line cannot be written.

        facts:    texts, numbers, and lists or mappings of both: nothing that was not opened anyway.
        durable:  return when the line is on disk. A line that is not durable outlasts the program, not the machine.
        """
        with self._locked() as file:
            before, number = _last(file)
            line = {
                "line": number + 1,
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "event": event,
                **{key: _told(value) for key, value in facts.items()},
                "salt": self._rng.bytes(_SALT_BYTES).hex(),
                "before": before,
            }
            encoded = json.dumps(line, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
            if len(encoded) > _MOST_LINE:
                raise OSError(errno.EMSGSIZE, f"a line of more than {_MOST_LINE} bytes")
            _append(file, encoded)
            if durable:
                os.fsync(file)

    def head(self) -> bytes:
        """Return the SHA-256 of the last line, 32 bytes; zeros without a line."""
        with self._locked() as file:
            return bytes.fromhex(_last(file)[0])

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Yield the open file, for this process alone. Turns errors of the operating system into PartyError."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise PartyError(
                "io-failed",
                "the audit cannot be written: no work without a line",
                cause=f"{self.path}: {error}",
            ) from error

    def lines(self) -> Iterator[Line]:
        """Yield the lines that can be read, in order."""
        for content in self._contents():
            if (fields := _fields(content)) is not None:
                yield _line(fields)

    def last(self, most: int, event: str = "") -> list[Line]:
        """Return the last lines that can be read, newest first.

        event:  of the lines; empty: any event.
        """
        if event:
            found = deque((line for line in self.lines() if line.event == event), maxlen=most)
            return list(reversed(found))
        contents = deque(self._contents(), maxlen=most)
        return [_line(fields) for each in reversed(contents) if (fields := _fields(each)) is not None]

    def checked(self) -> Checked:
        """Follow the lines from the first to the last."""
        before, expected, n_lines = _FIRST, 1, 0
        broken: list[Broken] = []
        torn: list[int] = []
        for content in self._contents():
            fields = _fields(content)
            if fields is None:
                torn.append(expected)  # the next line follows from the bytes that are left
            elif fields["line"] != expected:
                broken.append(Broken(expected, f"has the number {fields['line']}"))
                expected = fields["line"]
            elif fields["before"] != before:
                broken.append(Broken(expected, _CHANGED))
            n_lines += fields is not None
            before, expected = _digest(content), expected + 1
        return Checked(n_lines, before, tuple(broken), tuple(torn))

    def beginning(self) -> str:
        """Return the SHA-256 of the first line, hexadecimal; empty without a whole line."""
        first = next(self._contents(), b"")
        return _digest(first) if first.endswith(b"\n") else ""

    def has(self, head: str) -> bool:
        """Return True if a head, as another party noted it, is the SHA-256 of one of the lines."""
        return any(_digest(content) == head for content in self._contents())

    def _contents(self) -> Iterator[bytes]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # no line is half-written now, unless its writer was ended
            left = os.fstat(file.fileno()).st_size
            fcntl.flock(file, fcntl.LOCK_UN)  # a reader of a long audit holds up no work
            for content in file:
                yield content[:left]
                left -= len(content)
                if left <= 0:
                    return


def changes(before: PartyConfig, after: PartyConfig) -> dict[str, Any]:
    """Return the keys of a configuration that changed, and the digest of the policy now in force.

    Without a changed key a certificate or the key changed, whose paths stayed the same.
    """
    changed = [key for key in type(after).model_fields if getattr(before, key) != getattr(after, key)]
    names = {**before.peers, **after.peers}
    peers = [name for name in names if before.peers.get(name) != after.peers.get(name)]
    facts = {"changed": changed or ["certificates"], "policy_sha256": policy_digest(after)}
    return {**facts, "peers": peers} if peers else facts


def policy_digest(config: PartyConfig) -> str:
    """Return the SHA-256 of a policy, hexadecimal."""
    return _digest(config.policy.model_dump_json().encode())


def as_csv(lines: Iterable[Line], encoding: str = "utf-8") -> Iterator[str]:
    """Yield lines as CSV: number, time, event, and the further fields as JSON.

    encoding:  of the reader. Characters that the encoding lacks are escaped.
    """
    row = csv.writer(_Rows(), lineterminator="\n").writerow
    yield row(("line", "time", "event", "facts"))
    for line in lines:
        text = row((line.number, line.time, line.event, json.dumps(line.facts, ensure_ascii=False)))
        yield text.encode(encoding, "backslashreplace").decode(encoding)


def as_json(lines: Iterable[Line]) -> Iterator[str]:
    """Yield lines as JSON objects, each on a line, in ASCII."""
    for line in lines:
        fields = {"line": line.number, "time": line.time, "event": line.event, "facts": line.facts}
        yield f"{json.dumps(fields)}\n"


class _Rows:
    """File of a writer that returns each row."""

    def write(self, row: str) -> str:
        return row


def _append(file: int, content: bytes) -> None:
    """Add bytes to a file, all or none. Raises OSError."""
    size = os.fstat(file).st_size
    try:
        if os.write(file, content) != len(content):
            raise OSError(errno.ENOSPC, "the file took a part of a line")
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise


def _last(file: int) -> tuple[str, int]:
    """Return the SHA-256 and the number of the last line. A torn line is ended, and counts by its bytes."""
    size = os.fstat(file).st_size
    if size == 0:
        return _FIRST, 0
    tail = os.pread(file, min(size, 2 * _MOST_LINE), max(0, size - 2 * _MOST_LINE))
    if not tail.endswith(b"\n"):
        os.write(file, b"\n")
        tail += b"\n"
    *others, last = tail.splitlines(keepends=True)
    number = 0
    for content in (last, *reversed(others)):
        if (fields := _fields(content)) is not None:
            return _digest(last), int(fields["line"]) + number
        number += 1
    return _digest(last), number


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _fields(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a line; None for a line that is torn or no line of an audit."""
    if not content.endswith(b"\n"):
        return None
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return None
    known = isinstance(fields, dict) and isinstance(fields.get("line"), int)
    return fields if known and {"time", "event", "salt", "before"} <= fields.keys() else None


def _line(fields: dict[str, Any]) -> Line:
    facts = {key: value for key, value in fields.items() if key not in _OWN}
    return Line(fields["line"], str(fields["time"]), str(fields["event"]), facts)


_OWN = frozenset({"line", "time", "event", "salt", "before"})


def _told(value: Any) -> Any:
    """Return a fact with texts of foreign writers shortened, in one line each."""
    if isinstance(value, str):
        return printable(value, _MOST_TEXT)
    if isinstance(value, Mapping):
        return {str(key): _told(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_told(each) for each in value]
    return value
