"""What an agent needs to go on from an extractive summary alone."""

from __future__ import annotations

from compaction.context.blocks import Block, FileRef
from compaction.proposals.plan import Span
from compaction.summaries.extract import extractive
from compaction.summaries.summary import UNKNOWN, file_operations, parse
from tests.build import Talk

NO = "The user doesn't want to proceed with this tool use. To tell you, the user said:"


def _sections(talk: Talk, previous: str | None = None, **fields: object) -> dict[str, list[str]]:
    return parse(_text(talk, previous, **fields))


def _text(talk: Talk, previous: str | None = None, **fields: object) -> str:
    blocks = tuple(talk.blocks)
    return extractive(Span("nine", blocks, blocks, previous, 3_000, **fields))  # type: ignore[arg-type]


def _edit(talk: Talk, new: str, result: str = "ok", *, error: bool = False) -> Block:
    talk.respond()
    given = {"file_path": "a.py", "old_string": "x", "new_string": new}
    use = talk.call("Edit", given, file=FileRef("a.py", "edit"))
    return talk.result(use, result, error=error)


def _run(talk: Talk, command: str, result: str, *, error: bool = False) -> None:
    talk.respond()
    talk.result(talk.call("Bash", {"command": command}), result, error=error)


def test_a_rejected_edit_is_no_failure_no_change_and_never_fixed() -> None:
    talk = Talk()
    talk.user("Rename the field")
    _edit(talk, "y", f"{NO}\nkeep the old name & add an alias", error=True)
    found = _sections(talk)
    line = "Edit a.py: rejected by the user: “keep the old name &amp; add an alias”"
    assert found["errors_and_fixes"] == [line]
    assert found["files_and_code"] == []
    assert found["all_user_messages"] == [
        "Rename the field",
        "keep the old name &amp; add an alias",
    ]
    assert found["current_work"] == ["Last calls: Edit a.py (rejected by the user)"]
    first = _text(talk)
    later = Talk()
    _edit(later, "z")
    found = _sections(later, first)
    assert found["errors_and_fixes"] == [line]
    assert [(path, action) for path, action, _ in file_operations(_text(later, first))] == [
        ("a.py", "edit")
    ]


def test_commands_to_the_client_are_no_messages() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.user("<command-name>/model</command-name>\n<command-args>opus</command-args>")
    talk.user("<local-command-stdout>Set model to opus</local-command-stdout>")
    talk.user("/exit")
    found = _sections(talk)
    assert found["all_user_messages"] == ["Fix the parser"]
    assert found["primary_request_and_intent"] == ["Fix the parser"]
    assert found["optional_next_step"] == ["Quote: “Fix the parser”"]


def test_constraints_are_quoted_and_carried() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.user("It is slow. Never touch the lexer. Thanks a lot for that")
    talk.user("go on")
    first = _text(talk)
    later = Talk()
    later.user("And the docs, only in English")
    later.user("now the tests")
    assert _sections(later, first)["primary_request_and_intent"] == [
        "Fix the parser", "Constraint: “Never touch the lexer.”",
        "Constraint: “And the docs, only in English”", "Latest: now the tests",
    ]  # fmt: skip


def test_a_message_that_begins_like_a_constraint_is_the_latest_one() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    later = Talk()
    later.user("Constraint: SQLite")
    assert _sections(later, _text(talk))["primary_request_and_intent"] == [
        "Fix the parser", "Latest: Constraint: SQLite",
    ]  # fmt: skip


def test_the_newest_state_of_each_check() -> None:
    talk = Talk()
    _run(talk, "pytest -q", "FAILED t.py::test_a - boom\n1 failed, 2 passed in 1s", error=True)
    _run(talk, "ruff check", "Found 3 errors.", error=True)
    _edit(talk, "y")
    _run(talk, "cd /x && pytest -q", "FAILED t.py::test_b - bam\n1 failed, 2 passed in 1s")
    first = _text(talk)
    tests = "Tests: pytest -q: failed; 1 failed, 2 passed in 1s; failing: t.py::test_b"
    lint = "Lint: ruff check: failed; Found 3 errors.; files changed since"
    assert parse(first)["problem_solving"][-2:] == [lint, tests]
    later = Talk()
    _run(later, "pytest -q", "3 passed in 1s")
    assert _sections(later, first)["problem_solving"][-2:] == [
        '<command execution="pytest -q" status="succeeded"/>',
        "Tests: pytest -q: succeeded; 3 passed in 1s",
    ]
    assert lint in _sections(later, first)["problem_solving"]
    assert tests not in _sections(later, first)["problem_solving"]


