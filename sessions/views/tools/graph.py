"""The tool graph of a team as a drawing: which tool ran before which, and what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.tools.habits import Habits
from compaction.tools.order import RanBefore, levels, ran_before
from sessions.models.tools.unused import OfferedTool

MOST = 28
"""Most tools drawn, the most used ones."""

WIDTH, HEIGHT, APART, DOWN = 190, 50, 280, 66
"""Size of a node, and distances of columns and rows, in pixels."""

LABELS = (-9, 9, -24, 24)
"""Where the counts of lines to a tool go, from the middle of its node, in pixels."""

AWAY, BESIDE = 8, 72
"""Pixels from a node to the counts of its lines, and what those beside the last nodes take."""

STRONGEST = 1
"""Lines to a tool that are drawn at first, those with the highest counts (our choice)."""

LETTERS = 22
"""Most letters of a name in a node."""


@dataclass(frozen=True, slots=True)
class ToolNode:
    """A tool in the drawing: place, uses, the width of their bar, the cost of its definition in
    micro-dollars (None if unknown), and what ran before it and after it, with counts."""

    index: int
    name: str
    short: str
    level: int
    x: int
    y: int
    uses: int
    bar: int
    microusd: int | None
    before: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ToolEdge:
    """A curve between two nodes, by index, with its label: it ends at `x`, before the node, or with
    `beside` begins there, after the node. `most` if no other to the same node counts more, `strong`
    if few do."""

    start: int
    end: int
    path: str
    weight: int
    count: int
    x: int
    y: int
    most: bool
    strong: bool
    beside: bool = False


@dataclass(frozen=True, slots=True)
class ToolDrawing:
    """Nodes by level, edges, and the size in pixels; `left_out` tools are not drawn."""

    levels: tuple[tuple[int, int, tuple[ToolNode, ...]], ...]
    edges: tuple[ToolEdge, ...]
    width: int
    height: int
    left_out: int

    @property
    def weak(self) -> int:
        """How many edges are drawn on request only."""
        return sum(not edge.strong for edge in self.edges)

    @property
    def nodes(self) -> list[ToolNode]:
        """All nodes, in reading order."""
        return [node for *_, nodes in self.levels for node in nodes]


def drawing(habits: Habits, offered: Mapping[str, OfferedTool]) -> ToolDrawing | None:
    """Draw the most used tools; None without any."""
    ranked = sorted(habits.uses, key=lambda tool: (-habits.uses[tool], tool))
    tools = ranked[:MOST]
    if not tools:
        return None
    edges = ran_before(habits, tools)
    level = levels(edges, tools)
    columns: dict[int, list[str]] = {}
    for tool in tools:
        columns.setdefault(level[tool], []).append(tool)
    _untangle(columns, edges)
    order = [tool for at in sorted(columns) for tool in columns[at]]
    index = {tool: number for number, tool in enumerate(order)}
    top = habits.uses[tools[0]]
    nodes = {}
    for at, names in columns.items():
        for row, name in enumerate(names):
            one = offered.get(name)
            nodes[name] = ToolNode(
                index[name],
                name,
                name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…",
                at,
                at * APART,
                row * DOWN + 28,
                habits.uses[name],
                max(2, round(WIDTH * habits.uses[name] / top)),
                one.microusd if one is not None else None,
                tuple((edge.tool, edge.times) for edge in edges if edge.after == name),
                tuple((edge.after, edge.times) for edge in edges if edge.tool == name),
            )
    most = max((edge.times for edge in edges), default=1)
    drawn = tuple(_edge(nodes[edge.tool], nodes[edge.after], edge.times, most) for edge in edges)
    return ToolDrawing(
        tuple(
            (at, at * APART, tuple(nodes[name] for name in columns[at])) for at in sorted(columns)
        ),
        drawn,
        max(columns) * APART + WIDTH + (BESIDE if any(edge.beside for edge in drawn) else 0),
        max(len(names) for names in columns.values()) * DOWN + 20,
        len(ranked) - len(tools),
    )


def _untangle(columns: dict[int, list[str]], edges: Sequence[RanBefore]) -> None:
    """Order each column by the rows of what ran before, so that fewer lines cross."""
    row: dict[str, float] = {}
    for at in sorted(columns):
        names = columns[at]
        for place, name in enumerate(names):
            before = [row[edge.tool] for edge in edges if edge.after == name and edge.tool in row]
            row[name] = sum(before) / len(before) if before else place
        names.sort(key=lambda name: row[name])
        row.update({name: place for place, name in enumerate(names)})


def _edge(start: ToolNode, end: ToolNode, count: int, most: int) -> ToolEdge:
    x, y = start.x + WIDTH, start.y + HEIGHT // 2
    # Above and below the end of the line, where it alone runs; in its middle, others cross it.
    rank = sorted(end.before, key=lambda one: -one[1]).index((start.name, count))
    strong = rank < STRONGEST
    label_y = end.y + HEIGHT // 2 + LABELS[rank % len(LABELS)]
    to_x, to_y = end.x, end.y + HEIGHT // 2
    if end.level <= start.level:  # both on the last level
        x, to_x = start.x + WIDTH, end.x + WIDTH
        path = f"M{x} {y}C{x + 40} {y} {to_x + 40} {to_y} {to_x} {to_y}"
        return ToolEdge(
            start.index, end.index, path, 1, count, to_x + AWAY, label_y, not rank, strong, True
        )
    middle = (x + to_x) // 2
    path = f"M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}"
    weight = 1 + round(3 * count / most)
    return ToolEdge(
        start.index, end.index, path, weight, count, to_x - AWAY, label_y, not rank, strong
    )
