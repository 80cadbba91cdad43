"""The real Codex with its default model and a sub-agent, recorded and managed.

Our server is killed in the middle.

`npm install @openai/codex`, name its folder in CONTEXTLAB_AGENTS, and run
`python -m benchmarks.live.agents.codex`. The provider is a local one that checks the
published rules and answers by a script. Exits with the number of checks that failed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.live.agents import audit
from benchmarks.live.agents.coding_task import SUB_REPORT, TASK, acts
from benchmarks.live.agents.frame import READ_BACK, checks, followed, outage, workplace
from benchmarks.live.agents.items_model import READ_BACK as READ_BACK_ID
from benchmarks.live.agents.items_model import ItemsModel, has_read_back, is_managed
from benchmarks.live.agents.stage import Stage, installed, sessions, version
from benchmarks.processes import say
from tests.provider_openai import OpenAIProvider, openai_provider

Json = dict[str, Any]
OBSERVED = 36
"""Steps of the session that is only recorded."""
EXEC = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")


def main() -> int:
    """Run all of it in a folder that is removed."""
    codex = installed("codex", "@openai/codex")
    if not codex:
        return 0
    failed = 0
    for mode in ("observe", "manage"):
        with openai_provider() as it, workplace() as on:
            failed += recorded(on, it, codex) if mode == "observe" else managed(on, it, codex)
    say(f"{version(codex)}: {failed} checks failed")
    return failed


def recorded(on: Stage, it: OpenAIProvider, codex: str) -> int:
    """A session that is only recorded; return how many checks failed."""
    model = it.answer = ItemsModel(acts(on.work)[:OBSERVED], READ_BACK)
    agent = on.wrap("--", codex, *EXEC, TASK, manage=False, **given(it))
    assert agent.wait() == 0, on.said[-2000:]
    own = sessions(on.lab)[-1]
    stored = audit.messages(on.lab, own["external_id"])
    lost = audit.lost(stored, expected(on.home, own["external_id"]))
    steps = f"{own['steps']} of {len(model.log)}"
    return audit.failed([
        ("recorded: requests refused by the provider", not it.refused, it.refused[:2]),
        ("recorded: steps stored", own["steps"] == len(model.log), steps),
        ("recorded: calls and results that are not stored", not lost, lost[:5]),
        *(("recorded: " + name, *rest) for name, *rest in delegated(on, model, own)),
    ])  # fmt: skip


def managed(on: Stage, it: OpenAIProvider, codex: str) -> int:
    """The whole task with managed contexts; return how many checks failed."""
    at_step = outage(on, is_managed)
    model = it.answer = ItemsModel(acts(on.work), READ_BACK, at_step)
    own, shown = followed(on, on.wrap(codex, *EXEC, TASK, **given(it)))
    bodies = [body for body in model.log if is_managed(body)]
    backs = sum(map(has_read_back, bodies))
    session = own["external_id"]
    unseen = backs > 0 and READ_BACK_ID not in rollout(on.home, session)
    return audit.failed([
        *checks(
            on, session, "responses", bodies,
            refused=it.refused, expected=expected(on.home, session), shown=shown,
        ),
        ("requests managed, of all", len(bodies) > 40, f"{len(bodies)} of {len(model.log)}"),
        ("requests with a read-back, unseen by Codex", unseen, backs),
        ("requests of the sub-agent, managed", all(map(is_managed, model.of_sub_agents)),
         len(model.of_sub_agents)),
        *delegated(on, model, own),
    ])  # fmt: skip


def delegated(on: Stage, model: ItemsModel, own: Json) -> list[audit.Row]:
    """The checks of the sub-agent: a child session with all its steps, and its report."""
    children = on.lab.request("GET", f"sessions/{own['id']}/manifest")["session"]["children"]
    steps = [one["steps"] for one in children]
    begun = [one["step"] for one in children]
    sent = [body for body in model.log if SUB_REPORT in json.dumps(body["input"])]
    reported = SUB_REPORT in json.dumps(audit.messages(on.lab, own["external_id"]))
    return [
        ("child sessions, at steps", len(begun) == len(sessions(on.lab)) - 1 == 1, begun),
        ("… its steps", steps == [len(model.of_sub_agents)], steps),
        ("requests with the sub-agent's report, and it is stored", reported, len(sent)),
    ]


def given(it: OpenAIProvider) -> dict[str, str]:
    """The environment of Codex."""
    return {"OPENAI_BASE_URL": f"{it.url}/v1", "OPENAI_API_KEY": "sk-none"}


def rollout(home: Path, session: str) -> str:
    """Codex's own log of a session."""
    return next((home / ".codex/sessions").rglob(f"rollout-*{session}.jsonl")).read_text()


def expected(home: Path, session: str) -> list[Json]:
    """The calls and results in Codex's log, as blocks of the Messages API."""
    found: list[Json] = []
    for line in rollout(home, session).splitlines():
        item = json.loads(line).get("payload") or {}
        if item.get("type") == "custom_tool_call":
            use = {"id": item["call_id"], "input": {"input": item["input"]}}
            found.append({"type": "tool_use", **use})
        elif item.get("type") == "function_call":
            use = {"id": item["call_id"], "input": json.loads(item["arguments"])}
            found.append({"type": "tool_use", **use})
        elif item.get("type") in ("custom_tool_call_output", "function_call_output"):
            output = item["output"]
            found.append({"type": "tool_result", "tool_use_id": item["call_id"], "content": output})
    return found


if __name__ == "__main__":
    sys.exit(main())
