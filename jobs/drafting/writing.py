"""Text of a drafted job: YAML with a comment for each guess."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.data.texts import alike, fault_of
from jobs.drafting.counting import Counted
from jobs.drafting.guessing import Asked, Guess, confidence
from jobs.file.fields import NAME

_WIDTH = 110
_BARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*(-[A-Za-z0-9_.]+)*")
_HEAD = """\
# A draft by `coordinator draft`. Every comment says what was guessed, and why: read, correct, run.
# Domains are public: whoever gets this job, the table or the report reads the values and ranges below.
"""
_LKC = """\
# The requirement. Whoever knows any {L} quasi-identifiers of a person finds at least {K} records that match{of_c}.
"""
_OF_C = ",\n# and infers a sensitive value with a confidence of at most C"
_NONE_SENSITIVE = """\
# No column is sensitive: nothing bounds inferences. To bound them, write `role: sensitive` at a column whose values
# nobody may infer, and a C beside K.
"""
_WITHHELD = """\
# At most 1 row in 100 may be left out, if the other rows then keep more detail: rows of rare combinations. Remove
# `withhold` to keep every row.
"""
_FREQUENT = """\
# A value of a sensitive column is so frequent that C is large here. To protect the others better, list them at the
# column as `values: [...]`, and take a smaller C.
"""
_DP = """\
# Differential privacy. A smaller epsilon protects more and tells less. Each domain was taken from the table, and DP
# does not protect a domain: replace each one by a public one and remove `from_data`, or write `from_data: confirmed`.
"""
_ORDER = """\
# No drawn row has a later column of `order` before an earlier one. The order was guessed: in nearly all rows of the
# table the dates follow each other. Remove `order` if the order is no rule.
"""
_GOAL = {
    "general": "# No column has `role: class`, so no use of the table is known.\n",
    "classification": "# The table keeps detail that predicts the class.\n",
}
_COLUMNS = """\
# Columns that are not named are not published. qid: known to attackers, so generalized. In this job a value outside
# its domain counts as missing (`outside: missing`). `missing: leaf` keeps a row without a number or date under `?`.
"""
_COLUMNS_JOINT = """\
# Columns that are not named are not published. qid: known to attackers, so generalized. Each column lists all of its
# values: a run refuses a table with another value or a number outside the range. Add the values of all parties; a
# party may also map its own values in its configuration (`party draft --job JOB`).
"""
_JOINT = """\
partition: horizontal   # the parties have different people, and the same columns
# No `data`: each party names its own table in its own configuration. A joint job has no `withhold` and no `outside`,
# because the parties would learn which rows of others are rare.
"""
_MODES = {
    "sealed": "no count finer than the table is opened; which steps are refused becomes known",
    "strict": "no count finer than the table is opened, and which steps are refused stays hidden",
    "leader": "the leader learns sums over all parties for every step, also of groups below K: quicker",
}
"""Meaning of each `disclosure`, for a comment."""
_COLUMNS_DP = """\
# Columns that are not named are not published. A value outside its domain counts as missing, a number as its nearest.
"""


def job_text(
    path: str,
    name: str,
    guesses: Sequence[Guess],
    columns: Mapping[str, Counted],
    asked: Asked,
    *,
    form: Mapping[str, str],
    order: Sequence[str] = (),
) -> str:
    """Return the text of a job.

    path:     the table, relative to the job file.
    guesses:  columns of the job, in order.
    columns:  the counted columns, by name.
    form:     facts on the form of the file, by key under `data`.
    order:    columns of dates in their order; empty without an order.
    """
    roles, dp = [guess.role for guess in guesses], asked.dp
    goal = "classification" if "class" in roles else "general"
    kept = [columns[guess.name] for guess in guesses]
    model = _dp_lines(guesses, columns, order) if dp else _lkc_lines(guesses, columns, asked)
    holders = (
        _joint_lines(asked)
        if asked.parties
        else [
            "partition: single   # one holder has the whole table\n",
            *yaml_lines("data", _data(path, kept, form), ""),
        ]
    )
    lines = [
        _HEAD,
        "version: 1\n",
        f"name: {name}\n",
        *holders,
        *model,
        _GOAL[goal],
        f"goal: {goal}\n",
        _COLUMNS_DP if dp else _COLUMNS_JOINT if asked.parties else _COLUMNS,
        "columns:\n",
    ]
    for guess in guesses:
        lines.append(f"  # {guess.why}\n")
        lines += yaml_lines(guess.name, guess.keys or {}, "  ")
    return "".join(lines)


def name_of(table: Path) -> str:
    """Return the name of a job for a table."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", table.name.split(".")[0]).strip("-._")[:40]
    return stem if NAME.fullmatch(stem) else "drafted"


