"""Each command that a document or a file of deploy/ shows exists, and takes these options and arguments.

No command is run: click's own parser reads its words. Tests that run the commands: tests/test_readme.py,
tests/test_hospitals_guide.py, tests/deploy/.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import coordinator.cli
import party.cli.commands
from party.cli.late import Late

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = {"party": party.cli.commands.app, "coordinator": coordinator.cli.app}
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
DEPLOYED = sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file())
_SHOWN = re.compile(r"(?:party|coordinator) [a-z]")
_IN_PLACE = re.compile(r"(?:^|/bin/|[(`])((?:party|coordinator) [a-z]+[^`)]*)")
"""Command at the beginning of a line, at its place in a system, in brackets or in backticks."""


def spans(text: str) -> Iterator[str]:
    """Yield what a page has in backticks, but for blocks."""
    for span in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)):
        if _SHOWN.match(words := " ".join(span.split())):
            yield words


def block_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page's blocks that are commands, each with the lines that continue it."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if language != "sh":
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if _SHOWN.match(line):
                yield line


def deployed(path: Path) -> Iterator[str]:
    """Yield the commands of a file of deploy/, also those of its comments."""
    text = path.read_text("utf-8")
    for line in text.replace("\\\n", " ").splitlines():
        yield from _IN_PLACE.findall(line.strip())
    if path.name == "compose.yaml":
        for service in yaml.safe_load(text)["services"].values():
            if service.get("entrypoint", [""])[0] in PROGRAMS:
                yield shlex.join([*service["entrypoint"], *service["command"]])


def words_of(command: str) -> list[str]:
    """Return the words of a command up to a comment, a pipe or an ellipsis; an optional part counts as given."""
    words = shlex.split(command.replace("[", " ").replace("]", " "), comments=True)
    ends = [i for i, word in enumerate(words) if word in ("|", ">", "&&", ";", "...", "…", "&")]
    return words[: min(ends, default=len(words))]


def objection(words: list[str], *, whole: bool) -> str:
    """Return what click has against a command; empty if nothing.

    whole:  the command is shown as it is typed: no required argument or option may be missing.
    """
    command: click.Command = PROGRAMS[words[0]]
    rest, name = words[1:], words[0]
    while True:
        context = click.Context(command, info_name=name)
        try:
            given, rest, _ = command.make_parser(context).parse_args(list(rest))
        except click.BadOptionUsage as error:  # `party check --job` names an option in a sentence
            return f"{name}: {error.format_message()}" if whole else ""
        except click.UsageError as error:
            return f"{name}: {error.format_message()}"
        if given.get("help"):
            return ""
        if not isinstance(command, click.Group):
            break
        if not rest:
            return "" if not whole else f"{name}: no command"
        found = command.get_command(context, rest[0])
        if found is None:
            return f"{name}: no command {rest[0]}"
        command, name, rest = found.command if isinstance(found, Late) else found, rest[0], rest[1:]
    if rest:
        return f"{name}: too many arguments: {' '.join(rest)}"
    missing = [each.name or "" for each in command.params if each.required and not _is_given(given, each)]
    return f"{name}: without {', '.join(missing)}" if whole and missing else ""


def _is_given(given: Mapping[str, Any], parameter: click.Parameter) -> bool:
    """Return True if words were given for a parameter; click has values of its own for a parameter without."""
    value = given.get(parameter.name or "")
    return bool(value) and isinstance(value, str | bool | int | list | tuple)


def objections(commands: Iterator[str], *, whole: bool) -> list[str]:
    found = ((command, objection(words_of(command), whole=whole)) for command in commands)
    return [f"{command}: {said}" for command, said in found if said]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_a_page(page: Path) -> None:
    """In its blocks as they are typed; in its sentences and tables as far as they are named."""
    text = page.read_text("utf-8")
    assert objections(block_lines(text), whole=True) == []
    assert objections(spans(text), whole=False) == []


@pytest.mark.parametrize("path", DEPLOYED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_deploy(path: Path) -> None:
    assert objections(deployed(path), whole=False) == []


def test_commands_are_found() -> None:
    """The tests above look at something."""
    operation = (ROOT / "docs" / "operation.md").read_text("utf-8")
    assert len(list(spans(operation))) > 30
    assert {line.split()[1] for line in block_lines(operation)} >= {"renew", "peers"}
    found = {path.name: list(deployed(path)) for path in DEPLOYED}
    assert all(found[name] for name in ("compose-setup.sh", "compose.yaml", "jointcut-party.service"))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("party show 1234", ""),
        ("party approve HASH [--runs N] [--until DATE]", ""),
        ("party audit verify --head HEAD", ""),
        ("party aprove HASH", "party: no command aprove"),
        ("party approve HASH --rums 3", "approve: No such option"),
        ("party approve HASH --runs", "approve: Option '--runs' requires an argument."),
        ("party deny ONE TWO --reason X", "deny: too many arguments: TWO"),
        ("party audit", "audit: no command"),
        ("party deny --reason X", "deny: without digits"),
    ],
)
def test_a_wrong_command_is_seen(command: str, said: str) -> None:
    found = objection(words_of(command), whole=True)
    assert found.startswith(said) if said else not found
