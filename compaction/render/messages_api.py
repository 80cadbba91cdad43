"""Render a context for the Anthropic Messages API, with cache breakpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from compaction.cache.economy import TTLSetting
from compaction.cache.simulator import LOOK_BACK, MOST_BREAKPOINTS
from compaction.context.blocks import Block, Ending
from compaction.context.wire import WireBlock
from compaction.prices.system_messages import CLEARED
from compaction.render.content import EFFORT, Dialect, Notes, WireOf
from compaction.render.normalise import normalise
from compaction.render.prefix import ContentPart, Prefix, Turn
from compaction.render.tools import tools_of

DIALECT = Dialect(ids=200, names=128, thinking="signed")
DIRECTED = replace(DIALECT, directed=frozenset({EFFORT, "tool_addition", "tool_removal"}))
"""For models that take system messages between the others."""
EPHEMERAL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def anthropic(
    blocks: Iterable[Block],
    wire_of: WireOf,
    ending: Ending | None = None,
    *,
    breakpoints: bool = True,
    ttl: TTLSetting = "5m",
    system_messages: bool = False,
) -> dict[str, Any]:
    """Return {system, tools, messages, notes} of a context; system and tools only if there are any.

    Signed thinking is sent unchanged, in every message: the API requires that of the newest tool
    loop and recommends the earlier ones. Breakpoints set by agents are dropped. Ours, at most four,
    are after the tools, after the system prompt, on the last replacement, and at the end or before
    an `ending`, which the next request will not contain; after a step of 20 blocks or more also at
    the end of the request before, which would not be found, rather than after the tools. They ask
    for `ttl`, as granted to the policy; five minutes, the provider's default, goes without saying.
    With `system_messages`, the model takes system messages between the others
    (prices/system_messages.py): the recitation is one, and those of the conversation stay in their
    place, with the effort and the tools that they set for later turns.
    """
    made, _ = anthropic_from(
        None,
        blocks,
        wire_of,
        ending or Ending(),
        breakpoints=breakpoints,
        ttl=ttl,
        system_messages=system_messages,
    )
    return made


def anthropic_from(
    prefix: Prefix | None,
    blocks: Iterable[Block],
    wire_of: WireOf,
    ending: Ending,
    *,
    breakpoints: bool,
    ttl: TTLSetting,
    system_messages: bool = False,
) -> tuple[dict[str, Any], Prefix]:
    """Return a context as `anthropic` does, and the prefix for the next one.

    Messages of a prefix are the same objects each time, so that a caller can keep what it made of
    them; they must not be changed.
    """
    notes = Notes()
    earlier = ending.earlier if system_messages else None
    dialect = DIRECTED if system_messages else DIALECT
    made = normalise(blocks, wire_of, dialect, notes, prefix, earlier)
    made.recite(ending, as_system=system_messages)
    body: dict[str, Any] = {"notes": []}
    if system := [part.wire for part in made.system if part.wire["type"] == "text"]:
        body["system"] = system
    tools = tools_of(made.tools, wire_of(made.tools), DIALECT, notes) if made.tools else []
    if tools:
        body["tools"] = tools
    body["messages"] = [_message(turn) for turn in made.turns]
    if breakpoints:
        _mark(body, made.turns, ending, ttl)
    if not made.turns:
        notes.add("There is no message yet: the provider does not accept an empty context")
    body["notes"] = notes.sentences()
    return body, made.prefix


def _message(turn: Turn) -> WireBlock:
    if turn.message is None:
        content = [part.wire for part in turn.parts if part.wire["type"] != EFFORT]
        # The provider clears a message's text at the next user message, not the message.
        more: WireBlock = {"clear_at": CLEARED} if turn.clears else {}
        for part in turn.parts:
            if part.wire["type"] == EFFORT:
                more[EFFORT] = {name: one for name, one in part.wire.items() if name != "type"}
        turn.message = dict(sorted({**more, "content": content, "role": turn.role}.items()))
    return turn.message


def _mark(body: dict[str, Any], turns: list[Turn], ending: Ending, ttl: TTLSetting) -> None:
    """Place breakpoints in a body, in copies of what they are placed on."""
    # The provider refuses a one-hour breakpoint after a five-minute one.
    ahead = HOUR if ttl in ("mixed", "1h") else EPHEMERAL
    behind = HOUR if ttl == "1h" else EPHEMERAL
    tools, system, messages = body.get("tools", []), body.get("system", []), body["messages"]
    last = _last(turns, ending)
    fixed = [at for at, tool in enumerate(tools) if not tool.get("defer_loading")]
    if fixed and len(last) + bool(system) < MOST_BREAKPOINTS:
        tools[fixed[-1]] = _with_control(tools[fixed[-1]], ahead)
    if system:
        system[-1] = _with_control(system[-1], ahead)
    for at, part in last:
        content = [
            _with_control(wire, behind) if wire is part.wire else wire
            for wire in messages[at]["content"]
        ]
        messages[at] = {"content": content, "role": messages[at]["role"]}


def _last(turns: list[Turn], ending: Ending) -> list[tuple[int, ContentPart]]:
    """Where breakpoints go, with the numbers of their turns: the last replacement, the end of the
    request before if it is too far back to be found, and the last part that takes one. All are
    before the first part that the next request will not contain."""
    spoken = replaced = former = None
    parts = since = 0
    for at, turn in enumerate(turns):
        if turn.role == "system":
            continue  # one that is cleared is never part of a cache key
        if turn.role == "assistant" and turn.parts[0].block is not None:
            former, since = spoken, parts
        for part in turn.parts:
            if part.recited or (part.block is not None and part.block.position in ending.once):
                break
            parts += 1
            if "thinking" not in part.wire["type"]:
                spoken = at, part
                if part.block is not None and part.block.replaces:
                    replaced = spoken
        else:
            continue
        break
    far = former if parts - since >= LOOK_BACK else None
    found: list[tuple[int, ContentPart]] = []
    for one in (replaced, far, spoken):
        if one is not None and all(one is not other for other in found):
            found.append(one)
    return found


def _with_control(wire: WireBlock, control: dict[str, str]) -> WireBlock:
    return dict(sorted({"cache_control": dict(control), **wire}.items()))
