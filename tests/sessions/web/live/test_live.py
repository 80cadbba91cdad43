"""Live pages: immediate updates, recovery from lost hints, isolation of teams."""

import json

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client

from contextlab.asgi import application
from sessions import consumers, live
from sessions.actions.accounts import members
from sessions.actions.accounts.audit import COMMAND
from sessions.actions.accounts.browsers import sign_out
from sessions.actions.accounts.teams import local_team
from sessions.actions.jobs import jobs
from sessions.models import Membership, Team
from tests.sessions.web.live.sockets import PATIENCE, answer, new_job, new_session, page, signed_in

pytestmark = [
    pytest.mark.store,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hinting"),
]


async def watching(topics: list[str], cookie: bytes | None = None) -> WebsocketCommunicator:
    opened = page(cookie or await signed_in())
    connected, _ = await opened.connect(PATIENCE)
    assert connected
    await opened.send_json_to({"watch": topics})
    return opened


async def test_a_snapshot_then_every_change():
    job = await new_job()
    opened = await watching([f"job:{job.id}"])
    assert await answer(opened) == (f"job:{job.id}", 1)
    await sync_to_async(jobs.cancel)(job)
    assert await answer(opened) == (f"job:{job.id}", 2)
    await opened.disconnect()


async def test_a_hint_is_enough(settings):
    settings.LIVE_POLL_SECONDS = 3600
    job = await new_job()
    opened = await watching([f"job:{job.id}"])
    await answer(opened)
    await sync_to_async(jobs.claim)(job.id)
    assert await answer(opened) == (f"job:{job.id}", 2)
    await opened.disconnect()


async def test_one_channel_hears_for_all_pages(settings):
    settings.LIVE_POLL_SECONDS = 3600
    job = await new_job()
    topic = f"job:{job.id}"
    opened = [await watching([topic]) for _ in range(3)]
    for one in opened:
        assert await answer(one) == (topic, 1)
    layer = get_channel_layer()
    assert len(layer.groups[live.group(topic)]) == 1
    await opened.pop().disconnect()
    await sync_to_async(live.hint)(topic, 2)
    for one in opened:
        assert await answer(one) == (topic, 2)
        await one.disconnect()
    assert layer.groups == {}


@pytest.mark.fault("J5")
async def test_a_lost_hint_is_made_up_for(monkeypatch):
    job = await new_job()
    opened = await watching([f"job:{job.id}"])
    await answer(opened)
    monkeypatch.setattr(live, "server_loop", None)  # as when another process changes the row
    await sync_to_async(jobs.cancel)(job)
    assert await answer(opened) == (f"job:{job.id}", 2)
    await opened.disconnect()


async def test_an_old_hint_changes_nothing():
    job = await new_job()
    await sync_to_async(jobs.cancel)(job)
    topic = f"job:{job.id}"
    opened = await watching([topic])
    assert await answer(opened) == (topic, 2)
    await sync_to_async(live.hint)(topic, 1)
    await sync_to_async(live.hint)(topic, 3)
    assert await answer(opened) == (topic, 3)
    await opened.disconnect()


async def test_the_list_of_sessions_changes_with_any_of_them():
    team = await sync_to_async(local_team)()
    opened = await watching(["sessions"])
    assert await answer(opened) == ("sessions", 0)
    session = await new_session(team)
    topic, first = await answer(opened)
    assert (topic, first is not None and first > 0) == ("sessions", True)
    session.version += 1
    await session.asave(update_fields=["version"])
    assert (await answer(opened))[1] not in (None, first)
    await opened.disconnect()


async def test_watching_again_tells_everything_again():
    job, other = await new_job(), await new_job()
    opened = await watching([f"job:{job.id}"])
    assert await answer(opened) == (f"job:{job.id}", 1)
    await opened.send_json_to({"watch": [f"job:{job.id}", f"job:{other.id}"]})
    assert await answer(opened) == (f"job:{job.id}", 1)
    assert await answer(opened) == (f"job:{other.id}", 1)
    await opened.disconnect()


@pytest.mark.fault("H2", "J6")
async def test_a_socket_of_no_page_is_refused():
    known = page(await signed_in())
    opened = WebsocketCommunicator(application, "/ws/x", headers=known.scope["headers"])
    assert await opened.connect(PATIENCE) == (False, 4404)


async def test_a_foreign_teams_things_look_like_missing_ones():
    foreign = await Team.objects.acreate(name="Other", slug="other")
    job, session = await new_job(foreign), await new_session(foreign)
    missing = f"job:{foreign.id}"
    topics = [f"job:{job.id}", f"session:{session.id}", missing, "session:x", "nothing", "sessions"]
    opened = await watching(topics)
    answers = dict([await answer(opened) for _ in topics])
    assert answers == {**dict.fromkeys(topics), "sessions": 0}
    # Not even a hint gets through.
    await sync_to_async(jobs.cancel)(job)
    await sync_to_async(live.hint)(f"sessions:{foreign.id}", 1)
    own = await new_job()
    await opened.send_json_to({"watch": [f"job:{own.id}"]})
    assert await answer(opened) == (f"job:{own.id}", 1)
    await opened.disconnect()


