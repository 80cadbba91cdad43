"""A model reads back in a stream or asynchronously; the agent's code does not know."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic

from contextlab.client import ContextLab, wrap
from tests.contextlab.client.test_client import claude, lab, model
from tests.contextlab.client.test_reading_back import (
    LAST,
    WITH,
    answered,
    check_prefixes,
    history,
    kinds,
    reads,
    result,
    script,
    use,
)
from tests.provider import Provider, Text

__all__ = ["claude", "lab", "model", "script"]


def shown(events: list[Any]) -> tuple[str, list[str], list[int]]:
    """The text of a stream's events, their types without repeats, and the places of blocks."""
    text = "".join(
        one.delta.text
        for one in events
        if one.type == "content_block_delta" and one.delta.type == "text_delta"
    )
    types = [one.type for one in events if not one.type.endswith(("_delta", "_stop"))]
    return text, types, [one.index for one in events if one.type == "content_block_start"]


WHOLE = f"Let me look. It ends with {LAST}."


def test_streams_go_on_after_a_read_back(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any], caplog
):
    script += [reads(), Text(f"It ends with {LAST}."), reads(use("t2", "Bash")), Text("Done.")]
    client = wrap(claude, session="flowing", server=lab)
    talk = history()
    with client.messages.create(messages=talk, stream=True, **WITH) as stream:
        events = list(stream)
    begins = ["message_start", "content_block_start", "content_block_start"]
    assert shown(events) == (WHOLE, begins, [0, 1])
    assert "read_back" not in str(events)
    talk += [answered(WHOLE), {"role": "user", "content": "And now?"}]
    with client.messages.stream(messages=talk, **WITH) as stream:
        last = stream.get_final_message()
    assert [block.type for block in last.content] == ["text", "tool_use"]
    talk += [{"role": "assistant", "content": last.content}, result("t2", {"content": "a.py"})]
    with client.messages.stream(messages=talk, **WITH) as stream:
        assert "".join(stream.text_stream) == "Done."
    check_prefixes(model)
    assert lab.request("GET", "sessions/flowing")["steps"] == 5
    assert not caplog.messages


def test_the_stream_of_the_sdk_goes_on_after_a_read_back(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    script += [reads(), Text(f"It ends with {LAST}.")]
    client = wrap(claude, session="helped", server=lab)
    with client.messages.stream(messages=history(), **WITH) as stream:
        assert "".join(stream.text_stream) == WHOLE
        last = stream.get_final_message()
    assert ([one.type for one in last.content], last.stop_reason) == (["text", "text"], "end_turn")
    assert kinds(lab, "helped")[3:] == [["text", "read_back"], ["tool_result"], ["text"]]


def test_an_asynchronous_agent_does_not_see_it_either(
    lab: ContextLab, model: Provider, script: list[Any]
):
    end = Text(f"It ends with {LAST}.")
    script += [reads(), end, reads(), end, reads(), end]

    async def talk() -> None:
        inner = anthropic.AsyncAnthropic(api_key="none", base_url=model.url, max_retries=0)
        async with wrap(inner, session="later", server=lab) as client:
            reply = await client.messages.create(messages=history(), **WITH)
            assert "".join(block.text for block in reply.content) == WHOLE
            more = await client.messages.create(messages=history(), stream=True, **WITH)
            assert shown([event async for event in more])[0] == WHOLE
            async with client.messages.stream(messages=history(), **WITH) as stream:
                assert "".join([text async for text in stream.text_stream]) == WHOLE

    asyncio.run(talk())
