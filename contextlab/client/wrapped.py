"""Wrapper for clients of `anthropic` and `openai` that sends the managed context instead of the
whole history.

A wrapped client is one of a subclass of its own class, whose `request` is ours: every method of the
SDK ends there, whatever it is called and whatever it returns.
"""

from __future__ import annotations

import inspect
import re
import threading
from asyncio import to_thread
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any

import httpx2

from contextlab.client.client_call import AsyncBody, ClientCall, NotManaged, SyncBody
from contextlab.client.forms import FORMS, ApiForm
from contextlab.client.managed import ManagedSession
from contextlab.client.sessions import ContextLab

SDKS = ("anthropic", "openai")
_NO_MODEL = re.compile(
    r"v1/(messages/count_tokens|files|skills)\b|(responses/input_tokens|embeddings|moderations|files"
    r"|uploads|vector_stores|audio|images|models|containers|skills)\b"
    r"|(responses|chat/completions)/[^/]+(/cancel)?$(?<!/compact)"
)
"""Paths below which nothing sends a conversation to a model."""


def wrap(
    client: Any,
    session: str,
    *,
    server: ContextLab | None = None,
    offloads: str | PathLike[str] | None = None,
    **fields: Any,
) -> Any:
    """Wrap a client of `anthropic` or `openai` to use managed contexts, synchronous or not, also
    of Bedrock, Vertex AI and Azure.

    Each `messages.create`, `chat.completions.create` and `responses.create`, and all that is built
    on them (streams, `parse`, tool runners, `beta`, raw responses), stores its messages, sends the
    managed context, and stores the reply with its usage. The agent keeps building its whole
    history; known messages are recognized. Where the policy edits, the model can read back what
    stubs name, which the agent does not see. With `offloads`, a folder, what stubs name is also
    written there, as files that the agent's own tools can open, and the stubs name their paths. One
    client is one session. If our server does not answer, the call is sent unchanged with a warning,
    so that the agent never stops because of us. Other ways to send a conversation raise
    NotManaged. `fields` as in `ContextLab.session`. Raises TypeError for other clients.
    """
    kind = type(client)
    modules = {base.__module__.partition(".")[0] for base in kind.__mro__}
    sdk = next((name for name in SDKS if name in modules), "")
    if not sdk or isinstance(client, type) or not hasattr(client, "request"):
        raise TypeError(
            f"wrap() takes a client of the packages anthropic or openai, not {kind.__qualname__}. "
            'Pass one, such as anthropic.Anthropic(), or use ContextLab().session("…").'
        )
    calls = _Calls(sdk, server or ContextLab(), session, fields, offloads)
    made = client.copy()
    # Not its constructor, which those of clouds call in different ways.
    made.__class__ = _class_of(kind, calls)
    return made


class _Calls:
    """What the calls of a wrapped client, and of its copies, have in common."""

    def __init__(
        self,
        sdk: str,
        server: ContextLab,
        session: str,
        fields: dict[str, Any],
        offloads: str | PathLike[str] | None,
    ) -> None:
        self.sdk, self._given = sdk, (server, session, fields, offloads)
        self._managed: dict[str, ManagedSession] = {}
        self._lock = threading.Lock()
        self._of("anthropic" if sdk == "anthropic" else "openai")

    def form(self, options: Any) -> ApiForm | None:
        """The API of a call; None if it sends no conversation. Raises NotManaged."""
        method, address = options.method.upper(), options.url.partition("?")[0].strip("/")
        if method != "POST":
            return None
        form = FORMS.get((self.sdk, address))
        if form is None:
            if _NO_MODEL.match(address):
                return None
            raise NotManaged(f"{method} /{address}", "it is not one of the APIs that we know")
        return form

    def call(self, form: ApiForm, options: Any, headers: Any) -> ClientCall:
        """A call of the agent."""
        return ClientCall(form, self._of(form.format), options, headers.get("anthropic-beta"))

    def _of(self, format: str) -> ManagedSession:
        with self._lock:
            if format not in self._managed:
                self._managed[format] = ManagedSession(*self._given, format=format)
            return self._managed[format]


