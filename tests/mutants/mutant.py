"""A fault by the definition that it breaks, and the place of that definition in the sources.

A mutant names a definition (`Stock.take`) and quotes the code in it that is to change. Neither file nor layout is
named: a definition may move to another file or be formatted anew, and its mutants move along. `Sources.check` takes
about a second to see whether the code of each mutant occurs exactly once.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ("anonymize", "coordinator", "crypto", "evaluation", "jobs", "jointcut", "party")
_CLOSING = frozenset(")]}")


class Misplaced(ValueError):
    """The code that a mutant changes is not in the sources exactly once, or its tests are not there."""


@dataclass(frozen=True)
class Mutant:
    """A fault: in the definition ``place``, the code ``old`` becomes ``new``; ``tests`` must notice.

    ``place`` is the name of a function, class or constant, with as many of the names around it as tell it from
    others, outermost first: ``take``, ``Stock.take``, ``lookup.Stock.take``. White space in ``old`` and a comma
    before a closing bracket do not count. A fault that leaves code out has an empty ``new``.
    """

    name: str
    place: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """The place where a mutant changes the sources: characters ``start`` to ``end`` of the file ``path``."""

    path: str
    start: int
    end: int


class Sources:
    """The text of every file of the library, and the definitions in them."""

    def __init__(self, root: Path = ROOT, folders: Sequence[str] = LIBRARY) -> None:
        self.root = root
        self._paths = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The text of each file by its path below the root."""
        return {path.relative_to(self.root).as_posix(): path.read_text("utf-8") for path in self._paths}

    @cached_property
    def _definitions(self) -> Mapping[str, list[tuple[str, Found]]]:
        """The definitions by their own name: the whole dotted name, and the lines."""
        found = defaultdict(list)
        for path, text in self.texts.items():
            starts = _line_starts(text)
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            for name, first, last in _definitions(ast.parse(text, path), module):
                found[name.rpartition(".")[2]].append((name, Found(path, starts[first - 1], starts[last])))
        return found

    def find(self, mutant: Mutant) -> Found:
        """Return where the mutant's code is. Raises Misplaced where that is nowhere or in several places."""
        pattern = _pattern(mutant.old)
        places = [
            place
            for name, place in self._definitions[mutant.place.rpartition(".")[2]]
            if f".{name}".endswith(f".{mutant.place}")
        ]
        found = [
            Found(place.path, *match.span())
            for place in places
            for match in pattern.finditer(self.texts[place.path], place.start, place.end)
        ]
        if len(found) != 1:
            where = ", ".join(sorted({place.path for place in places})) or "no file"
            raise Misplaced(
                f"{mutant.name}: the code occurs {len(found)} times in definitions named {mutant.place} ({where})"
            )
        return found[0]

    def mutated(self, mutant: Mutant) -> tuple[str, str]:
        """Return the path and the new text of the file that the mutant changes."""
        place = self.find(mutant)
        text = self.texts[place.path]
        return place.path, text[: place.start] + mutant.new + text[place.end :]

    def check(self, mutants: Sequence[Mutant]) -> list[str]:
        """Return a sentence for each mutant whose code, or one of whose tests, is not where the mutant says.

        Raises SyntaxError where a file of the library does not compile.
        """
        names = Counter(mutant.name for mutant in mutants)
        twice = [f"{name}: {n} mutants have this name" for name, n in names.items() if n > 1]
        return twice + [problem for mutant in mutants for problem in self._problems(mutant)]

    def _problems(self, mutant: Mutant) -> Iterator[str]:
        try:
            path, text = self.mutated(mutant)
            compile(text, path, "exec")
            if self._is_in_a_comment(self.find(mutant)):
                yield f"{mutant.name}: the code is a comment in {mutant.place}"
        except Misplaced as error:
            yield str(error)
        except SyntaxError as error:
            yield f"{mutant.name}: the changed code does not compile: {error}"
        for test in mutant.tests:
            path, _, name = test.partition("::")
            if name not in self._tests_in(path):
                yield f"{mutant.name}: there is no test {test}"

    def _is_in_a_comment(self, found: Found) -> bool:
        text = self.texts[found.path]
        line = text[text.rfind("\n", 0, found.start) + 1 : found.start]
        return line.lstrip().startswith("#")

    @cache  # noqa: B019  one object a process
    def _tests_in(self, path: str) -> frozenset[str]:
        """Return the names of the functions in a file of tests, and the empty name; no name without a file."""
        file = self.root / path
        if not file.exists():
            return frozenset()
        nodes = ast.walk(ast.parse(file.read_text("utf-8"), path))
        return frozenset(
            {"", *(n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))}
        )


def _line_starts(text: str) -> list[int]:
    """Return where each line starts, and the end of the text. Lines end where they end for Python."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return starts if starts[-1] == len(text) else [*starts, len(text)]


def _definitions(node: ast.AST, within: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, first and last line of each definition below a node, outer ones before inner ones."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield f"{within}.{child.name}", first, child.end_lineno or first
                yield from _definitions(child, f"{within}.{child.name}")
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if isinstance(node, ast.Module | ast.ClassDef):
                    yield f"{within}.{name}", child.lineno, child.end_lineno or child.lineno
            case ast.expr():
                pass
            case _:
                yield from _definitions(child, within)


def _pattern(code: str) -> re.Pattern[str]:
    """Return a pattern of the code in any layout."""
    tokens = re.findall(r"\w+|[^\w\s]", code)
    parts = [re.escape(tokens[0])]
    for before, token in pairwise(tokens):
        gap = r"\s+" if _is_word(before) and _is_word(token) else r"\s*"
        comma = r"(?:,\s*)?" if token in _CLOSING and before != "," else ""
        parts.append(gap + comma + re.escape(token))
    start = r"(?<!\w)" if _is_word(tokens[0]) else ""
    end = r"(?!\w)" if _is_word(tokens[-1]) else ""
    return re.compile(start + "".join(parts) + end)


def _is_word(token: str) -> bool:
    return re.match(r"\w", token) is not None
