"""The link between a wrapped client and our server; our failures never reach the agent."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from os import PathLike
from time import monotonic, sleep
from typing import Any, NamedTuple

from contextlab.client.answers import Context
from contextlab.client.connection import OverBudget, Paused, Refused, Unreachable
from contextlab.client.messages import failed_result, reported
from contextlab.client.offload_files import OffloadFiles
from contextlab.client.sessions import ContextLab, Session
from contextlab.client.shown import NAME as READ_BACK
from contextlab.client.shown import Message, ShownReplies, ShownReply
from contextlab.client.stored import End, StoredHistory, end_of

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a model call waits for a busy server before it is sent as it is."""
PAUSE = 30.0
"""Minimum seconds to bypass our server after a failure; at least ten times the duration of that
failure."""

QUICK = 2.0
"""Seconds within which a server that is well stores what it missed."""

PAUSED_AT_MOST = 3600.0
"""Seconds that a model call waits for a person to resume its session."""

_PARTS = ("system", "tools", "messages")


class _Missed(NamedTuple):
    """A call that our server lacks: the request, later messages that the agent does not know, the
    reply, and the context that the model was given."""

    request: dict[str, Any]
    hidden: Sequence[Message]
    reply: Message
    context: Context | None


class ManagedSession:
    """A managed session for model calls: provides requests and stores replies.

    After a failure, calls bypass our server for a pause. Calls from several threads are serialized.
    A call of a paused session waits `paused_at_most` seconds, an hour by default. Requests are
    given as for the Messages API; their contexts have the parts of `format`. With `later`, replies
    are stored in the background, and the next call waits for them; requests are JSON that is
    never changed. Replies that cannot be stored, and calls that `miss` names, are stored before
    the next context, or by `catch_up`. `shown` are the replies that the agent does not know as the
    model said them.
    """

    def __init__(
        self,
        server: ContextLab,
        external_id: str,
        fields: dict[str, Any],
        offloads: str | PathLike[str] | None = None,
        paused_at_most: float | None = None,
        format: str = "anthropic",
        later: Executor | None = None,
    ) -> None:
        self._paused_at_most, self.format, self._later = paused_at_most, format, later
        self._keeping: Future[None] | None = None
        self._server = server.hurried(PATIENCE)
        self._external_id, self._fields = external_id, fields
        # Now, since a path that is no good would only be a warning later.
        self._files = OffloadFiles(offloads, external_id) if offloads is not None else None
        self._session: Session | None = None
        self._again_at = 0.0
        self._bound: Context | None = None
        self._stored = StoredHistory()
        self._missed: deque[_Missed] = deque()
        self.shown = ShownReplies()
        self._lock = threading.Lock()

    def ask(
        self, request: dict[str, Any], hidden: Sequence[Message] = ()
    ) -> tuple[dict[str, Any], Context | None]:
        """The request to send instead, with its context; unchanged if our server fails.

        `hidden` are later messages that the agent does not know. Raises OverBudget, and
        Paused after an hour.
        """
        if monotonic() < self._again_at:
            return self._alone(request), None
        begun = monotonic()
        self.settle()
        try:
            context = self._resumed(request, hidden)
        except (OverBudget, Paused):  # not a failure: the team does not allow this call
            raise
        except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
            self._failed("the context is sent as it is", error, begun)
            return self._alone(request), None
        rest = {name: value for name, value in request.items() if name not in _PARTS}
        managed = {name: context.request[name] for name in _PARTS if name in context.request}
        if "tool_choice" in context.request:
            # The caller's own choice takes precedence.
            managed["tool_choice"] = rest.get("tool_choice") or context.request["tool_choice"]
        self._bound = context if context.raw.get("betas") else None
        return {**rest, **managed, **_binding(rest, self._bound)}, context

    def _alone(self, request: dict[str, Any]) -> dict[str, Any]:
        """A request for the provider without us: what the model thought after contexts of ours is
        not bound to the agent's own history."""
        return {**request, **_binding(request, self._bound)}

    def _resumed(self, request: dict[str, Any], hidden: Sequence[Message]) -> Context:
        """The context, once the session is not paused. Raises Paused after `PAUSED_AT_MOST`."""
        most = PAUSED_AT_MOST if self._paused_at_most is None else self._paused_at_most
        end, waits = monotonic() + most, False
        while True:
            try:
                with self._lock:
                    return self._context(request, hidden)
            except Paused as paused:
                if monotonic() >= end:
                    raise
                if not waits:
                    log.warning("the model call waits: %s", paused)
                waits = True
                sleep(paused.retry_after)

    def _context(self, request: dict[str, Any], hidden: Sequence[Message]) -> Context:
        self._store_missed()
        session = self._opened(request)
        setup, messages = self._known(request, hidden)
        step = partial(session.shared_step, format=self.format)
        # Empty values are sent, too: they mean that a call has no tools.
        return self._stored.send(messages, setup, step, _end_of)

    def _opened(self, request: dict[str, Any]) -> Session:
        if self._session is None:
            fields = {"model": request.get("model"), **self._fields}
            session = self._server.session(self._external_id, offloads=self._files, **fields)
            if not session.is_new:
                history = plain(request.get("messages") or [])
                # Our server knows replies that come back without their reasoning.
                stored = session.messages(tool=READ_BACK)
                self.shown.rebuild(stored, history, session.read_back_result)
            self._session = session
        return self._session

    def _known(
        self, request: dict[str, Any], hidden: Sequence[Message]
    ) -> tuple[dict[str, Any], list[Message]]:
        """A request's tools and system prompt, and its messages as the model knows them."""
        parts = {name: request.get(name) or [] for name in _PARTS}
        if self._later is None:
            parts = plain(parts)
        return parts, [*self.shown.restored(parts.pop("messages")), *hidden]

    def keep(
        self,
        reply: Message,
        context: Context,
        request: dict[str, Any],
        hidden: Sequence[Message] = (),
    ) -> None:
        """Store the model's reply to what `ask` was given."""
        keep = partial(self._keep_now, reply, context, request, hidden)
        if self._later is None:
            keep()
        else:
            self._keeping = self._later.submit(keep)

    def settle(self) -> None:
        """Wait for the reply that is being stored."""
        if self._keeping is not None:
            wait([self._keeping])

    def _keep_now(
        self, reply: Message, context: Context, request: dict[str, Any], hidden: Sequence[Message]
    ) -> None:
        begun = monotonic()
        try:
            with self._lock:
                self._keep(reply, context)
        except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
            if isinstance(error, Unreachable):
                self._missed.append(_Missed(request, hidden, reply, context))
            self._failed("the answer was not stored", error, begun)

    def _keep(self, reply: Message, context: Context) -> None:
        assert self._session is not None
        answer = partial(self._session.answer, reply, context)
        self._stored.append(_said(reply), lambda: end_of(answer().raw))

    def miss(self, request: dict[str, Any], reply: Message, hidden: Sequence[Message] = ()) -> None:
        """Remember a call that the model answered without us; `catch_up` stores it."""
        self._missed.append(_Missed(request, [*hidden], reply, None))
        if self.format != "anthropic":
            # Agents may send it back without its reasoning, which would count as a rewind.
            shown = ShownReply(reply["content"], [_said(reply)], [])
            self.shown.add(len(request["messages"]), shown)

    def catch_up(self) -> None:
        """Store the calls that our server missed, in their order; if that is quick, contexts are
        asked for again at once. Raises Unreachable."""
        self.settle()
        with self._lock:
            begun = monotonic()
            self._store_missed()
            if monotonic() - begun < QUICK:
                self._again_at = 0.0

    def _store_missed(self) -> None:
        while self._missed:
            call = self._missed[0]
            try:
                self._store(call)
            except Refused as refused:
                log.warning("a call was not stored: %s", refused)
            self._missed.popleft()

    def _store(self, call: _Missed) -> None:
        session, more = self._opened(call.request), reported(call.reply)[1]
        setup, messages = self._known(call.request, call.hidden)
        if call.context is not None:
            more["context_id"] = call.context.id

        def append(messages: Sequence[Message], **fields: Any) -> End:
            return end_of(session.append(messages, **fields, **more).raw)

        self._stored.send([*messages, _said(call.reply)], setup, append, lambda end: end)

    def read(self, call: Message) -> Message:
        """The result of a call of `read_back`; an error for the model if our server fails."""
        begun = monotonic()
        if begun >= self._again_at and self._session is not None:
            try:
                return self._session.read_back_result(call)
            except Exception as error:  # noqa: BLE001 (an agent must not stop because of us)
                self._failed("content was not read back", error, begun)
        return failed_result(call, "The content cannot be read at the moment. Go on without it.")

    def _failed(self, what: str, error: Exception, begun: float) -> None:
        """Warn, and bypass the server for a while unless it refused quickly."""
        # The text of other errors may contain what an agent said.
        known = isinstance(error, Refused | Unreachable)
        log.warning("%s: %s", what, error if known else type(error).__name__)
        if not isinstance(error, Refused):
            now = monotonic()
            self._again_at = now + max(PAUSE, 10 * (now - begun))


def _said(reply: Message) -> Message:
    return {"role": "assistant", "content": reply["content"]}


def _end_of(context: Context) -> End:
    return end_of(context.raw.get("appended"))


def _binding(request: dict[str, Any], context: Context | None) -> dict[str, Any]:
    """What makes the provider drop thinking that is no longer valid, and not refuse the request.

    A request without thinking drops it anyway.
    """
    if context is None:
        return {}
    betas, more = context.raw["betas"], context.raw.get("thinking")
    headers = dict(request.get("extra_headers") or {})
    name = next((one for one in headers if one.lower() == "anthropic-beta"), "anthropic-beta")
    headers[name] = ",".join(dict.fromkeys(filter(None, (headers.get(name), *betas))))
    own = plain(request.get("thinking") or {"type": "adaptive"})
    if not more or not isinstance(own, dict) or own.get("type") == "disabled":
        return {"extra_headers": headers}
    return {"thinking": {**more, **own}, "extra_headers": headers}


def plain(value: Any) -> Any:
    """A value that may contain SDK objects, as JSON."""
    if hasattr(value, "model_dump"):
        # As the SDK sends it: no fields that the provider never named.
        return value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
