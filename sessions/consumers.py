"""The websocket of open pages: at which version is each of the things they watch."""

import asyncio
import json
import uuid
from collections.abc import Iterable
from typing import Any, NamedTuple

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.db import Error
from django.db.models import Count, F, Sum
from django.utils import timezone

from sessions.api.following import Follow, News, news_of
from sessions.live import group
from sessions.models import Job, Membership, Session
from sessions.models.rollouts import topic_versions

LIST = "sessions"
TOPICS_PER_PAGE = 50
# However many hints ask for it, the tables are not read more often than this.
SECONDS_BETWEEN_LOOKS = 0.2
# The server's door lets no longer message through (`serve`); a page asks for what is longer.
LONGEST_DELTA = 60_000
NOT_BROUGHT = b"null"
NOT_UNDERSTOOD, SIGNED_OUT, TRY_AGAIN = 4400, 4401, 1012


class Seen(NamedTuple):
    """What the database said: who may see what, and which versions there are."""

    teams: dict[int, set[uuid.UUID]]
    signed_in: set[str]
    proofs: dict[int, str]
    versions: dict[str, tuple[uuid.UUID, int]]
    lists: dict[uuid.UUID, int]

    def version(self, user: int, topic: str) -> int | None:
        """None when there is no such thing, or it belongs to a team the user is not in."""
        teams = self.teams.get(user, set())
        if topic == LIST:
            return sum(self.lists.get(team, 0) for team in teams)
        team, version = self.versions.get(topic, (None, None))
        return version if team in teams else None


def look(users: Iterable[int], keys: Iterable[str], topics: set[str]) -> Seen:
    """Reads versions and access of many pages in a few short queries."""
    teams: dict[int, set[uuid.UUID]] = {}
    people = User.objects.filter(pk__in=set(users), is_active=True)
    proofs = {person.pk: person.get_session_auth_hash() for person in people}
    members = Membership.objects.filter(user__in=set(users), user__is_active=True)
    for user, team in members.values_list("user_id", "team_id"):
        teams.setdefault(user, set()).add(team)
    alive = BrowserSession.objects.filter(session_key__in=set(keys), expire_date__gt=timezone.now())
    versions: dict[str, tuple[uuid.UUID, int]] = {}
    for name, rows in (("job", Job.objects.all()), ("session", Session.objects.all())):
        ids = [found for topic in topics if (found := _id(topic, name))]
        if ids:
            for row, team, version in rows.filter(id__in=ids).values_list("id", "team", "version"):
                versions[f"{name}:{row}"] = (team, version)
    rollouts = [found for topic in topics if (found := _id(topic, "rollout"))]
    if rollouts:
        for row, seen in topic_versions(rollouts).items():
            versions[f"rollout:{row}"] = seen
    lists: dict[uuid.UUID, int] = {}
    if LIST in topics:
        watched = {team for found in teams.values() for team in found}
        # Rises with every new session and with every change of one.
        counted = Session.objects.filter(team__in=watched).values("team")
        lists = dict(
            counted.annotate(at=Sum("version") + Count("id")).values_list(F("team"), F("at"))
        )
    signed_in = set(alive.values_list("session_key", flat=True))
    return Seen(teams, signed_in, proofs, versions, lists)


def collect(wanted: Iterable[Follow]) -> dict[Follow, News]:
    """What came of each thing that pages follow; a delta that is too long to bring is null."""
    found = {follow: news_of(follow) for follow in wanted}
    return {
        follow: news if len(news.json) < LONGEST_DELTA else news._replace(json=NOT_BROUGHT)
        for follow, news in found.items()
        if news is not None
    }


