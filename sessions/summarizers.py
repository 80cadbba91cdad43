"""Summarizers: code only, or an Anthropic model with code as fallback."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings

from compaction.prices import prices
from compaction.proposals.plan import Count, Span
from compaction.summaries.extract import extractive
from compaction.summaries.model.answer import Checks, read
from compaction.summaries.model.prompt import Prompt, prompt
from compaction.summaries.parts import batches
from sessions.provider import Talk, Unusable, client_of

if TYPE_CHECKING:
    from anthropic import Anthropic as Client

INPUT_SHARE = 0.5
"""Maximum share of the window for one prompt (our choice): Claude counts up to 1.7 times as many
tokens as o200k."""

ANALYSIS = 4_000
"""Output tokens reserved for the analysis before the summary (our choice)."""

NAMED = 30
"""Maximum invented facts listed in a second request (our choice)."""


@dataclass(frozen=True, slots=True)
class Made:
    """A summary and how it was made.

    `maker` is the author, `note` says why that is not the configured one. `usage` and
    `cost_microusd` include failed requests; the cost is None without a price. `unsupported` are
    names, paths and numbers that a model invented twice; they were cut out together with their
    sentences.
    """

    text: str
    maker: str
    model: str = ""
    note: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    cost_microusd: int | None = None
    unsupported: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Writes summaries of spans from which secrets have been removed."""

    @property
    def name(self) -> str:
        """The name, including the model; part of a summary's digest."""

    def summarize(self, span: Span, count: Count) -> Made:
        """A summary in the required form, shorter than the span."""


@dataclass(frozen=True, slots=True)
class Extractive:
    """Extracts a summary from the blocks, without a model or cost."""

    note: str = ""
    name: str = "extractive"

    def summarize(self, span: Span, count: Count) -> Made:  # noqa: ARG002
        """Deterministic."""
        return Made(extractive(span), "extractive", note=self.note)


def chosen() -> Summarizer:
    """The configured summarizer; no data leaves the machine unless Anthropic is configured."""
    if settings.SUMMARIZER != "anthropic":
        return Extractive()
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return Extractive(
            "Anthropic is configured as summarizer, but ANTHROPIC_API_KEY is not set."
        )
    return AnthropicSummarizer(settings.SUMMARIZER_MODEL, settings.SUMMARIZER_SECONDS)


@dataclass(frozen=True, slots=True)
class AnthropicSummarizer:
    """Asks an Anthropic model, retries once if the answer is unusable, and falls back to
    extraction.

    `seconds` limits one answer. Overload and connection errors are retried by the SDK up to
    `retries` times. `window` is the model's window in tokens, if it is not listed.
    """

    model: str
    seconds: float
    retries: int = 2
    window: int | None = None

    @property
    def name(self) -> str:
        """The name, which includes the model."""
        return f"anthropic {self.model}"

    def summarize(self, span: Span, count: Count) -> Made:
        """The model's summary if it passed all checks, else the extractive one with a note."""
        talk = Talk(self.model, self.seconds)
        note, maker = "", "anthropic"
        try:
            text, found = self._in_batches(span, count, talk)
        except Unusable as problem:
            note, maker = f"{self.model} gave no summary: {problem.reason}.", "extractive"
            text, found = extractive(span), []
        invented = tuple(dict.fromkeys(found))
        if invented:
            note = f"{self.model} invented {len(invented)} facts that are not in the transcript; "
            note += "the sentences with them were removed."
        return Made(text, maker, self.model, note, talk.usage, talk.cost, invented)

    def _in_batches(self, span: Span, count: Count, talk: Talk) -> tuple[str, list[str]]:
        """Summarize part by part, each on top of the previous summary; also return the invented
        facts removed."""
        checks = Checks.of(span, count)
        window = self.window or prices.window(self.model) or prices.UNKNOWN_WINDOW
        # Every part carries the code's sections, the summary so far, and the board.
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
        assert summary is not None, "at least one part"
        return summary, invented


def _ask(client: Client, talk: Talk, asked: Prompt, checks: Checks) -> tuple[str, list[str]]:
    """Write one summary, retrying once with the reason if the answer is unusable; also return what
    was removed.

    An answer that is valid except for invented facts is retried with a list of them. Facts still
    invented in the second answer are removed; if the second is unusable, the first is treated this
    way.
    """
    most, said, sound = 2 * checks.span.budget + ANALYSIS, asked.user, ""
    try:
        text = _sound(talk.answer(client, asked.system, said, most), checks)
        invented = checks.unsupported(text)
        if not invented:
            return checks.summary(text), []
        sound = text
        result = ", ".join(invented[:NAMED])
        said += (
            "\n\nYour first answer names what does not stand in the transcript, nor in anything "
            f"else that you were given: {result}. Write another one, without that."
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
    """The summary in an answer, checked for form and size."""
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
