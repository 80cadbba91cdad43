"""What people and the agent said to each other, in an extractive summary."""

from __future__ import annotations

import pytest

from compaction.context.blocks import FileRef
from compaction.proposals.plan import Span, SummaryForm
from compaction.summaries.extract import extractive
from compaction.summaries.said import asked_by
from compaction.summaries.shares import QUOTED_ABOVE
from compaction.summaries.summary import UNKNOWN, parse
from tests.build import Talk

NO = "The user doesn't want to proceed with this tool use. To tell you, the user said:"


def _sections(talk: Talk, budget: int = 3_000, form: SummaryForm = "nine") -> dict[str, list[str]]:
    blocks = tuple(talk.blocks)
    return parse(extractive(Span(form, blocks, blocks, None, budget)), form)


def _run(talk: Talk, command: str, result: str, *, error: bool = False) -> None:
    talk.respond()
    talk.result(talk.call("Bash", {"command": command}), result, error=error)


@pytest.mark.parametrize(
    ("text", "answer", "question"),
    [
        ("It is there. Shall I push it?", "yes", "Shall I push it?"),
        ("Which one?\n\n1. **Small** - one file\n2. Big", "1", "Small - one file"),
        ("- **A)** in memory\n- **B)** on disk\nWhich?", "b.", "on disk"),
        ("Option A: fast.\nWhat do you prefer?", "no", "What do you prefer?"),
        ("要提交吗？好的", "1", "要提交吗？"),
        ("Done.", "thanks", ""),
        ("", "yes", ""),
    ],
)
def test_what_a_short_message_answers(text: str, answer: str, question: str) -> None:
    assert asked_by(text, answer) == question


def test_a_short_answer_has_its_question_and_a_long_one_has_none() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.say("Found it. Shall I also change the lexer?")
    talk.user("yes")
    found = _sections(talk)
    said = "yes (answers: Shall I also change the lexer?)"
    assert found["all_user_messages"] == ["Fix the parser", said]
    assert found["primary_request_and_intent"][-1] == f"Latest: {said}"
    assert found["optional_next_step"] == ["Quote: “yes” (answers: Shall I also change the lexer?)"]
    talk.say("Done. Shall I push it to the main branch as well?")
    talk.user("No, let us look at the tests first")
    talk.say("Done. Shall I push it?")
    talk.user("why?")
    last = _sections(talk)["all_user_messages"][-2:]
    assert last == ["No, let us look at the tests first", "why?"]


def test_a_command_that_sends_a_prompt_is_a_request() -> None:
    talk = Talk()
    talk.user("Fix it")
    talk.say("Fixed. Shall I push it?")
    talk.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    assert _sections(talk)["primary_request_and_intent"] == ["Fix it", "Latest: /review"]


def test_what_a_program_says_for_the_agent_is_not_its_last_word() -> None:
    talk = Talk()
    talk.user("Fix it")
    talk.say("Let me look at the lexer.")
    talk.say("No response requested.")
    found = _sections(talk)
    assert found["current_work"] == ["Let me look at the lexer."]
    assert found["optional_next_step"] == ["Quote: “Let me look at the lexer.”"]


def test_the_longest_text_since_a_person_wrote_stays_with_the_last_two() -> None:
    talk = Talk()
    talk.user("Fix it")
    plan = "To do: " + "change the parser and " * 30
    said = [f"An old plan: {plan}", plan.strip(), "Now the parser", "a", "b"]
    talk.say(said[0])
    talk.user("All of it")
    for text in said[1:]:
        talk.say(text)
    assert _sections(talk)["current_work"] == [plan.strip(), "a", "b"]


def test_the_words_of_a_refusal_are_the_latest_request_and_the_next_step() -> None:
    talk = Talk()
    talk.user("Save it")
    _run(talk, "git push", f"{NO}\nnever push, open a draft", error=True)
    found = _sections(talk)
    assert found["primary_request_and_intent"] == [
        "Save it",
        "Constraint: “never push, open a draft”",
        "Latest: never push, open a draft",
    ]
    assert found["optional_next_step"] == ["Quote: “never push, open a draft”"]


def test_the_next_step_counts_the_calls_since() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.say("Let me run the tests")
    assert _sections(talk)["optional_next_step"] == ["Quote: “Let me run the tests”"]
    _run(talk, "ls", "a.py")
    step = "Quote: “Let me run the tests” (1 call since, succeeded)"
    assert _sections(talk)["optional_next_step"] == [step]
    _run(talk, "cat b.py", "No such file", error=True)
    step = "Quote: “Let me run the tests” (2 calls since, the last one failed)"
    assert _sections(talk)["optional_next_step"] == [step]


