"""Stubs: what a replacement keeps of its original, and what becomes text."""

import pytest

from compaction.context.stubs import stand_in
from tests.build import Talk


@pytest.mark.parametrize(
    ("type", "becomes"),
    [("image", "text"), ("document", "text"), ("text", "text"), ("tool_use", "tool_use")],
)
def test_a_picture_becomes_text_and_other_blocks_keep_their_type(type, becomes):
    original = Talk().add("[image image/png]", type=type, kind="other", role="user")
    stub = stand_in(original, "[picture left out]", 5, "offload")
    assert (stub.type, stub.position, stub.replaces) == (becomes, original.position, original.id)
