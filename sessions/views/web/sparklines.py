"""Small SVG charts drawn by the server, using attributes only because inline styles are blocked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from compaction.context.blocks import KINDS

HEIGHT = 48
"""Height of a sparkline, in units."""

_LEAST = 2
"""A peak below half of the window is scaled to twice itself, so that its shape is visible."""


@dataclass(frozen=True, slots=True)
class Sparkline:
    """Contexts over steps as one silhouette per kind, each painted over the previous ones."""

    columns: int
    paths: tuple[tuple[str, str], ...]
    window: int | None
    label: str


def sparkline(
    columns: Sequence[Sequence[int]], hidden: int, window: int | None, steps: int, beside: int = 0
) -> Sparkline:
    """Stacked token sums by kind, with hidden tokens at the bottom; the `window` line is omitted if
    the columns would be flat. `beside` is the peak of another sparkline on the same scale."""
    stacks = [tuple(accumulate((hidden, *column))) for column in columns]
    peak = max((stack[-1] for stack in stacks), default=0)
    scale = max(peak, beside)
    top = max(scale, min(window or scale, scale * _LEAST), 1)
    heights = [(0,) * len(stacks), *zip(*stacks, strict=True)]
    paths = [
        (name, _silhouette(above, top))
        for name, below, above in zip(("hidden", *KINDS), heights, heights[1:], strict=False)
        if above != below
    ]
    line = round(HEIGHT - HEIGHT * window / top) if window and window <= top else None
    return Sparkline(len(stacks), tuple(reversed(paths)), line, _label(stacks, window, steps))


def _silhouette(heights: Sequence[int], top: int) -> str:
    """Steps one unit wide; equal neighbors share a line."""
    drawn = [round(HEIGHT - HEIGHT * height / top) for height in heights]
    path = "".join(f"V{y}h{len(list(run))}" for y, run in groupby(drawn))
    return f"M0 {HEIGHT}{path}V{HEIGHT}z"


def _label(stacks: Sequence[Sequence[int]], window: int | None, steps: int) -> str:
    if not stacks:
        return "No composition yet"
    last, peak = stacks[-1][-1], max(stack[-1] for stack in stacks)
    of = f" of {window:,}" if window else ""
    return f"Context over {steps} steps: peak {peak:,}{of} tokens, at the end {last:,}"


@dataclass(frozen=True, slots=True)
class Segment:
    """One kind's part of a bar; `x` and `width` are in thousandths of the bar."""

    kind: str
    tokens: int
    x: float
    width: float


def bar(sums: Sequence[int], hidden: int, top: int) -> list[Segment]:
    """A composition as a horizontal bar of `top` tokens."""
    segments, x = [], 0.0
    for kind, count in zip(("hidden", *KINDS), (hidden, *sums), strict=True):
        if count:
            width = 1000 * count / max(top, 1)
            segments.append(Segment(kind, count, round(x, 1), round(max(width, 1.0), 1)))
            x += width
    return segments


TREND = 28
"""Height of a trend, in units."""

_PIECE = 3
"""Fewest values of a piece of a trend, on average."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Values over time as one line, interrupted where values are unknown."""

    width: int
    path: str


def trend(values: Sequence[float | None], top: float | None = None) -> Trend | None:
    """The trend line, one unit per value; None with fewer than two known values, or if it would be
    in pieces of fewer than `_PIECE` on average: fragments are no trend. `top` is the value at its
    upper edge, by default the largest."""
    known = [value for value in values if value is not None]
    before = zip((None, *values), values, strict=False)
    pieces = sum(value is not None and left is None for left, value in before)
    if len(known) < 2 or (pieces > 1 and len(known) < _PIECE * pieces):
        return None
    top = max(*known, top or 0, 0) or 1
    path, pen = "", "M"
    for x, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        y = round(TREND - 1 - (TREND - 2) * max(value, 0) / top, 1)
        # A line of length 0 is drawn as a dot, for a value between unknown ones.
        path += f"M{x} {y}h0" if pen == "M" else f"L{x} {y}"
        pen = "L"
    return Trend(len(values) - 1, path)
