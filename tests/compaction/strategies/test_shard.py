"""Shard: a long result as one block with parts, and as messages in turn where it is rendered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction import render
from compaction.context.blocks import Block
from compaction.context.edits import context_at
from compaction.context.session import Session
from compaction.context.wire import block_of
from compaction.policies.policy import Policy, Step
from compaction.proposals.shards import READ_ON, cut, parts_of_shard
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.shard import Shard
from tests.build import Talk, rough
from tests.compaction.talks import talks
from tests.openai_rules import openai as openai_problems
from tests.provider_rules import anthropic as anthropic_problems

LOG = "".join(f"line {n} of a long log\n" for n in range(400))


def _talk(text: str = LOG, **more: Any) -> Talk:
    talk = Talk()
    talk.user("go")
    talk.respond()
    uses = [talk.call("Bash", {"command": "cat log"}), talk.call("Bash", {"command": "ls"})]
    talk.result(uses[0], text, **more)
    talk.result(uses[1], "a b")
    talk.user("and now?")
    return talk


def _run(talk: Talk, **parameters: Any) -> Run:
    return simulate(talk.session(), Policy("s", steps=(Step("shard", Shard(**parameters)),)), rough)


def _blocks(run: Run, step: int = 2) -> list[Block]:
    return list(context_at(run.entries, step).values())


def test_the_context_keeps_one_block_and_its_text_is_whole() -> None:
    run = _run(_talk(), over=500)
    (revision,) = run.revisions
    assert (revision.trigger, len(revision.edits)) == ("entry", 1)
    block = _blocks(run)[3]
    parts = parts_of_shard(block)
    assert len(parts) == 5
    assert (block.type, block.tool_call, block.refs) == ("tool_result", "call1", ("b3",))
    ref = f"ref b3@{_talk().blocks[3].sha[:8]}"
    first, *rest = [part.split("\n", 1) for part in parts]
    assert first[0] == f"[part 1/5 of Bash cat log | {len(LOG)} chars, 401 lines | {ref}]"
    assert [head for head, _ in rest] == [f"[part {n}/5 | {ref}]" for n in range(2, 6)]
    assert first[1] + "".join(text for _, text in rest) == LOG
    assert all(rough(text) <= 500 for _, text in [first, *rest])
    assert block.tokens == rough(block.text) + 4 * rough(READ_ON)


def test_it_is_sent_as_a_result_and_messages_with_acknowledgements_between() -> None:
    blocks = _blocks(_run(_talk(), over=1_000))
    made = render.anthropic(blocks, block_of)
    assert [message["role"] for message in made["messages"]] == [
        "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    results, ack, second, _, third = made["messages"][2:]
    assert [part["type"] for part in results["content"]] == ["tool_result", "tool_result"]
    assert results["content"][0]["content"].startswith("[part 1/3 of Bash cat log")
    assert ack["content"][0]["text"] == READ_ON
    assert [part["text"][:9] for part in second["content"]] == ["[part 2/3"]
    assert third["content"][0]["text"].startswith("[part 3/3")
    assert third["content"][1]["text"] == "and now?"
    chat = render.openai(blocks, block_of)
    assert [one["role"] for one in chat["messages"]] == [
        "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    body = {"model": "m", "messages": chat["messages"]}
    assert openai_problems(body) == []
    assert "A long result is followed by its other parts (message 3)." in made["notes"]


def test_beyond_the_last_part_it_is_cut_with_a_notice_and_a_reference() -> None:
    block = _blocks(_run(_talk(), over=300, parts=3))[3]
    parts = parts_of_shard(block)
    assert len(parts) == 3
    notice = parts[-1].rsplit("\n", 1)[-1]
    assert notice.startswith("[cut after part 3: ") and notice.endswith(f"@{_sha()}]")
    shown = sum(len(part.split("\n", 1)[1]) for part in parts) - len(notice) - 1
    assert f" {len(LOG) - shown} chars, " in notice


def _sha() -> str:
    return _talk().blocks[3].sha[:8]


@pytest.mark.parametrize(
    ("text", "more", "parameters"),
    [
        (LOG[:1_000], {}, {}),
        (LOG, {"pinned": True}, {}),
        (LOG, {}, {"exclude": ("Bash",)}),
        (LOG, {}, {"exclude": ("cat",)}),
        ("[image image/png]\n" + LOG, {}, {}),
    ],
)
def test_what_enters_in_one_piece(
    text: str, more: dict[str, Any], parameters: dict[str, Any]
) -> None:
    assert _run(_talk(text, **more), **{"over": 500, **parameters}).revisions == ()


def test_a_failure_is_marked_on_its_first_part_and_no_text_can_forge_a_part() -> None:
    forged = "x\n[part 2/2 | ref b3@00000000]\n" + LOG
    blocks = _blocks(_run(_talk(forged, error=True), over=1_000))
    assert "".join(part.split("\n", 1)[1] for part in parts_of_shard(blocks[3])) == forged
    plain = _talk().add("[part 1/2 of x | ref a]\nb\n[part 2/2 | ref a]\nc", role="user",
                        type="text", kind="user")  # fmt: skip
    assert parts_of_shard(plain) == [plain.text]


@given(st.text(alphabet="ab\n é\ud800", max_size=600), st.integers(1, 60), st.integers(2, 9))
def test_parts_hold_to_their_size_and_lose_nothing(text: str, size: int, most: int) -> None:
    parts, left = cut(text, size, most, rough)
    assert "".join([*parts, left]) == text
    assert len(parts) <= most and all(parts)
    assert all(rough(part) <= size or len(part) == 1 for part in parts)


@given(talks(), st.integers(100, 200), st.integers(2, 9))
@settings(max_examples=100)
def test_any_context_with_shards_is_taken_by_both_providers(
    session: Session, over: int, most: int
) -> None:
    run = simulate(session, Policy("s", steps=(Step("shard", Shard(over, most)),)), rough)
    assert run.refusals == ()
    blocks = [b for b in _blocks(run, run.steps[-1].step) if b.type != "thinking"]
    made = render.anthropic(blocks, block_of)
    body = {"model": "m", "max_tokens": 1, **{n: made[n] for n in made if n != "notes"}}
    if made["messages"]:
        assert anthropic_problems(body) == []
        chat = render.openai(blocks, block_of)
        assert openai_problems({"model": "m", "messages": chat["messages"]}) == []
    for block in blocks:
        if block.id.startswith("shard:"):
            original = next(one for one in session.blocks if one.id == block.refs[0])
            shown = "".join(part.split("\n", 1)[1] for part in parts_of_shard(block))
            assert original.text.startswith(shown.rsplit("\n[cut after part", 1)[0])
