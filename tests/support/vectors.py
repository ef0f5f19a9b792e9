"""Golden vectors: digests of transcripts, kept in tests/vectors/*.json.

They change only through ``pytest --rewrite-vectors``, and only if the commit says why.
"""

from __future__ import annotations

import json
from pathlib import Path

VECTORS = Path(__file__).resolve().parent.parent / "vectors"


class Golden:
    """Compares a value with the one on file, or files it when rewriting."""

    def __init__(self, rewrite: bool) -> None:
        self._rewrite = rewrite

    def check(self, file: str, name: str, value: object) -> None:
        path = VECTORS / f"{file}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        if self._rewrite:
            known[name] = value
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
            return
        assert name in known, f"no golden vector {file}/{name}: pytest --rewrite-vectors writes it"
        assert known[name] == value, f"{file}/{name} moved"
