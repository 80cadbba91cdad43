"""Replies that are stored after the agent has them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from contextlab.client.answers import Appended, Context
from contextlab.client.managed import ManagedSession
from contextlab.client.sessions import ContextLab

Json = dict[str, Any]


class Slow:
    """A server whose session waits before it stores a reply."""

    def __init__(self) -> None:
        self.may_go, self.keeps = threading.Event(), threading.Event()
        self.done: list[str] = []
        self.news: list[int] = []
        self.is_new = True

    def hurried(self, _: float) -> Slow:
        return self

    def session(self, *_: Any, **__: Any) -> Slow:
        return self

    def shared_step(self, messages: list[Json], **_: Any) -> Context:
        self.done.append("step")
        self.news.append(len(messages))
        appended = {"last_seq": 2 * len(self.news) - 1}
        return Context("c", 1, 1, {"messages": messages}, {"appended": appended})

    def answer(self, *_: Any) -> Appended:
        self.keeps.set()
        assert self.may_go.wait(30)
        self.done.append("reply")
        return Appended(1, 0, {}, 0, {"last_seq": 2})


def test_the_next_call_waits_until_the_reply_is_stored() -> None:
    server = Slow()
    asked: list[Json] = [{"role": "user", "content": "Go."}]
    reply = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    with ThreadPoolExecutor(1) as later, ThreadPoolExecutor(1) as agent:
        session = ManagedSession(cast(ContextLab, server), "slow", {}, later=later)
        _, context = session.ask({"messages": asked})
        assert context is not None
        session.keep(reply, context, {"messages": asked})
        assert server.keeps.wait(30), "the agent goes on while it is being stored"
        following = agent.submit(session.ask, {"messages": [*asked, reply, *asked]})
        assert server.done == ["step"]
        server.may_go.set()
        following.result()
    assert server.done == ["step", "reply", "step"]
    assert server.news == [1, 1], "the reply is known"
