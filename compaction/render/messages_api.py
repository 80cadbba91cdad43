"""A context as the Anthropic Messages API takes it, with its cache breakpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from compaction.cache.economy import Lifetime
from compaction.context import Block, Ending
from compaction.render.content import Dialect, Notes
from compaction.render.normalise import Part, Turn, WireOf, normalise
from compaction.render.tools import tools_of
from compaction.wire import WireBlock

DIALECT = Dialect(ids=200, names=128, thinking=True)
EPHEMERAL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def anthropic(
    blocks: Iterable[Block],
    wire_of: WireOf,
    ending: Ending | None = None,
    *,
    breakpoints: bool = True,
    lifetime: Lifetime = "5m",
) -> dict[str, Any]:
    """{system, tools, messages, notes} of a context; system and tools only where there are any.

    Signed thinking goes out as it came, in every message: the API wants the newest tool loop's
    back and advises to send the earlier ones. Of what agents set as breakpoints nothing goes out;
    ours stand, at most four, after the tools, after the system prompt, on the last replacement
    and at the end, or before what an `ending` says is no part of the next request. They ask for the
    `lifetime` of the policy; "recorded" leaves it to the provider, whose own is five minutes.
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
        _mark(tools, made.system, list(_lasting(made.turns, ending)), lifetime)
    body["messages"] = [
        {"content": [part.wire for part in turn.parts], "role": turn.role} for turn in made.turns
    ]
    if not made.turns:
        notes.add("There is no message yet: the provider takes no context without one")
    body["notes"] = notes.sentences()
    return body


def _lasting(turns: list[Turn], ending: Ending) -> Iterator[Part]:
    """What is said up to the first part that the next request will not have."""
    for part in (part for turn in turns for part in turn.parts):
        if part.recited or (part.block is not None and part.block.position in ending.once):
            return
        yield part


def _mark(tools: list[WireBlock], system: list[Part], said: list[Part], lifetime: Lifetime) -> None:
    fixed = [tool for tool in tools if not tool.get("defer_loading")]
    spoken = [part for part in said if _takes_breakpoint(part)]
    replaced = [part for part in spoken if part.block is not None and part.block.replaces]
    # The provider takes no breakpoint of an hour behind one of five minutes.
    ahead = HOUR if lifetime in ("mixed", "1h") else EPHEMERAL
    behind = HOUR if lifetime == "1h" else EPHEMERAL
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


def _wires(parts: list[Part]) -> list[WireBlock]:
    return [part.wire for part in parts]


def _takes_breakpoint(part: Part) -> bool:
    return "thinking" not in part.wire["type"]
