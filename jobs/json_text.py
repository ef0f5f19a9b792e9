"""JSON that others wrote, read so that no two readers can take it for different things."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for what is none or has a key twice, RecursionError if too deep.

    Of a key that stands twice one reader takes the first value, another the last (RFC 8259, section 4).
    """
    return json.loads(text, object_pairs_hook=_with_each_key_once)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
