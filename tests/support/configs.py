"""Configurations as mappings, before they are written."""

from __future__ import annotations

from typing import Any


def party_fields(**changes: Any) -> dict[str, Any]:
    """The least a party's configuration says, with changes; None leaves a key out."""
    fields = {
        "version": "1",
        "name": "hospital-a",
        "data": {"csv": {"path": "table.csv"}},
        "tls": {"certificate": "tls/certificate.pem", "key": "tls/key.pem"},
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not None}
