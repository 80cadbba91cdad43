"""Conversion of chat-completions messages to blocks."""

from __future__ import annotations

from sessions.importers.codex.items import parsed
from sessions.importers.records import Json
from sessions.importers.wire import Block, blocks_of, mapping, sequence, string, text_block


class CallIds:
    """Makes repeated tool call ids unique, as in replays and demonstrations."""

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}

    def asked(self, blocks: list[Block], index: int) -> None:
        """Record a response's tool calls; repeated or missing ids get a unique one.

        Results without an id name the function instead, so its name is recorded too.
        """
        for place, block in enumerate(blocks):
            if block.get("type") != "tool_use":
                continue
            stated = string(block.get("id"))
            if not stated or stated in self._latest:
                block["id"] = f"{stated or 'call'}#{index}.{place}"
            self._latest[stated or string(block.get("name"))] = block["id"]

    def answered(self, stated: str) -> str:
        """The id of the latest tool call with this id or, without ids, of this function."""
        return self._latest.get(stated, stated)


def assistant_blocks(message: dict[str, Json]) -> list[Block]:
    """Reasoning, text, refusal and tool calls of an assistant message, in that order."""
    blocks: list[Block] = []
    reasoning = string(message.get("reasoning_content")) or string(message.get("reasoning"))
    if reasoning:
        blocks.append({"type": "thinking", "thinking": reasoning})
    blocks.extend(content_blocks(message.get("content")))
    if refusal := string(message.get("refusal")):
        blocks.append(text_block(refusal))
    calls = [mapping(call) for call in sequence(message.get("tool_calls"))]
    blocks.extend(_tool_use(call) for call in calls)
    if isinstance(single := message.get("function_call"), dict):
        blocks.append(_tool_use({"id": "", "function": single}))
    return blocks


def content_blocks(content: Json) -> list[Block]:
    """Content parts as blocks."""
    return [_part(block) for block in blocks_of(content)]


def result_block(message: dict[str, Json], tool_call: str) -> Block:
    """A message of role tool or function as a tool result."""
    content = message.get("content")
    return {
        "type": "tool_result",
        "tool_use_id": tool_call,
        "content": content if isinstance(content, str) else content_blocks(content),
    }


def _tool_use(call: dict[str, Json]) -> Block:
    function = mapping(call.get("function") or call.get("custom"))
    given = function.get("arguments", function.get("input"))
    return {
        "type": "tool_use",
        "id": string(call.get("id")),
        "name": string(function.get("name")),
        "input": given if isinstance(given, dict) else parsed(given),
    }


def _part(block: Block) -> Block:
    form = block.get("type")
    if form in {"input_text", "output_text", "refusal"}:
        text = block.get("text", block.get("refusal"))
        return text_block(string(text))
    if form == "image_url":
        url = block.get("image_url")
        url = mapping(url).get("url") if isinstance(url, dict) else url
        return {"type": "image", "source": {"type": "url", "url": url}}
    if form == "file":
        return {**block, "type": "document"}
    return block
