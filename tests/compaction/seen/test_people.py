"""People: what they said, what programs wrote in their name, what they rejected."""

from __future__ import annotations

import pytest

from compaction.context.blocks import FileRef
from compaction.seen.people import answers_in, rejections, words_of
from tests.build import Talk

NO = "The user doesn't want to proceed with this tool use. The tool use was rejected."
COMMAND = "<command-message>x</command-message>\n<command-name>{}</command-name>\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix the parser", "Fix the parser"),
        ("/exit", ""),
        (" /mode ", ""),
        ("/tmp is full", "/tmp is full"),
        ("<command-name>/model</command-name>\n<command-args>opus</command-args>", ""),
        ("<command-name>/exit</command-name>", ""),
        (COMMAND.format("/plan") + "<command-args>draft the new API</command-args>",
         "/plan draft the new API"),
        (COMMAND.format("/review"), "/review"),
        (COMMAND.format("/review") + "<command-args>#12</command-args>", "/review #12"),
        ("<local-command-stdout>Set model to x</local-command-stdout>", ""),
        ("<local-command-caveat>Caveat: …</local-command-caveat>", ""),
        ("<bash-input>pwd</bash-input>", ""),
        ("<task-notification>\n<task-id>1</task-id>", ""),
        ("[Request interrupted by user for tool use]", ""),
        ("This session is being continued from a previous conversation", ""),
        ("Base directory for this skill: /skills/plan", ""),
        ("<system-reminder>be nice</system-reminder>\nGo on", "Go on"),
        ("Look here\n<ide_opened_file>a.py</ide_opened_file>", "Look here"),
        ("<system-reminder>never closed", ""),
        ("Write <div>x</div>", "Write <div>x</div>"),
    ],
)  # fmt: skip
def test_words(text: str, words: str) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (f"{NO} To tell you how to proceed, the user said:\nuse uv", "use uv"),
        (f"{NO} To tell you how to proceed, the user said:\nno\n\nNote: The user's next message …",
         "no"),
        (f"{NO} STOP what you are doing.", ""),
        ("The user denied this operation.\n<feedback>\nwrong file\n</feedback>", "wrong file"),
        ("The user rejected permission to use this tool with the following feedback: later",
         "later"),
        ("exec command rejected by user", ""),
    ],
)  # fmt: skip
def test_rejections_of_every_client(result: str, words: str) -> None:
    talk = Talk()
    talk.respond()
    use = talk.call("Edit", {"path": "a.py"}, file=FileRef("a.py", "edit"))
    talk.result(use, result, error=True)
    (found,) = rejections(talk.blocks)
    assert (found.use, found.words) == (use, words)


def test_a_message_after_a_silent_rejection_gives_its_reason() -> None:
    talk = Talk()
    for said in ("first ask me", "go on"):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "rm x"}), NO, error=True)
        talk.user("[Request interrupted by user for tool use]")
        if said == "go on":
            talk.respond()
            talk.say("Fine.")
        talk.user(said)
    talk.result(talk.call("Bash", {"command": "ls"}), "boom", error=True)
    assert [one.words for one in rejections(talk.blocks)] == ["first ask me", ""]


def test_answers_to_questions_are_words_of_people() -> None:
    talk = Talk()
    use = talk.call("AskUserQuestion", {"questions": []})
    said = 'Your questions have been answered: "Which?"="Both". You can now continue with these.'
    assert answers_in(talk.result(use, said)) == '"Which?"="Both"'
    assert answers_in(talk.result(use, "Both")) == ""
