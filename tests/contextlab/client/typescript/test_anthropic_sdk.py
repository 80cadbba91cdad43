"""The TypeScript client wraps @anthropic-ai/sdk: a real SDK in Node, a running server."""

from __future__ import annotations

import json
from functools import partial

from contextlab.client import ContextLab
from tests.conftest import wait_until
from tests.contextlab.client.test_reading_back import LOG, check_prefixes, kinds, reads
from tests.contextlab.client.typescript.programs import (
    WHOLE,
    Programs,
    gpt,
    has_costs,
    lab,
    looks,
    model,
    node,
)
from tests.provider import Overloaded, Provider, Text
from tests.provider_openai import OpenAIProvider

__all__ = ["gpt", "lab", "model", "node"]


def test_a_read_back_is_answered_whatever_the_way_to_the_model(
    lab: ContextLab, model: Provider, node: Programs
) -> None:
    model.answer = looks
    seen = node.run("claude", "ways", PROVIDER=model.url)
    assert (len(seen), "read_back" in json.dumps(seen)) == (10, False)
    events = seen.pop("events")["events"]
    assert "".join(one.get("delta", {}).get("text", "") for one in events) == WHOLE
    starts = [one["index"] for one in events if one["type"] == "content_block_start"]
    assert (starts, events[-1]["type"]) == ([0, 1], "message_stop")
    assert seen["both"].pop("url") == f"{model.url}/v1/messages"
    for way, reply in seen.items():
        assert "".join(block["text"] for block in reply["content"]) == WHOLE, way
        assert reply["stop_reason"] == "end_turn", way
    for way in (*seen, "events"):
        name = f"ts%20{way}"
        assert kinds(lab, name)[3:] == [["text", "read_back"], ["tool_result"], ["text"]], way
        wait_until(partial(has_costs, lab, name, 3))
    assert not model.refused
    assert not any(LOG.splitlines()[1500] in json.dumps(body) for body in model.bodies)


def test_the_history_of_an_agent_goes_on(lab: ContextLab, model: Provider, node: Programs) -> None:
    model.then(Overloaded(), Text("One."), Text("Two."))
    model.answer = lambda body: reads()(body) if len(model.bodies) == 4 else Text("Three.")
    assert node.run("claude", "talk", PROVIDER=model.url) == [
        "One.", "Two.", "Let me look. Three.",
    ]  # fmt: skip
    assert not node.warned
    assert model.bodies[0] == model.bodies[1], "a retry of the SDK's own"
    check_prefixes(model)
    assert lab.request("GET", "sessions/ts%20talk")["steps"] == 5, "nothing rewound"


def test_a_rewind_by_another_client_is_noticed(
    lab: ContextLab, model: Provider, node: Programs
) -> None:
    model.answer = lambda _: Text("Well.")
    first, second, refused, whole, last = node.run("claude", "rewound", PROVIDER=model.url)
    assert first == [200, 1, True, False]
    assert (second, last) == ([200, 1, False, True], [200, 1, False, True]), "only what is new"
    assert (refused, whole) == ([422, 1, False, True], [200, 5, True, False])
    assert [len(body["messages"]) for body in model.bodies] == [1, 3, 5, 7]


def test_what_cannot_be_managed_is_refused_and_not_sent(
    model: Provider, gpt: OpenAIProvider, node: Programs
) -> None:
    found = node.run("claude", "refused", PROVIDER=model.url)
    (name, why), *errors = found["errors"]
    assert (name, "takes a client of @anthropic-ai/sdk or openai" in why) == ("TypeError", True)
    errors += node.run("gpt", "refused", PROVIDER=gpt.url)
    expected = ["POST /v1/messages/batches", "POST /v1/complete", "no messages", "(`thread`)"]
    expected += ["(`thread`)", "several answers", "(previous_response_id)", "background"]
    expected += ["no input", "POST /completions", "POST /responses/compact", "POST /threads/runs"]
    for (name, why), reason in zip(errors, expected, strict=True):
        assert (name, reason in why, "Nothing was sent" in why) == ("NotManaged", True, True), why
    assert (found["counted"] > 0, model.bodies, gpt.bodies) == (True, [], [])
