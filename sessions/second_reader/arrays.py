"""Arrays of messages: the context of a call is all that precedes the response."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sessions.second_reader.reread import (
    Billed,
    Json,
    Reread,
    RereadPiece,
    RereadStep,
    answered,
    billed,
    billed_whole,
    dicts,
    largest,
    piece,
    pieces,
    plain,
    used,
    within,
)

Said = tuple[int, list[RereadPiece], bool, Billed | None]
"""Number of the item, its pieces, whether it is a response, and its usage."""


def sequence(said: Iterable[Said]) -> Reread:
    """A session of messages that nothing removes."""
    found = Reread()
    for number, read, is_response, usage in said:
        if is_response:
            found.steps.append(RereadStep(number, list(found.end), usage))
        found.end += read
    return found


def openai(data: bytes) -> list[Reread]:
    """Chat completions, with the response that a recorder stored beside them."""
    around, messages = _conversation(json.loads(data))
    first = _tools(around.get("tools") or around.get("functions"))
    said = [chat(number, one) for number, one in _numbered(messages)]
    stored = around.get("raw_response") or around.get("response")
    choices = within(stored, "choices") or around.get("choices")
    if isinstance(answer := within(choices, 0, "message"), dict):
        text, stop = answer.get("content"), within(around, "kwargs", "stop")
        if isinstance(text, str) and "<function=" in text and "</function" in (stop or []):
            answer = {**answer, "content": f"{text}</function>"}
        places = answer, stored, around.get("response"), around
        usage = next((found for one in places if (found := within(one, "usage"))), None)
        answer = {**answer, "role": "assistant", "usage": usage}
        said.append(chat(len(messages) + 1, answer))
    return [sequence([*first, *said])]


def anthropic(data: bytes) -> list[Reread]:
    """Messages of Anthropic's API."""
    around, messages = _conversation(json.loads(data))
    system = pieces(around.get("system") or around.get("system_prompt"))
    first = [*_tools(around.get("tools")), (0, system, False, None)]
    return [sequence([*first, *(message(number, one) for number, one in _numbered(messages))])]


def mini_swe(data: bytes) -> list[Reread]:
    """Trajectories of mini-swe-agent."""
    _, messages = _conversation(json.loads(data))
    said = [
        chat(number, {"usage": within(one, "extra", "response", "usage"), **one})
        for number, one in _numbered(messages)
        if one["role"] != "exit"
    ]
    return [sequence(said)]


def swe(data: bytes) -> list[Reread]:
    """The history of a SWE-agent trajectory."""
    history = _numbered(json.loads(data).get("history"))
    asked = False
    said: list[Said] = []
    for number, one in history:
        role = one["role"]
        if role == "assistant":
            read = _action(number, one)
            asked = any(each.form == "tool_use" for each in read)
            said.append((number, read, True, None))
        elif role == "tool" or (role == "user" and asked and not one.get("is_demo")):
            said.append((number, [answered(one.get("content"), number)], False, None))
            asked = asked and role == "tool"
        else:
            said.append(chat(number, one))
    return [sequence(said)]


def tau(data: bytes) -> list[Reread]:
    """Trials of tau-bench, or simulations of tau2-bench."""
    value = json.loads(data)
    if isinstance(value, list):
        return [sequence(chat(*one) for one in _numbered(each.get("traj"))) for each in value]
    policy = within(value, "info", "environment_info", "policy")
    found = []
    for each in dicts(value.get("simulations")):
        said = [
            _simulated(number, one)
            for number, one in _numbered(each.get("messages"))
            if one.get("requestor") != "user" and (one["role"] != "user" or one.get("content"))
        ]
        found.append(sequence([(0, pieces(policy), False, None), *said]))
    return found


def who_and_when(data: bytes) -> list[Reread]:
    """A conversation of several agents, in which all but the tools and the first are responses."""
    value = json.loads(data)
    prompts = (value.get("system_prompt") or {}).items()
    said: list[Said] = [(0, pieces(f"{name}\n\n{text}"), False, None) for name, text in prompts]
    for number, one in enumerate(dicts(value.get("history")), start=1):
        name = str(one.get("name") or str(one.get("role")).split(" (")[0])
        tools = ("computer_terminal", "computerterminal", "websurfer", "filesurfer", "human")
        is_response = number > 1 and name.lower() not in tools
        said.append((number, pieces(one.get("content"), number), is_response, None))
    return [sequence(said)]


