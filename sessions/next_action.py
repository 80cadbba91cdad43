"""Ask a real model for the next action at a step: Anthropic's Messages API or chat completions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2

from compaction.context.session import Usage
from compaction.losses.next_action import Action
from sessions.importers.reported import anthropic_usage, openai_usage

Api = Literal["anthropic", "openai"]

MOST_OUTPUT = 4_096
"""Output tokens allowed per answer."""

TRIES = 4
LONGEST_WAIT = 60.0
SECONDS = 300.0

KEYS: Mapping[Api, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
ADDRESSES: Mapping[Api, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}


class NoAnswer(Exception):
    """The model did not answer; the message says why, for a person."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered: its action, its usage, and the message to append before a result.

    `calls` are (id, name, input) of its tool calls.
    """

    action: Action
    usage: Usage
    message: dict[str, Any]
    calls: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()


@dataclass(slots=True)
class ModelClient:
    """Asks one model, until `close`. The key is read from the environment and goes nowhere else."""

    api: Api
    model: str
    base_url: str = ""
    _client: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        """Raises NoAnswer without a key."""
        key = os.environ.get(KEYS[self.api], "")
        if not key:
            raise NoAnswer(f"{KEYS[self.api]} is not set")
        headers = (
            {"x-api-key": key, "anthropic-version": "2023-06-01"}
            if self.api == "anthropic"
            else {"authorization": f"Bearer {key}"}
        )
        address = self.base_url or ADDRESSES[self.api]
        self._client = httpx2.Client(base_url=address, headers=headers, timeout=SECONDS)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, context: Mapping[str, Any]) -> ModelAnswer:
        """Return the model's answer to a rendered context. Raises NoAnswer."""
        fields = {
            name: context[name] for name in ("system", "tools", "messages") if name in context
        }
        limit = "max_tokens" if self.api == "anthropic" else "max_completion_tokens"
        body = {"model": self.model, limit: MOST_OUTPUT, **fields}
        path = "/v1/messages" if self.api == "anthropic" else "/chat/completions"
        answered = self._post(path, body)
        try:
            return (_anthropic if self.api == "anthropic" else _openai)(answered)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise NoAnswer("the answer is not of this API") from error

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        for number in range(1, TRIES + 1):
            try:
                answered = self._client.post(path, json=body)
            except httpx2.HTTPError as error:
                if number == TRIES:
                    raise NoAnswer(f"no connection ({type(error).__name__})") from error
                continue
            if answered.status_code == 200:
                return answered.json()
            if answered.status_code not in (408, 409, 429) and answered.status_code < 500:
                raise NoAnswer(f"the provider answered {answered.status_code}{_why(answered)}")
            if number < TRIES:
                time.sleep(_wait(answered, number))
        raise NoAnswer(f"the provider answered {answered.status_code} {TRIES} times")


def result_of(api: Api, call: str, text: str) -> dict[str, Any]:
    """Return the message that answers a tool call with a text."""
    if api == "openai":
        return {"role": "tool", "tool_call_id": call, "content": text}
    result = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {"role": "user", "content": [result]}


def _why(answered: httpx2.Response) -> str:
    """The reason that the provider gives."""
    try:
        said = answered.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return ""
    return f": {str(said)[:300]}"


def _wait(answered: httpx2.Response, number: int) -> float:
    try:
        asked = float(answered.headers.get("retry-after", ""))
    except ValueError:
        asked = 2.0**number
    return min(max(asked, 0.0), LONGEST_WAIT)


def _anthropic(body: dict[str, Any]) -> ModelAnswer:
    parts: Sequence[dict[str, Any]] = body["content"]
    calls = tuple((p["id"], p["name"], p["input"]) for p in parts if p["type"] == "tool_use")
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    usage = anthropic_usage(body["usage"]).usage or Usage()
    action = Action(tuple((name, given) for _, name, given in calls), text)
    return ModelAnswer(action, usage, {"role": "assistant", "content": list(parts)}, calls)


def _openai(body: dict[str, Any]) -> ModelAnswer:
    message = body["choices"][0]["message"]
    calls = tuple(
        (one["id"], one["function"]["name"], _input(one["function"]["arguments"]))
        for one in message.get("tool_calls") or ()
    )
    usage = openai_usage(body["usage"]).usage or Usage()
    action = Action(tuple((name, given) for _, name, given in calls), message["content"] or "")
    return ModelAnswer(action, usage, message, calls)


def _input(arguments: str) -> Mapping[str, Any]:
    found = json.loads(arguments)
    return found if isinstance(found, dict) else {"input": found}
