"""Every trigger can be read by people."""

from __future__ import annotations

from typing import get_args

from compaction.context.edits import Trigger
from compaction.policies.trigger_words import WORDS, words


def test_every_trigger_has_a_name_of_its_own_and_a_sentence() -> None:
    assert set(WORDS) == set(get_args(Trigger))
    assert len({one.name for one in WORDS.values()}) == len(WORDS)
    assert all(one.meaning.endswith(".") for one in WORDS.values())


def test_a_trigger_of_a_later_release_is_named() -> None:
    assert words("some_day").name == "some day"
