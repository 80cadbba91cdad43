"""Statements: sentences that go on to matter, and names that are needed again."""

from __future__ import annotations

import pytest

from compaction.context.blocks import FileRef
from compaction.seen.statements import (
    MOST_CONSTRAINTS,
    constraints,
    decisions,
    next_step,
    telling_names,
)
from tests.build import Talk


@pytest.mark.parametrize(
    "limit",
    [
        "don't push to GitHub",
        "Only support Linux and macOS.",
        "You must never delete rows!",
        "I prefer small commits.",
        "Use uv instead of pip.",
        "不要修改测试文件。",
        "Bitte nur auf Deutsch antworten.",
    ],
)
def test_constraints_are_whole_sentences(limit: str) -> None:
    assert constraints([f"Fix the parser. {limit}\nThanks a lot"]) == [limit]


def test_constraints_come_from_prose_and_only_the_newest_stay() -> None:
    assert constraints(
        ["See:\n```\nassert never reached\n```\n", "- only this one", "Is it only me?"]
    ) == ["only this one"]
    many = [f"never touch part {number}" for number in range(40)]
    assert constraints(many) == many[-MOST_CONSTRAINTS:]


def test_decisions_give_a_reason() -> None:
    said = [
        "I read it. The root cause is a missing lock.",
        "Done.\nI'll use uv because it is fast.",
    ]
    assert decisions(said) == [
        "The root cause is a missing lock.",
        "I'll use uv because it is fast.",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "it always lists these twice",
        "This works without changes.",
        "The log is never written here",
        f"The log is only written here. {'It is long. ' * 150}",
        "| never | always |",
    ],
)
def test_descriptions_are_no_constraints(said: str) -> None:
    assert constraints([said]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A. is fine, but never push", "A. is fine, but never push"),
        ("3. always run the linter", "always run the linter"),
        ("- **Tests** - only the fast ones", "Tests - only the fast ones"),
        ("**Only** push to a fork", "Only push to a fork"),
        ("It is long.\nwork without touching it", "work without touching it"),
    ],
)
def test_what_begins_a_line_is_no_part_of_a_sentence(text: str, said: str) -> None:
    assert constraints([text]) == [said]


def test_a_reason_after_a_colon_belongs_to_the_decision() -> None:
    text = "I take A because:\n- it is fast and small\n\nWe take B because:"
    assert decisions([text]) == ["I take A because: it is fast and small"]
    text = "The reason is this:\n- It locks because of rows.\n- It is slow."
    assert decisions([text]) == ["The reason is this: It locks because of rows."]
    assert decisions(["| 12 | a.go | uses x instead of y |"]) == []


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("All done.\n\nNext I run ruff.\n\nIt is green.", "Next I run ruff."),
        ("I see it.\nLet me fix:\n- a\n- b", "I see it.\nLet me fix:\n- a\n- b"),
        ("I see it.\n\nLet me fix:\n\n- a\n- b", "Let me fix:\n\n- a\n- b"),
        ("Nothing left. It is over.", "Nothing left. It is over."),
        (f"{'It was long. ' * 60}Let me end it.", "Let me end it."),
        (f"I'll see. {'It is long. ' * 40}Now I end. It is", "Now I end. It is"),
        ("", ""),
    ],
)
def test_next_step_is_word_for_word(text: str, step: str) -> None:
    assert next_step(text) == step


def test_names_are_ranked_by_who_said_them_and_when() -> None:
    talk = Talk()
    talk.user("look at parse_all")
    talk.respond()
    use = talk.call("Read", {"path": "src/app.py"}, file=FileRef("src/app.py", "read"))
    talk.result(
        use, "old_name\\n v1.2.3 h1:abcDEF os.path console.log src/app.py app.py 4711 a\\told_name"
    )
    talk.say("parse_all calls load_rows")
    assert telling_names(talk.blocks) == ["old_name", "load_rows", "parse_all"]
