"""Claude Code logs: whole sessions, their agents, and compactions."""

from __future__ import annotations

from pathlib import Path

from compaction.context.session import Usage
from sessions.importers import parse
from sessions.importers.records import Call, Clear, Compaction, Log, Message, Rewind
from tests.sessions.importers.claude_lines import log_of, of, responded, said, session_of

SAMPLES = Path(__file__).parent / "samples"


SESSION = "0b5c1a52-0000-4000-8000-000000000001"


def load(name: str) -> Log:
    return parse((SAMPLES / name).read_bytes(), name)


def test_a_session_of_every_kind_of_line() -> None:
    log = load("claude-code/claude-code.jsonl")
    (session,) = log.sessions
    assert (session.external_id, session.title, session.window) == (SESSION, "Tide table", 200_000)
    assert session.meta["version"] == "2.1.20"
    assert session.meta["spawned"] == {f"{SESSION}/agent-a1b2c3d": "toolu_3"}
    assert [m.blocks[0]["text"] for m in of(session, Message) if m.human] == [
        "The tide table prints one hour late. Find out why.",
        "Fix it in tide.",
        "No, fix it in print_table instead.",
        "Go on.",
    ]
    calls = of(session, Call)
    assert [call.call for call in calls] == [
        "msg_1",
        "msg_1",
        *(f"msg_{n}" for n in range(2, 9)),
    ]
    assert calls[0].usage == Usage(4, 12000, 3000, 0, 1)
    assert calls[1].usage == Usage(4, 12000, 3000, 0, 96)
    assert calls[2].usage == Usage(3, 15000, 200, 900, 40)
    assert {call.model for call in calls} == {
        "claude-opus-4-5-20251101",
        "claude-sonnet-4-5-20250929",
    }
    # The client's own response is in the context, and no model call.
    assert [m.key for m in of(session, Message) if m.role == "assistant" and not m.call]
    assert [item.type for item in log.skipped if item.reason == "unknown"] == ["a-type-of-tomorrow"]


def test_leaving_or_updating_the_client_starts_a_new_one() -> None:
    exit_said = "<command-name>/exit</command-name>\n<command-message>exit</command-message>"
    updated = responded("a3", "u3", "c3") | {"version": "2.2", "effort": "high"}
    session = session_of(
        said("u1", None, version="2.1"), responded("a1", "u1", "c1") | {"version": "2.1"},
        said("x", "a1", exit_said), said("u2", "x", version="2.1"),
        responded("a2", "u2", "c2") | {"version": "2.1"}, said("u3", "a2"), updated,
    )  # fmt: skip
    calls = of(session, Call)
    assert [call.client for call in calls] == ["2.1 0", "2.1 1", "2.2 1"]
    assert [call.settings for call in calls] == ["", "", "high"]


def test_going_back_drops_what_was_said_since() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (rewind,) = of(session, Rewind)
    dropped = [m for m in of(session, Message) if m.key in rewind.drop]
    assert [m.call for m in dropped] == [None, "msg_4", None, "msg_5"]
    place = session.records.index(rewind)
    assert session.records[place + 1].human  # type: ignore[union-attr]


def test_a_compaction_is_followed_by_its_summary() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (compaction,) = of(session, Compaction)
    assert (compaction.trigger, compaction.keep) == ("manual", ())
    assert (compaction.tokens_before, compaction.tokens_after) == (15500, 2100)
    after = session.records[session.records.index(compaction) + 1]
    assert isinstance(after, Message)
    assert (after.kind, after.human) == ("summary", False)


def test_a_microcompaction_clears_results() -> None:
    (session,) = load("claude-code/claude-code.jsonl").sessions
    (clear,) = of(session, Clear)
    assert clear.tool_calls == ("toolu_1",)


def test_an_agent_file_is_a_session_of_its_own() -> None:
    (agent,) = load("claude-code/agent-a1b2c3d.jsonl").sessions
    assert (agent.external_id, agent.parent) == (f"{SESSION}/agent-a1b2c3d", SESSION)
    assert not any(message.human for message in of(agent, Message))
    assert "warmup" not in agent.meta


def test_an_inline_side_chain_is_split_out_and_tied_to_its_task() -> None:
    main, side = load("claude-code/claude-code-inline.jsonl").sessions
    assert side.external_id == f"{main.external_id}/00000203-0000-4000-8000-00000000aaaa"
    assert (side.parent, side.parent_call) == (main.external_id, "toolu_o1")
    assert [call.call for call in of(main, Call)] == ["msg_o1", "msg_o4"]
    assert [call.call for call in of(side, Call)] == ["msg_o2", "msg_o3"]
    assert of(main, Rewind) == of(side, Rewind) == []


def test_two_side_chains_with_one_prompt_are_tied_in_order() -> None:
    task = {"type": "tool_use", "name": "Task", "input": {"prompt": "Go."}}
    tasks = [{**task, "id": "one"}, {**task, "id": "two"}]
    log = log_of(
        responded("a", None, "m", content=tasks),
        said("x", None, "Go.", isSidechain=True),
        said("y", None, "Go.", isSidechain=True),
    )
    assert [session.parent_call for session in log.sessions] == [None, "one", "two"]


def test_a_warm_up_is_flagged() -> None:
    session = session_of(said("u", None, "Warmup", isSidechain=True, agentId="9"))
    assert session.meta["warmup"] is True