def unnameable(names: Sequence[str]) -> dict[str, str]:
    """Return the columns of a table that no job can name, with the reason."""
    found: dict[str, str] = {}
    kept: list[str] = []
    for name in names:
        fault = fault_of(name) if name else "it is empty"
        if fault is None and names.count(name) > 1:
            fault = "two columns have the name"
        if fault is None and alike([*kept, name]):
            fault = "another column has the same name in another spelling"
        if fault is None:
            kept.append(name)
        else:
            found[name] = f"its name cannot stand in a job: {fault}"
    return found


def _data(path: str, kept: Sequence[Counted], form: Mapping[str, str]) -> Any:
    """Return the table with its form, texts of missing cells and frequent other spellings."""
    marks = sorted({mark for column in kept for mark in column.marks})
    words = {column.name: dict(column.respelled) for column in kept if column.respelled}
    more: dict[str, Any] = {
        **form,
        **({"missing": marks} if marks else {}),
        **({"map": words} if words else {}),
    }
    return {"path": path, **more} if more else path


def _joint_lines(asked: Asked) -> Iterator[str]:
    """Yield the parties and the mode of a joint job."""
    leader, deputy, *_ = asked.parties
    yield _JOINT
    yield '# With daemons on several machines, write the address of each party: {address: "HOST:PORT"}.\n'
    yield from yaml_lines("parties", {name: {} for name in asked.parties}, "")
    if asked.mode == "leader":
        yield f"leader: {quoted(leader)}   # adds up the counts of all\n"
    else:
        yield "# Leader and deputy compute for all parties: they must not put their shares together.\n"
        yield f"leader: {quoted(leader)}\ndeputy: {quoted(deputy)}\n"
    if not asked.dp:
        yield f"# {asked.mode}: {_MODES[asked.mode]}.\ndisclosure: {asked.mode}\n"


def owner_lines(
    guesses: Sequence[Guess], columns: Mapping[str, Counted], form: Mapping[str, str]
) -> list[str]:
    """Return the keys that a party's configuration needs under `data` for the table of a joint draft, if any."""
    words = _data("TABLE", [columns[guess.name] for guess in guesses], form)
    if not isinstance(words, Mapping):
        return []
    return ["".join(yaml_lines("data", words, "")).rstrip("\n")]


def _lkc_lines(guesses: Sequence[Guess], columns: Mapping[str, Counted], asked: Asked) -> Iterator[str]:
    sensitive = [guess for guess in guesses if guess.role == "sensitive"]
    known = min(2, sum(guess.role == "qid" for guess in guesses))
    lkc = {"L": str(known), "K": "5"}
    if sensitive:
        lkc["C"] = confidence(max(guess.share for guess in sensitive))
    if any(_repeats(columns[guess.name]) for guess in guesses if guess.role == "id"):
        lkc["unit"] = "person"
    yield _LKC.format(L=known, K=5, of_c=_OF_C if sensitive else "")
    if not sensitive:
        yield _NONE_SENSITIVE
    elif lkc["C"] != "1/2":
        yield _FREQUENT
    if not asked.parties:
        yield _WITHHELD
        lkc["withhold"] = "1/100"
    yield from yaml_lines("model", {"lkc": lkc}, "")


def _dp_lines(
    guesses: Sequence[Guess], columns: Mapping[str, Counted], order: Sequence[str]
) -> Iterator[str]:
    dp: dict[str, Any] = {"method": "synthetic", "epsilon": "1"}
    if any(_repeats(columns[guess.name]) for guess in guesses if guess.role == "id"):
        dp["max_records_per_person"] = "1"
    yield _DP
    if order:
        dp["order"] = list(order)
        yield _ORDER
    yield from yaml_lines("model", {"dp": dp}, "")


def _repeats(column: Counted) -> bool:
    """Return True if a value occurs twice."""
    return any(n > 1 for n in column.counts.values())


# YAML


def yaml_lines(key: str, value: Any, indent: str) -> list[str]:
    """Return a key with a value in flow style, over several lines if needed."""
    lines, line = [], f"{indent}{quoted(key)}:"
    for token in _tokens(value):
        if len(line) + 1 + len(token) > _WIDTH:
            lines.append(f"{line}\n")
            line = f"{indent}   "
        line += f" {token}"
    return [*lines, f"{line}\n"]


def _tokens(value: Any, end: str = "") -> Iterator[str]:
    """Yield the parts of a value in flow style, between which a line may be broken."""
    if isinstance(value, str):
        yield quoted(value) + end
        return
    is_mapping = isinstance(value, Mapping)
    items = list(value.items() if is_mapping else enumerate(value))
    parts: list[str] = []
    for place, (key, each) in enumerate(items):
        comma = "," if place < len(items) - 1 else ""
        inner = list(_tokens(each, comma))
        parts += [f"{quoted(key)}: {inner[0]}", *inner[1:]] if is_mapping else inner
    opening, closing = "{}" if is_mapping else "[]"
    if not parts:
        yield opening + closing + end
        return
    parts[0] = opening + parts[0]
    parts[-1] += closing + end
    yield from parts


def quoted(text: str) -> str:
    """Return a text as a YAML scalar. Everything but plain words and numbers is quoted."""
    if _BARE.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
