"""Imports point inward, and the inner layers do no I/O (house style, section 2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("crypto", "anonymize", "anonymize/joint", "party", "coordinator")
FORBIDDEN_INSIDE = {"asyncio", "socket", "threading", "time", "random", "logging", "secrets"}
# What each layer may import of ours. `anonymize` is anonymize/*.py without joint/.
MAY_IMPORT = {
    "crypto": {"crypto"},
    "anonymize": {"anonymize"},
    "anonymize/joint": {"crypto", "anonymize", "anonymize/joint"},
    "party": {"crypto", "anonymize", "anonymize/joint", "party", "protos"},
    "coordinator": {"crypto", "anonymize", "anonymize/joint", "party", "coordinator"},
}
TRANSPORT = "party/transport.py"


def layer_of(path: str) -> str:
    return "anonymize/joint" if path.startswith("anonymize/joint") else path.split("/")[0]


def sources() -> Iterator[Path]:
    for top in ("crypto", "anonymize", "party", "coordinator"):
        yield from sorted((ROOT / top).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, as a dotted name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", list(sources()), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_inward(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    layer = layer_of(name)
    for module in imports(path):
        top = module.split(".")[0]
        if top in {"crypto", "anonymize", "party", "coordinator", "protos", "tests", "benchmarks"}:
            target = "anonymize/joint" if module.startswith("anonymize.joint") else top
            assert target in MAY_IMPORT[layer], f"{name} imports {module}"
        if top in {"grpc", "protos", "google"}:
            assert name == TRANSPORT, f"{name} imports {module}; only {TRANSPORT} may"
        if layer in {"crypto", "anonymize", "anonymize/joint"}:
            assert top not in FORBIDDEN_INSIDE, f"{name} imports {module}"


def test_every_layer_has_sources() -> None:
    assert {layer_of(str(p.relative_to(ROOT))) for p in sources()} == set(LAYERS)
