"""A model reads back what a stub names; the agent's code does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from contextlab.client import ContextLab, wrap
from contextlab.client.agent_call import MOST
from tests.contextlab.client.test_client import ASK, TOOL, claude, lab, model
from tests.provider import Answer, Provider, Text

__all__ = ["claude", "lab", "model"]

Json = dict[str, Any]

LOG = "\n".join(f"line {number}: kelp {number * 7919}" for number in range(3000))
LAST = LOG.splitlines()[-1]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501
IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
}
WITH = {**ASK, "tools": [TOOL | {"name": "Bash"}]}


def use(id: str, name: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id} | content]}


def answered(text: str) -> Json:
    return {"role": "assistant", "content": text}


def history(content: Any = LOG) -> list[Json]:
    """An agent that ran a command with a long result."""
    return [
        {"role": "user", "content": "What does the log say?"},
        {"role": "assistant", "content": [use("t1", "Bash", command="make test")]},
        result("t1", {"content": content}),
    ]


def ref_in(body: Json) -> str:
    found = re.search(r"ref (m\d+\.\d+@[0-9a-f]{8})", json.dumps(body["messages"]))
    assert found, "a stub stands in the context"
    return found[1]


def reads(*more: Json, **given: Any) -> Any:
    """A reply that reads back the last line of what the context names, among others."""
    return lambda body: Answer(
        (
            {"type": "text", "text": "Let me look. "},
            use("r1", "read_back", ref=ref_in(body), **(given or {"tail": 1})),
            *more,
        ),
        "tool_use",
    )


@pytest.fixture
def script(model: Provider) -> Iterator[list[Any]]:
    """Replies to come: each an answer, or a function of the request."""
    replies: list[Any] = []

    def answer(body: Json) -> Answer:
        now = replies.pop(0)
        return now(body) if callable(now) else now

    model.answer = answer
    yield replies
    assert not replies
    assert not model.refused


def bare(value: Any) -> Any:
    """A request without cache breakpoints, which move."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in value.items() if name != "cache_control"}
    return [bare(one) for one in value] if isinstance(value, list) else value


def check_prefixes(model: Provider) -> None:
    """Every request begins as the one before, and lists the same tools, `read_back` last."""
    for before, after in zip(model.bodies, model.bodies[1:], strict=False):
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])
        assert after["tools"][-1]["name"] == "read_back"
        told_before = bare(before["messages"])
        assert json.dumps(bare(after["messages"])[: len(told_before)]) == json.dumps(told_before)


def kinds(lab: ContextLab, session: str) -> list[list[str]]:
    """What a session stores: the blocks of each message after its setup, by type or tool."""
    found = lab.request("GET", f"sessions/{session}/messages")["messages"]
    return [
        [block.get("name") or block["type"] for block in one["content"]]
        for one in found
        if one["role"] != "system"
    ]


