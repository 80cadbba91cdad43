"""Live pages that follow a session: each change is sent."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from sessions import consumers
from sessions.actions.accounts.teams import local_team
from sessions.actions.record.append import append
from sessions.api.replay.following import manifest_json
from sessions.models import Run, Session, Team
from tests.sessions.made import count, reading
from tests.sessions.web.live.sockets import (
    PATIENCE,
    answer,
    heard,
    new_job,
    new_session,
    page,
    signed_in,
)

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hinting"),
]


@sync_to_async
def grown(step: int) -> Session:
    """One more step of a session that an agent sends."""
    made = reading(step)
    made.model = "gpt-5"
    return append(local_team(), made, count, source="api").session


def manifest_of(session: Session, since: str = "") -> dict[str, Any]:
    run = Run.objects.get(session=session, origin="recorded")
    found: dict[str, Any] = json.loads(manifest_json(session, run, since))
    return found


async def test_a_page_that_follows_is_brought_what_is_new():
    session = await grown(1)
    whole = await sync_to_async(manifest_of)(session)
    opened = page(await signed_in())
    await opened.connect(PATIENCE)
    topic = f"session:{session.pk}"
    follow = {"session": str(session.pk), "run": "recorded", "since": whole["next"]}
    await opened.send_json_to({"watch": [topic], "follow": follow})
    first = await heard(opened, "delta")
    assert (first["topic"], first["run"]) == (topic, "recorded")
    assert first["delta"]["entries"]["at"] == []
    after = whole["next"]
    for step in (2, 3):
        session = await grown(step)
        answer = await heard(opened, "delta")
        assert answer["delta"]["since"] == after
        assert answer["delta"]["entries"]["at"] == [2 * step - 1, 2 * step]
        assert answer["version"] == session.version
        after = answer["delta"]["next"]
    # A page that repeats its follow message receives what it missed.
    await opened.send_json_to({"watch": [topic], "follow": follow})
    assert (await heard(opened, "delta"))["delta"]["entries"]["at"] == [3, 4, 5, 6]
    await opened.disconnect()


async def test_nothing_is_brought_of_a_foreign_session(monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(consumers, "news_of", asked.append)
    foreign = await Team.objects.acreate(name="Other", slug="other")
    session = await new_session(foreign)
    topic = f"session:{session.pk}"
    opened = page(await signed_in())
    await opened.connect(PATIENCE)
    follow = {"session": str(session.pk), "run": "recorded", "since": "a.1.1.1.1.1.1"}
    await opened.send_json_to({"watch": [topic], "follow": follow})
    assert await answer(opened) == (topic, None)
    consumers.pages.carry(topic)
    job = await new_job()
    await opened.send_json_to({"watch": [f"job:{job.id}"], "follow": follow})
    assert await answer(opened) == (f"job:{job.id}", 1)
    await opened.disconnect()
    assert asked == []


@pytest.mark.parametrize("follow", [1, {"session": 1}, {"session": "x", "since": "y"}, None])
async def test_a_wish_to_follow_that_makes_no_sense_is_passed_over(follow):
    job = await new_job()
    opened = page(await signed_in())
    await opened.connect(PATIENCE)
    await opened.send_json_to({"watch": [f"job:{job.id}"], "follow": follow})
    assert await answer(opened) == (f"job:{job.id}", 1)
    await opened.disconnect()


async def test_what_is_too_long_for_a_message_is_left_to_be_asked_for(monkeypatch):
    monkeypatch.setattr(consumers, "LONGEST_DELTA", 10)
    session = await grown(1)
    whole = await sync_to_async(manifest_of)(session)
    topic = f"session:{session.pk}"
    follow = {"session": str(session.pk), "run": "recorded", "since": whole["next"]}
    opened = page(await signed_in())
    await opened.connect(PATIENCE)
    await opened.send_json_to({"watch": [topic], "follow": follow})
    assert await answer(opened) == (topic, session.version)
    left = {"topic": topic, "run": "recorded", "delta": None}
    assert await opened.receive_json_from(PATIENCE) == {**left, "version": session.version}
    session = await grown(2)
    assert await answer(opened) == (topic, session.version)
    assert await opened.receive_json_from(PATIENCE) == {**left, "version": session.version}
    await opened.disconnect()