@pytest.mark.fault("H5", "J6")
async def test_who_leaves_a_team_sees_no_more_of_it():
    job = await new_job()
    opened = await watching([f"job:{job.id}"])
    assert (await answer(opened))[1] == 1
    await Membership.objects.all().adelete()
    assert await answer(opened) == (f"job:{job.id}", None)
    await opened.disconnect()


@pytest.mark.fault("J6")
async def test_who_left_a_team_gets_no_hint_of_it_any_more():
    job, member = await new_job(), await sync_to_async(User.objects.create_user)("mara")
    await Membership.objects.acreate(user=member, team=await sync_to_async(local_team)())
    opened = await watching([f"job:{job.id}"], await signed_in(member))
    assert await answer(opened) == (f"job:{job.id}", 1)
    mine = await Membership.objects.select_related("team").aget(user=member)
    await sync_to_async(members.leave)(mine, COMMAND)
    assert await answer(opened) == (f"job:{job.id}", None)
    assert [one.joined for one in consumers.pages.open] == [set()], "hints go elsewhere"
    await opened.disconnect()


async def test_who_is_in_no_team_any_more_hears_that_the_list_is_gone():
    member = await sync_to_async(User.objects.create_user)("mara")
    await Membership.objects.acreate(user=member, team=await sync_to_async(local_team)())
    opened = await watching(["sessions"], await signed_in(member))
    topic, version = await answer(opened)
    assert topic == "sessions" and version is not None
    mine = await Membership.objects.select_related("team").aget(user=member)
    await sync_to_async(members.leave)(mine, COMMAND)
    assert await answer(opened) == ("sessions", None)
    await opened.disconnect()


async def test_a_changed_password_closes_pages_in_other_browsers():
    member = await sync_to_async(User.objects.create_user)("mara", "", "lantern-ferry-42")
    opened = await watching(["sessions"], await signed_in(member))
    await answer(opened)
    member.set_password("harbour-lantern-7")
    await member.asave()
    assert await opened.receive_output(PATIENCE) == {"type": "websocket.close", "code": 4401}
    await opened.disconnect()


async def test_a_browser_signed_out_from_another_one_closes_its_pages():
    member = await sync_to_async(User.objects.create_user)("mara", "", "lantern-ferry-42")
    opened = await watching(["sessions"], await signed_in(member))
    await answer(opened)
    row = await UserSession.objects.aget(user=member)
    assert await sync_to_async(sign_out)(member, row.pk, COMMAND)
    assert await opened.receive_output(PATIENCE) == {"type": "websocket.close", "code": 4401}
    await opened.disconnect()


@pytest.mark.fault("H9")
async def test_signing_out_closes_open_pages():
    cookie = await signed_in()
    job = await new_job()
    opened = await watching([f"job:{job.id}"], cookie)
    await answer(opened)
    client = Client(headers={"cookie": cookie.decode()})
    client.cookies.load(cookie.decode())
    await sync_to_async(client.logout)()
    assert await opened.receive_output(PATIENCE) == {"type": "websocket.close", "code": 4401}
    await opened.disconnect()


@pytest.mark.fault("J1")
async def test_anonymous_users_and_strangers_stay_outside():
    cookie = await signed_in()
    for opened in (
        page(b""),
        page(cookie, origin=""),
        page(cookie, origin="http://localhost:3000"),  # another program on this machine
        page(cookie, origin="https://localhost:8765"),
        page(cookie, origin="http://evil.example", host="evil.example"),
    ):
        assert (await opened.connect(PATIENCE))[0] is False
        await opened.disconnect()


async def test_a_page_behind_a_proxy_that_is_named(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://lab.example"]
    opened = page(await signed_in(), origin="https://lab.example")
    assert (await opened.connect(PATIENCE))[0] is True
    await opened.disconnect()


@pytest.mark.fault("J2")
@pytest.mark.parametrize(
    "said", ["[]", "{", '{"watch": 1}', '{"watch": [1]}', "null", "[" * 60_000, '{"a":' * 10_000]
)
async def test_what_is_not_understood_closes(said):
    opened = page(await signed_in())
    await opened.connect(PATIENCE)
    await opened.send_to(text_data=said)
    assert (await opened.receive_output(PATIENCE))["code"] == 4400
    await opened.disconnect()


@pytest.mark.fault("J4")
async def test_a_user_may_have_so_many_pages_open(settings):
    settings.SOCKETS_PER_USER = 2
    cookie = await signed_in()
    opened = [page(cookie) for _ in range(3)]
    for one in opened:
        await one.connect(PATIENCE)
    assert (await opened[2].receive_output(PATIENCE))["code"] == 4429
    other = page(await signed_in(await sync_to_async(User.objects.create_user)("other")))
    await other.connect(PATIENCE)
    await opened[0].disconnect()
    again = page(cookie)
    await again.connect(PATIENCE)
    for one in (opened[1], other, again):
        await one.send_json_to({"watch": []})
        assert await one.receive_nothing()
        await one.disconnect()


async def test_a_user_in_no_team_sees_nothing():
    job = await new_job()
    lonely = await sync_to_async(get_user_model().objects.create_user)("lonely")
    opened = await watching([f"job:{job.id}", "sessions"], await signed_in(lonely))
    assert json.dumps([await answer(opened), await answer(opened)]) == json.dumps(
        [(f"job:{job.id}", None), ("sessions", None)]
    )
    await opened.disconnect()
