"""Pages that watch topics over a socket."""

from http.cookies import SimpleCookie
from typing import Any

from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

from contextlab.asgi import application
from sessions.actions.accounts.teams import local_team, local_user
from sessions.actions.jobs import jobs
from sessions.models import Job, Session, Team

ORIGIN = "http://localhost:8765"


PATIENCE = 30  # seconds; reached only when something is broken


@sync_to_async
def signed_in(user=None) -> bytes:
    """The cookie header of a signed-in user."""
    client = Client()
    client.force_login(user or local_user())
    cookies: SimpleCookie = client.cookies
    return "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items()).encode()


def page(cookie: bytes, origin: str = ORIGIN, host: str = "localhost:8765"):
    headers = [(b"cookie", cookie), (b"origin", origin.encode()), (b"host", host.encode())]
    return WebsocketCommunicator(application, "/ws/live/", headers=headers)


async def answer(opened: WebsocketCommunicator) -> tuple[str, int | None]:
    heard = await opened.receive_json_from(PATIENCE)
    return heard["topic"], heard["version"]


@sync_to_async
def new_job(team: Team | None = None) -> Job:
    return jobs.enqueue(team or local_team(), "add", {})


@sync_to_async
def new_session(team: Team) -> Session:
    return Session.objects.create(team=team, external_id=f"s{Session.objects.count()}")


async def heard(opened: WebsocketCommunicator, key: str) -> dict[str, Any]:
    while True:
        said: dict[str, Any] = await opened.receive_json_from(PATIENCE)
        if key in said:
            return said
