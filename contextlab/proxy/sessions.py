"""Sessions of agents that call through the proxy."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

from contextlab.client.connection import Refused, path
from contextlab.client.events import EventReader, parsed
from contextlab.client.managed import ManagedSession
from contextlab.client.messages import reported
from contextlab.client.sessions import ContextLab, Session
from contextlab.client.shown import Message, ShownReplies, ShownReply
from contextlab.client.stored import End, StoredHistory, end_of
from contextlab.proxy.forms import ApiForm
from contextlab.proxy.recognized import Recognized

Name = TypeVar("Name", bound=Hashable)
Kept = TypeVar("Kept")

KEPT = 200
"""Sessions whose last context is kept; the least recently used are looked up again."""
ANSWERS = 5_000
"""Answers whose session is known."""
_RESPONSE_ID = re.compile(rb'"id": ?"(resp_[^"]{1,100})"')
KEEP_THREADS = 4
"""Replies to managed calls that are stored at once; they are stored after the agent has them."""
RECORD_SECONDS = 5.0
"""How long a thread tries to store a call; while our server is away, others have their turn."""
OBSERVED_POLICY = "passthrough"
"""The policy of sessions that begin with a call whose request is not changed."""
NOT_FOUND = 404


class SeenCall(NamedTuple):
    """A request of a known API: as it came, as for the Messages API, and whose it is."""

    form: ApiForm
    request: dict[str, Any]
    asked: dict[str, Any]
    call: Recognized

    def reply(self, answer: bytes) -> dict[str, Any] | None:
        """The model's reply in an answer, streamed or not; None if it has none that we know."""
        found = parsed(answer)  # some gateways do not stream
        if found is None and self.request.get("stream"):
            found = _whole(self.form, answer)
        return self.form.known_reply(found)

    @property
    def continues(self) -> str:
        """The id of the answer that the provider keeps the history of; empty if it does not."""
        return str(self.request.get("previous_response_id") or "")


class ObservedSession:
    """A session that is only recorded."""

    def __init__(self, server: ContextLab, external_id: str, fields: dict[str, Any]) -> None:
        self._server, self._external_id, self._fields = server, external_id, fields
        self._session: Session | None = None
        self._stored, self._shown = StoredHistory(), ShownReplies()
        self._lock = threading.Lock()

    def record(self, seen: SeenCall, answer: bytes) -> None:
        """Store a request and its answer, streamed or not. Raises Refused and Unreachable."""
        with self._lock:
            self._record(seen, answer)

    def _record(self, seen: SeenCall, answer: bytes) -> None:
        form, asked = seen.form, seen.asked
        if self._session is None:
            self._session = self._opened(asked)
        setup = {name: listed(asked.get(name)) for name in ("tools", "system")}
        messages = self._shown.restored(asked["messages"])
        reply = seen.reply(answer)
        append = partial(_append, self._session, reply)
        said = [] if reply is None else [{"role": "assistant", "content": reply["content"]}]
        if seen.continues:
            self._stored.forget()
            append([*messages, *said], history=False, **setup)
            return
        self._stored.send([*messages, *said], setup, append, lambda end: end)
        if said and form.format != "anthropic":
            # Agents may send it back without its reasoning, which would count as a rewind.
            self._shown.add(len(asked["messages"]), ShownReply(said[0]["content"], said, []))

    def _opened(self, asked: dict[str, Any]) -> Session:
        fields = {"model": asked.get("model"), **self._fields}
        try:
            known = self._server.request("GET", f"sessions/{path(self._external_id)}")
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            known = {}
        # One that was managed before keeps its policy.
        policy = {} if known.get("policy") else {"policy": OBSERVED_POLICY}
        return self._server.session(self._external_id, **fields, **policy)


def _append(
    session: Session, reply: dict[str, Any] | None, messages: Sequence[Message], **fields: Any
) -> End:
    """Store messages, the last of them the reply if there is one."""
    more = {} if reply is None else reported(reply)[1]
    return end_of(session.append(messages, **fields, **more).raw)