def test_each_attempt_keeps_the_lines_that_distinguish_it() -> None:
    talk = Talk()
    _run(talk, "go build ./...", "# x/y\na.go:3:1: undefined: foo\nExit code 1", error=True)
    _edit(talk, "y")
    _run(talk, "go build ./...", "a.go:3:1: undefined: foo\nb.go:9:1: missing return", error=True)
    _edit(talk, "z")
    _run(talk, "go build ./...", "")
    assert _sections(talk)["errors_and_fixes"] == [
        "Bash go build ./...: a.go:3:1: undefined: foo → b.go:9:1: missing return → changed a.py "
        "(fixed)"
    ]


def test_a_failure_of_an_earlier_summary_is_not_fixed_by_output_that_reports_failures() -> None:
    talk = Talk()
    _run(talk, "pytest -q | tail", "E   KeyError: 'a'\n1 failed")
    first = _text(talk)
    line = "Bash pytest -q: E KeyError: 'a'"
    assert parse(first)["errors_and_fixes"] == [f"{line} (not fixed)"]
    later = Talk()
    _run(later, "pytest -q | tail", "E   KeyError: 'b'\n1 failed")
    assert _sections(later, first)["errors_and_fixes"] == [
        "Bash pytest -q: E KeyError: 'b' (not fixed)"
    ]
    better = Talk()
    _run(better, "pytest -q | tail", "2 passed")
    assert _sections(better, first)["errors_and_fixes"] == [f"{line} (fixed)"]


def test_a_failure_of_a_command_with_a_colon_is_fixed_in_a_later_summary() -> None:
    talk = Talk()
    for command in ("git commit -m 'fix: a'", "curl -H 'a:: b' c"):
        _run(talk, command, "error: hook failed", error=True)
    first = _text(talk)
    later = Talk()
    _run(later, "git commit -m 'fix: a'", "[main 1ab2c3d] fix: a")
    assert _sections(later, first)["errors_and_fixes"] == [
        "Bash git commit -m 'fix a': error: hook failed (fixed)",
        "Bash curl -H 'a b' c: error: hook failed (not fixed)",
    ]


def test_decisions_are_quoted() -> None:
    talk = Talk()
    talk.respond()
    talk.say("Read it. The root cause is a missing lock in `load_rows`.")
    assert "The root cause is a missing lock in `load_rows`." in _sections(talk)["problem_solving"]


def test_files_say_what_changed() -> None:
    talk = Talk()
    _edit(talk, "x\ndef load_rows():\n    return 1\nclass Row: ...")
    (line,) = _sections(talk)["files_and_code"]
    assert ' action="edit" names="load_rows, Row" ref="' in line
    assert [(path, action) for path, action, _ in file_operations(line)] == [("a.py", "edit")]


def test_tasks_are_followed_over_summaries_by_their_number() -> None:
    talk = Talk()
    for number, subject in ((1, "read"), (2, "fix it")):
        talk.respond()
        use = talk.call("TaskCreate", {"subject": subject})
        talk.result(use, f"Task #{number} created successfully")
    first = _text(talk)
    assert parse(first)["pending_tasks"] == ["#1 read", "#2 fix it"]
    later = Talk()
    later.respond()
    later.result(later.call("TaskUpdate", {"taskId": "1", "status": "completed"}), "Updated")
    assert _sections(later, first)["pending_tasks"] == ["#2 fix it"]


def test_unknown_is_not_none() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "ls"}), "a.py")
    assert _sections(talk)["pending_tasks"] == [UNKNOWN]
    done = Talk()
    done.result(done.call("TodoWrite", {"todos": [{"content": "a", "status": "completed"}]}), "ok")
    assert _sections(done)["pending_tasks"] == []
    assert _sections(talk, _text(done))["pending_tasks"] == [UNKNOWN]
    assert _sections(Talk(), _text(done))["pending_tasks"] == []
    assert _sections(done, _text(talk))["pending_tasks"] == []
    assert _sections(talk)["key_technical_concepts"] == []


def test_names_that_no_other_section_has() -> None:
    talk = Talk()
    talk.user("Look at parse_all")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "cat a"}), "load_rows parse_all")
    talk.say("Done.")
    assert _sections(talk)["key_technical_concepts"] == ["load_rows"]
    later = _sections(Talk(), _text(talk))
    assert later["key_technical_concepts"] == ["load_rows"]


def test_an_open_request_is_the_next_step() -> None:
    talk = Talk()
    talk.user("Fix the parser")
    talk.respond()
    talk.say("Next I read it.")
    assert _sections(talk)["optional_next_step"] == ["Quote: “Next I read it.”"]
    talk.user("No, first the lexer")
    assert _sections(talk)["optional_next_step"] == ["Quote: “No, first the lexer”"]


def test_long_messages_are_shortened_before_any_is_dropped() -> None:
    talk = Talk()
    for number in range(12):
        talk.user(f"part {number} of it: " + "word " * 400)
    blocks = tuple(talk.blocks)
    text = extractive(Span("nine", blocks, blocks, None, 1_500))
    said = parse(text)["all_user_messages"]
    assert [line[:10].split(" of")[0].strip() for line in said] == [f"part {n}" for n in range(12)]
