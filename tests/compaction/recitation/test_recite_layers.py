"""Layers 3 and 4: results for one step, the last breakpoint, and the cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction import render
from compaction.context.blocks import Block, Ending, FileRef
from compaction.context.edits import context_at
from compaction.context.wire import block_of
from compaction.fold.layers import ending_at
from compaction.policies.presets import PRESETS
from compaction.prices.prices import price
from compaction.seen.reading import READING, reads
from compaction.simulation.run import Terms, simulate_cache
from compaction.simulation.simulate import Run, simulate
from tests.build import Talk, coding, rough

PRESET = PRESETS["recitation"]


@pytest.mark.parametrize(
    ("tool", "given", "only_reads"),
    [
        ("Read", {"file_path": "a.py"}, True),
        ("mcp__files__read_file", {"path": "a"}, True),
        ("Grep", {"pattern": "x"}, True),
        ("str_replace_editor", {"command": "view", "path": "a"}, True),
        ("str_replace_editor", {"command": "create", "path": "a", "file_text": "x"}, False),
        ("Bash", {"command": "cd src && grep -rn foo . | head -20 2>/dev/null"}, True),
        ("Bash", {"command": "git diff; git status"}, True),
        ("Bash", {"command": "git commit -m x"}, False),
        ("Bash", {"command": "cat a.py\npython b.py"}, False),
        ("Bash", {"command": "cat a > b"}, False),
        ("Bash", {"command": "cat <<EOF > b\nx\nEOF"}, False),
        ("Bash", {"command": "sed -n 1,20p a"}, True),
        ("Bash", {"command": "sed -i s/a/b/ a"}, False),
        ("Bash", {"command": "ls $(rm -r x)"}, False),
        ("Bash", {"command": "grep 'unclosed"}, False),
        ("shell", {"command": ["bash", "-lc", "cat a.py | wc -l"]}, True),
        ("shell", {"command": ["pytest", "-q"]}, False),
        ("Bash", {"command": ""}, False),
        ("Edit", {"file_path": "a"}, False),
    ],
)
def test_what_only_reads(tool: str, given: dict[str, Any], only_reads: bool) -> None:
    talk = Talk()
    talk.respond()
    assert reads(talk.call(tool, given), READING) is only_reads


def _session(rounds: int = 30) -> Talk:
    """Reads of 500 tokens, an edit with every third, and a list of what to do."""
    talk = Talk()
    talk.system("careful " * 3_000)
    talk.user("go")
    for number in range(rounds):
        talk.respond()
        path = f"src/m{number}.py"
        uses = [talk.call("Read", {"file_path": path}, file=FileRef(path, "read"))]
        if number % 3 == 2:
            given = {"file_path": path, "old_string": "a", "new_string": "b"}
            uses.append(talk.call("Edit", given, file=FileRef(path, "edit")))
        elif number % 3 == 1:
            given = {"todos": [{"content": f"part {number}", "status": "pending"}]}
            uses.append(talk.call("TodoWrite", given))
        for use in uses:
            shown = f"line of {path}\n" * 100 if use.tool == "Read" else "done"
            talk.result(use, shown)
    return talk


def _context(run: Run, step: int) -> list[Block]:
    return list(context_at(run.entries, step).values())


def test_a_reading_stands_for_one_step_and_what_was_changed_stays() -> None:
    talk = _session()
    run = simulate(talk.session(), PRESET, rough)
    for step in run.steps[1:]:
        for block in _context(run, step.step):
            if block.type == "tool_result" and block.tool == "Read":
                assert (block.replaces is None) == (block.born == step.step)
            elif block.kind != "summary":
                assert block.replaces is None


def test_a_reading_before_an_answer_leaves_with_the_next_call_but_one() -> None:
    talk = Talk()
    talk.user("what is in it?")
    talk.respond()
    shown = talk.result(talk.call("Read", {"file_path": "a"}), "text\n" * 200)
    talk.respond()
    talk.say("this")
    talk.user("and b?")
    talk.respond()
    talk.result(talk.call("Read", {"file_path": "b"}), "text\n" * 200)
    talk.respond()
    run = simulate(talk.session(), PRESET, rough)
    stands = [any(b.id == shown.id for b in _context(run, n)) for n in range(2, 6)]
    assert stands == [True, True, False, False]
    assert run.steps[2].once_from == shown.position


def test_no_breakpoint_lies_behind_what_will_leave() -> None:
    talk = _session()
    run = simulate(talk.session(), PRESET, rough)
    for step in run.steps[1:]:
        context = _context(run, step.step)
        before = [block for block in talk.blocks if block.born <= step.step]
        end = ending_at(PRESET, before, context, rough)
        made = render.anthropic(context, block_of, end)
        parts = [part for message in made["messages"] for part in message["content"]]
        marked = [place for place, part in enumerate(parts) if "cache_control" in part]
        shown = next(p for p in parts if f"/m{step.step - 2}.py\n" in str(p.get("content")))
        assert max(marked) < parts.index(shown)
        assert parts[-1] == {"text": end.text, "type": "text"}
        # Up to there the next request says the same.
        if step.step < len(run.steps):
            later = _context(run, step.step + 1)
            same = render.anthropic(later, block_of, breakpoints=False)
            bare = [part for message in same["messages"] for part in message["content"]]
            plain = [{k: v for k, v in p.items() if k != "cache_control"} for p in parts]
            assert plain[: max(marked) + 1] == bare[: max(marked) + 1]


def test_it_is_recited_at_the_end_of_the_newest_user_message_in_every_form() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    talk.result(talk.call("Bash", {"command": "make"}), "made")
    end = Ending((), "recited", 3)
    made = render.anthropic(talk.blocks, block_of, end)
    assert [part["type"] for part in made["messages"][-1]["content"]] == ["tool_result", "text"]
    chat = render.openai(talk.blocks, block_of, end)
    assert chat["messages"][-1] == {"content": "recited", "role": "user"}
    last = render.as_blocks(talk.blocks, block_of, end)["blocks"][-1]
    assert (last["kind"], last["role"], last["tokens"]) == ("recitation", "user", 3)
    assert last["block"] == {"text": "recited", "type": "text"}
    talk.respond()
    talk.say("done")
    made = render.anthropic(talk.blocks, block_of, end)
    assert [message["role"] for message in made["messages"]] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert made["messages"][2]["content"][-1]["text"] == "recited"
    assert json.dumps(made).count("cache_control") == 1
    assert render.anthropic([], block_of, end)["messages"] == []


def test_a_line_is_counted_when_it_is_new_and_not_at_every_call() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return rough(text)

    session = coding(120, 100)
    run = simulate(session, PRESETS["seven-principles"], count)
    lines = [text for text in asked if text.endswith("\n")]
    assert run.steps[-1].recited > 0
    assert len(lines) == len(set(lines)) > 100


def test_leaving_costs_no_cache_and_what_is_recited_is_paid_fresh_each_time() -> None:
    session = _session(60).session()
    run = simulate(session, PRESET, rough)
    rates = price("claude-sonnet-4-5", None)
    assert rates is not None
    cache = simulate_cache(run, session.calls, Terms(price=rates))
    assert [use.broken for use in cache.uses[1:]] == [None] * (len(cache.uses) - 1)
    for step, use in zip(run.steps, cache.uses, strict=True):
        assert use.prompt == step.total + run.hidden + step.added
        assert use.uncached == step.total - step.cacheable
        assert use.uncached >= step.recited > 0 or step.step < 3
    for one, two, figures in zip(cache.uses, cache.uses[1:], run.steps, strict=False):
        assert two.read == figures.cacheable + run.hidden + figures.added or two.read >= one.read
    assert all(payback.rewritten == 0 for payback in cache.revisions)
    assert cache.cost is not None and cache.recorded_cost is not None
    assert cache.cost < cache.recorded_cost


def test_the_sample_session_is_managed_the_same_way_twice() -> None:
    one, two = (simulate(coding(200), PRESET, rough) for _ in range(2))
    assert one == two
