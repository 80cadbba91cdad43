"""Agents of frameworks, each with one tool, run as programs: `python programs.py smolagents`.

They know nothing of ContextLab: their environment points them at the proxy.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable

PARTS = 6
GPT, CLAUDE, GEMINI = "gpt-5.1", "claude-sonnet-4-5", "gemini-3.1-pro-preview"
GPT_WITH_STOPS = "gpt-4.1"


def read_part(number: int) -> str:
    """Read a part of the log.

    Args:
        number: The number of the part, from 1.
    """
    return "\n".join(f"part {number}, line {line}: kelp {line * 7919}" for line in range(2500))


def langchain(model: str, prompt: str) -> str:
    from langchain.agents import create_agent

    given = {"messages": [("user", prompt)]}
    made = create_agent(model, tools=[read_part]).invoke(given, {"recursion_limit": 50})
    return str(made["messages"][-1].text)


def openai_agents(model: str, prompt: str) -> str:
    from agents import Agent, Runner, function_tool

    agent = Agent(name="reader", model=model, tools=[function_tool(read_part)])
    return str(Runner.run_sync(agent, prompt, max_turns=20).final_output)


def pydantic_ai(model: str, prompt: str) -> str:
    from pydantic_ai import Agent

    return str(Agent(model, tools=[read_part]).run_sync(prompt).output)


def litellm(model: str, prompt: str) -> str:
    from litellm import completion

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    tool = {"name": "read_part", "description": "Read a part.", "parameters": schema}
    messages: list[object] = [{"role": "user", "content": prompt}]
    while True:
        given = {"tools": [{"type": "function", "function": tool}], "max_tokens": 500}
        said = completion(model, messages, **given).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return str(said.content)
        for call in said.tool_calls:
            content = read_part(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


def smolagents(model: str, prompt: str) -> str:
    from smolagents import OpenAIModel, ToolCallingAgent, tool

    return str(ToolCallingAgent(tools=[tool(read_part)], model=OpenAIModel(model)).run(prompt))


def smolagents_code(model: str, prompt: str) -> str:
    from smolagents import CodeAgent, OpenAIModel, tool

    return str(CodeAgent(tools=[tool(read_part)], model=OpenAIModel(model)).run(prompt))


def google_genai(model: str, prompt: str) -> str:
    from google import genai

    config = genai.types.GenerateContentConfig(tools=[read_part])
    client = genai.Client()
    return str(client.chats.create(model=model, config=config).send_message(prompt).text)


def google_genai_streamed(model: str, prompt: str) -> str:
    from google import genai

    config = genai.types.GenerateContentConfig(tools=[read_part])
    client = genai.Client()
    chat = client.chats.create(model=model, config=config)
    return "".join(chunk.text or "" for chunk in chat.send_message_stream(prompt))


def claude_agent_sdk(model: str, prompt: str) -> str:
    from claude_agent_sdk import (
        ClaudeAgentOptions,
        ResultMessage,
        create_sdk_mcp_server,
        query,
        tool,
    )

    @tool("read_part", "Read a part of the log.", {"number": int})
    async def part(given: dict[str, int]) -> dict[str, object]:
        return {"content": [{"type": "text", "text": read_part(**given)}]}

    options = ClaudeAgentOptions(
        model=model,
        mcp_servers={"log": create_sdk_mcp_server("log", tools=[part])},
        allowed_tools=["mcp__log__read_part"],
    )

    async def run() -> str:
        async for message in query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                return str(message.result)
        return ""

    return asyncio.run(run())


AGENTS: dict[str, tuple[Callable[[str, str], str], str]] = {
    "langchain-openai": (langchain, f"openai:{GPT}"),
    "langchain-anthropic": (langchain, f"anthropic:{CLAUDE}"),
    "openai-agents": (openai_agents, GPT),
    "pydantic-ai-openai": (pydantic_ai, f"openai-chat:{GPT}"),
    "pydantic-ai-anthropic": (pydantic_ai, f"anthropic:{CLAUDE}"),
    "pydantic-ai-google": (pydantic_ai, f"google:{GEMINI}"),
    "litellm-openai": (litellm, f"openai/{GPT}"),
    "litellm-anthropic": (litellm, f"anthropic/{CLAUDE}"),
    "smolagents": (smolagents, GPT),
    "smolagents-code": (smolagents_code, GPT_WITH_STOPS),
    "google-genai": (google_genai, GEMINI),
    "google-genai-streamed": (google_genai_streamed, GEMINI),
    "claude-agent-sdk": (claude_agent_sdk, CLAUDE),
}
"""By name: the program and its model."""

if __name__ == "__main__":
    agent, model = AGENTS[sys.argv[1]]
    sys.stdout.write(agent(model, f"Read all {PARTS} parts of the log for {sys.argv[1]}."))