class Live(AsyncWebsocketConsumer):
    """A page sends {"watch": ["job:<id>", "session:<id>", "rollout:<id>", "sessions"]}, which
    replaces what it watched before, and gets {topic, version} for each at once and whenever one
    changes.

    Of what does not exist, or belongs to another team, the version is null. With "follow":
    {"session": "<id>", "run": "recorded", "since": "…"} for a session that it watches it also gets
    {topic, version, run, delta}: what came since, as the manifest tells it. The next delta goes on
    from there; a page that missed one, or gets null since it is too long to bring, asks the
    manifest, and says again what it follows.
    """

    async def connect(self) -> None:
        """Only for somebody who is signed in."""
        self.watched: list[str] = []
        self.known: dict[str, int | None] = {}
        self.joined: set[str] = set()
        self.follow: Follow | None = None
        self.carried: tuple[Follow, str] | None = None
        self.user_id: int | None = self.scope["user"].pk
        self.key: str = self.scope["session"].session_key or ""
        self.proof: str = self.scope["session"].get(HASH_SESSION_KEY, "")
        if self.user_id is None:
            await self.close(SIGNED_OUT)
            return
        await self.accept()
        pages.add(self)

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Forgets the page."""
        pages.discard(self)
        await self._join(set())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Takes the list of topics; anything else closes the socket."""
        topics = _topics(text_data)
        if topics is None or self.user_id is None:
            await self.close(NOT_UNDERSTOOD)
            return
        self.watched = topics
        self.follow = None
        self.known = {}  # the page may have lost what it was told, so it is told again
        seen = await database_sync_to_async(look)([self.user_id], [self.key], set(topics))
        groups = {topic for topic in topics if seen.version(self.user_id, topic) is not None}
        if LIST in groups:
            groups.remove(LIST)
            groups |= {f"{LIST}:{team}" for team in seen.teams.get(self.user_id, ())}
        await self._join({group(topic) for topic in groups})
        follow = _follow(text_data, topics)
        if follow is not None and seen.version(self.user_id, _topic(follow)) is not None:
            self.follow = follow
        await self.show(seen)

    async def live_hint(self, event: dict[str, Any]) -> None:
        """Something changed, says whoever changed it."""
        topic, version = event["topic"], event["version"]
        if topic.startswith(LIST):
            pages.hasten()  # the page compares a sum over teams, which the hint does not hold
        elif topic in self.watched and version > (self.known.get(topic) or 0):
            await self._tell(topic, version)

    async def show(self, seen: Seen) -> None:
        """Tells what the page does not know yet; closes when its user signed out meanwhile."""
        user = self.user_id
        # A password that was changed ends the other browsers of the person, as Django does.
        proven = user is not None and seen.proofs.get(user) == self.proof
        if user is None or not proven or self.key not in seen.signed_in:
            await self.close(SIGNED_OUT)
            return
        for topic in self.watched:
            version = seen.version(user, topic)
            # Hints are for who may see it: who left a team gets no more of its.
            if version is None and group(topic) in self.joined:
                await self._join(self.joined - {group(topic)})
            if topic not in self.known or self.known[topic] != version:
                await self._tell(topic, version)

    async def carry(self, follow: Follow, news: News) -> None:
        """Sends what came since, unless the page has it or follows something else by now."""
        has = self.carried == (follow, news.state) and follow.since == news.next
        if self.follow != follow or has:
            return
        if news.json != NOT_BROUGHT:
            self.follow = follow._replace(since=news.next)
            self.carried = self.follow, news.state
        head = {"topic": _topic(follow), "version": news.version, "run": follow.run}
        await self.send(f'{json.dumps(head)[:-1]}, "delta": {news.json.decode()}}}')

    async def _tell(self, topic: str, version: int | None) -> None:
        self.known[topic] = version
        await self.send(json.dumps({"topic": topic, "version": version}))
        if self.follow is not None and topic == _topic(self.follow):
            if version is None:
                self.follow = None
            else:
                pages.carry(topic)

    async def _join(self, groups: set[str]) -> None:
        try:
            for name in self.joined - groups:
                await self.channel_layer.group_discard(name, self.channel_name)
            for name in groups:  # those joined before, too: Redis may have lost them
                await self.channel_layer.group_add(name, self.channel_name)
        except OSError:
            groups = set()  # Redis is away; versions are read from the database all the same
        self.joined = groups


class Pages:
    """The open pages of this process; reads the database for all of them together."""

    def __init__(self) -> None:
        self.open: set[Live] = set()
        self.reader: asyncio.Task[None] | None = None
        self.courier: asyncio.Task[None] | None = None
        self.asked = asyncio.Event()
        self.changed: set[str] = set()

    def add(self, page: Live) -> None:
        """Begins reading with the first page."""
        self.open.add(page)
        if self.reader is None:
            self.asked = asyncio.Event()
            self.reader = asyncio.get_running_loop().create_task(self._read_on())

    def discard(self, page: Live) -> None:
        """Stops reading with the last page."""
        self.open.discard(page)
        if not self.open and self.reader is not None:
            self.reader.cancel()
            self.reader = None

    def hasten(self) -> None:
        """Reads soon instead of at the next turn."""
        self.asked.set()

    def carry(self, topic: str) -> None:
        """Brings what is new of a session to the pages that follow it."""
        self.changed.add(topic)
        if self.courier is None or self.courier.done():
            self.courier = asyncio.get_running_loop().create_task(self._carry_on())

    async def _carry_on(self) -> None:
        while self.changed:
            topics, self.changed = self.changed, set()
            follows = {page.follow for page in self.open if page.follow is not None}
            wanted = {follow for follow in follows if _topic(follow) in topics}
            try:
                found = await database_sync_to_async(collect)(wanted)
            except Error:
                found = {}  # a version without a delta makes the page ask
            for page in list(self.open):
                follow = page.follow
                if follow is not None and follow in found:
                    await page.carry(follow, found[follow])
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    async def _read_on(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self.asked.wait(), settings.LIVE_POLL_SECONDS)
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            self.asked.clear()
            await self._read()

    async def _read(self) -> None:
        now = [page for page in self.open if page.watched]
        users = [page.user_id for page in now if page.user_id is not None]
        topics = {topic for page in now for topic in page.watched}
        try:
            seen = await database_sync_to_async(look)(users, [page.key for page in now], topics)
        except Error:
            return  # the next turn may fare better; pages keep what they have
        for page in now:
            await page.show(seen)


pages = Pages()


def _topics(text: str | None) -> list[str] | None:
    try:
        topics = json.loads(text or "")["watch"]
    except (ValueError, TypeError, KeyError):
        return None
    wellformed = isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)
    return list(dict.fromkeys(topics[:TOPICS_PER_PAGE])) if wellformed else None


def _follow(text: str | None, topics: list[str]) -> Follow | None:
    """What a page says that it follows: a session that it also watches."""
    try:
        said = json.loads(text or "")["follow"]
        found = Follow(said["session"], said.get("run") or "recorded", said["since"])
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    short = all(isinstance(part, str) and len(part) <= 300 for part in found)
    known = short and _id(_topic(found), "session") is not None and _topic(found) in topics
    return found if known else None


def _topic(follow: Follow) -> str:
    return f"session:{follow.session}"


def _id(topic: str, name: str) -> uuid.UUID | None:
    kind, _, value = topic.partition(":")
    try:
        found = uuid.UUID(value) if kind == name else None
    except ValueError:
        return None
    return found if found is not None and str(found) == value else None
