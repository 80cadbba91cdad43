"""Models that read text alone get a word for each image, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.context.blocks import Block
from compaction.render.images import readable, reads_images
from tests.build import coding

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        ("claude-opus-5-5", True), ("gpt-5.6-sol", True), ("gemini-2.5-pro", True), ("", True),
        ("deepseek-flash", True), ("kimi-k2.5", True), ("deepseek-chat", True),
        ("glm-4.5v", True), ("qwen3-vl", True),
        ("deepseek-v3.2", False), ("deepseek/deepseek-r1", False), ("gpt-3.5-turbo", False),
        ("openrouter/openai/gpt-oss-120b", False), ("o3-mini", False), ("glm-4.6", False),
        ("qwen3-coder", False), ("kimi-k2-instruct", False), ("us.anthropic.claude-2.1", False),
    ],
)  # fmt: skip
def test_names_tell_which_models_read_text_alone(model: str, reads: bool) -> None:
    assert reads_images(model) is reads
    assert not reads_images(model, {model})


def test_an_image_becomes_a_word_wherever_it_stands() -> None:
    wires: dict[str, dict[str, Any]] = {
        "a": IMAGE,
        "b": {"type": "tool_result", "tool_use_id": "t", "is_error": False,
              "content": [{"type": "text", "text": "seen"}, IMAGE]},
        "c": {"type": "text", "text": "[image]"},
        "d": {"type": "tool_result", "tool_use_id": "u", "content": "plain"},
    }  # fmt: skip

    block = coding(1).blocks[0]

    def wire_of(block: Block) -> dict[str, Any]:
        return wires[block.id]

    assert readable("claude-opus-5-5", wire_of) is wire_of
    shown = readable("deepseek-v4-pro", wire_of)
    made = {name: shown(replace(block, id=name)) for name in wires}
    word = {"type": "text", "text": "[image image/png]"}
    assert made["a"] == word
    assert made["b"] == {**wires["b"], "content": [{"type": "text", "text": "seen"}, word]}
    assert made["c"] is wires["c"] and made["d"] is wires["d"]
    assert wires["a"] is IMAGE and IMAGE in wires["b"]["content"]
