"""The published schemas are those of the sources, and describe every key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from party.schemas import FORMATS, schemas

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "schemas"


def test_what_is_committed_is_current() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in PUBLISHED.iterdir()} == schemas()


@pytest.mark.parametrize("name", FORMATS)
def test_every_key_is_described_and_no_other_allowed(name: str) -> None:
    schema = json.loads(schemas()[f"{name}.schema.json"])
    for part in (schema, *schema.get("$defs", {}).values()):
        assert part["additionalProperties"] is False
        assert all(key.get("description") for key in part["properties"].values())
