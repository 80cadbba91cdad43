"""What shaping a context costs in other libraries, at one call and over a session, and plainly.

    python -m benchmarks.peers --install     # environments of the libraries below the cache folder
    python -m benchmarks.policies.shaping

Each library runs in an environment of its own, on messages of 250 tokens: a request, then tool
calls and their results in turn. CPU milliseconds, the best of several; no model is asked, where
one would write a summary it is there already. OpenHands and agent-framework hold a view or marks
between calls, so the cost of a further call is shown separately (`next`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.peers import SHAPERS, python_of
from benchmarks.processes import say
from compaction.context.session import Session

LENGTHS = (1_000, 10_000)
STEPS = (500, 1_000)
BUDGET = 12_000
"""Tokens that are kept: the published table's."""


class Shaper(NamedTuple):
    """One way of shaping: CPU ms at each length, and of whole sessions; None where not run."""

    name: str
    at: list[float]
    sessions: list[float] | None = None


_MEASURE = """
import asyncio, json, sys, time
LENGTHS, STEPS, BUDGET, REPEAT = json.loads(sys.argv[1])
TEXT = "word " * 490
FOUND = []

def cpu(work):
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000

def best(make, work):
    taken = []
    while len(taken) < REPEAT and sum(taken) < 5000:
        made = make()
        taken.append(cpu(lambda: work(made)))
    return min(taken)

def measure(name, history, work, session=None):
    at = [best(lambda: history(n), work) for n in LENGTHS]
    FOUND.append([name, at, [session(n) for n in STEPS] if session else None])
"""

_LANGCHAIN = """
from langchain.agents.middleware import ClearToolUsesEdit
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately as count

def history(length):
    made = [HumanMessage("Mend it.")]
    for n in range(length // 2):
        call = {"name": "Read", "args": {"path": f"f{n}.py"}, "id": f"c{n}"}
        made.append(AIMessage(f"message {n}", tool_calls=[call]))
        made.append(ToolMessage(TEXT, tool_call_id=f"c{n}"))
    return made

def trim(messages):
    trim_messages(messages, max_tokens=BUDGET, strategy="last", token_counter="approximate")

def clear(messages):
    ClearToolUsesEdit(trigger=BUDGET, keep=3).apply(messages, count_tokens=count)

def session(work):
    def whole(steps):
        made = history(steps * 2)
        return cpu(lambda: [work(made[: 2 * n + 1]) for n in range(steps)])
    return whole

measure("trim_messages", history, trim, session(trim))
measure("ClearToolUsesEdit", history, clear, session(clear))
"""

_OPENHANDS = """
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import Condensation, MessageEvent
from openhands.sdk.llm import LLM, Message, TextContent

class Canned(LLMSummarizingCondenser):
    def _generate_condensation(self, forgotten_events, summary_offset, max_event_str_length=None):
        ids = {event.id for event in forgotten_events}
        return Condensation(forgotten_event_ids=ids, summary=TEXT, summary_offset=summary_offset,
                            llm_response_id="made")

def event(n):
    role = "assistant" if n % 2 else "user"
    said = Message(role=role, content=[TextContent(text=TEXT[: len(TEXT) // 2])])
    return MessageEvent(source="agent" if n % 2 else "user", llm_message=said)

def history(length):
    return [event(n) for n in range(length)]

condenser = Canned(llm=LLM(model="gpt-4o", api_key="none"), max_size=120)
measure("View.from_events and condenser", history,
        lambda events: condenser.condense(View.from_events(events)))
measure("condenser, next", lambda n: View.from_events(history(n)), condenser.condense)
"""

_LLAMA_INDEX = """
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

def history(length):
    memory = ChatMemoryBuffer.from_defaults(token_limit=BUDGET,
                                            tokenizer_fn=lambda text: range(len(text) // 4))
    memory.set([ChatMessage(role="assistant" if n % 2 else "user", content=TEXT[: len(TEXT) // 2])
                for n in range(length)])
    return memory

measure("ChatMemoryBuffer.get", history, lambda memory: memory.get())
"""

