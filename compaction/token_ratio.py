"""The token ratio of a session, learned from the usage that its provider reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compaction.context.blocks import Block
from compaction.context.session import Call, Session
from compaction.tokens import Counting, default_counting

LEAST_GROWTH = 300
"""Minimum o200k tokens that a step must add to count for the ratio (our choice)."""

LEAST_STEPS = 5
"""Minimum clean steps to learn a ratio from (our choice)."""


@dataclass(slots=True)
class GrowthSums:
    """Clean steps, and by how much their prompts grew: as reported, and in o200k tokens."""

    steps: int = 0
    reported: int = 0
    added: int = 0


@dataclass(frozen=True, slots=True)
class Added:
    """What a step adds to the prompt: o200k tokens, whether all of them are counted by the provider
    as we do, and whether some are thinking that the log shows."""

    tokens: int
    clean: bool = True
    thinking: bool = False


def added(blocks: Iterable[tuple[str, int]]) -> Added:
    """What blocks add, each with its type and o200k tokens."""
    listed = list(blocks)
    thinking = any(type == "thinking" for type, _ in listed)
    clean = all(
        type in ("text", "tool_use", "tool_result") or (type == "thinking" and tokens > 0)
        for type, tokens in listed
    )
    return Added(sum(tokens for _, tokens in listed), clean, thinking)


@dataclass(slots=True)
class PromptGrowth:
    """Growth of a session's prompts so far, call by call, and the token ratio that it shows.

    The ratio is the growth of the reported prompt over the growth of o200k tokens, summed over
    clean steps, so that large results weigh more, as they do in a context. A step is clean if the
    call before it reported usage for the same model, the prompt grew, at least 300 tokens were
    added, and none of them are hidden in logs or counted separately (thinking, media). With fewer
    than five clean steps, thinking whose text the log shows is allowed. Ratios outside 0.5 to 3 are
    rejected. The method follows docs/sources.md, Token ratios; the sum instead of a median is our
    choice, because it matches the reported prompts more closely.
    """

    step: int = 0
    model: str = ""
    prompt: int | None = None
    plain: GrowthSums = field(default_factory=GrowthSums)
    with_thinking: GrowthSums = field(default_factory=GrowthSums)

    def see(self, call: Call, added: Added, *, edited: bool = False) -> None:
        """Take in the next call; `edited`: its prompt differs from the one before by more."""
        prompt = None if call.usage is None else call.usage.opening.prompt
        follows = call.step == self.step + 1 and call.model == self.model and not edited
        if prompt is not None and self.prompt is not None and follows and added.clean:
            self._add(prompt - self.prompt, added)
        self.step, self.model, self.prompt = call.step, call.model, prompt

    def _add(self, growth: int, added: Added) -> None:
        if added.tokens < LEAST_GROWTH or not 0.5 <= growth / added.tokens <= 3.0:
            return
        for sums in (self.with_thinking,) if added.thinking else (self.plain, self.with_thinking):
            sums.steps += 1
            sums.reported += growth
            sums.added += added.tokens

    @property
    def ratio(self) -> int | None:
        """The ratio in permille; None if it cannot be learned yet."""
        for sums in (self.plain, self.with_thinking):
            if sums.steps >= LEAST_STEPS:
                return round(sums.reported / sums.added * 1000)
        return None


def calibrate(session: Session, o200k: Mapping[str, int]) -> int | None:
    """Learn a whole session's token ratio, in permille; None if it cannot be learned.

    `o200k` are counts by block id.
    """
    fresh: dict[int, list[Block]] = {}
    for block in session.blocks:
        fresh.setdefault(block.born, []).append(block)
    growth = PromptGrowth()
    for call in session.calls:
        born = fresh.get(call.step, ())
        growth.see(call, added((block.type, o200k.get(block.id, 0)) for block in born))
    return growth.ratio


def counting_for(session: Session, o200k: Mapping[str, int]) -> Counting:
    """Choose the best counting for a recorded session: exact, else calibrated, else estimated."""
    given = default_counting(session.model)
    if given.basis == "exact":
        return given
    permille = calibrate(session, o200k)
    return given if permille is None else Counting("calibrated", permille)
