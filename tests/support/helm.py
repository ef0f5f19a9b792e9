"""As much of Helm's template language as our chart uses: values, a few filters, conditions, named templates.

Anything else is an error, so that a chart this renders is one that is as simple as it looks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"(\n[ \t]*)?\{\{(-?)\s*(.*?)\s*(-?)\}\}(\n)?")
_DEFINED = re.compile(r'\{\{- define "(\S+)" -\}\}\n(.*?)\n\{\{- end \}\}', re.DOTALL)


class Chart:
    """A chart with its values."""

    def __init__(self, folder: Path, release: str, values: Mapping[str, Any]) -> None:
        self._folder = folder
        own = yaml.safe_load((folder / "values.yaml").read_text())
        self._scope = {
            "Values": merged(own, values),
            "Release": {"Name": release},
            "Chart": {
                key[:1].upper() + key[1:]: value
                for key, value in yaml.safe_load((folder / "Chart.yaml").read_text()).items()
            },
        }
        helpers = (folder / "templates" / "_helpers.tpl").read_text()
        self._named = dict(_DEFINED.findall(helpers))

    def rendered(self) -> dict[str, list[Any]]:
        """What the templates make, by file: the documents in it."""
        templates = sorted((self._folder / "templates").glob("*.yaml"))
        return {path.name: self._documents(path.read_text()) for path in templates}

    def _documents(self, text: str) -> list[Any]:
        return [document for document in yaml.safe_load_all(self._render(text)) if document is not None]

    def _render(self, text: str) -> str:
        shown, out, end = [True], [], 0
        for found in _ACTION.finditer(text):
            before, dash, action, _, after = found.groups()
            if shown[-1]:
                out.append(text[end : found.start()] + ("" if dash else before or ""))
            end = found.end() - len(after or "")
            if action.startswith("if "):
                shown.append(shown[-1] and bool(self._value(action.removeprefix("if "))))
            elif action == "end":
                shown.pop()
            elif shown[-1]:
                out.append(self._said(action))
        assert shown == [True]
        return "".join(out) + text[end:]

    def _said(self, action: str) -> str:
        what, *filters = (part.strip() for part in action.split("|"))
        if found := re.fullmatch(r'include "(\S+)" \.', what):
            value: Any = self._render(self._named[found[1]])
        else:
            value = self._value(what)
        for each in filters:
            value = _filtered(value, each)
        return str(value)

    def _value(self, name: str) -> Any:
        if found := re.fullmatch(r'required "([^"]+)" (\S+)', name):
            value = self._value(found[2])
            if not value:
                raise LookupError(found[1])
            return value
        assert re.fullmatch(r"(\.\w+)+", name), name
        value = self._scope
        for key in name.split(".")[1:]:
            value = value[key]
        return value


def _filtered(value: Any, name: str) -> str:
    if name == "toJson":
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    if name == "quote":
        return json.dumps(str(value))
    word, count = name.split()
    assert word == "nindent", name
    return "\n" + "\n".join(" " * int(count) + line for line in str(value).splitlines())


def merged(own: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a chart with those that are given in place of its own, as Helm does it."""
    both = {
        key: merged(own[key], value) if isinstance(value, dict) and isinstance(own.get(key), dict) else value
        for key, value in given.items()
    }
    return {**own, **both}
