"""Messages as live agents append them."""

from __future__ import annotations

from typing import Any

from sessions.actions.accounts.teams import local_team
from sessions.actions.live.deliver import Delivered, Once, deliver, delivery
from sessions.actions.live.live_sessions import SessionFields, put_session
from sessions.models import Session

Json = dict[str, Any]


def live(name: str = "run", **fields: Any) -> Session:
    return put_session(local_team(), name, SessionFields(**{"model": "gpt-5", **fields}))[0]


def delivered(
    session: Session, *messages: Json, once: Once | None = None, **more: Any
) -> Delivered:
    batch = delivery({"messages": list(messages), **more})
    return deliver(session, batch, once=once, now=1_000)


def send(session: Session, *messages: Json, **more: Any) -> Json:
    return delivered(session, *messages, **more).answer


def user(text: str, **more: Any) -> Json:
    return {"role": "user", "content": text, **more}


def says(text: str, **more: Any) -> Json:
    return {"role": "assistant", "content": text, **more}


def reads(tool_call: str, path: str, **more: Any) -> Json:
    use = {"type": "tool_use", "id": tool_call, "name": "Read", "input": {"file_path": path}}
    return {"role": "assistant", "content": [use], **more}


def result(tool_call: str, text: str, **more: Any) -> Json:
    answer = {"type": "tool_result", "tool_use_id": tool_call, "content": text}
    return {"role": "user", "content": [answer], **more}
