"""The mutants of one run of continuous integration: some of all, and some of what changed lately.

The draw follows from the sources alone, so the same commit always runs the same mutants.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from tests.mutants.mutant import Mutant, Sources

OF_ALL = 40
OF_CHANGED = 40
COMMITS = 20


def drawn(mutants: Sequence[Mutant], sources: Sources, changed: frozenset[str]) -> list[Mutant]:
    """Return up to OF_ALL of all mutants and up to OF_CHANGED others of the files ``changed``, in the order given."""
    ranked = sorted(mutants, key=_rank(sources))
    first = ranked[:OF_ALL]
    more = [mutant for mutant in ranked[OF_ALL:] if sources.find(mutant).path in changed][:OF_CHANGED]
    chosen = {mutant.name for mutant in (*first, *more)}
    return [mutant for mutant in mutants if mutant.name in chosen]


def changed_files(root: Path, commits: int = COMMITS) -> frozenset[str]:
    """Return the paths that the last commits changed; nothing where ``root`` has no history."""
    if not (root / ".git").exists():
        return frozenset()
    command = ["git", "-C", str(root), "log", f"-{commits}", "--first-parent", "--name-only", "--format="]
    return frozenset(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


class _rank:
    """Order mutants by a digest of the sources and of their names."""

    def __init__(self, sources: Sources) -> None:
        self._digest = _digest(f"{path}\0{text}" for path, text in sources.texts.items())

    def __call__(self, mutant: Mutant) -> bytes:
        return _digest([self._digest.hex(), mutant.name])


def _digest(parts: Iterable[str]) -> bytes:
    state = sha256()
    for part in parts:
        state.update(part.encode() + b"\0")
    return state.digest()
