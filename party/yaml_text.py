"""YAML as text: scalars stay strings, so that `0.2` and `1/5` can be read as the rationals they are written as,
and `N`, `No` or `010` stay what they say. Duplicate keys are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from party.errors import ConfigError


class _TextLoader(yaml.BaseLoader):
    """Every scalar is a string; a key that stands twice is an error."""


def _mapping(loader: _TextLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"key {key.value!r} stands twice", key.start_mark
            )
        seen.add(key.value)
    return {
        loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value
    }


_TextLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_text(path: Path) -> str:
    """Read a UTF-8 file. Raises ConfigError if that is not possible."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError("file-missing", f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError("file-missing", f"{path} is not UTF-8 text") from error


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML into nested dicts, lists and strings. Raises ConfigError with line and column."""
    try:
        return yaml.load(text, Loader=_TextLoader)  # noqa: S506  (a BaseLoader: it builds nothing but text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = getattr(error, "problem", None) or "not valid YAML"
        raise ConfigError("yaml-invalid", f"{where}{place}: {what}") from error
    except RecursionError as error:
        raise ConfigError("yaml-invalid", f"{where}: nested too deeply") from error
