"""Every trigger can be read by people."""

from __future__ import annotations

from typing import get_args

import pytest

from compaction.context.edits import Trigger
from compaction.policies.trigger_words import WORDS, vendor_edit, words


def test_every_trigger_has_a_name_of_its_own_and_a_sentence() -> None:
    assert set(WORDS) == set(get_args(Trigger))
    assert len({one.name for one in WORDS.values()}) == len(WORDS)
    assert all(one.meaning.endswith(".") for one in WORDS.values())


def test_a_trigger_of_a_later_release_is_named() -> None:
    assert words("some_day").name == "some day"


@pytest.mark.parametrize(
    ("trigger", "agent", "named", "edit"),
    [
        ("auto", "claude-code", "automatic compaction by Claude Code", True),
        ("manual", "codex", "compaction asked for in Codex (/compact)", True),
        ("clear", "claude-code", "tool results cleared by Claude Code", True),
        ("unknown", "codex", "compaction by Codex", True),
        ("auto", "my-agent", "automatic compaction", True),
        ("pays", "claude-code", "it pays", False),
    ],
)
def test_what_a_product_did_is_named_after_it(
    trigger: str, agent: str, named: str, edit: bool
) -> None:
    assert words(trigger, agent).name == named
    assert vendor_edit(trigger, agent) == (named if edit else "")
