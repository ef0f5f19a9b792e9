"""Sentences of the commands, in the words of Python: arguments instead of options, functions instead of commands.

The layers below speak of `--budget` and `coordinator budget`. All sentences pass here on the way to Python, so no
layer asks who will read a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_PHRASES: Mapping[str, str] = {
    "see the command with --help": "see help() of the function",
    "or give --files-anywhere if": "or read the job by `jointcut.Job.from_yaml(..., files_anywhere=True)` if",
    "here: --release DIGEST": "here: the argument `release`",
    "that `coordinator run` printed (--release DIGEST)": "of the run, `Result.digest`, as the argument `release`",
    "(--release DIGEST)": "(the argument `release`)",
}
"""Parts of sentences with a wording of their own."""

_FUNCTIONS: Mapping[str, str] = {
    "budget": "jointcut.budget",
    "draft": "jointcut.draft",
    "evaluate": "jointcut.evaluate",
    "explore": "jointcut.explore",
    "run": "jointcut.anonymize",
    "simulate": "jointcut.simulate",
    "verify": "jointcut.verify",
}
"""Function instead of each command of a coordinator. Other commands stay: Python has no function for their task."""

_ARGUMENTS: Mapping[str, str] = {"class": "class_", "score": "scores"}
"""Arguments with another name than the option of the command."""

_OF_COMMAND = r"(?: (?:--[a-z-]+|'[^']*'|[A-Z]+\b))*"
_SAID = "|".join(
    [
        r"(?<!\w)'[^'\n]*'(?!\w)",  # a quoted name or value
        *map(re.escape, _PHRASES),
        rf"(?<!the )coordinator (?P<name>[a-z]+){_OF_COMMAND}",
        rf"\bparty [a-z]+{_OF_COMMAND}",
        r"`--(?P<given>[a-z-]+) (?P<value>[^`\n]+)`",
        r"--(?P<option>[A-Za-z][a-z-]*)",
    ]
)


def in_python(text: str, names: Iterable[str] = ()) -> str:
    """Return a sentence in the words of Python. A command without a function stays as it is.

    names:  of columns in the sentence. Names stay as they are, like everything in quotes.
    """
    kept = [re.escape(name) for name in names if name]
    return re.sub("|".join([*kept, _SAID]), _worded, text)


def all_in_python(texts: Iterable[str]) -> tuple[str, ...]:
    """Return sentences in the words of Python."""
    return tuple(map(in_python, texts))


def _worded(found: re.Match[str]) -> str:
    if found["given"] is not None:
        return f"`{_argument(found['given'])}={found['value']!r}`"
    if found["option"] is not None:
        return _argument(found["option"])
    if found[0] in _PHRASES:
        return _PHRASES[found[0]]
    return _FUNCTIONS.get(found["name"] or "", found[0])


def _argument(option: str) -> str:
    """Return the argument instead of an option."""
    return _ARGUMENTS.get(option, option.replace("-", "_"))
