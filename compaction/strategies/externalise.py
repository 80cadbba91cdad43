"""Externalize on entry: store a large tool result, and keep its ends and figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.blocks import Block
from compaction.context.cut import cut
from compaction.context.edits import Edit, amount
from compaction.context.stubs import key_arguments, reference, stand_in
from compaction.proposals.plan import Mark, Proposal, View
from compaction.proposals.setting import setting
from compaction.proposals.strategy import Place, Remark, Strategy, failure_remarks
from compaction.seen.reading import reads


@dataclass(frozen=True, slots=True)
class Externalise:
    """Which results are shortened on arrival, and what remains of them.

    100 rows, and failures that enter in full: MaybeAi, who names no size; the other numbers are our
    choice.
    """

    over: int = setting(
        2_000,
        "Shorten results larger than",
        "Larger results enter the context as an excerpt.",
        "Tool results",
        "tokens",
        between=(50, 1_000_000),
        tries=(500, 1_000, 2_000, 5_000, 10_000, 20_000),
        drawn=range(50, 301),
    )
    rows: int = setting(
        100,
        "Keep of a table up to",
        "Maximum rows of a table in an excerpt.",
        "Tool results",
        "rows",
        between=(1, 100_000),
        advanced=True,
        drawn=range(1, 31),
    )
    head: int = setting(
        2_000,
        "Keep at the start",
        "Start of the text in an excerpt; a table may use start and end together.",
        "Tool results",
        "characters",
        between=(0, 1_000_000),
        advanced=True,
        zero="nothing",
        drawn=range(301),
    )
    tail: int = setting(
        1_000,
        "Keep at the end",
        "End of the text in an excerpt.",
        "Tool results",
        "characters",
        between=(0, 1_000_000),
        advanced=True,
        zero="nothing",
        drawn=range(301),
    )
    minimum: int = setting(
        50,
        "Shorten if it saves at least",
        "Keep the full result if an excerpt would save fewer tokens than this.",
        "Tool results",
        "tokens",
        between=(1, 1_000_000),
        advanced=True,
    )
    exclude: tuple[str, ...] = setting(
        (),
        "Never shorten these tools",
        "Tools, and programs of shell tools, whose results stay in full.",
        "Tool results",
        advanced=True,
    )
    keep_failures: bool = setting(
        True,
        "Keep failed results in full",
        "Results of failed calls are not shortened.",
        "Tool results",
        advanced=True,
    )


MARK: Mark = {"seen": 0}
"""The number of arrivals processed."""


def externalise(view: View, parameters: Externalise) -> Proposal:
    """Replace new tool results that are too large by an excerpt with a reference.

    Source: MaybeAi, whose large results enter the context as a file name and a summary.
    """
    edits = []
    for place in view.arrivals[view.mark["seen"] :]:
        edit = _edit(view, view.originals[place], parameters)
        if edit is not None:
            edits.append(edit)
    mark = {"seen": len(view.arrivals)}
    reason = f"{amount(len(edits), 'result')} over {parameters.over} tokens"
    return Proposal(tuple(edits), mark, "entry", reason)


def _edit(view: View, block: Block, parameters: Externalise) -> Edit | None:
    if block.type != "tool_result" or block.tokens <= parameters.over:
        return None
    now = view.standing.get(block.position)
    if now is None or now.id != block.id:
        return None
    if not view.guard.may_enter_as(block) or (block.error and parameters.keep_failures):
        return None
    use = view.guard.groups.uses.get(block.tool_call) if block.tool_call is not None else None
    if block.tool in parameters.exclude or reads(use, parameters.exclude):
        return None
    file = block.file or (use.file if use is not None else None)
    path = file.path if file is not None else None
    shown = cut(block.text, path, parameters.rows, parameters.head, parameters.tail)
    about = f"{block.tool or 'result'} {key_arguments(use)}".strip()
    note = f"[externalised: {about} | {shown.figures} | ref {reference(block)}]"
    text = "\n".join(filter(None, [note, shown.text]))
    tokens = view.means.count(text)
    if block.tokens - tokens < parameters.minimum:
        return None
    stub = stand_in(block, text, tokens, "externalise")
    return Edit("externalise", (block.id,), stub, f"{block.tokens} tokens")


CHARACTERS = 4
"""Approximate characters per token, to compare an excerpt with its result."""


def _remarks(place: Place, given: Externalise) -> Iterator[Remark]:
    trigger = place.trigger()
    if trigger is not None and given.over >= trigger:
        text = (
            f"A single result can fill the context before it is shortened: {given.over:,} tokens "
            f"are not below the trigger, which is at {trigger:,} in a window of "
            f"{place.window:,}. Set it to a small part of that, such as 2,000."
        )
        yield Remark("over", text, "warning")
    if given.head + given.tail >= CHARACTERS * given.over:
        text = (
            "The excerpt is about as long as the result, so little or nothing is saved. Keep head "
            f"and tail together below {CHARACTERS * given.over:,} characters."
        )
        yield Remark("head", text, "note")
    yield from failure_remarks(given.keep_failures)


STRATEGY = Strategy(
    name="externalise",
    order=30,
    title="Excerpt",
    does="Stores a large tool result on arrival, and keeps its ends and figures.",
    event="entry",
    propose=externalise,
    parameters=Externalise,
    mark=MARK,
    docs="externalise-at-entry",
    remarks=_remarks,
    joins=True,
    puts_aside=True,
)
