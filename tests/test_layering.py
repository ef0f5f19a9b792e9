"""Imports point inward, and the inner layers do no I/O (house-style §2)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

from tests.support.statements import statements

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (
    "crypto",
    "anonymize",
    "anonymize/joint",
    "jobs",
    "party",
    "coordinator",
    "evaluation",
    "jointcut",
    "jointcut/api",
)
INNER = ("anonymize/joint", "jointcut/api")
"""Layers inside the folder of another."""
OURS = {layer.split("/")[0] for layer in LAYERS} | {"protos", "tests", "benchmarks"}
FORBIDDEN_INSIDE = {"asyncio", "concurrent", "logging", "random", "secrets", "socket", "threading", "time"}
# What each layer may import of ours. `anonymize` is anonymize/*.py without joint/. `jointcut` starts the programs:
# its launcher comes before the layers, and what that starts imports a command line once its process is isolated.
# The package names the Python interface, `jointcut/api`, which stands on all layers; nothing inside stands on it.
MAY_IMPORT = {
    "crypto": {"crypto"},
    "anonymize": {"anonymize"},
    "anonymize/joint": {"crypto", "anonymize", "anonymize/joint"},
    "jobs": {"crypto", "anonymize", "anonymize/joint", "jobs"},
    "party": {"crypto", "anonymize", "anonymize/joint", "jobs", "party", "protos", "jointcut"},
    "coordinator": {"crypto", "anonymize", "anonymize/joint", "jobs", "party", "coordinator", "jointcut"},
    "evaluation": {"anonymize", "anonymize/joint", "jobs", "party", "coordinator", "evaluation"},
    "jointcut": {"party", "coordinator", "jointcut/api"},
    "jointcut/api": {
        "crypto",
        "anonymize",
        "anonymize/joint",
        "jobs",
        "party",
        "coordinator",
        "evaluation",
        "jointcut/api",
    },
}
GRPC = {f"party/net/{name}.py" for name in ("client", "conversions", "health", "server", "streams")}
"""The files that know gRPC and its stubs; all others see our own values."""


def layer_of(path: str) -> str:
    return next((layer for layer in INNER if path.startswith(layer)), path.split("/")[0])


def sources() -> Iterator[Path]:
    for top in ("crypto", "anonymize", "jobs", "party", "coordinator", "evaluation", "jointcut"):
        yield from sorted((ROOT / top).rglob("*.py"))


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Return every module that a file imports, as dotted names."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in statements(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_point_inward(layer: str) -> None:
    for path in sources():
        if layer_of(str(path.relative_to(ROOT))) == layer:
            expect_inward(path, layer)


def expect_inward(path: Path, layer: str) -> None:
    name = str(path.relative_to(ROOT))
    for module in imports(path):
        top = module.split(".")[0]
        if top in OURS:
            target = layer_of(module.replace(".", "/"))
            assert target in MAY_IMPORT[layer], f"{name} imports {module}"
        if top in {"grpc", "protos", "google"}:
            assert name in GRPC, f"{name} imports {module}; only {sorted(GRPC)} may"
        if layer in {"crypto", "anonymize", "anonymize/joint"}:
            assert top not in FORBIDDEN_INSIDE, f"{name} imports {module}"


@pytest.mark.parametrize("path", sorted((ROOT / "jointcut").glob("*.py")), ids=lambda p: p.name)
def test_what_starts_the_programs_needs_python_alone(path: Path) -> None:
    """Any other import could come from a foreign folder: it runs before the process knows where ours are."""
    top = ast.parse(path.read_text()).body
    for node in top:
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in sys.stdlib_module_names


WALLS = {
    "anonymize/lkc": ("anonymize.kd", "anonymize.dp", "anonymize.joint"),
    "anonymize/kd": ("anonymize.dp", "anonymize.joint"),
    "anonymize/dp": ("anonymize.kd", "anonymize.lkc", "anonymize.joint"),
    "anonymize/synthetic": ("anonymize.kd", "anonymize.lkc", "anonymize.joint"),
    "anonymize/trajectory": ("anonymize.kd", "anonymize.dp", "anonymize.joint"),
    "anonymize/verification": ("anonymize.lkc", "anonymize.kd", "anonymize.dp", "anonymize.joint"),
    "anonymize/criteria": ("anonymize.kd", "anonymize.lkc", "anonymize.dp", "anonymize.joint"),
    "anonymize/scores": ("anonymize.kd", "anonymize.lkc", "anonymize.dp", "anonymize.joint"),
    "anonymize": ("anonymize.kd", "anonymize.lkc", "anonymize.dp", "anonymize.joint"),
    "anonymize/joint/kd": ("anonymize.dp", "anonymize.joint.dp"),
    "anonymize/joint/trajectory": (
        "anonymize.kd",
        "anonymize.joint.kd",
        "anonymize.dp",
        "anonymize.joint.dp",
    ),
    "anonymize/joint/lkc": ("anonymize.kd", "anonymize.joint.kd", "anonymize.dp", "anonymize.joint.dp"),
    "anonymize/joint/lkc/scores": ("anonymize.dp", "anonymize.joint.dp"),
    "anonymize/joint/dp": ("anonymize.lkc", "anonymize.joint.lkc"),
    "anonymize/joint/synthetic": (
        "anonymize.kd",
        "anonymize.lkc",
        "anonymize.joint.kd",
        "anonymize.joint.lkc",
    ),
    "anonymize/joint/dp/thesis": ("anonymize.lkc", "anonymize.joint.lkc"),
    "anonymize/joint": ("anonymize.lkc", "anonymize.dp", "anonymize.joint.lkc", "anonymize.joint.dp"),
}
"""Per folder of `anonymize` the rooms that its files know nothing of: the shapes and the loop know no model, what all
joint runs stand on neither, and LKC and DP nothing of each other."""


@pytest.mark.parametrize("folder", WALLS)
def test_models_know_nothing_of_each_other(folder: str) -> None:
    files = sorted((ROOT / folder).glob("*.py"))
    assert files
    for path in files:
        for module in imports(path):
            behind = [room for room in WALLS[folder] if module == room or module.startswith(f"{room}.")]
            assert not behind, f"{path.relative_to(ROOT)} imports {module}"


def test_every_folder_of_anonymize_has_its_walls() -> None:
    folders = {str(path.parent.relative_to(ROOT)) for path in (ROOT / "anonymize").rglob("*.py")}
    assert folders == set(WALLS)


def test_no_test_module_imports_from_another() -> None:
    """Commons of several modules are in tests/support, and fixtures in a conftest.py."""
    from_another = re.compile(r"^\s*(?:from|import) tests\b.*\b(?:test_\w+|conftest)\b", re.MULTILINE)
    modules = sorted((ROOT / "tests").rglob("*.py"))
    assert len(modules) > 100
    found = {str(path.relative_to(ROOT)): from_another.findall(path.read_text()) for path in modules}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_layer_has_sources() -> None:
    assert {layer_of(str(p.relative_to(ROOT))) for p in sources()} == set(LAYERS)


@cache
def _imports_of_ours() -> dict[str, set[str]]:
    """By module, the modules of ours that it imports."""
    modules = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in sources()}
    return {name: set(imports(path)) & set(modules) - {name} for name, path in modules.items()}


def _in_a_circle(arrows: Mapping[str, Set[str]]) -> list[str]:
    """Return the rest when everything that points to nothing left is taken away, again and again."""
    left = dict(arrows)
    while free := [name for name, to in left.items() if not to & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


def test_files_import_each_other_without_a_circle() -> None:
    found = _imports_of_ours()
    assert len(found) > 200
    assert _in_a_circle(found) == []


BELOW = {
    "jobs/data": ("jobs.data",),
    "party/owner": ("party.owner",),
    "party/net": ("party.net", "party.owner"),
}
"""Folders on which the other files of their layer stand, with all that they know of this layer."""


@pytest.mark.parametrize("folder", BELOW)
def test_a_folder_that_others_stand_on_knows_none_of_them(folder: str) -> None:
    layer = folder.split("/")[0]
    found = {name: to for name, to in _imports_of_ours().items() if name.startswith(BELOW[folder][0] + ".")}
    assert found
    for name, imported in found.items():
        of_layer = [module for module in imported if module.startswith(f"{layer}.")]
        assert [m for m in of_layer if m.rpartition(".")[0] not in BELOW[folder]] == [], name


def test_the_models_do_not_know_each_other() -> None:
    arrows = {(name, each) for name, imported in _imports_of_ours().items() for each in imported}
    inside = {arrow for arrow in arrows if all(module.startswith("jobs.") for module in arrow)}
    for two in ({"lkc", "dp"}, {"lkc", "synthetic"}):
        assert {arrow for arrow in inside if two == {module.split(".")[1] for module in arrow}} == set()
