"""Who writes a summary: code alone, or a model of Anthropic with code to fall back on.

All calls of a model go through it; `topic_judge.py` asks another question.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings

from compaction import prices
from compaction.plan import Count, Span
from compaction.session import Usage
from compaction.summaries.answer import Checks, read
from compaction.summaries.extract import extractive
from compaction.summaries.parts import batches
from compaction.summaries.prompt import Prompt, prompt

if TYPE_CHECKING:
    from anthropic import Anthropic as Client
    from anthropic.types import Message

INPUT_SHARE = 0.5
"""Share of the window for one prompt (ours): Claude counts up to 1.7 times what o200k does."""

ANALYSIS = 4_000
"""Tokens of an answer beyond the summary, for the analysis before it (ours)."""

TEMPERATURE = 0.2
"""Shannon's for summaries."""

NAMED = 30
"""Made up facts that a second request names (ours)."""

CONNECT_SECONDS = 10.0

ANSWERS_TIME = 5
"""How many times the time of one answer all of them may take (ours): jobs have a limit, too."""


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


class Unusable(Exception):
    """No summary, and why; `again` where another try may help, `telling` where saying why does."""

    def __init__(self, reason: str, *, again: bool = True, telling: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.telling = telling


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
        talk = Talk(self.model, self.seconds, time.monotonic() + ANSWERS_TIME * self.seconds)
        note, maker = "", "anthropic"
        try:
            text = self._in_batches(span, count, talk)
        except Unusable as problem:
            note, maker = f"{self.model} gave no summary: {problem.reason}.", "extractive"
            text = extractive(span)
            talk.invented.clear()
        invented = tuple(dict.fromkeys(talk.invented))
        if invented:
            note = f"{self.model} named {len(invented)} things that are not in the transcript; "
            note += "the sentences that do were cut out."
        return Made(text, maker, self.model, note, talk.usage, talk.cost, invented)

    def _in_batches(self, span: Span, count: Count, talk: Talk) -> str:
        """Summarise the first part, then the next on top of that, until all is in."""
        checks = Checks.of(span, count)
        window = self.window or prices.window(self.model) or prices.UNKNOWN_WINDOW
        # The code's sections go with every part, as the summary so far and the board do.
        room = int(window * INPUT_SHARE) - 3 * span.budget - ANALYSIS - count(span.instructions)
        room -= sum(block.tokens for block in span.kept) + count(span.board)
        if room < span.budget:
            raise Unusable("its window is too small for this span")
        summary = span.previous
        with client_of(self.seconds, self.retries) as client:
            for number, part in enumerate(batches(span, count, room)):
                before = checks.draft(summary) if number and summary else summary
                asked = prompt(span, part, before, checks.code, checks.budget)
                summary = _ask(client, talk, asked, checks)
        assert summary is not None, "there is one part at least"
        return summary


def client_of(seconds: float, retries: int) -> Client:
    """A client whose answers may take so long; the key is the environment's."""
    # 1.3 s and 48 MB: only who asks a model pays for that.
    import anthropic

    timeout = anthropic.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    return anthropic.Anthropic(timeout=timeout, max_retries=retries)


def _ask(client: Client, talk: Talk, asked: Prompt, checks: Checks) -> str:
    """One summary; where the first answer is of no use, the second request says why.

    An answer that is sound but for what it made up is asked for again by naming that. What the
    second one still makes up is cut out; where the second is of no use, so is the first's.
    """
    most, said, sound = 2 * checks.span.budget + ANALYSIS, asked.user, ""
    try:
        text = _sound(talk.answer(client, asked.system, said, most), checks)
        invented = checks.unsupported(text)
        if not invented:
            return checks.summary(text)
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
    return _without_inventions(text, talk, checks)


def _sound(answer: str, checks: Checks) -> str:
    """What an answer holds of a summary, if its form and size are right."""
    text = read(answer, checks.span)
    if wrong := checks.faults(text):
        raise Unusable("; ".join(wrong), telling=True)
    return text


def _without_inventions(text: str, talk: Talk, checks: Checks) -> str:
    invented = checks.unsupported(text)
    if not invented:
        return checks.summary(text)
    summary = checks.without(text, invented)
    if summary is None:
        raise Unusable("nothing that it said was supported by the transcript")
    talk.invented += invented
    return summary


@dataclass(slots=True)
class Talk:
    """All requests of one summary or judgement, and what they used."""

    model: str
    seconds: float
    until: float
    temperature: float | None = TEMPERATURE
    requests: int = 0
    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    invented: list[str] = field(default_factory=list)

    def answer(self, client: Client, system: str, said: str, most: int) -> str:
        """The text of one answer of so many tokens at most. Raises Unusable where there is none."""
        import anthropic
        import httpx2

        if time.monotonic() > self.until:
            raise Unusable("all answers together took too long", again=False)
        self.requests += 1
        try:
            message = self._stream(client, system, said, most)
        except anthropic.BadRequestError as error:
            # Some models take no temperature, and say so.
            again = self.temperature is not None and "temperature" in error.message
            self.temperature = None
            raise Unusable("the request was refused as invalid (400)", again=again) from error
        except anthropic.APIStatusError as error:
            raise Unusable(
                f"the provider answered {error.status_code} {error.type or ''}".strip(),
                again=error.status_code in (200, 408, 409, 429) or error.status_code >= 500,
            ) from error
        except (anthropic.APITimeoutError, httpx2.TimeoutException) as error:
            raise Unusable("the provider did not answer in time", again=False) from error
        except (anthropic.APIError, httpx2.HTTPError, ValueError, AssertionError) as error:
            # The SDK asserts that a stream has begun and was whole.
            raise Unusable(f"the answer broke off ({type(error).__name__})") from error
        return _text(message)

    def _stream(self, client: Client, system: str, said: str, most: int) -> Message:
        # The SDK has no such argument any more, since the newest models refuse it; others take it.
        extra = None if self.temperature is None else {"temperature": self.temperature}
        until = time.monotonic() + self.seconds
        with client.messages.stream(
            model=self.model,
            max_tokens=most,
            system=system,
            messages=[{"role": "user", "content": said}],
            extra_body=extra,
        ) as stream:
            try:
                for _ in stream:
                    if time.monotonic() > until:
                        raise Unusable(f"it took longer than {self.seconds:g} s", again=False)
                return stream.get_final_message()
            finally:
                self._note(stream)

    def _note(self, stream: Any) -> None:
        """Add what an answer cost; one that broke off has been paid for, too."""
        try:
            usage = stream.current_message_snapshot.usage
        except AssertionError:
            return
        self.fresh += usage.input_tokens
        self.cache_read += usage.cache_read_input_tokens or 0
        self.cache_write += usage.cache_creation_input_tokens or 0
        self.output += usage.output_tokens

    @property
    def usage(self) -> dict[str, int]:
        """Tokens under the names that a call's usage has."""
        return {
            "requests": self.requests,
            "fresh": self.fresh,
            "cache_read": self.cache_read,
            "cache_write_5m": self.cache_write,
            "output": self.output,
        }

    @property
    def cost(self) -> int | None:
        """Micro-dollars at today's prices; None where the model has none."""
        rates = prices.price(self.model, int(time.time() * 1000))
        if rates is None:
            return None
        used = Usage(self.fresh, self.cache_read, self.cache_write, 0, self.output)
        return prices.cost(used, rates)


def _text(message: Message) -> str:
    """What a message says, if it was said to its end."""
    if message.stop_reason == "refusal":
        raise Unusable("the model declined", telling=False)
    if message.stop_reason == "max_tokens":
        raise Unusable("it was far longer than allowed", telling=True)
    if message.stop_reason != "end_turn":
        raise Unusable("the answer broke off")
    text = "".join(block.text for block in message.content if block.type == "text").strip()
    if not text:
        raise Unusable("the answer was empty", telling=True)
    return text
