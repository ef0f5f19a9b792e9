"""The picture of a grid: plain SVG with every point, and nothing from elsewhere."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise, product
from xml.etree import ElementTree

import pytest

from coordinator.loss_picture import picture
from jobs.lkc.exploring import Figures, Point

SVG = "{http://www.w3.org/2000/svg}"


def figures(loss: float) -> Figures:
    return Figures(
        rows=9, withheld=0, groups=3, losses={"age": loss}, unique=0, below_k=0, discernibility_ratio=0.5
    )


def point(k: int, known: int | str, loss: float | None, c: str = "1/2", goal: str = "general") -> Point:
    found = None if loss is None else figures(loss)
    return Point(k, known, {"ill": Fraction(c)}, goal, found, "" if found else "already violates K")


def parsed(*points: Point, title: str = "people: loss over K") -> ElementTree.Element:
    return ElementTree.fromstring(picture(title, points))  # noqa: S314  our own text


def texts(svg: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in svg.iter(f"{SVG}text")]


def test_every_point_is_there() -> None:
    points = [point(k, known, 0.1 * known + k / 1000) for k, known in product((5, 10, 50), (1, 2))]
    svg = parsed(*points, point(100, 1, None), point(100, 2, 0.9))
    circles = list(svg.iter(f"{SVG}circle"))
    assert len(circles) == 7
    (cross,) = svg.iter(f"{SVG}path")
    assert cross.findtext(f"{SVG}title") == "L=1, K=100: cannot be met"
    told = {circle.findtext(f"{SVG}title") for circle in circles}
    assert "L=2, K=10: loss 21.0%, 3 groups" in told
    assert {"L=1", "L=2", "K", "5", "10", "50", "100", "0 %", "100 %"} <= set(texts(svg))


def test_places_follow_the_figures() -> None:
    """Less loss is lower, and K grows to the right; the whole picture is inside its frame."""
    svg = parsed(point(5, 1, 0.2), point(50, 1, 0.5), point(500, 1, 1.0), point(500, 2, 0.0))
    places = [(float(each.get("cx", "")), float(each.get("cy", ""))) for each in svg.iter(f"{SVG}circle")]
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = places
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert x3 == x4
    assert y1 > y2 > y3
    assert y4 > y1
    assert all(0 < x < 640 and 0 < y < 400 for x, y in places)


def test_lines_join_the_points_that_can_be_met() -> None:
    svg = parsed(point(5, 1, 0.2), point(10, 1, None), point(20, 1, 0.5), point(40, 1, 0.6))
    assert len([line for line in svg.iter(f"{SVG}line") if line.get("stroke-dasharray")]) == 1


def test_labels_of_equal_ends_do_not_overlap() -> None:
    svg = parsed(*(point(5, known, 0.5) for known in range(1, 9)))
    heights = [
        float(each.get("y", "")) for each in svg.iter(f"{SVG}text") if (each.text or "").startswith("L=")
    ]
    assert all(b - a >= 14 for a, b in pairwise(heights))


def test_c_and_goal_are_named_where_they_differ() -> None:
    svg = parsed(point(5, 1, 0.5, "1/5"), point(5, 1, 0.4, "1/2"), point(5, 1, 0.4, "1/2", "classification"))
    assert {"L=1 C=1/5 general", "L=1 C=1/2 general", "L=1 C=1/2 classification"} <= set(texts(svg))


def test_a_single_point() -> None:
    assert len(list(parsed(point(5, "all", 0.5)).iter(f"{SVG}circle"))) == 1
    assert len(list(parsed(point(5, "all", None)).iter(f"{SVG}path"))) == 1


def test_nothing_of_elsewhere_and_no_style() -> None:
    text = picture("a < b & c", [point(5, 1, 0.5)])
    assert "a &lt; b &amp; c" in text
    assert not re.search(r"<style|style=|href|<script|url\(", text)
    assert text.count("http") == 1
