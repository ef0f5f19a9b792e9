"""Picture of a grid of requirements: mean loss over K, a line for each L, C and goal. Plain SVG, without a library.

Colours are of medium lightness on no background, so the picture is readable on light and dark pages. Lines also
differ by dashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import log
from xml.sax.saxutils import escape

from jobs.lkc.exploring import Point

_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 168, 60, 52
_INK, _GRID = "#7b7f86", "#9a9ea666"
_COLOURS = ("#2f7fd1", "#d1662f", "#2f9e5b", "#a95fc4", "#b8892b", "#d1477f")
_DASHES = ("none", "8 3", "2 3", "8 3 2 3")
_GAP = 14
"""Least distance between two labels of lines."""


def picture(title: str, points: Sequence[Point]) -> str:
    """Return the SVG. Every point is a circle with its figures; a point that cannot be met is a cross at the top."""
    lines = _lines(points)
    ks = sorted({point.K for point in points})
    parts = [*_axes(ks), *_labels(lines, ks)]
    for number, (name, own) in enumerate(lines.items()):
        parts += _line(name, sorted(own, key=lambda point: point.K), ks, number)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" font-family="sans-serif" font-size="12" role="img">',
            f"<title>{escape(title)}</title>",
            _text(12, 22, title, size=14),
            *parts,
            "</svg>\n",
        ]
    )


def _lines(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Return the points of each line, by the line's label: L, and C and goal where they differ."""
    cs, goals = {tuple(p.C.items()) for p in points}, {p.goal for p in points}
    found: dict[str, list[Point]] = {}
    for point in points:
        bounds = [f"C={c}" for c in dict.fromkeys(point.C.values())] if len(cs) > 1 else []
        label = " ".join([f"L={point.L}", *bounds, *([point.goal] if len(goals) > 1 else [])])
        found.setdefault(label, []).append(point)
    return found


def _x(k: int, ks: Sequence[int]) -> float:
    """Return the place of K, on a logarithmic scale."""
    width = _WIDTH - _LEFT - _RIGHT
    if len(ks) == 1:
        return _LEFT + width / 2
    return _LEFT + width * log(k / ks[0]) / log(ks[-1] / ks[0])


def _y(loss: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - loss)


def _axes(ks: Sequence[int]) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _y(0)
    for percent in range(0, 101, 20):
        y = _y(percent / 100)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="{_GRID}"/>'
        yield _text(_LEFT - 8, y + 4, f"{percent} %", anchor="end")
    last = float("-inf")
    for k in ks:
        x = _x(k, ks)
        yield f'<line x1="{x:.1f}" y1="{bottom:.1f}" x2="{x:.1f}" y2="{bottom + 5:.1f}" stroke="{_INK}"/>'
        if x - last >= 8 * len(str(k)):
            yield _text(x, bottom + 19, str(k), anchor="middle")
            last = x
    yield _text((_LEFT + right) / 2, _HEIGHT - 12, "K", anchor="middle")
    yield _text(12, _TOP - 16, "mean generalization loss", size=11)


def _line(name: str, points: Sequence[Point], ks: Sequence[int], number: int) -> Iterator[str]:
    """Yield the line through the neighbours that can be met, and all points."""
    colour, dashes = _COLOURS[number % len(_COLOURS)], _DASHES[number % len(_DASHES)]
    for one, other in pairwise(points):
        if one.figures is not None and other.figures is not None:
            yield (
                f'<line x1="{_x(one.K, ks):.1f}" y1="{_y(one.figures.loss):.1f}" x2="{_x(other.K, ks):.1f}" '
                f'y2="{_y(other.figures.loss):.1f}" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
            )
    for point in points:
        x, asked = _x(point.K, ks), f"{name}, K={point.K}"
        if point.figures is None:
            y = _y(1)
            yield (
                f'<path d="M{x - 4:.1f} {y - 4:.1f}L{x + 4:.1f} {y + 4:.1f}M{x - 4:.1f} {y + 4:.1f}'
                f'L{x + 4:.1f} {y - 4:.1f}" stroke="{colour}" stroke-width="2">'
                f"<title>{escape(asked)}: cannot be met</title></path>"
            )
        else:
            told = f"{asked}: loss {point.figures.loss:.1%}, {point.figures.groups:,} groups"
            yield (
                f'<circle cx="{x:.1f}" cy="{_y(point.figures.loss):.1f}" r="4" fill="{colour}">'
                f"<title>{escape(told)}</title></circle>"
            )


def _labels(lines: dict[str, list[Point]], ks: Sequence[int]) -> Iterator[str]:
    """Yield the label of each line, at the height of the line's last point, without overlaps."""
    ends = []
    for number, (name, own) in enumerate(lines.items()):
        last = max(own, key=lambda point: point.K)
        ends.append((_y(1 if last.figures is None else last.figures.loss), number, name))
    place = float("-inf")
    for y, number, name in sorted(ends):
        place = max(y + 4, place + _GAP)
        yield _text(_WIDTH - _RIGHT + 12, place, name, colour=_COLOURS[number % len(_COLOURS)])


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = _INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
