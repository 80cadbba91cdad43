"""Which replies that an agent sends back are the model's own."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.resent import is_resent

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


def test_a_call_without_an_id_must_be_as_it_was() -> None:
    said, sent = ({**call(one), "id": None} for one in (EDIT, {**EDIT, "replace_all": False}))
    assert is_resent([said], [said])
    assert not is_resent([said], [sent])
