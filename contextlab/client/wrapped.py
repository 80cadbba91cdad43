"""An `anthropic` client that sends the managed context instead of the whole history."""

from __future__ import annotations

import logging
from typing import Any

from contextlab.client.connection import Refused, Unreachable
from contextlab.client.sessions import Context, ContextLab, Session

log = logging.getLogger(__name__)


def wrap(client: Any, session: str, *, server: ContextLab | None = None, **fields: Any) -> Any:
    """Wrap an `anthropic.Anthropic()`: each `messages.create` stores its messages, sends the
    managed context, and stores the answer with its usage.

    The agent goes on building its whole history as before; what is known already is recognised.
    Where our server does not answer, the call goes out as it was given, with a warning: an agent
    must not stop because it is watched. Everything else of the client is as it was. `fields` as in
    `ContextLab.session`.
    """
    return _Client(client, _Messages(client.messages, session, server or ContextLab(), fields))


class _Client:
    def __init__(self, client: Any, messages: _Messages) -> None:
        self._client = client
        self.messages = messages

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _Messages:
    def __init__(
        self, messages: Any, external_id: str, server: ContextLab, fields: dict[str, Any]
    ) -> None:
        self._messages, self._server = messages, server
        self._external_id, self._fields = external_id, fields
        self._session: Session | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._messages, name)

    def create(self, **request: Any) -> Any:
        """As `anthropic.Anthropic().messages.create`; with `stream=True` as it was given."""
        if request.get("stream"):
            return self._messages.create(**request)
        context = self._managed(request)
        if context is None:
            return self._messages.create(**request)
        parts = {
            k: context.request[k] for k in ("system", "tools", "messages") if k in context.request
        }
        rest = {k: v for k, v in request.items() if k not in ("system", "tools", "messages")}
        reply = self._messages.create(**rest, **parts)
        try:
            assert self._session is not None
            self._session.answer(reply, context)
        except (Refused, Unreachable) as problem:
            log.warning("the answer was not stored: %s", problem)
        return reply

    def _managed(self, request: dict[str, Any]) -> Context | None:
        more = {name: request[name] for name in ("tools", "system") if request.get(name)}
        try:
            if self._session is None:
                fields = {"model": request.get("model"), **self._fields}
                self._session = self._server.session(self._external_id, **fields)
            messages = [_plain(message) for message in request["messages"]]
            self._session.append(messages, history=True, **more)
            return self._session.context()
        except (Refused, Unreachable) as problem:
            log.warning("the context goes out as it is: %s", problem)
            return None


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose content may hold the SDK's own objects, as JSON."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = [b if isinstance(b, dict) else b.model_dump(mode="json") for b in content]
    return {**message, "content": blocks}
