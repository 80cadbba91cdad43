"""Small sessions as importers give them, written the way one reads them."""

from __future__ import annotations

from compaction.tokens import Counted
from sessions.importers import records


def count(text: str) -> Counted:
    """A counting that a test can redo in its head: a token per character."""
    return Counted(len(text))


def user(text: str, key: str | None = None, at: int | None = None) -> records.Message:
    """A human message."""
    return records.Message("user", [{"type": "text", "text": text}], key=key, human=True, at=at)


def says(call: str, text: str, key: str | None = None) -> records.Message:
    """A model's answer."""
    return records.Message("assistant", [{"type": "text", "text": text}], key=key, call=call)


def reads(call: str, tool_call: str, path: str, key: str | None = None) -> records.Message:
    """A model's wish to read a file."""
    return records.Message(
        "assistant",
        [{"type": "tool_use", "id": tool_call, "name": "Read", "input": {"file_path": path}}],
        key=key,
        call=call,
    )


def result(
    tool_call: str, text: str, key: str | None = None, *, error: bool = False
) -> records.Message:
    """A tool's result."""
    block: records.Json = {"type": "tool_result", "tool_use_id": tool_call, "content": text}
    if error:
        block["is_error"] = True
    return records.Message("user", [block], key=key)


def session(*of: records.Record, external_id: str = "s1") -> records.Session:
    """A session of these records."""
    return records.Session(external_id, agent="tester", model="claude-x", records=list(of))


def reading(steps: int, *, keyed: bool = True) -> records.Session:
    """A task, and that many steps, each reading its own file."""
    made: list[records.Record] = [user("Please read the files.", key="k0" if keyed else None)]
    for step in range(1, steps + 1):
        key = f"k{step}" if keyed else None
        made.append(reads(f"c{step}", f"t{step}", f"src/f{step}.py", key=key and key + "a"))
        made.append(result(f"t{step}", f"content of file {step}\n" * 3, key=key and key + "b"))
    return session(*made)