def _conversation(value: Json) -> tuple[dict[str, Json], list[Json]]:
    """The object around the messages, and they."""
    if isinstance(value, list):
        return {}, value
    for name in ("", "request", "body", "data"):
        inner = value.get(name) if name else value
        messages = within(inner, "messages")
        if isinstance(messages, list) and within(messages, 0, "role"):
            return {**value, **inner}, messages
    return value, []


def _numbered(messages: Json) -> list[tuple[int, dict[str, Json]]]:
    listed = enumerate(dicts(messages), start=1)
    return [(number, one) for number, one in listed if isinstance(one.get("role"), str)]


def _tools(tools: Json) -> list[Said]:
    return [(0, [piece("tools", plain(tools))], False, None)] if tools else []


def chat(number: int, one: dict[str, Json]) -> Said:
    """A message of chat completions."""
    content = one.get("content")
    if one["role"] in ("tool", "function"):
        return number, [answered(content, number)], False, None
    shown = [part_of(part, number) for part in _listed(content)]
    if one["role"] != "assistant":
        return number, shown, False, None
    thought = one.get("reasoning_content") or one.get("reasoning")
    first = [piece("thinking", thought, number)] if isinstance(thought, str) and thought else []
    refused = pieces(one.get("refusal"), number)
    calls = [
        within(call, "function") or call.get("custom") for call in dicts(one.get("tool_calls"))
    ]
    calls += [one["function_call"]] if isinstance(one.get("function_call"), dict) else []
    uses = [
        used(within(call, "name"), within(call, "arguments") or within(call, "input"), number)
        for call in calls
    ]
    return number, [*first, *shown, *refused, *uses], True, usage_of(one.get("usage"))


def _listed(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [content] if content else []
    return content if isinstance(content, list) else []


def part_of(part: Json, number: int) -> RereadPiece:
    """A part of a content of chat completions."""
    if within(part, "type") == "refusal":
        return piece("text", str(part.get("refusal") or ""), number)
    one = pieces([part], number)[0]
    form = {"image_url": "image", "file": "document"}.get(one.form, one.form)
    return one._replace(form=form)


def _action(number: int, one: dict[str, Json]) -> list[RereadPiece]:
    """A response of SWE-agent: an action in its text is the call of a tool."""
    _, read, _, _ = chat(number, one)
    action = str(one.get("action") or "").strip()
    if not action or any(each.form == "tool_use" for each in read):
        return read
    content = one.get("content") if isinstance(one.get("content"), str) else ""
    before, there, after = str(content).rpartition(action)
    before, after = (before, after) if there else (after, "")
    called = used(action.split()[0], {"command": action}, number)
    texts = before if before.strip() else "", after if after.strip(" \n`") else ""
    return [*pieces(texts[0], number), called, *pieces(texts[1], number)]


def _simulated(number: int, one: dict[str, Json]) -> Said:
    calls = [{"function": call} for call in dicts(one.get("tool_calls"))]
    usage = within(one, "raw_data", "usage") or one.get("usage")
    return chat(number, {**one, "tool_calls": calls, "usage": usage})


def message(number: int, one: dict[str, Json]) -> Said:
    """A message of Anthropic's API."""
    usage, metrics = one.get("usage"), one.get("metrics")
    tokens = billed(
        within(usage, "input_tokens"),
        within(usage, "cache_read_input_tokens"),
        within(usage, "cache_creation_input_tokens"),
        within(usage, "output_tokens"),
    )
    if not isinstance(usage, dict):
        tokens = billed_whole(
            within(metrics, "inputTokens"),
            within(metrics, "cacheReadTokens"),
            within(metrics, "cacheWriteTokens"),
            within(metrics, "outputTokens"),
        )
    return number, pieces(one.get("content"), number), one["role"] == "assistant", tokens


def usage_of(usage: Json) -> Billed | None:
    """Usage in the fields of OpenAI, DeepSeek and LiteLLM; the prompt includes the cache."""
    details = within(usage, "prompt_tokens_details") or within(usage, "input_tokens_details")
    return billed_whole(
        largest(within(usage, "prompt_tokens"), within(usage, "input_tokens")),
        largest(
            within(details, "cached_tokens"),
            *(
                within(usage, name)
                for name in (
                    *("prompt_cache_hit_tokens", "cached_input_tokens"),
                    "cache_read_input_tokens",
                )
            ),
        ),
        largest(
            within(usage, "cache_creation_input_tokens"), within(details, "cache_creation_tokens")
        ),
        largest(within(usage, "completion_tokens"), within(usage, "output_tokens")),
    )
