"""Figures of the project's prose: README and documents, docstrings, and the sentences that the program says.

    python -m benchmarks.prose             a line for each document and each folder of code
    python -m benchmarks.prose --first     every docstring that begins with no verb or noun, with file and line
    python -m benchmarks.prose --long 28   every sentence of a document that has more words than this

Code, link targets and generated pages do not count. Headings and tables have words and pronouns; sentences are
counted in paragraphs and lists. A docstring of a value is the text that follows its assignment. A sentence of the
program is a string of five words or more that is no docstring.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "anonymize",
    "coordinator",
    "crypto",
    "evaluation",
    "jobs",
    "jointcut",
    "party",
    "benchmarks",
    "tests",
)
GENERATED = frozenset({"docs/job.md", "docs/policy.md", "docs/reveals.md", "docs/words.md"})
"""Documents that `make generate` writes."""
# fmt: off
PRONOUNS = frozenset((
    "another", "it", "its", "none", "one", "ones", "other", "others", "such", "that", "their", "them", "these",
    "they", "this", "those", "what", "which", "who", "whoever", "whose",
))
QUESTIONS = frozenset((
    "how", "what", "whatever", "when", "where", "whether", "which", "who", "whoever", "whom", "whose", "why",
    "those",
))
OPENERS = QUESTIONS | frozenset((
    "another", "as", "by", "for", "from", "in", "it", "its", "neither", "nobody", "none", "nothing", "of", "on",
    "one", "other", "others", "per", "so", "such", "to", "under", "with", "without",
))
# fmt: on
_LEAST_WORDS = 5
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_END = re.compile(r"(?<=[.!?])[)\"’”]?\s+(?=[A-Z\"“(])")


@dataclass(frozen=True)
class Prose:
    """The words of one text, and its sentences."""

    words: list[str]
    sentences: list[str]

    @property
    def pronouns(self) -> float:
        """Pronouns per 1,000 words."""
        return 1000 * sum(word.lower() in PRONOUNS for word in self.words) / max(len(self.words), 1)

    @property
    def lengths(self) -> tuple[float, float]:
        """The median number of words of a sentence, and the number that one sentence in ten exceeds."""
        lengths = [len(_WORD.findall(sentence)) for sentence in self.sentences]
        return (median(lengths), quantiles(lengths, n=10)[-1]) if len(lengths) > 1 else (0, 0)


def documents() -> list[Path]:
    """Return README and the documents that are written by hand."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.relative_to(ROOT).as_posix() not in GENERATED]


def of_markdown(text: str) -> Prose:
    """Return the prose of a Markdown text. Code becomes one name in its sentence, and no word."""
    words: list[str] = []
    sentences: list[str] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for before, token in pairwise(tokens):
        if token.type == "inline":
            plain = _plain(token)
            words += _WORD.findall(plain)
            if before.type == "paragraph_open":
                sentences += _sentences(plain)
    return Prose(words, sentences)


