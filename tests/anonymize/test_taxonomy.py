"""Taxonomies: reading, collapsing, printing, and what is refused."""

from __future__ import annotations

import pytest

from anonymize import taxonomy
from anonymize.errors import SchemaError
from anonymize.table import QidColumn
from anonymize.taxonomy import MAX_DEPTH, Nested, Taxonomy, from_arx_csv, from_nested
from tests.support.shared import shared


def shown(taxonomy: Taxonomy) -> list[tuple[str, list[str]]]:
    """Every node with the printed labels of its children, in path order."""
    return [
        (taxonomy.label(node), [taxonomy.label(child) for child in taxonomy.child_nodes(node)])
        for node in taxonomy.nodes
    ]


def test_nested_and_csv_agree() -> None:
    nested = from_nested(
        {"Any": {"White": ["Lawyer", "Doctor"], "Blue": ["Mover"]}}, "job", missing_leaf=True
    )
    csv = from_arx_csv("Lawyer;White;Any\nDoctor;White;Any\nMover;Blue;Any\n", "job", missing_leaf=True)
    assert nested == csv
    assert nested.leaves == ("Lawyer", "Doctor", "Mover", "?")
    assert shown(nested)[0] == ("Any", ["White", "Blue", "?"])
    assert shown(nested)[4] == ("Blue", ["Mover"])  # an only child with another label is not collapsed


def test_leaves_of_a_node_are_contiguous_whatever_the_order_of_lines() -> None:
    taxonomy = from_arx_csv("a;x;*\nb;y;*\nc;x;*\n", "q", missing_leaf=False)
    assert taxonomy.leaves == ("a", "c", "b")
    assert [(n.first, n.last) for n in taxonomy.nodes] == [(0, 3), (0, 2), (0, 1), (1, 2), (2, 3), (2, 3)]


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_label_is_not_cut_at_a_sign_that_ends_no_line_of_a_text_file(sign: str) -> None:
    taxonomy = from_arx_csv(f"a{sign}b;x;*\r\nc;y;*\rd;x;*\n", "q", missing_leaf=False)
    assert taxonomy.leaves == (f"a{sign}b", "d", "c")


def test_equal_labels_in_a_chain_are_one_node() -> None:
    taxonomy = from_arx_csv(
        "Private;Private;With-Pay;*\nGov;Gov;With-Pay;*\nNone;None;None;*", "w", missing_leaf=False
    )
    assert shown(taxonomy) == [
        ("*", ["With-Pay", "None"]),
        ("With-Pay", ["Private", "Gov"]),
        ("Private", []),
        ("Gov", []),
        ("None", []),
    ]


def test_a_label_on_two_levels_prints_apart() -> None:
    taxonomy = from_arx_csv(
        "250;250;240-279;*\n250.1;250;240-279;*\n8;008;001-139;*", "code", missing_leaf=False
    )
    assert shown(taxonomy)[1:4] == [("240-279", ["250*"]), ("250*", ["250", "250.1"]), ("250", [])]


def test_two_groups_of_one_label_are_two_nodes() -> None:
    taxonomy = from_nested(
        {"*": {"a": {"other": ["x", "y"]}, "b": {"other": ["z"]}}}, "q", missing_leaf=False
    )
    assert [label for label, _ in shown(taxonomy)] == ["*", "a", "other*", "x", "y", "b", "other*", "z"]


def test_a_group_prints_apart_from_every_value() -> None:
    """Labels are compared in NFC, as values are, and so is a label with `*` behind it."""
    nfc, nfd = "Gef\u00e4\u00df", "Gefa\u0308\u00df"
    for group, values, prints in (
        ("HIV", ["HIV", "HIV*"], "HIV**"),
        (nfd, [nfc, "z"], f"{nfd}*"),
        ("HIV", ["HIV*", "z"], "HIV"),
    ):
        taxonomy = from_nested({"Any": {group: ["x", "y"], "B": values}}, "q", missing_leaf=False)
        assert [label for label, _ in shown(taxonomy)] == ["Any", prints, "x", "y", "B", *values]


