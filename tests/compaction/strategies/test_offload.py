"""Offload: what leaves, when, and what stays in its place."""

from __future__ import annotations

import json
from dataclasses import replace

from compaction.context.blocks import Block, FileRef
from compaction.context.edits import context_at
from compaction.context.stubs import input_stub, result_stub
from compaction.policies.policy import Policy, Step
from compaction.simulation.simulate import Run, simulate
from compaction.strategies.offload import Offload
from tests.build import Talk, rough

LONG = "some line of output\n" * 200


def _run(talk: Talk, **parameters: object) -> Run:
    policy = Policy("o", steps=(Step("offload", Offload(**parameters)),))  # type: ignore[arg-type]
    return simulate(talk.session(), policy, rough)


def _reads(count: int) -> Talk:
    talk = Talk()
    talk.user("go")
    for number in range(count):
        talk.respond()
        talk.result(talk.call("Read", {"path": f"f{number}"}), LONG)
    return talk


def _gone(run: Run) -> dict[int, list[str]]:
    return {r.step: [e.targets[0] for e in r.edits] for r in run.revisions}


def test_batches_fall_where_the_worked_example_has_them() -> None:
    """docs/sources.md: keep 5, batch 5, first batch at request 11, the next at 16."""
    run = _run(_reads(21))
    assert list(_gone(run)) == [11, 16, 21]
    assert _gone(run)[11] == ["b2", "b4", "b6", "b8", "b10"]
    assert {r.trigger for r in run.revisions} == {"batch"}


def test_the_prefix_of_the_worked_example_is_kept_up_to_the_frontier() -> None:
    """Request 16 reads 13,950 tokens: 12,150 of the opening and five turns of 300 + 60."""
    blocks = []
    talk = Talk()
    talk.system("s")
    talk.user("u")
    blocks += [12_000, 150]
    for _ in range(20):
        talk.respond()
        talk.result(talk.call("Read", {"path": "f"}), LONG)
        blocks += [300, 2_000]
    sized = [_with_tokens(b, n) for b, n in zip(talk.blocks, blocks, strict=True)]
    talk.blocks = sized
    policy = Policy("o", steps=(Step("offload", Offload(inputs=False)),))
    run = simulate(talk.session(), policy, lambda _: 60)
    assert run.steps[10].total == 25_450
    assert (run.steps[10].unchanged_prefix, run.steps[10].frontier) == (12_450, 13_950)
    assert run.steps[15].unchanged_prefix == 13_950 + 300


def _with_tokens(block: Block, tokens: int) -> Block:
    return replace(block, tokens=tokens)


def test_age_and_batch_in_turns() -> None:
    talk = Talk()
    for number in range(6):
        talk.user("next")
        talk.respond()
        talk.result(talk.call("Read", {"path": f"f{number}"}), LONG)
    assert list(_gone(_run(talk, age=2, batch=2, unit="turns"))) == [4, 6]


def test_excluded_pinned_small_and_failed_stay() -> None:
    talk = Talk()
    talk.user("go")
    talk.respond()
    talk.result(talk.call("Skill", {}), LONG)
    pinned = talk.call("Read", {"path": "p"}, pinned=True)
    talk.result(pinned, LONG)
    talk.result(talk.call("Read", {"path": "s"}), "small")
    failed = talk.call("Bash", {"command": "make test", "note": LONG})
    talk.result(failed, LONG, error=True)
    for _ in range(3):
        talk.respond()
        talk.say("thinking aloud")
        talk.result(talk.call("LS", {}), "x")
    assert _gone(_run(talk, age=1, batch=1, exclude=("Skill",))) == {}
    late = _run(talk, age=1, batch=1, keep_failures=False)
    assert [n for names in _gone(late).values() for n in names] == ["b2", "b7", "b8"]


def test_a_failure_leaves_once_it_is_mended() -> None:
    talk = Talk()
    talk.user("go")
    for step in range(8):
        talk.respond()
        use = talk.call("Bash", {"command": f"cd /x && make test {step}"})
        talk.result(use, LONG, error=step == 0)
        if step == 0:
            failed = talk.blocks[-1]
    gone = _gone(_run(talk, age=5, batch=1))
    assert failed.id in gone[7]
    lonely = Talk()
    lonely.user("go")
    lonely.respond()
    lonely.result(lonely.call("Bash", {"command": "make test"}), LONG, error=True)
    for _ in range(9):
        lonely.respond()
        lonely.result(lonely.call("Bash", {"command": "ls -l"}), LONG)
    assert "b2" not in [n for names in _gone(_run(lonely)).values() for n in names]


def test_a_stub_never_changes_its_bytes() -> None:
    long, short = _reads(30), _reads(12)
    stubs = [e.block.text for e in _run(long).entries if e.block.replaces == "b2"]
    assert stubs == [e.block.text for e in _run(short).entries if e.block.replaces == "b2"]
    assert len(stubs) == 1


def test_pairs_roles_and_tools_outlive_their_content() -> None:
    talk = _reads(12)
    run = _run(talk)
    for place, block in context_at(run.entries, 12).items():
        was = talk.blocks[place]
        assert (block.role, block.type, block.tool, block.tool_call, block.call) == (
            was.role, was.type, was.tool, was.tool_call, was.call)  # fmt: skip


def test_the_stub_of_a_result_says_what_it_was_and_where_it_is() -> None:
    talk = Talk()
    use = talk.call("Read", {"file_path": "src/a.py"}, file=FileRef("src/a.py", "read", 10, 40))
    text = "    10→class Reader:\n    11→    def read(self):\n"
    block = talk.result(use, text)
    assert result_stub(block, use) == (
        f"[offloaded: Read src/a.py:10-40 | {len(text)} chars, 3 lines | python: Reader, read"
        f" | ref b1@{block.sha[:8]}]"
    )


def test_the_stub_of_an_input_stays_a_json_object() -> None:
    talk = Talk()
    block = talk.call("Write", {"path": "a.py", "content": LONG, "n": 3, "edits": [LONG]})
    stub = json.loads(input_stub(block))
    assert (stub["path"], stub["n"]) == ("a.py", 3)
    gone = f"content, edits | {block.chars} chars | ref b0@{block.sha[:8]}"
    assert stub["offloaded"] == f"[offloaded: {gone}]"
    assert set(stub) == {"path", "n", "offloaded"}
    broken = talk.add("not json" * 40, role="assistant", type="tool_use", kind="assistant")
    assert set(json.loads(input_stub(broken))) == {"offloaded"}


def test_the_stub_of_an_input_keeps_how_a_described_call_began() -> None:
    block = Talk().call("Bash", {"command": "run " * 60, "timeout": 5})
    note = json.loads(input_stub(block))["offloaded"]
    brief = json.loads(input_stub(block, brief=True))["offloaded"]
    assert note.startswith("[offloaded: command: run run run")
    assert len(brief) < len(note)


def test_a_brief_stub_of_an_input_names_what_left_it() -> None:
    talk = Talk()
    given = {"path": "a.py", "old": "before " * 40, "new": "after " * 40, "all": True}
    block = talk.call("Edit", given)
    stub = json.loads(input_stub(block, brief=True))
    assert stub["path"] == "a.py"
    assert stub["all"] is True
    gone = f"old, new | {block.chars} chars | ref {block.id}@{block.sha[:8]}"
    assert stub["offloaded"] == f"[offloaded: {gone}]"
    assert set(stub) == {"path", "all", "offloaded"}
