"""The asynchronous client, against a running server."""

from __future__ import annotations

import asyncio

from contextlab.client import AsyncContextLab, ContextLab
from tests.contextlab.client.test_client import lab
from tests.contextlab.client.test_examples import key_of

__all__ = ["lab"]


def test_an_asynchronous_agent_appends_and_gets_its_context(lab: ContextLab) -> None:
    async def talk() -> None:
        async with AsyncContextLab(lab.url, key_of(lab)) as later:
            session = await later.session("later", agent="fixer", model="claude-sonnet-5")
            stored = await session.append({"role": "user", "content": "port 8417"})
            context = await session.context()
            assert (stored.appended, len(context.messages)) == (1, 1)
            reply = {"role": "assistant", "content": [{"type": "text", "text": "ok"}], "id": "m"}
            await session.answer(reply, context)
            assert await session.read_back("m1.0") == "port 8417"
            assert (await session.why("8417"))["seen"][0]["entry"] == "1"
            assert (await session.verdict())["lost"] == []
            await session.finish("succeeded")

    asyncio.run(talk())
    assert lab.request("GET", "sessions/later")["outcome"] == "succeeded"