def _plain(token: Token) -> str:
    pieces = {"softbreak": " ", "hardbreak": " ", "code_inline": "0"}
    return "".join(pieces.get(child.type, child.content) for child in token.children or ())


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _END.split(text.strip()) if _WORD.search(sentence)]


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, its classes, functions and values, each with its line."""
    of_owner = isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    body: list[ast.stmt] = getattr(tree, "body", [])
    for i, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.If | ast.With):
            yield from docstrings(statement)
        elif _is_text(statement) and (
            of_owner if i == 0 else isinstance(body[i - 1], ast.Assign | ast.AnnAssign)
        ):
            yield statement.lineno, statement.value.value


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def said(tree: ast.AST) -> Iterator[str]:
    """Yield the strings of five words or more that are no docstrings. A value in a string becomes one name."""
    within: set[int] = set()
    texts = {line for line, _ in docstrings(tree)}
    for node in ast.walk(tree):  # a string with values comes before its parts
        if isinstance(node, ast.JoinedStr):
            within |= set(map(id, node.values))
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            text = "" if node.lineno in texts else node.value
        else:
            continue
        if len(text) >= 2 * _LEAST_WORDS - 1 and len(_WORD.findall(text)) >= _LEAST_WORDS:
            yield re.sub(r"`[^`]*`", "0", text)


def first_word(docstring: str) -> str:
    """Return the first word of a docstring, in small letters."""
    found = _WORD.search(docstring)
    return found[0].lower() if found else ""


@cache
def _read(path: Path) -> tuple[list[tuple[int, str]], list[str]]:
    """Read a Python file once: its docstrings, each with its line, and what a program says."""
    tree = ast.parse(path.read_text("utf-8"))
    of_program = path.relative_to(ROOT).parts[0] in FOLDERS[:-2]
    return list(docstrings(tree)), list(said(tree)) if of_program else []


def sources(folder: str) -> list[Path]:
    """Return the Python files of a folder that are written by hand."""
    return sorted((ROOT / folder).rglob("*.py"))


def openers(folder: str) -> frozenset[str]:
    """Return the words with which no docstring of a folder begins: tests may begin with more words."""
    return QUESTIONS if folder == "tests" else OPENERS


def ill_begun(folder: str) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and text of every docstring that begins with such a word."""
    for path in sources(folder):
        for line, text in _read(path)[0]:
            if first_word(text) in openers(folder):
                yield path.relative_to(ROOT), line, text


def of_docstrings(folder: str) -> Prose:
    """Return the docstrings of a folder."""
    return _of_texts(text for path in sources(folder) for _, text in _read(path)[0])


def _of_texts(texts: Iterable[str]) -> Prose:
    plain = [re.sub(r"`+[^`]*`+", "0", text) for text in texts]
    words = [word for text in plain for word in _WORD.findall(text)]
    paragraphs = [paragraph for text in plain for paragraph in re.split(r"\n\s*\n", text)]
    return Prose(words, [sentence for each in paragraphs for sentence in _sentences(each)])


def _line(name: str, prose: Prose, more: str = "") -> str:
    middle, most = prose.lengths
    return f"{name:34} {len(prose.words):7,} {prose.pronouns:9.0f} {middle:8.0f} {most:7.0f}{more}"


def main(words: list[str] | None = None) -> None:
    """Print the figures, or the places that an option asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prose")
    parser.add_argument(
        "--first", action="store_true", help="list docstrings that begin with no verb or noun"
    )
    parser.add_argument(
        "--long", type=int, metavar="WORDS", help="list sentences of documents with more words"
    )
    asked = parser.parse_args(words)
    if asked.first:
        for folder in FOLDERS:
            for path, line, text in ill_begun(folder):
                print(f"{path}:{line}: {text.strip().splitlines()[0]}")
        return
    found = {path.relative_to(ROOT).as_posix(): of_markdown(path.read_text("utf-8")) for path in documents()}
    if asked.long:
        for name, prose in found.items():
            for sentence in prose.sentences:
                if (n := len(_WORD.findall(sentence))) > asked.long:
                    print(f"{name}: {n} words: {sentence}")
        return
    print(f"{'':34} {'words':>7} {'pronouns':>9} {'median':>8} {'1 in 10':>7}")
    for name, prose in found.items():
        print(_line(name, prose))
    print(_line("README and docs", together(found.values())))
    for folder in FOLDERS:
        n = sum(1 for _ in ill_begun(folder))
        print(_line(f"docstrings of {folder}", of_docstrings(folder), f"  {n} begin badly"))
    print(_line("sentences of the program", of_program()))


def of_program() -> Prose:
    """Return the sentences that the program says."""
    return _of_texts(text for folder in FOLDERS[:-2] for path in sources(folder) for text in _read(path)[1])


def together(proses: Iterable[Prose]) -> Prose:
    """Return the prose of several texts as one."""
    all_of = list(proses)
    return Prose([w for each in all_of for w in each.words], [s for each in all_of for s in each.sentences])


if __name__ == "__main__":
    main()
