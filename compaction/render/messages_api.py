"""Render a context for the Anthropic Messages API, with cache breakpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compaction.cache.economy import TTLSetting
from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock
from compaction.render.content import Dialect, Notes
from compaction.render.normalise import ContentPart, Turn, WireOf, normalise
from compaction.render.tools import tools_of

DIALECT = Dialect(ids=200, names=128, thinking=True)
EPHEMERAL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def anthropic(
    blocks: Iterable[Block],
    wire_of: WireOf,
    ending: Ending | None = None,
    *,
    breakpoints: bool = True,
    ttl: TTLSetting = "5m",
) -> dict[str, Any]:
    """Return {system, tools, messages, notes} of a context; system and tools only if there are any.

    Signed thinking is sent unchanged, in every message: the API requires that of the newest tool
    loop and recommends the earlier ones. Breakpoints set by agents are dropped. Ours, at most four,
    are after the tools, after the system prompt, on the last replacement, and at the end or before
    an `ending`, which the next request will not contain. They ask for the policy's TTL; "recorded"
    leaves it to the provider, whose default is five minutes.
    """
    ending = ending or Ending()
    notes = Notes()
    made = normalise(blocks, wire_of, DIALECT, notes)
    made.recite(ending)
    body: dict[str, Any] = {"notes": []}
    if made.system:
        body["system"] = [part.wire for part in made.system]
    tools = tools_of(made.tools, wire_of(made.tools), DIALECT, notes) if made.tools else []
    if tools:
        body["tools"] = tools
    if breakpoints:
        _mark(tools, made.system, list(_lasting(made.turns, ending)), ttl)
    body["messages"] = [
        {"content": [part.wire for part in turn.parts], "role": turn.role} for turn in made.turns
    ]
    if not made.turns:
        notes.add("There is no message yet: the provider does not accept an empty context")
    body["notes"] = notes.sentences()
    return body


def _lasting(turns: list[Turn], ending: Ending) -> Iterator[ContentPart]:
    """Yield the parts before the first one that the next request will not contain."""
    for part in (part for turn in turns for part in turn.parts):
        if part.recited or (part.block is not None and part.block.position in ending.once):
            return
        yield part


def _mark(
    tools: list[WireBlock], system: list[ContentPart], said: list[ContentPart], ttl: TTLSetting
) -> None:
    fixed = [tool for tool in tools if not tool.get("defer_loading")]
    spoken = [part for part in said if _takes_breakpoint(part)]
    replaced = [part for part in spoken if part.block is not None and part.block.replaces]
    # The provider refuses a one-hour breakpoint after a five-minute one.
    ahead = HOUR if ttl in ("mixed", "1h") else EPHEMERAL
    behind = HOUR if ttl == "1h" else EPHEMERAL
    for places in (fixed, [part.wire for part in system]):
        _put(places, ahead)
    for places in (_wires(replaced), _wires(spoken)):
        _put(places, behind)


def _put(places: list[WireBlock], control: dict[str, str]) -> None:
    if not places:
        return
    wire = places[-1]
    marked = {"cache_control": dict(control), **wire}
    wire.clear()
    wire.update(sorted(marked.items()))


def _wires(parts: list[ContentPart]) -> list[WireBlock]:
    return [part.wire for part in parts]


def _takes_breakpoint(part: ContentPart) -> bool:
    return "thinking" not in part.wire["type"]
