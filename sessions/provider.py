"""Calls to Anthropic models: answers, usage, and failures.

All model calls go through this module; callers decide what to do without an answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compaction.context.session import Usage
from compaction.prices import prices

if TYPE_CHECKING:
    from anthropic import Anthropic as Client
    from anthropic.types import Message

TEMPERATURE = 0.2
"""Shannon's value for summaries; also used for judgements."""

CONNECT_SECONDS = 10.0

ANSWERS_TIME = 5
"""Total time limit, as a multiple of the limit for one answer (our choice), because jobs have a
limit too."""


class Unusable(Exception):
    """Raised if there is no usable answer; `again` if a retry may help, `telling` if the retry
    should include the reason."""

    def __init__(self, reason: str, *, again: bool = True, telling: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.telling = telling


def client_of(seconds: float, retries: int) -> Client:
    """Create a client with a time limit per answer; the key comes from the environment."""
    # Importing it costs 1.3 s and 48 MB, so do it only when needed.
    import anthropic

    timeout = anthropic.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    return anthropic.Anthropic(timeout=timeout, max_retries=retries)


@dataclass(slots=True)
class Talk:
    """All requests for one summary or judgement, and their usage."""

    model: str
    seconds: float
    temperature: float | None = TEMPERATURE
    until: float = field(init=False)
    requests: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        """Start the total time limit."""
        self.until = time.monotonic() + ANSWERS_TIME * self.seconds

    def answer(self, client: Client, system: str, said: str, most: int) -> str:
        """The text of one answer of at most that many tokens. Raises Unusable."""
        import anthropic
        import httpx2

        if time.monotonic() > self.until:
            raise Unusable("the total time limit was exceeded", again=False)
        self.requests += 1
        try:
            message = self._stream(client, system, said, most)
        except anthropic.BadRequestError as error:
            # Some models reject a temperature, and say so.
            again = self.temperature is not None and "temperature" in error.message
            self.temperature = None
            raise Unusable("the request was rejected as invalid (400)", again=again) from error
        except anthropic.APIStatusError as error:
            raise Unusable(
                f"the provider answered {error.status_code} {error.type or ''}".strip(),
                again=error.status_code in (200, 408, 409, 429) or error.status_code >= 500,
            ) from error
        except (anthropic.APITimeoutError, httpx2.TimeoutException) as error:
            raise Unusable("the provider did not answer in time", again=False) from error
        except (anthropic.APIError, httpx2.HTTPError, ValueError, AssertionError) as error:
            # The SDK asserts that a stream has started and is complete.
            raise Unusable(f"the answer was interrupted ({type(error).__name__})") from error
        return _text(message)

    def _stream(self, client: Client, system: str, said: str, most: int) -> Message:
        # The SDK has no such argument, because the newest models reject it; others accept it.
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
        """Add the usage of an answer; interrupted ones are billed, too."""
        try:
            usage = stream.current_message_snapshot.usage
        except AssertionError:
            return
        self.uncached += usage.input_tokens
        self.cache_read += usage.cache_read_input_tokens or 0
        self.cache_write += usage.cache_creation_input_tokens or 0
        self.output += usage.output_tokens

    @property
    def usage(self) -> dict[str, int]:
        """Usage in the format of a model call's."""
        return {
            "requests": self.requests,
            "uncached": self.uncached,
            "cache_read": self.cache_read,
            "cache_write_5m": self.cache_write,
            "output": self.output,
        }

    @property
    def cost(self) -> int | None:
        """Cost in micro-dollars at current prices; None if the model has no price."""
        rates = prices.price(self.model, int(time.time() * 1000))
        if rates is None:
            return None
        used = Usage(self.uncached, self.cache_read, self.cache_write, 0, self.output)
        return prices.cost(used, rates)


def _text(message: Message) -> str:
    """The text of a message. Raises Unusable if it is incomplete."""
    if message.stop_reason == "refusal":
        raise Unusable("the model declined", telling=False)
    if message.stop_reason == "max_tokens":
        raise Unusable("it was far longer than allowed", telling=True)
    if message.stop_reason != "end_turn":
        raise Unusable("the answer was interrupted")
    text = "".join(block.text for block in message.content if block.type == "text").strip()
    if not text:
        raise Unusable("the answer was empty", telling=True)
    return text
