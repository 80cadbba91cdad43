"""One call through a wrapped client, between the SDK and its connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any

import httpx2

from contextlab.client.agent_call import AgentCall, listed
from contextlab.client.events import encoded, parsed
from contextlab.client.forms import ApiForm
from contextlab.client.forms.form import Json
from contextlab.client.managed import ManagedSession, plain
from contextlab.client.relay import Relay, relayed, relayed_later

_RAW = "x-stainless-raw-response"
"""The header by which SDKs know that the caller wants the response and not its content."""
_BETA = "anthropic-beta"
_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class NotManaged(Exception):
    """A wrapped client was asked for what `wrap` cannot manage; nothing was sent."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(
            f"ContextLab does not manage {what}: {why}. Nothing was sent. Call the model another "
            "way, or with the client as it was before wrap()."
        )


class ClientCall:
    """A call of the agent as the SDK's options, and the model calls that answer it.

    `betas` are those of the client itself. Raises NotManaged, and what `ManagedSession.ask` raises.
    """

    def __init__(
        self, form: ApiForm, managed: ManagedSession, options: Any, betas: str | None
    ) -> None:
        self._form, self._options = form, options
        given = options.headers if isinstance(options.headers, Mapping) else {}
        self._headers = {name: one for name, one in given.items() if name.lower() != _RAW}
        self._raw = next((one for name, one in given.items() if name.lower() == _RAW), None)
        self._request: Json = listed(_body_of(options))
        self._answers: list[Json] = []
        betas = next((one for name, one in given.items() if name.lower() == _BETA), betas)
        own = {"extra_headers": {_BETA: betas}} if isinstance(betas, str) else {}
        self._call = AgentCall(managed, {**_asked(form, self._request), **own})
        self.is_managed = self._call.is_managed
        """Whether our server answered the first time; if not, nothing is stored."""

    def relay(self) -> Relay | None:
        """What joins its streams; None if they go to the agent as they are."""
        return Relay(self._form, self._call, self._request) if self.is_managed else None

    def options(self) -> Any:
        """The SDK's options of the next model call."""
        request, headers = self._request, dict(self._headers)
        if self._call.is_managed or self._form.format == "anthropic":
            request = self._form.sent(self._request, self._call.request)
            if more := self._call.request.get("extra_headers"):
                headers = {name: one for name, one in headers.items() if name.lower() != _BETA}
                headers |= more
        made = {"json_data": request, "extra_json": None, "headers": headers}
        key = None if self._answers else self._options.idempotency_key
        return self._options.model_copy(update={**made, "idempotency_key": key})

    def again(self, response: httpx2.Response) -> bool:
        """Store an answer; return whether the model is called again."""
        found = parsed(response.content) if self.is_managed else None
        reply = self._form.known_reply(found)
        if found is None or reply is None:
            return False
        self._answers.append(found)
        return self._call.again(reply)

    def whole(self, response: httpx2.Response) -> httpx2.Response:
        """The response for the agent, given the last of the provider."""
        hidden = self._call.has_hidden and self._answers
        content = (
            encoded(self._form.shown(self._answers, self._call)) if hidden else response.content
        )
        made = self._response(response, content=content)
        made.elapsed = response.elapsed
        return made

    def streamed(self, response: httpx2.Response, stream: Any) -> httpx2.Response:
        """The response for the agent whose body is a stream, given the first of the provider."""
        return self._response(response, stream=stream)

    def _response(self, response: httpx2.Response, **body: Any) -> httpx2.Response:
        headers = [one for one in response.headers.multi_items() if one[0] not in _OF_THE_WIRE]
        if self._raw is not None:
            response.request.headers[_RAW] = self._raw
        return httpx2.Response(
            response.status_code, headers=headers, request=response.request, **body
        )


def _asked(form: ApiForm, request: Json) -> Json:
    try:
        why, asked = form.unmanaged(request), form.asked(request)
    except ValueError as error:
        why, asked = f"it has {error}", {}
    if why:
        raise NotManaged("this call", why)
    return asked


def _body_of(options: Any) -> Json:
    """The body of a call's options, as JSON."""
    body = options.json_data if isinstance(options.json_data, Mapping) else {}
    more = options.extra_json if isinstance(options.extra_json, Mapping) else {}
    # SDKs mark what is left out by values that are false and of no JSON type.
    left = ("Omit", "NotGiven")
    given = {name: one for name, one in body.items() if type(one).__name__ not in left}
    return {name: _plain(one) for name, one in {**given, **more}.items()}


def _plain(value: Any) -> Any:
    is_iterator = isinstance(value, Iterator)
    return plain(list(value) if is_iterator else value)


class SyncBody(httpx2.SyncByteStream):
    """The body of a streamed response for the agent, given the provider's first one, and what sends
    a request for another. Without a relay, it is the provider's own."""

    def __init__(
        self,
        response: httpx2.Response,
        relay: Relay | None,
        send: Callable[[], httpx2.Response],
        decoder: Callable[[], Any],
    ) -> None:
        self._response, self._relay = response, relay
        self._send, self._decoder = send, decoder

    def __iter__(self) -> Iterator[bytes]:
        return relayed(self._relay, self._data(), self._following)

    def _data(self) -> Iterator[bytes]:
        for event in self._decoder().iter_bytes(self._response.iter_bytes()):
            yield event.data.encode()

    def _following(self) -> Iterator[bytes]:
        self._response.close()
        self._response = self._send()
        return self._data()

    def close(self) -> None:
        """Close the provider's stream."""
        self._response.close()


class AsyncBody(httpx2.AsyncByteStream):
    """As `SyncBody`, for an asynchronous client."""

    def __init__(
        self,
        response: httpx2.Response,
        relay: Relay | None,
        send: Callable[[], Awaitable[httpx2.Response]],
        decoder: Callable[[], Any],
    ) -> None:
        self._response, self._relay = response, relay
        self._send, self._decoder = send, decoder

    def __aiter__(self) -> AsyncIterator[bytes]:
        return relayed_later(self._relay, self._data(), self._following)

    async def _data(self) -> AsyncIterator[bytes]:
        async for event in self._decoder().aiter_bytes(self._response.aiter_bytes()):
            yield event.data.encode()

    async def _following(self) -> AsyncIterator[bytes]:
        await self._response.aclose()
        self._response = await self._send()
        return self._data()

    async def aclose(self) -> None:
        """Close the provider's stream."""
        await self._response.aclose()
