"""The mutants of one run of continuous integration: some of all, and some of what changed lately.

The draw follows from library and tests alone, so the same commit always runs the same mutants.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from tests.mutants.mutant import Mutant, Sources

OF_ALL = 40
OF_CHANGED = 40
COMMITS = 20


def drawn(mutants: Sequence[Mutant], sources: Sources, changed: frozenset[str]) -> list[Mutant]:
    """Return up to OF_ALL of all mutants and up to OF_CHANGED others of the files ``changed``, in the order given."""
    place = rank(sources)
    ranked = sorted(mutants, key=lambda mutant: place(mutant.name))
    first = ranked[:OF_ALL]
    more = [mutant for mutant in ranked[OF_ALL:] if _files(mutant, sources) & changed][:OF_CHANGED]
    chosen = {mutant.name for mutant in (*first, *more)}
    return [mutant for mutant in mutants if mutant.name in chosen]


def changed_files(root: Path, commits: int = COMMITS) -> frozenset[str]:
    """Return the paths that the last commits changed; nothing where ``root`` has no history that git shows.

    The first commit of a shallow clone changed nothing that can be told. Git shows nobody the files of another user.
    """
    if not (root / ".git").exists():
        return frozenset()
    words = f"-c log.showRoot=false log -{commits} --first-parent --name-only --format="
    command = ["git", "-C", str(root), *words.split()]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return frozenset(done.stdout.splitlines() if done.returncode == 0 else ())


def _files(mutant: Mutant, sources: Sources) -> frozenset[str]:
    """Return the file that a mutant changes, and the files of its tests."""
    return frozenset({sources.find(mutant).path, *(test.partition("::")[0] for test in mutant.tests)})


def rank(sources: Sources) -> Callable[[str], bytes]:
    """Return an order of names: by a digest of the library, the tests and the name."""
    tests = sorted((sources.root / "tests").rglob("*.py"))
    texts = chain(
        sources.texts.items(),
        ((path.relative_to(sources.root).as_posix(), path.read_text("utf-8")) for path in tests),
    )
    digest = _digest(text for pair in texts for text in pair).hex()
    return lambda name: _digest([digest, name])


def _digest(parts: Iterable[str]) -> bytes:
    state = sha256()
    for part in parts:
        state.update(part.encode() + b"\0")
    return state.digest()
