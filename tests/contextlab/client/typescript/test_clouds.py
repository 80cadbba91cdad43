"""The TypeScript client wraps Anthropic's clients of Amazon Bedrock and Google Vertex AI."""

from __future__ import annotations

from contextlab.client import ContextLab
from tests.contextlab.client.test_client import stored
from tests.contextlab.client.typescript.programs import Programs, lab, model, node
from tests.provider import Provider, Text

__all__ = ["lab", "model", "node"]


def test_clients_of_clouds_are_managed(lab: ContextLab, model: Provider, node: Programs) -> None:
    names = ["bedrock", "mantle", "vertex"]
    model.then(*(Text(f"{name} {way}") for name in names for way in range(3)))
    seen = node.run("clouds", "talks", PROVIDER=model.url)
    expected = {name: [f"{name} {way}" for way in range(3)] for name in names}
    assert seen == {name: [texts, True] for name, texts in expected.items()}
    assert (node.warned, model.refused) == ("", [])
    for name, texts in expected.items():
        assert [text for _, text, _ in stored(lab, f"ts {name}")] == texts


def test_clients_of_clouds_of_an_older_sdk_are_refused(node: Programs) -> None:
    name, why = node.run("clouds", "older")
    assert (name, "takes a client of @anthropic-ai/sdk or openai" in why) == ("TypeError", True)
