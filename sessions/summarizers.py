"""Who writes a summary: code alone, or a model of Anthropic with code to fall back on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings

from compaction import prices
from compaction.plan import Count, Span
from compaction.summaries.answer import Checks, read
from compaction.summaries.extract import extractive
from compaction.summaries.parts import batches
from compaction.summaries.prompt import Prompt, prompt
from sessions.provider import Talk, Unusable, client_of

if TYPE_CHECKING:
    from anthropic import Anthropic as Client

INPUT_SHARE = 0.5
"""Share of the window for one prompt (ours): Claude counts up to 1.7 times what o200k does."""

ANALYSIS = 4_000
"""Tokens of an answer beyond the summary, for the analysis before it (ours)."""

NAMED = 30
"""Made up facts that a second request names (ours)."""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary and how it came about.

    `maker` is who wrote it in the end, `note` says why that is not who was asked. `usage` and
    `cost_microusd` add up all requests, failed ones too; the cost is None without a price.
    `unsupported` are names, paths and numbers that a model made up twice, and that were cut out
    with the sentences that held them.
    """

    text: str
    maker: str
    model: str = ""
    note: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_microusd: int | None = None
    unsupported: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Writes summaries of spans that hold no secrets any more."""

    @property
    def name(self) -> str:
        """Who it is, its model included: part of what a summary's digest is made of."""

    def summarize(self, span: Span, count: Count) -> Made:
        """A summary that has the form and is shorter than the span."""


@dataclass(frozen=True, slots=True)
class Extractive:
    """Reads a summary off the blocks; needs no model and costs nothing."""

    note: str = ""
    name: str = "extractive"

    def summarize(self, span: Span, count: Count) -> Made:  # noqa: ARG002
        """The same for the same span."""
        return Made(extractive(span), "extractive", note=self.note)


def chosen() -> Summarizer:
    """The summarizer of the settings; nothing leaves the machine unless they name Anthropic."""
    if settings.SUMMARIZER != "anthropic":
        return Extractive()
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return Extractive("Anthropic was chosen as summarizer, but ANTHROPIC_API_KEY is not set.")
    return Anthropic(settings.SUMMARIZER_MODEL, settings.SUMMARIZER_SECONDS)


@dataclass(frozen=True, slots=True)
class Anthropic:
    """Asks a model of Anthropic, once more where the answer is of no use, and else reads it off.

    `seconds` bound one answer. A request that is refused for load, or does not come through, the
    SDK repeats up to `retries` times. `window` is the model's in tokens, where it is not listed.
    """

    model: str
    seconds: float
    retries: int = 2
    window: int | None = None

    @property
    def name(self) -> str:
        """The model decides what is written."""
        return f"anthropic {self.model}"

    def summarize(self, span: Span, count: Count) -> Made:
        """A summary of the model that passed all checks, or the extractive one with a note."""
        talk = Talk(self.model, self.seconds)
        note, maker = "", "anthropic"
        try:
            text, found = self._in_batches(span, count, talk)
        except Unusable as problem:
            note, maker = f"{self.model} gave no summary: {problem.reason}.", "extractive"
            text, found = extractive(span), []
        invented = tuple(dict.fromkeys(found))
        if invented:
            note = f"{self.model} named {len(invented)} things that are not in the transcript; "
            note += "the sentences that do were cut out."
        return Made(text, maker, self.model, note, talk.usage, talk.cost, invented)

    def _in_batches(self, span: Span, count: Count, talk: Talk) -> tuple[str, list[str]]:
        """Summarise the first part, then the next on top of that, until all is in.

        And what was cut out of them, as it was made up.
        """
        checks = Checks.of(span, count)
        window = self.window or prices.window(self.model) or prices.UNKNOWN_WINDOW
        # The code's sections go with every part, as the summary so far and the board do.
        room = int(window * INPUT_SHARE) - 3 * span.budget - ANALYSIS - count(span.instructions)
        room -= sum(block.tokens for block in span.kept) + count(span.board)
        if room < span.budget:
            raise Unusable("its window is too small for this span")
        summary, invented = span.previous, list[str]()
        with client_of(self.seconds, self.retries) as client:
            for number, part in enumerate(batches(span, count, room)):
                before = checks.draft(summary) if number and summary else summary
                asked = prompt(span, part, before, checks.code, checks.budget)
                summary, found = _ask(client, talk, asked, checks)
                invented += found
        assert summary is not None, "there is one part at least"
        return summary, invented


def _ask(client: Client, talk: Talk, asked: Prompt, checks: Checks) -> tuple[str, list[str]]:
    """One summary and what was cut out of it; where an answer is of no use, another is told why.

    An answer that is sound but for what it made up is asked for again by naming that. What the
    second one still makes up is cut out; where the second is of no use, so is the first's.
    """
    most, said, sound = 2 * checks.span.budget + ANALYSIS, asked.user, ""
    try:
        text = _sound(talk.answer(client, asked.system, said, most), checks)
        invented = checks.unsupported(text)
        if not invented:
            return checks.summary(text), []
        sound = text
        told = ", ".join(invented[:NAMED])
        said += (
            "\n\nYour first answer names what does not stand in the transcript, nor in anything "
            f"else that you were given: {told}. Write another one, without that."
        )
    except Unusable as problem:
        if not problem.again:
            raise
        if problem.telling:
            said += f"\n\nYour first answer was of no use: {problem.reason}. Write another one."
    try:
        text = _sound(talk.answer(client, asked.system, said, most), checks)
    except Unusable:
        if not sound:
            raise
        text = sound
    return _without_inventions(text, checks)


def _sound(answer: str, checks: Checks) -> str:
    """What an answer holds of a summary, if its form and size are right."""
    text = read(answer, checks.span)
    if wrong := checks.faults(text):
        raise Unusable("; ".join(wrong), telling=True)
    return text


def _without_inventions(text: str, checks: Checks) -> tuple[str, list[str]]:
    invented = checks.unsupported(text)
    if not invented:
        return checks.summary(text), []
    summary = checks.without(text, invented)
    if summary is None:
        raise Unusable("nothing that it said was supported by the transcript")
    return summary, invented