@pytest.mark.parametrize("has_it", [True, False])
def test_missing_leaf_is_added_unless_there(has_it: bool) -> None:
    lines = "a;g;*\nb;g;*\n" + ("?;?;*\n" if has_it else "")
    assert from_arx_csv(lines, "q", missing_leaf=True).leaves.count("?") == 1
    assert ("?" in from_arx_csv(lines, "q", missing_leaf=False).leaves) is has_it


def test_the_icd9_taxonomy() -> None:
    text = shared("data/diabetes130/icd9.csv").read_text()
    taxonomy = from_arx_csv(text, "diag", missing_leaf=True)
    assert len(taxonomy.leaves) == 916
    assert taxonomy.leaves.count("?") == 1
    printed = {label for label, children in shown(taxonomy) if children}
    assert "250*" in printed
    assert len(shown(taxonomy)[0][1]) == 19  # 18 chapters that occur, and the missing mark


@pytest.mark.parametrize(
    ("text", "error_id", "what"),
    [
        ("", "taxonomy-invalid", "empty"),
        ("a;x;*\na;y;*", "taxonomy-two-parents", "two parents"),
        ("a;x;*\na;x;*", "taxonomy-two-parents", "twice"),
        ("a;x;*\nb;x;+", "taxonomy-invalid", "more than one root"),
        ("a;x;*\n*;x;*", "taxonomy-invalid", "a value '\\*', which means a suppressed value"),
        ("a;*\n*;*", "taxonomy-invalid", "a value '\\*', which means a suppressed value"),
        ("a;*\nb;a;*", "taxonomy-invalid", "as a value and as a group"),
    ],
)
def test_malformed_files_are_refused(text: str, error_id: str, what: str) -> None:
    with pytest.raises(SchemaError, match=what) as caught:
        from_arx_csv(text, "job", missing_leaf=True)
    assert (caught.value.error_id, caught.value.column) == (error_id, "job")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a;x;*\n\nb;x;*\na;y;*", 4, r"two parents or lists it twice \(lines 1 and 4\)"),
        ("a;x;*\na ;x;*", 2, r"lists it twice \(lines 1 and 2\)"),
        ("city;country;all\na;x;*\nb;x;*", 1, r"line 1 ends with 'all', the other lines with '\*'"),
        ("\ncity;country;all\na;x;*\nb;x;*", 2, r"line 2 ends with 'all', the other lines with '\*'"),
        ("a;x;*\nb;x;+", 2, r"line 2 ends with '\+', line 1 with '\*'"),
        ("a;x;*\nb;x;*\nc;x;+\nd;x;*", 3, r"line 3 ends with '\+', the first line with '\*'"),
        ("a;x\nb;y\nc;z", 2, "line 2 ends with 'y', line 1 with 'x'"),
        ("a;*\nb;a;*", 2, "as a value and as a group"),
        ("a;*\nb;" + "g;" * MAX_DEPTH + "*", 2, "levels"),
        ("a;*\nb;;*", 2, "level 2 is empty"),
        ("a;*\nb; ;*;;", 2, "level 2 is empty"),
        ("a;*\n;g;*", 2, "level 1 is empty"),
        ("a,x,*\nb,x,*", 1, "looks ','-separated"),
        ("\na\tx\t*\nb\tx\t*", 2, "looks tab-separated"),
        ("a|x|*\nb|x|*", 1, r"looks '\|'-separated"),
        ('a;x;*\n"b;x;*\nc;x;*', 2, "does not end on the line"),
        ("a;*\n" + "x" * 200_000 + ";*", 2, "no CSV"),
    ],
)
def test_what_is_wrong_with_a_file_has_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(SchemaError, match=what) as caught:
        from_arx_csv(text, "job", missing_leaf=True)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "a ; x;*\n\tb;x ;* \nc;New  York;*",
        "a;x;*;\nb;x;*;;\nc;New  York;*",
        "a;x;*\n;;\nb;x;*\n \nc;New  York;*\n;;;\n",
        "a;x;*\nb\u00a0;x;*\nc;New  York;*",
    ],
    ids=["blanks", "trailing separators", "lines without labels", "no-break blank"],
)
def test_what_does_not_count_in_a_file(text: str) -> None:
    """Blanks inside a label stay."""
    plain = from_arx_csv("a;x;*\nb;x;*\nc;New  York;*", "q", missing_leaf=False)
    assert from_arx_csv(text, "q", missing_leaf=False) == plain


