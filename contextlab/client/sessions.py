"""One session as an agent works with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextlab.client.connection import OVER_BUDGET, Connection, OverBudget, path

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Appended:
    """What the server made of messages: how many were new, and how full the window is.

    `delay_ms` is how long it advises to wait before the next call; `raw` is the whole answer.
    """

    appended: int
    known: int
    budget: dict[str, Any]
    delay_ms: int
    raw: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Context:
    """What to send to the model now. `request` holds the parts that a provider takes as they are:
    `system`, `tools`, `tool_choice` and `messages`, left out where there are none, and `model`
    where known."""

    id: str
    step: int
    tokens: int
    request: dict[str, Any] = field(repr=False)
    raw: dict[str, Any] = field(repr=False)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages alone."""
        return list(self.request["messages"])


class Session:
    """One agent's conversation; made by `ContextLab.session`."""

    def __init__(self, server: Connection, known: Mapping[str, Any]) -> None:
        self._server = server
        self.id = str(known["id"])
        self.external_id = str(known["external_id"])
        self.model = str(known.get("model") or "")
        self.url = str(known.get("url") or "")
        self._address = f"sessions/{path(self.id)}"

    def append(
        self,
        messages: Mapping[str, Any] | Iterable[Mapping[str, Any]],
        *,
        heed_advice: bool = False,
        **more: Any,
    ) -> Appended:
        """Add messages as the provider takes them, one or several; all or none are stored.

        `more`: tools, system, model, usage, call, context_id, history. With `heed_advice` the call
        returns after the pause that the server advises when the window is nearly full.
        """
        batch = [dict(messages)] if isinstance(messages, Mapping) else [dict(m) for m in messages]
        raw = self._server.request("POST", f"{self._address}/messages", {"messages": batch, **more})
        advice = raw.get("advice") or {}
        delay = int(advice.get("delay_ms") or 0)
        if heed_advice and delay:
            time.sleep(delay / 1000)
        return Appended(raw["appended"], raw["known"], raw.get("budget") or {}, delay, raw)

    def context(
        self,
        format: str = "anthropic",
        *,
        at: int | None = None,
        wait: float | None = None,
        breakpoints: bool | None = None,
    ) -> Context:
        """The managed context to send now, or as it was at a step.

        `wait`: seconds to wait for a summary that is still being written.
        """
        flag = None if breakpoints is None else str(breakpoints).lower()
        query = {"format": format, "at": at, "wait": wait, "breakpoints": flag}
        raw = self._server.request("GET", f"{self._address}/context", query=query)
        names = ("system", "tools", "tool_choice", "messages")
        parts = {name: raw[name] for name in names if raw.get(name)}
        model = {"model": self.model} if self.model else {}
        return Context(raw["context_id"], raw["step"], raw["tokens"], {**model, **parts}, raw)

    def answer(self, reply: Any, context: Context | None = None) -> Appended:
        """Store what the model answered, with its usage, and the context that it was given.

        `reply` is a response of the `anthropic` or `openai` package, or such an object as a dict.
        """
        given = reply if isinstance(reply, Mapping) else reply.model_dump(mode="json")
        message, usage = _message_of(given)
        more = {
            "usage": usage,
            "model": given.get("model"),
            "call": given.get("id"),
            "context_id": context.id if context else None,
        }
        return self.append(message, **{name: value for name, value in more.items() if value})

    def reserve(
        self, call: str, tokens: int | None = None, *, heed_advice: bool = False, **more: Any
    ) -> dict[str, Any]:
        """Reserve what the next model call may spend of the session's budgets, under your own id
        of it; its usage settles it. Left out, `tokens` is estimated. `more`: microusd, seconds.

        The same id again reserves nothing more. With `heed_advice` it returns after the pause that
        the server advises. Raises OverBudget where the call must not go out.
        """
        body = {"call": call, "tokens": tokens, **more}
        told = self._server.request("POST", f"{self._address}/budgets/check", body)
        for warning in told["warnings"]:
            log.warning("%s", warning)
        if not told["can_proceed"]:
            raise OverBudget(OVER_BUDGET, {**told, "detail": told["reason"]})
        if heed_advice and told["delay_ms"]:
            time.sleep(told["delay_ms"] / 1000)
        return told

    def release(self, call: str = "") -> int:
        """Give back what was reserved for a call that will not be made, or for all; how many."""
        told = self._server.request(
            "DELETE", f"{self._address}/reservations", query={"call": call or None}
        )
        return int(told["released"])

    def read_back(self, ref: str, **selection: Any) -> str:
        """The text of what was offloaded; `lines="10-40"`, `grep=`, `head=` or `tail=`."""
        address = f"{self._address}/content/{path(ref)}"
        return str(self._server.request("GET", address, query=selection)["text"])

    def pin(self, seq: int) -> None:
        """Keep a message verbatim in every context."""
        self._server.request("POST", f"{self._address}/pins", {"seq": seq})

    def anchor(self, kind: str, text: str, **more: Any) -> dict[str, Any]:
        """Put an entry on the board: task, plan, agent, knowledge or task_done.

        `more`: key, by which a later one takes its place; files that it rests on.
        """
        body = {"kind": kind, "text": text, **more}
        return self._server.request("POST", f"{self._address}/anchors", body)

    def board(self) -> str:
        """The board of the session's task, or its own, as XML for a model."""
        return str(
            self._server.request("GET", f"{self._address}/anchors", query={"limit": 1})["xml"]
        )

    def share(self, summary: str = "", key: str = "") -> dict[str, Any]:
        """Share what is known now with the sessions that subscribed."""
        body = {"summary": summary, "key": key}
        return self._server.request("POST", f"{self._address}/shares", body)

    def subscribe(self, kind: str, value: str = "") -> dict[str, Any]:
        """Have what is shared from now on by an agent, in a task, or in the team."""
        body = {"session": self.id, "kind": kind, "value": value}
        return self._server.request("POST", "subscriptions", body)

    def search_memory(self, q: str, *, task: str = "", limit: int = 20) -> list[dict[str, Any]]:
        """What the team's boards and shared summaries hold of these words, the best first."""
        query = {"q": q, "task": task, "limit": limit}
        return list(self._server.request("GET", "memory", query=query)["found"])

    def finish(self, outcome: str) -> None:
        """Say how it ended: succeeded, failed or abandoned."""
        self._server.request("PUT", f"sessions/{path(self.external_id)}", {"outcome": outcome})


class ContextLab(Connection):
    """A server and a key: where sessions are made."""

    def session(self, external_id: str, **fields: Any) -> Session:
        """Make or update a session under your own id, and work with it.

        `fields`: agent, model, task, title, parent, policy, window, metadata, outcome, opening,
        project. Warns of others, which are kept in the metadata.
        """
        known = self.request("PUT", f"sessions/{path(external_id)}", fields)
        for note in known.get("notes", ()):
            log.warning("%s", note)
        return Session(self, known)


def _message_of(reply: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """The message of a provider's response, and the usage beside it."""
    choices = reply.get("choices")
    if choices:
        message = {k: v for k, v in choices[0]["message"].items() if v is not None}
        return message, reply.get("usage")
    return {"role": reply.get("role", "assistant"), "content": reply["content"]}, reply.get("usage")
