"""Real logs: providers accept the contexts of every policy.

CONTEXTLAB_CORPUS=/path/to/logs python -m pytest tests/sessions/live/test_render_corpus.py
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from compaction import render
from compaction.context.blocks import Block, Ending
from compaction.context.edits import context_at
from compaction.context.wire import WireBlock
from compaction.fold.layers import ending_at
from compaction.policies.presets import PRESETS
from compaction.proposals.shards import parts_of_shard
from compaction.simulation.simulate import simulate
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.importers import NotALog, parse, records
from sessions.models import Run
from sessions.models.record.lived import lived_run
from sessions.models.record.values import recorded_session, wire_blocks
from tests.gemini_rules import gemini as gemini_problems
from tests.openai_rules import openai as openai_problems
from tests.provider import Provider, provider
from tests.provider_rules import anthropic as problems
from tests.responses_rules import responses as responses_problems
from tests.sessions.made import count

CORPUS = os.environ.get("CONTEXTLAB_CORPUS", "")
STEPS = 6
"""Contexts looked at per session and policy, spread over its length, the last one always."""
BIGGEST = 32 * 1024 * 1024
"""Bytes of a request that the provider takes."""

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not CORPUS, reason="CONTEXTLAB_CORPUS names no folder of real logs"),
]


def logs() -> Iterator[records.Session]:
    """All sessions of all logs below the folder that are ones."""
    for path in sorted(Path(CORPUS).rglob("*")):
        if not path.is_file() or path.suffix in {".csv", ".md"} or "LICENSES" in path.parts:
            continue
        try:
            found = parse(path.read_bytes(), path.name)
        except NotALog:
            continue
        for index, session in enumerate(found.sessions):
            session.external_id = f"{path}#{index}"
            yield session


def some(steps: int) -> list[int]:
    """Steps spread over a session, and the next one."""
    stride = max(1, steps // (STEPS - 1))
    return sorted({*range(1, steps + 1, stride), steps, steps + 1})


def kept_whole(blocks: list[Block], wires: dict[str, WireBlock], made: dict[str, Any]) -> None:
    """Blocks in context are sent unchanged: texts, and results and inputs under their calls."""
    sent = [part for message in made["messages"] for part in message["content"]]
    texts = Counter(part["text"] for part in sent if part["type"] == "text")
    inputs = Counter(json.dumps(part["input"]) for part in sent if part["type"] == "tool_use")
    results = Counter(json.dumps(part["content"]) for part in sent if part["type"] == "tool_result")
    for block in blocks:
        wire = wires[block.id]
        if block.type == "text" and block.text.strip() and block.role in ("user", "assistant"):
            assert texts[wire["text"]] or block is blocks[-1] or block.kind == "system"
        elif block.type == "tool_use" and isinstance(wire["input"], dict):
            assert inputs[json.dumps(wire["input"])]
        elif block.type == "tool_result" and isinstance(wire["content"], str):
            for part in parts_of_shard(block) if block.replaces else [wire["content"]]:
                whole = part if part.strip() else ""
                # One without its call is text, which ends without whitespace.
                assert results[json.dumps(whole)] or any(whole.rstrip() in text for text in texts)


@pytest.fixture
def it() -> Iterator[Provider]:
    with provider() as made:
        yield made


def test_every_context_is_taken(it: Provider) -> None:
    seen: Counter[str] = Counter()
    failed: list[str] = []
    with anthropic.Anthropic(api_key="test", base_url=it.url, max_retries=0) as client:
        for log in logs():
            stored = append(local_team(), log, count, source="test").session
            value = recorded_session(stored, window=200_000)
            seen["sessions"] += 1
            runs = {name: simulate(value, policy, len) for name, policy in PRESETS.items()}
            recorded = Run.objects.get(session=stored, origin=Run.Origin.RECORDED)
            runs["recorded"] = lived_run(stored, recorded)
            for name, run in runs.items():
                for step in some(stored.step_count):
                    blocks = list(context_at(run.entries, step).values())
                    wires = wire_blocks(stored, blocks)
                    seen[name] += 1
                    born = [block for block in value.blocks if block.born <= step]
                    policy = PRESETS.get(name, PRESETS["passthrough"])
                    end = ending_at(policy, born, blocks, len)
                    seen["recited"] += bool(end.text)
                    try:
                        _one(it, client, blocks, wires, end)
                    except (AssertionError, anthropic.APIError) as error:
                        failed.append(f"{log.external_id} {name} S{step}: {str(error)[:300]}")
    assert not failed and not it.refused, (len(failed), failed[:20])
    assert seen["sessions"], f"no log is below {CORPUS}"
    assert seen["recited"], "nothing was recited"


def _one(
    it: Provider,
    client: anthropic.Anthropic,
    blocks: list[Block],
    wires: dict[str, WireBlock],
    end: Ending,
) -> None:
    def wire_of(block: Block) -> WireBlock:
        return wires[block.id]

    made = render.anthropic(blocks, wire_of, end)
    part = {name: made[name] for name in ("system", "tools", "messages") if name in made}
    if not part["messages"]:
        return
    body = {"model": "claude-test", "max_tokens": 1, **part}
    assert problems(body) == []
    if len(json.dumps(body)) < BIGGEST:
        client.messages.create(**body)
        it.bodies.clear()  # thousands of long ones
    kept_whole(blocks, wires, made)
    chat = render.openai(blocks, wire_of, end)
    body = {name: chat[name] for name in ("tools", "messages") if name in chat}
    assert openai_problems(body) == []
    items = render.responses(blocks, wire_of, end)
    assert responses_problems({"input": items["messages"], "tools": items.get("tools")}) == []
    parts = render.gemini(blocks, wire_of, end)
    body = {"contents": parts["messages"], "tools": parts.get("tools", [])}
    assert gemini_problems(body) == []