def _whole(form: ApiForm, stream: bytes) -> dict[str, Any] | None:
    """The answer in a complete stream; None if it ended early."""
    collected = form.collected()
    for data in EventReader().feed(stream):
        collected.take(parsed(data) or {})
    return collected.answer


def listed(value: Any) -> list[Any]:
    """A system prompt or a tool list as a list of blocks; empty if there is none."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value if isinstance(value, list) else []


class ProxySessions:
    """Sessions by key and id; those least recently used are forgotten first."""

    def __init__(self, url: str, patience: float) -> None:
        self._url, self._patience = url, patience
        self._later = ThreadPoolExecutor(KEEP_THREADS, "keep")
        self._servers: OrderedDict[str, ContextLab] = OrderedDict()
        self._managed: OrderedDict[tuple[str, str, str], ManagedSession] = OrderedDict()
        self._observed: OrderedDict[tuple[str, str], ObservedSession] = OrderedDict()
        self._answered: OrderedDict[tuple[str, str], Recognized] = OrderedDict()
        self._latest: OrderedDict[tuple[str, str], str] = OrderedDict()

    def continued(self, key: str, seen: SeenCall) -> SeenCall:
        """A call, as one of the session whose answer it continues if the provider keeps history. A
        side call that names no session is one of the agent's latest with this key."""
        found = self._answered.get((key, seen.continues), seen.call)
        by = key, found.agent
        if not found.is_side_call:
            self._latest[by] = found.session
            _newest(self._latest, by, ANSWERS)
        elif not found.parent and (latest := self._latest.get(by)):
            found = found._replace(session=f"{latest}/side-calls", parent=latest)
        return seen._replace(call=found)

    def answered(self, key: str, seen: SeenCall, answer: bytes) -> None:
        """Remember whose answer the provider may be asked to continue."""
        if seen.form.format == "responses" and (found := _RESPONSE_ID.search(answer)):
            named = (key, found[1].decode())
            self._answered[named] = seen.call
            _newest(self._answered, named, ANSWERS)

    def server(self, key: str) -> ContextLab:
        """The connection of a key."""
        if key not in self._servers:
            self._servers[key] = ContextLab(self._url, key, timeout=self._patience)
        return _newest(self._servers, key)

    def close(self) -> None:
        """Wait for replies that are being stored, and close all connections."""
        self._later.shutdown()
        for server in self._servers.values():
            server.close()

    def managed(self, key: str, seen: SeenCall) -> ManagedSession:
        """The session of a call, managed by the team's policy."""
        call, format = seen.call, seen.form.format
        named = (key, call.session, format)
        if named not in self._managed:
            self._managed[named] = ManagedSession(
                self.server(key).hurried(self._patience),
                call.session,
                _fields(call),
                paused_at_most=0,  # a waiting call would hold a thread of the proxy
                format=format,
                later=self._later,
            )
        return _newest(self._managed, named)

    def settle(self, key: str, seen: SeenCall) -> None:
        """Wait for the reply to an earlier, managed call of a session, which must come first."""
        managed = self._managed.get((key, seen.call.session, seen.form.format))
        if managed is not None:
            managed.settle()

    def observed(self, key: str, seen: SeenCall) -> ObservedSession:
        """The session of a call, recorded only."""
        call = seen.call
        named = (key, call.session)
        if named not in self._observed:
            server = self.server(key).hurried(RECORD_SECONDS)
            self._observed[named] = ObservedSession(server, call.session, _fields(call))
        return _newest(self._observed, named)


def _fields(call: Recognized) -> dict[str, Any]:
    given = {"agent": call.agent, "parent": call.parent, "title": call.title}
    return {name: value for name, value in given.items() if value}


def _newest(kept: OrderedDict[Name, Kept], name: Name, most: int = KEPT) -> Kept:
    kept.move_to_end(name)
    while len(kept) > most:
        kept.popitem(last=False)
    return kept[name]
