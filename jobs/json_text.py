"""Reader of foreign JSON. No two readers can take the same text for different things."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError for invalid JSON or a repeated key, RecursionError if too
    deep.

    Of a repeated key, some readers take the first value and some the last (RFC 8259, section 4).
    """
    return json.loads(text, object_pairs_hook=_with_each_key_once)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
