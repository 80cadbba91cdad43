"""Which replies that an agent sends back are the model's own."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.resent import folders_in, is_resent

Json = dict[str, Any]

THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
TEXT = {"type": "text", "text": "I edit."}
EDIT = {"file_path": "a.py", "old_string": "1", "new_string": "2"}


def call(given: Any, **more: Any) -> Json:
    return {"type": "tool_use", "id": "t1", "name": "Edit", "input": given, **more}


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (EDIT, {"replace_all": False, **EDIT}),
        (EDIT, dict(reversed(EDIT.items()))),
        ({"a": None}, {}),
        ({"edits": [{"at": 1}]}, {"edits": [{"at": 1, "all": False}]}),
        ({"content": "x   \ny\n\n"}, {"content": "x\ny\n"}),
        ({"command": "cd /home/me/app && ls"}, {"command": "ls"}),
        ({"timeout": "5000", "all": "true"}, {"timeout": 5000, "all": True}),
    ],
)
def test_a_completed_input_is_the_same_call(said: Json, sent: Json) -> None:
    more = {"cache_control": {"type": "ephemeral"}}
    assert is_resent([THINKING, TEXT, call(said)], [THINKING, TEXT, call(sent, **more)])


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (EDIT, {**EDIT, "new_string": "3"}),
        (EDIT, {"file_path": "a.py"}),
        ({"edits": [{"at": 1}]}, {"edits": [{"at": 1}, {"at": 2}]}),
        ({"content": "  x"}, {"content": "x"}),
        ({"content": "x\ny"}, {"content": "x"}),
        ({"command": "cd /a && rm b && ls"}, {"command": "ls"}),
        ({"command": "cd /a; ls && pwd"}, {"command": "pwd"}),
        ({"n": 1}, {"n": True}),
        ({"n": "5"}, {"n": 6}),
        ({"n": 0}, {"n": None}),
    ],
)
def test_another_value_is_another_call(said: Json, sent: Json) -> None:
    assert not is_resent([call(said)], [call(sent)])


@pytest.mark.parametrize(
    "sent",
    [
        [TEXT, call(EDIT)],
        [THINKING, call(EDIT)],
        [THINKING, TEXT],
        [TEXT, THINKING, call(EDIT)],
        [THINKING, {"type": "text", "text": "I edited."}, call(EDIT)],
        [{**THINKING, "signature": "other"}, TEXT, call(EDIT)],
        [THINKING, TEXT, call(EDIT, id="t2")],
        [THINKING, TEXT, call(EDIT, name="Write")],
        [THINKING, TEXT, call(EDIT), call(EDIT)],
    ],
)
def test_other_blocks_are_another_reply(sent: list[Json]) -> None:
    said = [THINKING, TEXT, call(EDIT)]
    assert is_resent(said, [*said])
    assert not is_resent(said, sent)


UNSIGNED = {"type": "thinking", "thinking": "Hm."}


@pytest.mark.parametrize(
    "sent",
    [
        [TEXT, call(EDIT)],
        [{"type": "text", "text": " I "}, {"type": "text", "text": "edit.\n"}, call(EDIT)],
        [TEXT, UNSIGNED, call(EDIT)],
    ],
)
def test_reasoning_without_a_signature_may_be_left_out(sent: list[Json]) -> None:
    assert is_resent([UNSIGNED, TEXT, call(EDIT)], sent)
    assert not is_resent([UNSIGNED, TEXT, call(EDIT)], sent[:-1])
    assert is_resent([UNSIGNED], [{"type": "text", "text": ""}])


ENVIRONMENT = "<env>\n{}: /home/me/app\nIs a git repository: Yes\n</env>"


@pytest.mark.parametrize("name", ["Working directory", " - Primary working directory"])
def test_a_command_may_lack_the_change_to_the_known_folder_alone(name: str) -> None:
    folders = folders_in([{"type": "text", "text": ENVIRONMENT.format(name)}])
    assert folders == {"/home/me/app"}
    for path in ("/home/me/app", "/home/me/app/", '"/home/me/app"'):
        assert is_resent(
            [call({"command": f"cd {path} && ls"})], [call({"command": "ls"})], folders
        )
    for path in ("/home/me", "/home/me/app/b", "/home/me/application", "app"):
        said = [call({"commands": [f"cd {path} && ls"]})]
        assert not is_resent(said, [call({"commands": ["ls"]})], folders)
        assert is_resent(said, [call({"commands": ["ls"]})]), "no folder is known"


def test_a_prompt_that_states_no_folder_has_none() -> None:
    other = [{"type": "text", "text": "Use a working directory: it helps."}, {"type": "image"}]
    assert folders_in(other) == frozenset()


def test_a_call_without_an_id_must_be_as_it_was() -> None:
    said, sent = ({**call(one), "id": None} for one in (EDIT, {**EDIT, "replace_all": False}))
    assert is_resent([said], [said])
    assert not is_resent([said], [sent])
