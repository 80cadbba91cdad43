"""Small builders of blocks and sessions for tests and benchmarks."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from compaction.context.blocks import Block, FileRef
from compaction.context.session import Call, Session


def rough(text: str) -> int:
    """A token count that needs no vocabulary: four code points a token, one at least."""
    return len(text) // 4 + 1


class Talk:
    """Writes a session block by block: `user`, `say`, `think`, `call` and `result` in turn.

    `respond` begins a model response; what the model says until the next one belongs to it.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.step = 0
        self.turn = 0
        self.message = 0
        self._response: str | None = None
        self._calls = 0

    def add(self, text: str, **fields: Any) -> Block:
        """Append one block, with sensible values for all that is not given."""
        number = len(self.blocks)
        values: dict[str, Any] = {
            "id": f"b{number}",
            "position": number,
            "message": self.message,
            "born": self.step + 1,
            "turn": self.turn,
            "tokens": rough(text),
            "chars": len(text),
            "sha": hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
            "text": text,
        }
        block = Block(**(values | fields))
        self.blocks.append(block)
        return block

    def system(self, text: str) -> Block:
        """The system prompt, a message of its own."""
        self.message += 1
        return self.add(text, role="system", type="text", kind="system")

    def user(self, text: str, **fields: Any) -> Block:
        """A human message: a turn begins."""
        self.message += 1
        self.turn += 1
        self._response = None
        return self.add(text, role="user", type="text", kind="user", **fields)

    def respond(self) -> None:
        """Begin the next model response, one message and one step."""
        self.message += 1
        self.step += 1
        self._response = f"resp{self.step}"

    def say(self, text: str, **fields: Any) -> Block:
        """Assistant text."""
        return self.add(
            text, role="assistant", type="text", kind="assistant", call=self._response, **fields
        )

    def think(self, text: str) -> Block:
        """A thinking block."""
        return self.add(
            text, role="assistant", type="thinking", kind="thinking", call=self._response
        )

    def call(self, tool: str, given: dict[str, Any], **fields: Any) -> Block:
        """A tool call; its id is in `tool_call`."""
        self._calls += 1
        return self.add(
            json.dumps(given, ensure_ascii=False, separators=(",", ":")),
            role="assistant",
            type="tool_use",
            kind="assistant",
            call=self._response,
            tool=tool,
            tool_call=f"call{self._calls}",
            **fields,
        )

    def result(self, use: Block, text: str, **fields: Any) -> Block:
        """The result that answers a call, a message of its own."""
        self.message += 1
        values: dict[str, Any] = {"kind": "result", "tool": use.tool, "file": use.file}
        return self.add(
            text,
            role="user",
            type="tool_result",
            tool_call=use.tool_call,
            **(values | fields),
        )

    def session(self, window: int = 200_000, hidden: int = 0) -> Session:
        """The session so far, with one model call per step and one that is about to be made."""
        calls = tuple(Call(step, "test", step * 20_000) for step in range(1, self.step + 2))
        return Session(tuple(self.blocks), calls, "test", window, hidden)


def coding(messages: int, tokens: int = 250, system: int = 0) -> Session:
    """A coding session of so many messages: a request, then reads, edits and test runs in turn.

    Every message has about `tokens` tokens by `rough`; a person speaks every 20 messages.
    """
    talk = Talk()
    if system:
        talk.system("You are a careful engineer. " * (system // 7))
    while talk.message < messages:
        number = talk.message
        if number % 20 == 0 or number <= 1:
            talk.user(_filled(f"Please look into part {number} of the parser.", tokens))
            continue
        talk.respond()
        path = f"src/module_{number % 37}.py"
        if number % 3:
            use = talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))
            talk.result(use, _filled(f"def function_{number}():\n    return {number}", tokens))
        elif number % 2:
            given = {"file_path": path, "old_string": "x", "new_string": _filled("y", tokens)}
            use = talk.call("Edit", given, file=FileRef(path, "edit"))
            talk.result(use, "The file was updated.")
        else:
            talk.say(_filled(f"Part {number} is done, tests come next.", tokens))
            use = talk.call("Bash", {"command": f"pytest tests/test_{number % 11}.py"})
            failed = number % 4 == 0
            talk.result(
                use, _filled(f"error: {number} failed" if failed else "ok", 20), error=failed
            )
    return talk.session()


def _filled(head: str, tokens: int) -> str:
    words = f"\nline about alpha_{len(head)} and beta.gamma, value {tokens}"
    missing = max(0, tokens * 4 - len(head))
    return head + (words * (missing // len(words) + 1))[:missing]
