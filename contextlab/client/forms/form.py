"""What the client and the proxy need to know of an API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from contextlab.client.agent_call import AgentCall
from contextlab.client.events import encoded, sent

Json = dict[str, Any]


class Collected(Protocol):
    """Collects the events of a stream."""

    @property
    def answer(self) -> Json | None:
        """The answer that the stream adds up to; None until it is complete."""

    def take(self, event: Json) -> None:
        """Take an event."""


class Joined(Protocol):
    """A stream and those that continue it, as the stream of one answer."""

    def take(self, event: Json | None, data: bytes) -> list[bytes]:
        """What the agent sees of an event, given its data, too; the end is deferred."""

    def goes_on(self) -> None:
        """Another stream follows."""

    def end(self) -> list[bytes]:
        """The end of the last stream."""

    def refused(self, body: Json) -> bytes:
        """The event for a stream that was to follow, given the provider's refusal."""


class ApiForm(NamedTuple):
    """How an API's requests and answers are read and written."""

    format: str
    """Of our server's contexts."""
    asked: Callable[[Json], Json]
    """A request as for the Messages API. Raises ValueError if it is none of this API."""
    unmanaged: Callable[[Json], str]
    """Why a request cannot be managed; empty if it can."""
    sent: Callable[[Json, Json], Json]
    """The request for the provider: the agent's own, with a managed context in it."""
    reply: Callable[[Json], Json | None]
    """An answer as one of the Messages API; None if it is none."""
    shown: Callable[[list[Json], AgentCall], Json]
    """The answer for the agent, of all that the model gave, without what it read back."""
    collected: Callable[[], Collected]
    """What collects the events of a stream."""
    joined: Callable[[AgentCall, Json], Joined]
    """What joins the streams of a call, given the agent's request."""
    error: Callable[[str, str], Json]
    """An error of the API, from its type and message."""

    def known_reply(self, answer: Json | None) -> Json | None:
        """As `reply`; also None for an answer that breaks the API's own rules, which the agent
        gets as it is."""
        try:
            found = self.reply(answer) if answer is not None else None
        except (KeyError, TypeError, AttributeError, ValueError):
            return None
        return found if found is not None and all(map(_is_block, found["content"])) else None


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    return block.get("type") != "tool_use" or isinstance(block.get("id"), str)


def openai_error(kind: str, message: str) -> Json:
    """An error of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def of_type(event: Json) -> bytes:
    """An event that is named by its type."""
    return sent(encoded(event), str(event.get("type") or ""))


def turns(messages: list[Json]) -> list[Json]:
    """Messages with those of one reply, or the results of its calls, as one."""
    made: list[Json] = []
    for message in messages:
        if made and _continues(made[-1], message):
            made[-1] = {**made[-1], "content": [*made[-1]["content"], *message["content"]]}
        else:
            made.append(message)
    return made


def _continues(before: Json, message: Json) -> bool:
    if before["role"] != message["role"]:
        return False
    if message["role"] == "assistant":
        return True
    blocks = [*before["content"], *message["content"]]
    return all(block.get("type") == "tool_result" for block in blocks)


def arguments_of(given: Any) -> Json:
    """The arguments of a call as an object; {"arguments": …} if they are none."""
    found = given if isinstance(given, dict) else _decoded(given)
    return found if isinstance(found, dict) else {"arguments": given}


def _decoded(given: Any) -> Any:
    try:
        return json.loads(given, parse_constant=str) if isinstance(given, str) else None
    except (ValueError, RecursionError):
        return None
