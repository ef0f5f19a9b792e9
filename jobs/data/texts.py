"""The text of a cell of any type, as coders read it: one way for all that gives Arrow columns."""

from __future__ import annotations

from jobs.data.arrow import pa, pc


def as_text(column: pa.Array) -> pa.DictionaryArray:
    """A column of any type as dictionary-encoded text, null as empty text. Each different number is written once.

    Raises ArrowException for a type without text: lists, maps, bytes that are no UTF-8.
    """
    if not pa.types.is_integer(column.type) and not pa.types.is_float64(column.type):
        return pc.dictionary_encode(pc.fill_null(pc.cast(column, pa.string()), ""))
    numbers = pc.dictionary_encode(column, null_encoding="encode")
    texts = pc.fill_null(pc.cast(numbers.dictionary, pa.string()), "")
    return pa.DictionaryArray.from_arrays(numbers.indices, texts)
