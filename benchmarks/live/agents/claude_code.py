"""The real Claude Code, managed: 70 steps, our server killed, then the proxy; then a compaction.

`npm install @anthropic-ai/claude-code`, name its folder in CONTEXTLAB_AGENTS, and run
`python -m benchmarks.live.agents.claude_code`. The provider is a local one that checks the
published rules and answers by a script. Exits with the number of checks that failed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.live.agents import audit, messages_model
from benchmarks.live.agents.coding_task import TASK, acts
from benchmarks.live.agents.frame import READ_BACK, checks, followed, outage, workplace
from benchmarks.live.agents.messages_model import Model
from benchmarks.live.agents.stage import Stage, installed, sessions, version
from benchmarks.processes import say
from tests.conftest import free_port
from tests.provider import Provider, provider

Json = dict[str, Any]
PROXY = 78
"""The step at which the proxy dies."""
TOOLS = ("--allowedTools", "Read,Edit,Bash,Grep,Glob,Agent", "--output-format", "json")
KEY = {"ANTHROPIC_API_KEY": "sk-ant-none"}


def main() -> int:
    """Run all of it in a folder that is removed."""
    claude = installed("claude", "@anthropic-ai/claude-code")
    if not claude:
        return 0
    with provider() as it, workplace() as on:
        model = script(on)
        it.answer = model
        agent = on.wrap(claude, "-p", TASK, *TOOLS, ANTHROPIC_BASE_URL=it.url, **KEY)
        own, shown = followed(on, agent)
        session = own["external_id"]
        through_the_proxy(on, it, model, claude, session)
        failed = audited(on, it, model, session, shown)
        say(f"Claude Code {version(claude)}: {failed} checks failed")
    return failed


def script(on: Stage) -> Model:
    """The model, which lets our server and the proxy die while it answers."""
    task = acts(on.work)
    again = [act for act in task if act.kind == "check"]
    model = Model([*task, *again], READ_BACK, len(task))
    model.at_step = outage(on, is_managed, {PROXY: on.kill_proxy})
    return model


def is_managed(body: Json) -> bool:
    """Whether a request has our tool."""
    return "read_back" in json.dumps(body.get("tools"))


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
    own = on.lab.request("GET", f"sessions/{session}")
    children = len({one["external_id"] for one in sessions(on.lab)} - {session})
    asked = len({"sub", "side"} & {sent.kind for sent in model.log})
    backs = sum(map(messages_model.has_read_back, managed))
    unseen = backs > 0 and messages_model.READ_BACK not in agent_log(on.home, session)
    made = on.lab.request("GET", f"sessions/{session}/revisions")["revisions"]
    compactions = [one["step"] for one in made if one["trigger"] == "manual"]
    return audit.failed([
        *checks(
            on, session, "anthropic", managed,
            refused=it.refused, expected=transcript(on.home, session), shown=shown,
        ),
        ("requests managed, of all", len(managed) > 60, f"{len(managed)} of {len(main)}"),
        ("requests with a read-back, unseen by Claude Code", unseen, backs),
        ("compactions by Claude Code, at steps", len(compactions) == 1, compactions),
        ("child sessions: a sub-agent, side calls if any", children == asked, children),
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
