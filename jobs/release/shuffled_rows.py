"""Rows of all parties in a result. The rows do not follow from the counts (:mod:`jobs.lkc.shuffled`)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import numpy as np

from crypto.mixing import Rows
from jobs.json_text import read_json

_LENGTH_BYTES = 8
_MOST_WIDTH = 1 << 20
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ShuffledRows:
    """Rows of all parties, without the party of each row.

    width:  bytes of a row.
    rows:   if all parties have the rows: shape (n_rows, width), sorted; else None.
    slips:  if only the coordinator opens the rows: SHA-256, hexadecimal, of the marks that identify the
            boxes.
    boxes:  at the deputy, who passes the boxes on.
    """

    width: int
    rows: Rows | None = field(default=None, repr=False)
    slips: str = ""
    boxes: Rows | None = field(default=None, repr=False)

    def framed(self, counts: bytes) -> bytes:
        """Return the bytes of a result: the counts behind their length, a JSON header behind its length, the rows."""
        header = json.dumps({"width": self.width, "slips": self.slips}, separators=(",", ":")).encode()
        rows = b"" if self.rows is None else self.rows.tobytes()
        return b"".join((*_behind_length(counts), *_behind_length(header), rows))


def _behind_length(content: bytes) -> tuple[bytes, bytes]:
    return len(content).to_bytes(_LENGTH_BYTES, "little"), content


def unframed(encoded: bytes) -> tuple[bytes, ShuffledRows]:
    """Return the bytes of the counts, and the shuffled rows. Raises ValueError, LookupError or TypeError."""
    counts, rest = _taken(encoded)
    header, body = _taken(rest)
    told = read_json(header)
    width, slips = told["width"], told["slips"]
    if type(width) is not int or not 0 < width <= _MOST_WIDTH or not isinstance(slips, str):
        raise ValueError("malformed rows")
    if slips and not _DIGEST.fullmatch(slips):
        raise ValueError("malformed digest")
    rows = None if slips else np.frombuffer(body, dtype=np.uint8).reshape(-1, width)
    mixed = ShuffledRows(width, rows=rows, slips=slips)
    if mixed.framed(counts) != encoded:
        raise ValueError("not in canonical form")
    return counts, mixed


def _taken(encoded: bytes) -> tuple[bytes, bytes]:
    end = _LENGTH_BYTES + int.from_bytes(encoded[:_LENGTH_BYTES], "little")
    return encoded[_LENGTH_BYTES:end], encoded[end:]
