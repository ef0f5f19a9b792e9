"""Files of a joint release, as a coordinator makes them of its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.release.making import files_of
from jobs.release.report import SIGNATURES
from jobs.task import Rendered


def made_files(
    rendered: Rendered,
    parties: Mapping[str, Any] | None = None,
    signatures: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """Tables and report. parties: what each says that the run cost it. signatures: what all of them signed."""
    return files_of(rendered, {"cost": {"parties": dict(parties or {})}, SIGNATURES: signatures})
