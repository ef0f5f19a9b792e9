"""The JSON Schemas of job and configuration files, for editors and other programs: `make schemas`.

What a schema cannot say (columns that fit their role, parties that fit the partition) is checked when a file is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from party.config import CoordinatorConfig, PartyConfig
from party.job import Job

FORMATS: Mapping[str, type[BaseModel]] = {
    "job": Job,
    "party": PartyConfig,
    "coordinator": CoordinatorConfig,
}


def schemas() -> dict[str, str]:
    """Every published file by name, with its text."""
    return {
        f"{name}.schema.json": json.dumps(model.model_json_schema(), indent=1, ensure_ascii=False) + "\n"
        for name, model in FORMATS.items()
    }


if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
