"""Apply a session's tool graph to its agent's tool use; reads only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Q

from compaction import tokens
from compaction.context import wire
from compaction.tools import read_tool
from compaction.tools.document import graph_of
from compaction.tools.graph import Enabling, ToolGraph, restored
from compaction.tools.listed import tool_name, tools_in
from sessions.models.live.managed import ManagedContext
from sessions.models.record.sessions import Session
from sessions.models.tools.graphs import ToolGraph as Row


@dataclass(frozen=True, slots=True)
class Tooling:
    """A graph with its current state; `taken` is the position of the next block to process."""

    row: Row
    enabling: Enabling
    taken: int = 0

    @property
    def graph(self) -> ToolGraph:
        """The graph in effect."""
        return self.enabling.graph


def tooling(session: Session) -> Tooling | None:
    """The newest graph with its state as of now; None without one. Reads only new rows."""
    row = Row.objects.filter(session=session).order_by("-number").first()
    if row is None:
        return None
    enabling, taken = restored(graph_of(row.document), row.fold), row.taken
    for position, _, tool, step in _uses(session, Q(position__gte=row.taken)):
        enabling.use(tool, step)
        taken = position + 1
    return Tooling(row, enabling, taken)


def retooled_at(session: Session) -> set[int]:
    """The steps from which a session's graph lists other tools than before."""
    found = tooling(session)
    if found is None or found.graph.sends == "all":
        return set()
    return {found.row.step, *(one.step for one in found.enabling.enabled.values())}


def tooling_at(session: Session, step: int) -> Tooling | None:
    """The tool graph with its state at a step. Linear in the tool calls up to it."""
    rows = Row.objects.filter(session=session, step__lte=step)
    return _again(session, list(rows.order_by("number")), Q(born__lte=step))


def tooling_then(managed: ManagedContext) -> Tooling | None:
    """The tool graph with its state when a managed context was built; None if none was set by
    then."""
    if managed.tools is None:
        return None
    session = managed.tools.session
    rows = Row.objects.filter(session=session, number__lte=managed.tools.number)
    return _again(session, list(rows.order_by("number")), Q(message__seq__lte=managed.seq))


def _again(session: Session, rows: list[Row], until: Q) -> Tooling | None:
    if not rows:
        return None
    enabling, waiting = Enabling(), list(reversed(rows))
    for _, seq, tool, step in _uses(session, until):
        while waiting and waiting[-1].seq < seq:
            _register(enabling, waiting.pop())
        enabling.use(tool, step)
    while waiting:
        _register(enabling, waiting.pop())
    return Tooling(rows[-1], enabling)


def _register(enabling: Enabling, row: Row) -> None:
    enabling.register(graph_of(row.document), row.step)


def _uses(session: Session, which: Q) -> Iterable[tuple[int, int, str, int]]:
    """Tool calls: position, message, tool, and the step that first sees them. Reading back is not
    a tool of the agent."""
    calls = session.blocks.filter(which, type="tool_use").exclude(tool=read_tool.NAME)
    rows = calls.order_by("position")
    return rows.values_list("position", "message__seq", "tool", "born")


def sizes(setup: wire.WireBlock) -> dict[str, int]:
    """The tools of a list with their o200k tokens, in order, each name once."""
    return dict(_counted(wire.encode(setup)))


@lru_cache(maxsize=64)
def _counted(encoded: bytes) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    for tool in tools_in(wire.decode(encoded)):
        text = wire.encode({"tool": tool}).decode("utf-8", "replace")
        found.setdefault(tool_name(tool), tokens.counted(text).tokens)
    return tuple(found.items())
