"""One wrapped client's way to our server, which no failure of ours leads back into the agent."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

from contextlab.client.connection import OverBudget, Refused, Unreachable
from contextlab.client.sessions import Context, ContextLab, Session

log = logging.getLogger(__name__)

PAUSE = 30.0
"""Seconds after a failure in which we are not asked at all, or ten times what it took."""

_PARTS = ("system", "tools", "messages")


class Managed:
    """A session behind calls of a model: gives what to send, and keeps what came.

    After a failure of ours calls go out as they were given, for a pause. Calls of several threads
    come one after another.
    """

    def __init__(self, server: ContextLab, external_id: str, fields: dict[str, Any]) -> None:
        self._server, self._external_id, self._fields = server, external_id, fields
        self._session: Session | None = None
        self._again_at = 0.0
        self._passed: set[str] = set()
        self._lock = threading.Lock()

    def ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], Context | None]:
        """The request to send instead of this one, and its context; as given where we failed.

        Raises OverBudget.
        """
        if monotonic() < self._again_at:
            return request, None
        begun = monotonic()
        try:
            # Iterators would be used up when the call goes out as it was given.
            lists = {
                name: list(request[name]) for name in ("messages", "tools") if request.get(name)
            }
            request = {**request, **lists}
            with self._lock:
                context = self._context(request)
        except OverBudget:  # no failure of ours: a team does not want this call to go out
            raise
        except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
            self._failed("the context goes out as it is", error, begun)
            return request, None
        rest = {name: value for name, value in request.items() if name not in _PARTS}
        managed = {name: context.request[name] for name in _PARTS if name in context.request}
        if "tool_choice" in context.request:
            # What the caller chose itself stands.
            managed["tool_choice"] = rest.get("tool_choice") or context.request["tool_choice"]
        return {**rest, **managed}, context

    def _context(self, request: dict[str, Any]) -> Context:
        if self._session is None:
            fields = {"model": request.get("model"), **self._fields}
            self._session = self._server.session(self._external_id, **fields)
        messages = [plain(message) for message in request["messages"]]
        # Also what is empty: a call without tools is to be sent none.
        tools, system = (plain(request.get(name) or []) for name in ("tools", "system"))
        self._session.append(messages, history=True, tools=tools, system=system)
        return self._session.context()

    def keep(self, reply: Any, context: Context) -> None:
        """Store what the model answered."""
        begun = monotonic()
        try:
            assert self._session is not None
            self._session.answer(reply, context)
        except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
            self._failed("the answer was not stored", error, begun)

    def keep_events(self, events: Sequence[Any], context: Context) -> None:
        """Store the message that all events of a stream make."""
        begun = monotonic()
        try:
            message = _message_of(events)
        except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
            self._failed("the streamed answer was not stored", error, begun)
        else:
            self.keep(message, context)

    def keep_streamed(self, stream: Any, context: Context) -> None:
        """Store the message of an SDK's MessageStream, if it came to its end."""
        try:
            message = stream.current_message_snapshot
        except AssertionError:  # nothing came
            return
        if message.stop_reason is not None:
            self.keep(message, context)

    def passed_by(self, name: str) -> None:
        """Warn, once for each name, of a way to call a model that we do not manage."""
        if name not in self._passed:
            self._passed.add(name)
            log.warning("%s goes out as it is: what is called that way is not managed", name)

    def _failed(self, what: str, error: Exception, begun: float) -> None:
        """Warn, and be silent for a while unless the server was quick to say no."""
        # The text of other errors may hold what an agent said.
        known = isinstance(error, Refused | Unreachable)
        log.warning("%s: %s", what, error if known else type(error).__name__)
        if not isinstance(error, Refused):
            now = monotonic()
            self._again_at = now + max(PAUSE, 10 * (now - begun))


def plain(value: Any) -> Any:
    """A value that may hold the SDK's own objects, as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def _message_of(events: Sequence[Any]) -> Any:
    """The message that a stream's events make, as the SDK itself makes it."""
    from anthropic import MessageStream, not_given

    stream: Any = iter(events)
    return MessageStream(stream, not_given).get_final_message()
