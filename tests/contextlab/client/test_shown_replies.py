"""An agent's history as the model knows it, also after the agent went back."""

from __future__ import annotations

from typing import Any

from contextlab.client.shown import ShownReplies, ShownReply

Json = dict[str, Any]


def text(said: str) -> list[Json]:
    return [{"type": "text", "text": said}]


def reply(said: str) -> Json:
    return {"role": "assistant", "content": text(said)}


def asked(said: str) -> Json:
    return {"role": "user", "content": said}


def shown(said: str) -> ShownReply:
    """A reply before which the model read back."""
    return ShownReply(text(said), [reply(f"I read, then: {said}")], [])


def test_a_reply_is_what_the_model_said_where_the_agent_kept_it() -> None:
    replies = ShownReplies()
    replies.add(1, shown("It is 80."))
    replies.add(3, shown("Still 80."))
    history = [asked("Port?"), reply("It is 80."), asked("Sure?"), reply("Still 80.")]
    restored = replies.restored(history)
    assert restored[1] == reply("I read, then: It is 80.")
    assert restored[3] == reply("I read, then: Still 80.")
    history[1] = reply("It is 81.")
    assert replies.restored(history)[1] == history[1], "the agent changed it"


def test_later_replies_are_gone_where_the_agent_went_back() -> None:
    replies = ShownReplies()
    replies.add(1, shown("It is 80."))
    replies.add(3, shown("Still 80."))
    replies.add(1, shown("It is 90."))
    history = [asked("Port?"), reply("It is 90."), asked("Sure?"), reply("Still 80.")]
    restored = replies.restored(history)
    assert restored[1] == reply("I read, then: It is 90.")
    assert restored[3] == history[3], "another answer that reads alike"


def test_a_reply_is_found_again_where_a_system_message_stands_before_it() -> None:
    use = {"type": "tool_use", "id": "back_1", "name": "read_back", "input": {"ref": "m1.0"}}
    result = {"type": "tool_result", "tool_use_id": "back_1", "content": "80"}
    reminder = {"role": "system", "content": "No task was set."}
    begun = {"role": "assistant", "content": [*text("I look. "), use]}
    back = {"role": "user", "content": [result]}
    stored = [asked("Port?"), reminder, begun, back, reply("It is 80."), asked("Thanks.")]
    both = {"role": "assistant", "content": [*text("I look. "), *text("It is 80.")]}
    history = [asked("Port?"), reminder, both, asked("Thanks.")]
    replies = ShownReplies()
    replies.rebuild(stored, history, lambda call: result)
    assert replies.restored(history) == stored