def _class_of(kind: Any, calls: _Calls) -> Any:
    """A subclass of a client's class whose calls are managed."""
    is_async = inspect.iscoroutinefunction(inspect.unwrap(kind.request))
    own = {
        "request": (_awaited if is_async else _direct)(kind, calls),
        # Our streams are never in a cloud's own frames.
        "_make_sse_decoder": _decoders(kind)[-1],
    }
    return type(f"Managed{kind.__name__}", (kind,), own | _without_sockets(kind, calls.sdk))


def _direct(kind: Any, calls: _Calls) -> Any:
    def request(
        self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        how = {"stream": stream, "stream_cls": stream_cls}
        form = calls.form(options)
        if form is None:
            return kind.request(self, cast_to, options, **how)
        options = options.model_copy()
        cast_to = self._maybe_override_cast_to(cast_to, options)
        call = calls.call(form, options, self.default_headers)

        def send() -> httpx2.Response:
            return _response_of(kind.request(self, httpx2.Response, call.options(), **how))

        response = send()
        if stream:
            body = SyncBody(response, call.relay(), send, partial(_decoders(kind)[0], self))
            made = call.streamed(response, body)
        else:
            while call.again(response):
                response = send()
            made = call.whole(response)
        return self._process_response(cast_to=cast_to, options=options, response=made, **how)

    return request


def _awaited(kind: Any, calls: _Calls) -> Any:
    async def request(
        self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None
    ) -> Any:
        how = {"stream": stream, "stream_cls": stream_cls}
        form = calls.form(options)
        if form is None:
            return await kind.request(self, cast_to, options, **how)
        options = options.model_copy()
        cast_to = self._maybe_override_cast_to(cast_to, options)
        call = await to_thread(calls.call, form, options, self.default_headers)

        async def send() -> httpx2.Response:
            return _response_of(await kind.request(self, httpx2.Response, call.options(), **how))

        response = await send()
        if stream:
            body = AsyncBody(response, call.relay(), send, partial(_decoders(kind)[0], self))
            made = call.streamed(response, body)
        else:
            while await to_thread(call.again, response):
                response = await send()
            made = call.whole(response)
        return await self._process_response(cast_to=cast_to, options=options, response=made, **how)

    return request


def _decoders(kind: Any) -> list[Callable[[Any], Any]]:
    """What makes the decoder of a provider's streams: of the client's class first, and of the SDK's
    base class last."""
    known = [vars(one).get("_make_sse_decoder") for one in kind.__mro__]
    return [one for one in known if one is not None]


def _response_of(made: Any) -> httpx2.Response:
    """What the SDK got; middleware of the agent's makes it give more than was asked for."""
    found: httpx2.Response = getattr(made, "response", made)
    return found


def _without_sockets(kind: Any, sdk: str) -> dict[str, property]:
    """The parts of OpenAI's SDK that reach a model not by requests, but by connections."""
    if sdk != "openai":
        return {}

    def responses(self: Any) -> Any:
        return _unconnected(kind.responses.__get__(self, type(self)))

    def beta(self: Any) -> Any:
        found = kind.beta.__get__(self, type(self))
        for name in ("responses", "realtime"):
            if hasattr(found, name):
                _unconnected(getattr(found, name))
        return found

    refused = {name: property(partial(_refuse, name)) for name in ("realtime", "live")}
    return {**refused, "responses": property(responses), "beta": property(beta)}


def _refuse(name: str, *_: Any, **__: Any) -> Any:
    raise NotManaged(name, "it is a connection in which the provider keeps the history")


def _unconnected(resource: Any) -> Any:
    resource.connect = partial(_refuse, "connect()")
    return resource
