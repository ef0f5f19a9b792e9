"""JSON Schemas of job and configuration files, for editors and other programs: `make generate`.

Here every scalar of a file is text (:mod:`jobs.file.yaml_text`). Other readers of YAML make a number of `1` and a
boolean of `yes`, so a schema accepts a value in either form. Rules beyond a schema (columns that fit their role,
parties that fit the partition) are checked when a file is read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from jobs.file.job import Job
from party.owner.config import CoordinatorConfig, PartyConfig

FORMATS: Mapping[str, type[BaseModel]] = {
    "job": Job,
    "party": PartyConfig,
    "coordinator": CoordinatorConfig,
}

_INTEGER, _FROM_0, _FROM_1 = "^[+-]?[0-9]+$", "^[+]?[0-9]+$", "^[+]?0*[1-9][0-9]*$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WORDS = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f")
_BOOLEAN = "^(" + "|".join("".join(f"[{c.upper()}{c}]" for c in word) for word in _WORDS) + "|0|1)$"


class AsEditorsRead(GenerateJsonSchema):
    """Generator of schemas for other readers of YAML. A missing value is left out, never null."""

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        least = schema.get("ge", -1)
        text = _FROM_1 if least >= 1 else _FROM_0 if least == 0 else _INTEGER
        return {**super().int_schema(schema), "type": ["integer", "string"], "pattern": text}

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return {**super().float_schema(schema), "type": ["number", "string"], "pattern": _NUMBER}

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return {"type": ["boolean", "integer", "string"], "minimum": 0, "maximum": 1, "pattern": _BOOLEAN}

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """Accept any scalar for text without a form of its own."""
        made = super().str_schema(schema)
        return made if "pattern" in made else {**made, "type": ["string", "number", "boolean"]}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """Keep words as words; a number among the words is a number to other readers."""
        expected = [*schema["expected"], *(int(word) for word in schema["expected"] if str(word).isdigit())]
        return {"enum": expected}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Make a key in the wrong form an error, instead of accepting the key."""
        made = super().dict_schema(schema)
        for form, value in made.pop("patternProperties", {}).items():
            made |= {"propertyNames": {"pattern": form}, "additionalProperties": value}
        return made

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if (key, value) != ("default", None)}


def schemas() -> dict[str, str]:
    """Return every published file by name, with its text."""
    return {f"{name}.schema.json": _text(model) for name, model in FORMATS.items()}


def _text(model: type[BaseModel]) -> str:
    made = model.model_json_schema(schema_generator=AsEditorsRead)
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, text in schemas().items():
        (Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
