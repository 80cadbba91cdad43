"""Every cause of a break says what to do and where it was."""

from __future__ import annotations

from typing import get_args

from compaction.cache.causes import ADVICE, advice, detail
from compaction.cache.uses import Break, Cause


def test_every_cause_has_a_title_and_one_sentence_of_advice() -> None:
    assert set(ADVICE) == set(get_args(Cause))
    for cause in get_args(Cause):
        assert str(Break(cause)) and advice(cause).endswith(".")


def test_the_place_is_given_where_it_is_known() -> None:
    assert (
        detail(Break("tools", 5000))
        == "5,000 tokens were paid again although they had been cached."
    )
    assert detail(Break("edit", 5000, after=1200)) == (
        "5,000 tokens were written again after the edit, after the first 1,200, which could still "
        "be read."
    )
    assert detail(Break("model", 5000, after=0)).endswith("no part of the prompt could be read.")
