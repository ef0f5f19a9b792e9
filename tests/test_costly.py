"""The costly tests: `make test` runs one in four of them, and all of a module that has changed."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

import pytest

from tests.support import costly
from tests.support.costly import TESTS, leave_tests_out, mirrored, share, write

SESSION, DELIVERY = "party/test_session.py", "party/test_delivery.py"


class Item:
    """Case of a test, as pytest collects it."""

    def __init__(self, module: str, test: str, case: str = "", fixtures: tuple[str, ...] = ()) -> None:
        self.path = TESTS / module
        self.name = f"{test}[{case}]"
        self.originalname = test
        self.fixturenames = fixtures
        self.marks: list[Any] = []

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark)


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """List nine tests of each of two modules as costly; return the set of files that count as changed."""
    files: set[str] = set()
    listed = {f"{module}::test_{n}": 1.0 for module in (SESSION, DELIVERY) for n in range(9)}
    monkeypatch.setattr(costly, "costly", lambda: listed)
    monkeypatch.setattr(costly, "changed_files", lambda *_: files)
    return files


def _runs(items: list[Item], one_in: int = 3) -> list[Item]:
    leave_tests_out(items, one_in)  # type: ignore[arg-type]  that much of an item is asked for
    return [item for item in items if not item.marks]


def _items(module: str, fixtures: tuple[str, ...] = ()) -> list[Item]:
    return [Item(module, f"test_{n}", case, fixtures) for n in range(9) for case in "ab"]


def test_one_in_three_runs_with_all_its_cases(changed: set[str]) -> None:
    items = _items(SESSION)
    assert len(_runs(items)) == 6
    left_out = {item.originalname for item in items if item.marks}
    assert not {item.originalname for item in items if not item.marks} & left_out
    assert {mark.name for item in items for mark in item.marks} == {"more"}


def test_all_run_where_nobody_asks_for_a_lot(changed: set[str]) -> None:
    assert len(_runs(_items(SESSION), 1)) == 18


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_a_share_is_a_number_from_1_on(text: str) -> None:
    assert share("4") == 4
    with pytest.raises(ArgumentTypeError, match="write 1 for all costly tests"):
        share(text)


def test_what_is_not_costly_runs(changed: set[str]) -> None:
    cheap = Item(SESSION, "test_that_is_quick")
    assert cheap in _runs([cheap, *_items(SESSION)])


@pytest.mark.parametrize("path", ["tests/party/test_session.py", "party/session.py"])
def test_all_of_a_changed_module_run(changed: set[str], path: str) -> None:
    changed.add(path)
    runs = _runs([*_items(SESSION), *_items(DELIVERY)])
    assert sum(item.path.name == "test_session.py" for item in runs) == 18
    assert sum(item.path.name == "test_delivery.py" for item in runs) == 6


def test_golden_vectors_are_compared_each_time(changed: set[str]) -> None:
    assert len(_runs(_items(SESSION, ("golden",)))) == 18


@pytest.mark.parametrize("module", ["test_readme.py", "corpus/test_corpus.py"])
def test_what_is_written_down_is_compared_each_time(
    changed: set[str], module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = {f"{module}::test_{n}": 1.0 for n in range(9)}
    monkeypatch.setattr(costly, "costly", lambda: listed)
    assert len(_runs(_items(module))) == 18


def test_a_module_mirrors_a_source_file() -> None:
    assert mirrored(Path("anonymize/joint/lkc/test_sealed.py")) == "anonymize/joint/lkc/sealed.py"


def test_the_list_names_tests_that_exist() -> None:
    for name in sorted(costly.costly()):
        module, _, test = name.partition("::")
        assert (TESTS / module).is_file(), f"{name}: no such module; correct tests/costly.txt"
        assert f"def {test}(" in (TESTS / module).read_text(encoding="utf-8"), name


REPORT = """<testsuites><testsuite>
<testcase classname="tests.party.test_session" name="test_a[x]" time="0.3" />
<testcase classname="tests.party.test_session" name="test_a[y]" time="0.26" />
<testcase classname="tests.party.test_session" name="test_b" time="0.45" />
<testcase classname="tests.corpus.test_corpus" name="test_c" time="9" />
<testcase classname="tests.test_readme" name="test_d" time="9" />
</testsuite></testsuites>
"""


def test_a_report_makes_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, found = tmp_path / "report.xml", tmp_path / "costly.txt"
    report.write_text(REPORT, encoding="utf-8")
    found.write_text("# A head.\nparty/test_gone.py::test_gone 2.0\n", encoding="utf-8")
    monkeypatch.setattr(costly, "LIST", found)
    write(report)
    assert found.read_text(encoding="utf-8").startswith("# A head.\ncorpus/test_corpus.py::test_c 9.0\n")
    assert costly.costly() == {
        "corpus/test_corpus.py::test_c": 9,
        "party/test_session.py::test_a": 0.6,
        "test_readme.py::test_d": 9,
    }
