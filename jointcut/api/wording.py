"""Sentences of the commands, in the words of Python: arguments instead of options, functions instead of commands.

The layers below speak of `--budget` and `coordinator budget`. All sentences pass here on the way to Python, so no
layer asks who will read a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

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


TABLE_FILE = "table.feather"
"""Name of the file that a table in memory is written to meanwhile."""
_OF_FILES: Mapping[str, str] = {
    rf"^{re.escape(TABLE_FILE)}, ": "",
    r"list the (value|text) in `missing`, beside the path or query in `data`": "make the cell None in your table",
    r'say `decimal: ","` under `data`, or write numbers with a point': "make numbers of the texts in your table: "
    """.str.replace(",", ".") and .astype(float)""",
    r', or say `decimal: ","` under `data`': "",
    r': say `decimal: ","` under `data`, which reads such numbers': ": make numbers of the texts in your table",
    r"check the file and": "check your table and",
    r"give the table a header line with the names of the columns, and rows": "give a table with columns and rows",
    r"a table given in Python has no header": "your table has no column",
    r"a table given in Python:": "your table:",
    r"; the file looks ('.'|tab)-separated: set `delimiter: .*?` beside the path; a command that names the "
    r"file has an option of this name": r"; the name looks like several names, \1-separated: read the file into "
    r"your table again, with this separator (pandas: `sep`)",
    r"""say `quote: "'"` under `data`""": "rename the columns of your table",
    r"say under `data` in the configuration of the table's owner what the value means \(`map`: a value of the job; "
    r"`missing`: a missing cell\), correct the value, or ask the author of the job to": "correct the value in your "
    "table (None for a missing cell), or change the job:",
    r"in the table, or leave the column out of the file": "of your table, or drop one",
}
"""Parts of sentences about files, as patterns, and the parts instead for a table in memory."""
_ROW = re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\brow (?P<row>[0-9,]+)(?=:)")


def in_memory(text: str, label: Callable[[int], str]) -> str:
    """Return a sentence about a file for a table in memory.

    label:  returns the words for a row, by its position from 0.
    """
    for pattern, words in _OF_FILES.items():
        text = re.sub(pattern, words, text)
    return _ROW.sub(
        lambda found: found[0] if found["row"] is None else label(int(found["row"].replace(",", "")) - 1),
        text,
    )


_ADD = re.compile(r"add (?=`[a-z_]+: \.\.\.`)")
_KEY = re.compile(r"`(?P<key>[A-Za-z_]+): (?P<value>[^`{}\[\]]+)`")
_VALUES: Mapping[str, str] = {"true": "True", "false": "False", "...": "..."}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def as_arguments(text: str) -> str:
    """Return a sentence about the keys of a job with arguments of Python: `start=...` for `from: ...`."""
    return _KEY.sub(_as_argument, _ADD.sub("write ", text)).replace("`from`", "`start`")


def _as_argument(found: re.Match[str]) -> str:
    key, value = "start" if found["key"] == "from" else found["key"], found["value"]
    printed = value if _NUMBER.fullmatch(value) else _VALUES.get(value, f'"{value}"')
    return f"`{key}={printed}`"


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
