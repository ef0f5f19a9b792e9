"""JSON that others wrote has every key once."""

from __future__ import annotations

import pytest

from jobs.errors import json_object
from jobs.json_text import read_json


def test_what_each_reader_takes_alike_is_read() -> None:
    assert read_json(b'{"a": {"x": 1}, "b": [{"x": 1}, {"x": 2}]}') == {
        "a": {"x": 1},
        "b": [{"x": 1}, {"x": 2}],
    }


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 1}', '{"a": 1, "\\u0061": 2}', '{"rows": 0.5e1, "rows": 5}', '[{"b": {"a": 1, "a": 2}}]'],
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a key stands twice"):
        read_json(text)
    assert json_object(text) is None
