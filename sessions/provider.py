"""Asking a model of Anthropic: its answers, what they used, and why there is none.

All calls of a model go through it; who asks says what, and what is done without an answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compaction import prices
from compaction.session import Usage

if TYPE_CHECKING:
    from anthropic import Anthropic as Client
    from anthropic.types import Message

TEMPERATURE = 0.2
"""Shannon's for summaries; judgements take it, too."""

CONNECT_SECONDS = 10.0

ANSWERS_TIME = 5
"""How many times the time of one answer all of them may take (ours): jobs have a limit, too."""


class Unusable(Exception):
    """No use in an answer, and why; `again` where a retry may help, `telling` where the why may."""

    def __init__(self, reason: str, *, again: bool = True, telling: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.telling = telling


def client_of(seconds: float, retries: int) -> Client:
    """A client whose answers may take so long; the key is the environment's."""
    # 1.3 s and 48 MB: only who asks a model pays for that.
    import anthropic

    timeout = anthropic.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    return anthropic.Anthropic(timeout=timeout, max_retries=retries)


@dataclass(slots=True)
class Talk:
    """All requests of one summary or judgement, and what they used."""

    model: str
    seconds: float
    temperature: float | None = TEMPERATURE
    until: float = field(init=False)
    requests: int = 0
    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        """The time of all answers begins to run."""
        self.until = time.monotonic() + ANSWERS_TIME * self.seconds

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
