"""The wheel holds every module and the examples, and nothing else, whatever it is made from; no link is needed."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from tests.support.installing import ROOT, built, copy_of_the_sources, packages, run

DATA = {".csv", ".html", ".ipynb", ".sql", ".yaml", ".proto", ".pyi", ".typed"}


def files_of(folder: Path, shown_as: str) -> set[str]:
    """Modules and data of a folder, by the names that they have in the wheel."""
    return {
        f"{shown_as}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.suffix in DATA | {".py"}
    }


@pytest.mark.some(1)
@pytest.mark.parametrize("made_from", ["sources", "sdist"])
def test_the_wheel_holds_every_module_and_the_examples(tmp_path: Path, made_from: str) -> None:
    source = copy_of_the_sources(tmp_path / "the sources")
    if made_from == "sdist":
        archive = built("sdist", source, tmp_path / "sdist")
        shutil.unpack_archive(archive, tmp_path / "unpacked", filter="data")
        (source,) = (tmp_path / "unpacked").iterdir()
    names = set(zipfile.ZipFile(built("wheel", source, tmp_path / "dist")).namelist())
    expected = set().union(*(files_of(ROOT / name, name) for name in packages()))
    expected |= files_of(ROOT / "examples", "jointcut/examples")
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert "jointcut/examples/transfusion/hierarchies/job.csv" in names


_WHERE = """
import site, sys
sys.path[:0] = [sys.argv[1]]
sys.path.append(sys.argv[2])
site.addsitedir(sys.argv[1])
from coordinator.commands.runs import _examples
print(_examples())
"""


@pytest.mark.more
def test_an_editable_installation_has_the_examples(tmp_path: Path) -> None:
    """The paths that `pip install -e` puts into an environment lead to the modules, and these to the examples
    beside them.
    """
    source, site = copy_of_the_sources(tmp_path / "the sources"), tmp_path / "site"
    zipfile.ZipFile(built("editable", source, tmp_path / "dist")).extractall(site)
    needed = sysconfig.get_path("purelib")
    # Without `site`, which would find the installation that runs this test.
    shown = run(sys.executable, "-E", "-P", "-S", "-c", _WHERE, site, needed)
    assert Path(shown.strip()) == source / "examples"


@pytest.mark.parametrize("name", [*packages(), "examples"])
def test_no_file_that_is_shipped_is_a_link(name: str) -> None:
    """Archives and copies lose links."""
    assert [path for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_symlink()] == []
