"""The demo runs wherever the program lies and whatever the locale is, in a bare environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.sums import SUMS, release_digest
from tests.support.bare import bare
from tests.support.commands import listing, simulated
from tests.support.demo import INSTALLED, in_locale, run_demo
from tests.support.installing import built, copy_of_the_sources
from tests.support.samples import PARTIES


def copy_of_the_program(folder: Path) -> Path:
    """A checkout of what runs; return what its launcher starts."""
    return copy_of_the_sources(folder) / "jointcut" / "isolated.py"


def demo(start: list[str | Path], folder: Path, environ: dict[str, str]) -> None:
    """Run the demo in a folder of its own, and check it."""
    check_demo(run_demo(start, folder, environ), folder)


def check_demo(printed: str, folder: Path) -> None:
    """Check what comes out of a demo: a few rows, where table and report are."""
    lines = printed.splitlines()
    (out,) = (folder / "out").iterdir()
    assert out.name.startswith("demo-")
    assert lines[0] == "transfusion-demo: 5919 rows, 443 groups; verified"
    rows = [line.split() for line in lines[lines.index("rows:") + 1 : -5]]
    assert len(rows) == 7
    assert rows[0] == ["job", "sex", "age", "weight", "haemoglobin", "district", "transfused", "surgery"]
    assert {len(row) for row in rows} == {8}
    assert lines[-1].startswith(
        "verified: no reader outside the holders who knows all 6 quasi-identifiers of a person in the table "
    )
    assert lines[-5:-1] == [
        f"table:  {Path('out') / out.name / TABLE}",
        f"page:   {Path('out') / out.name / PAGE}",
        f"report: {Path('out') / out.name / REPORT}",
        f"digest: {release_digest((out / SUMS).read_bytes()).hex()}",
    ]
    assert listing(out) == simulated(PARTIES)
    report = json.loads((out / REPORT).read_text(encoding="utf-8"))
    assert (report["rows"], report["parties"]) == (5919, list(PARTIES))


def from_a_copy(isolated: Path) -> list[str | Path]:
    return [sys.executable, "-E", "-P", isolated, "coordinator"]


@pytest.mark.more
def test_the_wheel_unpacked_at_a_path_with_a_blank_and_an_umlaut(tmp_path: Path) -> None:
    """An installer does this: the examples are in the package."""
    folder = tmp_path / "mein Gerät"
    wheel = built("wheel", copy_of_the_sources(folder / "sources"), folder / "dist")
    zipfile.ZipFile(wheel).extractall(folder / "site packages")
    shutil.rmtree(folder / "sources")
    isolated = folder / "site packages" / "jointcut" / "isolated.py"
    demo(from_a_copy(isolated), folder / "here", bare())


@pytest.mark.some(1)
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {}], ids=["LC_ALL=C", "no locale"])
def test_a_c_locale(tmp_path: Path, locale: dict[str, str], request: pytest.FixtureRequest) -> None:
    """LC_ALL leaves Python no locale of its own choice; without any it takes one, as it does with LANG=C."""
    if locale:
        check_demo(*request.getfixturevalue("demo_in_a_c_locale"))
    else:
        demo(INSTALLED, tmp_path / "hier drüben", in_locale(locale))


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Copy what the launcher starts, of a checkout that nobody may write to."""
    folder = tmp_path / "program"
    isolated = copy_of_the_program(folder)
    paths = [folder, *folder.rglob("*")]
    for path in paths:
        path.chmod(path.stat().st_mode & ~0o222)
    yield isolated
    for path in paths:
        if path.is_dir():
            path.chmod(0o755)


def as_who_may_not_write() -> list[str | Path]:
    """A prefix that takes from root, in tests that root runs, the right to write what is read-only."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root writes to what is read-only, and setpriv is not here to forbid it")
    return [setpriv, "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", "--"]


@pytest.mark.more
def test_a_read_only_program(tmp_path: Path, read_only: Path) -> None:
    folder = read_only.parents[1]
    before = listing(folder)
    prefix = as_who_may_not_write()
    write = subprocess.run([*prefix, "touch", folder / "x"], capture_output=True, env=bare(), check=False)
    assert write.returncode != 0
    demo([*prefix, *from_a_copy(read_only)], tmp_path / "here", bare())
    assert listing(folder) == before
