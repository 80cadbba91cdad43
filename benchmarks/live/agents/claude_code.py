"""The real Claude Code, managed: 70 steps, our server killed, then the proxy; then a compaction.

`npm install @anthropic-ai/claude-code`, name its folder in CONTEXTLAB_AGENTS, and run
`python -m benchmarks.live.agents.claude_code`. The provider is a local one that checks the
published rules and answers by a script. Exits with the number of checks that failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.live.agents import audit, messages_model
from benchmarks.live.agents.coding_task import TASK, acts, finished, project
from benchmarks.live.agents.messages_model import Model
from benchmarks.live.agents.stage import (
    Stage,
    first_session,
    installed,
    sessions,
    stage,
    version,
    watching,
)
from benchmarks.processes import say
from tests.conftest import free_port
from tests.provider import Provider, provider

Json = dict[str, Any]
OPEN, KILL, START, READ_BACK, PROXY = 3, 24, 29, 45, 78
"""Steps at which the replay must be open, our server dies and comes back, the model reads back,
and the proxy dies."""
TOOLS = ("--allowedTools", "Read,Edit,Bash,Grep,Glob,Agent", "--output-format", "json")
KEY = {"ANTHROPIC_API_KEY": "sk-ant-none"}


def main() -> int:
    """Run all of it in a folder that is removed."""
    claude = installed("claude", "@anthropic-ai/claude-code")
    if not claude:
        return 0
    with tempfile.TemporaryDirectory() as folder, provider() as it, stage(Path(folder)) as on:
        project(on.work)
        model = script(on)
        it.answer = model
        session, shown = wrapped(on, it, claude)
        through_the_proxy(on, it, model, claude, session)
        failed = audited(on, it, model, session, shown)
        say(f"Claude Code {version(claude)}: {failed} checks failed")
    return failed


def script(on: Stage) -> Model:
    """The model, which lets our server and the proxy die while it answers."""
    task = acts(on.work)
    again = [act for act in task if act.kind == "check"]
    model = Model([*task, *again], READ_BACK, len(task))
    done: set[int] = set()

    def at_step(step: int, body: Json) -> None:
        first, managed = step not in done, "read_back" in json.dumps(body.get("tools"))
        done.add(step)
        if step == OPEN and first:
            on.opened.wait(120)
        elif step == KILL and first:
            on.kill_server()
        elif step == START and first:
            on.start_server()
        elif step > START and not managed:
            time.sleep(5)  # the proxy asks our server again after a pause
        elif step == PROXY and first:
            on.kill_proxy()

    model.at_step = at_step
    return model


def wrapped(on: Stage, it: Provider, claude: str) -> tuple[str, list[int]]:
    """The task through `contextlab wrap --manage`, and the steps that an open replay showed."""
    agent = on.wrap(claude, "-p", TASK, *TOOLS, ANTHROPIC_BASE_URL=it.url, **KEY)
    with watching(on) as page:
        found = first_session(on, agent)
        session = found["external_id"]
        page.open(found["id"])
        code = page.until_ended(agent)
        assert code == 0, on.said[-2000:]
        last = on.lab.request("GET", f"sessions/{session}")["steps"]
        return session, page.shown(last)


def through_the_proxy(on: Stage, it: Provider, model: Model, claude: str, session: str) -> None:
    """The session resumed through `contextlab proxy`, which dies; then compacted by the agent."""
    port = free_port()
    address = on.start_proxy(port, anthropic=it.url)
    for said, until in (
        ("Check all modules again.", len(model.acts)), ("/compact", 0), ("Report again.", 0)
    ):  # fmt: skip
        model.until = until
        agent = on.run(
            [claude, "-p", said, "--resume", session, *TOOLS],
            ANTHROPIC_BASE_URL=f"{address}/anthropic", **KEY,
        )  # fmt: skip
        while agent.poll() is None:
            time.sleep(0.1)
            if on.proxy_died:
                on.start_proxy(port, anthropic=it.url)
        assert agent.returncode == 0, on.said[-2000:]


def audited(on: Stage, it: Provider, model: Model, session: str, shown: list[int]) -> int:
    """Say what was found; return how many checks failed."""
    main = [sent for sent in model.log if sent.kind == "main"]
    managed = [sent.body for sent in main if sent.is_managed]
    stable = audit.stability(on.lab, session, "anthropic", managed)
    stored = audit.messages(on.lab, session)
    lost = audit.lost(stored, transcript(on.home, session))
    own = on.lab.request("GET", f"sessions/{session}")
    children = {one["external_id"] for one in sessions(on.lab)} - {session}
    backs = sum(map(messages_model.has_read_back, managed))
    unseen = backs > 0 and messages_model.READ_BACK not in agent_log(on.home, session)
    return audit.told([
        ("task done by the agent", finished(on.work), f"{len(model.acts)} tool uses"),
        ("requests refused by the provider", not it.refused, it.refused[:2]),
        ("requests managed, of all", len(managed) > 60, f"{len(managed)} of {len(main)}"),
        *audit.stable(stable),
        ("requests with a read-back, unseen by Claude Code", unseen, backs),
        ("tool uses and results that are not stored", not lost, lost[:5]),
        ("replay followed", len(shown) > 30, f"{len(shown)} steps shown of {shown[-1]}"),
        ("child sessions: a sub-agent, side calls", len(children) == 2, len(children)),
        ("stored steps", own["steps"] >= len(model.acts), own["steps"]),
    ])  # fmt: skip


def agent_log(home: Path, session: str) -> str:
    """Claude Code's own transcript of a session."""
    return next((home / ".claude/projects").glob(f"*/{session}.jsonl")).read_text()


def transcript(home: Path, session: str) -> list[Json]:
    """The tool uses and results of a session, as Claude Code keeps them."""
    found = []
    for line in agent_log(home, session).splitlines():
        content = (json.loads(line).get("message") or {}).get("content")
        for block in content if isinstance(content, list) else ():
            if block.get("type") in ("tool_use", "tool_result"):
                found.append(block)
    return found


if __name__ == "__main__":
    sys.exit(main())
