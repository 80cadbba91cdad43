"""What a summary is asked for: its form's sections, what people said, what was left to do."""

from __future__ import annotations

import pytest

from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.lines import IndexedLines
from compaction.summaries.model.asked import AskedSection, parts_of
from compaction.summaries.sections import form_of, presence
from compaction.summaries.summary import NINE, render
from tests.build import Talk

NUMBERED = """This session is being continued.

1. Primary Request and Intent:
   Fix the parser.
2. Key Technical Concepts:
   - None
3. Files and Code Sections:
   p.py
4. Errors and fixes:
   None.
"""


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (render({}), "nine"),
        ("Previous context summary:\nDiscoveries:\n- x", "window"),
        (NUMBERED, "numbered"),
        ("So far so good.\n1. Read files", "free"),
        ("", "free"),
    ],
)
def test_forms(text: str, form: str) -> None:
    assert form_of(text) == form


def test_a_section_is_there_says_none_or_is_missing() -> None:
    states = {one.name: one.state for one in presence(NUMBERED, "numbered")}
    assert list(states) == list(NINE)
    assert [states[name] for name in NINE[:5]] == ["present", "none", "present", "none", "missing"]
    made = render({"current_work": ["tests"]})
    states = {one.name: one.state for one in presence(made, "nine")}
    assert (states["current_work"], states["pending_tasks"]) == ("present", "none")
    assert presence("So far.", "free") == []


def talked() -> Talk:
    talk = Talk()
    talk.user("Please fix the parser of the config files")
    talk.user("<command-name>/clear</command-name>")
    talk.user("[Request interrupted by user]")
    talk.respond()
    given = {"todos": [{"content": "read the parser", "status": "completed"},
                       {"content": "write tests for it", "status": "in_progress"},
                       {"content": "ask about the name", "status": "pending"}]}  # fmt: skip
    talk.result(talk.call("TodoWrite", given), "Todos have been modified")
    talk.user("and never touch the lexer 请不要改")
    return talk


def counts(parts: list[AskedSection]) -> dict[str, tuple[str, int | None, int | None]]:
    return {part.name: (part.state, part.covered, part.of) for part in parts if part.of is not None}


def test_people_and_todos_are_covered_or_not() -> None:
    found = counts(parts_of(talked().blocks, "fix the parser of config files\nwrite tests for", ()))
    assert found == {"all_user_messages": ("unasked", 1, 2), "pending_tasks": ("unasked", 1, 2)}
    whole = extractive(Span("nine", tuple(talked().blocks), tuple(talked().blocks), None, 3_000))
    found = counts(parts_of(talked().blocks, whole, ()))
    assert found == {"all_user_messages": ("present", 2, 2), "pending_tasks": ("present", 2, 2)}


def test_a_list_that_still_stands_is_covered() -> None:
    talk = talked()
    assert counts(parts_of(talk.blocks[:3], "", talk.blocks[3:])) == {
        "all_user_messages": ("unasked", 0, 1), "pending_tasks": ("unasked", 2, 2),
    }  # fmt: skip
    assert parts_of([], "So far.", ()) == []


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("Write the tests", True),
        ("write some good tests first please", False),
        ("请不要改词法", True),
        ("别动语法分析器", False),
        ("the", True),
        ("then", False),
        ("?!", True),
    ],
)
def test_most_words_in_one_line_tell_a_sentence(sentence: str, answer: bool) -> None:
    assert (
        IndexedLines("1. write the tests of it\n请不要改分词器和词法\nfirst").say(sentence)
        == answer
    )


MERGE = "Automatic merge failed; fix conflicts and then commit the result."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("git said: automatic merge failed;\n  fix conflicts and then commit the result.", True),
        ("The automatic merge left conflicts to fix before a commit.", True),
        ("Merge the conflicts first, and then commit.", False),
        ("automatic\nmerge\nfix\nconflicts\ncommit\nresult", False),
        (" ".join(f"{word} {'other ' * 30}" for word in MERGE.split()), False),
        ("It failed, and then the one that failed before was fixed.", False),
        ("", False),
    ],
)
def test_an_error_is_covered_by_its_distinctive_part(text: str, answer: bool) -> None:
    assert IndexedLines(text).say(MERGE) == answer


@pytest.mark.parametrize(
    ("summary", "answer"),
    [
        ('- "Paint the door [the whole plan…]"', 0),
        ('- "Implement this colour plan: [plan…]"', 1),
        ("- Implement it. This colour plan is good.", 0),
    ],
)
def test_a_message_is_covered_by_its_opening_words(summary: str, answer: int) -> None:
    talk = Talk()
    talk.user("Implement this colour plan:\n\n# Doors\n" + "Every hinge gets varnish. " * 9)
    (part,) = [part for part in parts_of(talk.blocks, summary, ()) if part.of is not None]
    assert (part.covered, part.of) == (answer, 1)


def test_common_words_open_no_message() -> None:
    assert not IndexedLines("- so what do you want to use?").quote(
        "So what do you need of the horn"
    )
