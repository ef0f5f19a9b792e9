"""What a daemon works under, as the audit has it: its policy, its peers' certificates, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.version import __version__
from party.owner.identity import fingerprint
from party.owner.in_force import Settings


def terms(now: Settings, before: Settings | None) -> dict[str, Any]:
    """The fields of a line `configuration`. before: None when a daemon starts.

    changed:  the settings that differ, with dots; a certificate that is another under its old name, too.
    """
    config = now.config
    fields = {
        "name": config.name,
        "version": __version__,
        "certificate": fingerprint(now.credentials.certificate),
        "peers": {name: peer.fingerprint for name, peer in now.peers.items()},
        "policy": config.policy.model_dump(mode="json", exclude_defaults=True),
        "since": "start" if before is None else "change",
    }
    return fields if before is None else fields | {"changed": _changed(now, before)}


def _changed(now: Settings, before: Settings) -> list[str]:
    new, old = _settings(now), _settings(before)
    return sorted(key for key in new.keys() | old.keys() if new.get(key) != old.get(key))


def _settings(of: Settings) -> dict[str, Any]:
    """All settings by name, two levels deep, and certificates by fingerprint."""
    found = dict(_flat(of.config.model_dump(mode="json")))
    certificates = {f"peers.{name}.certificate": peer.fingerprint for name, peer in of.peers.items()}
    return found | certificates | {"tls.certificate": fingerprint(of.credentials.certificate)}


def _flat(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        (f"{key}.{inner}".rstrip("."), held)
        for key, value in fields.items()
        for inner, held in (value.items() if isinstance(value, dict) else [("", value)])
    ]
