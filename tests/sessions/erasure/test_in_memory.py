"""What processes keep in memory of erased content is in no answer of theirs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from sessions.actions.accounts.audit import COMMAND
from sessions.actions.erasure import retention
from sessions.actions.live import folds
from sessions.models import Hold, Job, Session
from tests.sessions.erasure.erasing import MARK, do_jobs, eraser
from tests.sessions.programs import Program
from tests.sessions.web import world as worlds
from tests.sessions.web.addresses import BODIES, PRIVATE
from tests.sessions.web.world import browser_of, by_browser, by_program, each, one_of_everything

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.store,
    pytest.mark.usefixtures("jobs_wait"),
]

FORMS = ("context?format=blocks", "context?format=openai", "content/1?grep=the", "why?text=line+1")


def reading(call: str) -> list[dict[str, Any]]:
    """A step whose call and result hold the mark."""
    given = {"file_path": f"{call}.py", "note": MARK}
    use = {"type": "tool_use", "id": call, "name": "Read", "input": given}
    text = "\n".join(f"line {number} of {MARK} {call}" for number in range(300))
    result = {"type": "tool_result", "tool_use_id": call, "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def shown_by(program: Program, client: Client, ids: dict[str, Any]) -> set[str]:
    """The routes that show the mark, to a person or to an agent."""
    found = set()
    for address in each([one for one in PRIVATE if one.takes]):
        answers = [by_browser(client, address, ids), by_program(program, address, ids)]
        if any(MARK in text_of(answer) for answer in answers):
            found.add(address.route)
    for form in FORMS:
        if MARK in text_of(program.ask("GET", f"/sessions/{ids['session_id']}/{form}")):
            found.add(form)
    return found


def text_of(answer: Any) -> str:
    data = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return data.decode("utf-8", "replace").lower()


@pytest.mark.parametrize("content_only", [True, False])
def test_no_route_shows_what_was_erased(
    content_only: bool, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "reading", reading)
    first = {"messages": [{"role": "user", "content": f"Feed the {MARK}: the port is 80"}]}
    monkeypatch.setitem(BODIES, "messages", first)
    folds.forget_all()
    ids = one_of_everything(program)
    Hold.objects.all().delete()
    client, key = browser_of(program.team), eraser(program)
    before = shown_by(key, client, ids)
    assert len(before) > 12 and {"context?format=blocks", "content/1?grep=the"} <= before
    if content_only:
        at = timezone.now() - timedelta(days=100)
        Session.objects.filter(pk=ids["session_id"]).update(
            ended_at=int(at.timestamp() * 1000), changed=at, created=at
        )
        retention.change(program.team, 90, None, COMMAND)
        Job.objects.filter(payload__session=str(ids["session_id"])).delete()
        retention.sweep(timezone.now())
    else:
        key.ask("DELETE", f"/sessions/{ids['session_id']}")
    do_jobs()
    assert shown_by(key, client, ids) == set()
