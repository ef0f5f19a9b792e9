"""`python -m benchmarks.reproduce`: the tables that the thesis prints, without any data."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from benchmarks import reproduce
from benchmarks.reproduce import Adult, main, tables_4
from tests.support.jobs import write_csv


def test_the_tables_of_the_thesis(tmp_path: Path) -> None:
    """Two entries of Table 4.5 and one of Table 4.3 are errors of the thesis."""
    found = {row.name.partition(":")[0]: (row.value, row.unit) for row in tables_4(Adult(tmp_path), 1)}
    assert found == {
        "[T] Table 4.2": (8, "of 8"),
        "[T] Table 4.3": (5, "of 6"),
        "[T] Table 4.4": (12, "of 12"),
        "[T] Table 4.5": (4, "of 6"),
    }


def test_a_folder_without_the_table_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures of an earlier run stay."""
    monkeypatch.setattr(reproduce, "OUT", tmp_path / "out")
    (tmp_path / "reproduce.json").write_text("earlier")
    with pytest.raises(SystemExit, match=r"has no adult\.data and no adult\.test .*archive\.ics\.uci\.edu"):
        main(["--data", str(tmp_path), "5.4"])
    with pytest.raises(SystemExit, match=r"name a folder with --data; download adult\.data and adult\.test"):
        main(["5.4"])
    assert (tmp_path / "reproduce.json").read_text() == "earlier"
    assert capsys.readouterr().out == ""
    with pytest.raises(SystemExit, match=r"no such figure: 9\.9"):
        main(["9.9"])


def test_files_of_the_repository_are_read_as_they_are(tmp_path: Path) -> None:
    """No header; blanks behind commas; in the test a comment above, and a point behind each class."""
    values = "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 0, 0, 40"
    (tmp_path / "adult.data").write_text(f"{values}, United-States, <=50K\n{values}, ?, >50K\n\n")
    (tmp_path / "adult.test").write_text(f"|1x3 Cross validator\n{values}, United-States, >50K.\n\n")
    rows = Adult(tmp_path).rows
    assert [(row["income"], row["split"]) for row in rows] == [("<=50K", "train"), (">50K", "test")]
    assert (rows[0]["workclass"], rows[0]["native-country"], len(rows[0])) == (
        "State-gov",
        "United-States",
        16,
    )


def test_figures_of_a_registry_that_is_not_public_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adult in small: the same values over and over, so each group is large enough."""
    monkeypatch.setattr(reproduce, "OUT", tmp_path / "out")
    kinds = [
        {"age": age, "workclass": work, "occupation": job, "race": race}
        for age, work, job, race in product(("20", "40"), "abcd", "wxyz", ("m", "n"))
    ]
    rest = {
        "education-num": "9", "fnlwgt": "20000", "capital-gain": "0", "capital-loss": "0",
        "hours-per-week": "40", "marital-status": "Divorced", "income": "<=50K", "split": "train",
    }  # fmt: skip
    write_csv(tmp_path / "adult.csv", [{**each, **rest} for each in kinds * 5])
    monkeypatch.setattr(reproduce, "_SENSITIVE", ("workclass", "occupation"))
    main(["--data", str(tmp_path), "several"])
    said = " ".join(capsys.readouterr().out.split())
    assert "[MSA] 9 average group: K=50 L=2 m=2" in said
    assert "measured a registry that is not public" in said
    (kept,) = json.loads((tmp_path / "reproduce.json").read_text())["notes"]
    assert "Adult" in kept
