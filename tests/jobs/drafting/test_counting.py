"""Values of columns with their holders: rows, or people where an id names them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jobs.data.sources import source_of_file
from jobs.drafting.counting import RARE, counted_columns

rows_of_people = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 5)), min_size=1, max_size=150)


@given(rows_of_people)
def test_a_value_is_frequent_among_people_and_not_rows(rows: list[tuple[int, int]]) -> None:
    """Compare with sets of all people. A person may be `?` or nobody: such rows have no holder."""
    names = [*map(str, range(13)), "", "?"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("who,x\n" + "".join(f"{names[who]},v{x}\n" for who, x in rows))
        column = counted_columns(source_of_file(path), ["who", "x"], ids=["who"])["x"]
    holders = {x: {who for who, other in rows if other == x and who < 13} for _, x in rows}
    assert set(column.common) == {f"v{x}" for x, people in holders.items() if len(people) >= RARE}
    together: set[int] = set()
    end = None
    for x in sorted(holders):
        together |= holders[x]
        if end is None and len(together) >= RARE:
            end = f"v{x}"
    assert column.reached([f"v{x}" for x in sorted(holders)]) == end
    assert sum(column.counts.values()) == len(rows)


def test_of_several_ids_the_one_with_the_fewest_values_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("visit,who,town\n" + "".join(f"{i},p{i % 9},Bonn\n" for i in range(90)))
    found = counted_columns(source_of_file(path), ["visit", "who", "town"], ids=["visit", "who"])
    assert found["town"].common == []
    assert counted_columns(source_of_file(path), ["town"])["town"].common == ["Bonn"]