_SEMANTIC_KERNEL = """
from semantic_kernel.contents import AuthorRole, ChatHistoryTruncationReducer, ChatMessageContent

def history(length):
    reducer = ChatHistoryTruncationReducer(target_count=60)
    reducer.messages = [
        ChatMessageContent(role=AuthorRole.ASSISTANT if n % 2 else AuthorRole.USER,
                           content=TEXT[: len(TEXT) // 2]) for n in range(length)]
    return reducer

measure("TruncationReducer", history, lambda reducer: asyncio.run(reducer.reduce()))
"""

_AGENT_FRAMEWORK = """
from agent_framework import Message, SlidingWindowStrategy
from agent_framework._compaction import annotate_message_groups, included_messages

def message(n):
    return Message(role="assistant" if n % 2 else "user", contents=[TEXT[: len(TEXT) // 2]])

def shape(messages):
    annotate_message_groups(messages)
    asyncio.run(SlidingWindowStrategy(keep_last_groups=20)(messages))
    return included_messages(messages)

def marked(length):
    messages = [message(n) for n in range(length)]
    shape(messages)
    return [*messages, message(0), message(1)]

measure("SlidingWindowStrategy", lambda length: [message(n) for n in range(length)], shape)
measure("SlidingWindowStrategy, next", marked, shape)
"""

_SCRIPTS = {
    "langchain": _LANGCHAIN,
    "openhands": _OPENHANDS,
    "llama-index": _LLAMA_INDEX,
    "semantic-kernel": _SEMANTIC_KERNEL,
    "agent-framework": _AGENT_FRAMEWORK,
}


def others(repeat: int) -> list[Shaper]:
    """Measure the installed libraries; report those missing or failing."""
    found = []
    for name in SHAPERS:
        if not python_of(name):
            say(f"{name} is not installed: `python -m benchmarks.peers --install`")
            continue
        done = subprocess.run(
            [
                *(python_of(name), "-c"),
                f"{_MEASURE}{_SCRIPTS[name]}\nprint(json.dumps(FOUND))",
                json.dumps([LENGTHS, STEPS, BUDGET, repeat]),
            ],
            # LiteLLM, which OpenHands stands on, asks the net for prices otherwise.
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            say(f"{name} fails: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
            continue
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        found += [Shaper(f"{name} {what}", at, sessions) for what, at, sessions in answer]
    return found


def floors(sessions: dict[int, Session], repeat: int) -> list[Shaper]:
    """Measure bare Python without rules, pins and pairs, as a lower bound."""
    named: dict[str, Callable[[list[tuple[int, str]]], object]] = {
        "floor: the tail, sizes known": _tail,
        "floor: the tail, all estimated": _estimated,
    }
    made = []
    for name, work in named.items():
        at = []
        for length in LENGTHS:
            blocks = [(block.tokens, block.text) for block in sessions[length].blocks]
            at.append(min(_cpu(work, blocks) for _ in range(repeat)))
        made.append(Shaper(name, at))
    return made


def _cpu(work: Callable[[Any], object], given: object, times: int = 100) -> float:
    begun = time.process_time()
    for _ in range(times):
        work(given)
    return (time.process_time() - begun) * 1_000 / times


def _tail(blocks: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the newest blocks within the budget."""
    kept, left = len(blocks), BUDGET
    while kept and left >= blocks[kept - 1][0]:
        kept -= 1
        left -= blocks[kept][0]
    return blocks[kept:]


def _estimated(blocks: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Estimate every size at four code points per token, each time from scratch."""
    return _tail([(len(text) // 4 + 1, text) for _, text in blocks])


def main() -> None:
    """Print the figures of the libraries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    for one in others(asked.repeat):
        at = "".join(f"{each:>12.3f}" for each in one.at)
        say(f"{one.name:<46}{at}" + "".join(f"{each:>10.0f}" for each in one.sessions or ()))


if __name__ == "__main__":
    main()