def test_a_read_back_alone_is_answered_unseen(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    script += [reads(), Text(f"It ends with {LAST}."), Text("Bye.")]
    client = wrap(claude, session="alone", server=lab)
    talk = history()
    reply = client.messages.create(messages=talk, **WITH)
    assert [block.type for block in reply.content] == ["text", "text"]
    assert (reply.content[1].text, reply.stop_reason) == (f"It ends with {LAST}.", "end_turn")
    answered = model.bodies[1]["messages"][-1]["content"][0]
    assert (answered["tool_use_id"], answered["content"][0]["text"]) == ("r1", LAST)
    talk += [
        {"role": "assistant", "content": reply.content},
        {"role": "user", "content": "Thanks."},
    ]
    assert client.messages.create(messages=talk, **WITH).content[0].text == "Bye."
    check_prefixes(model)
    assert kinds(lab, "alone") == [
        ["text"], ["Bash"], ["tool_result"], ["text", "read_back"], ["tool_result"], ["text"],
        ["text"], ["text"],
    ]  # fmt: skip
    assert not lab.request("GET", "sessions/alone/revisions")["revisions"][1:], "nothing rewound"
    assert lab.request("GET", "sessions/alone")["steps"] == 4


def test_a_read_back_beside_another_tool_waits_for_its_result(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    script += [reads(use("t2", "Bash", command="ls")), Text("Done.")]
    client = wrap(claude, session="mixed", server=lab)
    talk = history()
    reply = client.messages.create(messages=talk, **WITH)
    assert [block.type for block in reply.content] == ["text", "tool_use"]
    assert (reply.content[1].name, reply.stop_reason) == ("Bash", "tool_use")
    talk += [{"role": "assistant", "content": reply.content}, result("t2", {"content": "a.py"})]
    assert client.messages.create(messages=talk, **WITH).content[0].text == "Done."
    check_prefixes(model)
    said = model.bodies[-1]["messages"]
    assert [block.get("name") for block in said[-2]["content"]] == [None, "read_back", "Bash"]
    assert [block["content"] for block in bare(said[-1])["content"]] == [
        [{"type": "text", "text": LAST}], "a.py",
    ]  # fmt: skip
    assert kinds(lab, "mixed")[3:] == [
        ["text", "read_back", "Bash"], ["tool_result", "tool_result"], ["text"],
    ]  # fmt: skip


def test_an_image_comes_back_as_an_image(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    read = Answer((use("r1", "read_back", ref="m5.0"),), "tool_use")
    script += [read, Text("A pixel.")]
    client = wrap(claude, session="seen", server=lab)
    client.messages.create(messages=history([IMAGE]), system="Look. " * 6_000, **WITH)
    assert bare(model.bodies[1]["messages"][-1]["content"]) == [
        {"type": "tool_result", "tool_use_id": "r1", "content": [IMAGE]}
    ]
    content = lab.request("GET", "sessions/seen/content/m5.0")
    assert (content["content"], content["text"]) == ([IMAGE], "[image image/png]")
    mixed = lab.session("both")
    mixed.append(history([{"type": "text", "text": "one\ntwo"}, IMAGE]))
    answer = mixed.read_back_result(use("r1", "read_back", ref="m3.0"))
    assert [block["type"] for block in answer["content"]] == ["text", "image"]
    answer = mixed.read_back_result(use("r1", "read_back", ref="m3.0", head=1))
    assert answer["content"][0]["text"].startswith("one")
    assert [block["type"] for block in answer["content"]] == ["text"]


def test_what_is_asked_wrongly_is_an_error_for_the_model(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    wrong: list[Json] = [
        {"ref": "m99.0"},
        {},
        {"ref": "m4.0", "lines": ["x"]},
        {"ref": "m4.0", "page": 2},
        {"ref": ".."},
        {"ref": "a/."},
        {"ref": "m4.\ud800"},
    ]
    uses = tuple(use(f"r{at}", "read_back", **given) for at, given in enumerate(wrong))
    script += [Answer(uses, "tool_use"), Text("Well.")]
    wrap(claude, session="wrong", server=lab).messages.create(messages=history(), **WITH)
    answers = model.bodies[1]["messages"][-1]["content"]
    assert [one["is_error"] for one in answers] == [True] * len(wrong)
    texts = [one["content"][0]["text"] for one in answers]
    assert "no block m99.0" in texts[0] and "ref is missing" in texts[1]
    assert all("no content" in text for text in texts[4:])


def test_a_model_that_only_reads_back_is_stopped(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    script += [
        Answer((use(f"r{at}", "read_back", ref="m4.0", head=1),), "tool_use")
        for at in range(MOST + 1)
    ]
    script += [Text("Enough.")]
    client = wrap(claude, session="endless", server=lab)
    talk = history()
    reply = client.messages.create(messages=talk, **WITH)
    assert (reply.content, reply.stop_reason, len(model.bodies)) == ([], "end_turn", MOST + 1)
    talk += [{"role": "assistant", "content": []}, {"role": "user", "content": "Go on."}]
    assert client.messages.create(messages=talk, **WITH).content[0].text == "Enough."
    check_prefixes(model)
    only = Answer((use("r0", "read_back", ref="m4.0", head=1),), "tool_use")
    script += [only] * (MOST + 1)
    with wrap(claude, session="flood", server=lab).messages.stream(
        messages=history(), **WITH
    ) as stream:
        last = stream.get_final_message()
    assert (last.content, last.stop_reason) == ([], "end_turn")


def test_without_a_server_the_model_gets_an_error_and_the_agent_none(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any], caplog
):
    with ContextLab(lab.url, lab._http.headers["Authorization"].split()[1], patience=0) as near:
        client = wrap(claude, session="cut", server=near)

        def leaves(body: Json) -> Answer:
            near.close()
            answer: Answer = reads()(body)
            return answer

        script += [leaves, Text("Then not.")]
        reply = client.messages.create(messages=history(), **WITH)
    assert "".join(block.text for block in reply.content) == "Let me look. Then not."
    answer = bare(model.bodies[1]["messages"][-1]["content"])
    assert [(one["tool_use_id"], one["is_error"]) for one in answer] == [("r1", True)]
    assert "cannot be read" in answer[0]["content"][0]["text"]
    assert len(caplog.messages) == 1


def test_an_agent_with_a_read_back_of_its_own_answers_it(
    lab: ContextLab, model: Provider, claude: anthropic.Anthropic, script: list[Any]
):
    script += [reads()]
    client = wrap(claude, session="own", server=lab)
    reply = client.messages.create(messages=history(), **ASK, tools=[TOOL | {"name": "read_back"}])
    assert reply.content[1].name == "read_back"
    assert [tool["name"] for tool in model.bodies[0]["tools"]] == ["read_back"]
