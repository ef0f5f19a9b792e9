"""Arrays in canonical bytes: the encoding of results for comparison by parties and collection by the coordinator."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonymize.table import Ints
from jobs.json_text import read_json

_HEADER_BYTES = 8

MALFORMED = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
"""Errors on reading bytes not written in good faith."""


def encoded_arrays(fields: Mapping[str, Any], arrays: Sequence[Ints]) -> bytes:
    """Return a JSON header with the shapes, then the arrays as little-endian 64-bit integers."""
    shapes = [list(array.shape) for array in arrays]
    header = json.dumps({**fields, "shapes": shapes}, separators=(",", ":")).encode()
    body = b"".join(np.ascontiguousarray(array, dtype="<i8").tobytes() for array in arrays)
    return len(header).to_bytes(_HEADER_BYTES, "little") + header + body


def decoded_arrays(encoded: bytes, n_arrays: int) -> tuple[Any, list[Ints]]:
    """Return header and arrays of :func:`encoded_arrays`. Raises an error of :data:`MALFORMED`."""
    size = int.from_bytes(encoded[:_HEADER_BYTES], "little")
    header = read_json(encoded[_HEADER_BYTES : _HEADER_BYTES + size])
    return header, _arrays(encoded[_HEADER_BYTES + size :], header["shapes"], n_arrays)


def _arrays(body: bytes, shapes: Sequence[Sequence[int]], n_arrays: int) -> list[Ints]:
    values = np.frombuffer(body, dtype="<i8").astype(np.int64)
    if not all(isinstance(n, int) for shape in shapes for n in shape):
        raise ValueError("sizes that are no integers")
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    if len(shapes) != n_arrays or sum(sizes) != len(values):
        raise ValueError("wrong sizes")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def is_within(values: Ints, bound: int) -> bool:
    """Return True if all values are from 0 to below the bound."""
    return bool(((values >= 0) & (values < bound)).all())
