"""A scripted agent over REST, with a ledger of what the server confirmed as stored.

As a program: `python tests/agent.py URL TOKEN [--steps 300] [--rate 5] [--session NAME]`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from contextlab.client import Context, ContextLab, Session, Unreachable

T = TypeVar("T")
PATIENCE = 120.0
"""Seconds for which an agent goes on asking a server that does not answer."""

TOOLS = [
    {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": {key: {"type": "string"}}},
    }
    for name, description, key in (
        ("Read", "Read a file.", "file_path"),
        ("Bash", "Run a command.", "command"),
    )
]
SYSTEM = "You mend a ledger of parcels. Work in small steps, and say what you found."


class Ledger:
    """Digests of messages that were acknowledged, by sequence number; on disk before the next."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")
        self.path = path

    def note(self, first_seq: int, messages: list[dict[str, Any]]) -> None:
        """Write down what the server has just said it stored."""
        for offset, message in enumerate(messages):
            line = {"seq": first_seq + offset, "digest": digest(message)}
            self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """No more is noted."""
        self._file.close()

    def entries(self) -> dict[int, str]:
        """All that was noted."""
        lines = (json.loads(line) for line in self.path.read_text().splitlines())
        return {line["seq"]: line["digest"] for line in lines}


def digest(message: dict[str, Any]) -> str:
    """What tells one message from another: role and content, strings as one text block."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    plain = json.dumps([message["role"], blocks], sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


class Agent:
    """Takes its context before every step, reports usage with every answer; one call per step.

    `contexts` are those it received, `stored` the time (s) at which each step's result was
    acknowledged.
    """

    def __init__(self, session: Session, ledger: Ledger, done: int = 0) -> None:
        self.session, self.ledger, self.done = session, ledger, done
        self.contexts: list[Context] = []
        self.stored: dict[int, float] = {}

    def begin(self) -> None:
        """State the task."""
        task = {"role": "user", "content": "Parcels 1 to 300 were weighed twice. Mend the ledger."}
        self._append([task], tools=TOOLS, system=SYSTEM)

    def step(self) -> Context:
        """Take the context, let the script answer it, and store answer and tool result."""
        context = patiently(self.session.context)
        self.contexts.append(context)
        step = self.done + 1
        call, result = scripted(step)
        usage = {
            "input_tokens": 12,
            "cache_read_input_tokens": max(context.tokens - 400, 0),
            "cache_creation_input_tokens": 388,
            "output_tokens": 60,
        }
        self._append([call], usage=usage, call=f"call-{step}", context_id=context.id, model=MODEL)
        self._append([result])
        self.stored[step] = time.time()
        self.done = step
        return context

    def _append(self, messages: list[dict[str, Any]], **more: Any) -> None:
        answer = patiently(lambda: self.session.append(messages, **more)).raw
        stored = answer["messages"][-len(messages) :] if answer["appended"] else []
        if stored:
            self.ledger.note(stored[0]["seq"], messages)


def patiently(ask: Callable[[], T]) -> T:
    """Ask until there is an answer; what is asked again is done once."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except Unreachable:
            if time.monotonic() > end:
                raise


MODEL = "claude-sonnet-4-5"


def scripted(step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer and the tool result of a step, always the same."""
    tool_call = f"toolu_{step:04d}"
    if step % 3:
        name, given = "Read", {"file_path": f"/ledger/parcel_{step:03d}.csv"}
        output = "".join(
            f"{line}\tparcel {step * 1000 + line},{line * 7 % 90} kg,dock {line % 5}\n"
            for line in range(1, 60)
        )
    else:
        name, given = "Bash", {"command": f"weigh --dock {step % 5} --port {4000 + step}"}
        output = f"dock {step % 5}: weighed twice, entry 0x{step * 7919:06x} stands\n" * 8
    said = f"Step {step}: looking at parcel {step}."
    call = [
        {"type": "text", "text": said},
        {"type": "tool_use", "id": tool_call, "name": name, "input": given},
    ]
    result = [{"type": "tool_result", "tool_use_id": tool_call, "content": output}]
    return {"role": "assistant", "content": call}, {"role": "user", "content": result}


def run(session: Session, ledger: Ledger, steps: int) -> Iterator[Context]:
    """A whole session, a context after the other."""
    agent = Agent(session, ledger)
    agent.begin()
    for _ in range(steps):
        yield agent.step()


def main() -> None:
    """Run against a server, and print a line every 25 steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=5.0, help="steps a second")
    parser.add_argument("--session", default="parcels")
    parser.add_argument("--policy", default="offload-first")
    parser.add_argument("--ledger", type=Path, default=Path("ledger.jsonl"))
    given = parser.parse_args()
    lab = ContextLab(given.url, given.token)
    session = lab.session(given.session, agent="mender", model=MODEL, policy=given.policy)
    began = time.monotonic()
    for number, context in enumerate(run(session, Ledger(given.ledger), given.steps), 1):
        if number % 25 == 0:
            spent = time.monotonic() - began
            print(
                f"S{number}: {context.tokens:,} tokens, revision {context.raw['revision']}, "
                f"{spent:.1f} s",
                flush=True,
            )
        time.sleep(max(0.0, began + number / given.rate - time.monotonic()))


if __name__ == "__main__":
    main()
