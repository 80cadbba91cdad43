"""An agent under `balanced`: results leave once that pays, and are read back, images too."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, wrap
from tests.contextlab.client.test_client import ASK, TOOL, claude, lab, model
from tests.contextlab.client.test_reading_back import bare, result, script, use
from tests.provider import Answer, Provider, Text

__all__ = ["claude", "lab", "model", "script"]

Json = dict[str, Any]

LINES = [f"line {number}: kelp {number * 7919}" for number in range(900)]
TOOLS = {**ASK, "tools": [TOOL | {"name": "Bash"}, TOOL | {"name": "Screenshot"}]}
SMALL = 12
"""Steps with short results, until it pays to offload the long ones."""


def png(width: int, height: int) -> str:
    """A gray image, in base64."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": png(1200, 900)},
}


def whole(agent: Any, **asked: Any) -> Any:
    return agent.messages.create(**asked)


def streamed(agent: Any, **asked: Any) -> Any:
    with agent.messages.stream(**asked) as stream:
        return stream.get_final_message()


def refs(body: Json) -> dict[str, str]:
    """References of the stubs of a request, by the tool call that each belongs to."""
    found = {}
    for message in body["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            ref = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", json.dumps(block))
            if ref and block["type"] == "tool_result":
                found[block["tool_use_id"]] = ref[1]
    return found


@pytest.mark.parametrize("call", [whole, streamed])
def test_balanced_offloads_and_the_model_reads_back(
    lab: ContextLab,
    model: Provider,
    claude: anthropic.Anthropic,
    script: list[Any],
    call: Callable[..., Any],
):
    name = f"balanced-{call.__name__}"
    agent = wrap(claude, session=name, server=lab, policy="balanced")
    steps = [("shot", "Screenshot", [PICTURE]), ("log", "Bash", "\n".join(LINES))]
    steps += [(f"t{number}", "Bash", f"ok {number}") for number in range(SMALL)]
    script += [Answer((use(id, tool, step=id),), "tool_use") for id, tool, _ in steps]

    def reads(body: Json) -> Answer:
        stubs = refs(body)
        assert set(stubs) == {"shot", "log"}
        seen = use("r1", "read_back", ref=stubs["shot"])
        line = use("r2", "read_back", ref=stubs["log"], lines="701-701")
        return Answer((seen, line), "tool_use")

    script += [reads, Text("A gray picture.")]
    talk: list[Json] = [{"role": "user", "content": "What is on the screen?"}]
    for id, _, content in steps:
        reply = call(agent, messages=talk, **TOOLS)
        assert [(one.type, one.id) for one in reply.content] == [("tool_use", id)]
        talk += [{"role": "assistant", "content": reply.content}]
        talk += [result(id, {"content": content})]
    reply = call(agent, messages=talk, **TOOLS)
    assert [(one.type, one.text) for one in reply.content] == [("text", "A gray picture.")]
    answers = bare(model.bodies[-1]["messages"][-1]["content"])
    assert [one["content"] for one in answers] == [
        [PICTURE], [{"type": "text", "text": LINES[700]}],
    ]  # fmt: skip
    assert PICTURE["source"]["data"] not in json.dumps(model.bodies[-2])
    script += [Text("Bye.")]
    talk += [{"role": "assistant", "content": reply.content}]
    talk += [{"role": "user", "content": "Thanks."}]
    assert call(agent, messages=talk, **TOOLS).content[0].text == "Bye."
    # What was read back stays, and every stub stays as it was.
    assert PICTURE["source"]["data"] in json.dumps(model.bodies[-1])
    assert refs(model.bodies[-1]).items() >= refs(model.bodies[-3]).items()
    done = lab.request("GET", f"sessions/{name}/revisions")["revisions"]
    assert [one["trigger"] for one in done] == ["entry", "pays"]
