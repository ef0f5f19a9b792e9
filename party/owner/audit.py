"""The audit of a party: who asked for what, on what terms, and what left the house; apart from the log.

Lines of a chain (:mod:`party.owner.chain`) in files of `state_dir/audit`, each named after its first line. A line is
on disk when :meth:`Audit.write` returns; if it cannot be, that raises, and whoever was about to work must not: no
line, no work. One writer at a time, whichever process (the daemon, a command): whoever writes holds a lock, and first
follows what others wrote since. Nothing that was written is ever changed or taken away. Lines hold no data value,
and no count made from data beyond the shapes of what a run revealed to us (docs/security.md).
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crypto.errors import LocalProtocolError
from jobs.errors import PartyError
from party.owner.chain import TORN, BrokenChainError, Chain, Head, Line, digest_of, line_after, line_in

FOLDER = "audit"
SUFFIX = ".jsonl"
LOCK = ".lock"
MOST_BYTES = 4 << 20
"""A file that has so many bytes, or is of another month, gets no further line: the next one begins a new file."""
_LOCK_S = 10.0
_POLL_S = 0.02

KINDS: Mapping[str, str] = {
    "proposal": "a job was proposed to us",
    "decision": "somebody here approved or denied a job",
    "sign-in": "somebody here signed in to the owner's page",
    "start": "a job is about to begin: the table is read next",
    "reveal": "a value became known: its name, shape and recipients, as the mode lists it",
    "charge": "the privacy ledger is about to charge a run or count an answer, or gave a charge back",
    "release": "files were checked, or stored at the coordinator: they are the release, unless `end` says otherwise",
    "end": "a job is over here: what it came to",
    "heads": "the ends of the other parties' chains, and which end of ours they hold",
    "refusal": "somebody was turned away",
    "configuration": "what the daemon works under from now on",
    "stop": "the daemon was told to stop",
    TORN: "a writer was cut off: what stands before this line is none, and nothing was done on it",
}
"""What a line can be about."""

Entry = tuple[str, Mapping[str, Any]]
"""A kind, and the fields of a line."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the files a chain was followed to.

    last:   where its last line begins; end: where the next one does.
    chain:  as it stands there.
    """

    path: Path
    last: int
    end: int
    head: Head


class Audit:
    """The audit in one `state_dir`. Any number of these, in any processes, write one chain."""

    def __init__(
        self, state_dir: Path, clock: Callable[[], datetime] = _utc_now, most_bytes: int = MOST_BYTES
    ) -> None:
        self.folder = state_dir / FOLDER
        self._clock = clock
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._known: _Place | None = None
        self._unsure = False

    def write(self, kind: str, **fields: Any) -> Head:
        """Write a line; return the end of the chain when it is on disk. Raises as :meth:`write_all`."""
        return self.write_all([(kind, fields)])

    def write_all(self, entries: Sequence[Entry]) -> Head:
        """Write lines, all at once; return the end of the chain when they are on disk.

        Raises PartyError if they may not be: `audit-failed` for what the operating system says, `audit-broken` if
        what stands there is not what was written.
        """
        if unknown := [kind for kind, _ in entries if kind not in KINDS or kind == TORN]:
            raise LocalProtocolError(f"no line is about {', '.join(unknown)}")
        with self._ready() as (chain, path):
            return self._append(chain, path, entries)

    def begin(self) -> int:
        """Follow the last file, and close a line that a writer left torn; return how many bytes it had.

        Raises as :meth:`write_all`.
        """
        with self._ready() as (chain, path):
            if n_torn := len(chain.torn):
                self._append(chain, path, ())
            return n_torn

    @contextmanager
    def _ready(self) -> Iterator[tuple[Chain, Path | None]]:
        """Alone with the files: the chain as it stands, and the last file."""
        try:
            with self._lock, _only_writer(self.folder):
                if self._unsure:
                    raise OSError(None, "an earlier line may not be on disk: restart the daemon")
                yield self._follow()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise PartyError(
                "audit-failed",
                "the audit cannot be written",
                cause=f"{error.filename or self.folder}: {reason}",
            ) from error
        except BrokenChainError as error:
            raise PartyError(
                "audit-broken", "the audit is not as it was written", private=f"{self.folder}: {error}"
            ) from error

    def _follow(self) -> tuple[Chain, Path | None]:
        """Read what was written since we last looked."""
        files = audit_files(self.folder)
        known = self._known
        if known is None:
            chain, since = _last_begun(files)
            offset = 0
        else:
            _check_still_there(known)
            chain, since = Chain(known.head), [path for path in files if path.name >= known.path.name]
            offset = known.end
        for path in since:
            self._follow_file(chain, path, offset)
            offset = 0
        return chain, files[-1] if files else None

    def _follow_file(self, chain: Chain, path: Path, offset: int) -> None:
        with path.open("rb") as file:
            file.seek(offset)
            for raw in file:
                begins, offset = offset, offset + len(raw)
                if chain.take(raw) is not None:
                    self._known = _Place(path, begins, offset, chain.head)

    def _append(self, chain: Chain, path: Path | None, entries: Sequence[Entry]) -> Head:
        """Close what is torn, then write lines."""
        at = self._clock().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        lines = list(chain.closing(at)) if chain.torn else []
        head = Head(chain.head.n + 1, digest_of(lines[-1])) if lines else chain.head
        if path is None or (not lines and self._is_full(path, at)):
            path = _new_file(self.folder, head.n + 1)
        for kind, fields in entries:
            lines.append(line_after(head, at, kind, fields))
            head = Head(head.n + 1, digest_of(lines[-1]))
        self._put(path, b"".join(lines))
        if lines:
            end = path.stat().st_size
            self._known = _Place(path, end - len(lines[-1]), end, head)
        return head

    def _is_full(self, path: Path, at: str) -> bool:
        first = _first_line(path)
        return first is not None and (path.stat().st_size >= self._most_bytes or first.at[:7] != at[:7])

    def _put(self, path: Path, text: bytes) -> None:
        opened = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            left = memoryview(text)
            while left:
                left = left[os.write(opened, left) :]
            try:
                os.fsync(opened)
            except OSError:
                self._unsure = True  # whatever a later call says, this may be lost
                raise
        finally:
            os.close(opened)


def audit_files(folder: Path) -> list[Path]:
    """The files of an audit, in order."""
    return sorted(folder.glob(f"[0-9]*{SUFFIX}"))


def _first_line(path: Path) -> Line | None:
    """The first whole line of a file; None if it has none yet."""
    with path.open("rb") as file:
        return next((line for raw in file if (line := line_in(raw)) is not None), None)


def _last_begun(files: Sequence[Path]) -> tuple[Chain, Sequence[Path]]:
    """The last file that has a whole line, with those after it, and the chain before them; all if none has.

    Whether the files before it end as it says, `party audit verify` tells.
    """
    for i in range(len(files) - 1, -1, -1):
        if (line := _first_line(files[i])) is not None:
            return Chain(Head(line.n - 1, line.before)), files[i:]
    return Chain(), files


def _check_still_there(known: _Place) -> None:
    """The last line that we know must be what it was: else somebody cut the file off, or wrote another."""
    try:
        with known.path.open("rb") as file:
            file.seek(known.last)
            raw = file.read(known.end - known.last)
    except FileNotFoundError:
        raw = b""
    if not raw.endswith(b"\n") or digest_of(raw) != known.head.digest:
        raise BrokenChainError(known.head.n, f"line {known.head.n} is not what was written")


def _new_file(folder: Path, n: int) -> Path:
    """Make the file whose first line is number ``n``."""
    path = folder / f"{n:012d}{SUFFIX}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
    return path


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is not there. Raises OSError if somebody else keeps it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_S
        while not _locked(lock):
            if time.monotonic() > deadline:
                raise OSError(errno.EBUSY, "another process keeps writing to it", str(folder))
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
