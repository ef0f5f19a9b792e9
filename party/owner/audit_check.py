"""The audit read again: whether every line follows the one before it, and whether others saw the same chain.

A chain alone cannot show that its end was cut off, or that all of it was written anew. Ends of it that the other
parties hold can: each was told the hash of our line `end` of every run that came to a release. What they hold they
give us as a file (`party audit heads`), and tell our daemon with the next run, in the line `heads`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jobs.errors import PartyError, json_object
from party.owner.audit import audit_files
from party.owner.chain import TORN, BrokenChainError, Chain, Head, Line, line_in


@dataclass(frozen=True, slots=True)
class Held:
    """An end of our chain that a party holds. run: of which it was told, hexadecimal. digest: of our line."""

    party: str
    run: str
    digest: str


@dataclass
class Checked:
    """What is known of a chain whose lines follow each other.

    ends:   by run, the hash of its line `end`, with its number.
    held:   what our own lines `heads` say that others hold of us.
    notes:  what its owner should know: torn lines, a clock that went back.
    """

    head: Head = field(default_factory=Head)
    last_at: str = ""
    ends: dict[str, Head] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lines_of(folder: Path, torn: list[bytes] | None = None) -> Iterator[Line]:
    """All lines of an audit in order. Raises PartyError at the first that does not follow, OSError.

    torn:  is given the bytes of a last line that is not whole.
    """
    chain = Chain()
    for path in audit_files(folder):
        n_file = 0
        with path.open("rb") as file:
            for raw in file:
                n_file += 1
                try:
                    line = chain.take(raw)
                    _check_name(path, n_file, line)
                except BrokenChainError as error:
                    raise _broken(error, f"{path.name}, line {n_file} of the file") from error
                if line is not None:
                    yield line
    if chain.torn and torn is not None:
        torn.append(chain.torn)


def lines_between(folder: Path, first: str, end: str) -> Iterator[Line]:
    """The lines of some time as they stand, in order; whether they follow each other :func:`lines_of` finds out.

    first, end:  times as lines have them, from the first on and before the other. Raises OSError.
    """
    files = audit_files(folder)
    begins = [_begins(path) for path in files]
    for path, after in zip(files, [*begins[1:], None], strict=True):
        if after is not None and after < first:
            continue
        with path.open("rb") as file:
            for raw in file:
                line = line_in(raw)
                if line is not None and first <= line.at < end:
                    yield line


def last_at(folder: Path) -> str:
    """When the last line was written, as it says; empty if there is none. Raises OSError."""
    for path in reversed(audit_files(folder)):
        with path.open("rb") as file:
            times = [line.at for raw in file if (line := line_in(raw)) is not None]
        if times:
            return times[-1]
    return ""


def _begins(path: Path) -> str | None:
    """When the first whole line of a file was written."""
    with path.open("rb") as file:
        return next((line.at for raw in file if (line := line_in(raw)) is not None), None)


def _check_name(path: Path, n_file: int, line: Line | None) -> None:
    if n_file == 1 and line is not None and path.stem != f"{line.n:012d}":
        raise BrokenChainError(line.n, f"line {line.n} begins a file of another name")


def _broken(error: BrokenChainError, where: str) -> PartyError:
    return PartyError(
        "audit-broken",
        f"the audit is broken at line {error.n}: {error}",
        cause=where,
        remedy="keep the folder as it is and find out who could write to it; compare with a backup",
    )


def check(folder: Path) -> Checked:
    """Follow a whole chain. Raises as :func:`lines_of`."""
    found, torn = Checked(), list[bytes]()
    for line in lines_of(folder, torn):
        found.head = line.head
        found.notes += _notes_of(line, found.last_at)
        found.last_at = line.at
        if line.what == "end" and isinstance(run := line.fields.get("run"), str):
            found.ends[run] = line.head
        if line.what == "heads":
            found.held += _held_by_others(line)
    if torn:
        found.notes.append(
            f"{len(torn[0])} bytes behind line {found.head.n} are no whole line: somebody is writing, or was cut off"
        )
    return found


def _notes_of(line: Line, last_at: str) -> Iterator[str]:
    if line.what == TORN:
        yield f"before line {line.n}, at {line.at}, a writer was cut off: {line.fields['bytes']} bytes are no line"
    if last_at and _time(line.n, line.at) < _time(line.n, last_at):
        yield f"at line {line.n} the clock went back from {last_at} to {line.at}"


def _time(n: int, at: str) -> datetime:
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        raise _broken(BrokenChainError(n, "it has no time"), "") from None


def _held_by_others(line: Line) -> Iterator[Held]:
    """What the other parties said in a run that they hold of us, of their run before with us."""
    held = line.fields.get("held")
    for party, told in held.items() if isinstance(held, dict) else ():
        if isinstance(told, str):
            yield Held(party, "", told)


def compare(checked: Checked, held: Sequence[Held]) -> int:
    """Look for every end that others hold; return how many. Raises PartyError for the first that is not there."""
    digests = {head.digest for head in checked.ends.values()}
    for each in held:
        of_run = {checked.ends[each.run].digest} if each.run in checked.ends else set[str]()
        if each.digest not in (of_run if each.run else digests):
            raise _other(checked, each)
    return len(held)


def _other(checked: Checked, held: Held) -> PartyError:
    ours = checked.ends.get(held.run)
    of_run = f" of run {held.run}" if held.run else ""
    what = f"line {ours.n} of this chain is another" if ours else "this chain does not have it"
    return PartyError(
        "audit-broken",
        f"{held.party} holds an end of our chain{of_run} that is not in it: {what}",
        remedy="the chain was cut off or written anew after that run, or the other party says what is not so: "
        "compare with what a third one holds, and with a backup",
    )


def read_held(path: Path, us: str) -> list[Held]:
    """What a party holds of us, as its `party audit heads` wrote it. Raises PartyError for another file."""
    found = json_object(path.read_bytes()) or {}
    by, heads = found.get("by"), found.get("heads")
    if found.get("of") != us or not isinstance(by, str) or not isinstance(heads, list):
        raise PartyError("config-invalid", f"{path} does not say what a party holds of {us}")
    return [_held_in(each, by, path) for each in heads]


def _held_in(fields: Any, by: str, path: Path) -> Held:
    texts = [fields.get(key) for key in ("run", "sha256")] if isinstance(fields, dict) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise PartyError("config-invalid", f"{path} has a head without run or hash")
    return Held(by, *texts)


def heads_of(folder: Path, party: str) -> list[Mapping[str, str]]:
    """The ends of another party's chain that we hold, oldest first. Raises as :func:`lines_of`."""
    return [
        {"run": line.fields["run"], "at": line.at, "sha256": line.fields["heads"][party]}
        for line in lines_of(folder)
        if line.what == "heads" and party in line.fields["heads"]
    ]
