"""Sessions of agents that call through the proxy."""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, TypeVar

from contextlab.client.connection import Refused, Unreachable
from contextlab.client.managed import ManagedSession
from contextlab.client.sessions import ContextLab, Session
from contextlab.proxy.events import EventReader, as_json, event_of
from contextlab.proxy.recognized import Recognized

log = logging.getLogger(__name__)

Name = TypeVar("Name", bound=Hashable)
Kept = TypeVar("Kept")

KEPT = 200
"""Sessions whose last context is kept; the least recently used are looked up again."""
RECORD_SECONDS = 30.0
"""How long storing a call is tried again, in the background."""
OBSERVED_POLICY = "passthrough"
"""The policy of sessions whose requests are not changed."""


class ObservedSession:
    """A session that is only recorded."""

    def __init__(self, server: ContextLab, external_id: str, fields: dict[str, Any]) -> None:
        self._server, self._external_id, self._fields = server, external_id, fields
        self._session: Session | None = None
        self._lock = threading.Lock()

    def record(self, request: dict[str, Any], answer: bytes) -> None:
        """Store a request and its answer, streamed or not; a failure is logged."""
        try:
            with self._lock:
                self._record(request, answer)
        except Exception as error:  # noqa: BLE001 (an agent must not notice)
            # The text of other errors may contain what an agent said.
            known = isinstance(error, Refused | Unreachable)
            log.warning("a call was not stored: %s", error if known else type(error).__name__)

    def _record(self, request: dict[str, Any], answer: bytes) -> None:
        if self._session is None:
            fields = {"model": request.get("model"), **self._fields}
            self._session = self._server.session(self._external_id, **fields)
        tools, system = (listed(request.get(name)) for name in ("tools", "system"))
        self._session.append(request["messages"], history=True, tools=tools, system=system)
        reply = whole_reply(answer) if request.get("stream") else json.loads(answer)
        if reply is not None:
            self._session.answer(reply)


def listed(value: Any) -> list[Any]:
    """A system prompt or a tool list as a list of blocks; empty if there is none."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value if isinstance(value, list) else []


def whole_reply(streamed: bytes) -> Any:
    """The message of a stream's bytes; None if the stream ended early."""
    from anthropic import MessageStream, not_given

    found = [event_of(data) for data in EventReader().feed(streamed)]
    if not any(event.type == "message_stop" for event in found):
        return None
    events: Any = iter([event for event in found if event.type not in ("ping", "")])
    return as_json(MessageStream(events, not_given).get_final_message())


class ProxySessions:
    """Sessions by key and id; those least recently used are forgotten first."""

    def __init__(self, url: str, patience: float) -> None:
        self._url, self._patience = url, patience
        self._servers: OrderedDict[str, ContextLab] = OrderedDict()
        self._managed: OrderedDict[tuple[str, str], ManagedSession] = OrderedDict()
        self._observed: OrderedDict[tuple[str, str], ObservedSession] = OrderedDict()

    def server(self, key: str) -> ContextLab:
        """The connection of a key."""
        if key not in self._servers:
            self._servers[key] = ContextLab(self._url, key, timeout=self._patience)
        return _newest(self._servers, key)

    def close(self) -> None:
        """Close all connections."""
        for server in self._servers.values():
            server.close()

    def managed(self, key: str, call: Recognized) -> ManagedSession:
        """The session of a call, managed by the team's policy."""
        named = (key, call.session)
        if named not in self._managed:
            self._managed[named] = ManagedSession(
                self.server(key).hurried(self._patience),
                call.session,
                _fields(call),
                paused_at_most=0,  # a waiting call would hold a thread of the proxy
            )
        return _newest(self._managed, named)

    def observed(self, key: str, call: Recognized) -> ObservedSession:
        """The session of a call, recorded only."""
        named = (key, call.session)
        if named not in self._observed:
            server = self.server(key).hurried(RECORD_SECONDS)
            fields = {**_fields(call), "policy": OBSERVED_POLICY}
            self._observed[named] = ObservedSession(server, call.session, fields)
        return _newest(self._observed, named)


def _fields(call: Recognized) -> dict[str, Any]:
    given = {"agent": call.agent, "parent": call.parent, "title": call.title}
    return {name: value for name, value in given.items() if value}


def _newest(kept: OrderedDict[Name, Kept], name: Name) -> Kept:
    kept.move_to_end(name)
    while len(kept) > KEPT:
        kept.popitem(last=False)
    return kept[name]
