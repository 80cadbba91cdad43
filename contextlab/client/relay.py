"""Streams of a call as one stream for the agent: what the model reads back continues it."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import parsed, sent
from contextlab.client.forms.form import ApiForm, Json

log = logging.getLogger(__name__)


class Relay:
    """What the agent sees of the streams of a call; `request` is its own."""

    def __init__(self, form: ApiForm, call: AgentCall, request: Json) -> None:
        self._form, self._call = form, call
        self._joined = form.joined(call, request)
        self._collected = form.collected()

    def take(self, data: bytes) -> list[bytes]:
        """What the agent sees of an event, given its data."""
        event = parsed(data)
        if event is not None:
            self._collect(event)
        try:
            return self._joined.take(event, data)
        except (KeyError, TypeError, AttributeError, ValueError):  # not such as the API has
            return [_same(data)]

    def _collect(self, event: Json) -> None:
        try:
            self._collected.take(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            log.warning("an event of the model was not stored: %s", type(error).__name__)

    def goes_on(self) -> bool:
        """Store the answer of the stream that ended; return whether another follows."""
        answer, self._collected = self._collected.answer, self._form.collected()
        reply = self._form.known_reply(answer)
        if reply is None or not self._call.again(reply):
            return False
        self._joined.goes_on()
        return True

    def end(self) -> list[bytes]:
        """The end of the last stream."""
        return self._joined.end()

    def refused(self, body: bytes) -> bytes:
        """The event for a stream that was to follow, given the provider's refusal."""
        return self._joined.refused(parsed(body) or {})


def relayed(
    relay: Relay | None, data: Iterator[bytes], proceed: Callable[[], Iterator[bytes]]
) -> Iterator[bytes]:
    """The events for the agent; `proceed` opens a stream that continues. Without a relay, all."""
    while True:
        for one in data:
            yield from relay.take(one) if relay is not None else [_same(one)]
        if relay is None or not relay.goes_on():
            break
        data = proceed()
    yield from relay.end() if relay is not None else ()


async def relayed_later(
    relay: Relay | None,
    data: AsyncIterator[bytes],
    proceed: Callable[[], Awaitable[AsyncIterator[bytes]]],
) -> AsyncIterator[bytes]:
    """As `relayed`, for an asynchronous client."""
    while True:
        async for one in data:
            for made in relay.take(one) if relay is not None else [_same(one)]:
                yield made
        if relay is None or not await to_thread(relay.goes_on):
            break
        data = await proceed()
    for made in relay.end() if relay is not None else ():
        yield made


def _same(data: bytes) -> bytes:
    found: dict[str, Any] = parsed(data) or {}
    return sent(data, str(found.get("type") or ""))
