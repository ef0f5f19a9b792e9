"""Generated documents are current, and the site is built from all documents without a warning."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from tests.support.bare import bare

ROOT = Path(__file__).resolve().parent.parent


def generator() -> Any:
    """Return docs/generate.py as a module: the folder is no package."""
    spec = spec_from_file_location("generate_documents", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_documents_are_current() -> None:
    for name, text in generator().pages().items():
        assert (ROOT / "docs" / name).read_text("utf-8") == text, f"docs/{name} is out of date: make generate"


def test_every_job_of_the_tables_of_keys_is_accepted() -> None:
    """Otherwise an empty cell would say nothing about its key."""
    generate = generator()
    jobs = {(title, kind): job for title, each in generate.TABLES.items() for kind, job in each.items()}
    assert [place for place, job in jobs.items() if not generate.accepted(job)] == []


def test_every_key_that_is_tried_is_taken_by_some_job() -> None:
    generate = generator()
    jobs = [job for each in generate.TABLES.values() for job in each.values()]
    taken = {key for key in generate.TRIED if any(generate.takes(job, key) for job in jobs)}
    assert taken == set(generate.TRIED)


def test_every_key_of_a_model_is_tried() -> None:
    """But those that every job of a table has."""
    generate = generator()
    tried = {generate.tried(key) for key in generate.TRIED}
    models = ("LkcModel", "LkcList", "DpModel", "SyntheticModel", "SequencesModel")
    keys = {key for model in models for key in generate.schema()["$defs"][model]["properties"]}
    assert keys - tried == {"C", "K", "L", "epsilon", "specializations", "method", "clusters"}


def build(folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a folder with mkdocs.yml and docs."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    return subprocess.run(command, cwd=folder, env=bare(), capture_output=True, text=True, check=False)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Nothing of it is fetched from elsewhere; search has every page."""
    done = build(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert {path.stem for path in pages} >= {path.stem for path in (ROOT / "docs").rglob("*.md")}
    for path in pages:
        text = path.read_text("utf-8")
        assert 'src="http' not in text, path
        assert '<link rel="stylesheet" href="http' not in text, path
    assert "guide/hospitals.html" in (tmp_path / "site" / "search" / "search_index.json").read_text("utf-8")


@pytest.mark.parametrize("link", ["[a](no-page.md)", "[a](job.md#no-heading)"])
def test_a_broken_link_ends_the_build(link: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write(f"\n{link}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "index.md" in done.stderr
