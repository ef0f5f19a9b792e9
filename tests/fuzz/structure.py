"""Inputs changed by their structure: opened into JSON values, one place of these altered, and closed again.

What is closed is as its writer would have made it where that is possible (canonical bundles, digests that are right),
so that what is behind a parser's first checks is reached, too.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from jobs.dp.counts import COUNTS
from jobs.errors import PartyError
from jobs.file.bundle import Bundle
from jobs.loading import parse_job
from jobs.release.csv import REPORT, TABLE, _quoted
from jobs.release.shuffled_rows import ShuffledRows, unframed
from jobs.release.sums import file_fields, sums_of
from tests.fuzz.mutation import BETWEEN, corpus_of, mutated

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 1 << 31, 1 << 63, 1 << 64, 10**400),
    *(1.5, -0.0, 1e308, math.nan, math.inf),
    *("", "a", "?", "*", "0", "-1", "1/0", "1/2", "1e99", "1e-99", "9" * 30, "\ud800", "\u202e", "\0", "\n"),
    *("a;b", "../x", "=1+1", "\u00e9", "e\u0301", "hospital-a", "all", "job"),
    *([], {}, [[]], ["a", "a"], {"a": {}}, {"": []}, [1, "a", None]),
)
"""Values that replace another value."""
_WORD = 8
_NO_STRUCTURE = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    csv.Error,
    yaml.YAMLError,
)


@dataclass(frozen=True)
class Structure:
    """Opens inputs of a parser into a value, and closes them again; ``_NO_STRUCTURE`` where they cannot be."""

    opened: Callable[[bytes], Any]
    closed: Callable[[Any], bytes]


def altered(value: Any, rng: random.Random) -> Any:
    """The same JSON value but for one place: replaced, removed, doubled, renamed, exchanged with another."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        return _altered_object(value, rng)
    if isinstance(value, list) and value and rng.random() < 0.8:
        return _altered_array(value, rng)
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 2, -value, value, 1 << 32))
    return rng.choice(ODD)


def _altered_object(value: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    key = rng.choice(list(value))
    match rng.randrange(12):
        case 0:
            return {k: v for k, v in value.items() if k != key}
        case 1:
            return {(str(rng.choice(ODD)) if k == key else k): v for k, v in value.items()}
        case 2:
            return {**value, key: value[rng.choice(list(value))]}
        case 3:
            return dict(reversed(value.items()))
        case _:
            return {**value, key: altered(value[key], rng)}


def _altered_array(value: list[Any], rng: random.Random) -> list[Any]:
    i = rng.randrange(len(value))
    match rng.randrange(10):
        case 0:
            return value[:i] + value[i + 1 :]
        case 1:
            return [*value, value[i]]
        case 2:
            return value[::-1]
        case _:
            return [*value[:i], altered(value[i], rng), *value[i + 1 :]]


def restructured(parser: str, data: bytes, rng: random.Random) -> bytes | None:
    """An input with some places of its structure altered; None where it has none."""
    structure = STRUCTURES.get(parser)
    if structure is None:
        return None
    try:
        value = structure.opened(data)
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            value = altered(value, rng)
        return structure.closed(value)
    except _NO_STRUCTURE:
        return None


def any_change(parser: str, rng: random.Random) -> bytes:
    """One of the committed inputs of a parser with some changes, of its structure or of its bytes."""
    corpus = corpus_of(parser)
    data = restructured(parser, rng.choice(corpus), rng) if rng.random() < 0.5 else None
    return mutated(corpus, rng) if data is None else data


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _bundle(value: Any) -> bytes:
    """Canonical, if job and files can be."""
    try:
        return Bundle(parse_job(value["job"], "job"), value["files"]).encoded
    except (PartyError, UnicodeEncodeError):
        return _json(value)


def _open_result(data: bytes) -> Any:
    """Results of LKC and DP runs: the length of a header, the header, and words."""
    size = int.from_bytes(data[:_WORD], "little")
    body = data[_WORD + size :]
    words = [int.from_bytes(body[i : i + _WORD], "little", signed=True) for i in range(0, len(body), _WORD)]
    return {"header": json.loads(data[_WORD : _WORD + size]), "words": words}


def _close_result(value: Any) -> bytes:
    text = _json(value["header"])
    words = b"".join(word.to_bytes(_WORD, "little", signed=True) for word in value["words"])
    return len(text).to_bytes(_WORD, "little") + text + words


def _open_rows(data: bytes) -> Any:
    """Results with the rows of all parties: two headers, and the rows."""
    said, mixed = unframed(data)
    assert mixed.rows is not None
    return {"said": json.loads(said), "width": mixed.width, "rows": mixed.rows.tolist()}


def _close_rows(value: Any) -> bytes:
    rows = np.array(value["rows"], dtype=np.uint8)
    return ShuffledRows(value["width"], rows=rows).framed(_json(value["said"]))


def _open_release(data: bytes) -> Any:
    table, report, _ = data.split(BETWEEN)
    return {"rows": list(csv.reader(io.StringIO(table.decode()))), "report": json.loads(report)}


def _written(rows: Any) -> str:
    """Rows of texts as a release has them, empty ones in quotes; whatever else stands there as it can be written."""
    if all(isinstance(row, list) and all(isinstance(v, str) for v in row) for row in rows):
        return "".join(",".join(_quoted(row)) + "\n" for row in rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _close_release(name: str) -> Callable[[Any], bytes]:
    """A release whose digests are right, wherever its report has not lost them."""

    def closed(value: Any) -> bytes:
        report = value["report"]
        table = _written(value["rows"]).encode("utf-8", "surrogatepass")
        if isinstance(report, dict) and "files" in report:
            report = {**report, "files": file_fields({name: table})}
        files = {name: table, REPORT: json.dumps(report).encode()}
        return BETWEEN.join((*files.values(), sums_of(files)))

    return closed


def _yaml(value: Any) -> bytes:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    return text.encode("utf-8", "surrogatepass")


_YAML = Structure(lambda data: yaml.safe_load(data.decode()), _yaml)
_RESULT = Structure(_open_result, _close_result)

STRUCTURES: Mapping[str, Structure] = {
    "bundle": Structure(json.loads, _bundle),
    "config": _YAML,
    "dp_result": _RESULT,
    "job": _YAML,
    "problem": Structure(json.loads, _json),
    "result": _RESULT,
    "synthetic_result": _RESULT,
    "sequences_result": Structure(_open_rows, _close_rows),
    "verify": Structure(_open_release, _close_release(TABLE)),
    "verify_dp": Structure(_open_release, _close_release(COUNTS)),
    "verify_sequences": Structure(_open_release, _close_release(TABLE)),
}
"""The parsers whose inputs have one."""
