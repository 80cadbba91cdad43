"""What is recited to an agent, on the pages of its session."""

from __future__ import annotations

from typing import Any

from tests.browser.agents import Agent
from tests.browser.replays import open_replay
from tests.browser.test_accessibility import axe, faults
from tests.conftest import Server

__all__ = ["axe"]


def test_what_is_recited_is_the_last_row_and_part_of_the_sum(
    page: Any, served: Server, token: str, axe: str
) -> None:
    agent = Agent(served.address, token, "reciter", policy="recitation", window=200_000)
    agent.says("Read the parts.")
    todo = {"todos": [{"content": "read part 9", "status": "pending"}]}
    use = {"type": "tool_use", "id": "todo", "name": "TodoWrite", "input": todo}
    answer = {"type": "tool_result", "tool_use_id": "todo", "content": "ok"}
    messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    agent.send("/messages", {"messages": messages, "call": "call-0"})
    for _ in range(3):
        agent.get("/context")
        agent.step()
    context = agent.get("/context")
    text = context["messages"][-1]["content"][-1]["text"]
    assert "- [ ] read part 9" in text and context["recited"] > 0
    open_replay(page, agent)
    row = page.get_by_role("button", name="Recited at the end")
    assert "recent observations, key files, todo" in row.inner_text()
    row.click()
    assert page.locator(".recited pre").inner_text().strip() == text.strip()
    assert faults(page, axe, "recited") == []
