"""Summaries: what the extractive one says, and which texts may be stored."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.blocks import Block, FileRef
from compaction.context.session import Session
from compaction.proposals.plan import Span, SummaryForm
from compaction.summaries.extract import extractive
from compaction.summaries.model.supported import known_to, unsupported
from compaction.summaries.summary import (
    FORMS,
    NINE,
    NONE,
    WINDOW_HEAD,
    file_operations,
    keyed,
    parse,
    problems,
    render,
)
from tests.build import Talk, coding
from tests.compaction.talks import talks


def _span(blocks: list[Block] | tuple[Block, ...], **fields: object) -> Span:
    values: dict[str, object] = {
        "form": "nine", "blocks": tuple(blocks), "originals": tuple(blocks), "previous": None,
        "budget": 3_000,
    }  # fmt: skip
    return Span(**(values | fields))  # type: ignore[arg-type]


def _worked() -> Talk:
    talk = Talk()
    talk.user("Fix the <parser> & its tests, 请用中文回答")
    talk.respond()
    given = {"todos": [{"content": "read", "status": "completed"},
                       {"content": "fix it", "status": "in_progress"}]}  # fmt: skip
    talk.result(talk.call("TodoWrite", given), "ok")
    read = talk.call("Read", {"file_path": "p.py"}, file=FileRef("p.py", "read"))
    talk.result(read, "def parse(): ...")
    talk.respond()
    talk.result(
        talk.call("Bash", {"command": "pytest -q p"}), "Exit code 1\nerror: boom", error=True
    )
    talk.result(talk.call("Bash", {"command": "ruff check"}), "bad", error=True)
    edit = talk.call("Edit", {"file_path": "p.py"}, file=FileRef("p.py", "edit"))
    talk.result(edit, "updated")
    again = talk.call("Read", {"file_path": "p.py"}, file=FileRef("p.py", "read"))
    talk.result(again, "def parse(): pass")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "pytest -q p"}), "2 passed")
    talk.say("The parser works.\nNext I run ruff again.")
    return talk


def test_sections_are_read_off_the_blocks() -> None:
    talk = _worked()
    found = parse(extractive(_span(talk.blocks)))
    edited = next(b for b in talk.blocks if b.tool == "Edit" and b.type == "tool_result")
    assert list(found) == list(NINE)
    assert found["primary_request_and_intent"] == [
        "Fix the &lt;parser&gt; &amp; its tests, 请用中文回答"
    ]
    assert found["key_technical_concepts"] == ["python"]
    assert found["files_and_code"] == [
        f'<file_operation path="p.py" action="edit" ref="{edited.id}@{edited.sha[:8]}"/>'
    ]
    assert found["errors_and_fixes"] == [
        "Bash pytest -q p: error: boom → changed p.py (fixed)",
        "Bash ruff check: bad (not fixed)",
    ]
    assert found["problem_solving"] == [
        '<command execution="ruff check" status="failed"/>',
        '<command execution="pytest -q p" status="succeeded" times="2"/>',
        "Lint: ruff check: failed; files changed since",
        "Tests: pytest -q p: succeeded; 2 passed",
    ]
    assert found["pending_tasks"] == ["fix it (in progress)"]
    assert found["current_work"] == [
        "Last calls: Edit p.py (succeeded); Read p.py (succeeded); Bash pytest -q p (succeeded)",
        "The parser works. Next I run ruff again.",
    ]
    assert found["optional_next_step"] == ["Quote: “The parser works. Next I run ruff again.”"]


def test_an_earlier_summary_is_carried_on() -> None:
    talk = _worked()
    first = extractive(_span(talk.blocks))
    talk = Talk()
    talk.user("And now the docs")
    talk.respond()
    talk.call("Write", {"path": "d.md"}, file=FileRef("d.md", "write"))
    second = extractive(_span(talk.blocks, previous=first))
    found = parse(second)
    assert found["primary_request_and_intent"][0].startswith("Fix the &lt;parser")
    assert found["primary_request_and_intent"][1:] == ["Latest: And now the docs"]
    assert [(p, a) for p, a, _ in file_operations(second)] == [("p.py", "edit"), ("d.md", "write")]
    assert found["pending_tasks"] == ["fix it (in progress)"]
    assert len(found["all_user_messages"]) == 2
    assert extractive(_span([], previous=second)) == second


def test_todos_that_are_all_done_close_earlier_ones() -> None:
    first = extractive(_span(_worked().blocks))
    talk = Talk()
    talk.result(
        talk.call("update_plan", {"plan": [{"step": "fix it", "status": "completed"}]}), "ok"
    )
    assert parse(extractive(_span(talk.blocks, previous=first)))["pending_tasks"] == []


@pytest.mark.parametrize("form", FORMS)
def test_the_budget_holds(form: SummaryForm) -> None:
    blocks = coding(2_000, 100).blocks
    budget = 400 if form == "window" else 3_000
    text = extractive(_span(blocks, form=form, budget=budget))
    assert problems(text, form) == []
    assert len(text.encode()) / 2.6 <= budget * 1.1


@given(talks())
@settings(max_examples=60)
def test_every_extractive_summary_may_be_stored(session: Session) -> None:
    for form in FORMS:
        text = extractive(_span(session.blocks, form=form))
        assert problems(text, form) == []
        if form != "window":
            ElementTree.fromstring(text.encode("utf-8", "replace"))
        assert extractive(_span(session.blocks, form=form)) == text
        assert unsupported(text, known_to(_span(session.blocks))) == []


def test_nothing_is_said_that_the_source_does_not_hold() -> None:
    """No path, identifier or number that is not in the source."""
    blocks = _worked().blocks
    source = " ".join(b.text + (b.tool or "") + b.id + b.sha for b in blocks)
    text = extractive(_span(blocks))
    for name in NINE:
        text = text.replace(name, "")
    for word in "".join(c if c.isalnum() or c in "._" else " " for c in text).split():
        digits = any(c.isdigit() for c in word)
        assert not digits or word in source, word


GOOD = render({name: ["x"] for name in NINE})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.replace("<current_work>", "<work>"), "section current_work is missing"),
        (GOOD.replace("<summary>", "Here you are:"), "it is not enclosed in <summary>"),
        (render({}), "no section says anything"),
        (GOOD.replace("x", '<file_operation path="a" action="licked"/>'), "unknown action licked"),
        (GOOD.replace("x", '<command execution="a" status="so-so"/>'), "unknown status so-so"),
        (GOOD.replace("x", "<file_operation/>"), "malformed element <file_operation/>"),
        (GOOD.replace(NINE[0], "swap").replace(NINE[1], NINE[0]).replace("swap", NINE[1]),
         "sections are not in order"),
    ],
)  # fmt: skip
def test_what_may_not_be_stored(text: str, problem: str) -> None:
    assert problems(GOOD) == []
    assert problem in problems(text)


def test_the_window_form() -> None:
    text = render({"key_decisions": ["use sqlite"]}, "window")
    assert text.startswith(WINDOW_HEAD)
    assert parse(text, "window") == {
        "key_decisions": ["use sqlite"], "discoveries": [], "unresolved_questions": [],
        "entities_and_relations": [],
    }  # fmt: skip
    assert problems(text, "window") == []
    assert problems(text[9:], "window") == [f"it does not begin with {WINDOW_HEAD!r}"]
    assert NONE in text


def test_operations_have_keys_that_stay() -> None:
    """A file or command keeps its number over later summaries; no number names another thing."""
    first = extractive(_span(_worked().blocks, form="progress"))
    keys = keyed(first)
    edited = next(key for key, value in keys.items() if value == "p.py")
    assert edited.startswith("fileOp_") and edited.endswith("_path")
    assert keys[edited.replace("_path", "_action")] == "edit"
    assert "pytest -q p" in keys.values() and "ruff check" in keys.values()
    talk = _worked()
    talk.respond()
    talk.call("Write", {"path": "d.md"}, file=FileRef("d.md", "write"))
    later = keyed(extractive(_span(talk.blocks[3:], form="progress", previous=first)))
    assert {key: value for key, value in later.items() if key in keys} == keys
    assert "d.md" in later.values() and len(set(later)) == len(later)


def test_elements_without_keys_are_numbered_in_order() -> None:
    keys = keyed(extractive(_span(_worked().blocks)))
    assert keys == {
        "fileOp_0_path": "p.py", "fileOp_0_action": "edit",
        "cmd_0_text": "ruff check", "cmd_1_text": "pytest -q p",
    }  # fmt: skip


@pytest.mark.parametrize("old", FORMS)
@pytest.mark.parametrize("new", FORMS)
def test_a_summary_of_any_form_is_carried_into_any_other(
    old: SummaryForm, new: SummaryForm
) -> None:
    first = extractive(_span(_worked().blocks, form=old))
    second = extractive(_span([], form=new, previous=first))
    assert problems(second, new) == []
    assert "p.py" in second and "Fix the &lt;parser" in second


def test_two_earlier_summaries_are_both_carried() -> None:
    talk = Talk()
    talk.user("And the docs")
    talk.respond()
    talk.call("Write", {"path": "d.md"}, file=FileRef("d.md", "write"))
    both = "\n".join([extractive(_span(_worked().blocks)), extractive(_span(talk.blocks))])
    text = extractive(_span([], previous=both))
    assert [path for path, _, _ in file_operations(text)] == ["p.py", "d.md"]


def test_what_failed_before_is_fixed_once_it_succeeds() -> None:
    first = extractive(_span(_worked().blocks))
    talk = Talk()
    talk.respond()
    talk.result(talk.call("Bash", {"command": "ruff check"}), "all good")
    errors = parse(extractive(_span(talk.blocks, previous=first)))["errors_and_fixes"]
    assert "Bash ruff check: bad (fixed)" in errors


@given(st.lists(talks(), min_size=10, max_size=10), st.sampled_from(list(FORMS)))
@settings(max_examples=25)
def test_a_summary_of_summaries_does_not_grow(parts: list[Session], form: SummaryForm) -> None:
    """Over ten cycles at most 1.2 times what the budget takes."""
    budget = 400 if form == "window" else 1_000
    previous: str | None = None
    for part in parts:
        previous = extractive(_span(part.blocks, form=form, budget=budget, previous=previous))
        assert problems(previous, form) == []
        assert len(previous.encode("utf-8", "replace")) / 2.6 <= 1.2 * (budget + 100)
    assert extractive(_span([], form=form, budget=budget, previous=previous)) == previous
