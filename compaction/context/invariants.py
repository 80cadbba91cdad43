"""The rules that every context must satisfy, and a check that edits keep them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from compaction.context.blocks import Block, Context


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule, the block or group it concerns, and a short description."""

    rule: str
    about: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.detail}"


def violations(context: Context, known: Container[str], waiting: bool = True) -> list[Violation]:
    """Return the rules that a context breaks.

    Rules: `pair` (every result follows its call, every call has its result), `single` (one result
    per call), `role` (calls come from the assistant, results do not; the assistant does not open
    the conversation), `reference` (every id that a replacement references is `known`). While an
    agent may be `waiting` for a result, a call without one counts only if a newer message follows
    it.
    """
    uses: dict[str, Block] = {}
    results: dict[str, Block] = {}
    broken: list[Violation] = []
    last_message = -1
    for block in context.values():
        last_message = max(last_message, block.message)
        broken.extend(_reference(block, known))
        if block.tool_call is None:
            continue
        if block.type == "tool_use":
            uses[block.tool_call] = block
            if block.role != "assistant":
                broken.append(Violation("role", block.tool_call, f"a call by {block.role}"))
        elif block.type == "tool_result":
            broken.extend(_result(block, block.tool_call, uses, results))
    for call, use in uses.items():
        if call not in results and (not waiting or use.message < last_message):
            broken.append(Violation("pair", call, "call without result"))
    broken.extend(_opening(context.values()))
    return broken


def _reference(block: Block, known: Container[str]) -> list[Violation]:
    named = (*block.refs, block.replaces) if block.replaces is not None else block.refs
    return [
        Violation("reference", block.id, f"original {name} is not known")
        for name in named
        if name not in known
    ]


def _result(
    block: Block, call: str, uses: dict[str, Block], results: dict[str, Block]
) -> list[Violation]:
    broken = []
    if call not in uses:
        broken.append(Violation("pair", call, "result without its call before it"))
    if call in results:
        broken.append(Violation("single", call, "second result of a call"))
    if block.role == "assistant":
        broken.append(Violation("role", call, "a result by the assistant"))
    results[call] = block
    return broken


def _opening(blocks: Iterable[Block]) -> list[Violation]:
    for block in blocks:
        if block.kind in ("tools", "system", "memory") or block.role == "system":
            continue
        if block.role == "assistant":
            return [Violation("role", "opening", "the conversation opens with the assistant")]
        return []
    return []


def broken_by(before: Context, after: Context, known: Container[str]) -> list[Violation]:
    """Return the rules that hold in one context and no longer hold after edits.

    Beyond `violations`: `pin` (pinned blocks stay unchanged), `atomic` (the calls of one response
    stay or leave together) and `thinking` (no thinking stays without the calls of its response; it
    may leave alone). Both contexts may be reduced to the groups that the edits
    touch. Rules that were broken before, as in logs of interrupted agents, do not count.
    """
    earlier = set(violations(before, known, waiting=False))
    fresh = [one for one in violations(after, known, waiting=False) if one not in earlier]
    standing = {block.id: block for block in after.values()}
    for block in before.values():
        if block.pinned and standing.get(block.id) != block:
            fresh.append(Violation("pin", block.id, "a pinned block changed or left"))
    fresh.extend(_responses(before, after))
    return fresh


def _responses(before: Context, after: Context) -> list[Violation]:
    calls: dict[str, list[Block]] = {}
    for block in before.values():
        if block.call is not None and block.type in ("tool_use", "thinking"):
            calls.setdefault(block.call, []).append(block)
    broken = []
    for call, members in calls.items():
        stays = [
            _stays(block, after)
            for block in members
            if block.type != "thinking" or _stays(block, after)
        ]
        if any(stays) and not all(stays):
            rule = "thinking" if any(b.type == "thinking" for b in members) else "atomic"
            broken.append(Violation(rule, call, "a response is split"))
    return broken


def _stays(block: Block, after: Context) -> bool:
    now = after.get(block.position)
    if block.type == "thinking":
        return now == block
    return now is not None and now.type == "tool_use" and now.tool_call == block.tool_call