def test_what_the_agent_reported_before_each_message() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.say("Let me look at everything that could have to do with the parser.")
    talk.say("The parser is fixed: it now accepts empty lines, and a test covers them.")
    talk.user("And the lexer?")
    talk.say("Yes.")
    talk.user("Please look again")
    assert _sections(talk)["problem_solving"] == [
        "Reported: “The parser is fixed: it now accepts empty lines, and a test covers them.”"
    ]


def test_what_is_open_is_unknown_when_a_person_wrote_after_the_list_was_done() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.respond()
    given = {"todos": [{"content": "fix", "status": "completed"}]}
    talk.result(talk.call("TodoWrite", given), "ok")
    assert _sections(talk)["pending_tasks"] == []
    talk.user("It still fails")
    assert _sections(talk)["pending_tasks"] == [UNKNOWN]


def test_the_first_message_is_not_quoted_twice() -> None:
    talk = Talk()
    talk.user("Fix the parser " + "and its tests " * 60)
    talk.user("Now")
    found = _sections(talk)
    assert len(found["primary_request_and_intent"][0]) > 800
    first, second = found["all_user_messages"]
    assert first.startswith("Fix the parser and its") and first.endswith("…")
    assert len(first) < 3 * QUOTED_ABOVE
    assert second == "Now"


def test_words_get_what_other_sections_leave_before_commands() -> None:
    talk = Talk()
    for number in range(12):
        talk.user(f"part {number} of it: " + "word " * 20)
        for other in range(12):
            _run(talk, f"tool-{number}-{other} --with {'x' * 80}", "ok")
    found = _sections(talk, 1_800)
    assert all(line.endswith("word") for line in found["all_user_messages"][1:])
    assert 0 < len(found["problem_solving"]) < 144


def test_a_cancelled_call_and_a_search_without_result_are_no_failures() -> None:
    talk = Talk()
    talk.user("Fix it")
    _run(
        talk, "make build", "<tool_use_error>Sibling tool call errored</tool_use_error>", error=True
    )
    assert _sections(talk)["current_work"] == ["Last calls: Bash make build (cancelled)"]
    _run(talk, "grep -n parse a.py", "Exit code 1", error=True)
    found = _sections(talk)
    assert found["errors_and_fixes"] == []
    assert not [line for line in found["problem_solving"] if line.startswith("Build: ")]


def test_a_script_is_not_fixed_by_another_script_of_the_same_runner() -> None:
    talk = Talk()
    _run(talk, "npm run test", "FAIL a.test.ts\nTests: 1 failed, 2 passed", error=True)
    _run(talk, "npm run lint", "0 problems")
    assert _sections(talk)["errors_and_fixes"] == [
        "Bash npm run test: failed; Tests: 1 failed, 2 passed (not fixed)"
    ]
    _run(talk, "npm run test", "Tests: 3 passed")
    assert _sections(talk)["errors_and_fixes"] == [
        "Bash npm run test: failed; Tests: 1 failed, 2 passed (fixed)"
    ]


def test_words_after_a_silent_refusal_are_one_message() -> None:
    talk = Talk()
    talk.user("Fix it")
    talk.user("Save it")
    _run(talk, "git push", "exec command rejected by user", error=True)
    talk.user("open a draft instead")
    talk.say("The draft is open, and everybody can read it: https://example.com/draft/12")
    talk.user("push")
    asked = _sections(talk, form="window")["key_decisions"]
    assert asked[:4] == [
        "asked for: Fix it",
        "asked for: Save it",
        "asked for: open a draft instead",
        "asked for: push",
    ]


def test_failed_readings_come_first_and_searches_have_no_count() -> None:
    talk = Talk()
    talk.user("Fix it")
    _run(talk, "make deploy", "error: no such host", error=True)
    talk.respond()
    use = talk.call("Read", {"file_path": "a.py"}, file=FileRef("a.py", "read"))
    talk.result(use, "File does not exist.", error=True)
    for name in ("one", "two"):
        _run(talk, f"grep -n {name} b.py", name)
    found = _sections(talk)
    assert [line.split(":")[0] for line in found["errors_and_fixes"]] == [
        "Read a.py",
        "Bash make deploy",
    ]
    assert (
        found["problem_solving"][0] == '<command execution="grep -n two b.py" status="succeeded"/>'
    )


def test_the_plan_after_a_finished_list_is_the_next_step() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.respond()
    given = {"todos": [{"content": "fix", "status": "completed"}]}
    talk.result(talk.call("TodoWrite", given), "ok")
    assert _sections(talk, form="progress")["next_plan"] == []
    talk.user("It still fails")
    assert _sections(talk, form="progress")["next_plan"] == ["Quote: “It still fails”"]
