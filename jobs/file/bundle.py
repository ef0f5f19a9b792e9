"""Bundle: the canonical job with the bytes of its files of values. The SHA-256 is the job hash. Policy, messages
and report bind the job hash (semantics §9.1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from jobs.file.job import Job

FORMAT = 1
MAX_BUNDLE_BYTES = 8 << 20


@dataclass(frozen=True)
class Bundle:
    """Job with the files of its columns' values, by column. In the job a filed column has its file's name."""

    job: Job
    files: Mapping[str, str]

    @cached_property
    def encoded(self) -> bytes:
        """Bundle as canonical JSON in UTF-8."""
        parts = {
            "bundle": FORMAT,
            "job": json.loads(self.job.canonical()),
            "files": dict(sorted(self.files.items())),
        }
        return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()

    @cached_property
    def digest(self) -> bytes:
        """Job hash, 32 bytes."""
        return hashlib.sha256(self.encoded).digest()

    def is_canonical(self, encoded: bytes) -> bool:
        """Return True if the bundle has exactly the named files, and encodes to the given bytes."""
        named = {name for name, column in self.job.columns.items() if column.file is not None}
        try:
            return named == set(self.files) and self.encoded == encoded
        except UnicodeEncodeError:  # a lone surrogate: JSON can escape it, UTF-8 cannot encode it
            return False
