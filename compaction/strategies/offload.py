"""Offload: replace tool inputs and outputs by stubs, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from compaction.context.blocks import Block
from compaction.context.edits import Edit, amount
from compaction.context.stubs import input_stub, result_stub, stand_in
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark, Severity, Strategy, failure_remarks
from compaction.seen.reading import reads
from compaction.seen.sights import STUB


@dataclass(frozen=True, slots=True)
class Offload:
    """When tool inputs and outputs leave the context.

    Age 5, batch 5, and calls that leave too: CodeGenius; the minimum savings are about the size of
    a stub (our choice); `exclude`: Anthropic's context editing; `only` and failures: MaybeAi.
    """

    age: int = setting(
        5,
        "Keep results of the newest",
        "Newest steps or turns whose inputs and outputs stay.",
        "Tool results",
        "steps",
        between=(0, 10_000),
        zero="none",
        tries=(2, 3, 5, 8, 12, 20, 30),
        drawn=range(5),
    )
    batch: int = setting(
        5,
        "Offload at once",
        "Older steps or turns to offload together, to break the cache once for all of them.",
        "Tool results",
        "steps",
        between=(1, 10_000),
        tries=(1, 2, 5, 10, 20, 40),
        drawn=range(1, 5),
    )
    unit: Literal["steps", "turns"] = setting(
        "steps",
        "Count by",
        "Unit of the newest steps and of a batch.",
        "Tool results",
        advanced=True,
        choices={"steps": "steps (model calls)", "turns": "turns (user messages)"},
    )
    minimum: int = setting(
        50,
        "Offload if it saves at least",
        "Keep the text if a stub would save fewer tokens than this.",
        "Tool results",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
        tries=(50, 150, 400, 1_000),
        drawn=range(1, 61),
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Never offload these tools",
        "Tools whose inputs and outputs always stay.",
        "Tool results",
        advanced=True,
    )
    only: tuple[str, ...] = setting(
        (),
        "Offload only these tools",
        "Tools and programs to offload; empty for all.",
        "Tool results",
        advanced=True,
    )
    inputs: bool = setting(
        True,
        "Offload tool inputs too",
        "Otherwise only outputs are offloaded.",
        "Tool results",
        advanced=True,
    )
    keep_failures: bool = setting(
        True,
        "Keep failed calls",
        "A failed call stays until the same operation succeeds.",
        "Tool results",
        advanced=True,
    )


MARK: Mark = {"seen": 0, "ripe": -1, "mended": 0}
"""The number of arrivals and resolved failures processed, and the last ripe step or turn."""


def offload(view: View, parameters: Offload) -> Proposal:
    """Replace tool inputs and outputs that are old enough by stubs, one edit each.

    Processes every arrival once, when it ripens, and failures again once they are resolved. Source:
    CodeGenius; docs/sources.md, Worked cache example, shows what batches save.
    """
    by_turn = parameters.unit == "turns"
    ripe = (view.turn if by_turn else view.step) - parameters.age
    last = view.mark["ripe"]
    if last < 0:
        # The first message is born at step 1, before any tool ran: batches count from there.
        last = 0 if by_turn else 1
    if ripe - last < parameters.batch:
        return Proposal((), view.mark)
    edits: list[Edit | None] = []
    seen = view.mark["seen"]
    while seen < len(view.arrivals):
        block = view.originals[view.arrivals[seen]]
        if (block.turn if by_turn else block.born) > ripe or block.position >= view.guard.hot:
            break  # blocks that are still hot follow later
        seen += 1
        edits.extend(_edit(view, one, parameters, ripe) for one in _with_held(view, block))
    mended = view.guard.groups.mended
    for position in mended[view.mark["mended"] :]:
        block = view.originals[position]
        if (block.turn if by_turn else block.born) <= ripe:
            edits.append(_edit(view, block, parameters, ripe))
    made = {edit.targets: edit for edit in edits if edit is not None}
    mark = {"seen": seen, "ripe": ripe, "mended": len(mended)}
    unit = "turn" if by_turn else "step"
    blocks = amount(len(made), "block")
    return Proposal(tuple(made.values()), mark, "batch", f"{blocks} from {unit} {ripe} or earlier")


def _with_held(view: View, block: Block) -> list[Block]:
    """Return a block, and for a note on a file's text, the blocks kept because of it."""
    now = view.standing.get(block.position)
    if now is None or not now.id.startswith(STUB):
        return [block]
    held = view.sights.rested_on(now, view.originals, view.guard.groups.uses)
    return [block, *(view.originals[place] for place in held)]


def _is_held(view: View, block: Block, parameters: Offload, ripe: int) -> bool:
    """Return whether a note that is not ripe, new or hot relies on the text of this block."""
    by_turn = parameters.unit == "turns"
    for note in view.sights.resting(block, view.standing):
        new = note.born >= view.step or note.position >= view.guard.hot
        if new or (note.turn if by_turn else note.born) > ripe:
            return True
    return False


def _is_whole(view: View, now: Block, block: Block) -> bool:
    """Return whether this is an original, or an entry replacement, which can be as long as one."""
    return now.id == block.id or view.entered_short(now)


def _edit(view: View, block: Block, parameters: Offload, ripe: int) -> Edit | None:
    now = view.standing.get(block.position)
    if now is None or now.tokens <= parameters.minimum or not _is_whole(view, now, block):
        return None
    if block.type not in ("tool_use", "tool_result") or not view.guard.may_replace(block):
        return None
    if block.type == "tool_use" and not parameters.inputs:
        return None
    groups = view.guard.groups
    use = groups.uses.get(block.tool_call) if block.tool_call is not None else None
    tool = block.tool or (use.tool if use is not None else None)
    if tool in parameters.exclude or (parameters.only and not reads(use, parameters.only)):
        return None
    if _is_held(view, block, parameters, ripe):
        return None
    if parameters.keep_failures and block.position in groups.open_failures:
        return None
    text = input_stub(block) if block.type == "tool_use" else result_stub(block, use)
    tokens = view.means.count(text)
    if now.tokens - tokens < parameters.minimum:
        return None
    replacement = stand_in(block, text, tokens, "offload", now=now.id)
    return Edit(
        "offload", (now.id,), replacement, f"{block.tokens} tokens, here since step {block.born}"
    )


def _remarks(_place: Place, given: Offload) -> Iterator[Remark]:
    if given.batch == 1 and given.unit == "steps":
        # At the very end of the prompt little is written again (recitation has age 1).
        severity: Severity = "warning" if given.age > 1 else "note"
        text = (
            f"Something is offloaded at every step, so the cached prefix breaks at every call and "
            f"about {given.age + 1} steps are written again. Set it to 5: one break for five "
            f"steps."
        )
        yield Remark("batch", text, severity)
    elif given.age < given.batch:
        text = (
            f"Results stay for {given.age} to {given.age + given.batch - 1} {given.unit}, which "
            f"depends more on the batch than on the age. Set it to {given.batch} or more, or make "
            f"the batch smaller."
        )
        yield Remark("age", text, "note")
    yield from failure_remarks(given.keep_failures)


STRATEGY = Strategy(
    name="offload",
    order=60,
    title="Offload",
    does="Replaces tool inputs and outputs by stubs, in batches.",
    event="offload",
    propose=offload,
    parameters=Offload,
    mark=MARK,
    docs="offload",
    remarks=_remarks,
    joins=True,
    aim="tool output",
    puts_aside=True,
)
