"""What tool definitions cost in a simulated run."""

from __future__ import annotations

import json

import pytest

from compaction.cache.uses import CacheUse
from compaction.context.blocks import Block
from compaction.context.session import Call, Session
from compaction.policies.presets import PRESETS
from compaction.simulation.defined import Defined, defined
from compaction.simulation.simulate import simulate

MODEL = "claude-sonnet-4-5"
TOOLS = [{"name": "edit"}, {"name": "draw"}, {"name": "later", "defer_loading": True}]


def block(position: int, born: int, role: str, form: str, text: str = "", tool: str = "") -> Block:
    return Block(
        id=f"m{position + 1}.0", position=position, message=position + 1, born=born, turn=1,
        role=role, type=form, kind="tools" if form == "tools" else "user", tokens=20,  # type: ignore[arg-type]
        chars=9, sha="", text=text, tool=tool or None, tool_call="t" if tool else None,
    )  # fmt: skip


def priced(blocks: list[Block], model: str = MODEL, hidden: int = 0) -> Defined:
    session = Session(tuple(blocks), (Call(1, model), Call(2, model)), model, 200_000, hidden)
    run = simulate(session, PRESETS["passthrough"], len, lambda *_: None, lambda *_: None)
    uses = [
        CacheUse(1, "simulated", 0, 500, 0, 0),
        CacheUse(2, "simulated", 500, 0, 0, 50),
    ]
    return defined(session, run, uses, len)


TASK = block(1, 1, "user", "text", "mend it")
USE = block(2, 2, "assistant", "tool_use", "{}", "edit")


def test_unused_definitions_are_what_could_be_left_out() -> None:
    found = priced([block(0, 1, "system", "tools", json.dumps(TOOLS)), TASK, USE])
    edit, draw = (len(json.dumps({"tool": tool}, separators=(",", ":"))) for tool in TOOLS[:2])
    assert (found.tokens, found.unused_tokens) == (2 * (edit + draw), 2 * draw)
    assert found.unused_microusd == (draw * (3_750 + 300) + 500) // 1000
    assert found.microusd == ((edit + draw) * (3_750 + 300) + 500) // 1000


def test_a_log_without_definitions_is_unknown_beside_its_hidden_prompt() -> None:
    found = priced([TASK, USE], hidden=100)
    assert found == Defined(hidden_microusd=(100 * (3_750 + 300) + 500) // 1000)


@pytest.mark.parametrize("model", ["no such model"])
def test_without_a_price_tokens_are_known_alone(model: str) -> None:
    found = priced([block(0, 1, "system", "tools", json.dumps(TOOLS)), TASK, USE], model)
    assert found.tokens and found.microusd is None and found.unused_microusd is None


def test_what_a_search_found_counts_from_its_step_on() -> None:
    found = priced([TASK, USE, block(3, 2, "tool", "tools", json.dumps(TOOLS))])
    edit = len(json.dumps({"tool": TOOLS[0]}, separators=(",", ":")))
    assert found.tokens is not None and found.unused_tokens == found.tokens - edit
