"""What content a session has decides what it says, not how long it holds the processor."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from compaction import render
from compaction.context.blocks import Block, FileRef
from compaction.fold.fold import Arrival, advance, start
from compaction.fold.on_request import compact_now
from compaction.policies.presets import PRESETS
from compaction.proposals.plan import Means
from compaction.summaries.extract import extractive
from tests.build import Talk, rough
from tests.conftest import ROOT

MOST_RATIO = 9.0
"""For content that is 4 times as long; quadratic work takes 16 times as long."""
QUICK_SECONDS = 0.15
"""CPU seconds that need no comparison."""
DEADLINE_SECONDS = 300

TEXTS: dict[str, str] = {
    "newlines": "\n",
    "spaces": " ",
    "one line": "a",
    "tiny lines": "a\n",
    "back-ticks": "`a",
    "brackets": "([{",
    "deep JSON": '{"a":',
    "tags": "<a",
    "quotation marks": '"a “b ',
    "paths": "a/b.c:1",
    "stack traces": "at a:1 ",
    "to-do items": "- [ ] a\n",
    "tables": "a,b\n",
    "passwords": "password=Abc123xyz789Qw ",
    "images": "![a](b",
    "search and replace": "<<<<<<< SEARCH\n",
    "shell": "cd a && b|c;",
}
BLOCKS: dict[str, Callable[[Talk, int], Any]] = {
    "texts of a response": lambda talk, number: talk.say(f"text {number}"),
    "texts of a message": lambda talk, number: talk.add(
        f"text {number}", role="user", type="text", kind="user"
    ),
    "calls of a response": lambda talk, number: talk.call("Read", {"file_path": f"{number}.py"}),
}


def of_text(piece: str, size: int) -> Talk:
    """A session whose messages, inputs and results are one text of about `size` characters."""
    text, talk = piece * (size // len(piece)), Talk()
    talk.user(text)
    for number in range(3):
        file = f"a{number % 2}.py"
        talk.respond()
        talk.say(text)
        talk.result(talk.call("Bash", {"command": text}), text)
        talk.result(talk.call("Read", {"path": file}, file=FileRef(file, "read")), text)
        given = {"path": file, "old_string": text, "new_string": f"{text}!"}
        use = talk.call("Edit", given, file=FileRef(file, "edit"))
        talk.result(use, f"error: {text}", error=True)
        talk.result(talk.call("TodoWrite", {"todos": [{"content": text, "status": "open"}]}), "ok")
        talk.user(text)
    return talk


def of_blocks(write: Callable[[Talk, int], Any], many: int) -> Talk:
    """A session with so many blocks in one message."""
    talk = Talk()
    talk.user("go")
    talk.respond()
    made = [write(talk, number) for number in range(many)]
    for block in made:
        if block.type == "tool_use":
            talk.result(block, "line\n" * 20)
    return talk


def fold(talk: Talk, preset: str) -> None:
    """Fold a session as its agent would see it, render it, and compact all of it."""
    for _ in range(10):
        talk.respond()
        talk.result(talk.call("Bash", {"command": "ls"}), "x" * 2_000)
    blocks = talk.session().blocks
    state = start(PRESETS[preset], 60_000, Means(rough, extractive))
    taken = 0
    for step in range(1, talk.step + 1):
        new = tuple(block for block in blocks[taken:] if block.born <= step)
        advance(state, Arrival(step, new))
        taken += len(new)
    for form in (render.anthropic, render.openai, render.as_blocks):
        form(list(state.standing.values()), wire_of)  # type: ignore[operator]
    compact_now(state, "be brief")


def wire_of(block: Block) -> dict[str, Any]:
    """A block as a provider takes it."""
    if block.type == "tool_use":
        given = json.loads(block.text)
        return {"type": "tool_use", "id": block.tool_call, "name": block.tool, "input": given}
    if block.type == "tool_result":
        return {"type": "tool_result", "tool_use_id": block.tool_call, "content": block.text}
    return {"type": "text", "text": block.text}


def cases() -> Iterator[tuple[str, Callable[[int], None]]]:
    """Each case takes how much longer its content is."""
    for name, piece in TEXTS.items():
        yield name, lambda times, piece=piece: fold(of_text(piece, 10_000 * times), "balanced")
    for name, write in BLOCKS.items():
        for preset in ("balanced", "seven-principles"):
            yield (
                f"{name}, {preset}",
                lambda times, write=write, preset=preset: fold(  # type: ignore[misc]
                    of_blocks(write, 1_500 * times), preset
                ),
            )


def slow(case: Callable[[int], None]) -> list[float]:
    """CPU seconds for content and for 4 times as much, if their ratio is too high."""
    took: list[float] = []
    for times in (1, 4):
        begun = time.process_time()
        case(times)
        took.append(time.process_time() - begun)
    small, large = took
    return took if large > QUICK_SECONDS and large > MOST_RATIO * small else []


def test_work_is_linear_in_content():
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=True,
    )
    judged = json.loads(done.stdout)
    assert len(judged) == len(TEXTS) + 2 * len(BLOCKS)
    assert {name: took for name, took in judged.items() if took} == {}


if __name__ == "__main__":
    json.dump({name: slow(case) and slow(case) for name, case in cases()}, sys.stdout)
