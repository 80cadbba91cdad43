"""One call of an agent, with the model calls in which the model only reads back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contextlab.client.managed import ManagedSession
from contextlab.client.shown import NAME, Message, ShownReply

MOST = 8
"""Replies in a row that may do nothing but read back (our choice)."""


class AgentCall:
    """The model calls of one call by the agent; `request` is the next to send.

    `is_managed` is False if our server did not answer: then the agent gets what the model says.
    `shown` are the blocks that the agent sees. Replies are JSON, those of other providers as for
    the Messages API.
    """

    def __init__(self, managed: ManagedSession, request: dict[str, Any]) -> None:
        self._managed, self._asked = managed, listed(request)
        self.request, self._context = managed.ask(self._asked)
        self.is_managed = self._context is not None
        # An agent that lists the tool itself answers its calls.
        self._ours = self.is_managed and _lists(self.request) and not _lists(self._asked)
        self._hidden: list[Message] = []
        self.shown: list[Any] = []
        self.has_hidden = False
        self._left = MOST

    def hides(self, block: Message) -> bool:
        """Whether the agent does not see a block."""
        return self._ours and block.get("type") == "tool_use" and block.get("name") == NAME

    def again(self, reply: Message) -> bool:
        """Store a reply; return whether the model is called again, with what it read back."""
        if self._context is not None:
            self._managed.keep(reply, self._context, self._asked, [*self._hidden])
        else:
            self._managed.miss(self._asked, reply, self._hidden)
        content = reply["content"]
        calls = [block for block in content if self.hides(block)]
        self.has_hidden = self.has_hidden or bool(calls)
        self.shown += [block for block in content if not self.hides(block)]
        if not calls and not self._hidden and self._managed.format == "anthropic":
            return False
        message = {"role": "assistant", "content": content}
        results = [self._managed.read(call) for call in calls]
        if not calls or _calls(self.shown) or not self._left:
            # Agents of other providers send replies back without their reasoning.
            shown = ShownReply(self.shown, [*self._hidden, message], results)
            self._managed.shown.add(len(self._asked["messages"]), shown)
            return False
        self._left -= 1
        self._go_on(message, {"role": "user", "content": results})
        return True

    def _go_on(self, message: Message, results: Message) -> None:
        self._hidden += [message, results]
        request, self._context = self._managed.ask(self._asked, self._hidden)
        self.is_managed = self._context is not None
        if self._context is None:
            sent = self.request["messages"]
            request = {**self.request, "messages": [*sent, _without_none(message), results]}
        self.request = request

    def stop_reason(self, given: str | None) -> str | None:
        """Why the reply for the agent stopped: not for a tool if it sees no call of one."""
        return "end_turn" if given == "tool_use" and not _calls(self.shown) else given


def listed(request: dict[str, Any]) -> dict[str, Any]:
    """A request with lists: iterators would be exhausted if it is sent twice."""
    lists = {name: list(request[name]) for name in ("messages", "tools") if request.get(name)}
    return {**request, **lists}


def _lists(request: dict[str, Any]) -> bool:
    tools = [one for one in request.get("tools") or () if isinstance(one, dict)]
    functions = [one for tool in tools if isinstance(one := tool.get("function"), dict)]
    # Gemini's tools declare several functions each.
    functions += [one for tool in tools for one in tool.get("functionDeclarations") or ()]
    return any(one.get("name") == NAME for one in (*tools, *functions))


def _calls(content: Sequence[Message]) -> bool:
    return any(block.get("type") == "tool_use" for block in content)


def _without_none(message: Message) -> Message:
    blocks = [{k: v for k, v in block.items() if v is not None} for block in message["content"]]
    return {**message, "content": blocks}
