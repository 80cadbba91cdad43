"""A picture of policies by what they cost and what they keep, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Literal, NamedTuple

WIDTH, HEIGHT, LEFT, BELOW, ABOVE = 860, 520, 64, 56, 24
MARKS = {"tried": ("#94a3b8", 3), "preset": ("#2563eb", 6), "bound": ("#b45309", 6)}


class Point(NamedTuple):
    """A policy: cost with read-backs against the recording, and the share of needs in context."""

    name: str
    cost: float
    kept: float
    kind: Literal["tried", "preset", "bound"]


def picture(points: Iterable[Point]) -> str:
    """Draw points; the better, the farther up and left. Settings that were tried have no label."""
    drawn = sorted(points, key=lambda point: list(MARKS).index(point.kind))
    low = min(point.cost for point in drawn) - 0.03
    high = max(point.cost for point in drawn) + 0.12
    least = min(point.kept for point in drawn) - 0.02

    def place(cost: float, kept: float) -> tuple[float, float]:
        across = LEFT + (cost - low) / (high - low) * (WIDTH - LEFT - 16)
        up = (1.0 - kept) / (1.0 - least) * (HEIGHT - BELOW - ABOVE) + ABOVE
        return round(across, 1), round(up, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Cost with read-backs and needs in context, by policy" '
        'font-family="system-ui, sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for tenth in range(int(low * 10) + 1, int(high * 10) + 1):
        x, _ = place(tenth / 10, 1.0)
        parts.append(_line(x, ABOVE, x, HEIGHT - BELOW))
        parts.append(_text(x, HEIGHT - BELOW + 20, f"{tenth / 10:.1f}", "middle"))
    for tenth in range(int(least * 20) + 1, 21):
        _, y = place(low, tenth / 20)
        parts.append(_line(LEFT, y, WIDTH - 16, y))
        parts.append(_text(LEFT - 8, y + 4, f"{tenth / 20:.0%}", "end"))
    parts.append(_text(WIDTH / 2, HEIGHT - 12, "cost with read-backs, recorded = 1", "middle"))
    parts.append(_text(LEFT, 16, "needs in context", "start"))
    for point, dy in _apart(drawn, place):
        x, y = place(point.cost, point.kept)
        color, size = MARKS[point.kind]
        parts.append(
            f'<circle cx="{x}" cy="{y}" r="{size}" fill="{color}"><title>{escape(point.name)}: '
            f"cost {point.cost:.3f}, needs in context {point.kept:.1%}</title></circle>"
        )
        if point.kind != "tried":
            parts.append(_text(x + 10, y + 4 + dy, point.name, "start"))
    return "\n".join([*parts, "</svg>", ""])


def _apart(
    points: Iterable[Point], place: Callable[[float, float], tuple[float, float]]
) -> Iterator[tuple[Point, float]]:
    """Yield each point and how far its label moves down to clear earlier ones."""
    taken: list[tuple[float, float]] = []
    for point in points:
        x, y = place(point.cost, point.kept)
        moved = 0.0
        while any(abs(x - a) < 150 and abs(y + moved - b) < 15 for a, b in taken):
            moved += 15
        if point.kind != "tried":
            taken.append((x, y + moved))
        yield point, moved


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#e2e8f0"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" fill="#334155" text-anchor="{anchor}">{escape(text)}</text>'
