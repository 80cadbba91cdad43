"""The title of a session whose log has none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sessions.actions.record.append import first_words

COMMAND = "<command-message>init is running…</command-message> <command-name>/init</command-name>"


def taken(*texts: str, human: bool = True) -> Any:
    """Messages with a text each, as far as titles read them."""
    block = {"type": "text", "kind": "user"}
    record = SimpleNamespace(record=SimpleNamespace(human=human))
    return [
        SimpleNamespace(message=record, blocks=[SimpleNamespace(**block, preview=text)])
        for text in texts
    ]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (("Fix the port.", "And the host."), "Fix the port."),
        (("/mode", "Fix the port."), "Fix the port."),
        (("/mode",), "/mode"),
        ((COMMAND, "Go on."), "/init"),
        (("<local-command-stdout>done</local-command-stdout>", "Fix the port."), "Fix the port."),
    ],
)
def test_a_title_is_what_a_person_asked_for_first(said: tuple[str, ...], title: str):
    assert first_words(taken(*said)) == title
    assert first_words([*taken("Answer.", human=False), *taken(*said)]) == title


def test_without_a_person_the_first_message_is_the_title():
    assert first_words(taken("Solve the puzzle.", "Done?", human=False)) == "Solve the puzzle."