def test_blanks_around_labels_of_a_tree_do_not_count() -> None:
    tree = {" *": {"x ": ["a", " b"], "x": ["c"]}}
    assert from_nested(tree, "q", missing_leaf=False) == from_nested(
        {"*": {"x": ["a", "b", "c"]}}, "q", missing_leaf=False
    )
    with pytest.raises(SchemaError, match="two parents") as caught:
        from_nested({"*": ["a", "a "]}, "q", missing_leaf=False)
    assert caught.value.line is None


def test_one_value_with_a_comma_is_no_other_separator() -> None:
    assert from_arx_csv("Paris, France\n", "q", missing_leaf=False).leaves == ("Paris, France",)


@pytest.mark.parametrize(
    ("tree", "what"),
    [
        ({}, "no single root"),
        ({"a": ["x"], "b": ["y"]}, "no single root"),
        (["x"], "no single root"),
        ({"*": {"g": []}}, "group 'g' without values"),
        ({"*": {"g": "x"}}, "single value"),
        ({"*": [{"g": ["x"]}]}, "mixes"),
        ({"*": {"g": ["x"], " ": ["y"]}}, "empty label"),
        ({"*": ["x", ""]}, "empty label"),
    ],
)
def test_malformed_trees_are_refused(tree: Nested, what: str) -> None:
    with pytest.raises(SchemaError, match=what):
        from_nested(tree, "job", missing_leaf=True)


def test_a_small_file_does_not_make_a_large_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prefix is one node, whichever lines have it; and there is a bound on their number."""
    chain = ["x"] * (MAX_DEPTH - 1)
    lines = [";".join([f"v{i}", *chain, "r"]) for i in range(50)]
    monkeypatch.setattr(taxonomy, "MAX_NODES", MAX_DEPTH + 50)
    assert len(from_arx_csv("\n".join(lines), "c", missing_leaf=False).leaves) == 50
    with pytest.raises(SchemaError, match=f"more than {MAX_DEPTH + 50} nodes"):
        from_arx_csv("\n".join([*lines, "v;r"]), "c", missing_leaf=False)


def test_a_cut_names_the_lowest_node_with_the_same_leaves() -> None:
    """Root, children and rests of children alike."""
    tree = from_arx_csv(
        "10115;Mitte;Berlin;D;*\n10117;Mitte;Berlin;D;*\n20095;Altstadt;Hamburg;D;*\n20097;Hamm;Hamburg;D;*\nX;Bonn;D;*",
        "postcode",
        missing_leaf=False,
    )
    column = QidColumn("postcode", tree, by_child=True)
    assert column.label(column.root) == "D"
    mitte, hamburg, alone = column.children(column.root)
    assert [column.label(node) for node in (mitte, hamburg, alone)] == ["Mitte", "Hamburg", "X"]
    assert [column.label(node) for node in column.children(hamburg)] == ["20095", "20097"]
    rest = column.rest_of(column.root, mitte)
    assert column.children(rest) == (hamburg, alone)
    assert (column.label(rest), rest.n_leaves) == ("other D", 3)


def test_missing_cells_keep_a_root_apart_from_its_only_group() -> None:
    """A missing value is not known to be of the group."""
    tree = from_arx_csv("a;g;*\nb;g;*", "q", missing_leaf=True)
    column = QidColumn("q", tree)
    assert [column.label(node) for node in (column.root, *column.children(column.root))] == ["*", "g", "?"]
