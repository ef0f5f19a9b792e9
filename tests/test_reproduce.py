"""`python -m benchmarks.reproduce`: the tables that the thesis prints, without any data."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reproduce import Adult, main, tables_4


def test_the_tables_of_the_thesis(tmp_path: Path) -> None:
    """Two entries of Table 4.5 and one of Table 4.3 are errors of the thesis."""
    found = {row.name.partition(":")[0]: (row.value, row.unit) for row in tables_4(Adult(tmp_path), 1)}
    assert found == {
        "[T] Table 4.2": (8, "of 8"),
        "[T] Table 4.3": (5, "of 6"),
        "[T] Table 4.4": (12, "of 12"),
        "[T] Table 4.5": (4, "of 6"),
    }


def test_a_folder_without_the_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no adult\.csv"):
        main(["--adult", str(tmp_path), "5.4"])
    with pytest.raises(SystemExit, match=r"no such figure: 9\.9"):
        main(["9.9"])
