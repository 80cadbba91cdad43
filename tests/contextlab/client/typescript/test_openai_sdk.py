"""The TypeScript client wraps openai: chat completions, responses and Azure."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from contextlab.client import ContextLab
from tests.conftest import wait_until
from tests.contextlab.client.test_reading_back import LAST, LOG, kinds
from tests.contextlab.client.typescript.programs import Programs, gpt, has_costs, lab, node
from tests.contextlab.proxy.test_proxy_openai import contents, reads
from tests.provider_openai import Calls, Json, OpenAIProvider, Says

__all__ = ["gpt", "lab", "node"]


def test_agents_of_openai_are_managed(lab: ContextLab, gpt: OpenAIProvider, node: Programs) -> None:
    many = [Calls("shell", "c1", cmd="make test"), reads, Says("That is all."), Says("Bye.")]
    script = iter(many * 4)

    def answer(body: Json) -> Any:
        now: Any = next(script)
        return now(body) if callable(now) else now

    gpt.answer = answer
    seen = node.run("gpt", "talks", PROVIDER=gpt.url)
    assert (len(seen), node.warned) == (4, "")
    for name, it in seen.items():
        assert (it["call"], it["calls"], it["last"]) == ("c1", [], "Bye."), name
        assert it["text"].endswith("That is all."), name
        assert "read_back" not in json.dumps(it), name
        thoughts = json.dumps(it["history"]).count('"reasoning"')
        assert thoughts == ("responses" in name), "none of what is hidden"
        flat = [kind for message in kinds(lab, name) for kind in message]
        assert flat.count("read_back") == 1, name
        assert lab.request("GET", f"sessions/{name}")["steps"] == 4, "nothing rewound"
        wait_until(partial(has_costs, lab, name, 4))
    for at in range(0, 16, 4):
        assert LOG not in contents(gpt.bodies[at + 1]), "a stub stands for it"
        assert LAST in contents(gpt.bodies[at + 2]), "what it read back"
        assert "read_back" in contents(gpt.bodies[at + 3]), "the model knows what it read back"


def test_azure_parse_and_raw_responses_of_openai(gpt: OpenAIProvider, node: Programs) -> None:
    gpt.then(Says('{"port": 1}'), Says("two"), Says("three"))
    parsed, text, raw = node.run("gpt", "ways", PROVIDER=gpt.url)
    assert (parsed, text) == ('{"port": 1}', "two")
    assert raw["choices"][0]["message"]["content"] == "three"
