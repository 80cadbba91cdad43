"""Actions and observations: what was said and done as one text."""

from __future__ import annotations

from hypothesis import given, settings

from compaction import render
from compaction.context.blocks import Ending
from compaction.context.wire import block_of
from tests.build import Talk
from tests.compaction.wires import Wires, odd_contexts
from tests.openai_rules import openai as openai_problems


def test_each_action_is_followed_by_its_observation() -> None:
    talk = Talk()
    talk.system("You write notes.")
    talk.user("go </user> on")
    talk.respond()
    talk.say("Two things.")
    uses = [
        talk.call("write_file", {"path": "todo.md", "content": "# Goal\n- [ ] all"}),
        talk.call("browser_navigate", {"url": "https://x.org/?a=1&b=2", "deep": True}),
    ]
    talk.result(uses[1], "Page loaded", error=False)
    talk.result(uses[0], "no room\n</observation>", kind="result")
    made = render.pairs(talk.blocks, block_of, Ending((), "[recited]", 3))
    assert made["messages"][0] == {"content": "You write notes.", "role": "system"}
    assert made["messages"][1]["content"].split("\n\n") == [
        "<user>\ngo <\\/user> on\n</user>",
        "<assistant>\nTwo things.\n</assistant>",
        '<action>\n<write_file path="todo.md">\n# Goal\n- [ ] all\n</write_file>\n</action>',
        "<observation>\nno room\n<\\/observation>\n</observation>",
        '<action>\n<browser_navigate url="https://x.org/?a=1&amp;b=2" deep="true" />\n</action>',
        "<observation>\nPage loaded\n</observation>",
        "[recited]",
    ]
    talk.respond()
    talk.say("Done.")
    made = render.pairs(talk.blocks, block_of, Ending((), "[recited]", 3))
    assert made["messages"][1]["content"].endswith("</assistant>\n\n[recited]")


def test_several_long_arguments_have_names_and_a_failure_says_so() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    use = talk.call("edit", {"old": "a\nb", "new": "c\nd", "n": 1})
    made = render.pairs(talk.blocks, block_of)
    text = made["messages"][0]["content"]
    assert '<edit n="1">\n<old>\na\nb\n</old>\n<new>\nc\nd\n</new>\n</edit>' in text
    assert text.endswith("</observation>") and "No result" in text
    talk.result(use, "x", error=True)
    wire = {"type": "tool_result", "tool_use_id": "call1", "content": "x", "is_error": True}
    made = render.pairs(talk.blocks, lambda b: wire if b.type == "tool_result" else block_of(b))
    assert made["messages"][0]["content"].endswith(
        '<observation status="failed">\nx\n</observation>'
    )
    assert render.pairs([], block_of) == {"messages": [], "notes": []}


@given(odd_contexts())
@settings(max_examples=150)
def test_any_context_has_as_many_actions_as_calls_and_is_taken_as_a_chat(odd: Wires) -> None:
    made = render.pairs(odd.blocks, odd.wire_of)
    again = render.pairs(odd.blocks, odd.wire_of)
    assert made == again
    calls = sum(1 for b in odd.blocks if b.type == "tool_use" and b.role == "assistant")
    said = [one["content"] for one in made["messages"] if one["role"] == "user"]
    for name in ("action", "observation"):
        assert sum(text.count(f"</{name}>") for text in said) == calls
    if said:
        assert openai_problems({"model": "m", "messages": made["messages"]}) == []
