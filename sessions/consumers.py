"""The WebSocket of open pages: announces the versions of what they watch."""

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.db import Error

from sessions.api.replay.following import FollowedRun, RunDelta, news_of
from sessions.api.replay.watching import LIST, Seen, id_in, look
from sessions.live import group

TOPICS_PER_PAGE = 50
# Minimum time between reads of the tables, however many hints arrive.
SECONDS_BETWEEN_LOOKS = 0.2
# The server rejects longer messages (`serve`); pages request longer deltas themselves.
LONGEST_DELTA = 60_000
NOT_BROUGHT = b"null"
NOT_UNDERSTOOD, SIGNED_OUT, TOO_MANY = 4400, 4401, 4429


def collect(wanted: Iterable[FollowedRun]) -> dict[FollowedRun, RunDelta]:
    """The deltas for pages that follow sessions; null if a delta is too long to send."""
    found = {follow: news_of(follow) for follow in wanted}
    return {
        follow: news if len(news.json) < LONGEST_DELTA else news._replace(json=NOT_BROUGHT)
        for follow, news in found.items()
        if news is not None
    }


class Live(AsyncWebsocketConsumer):
    """WebSocket protocol of the pages.

    A page sends {"watch": ["job:<id>", "session:<id>", "rollout:<id>", "sessions"]}, which replaces
    its previous topics, and receives {topic, version} for each immediately and on every change. The
    version is null if the topic does not exist or belongs to another team. With "follow":
    {"session": "<id>", "run": "recorded", "since": "…"} for a watched session it also receives
    {topic, version, run, delta}: the changes in manifest form, after which the next delta
    continues. A page that missed a delta, or receives null because it is too long, fetches the
    manifest and follows again.
    """

    channel_layer_alias = "none"  # the process has one channel for all pages (`Pages`)

    async def connect(self) -> None:
        """Accept signed-in users only."""
        self.watched: list[str] = []
        self.known: dict[str, int | None] = {}
        self.joined: set[str] = set()
        self.follow: FollowedRun | None = None
        self.carried: tuple[FollowedRun, str] | None = None
        self.user_id: int | None = self.scope["user"].pk
        self.key: str = self.scope["session"].session_key or ""
        self.proof: str = self.scope["session"].get(HASH_SESSION_KEY, "")
        if self.user_id is None:
            await self.close(SIGNED_OUT)
            return
        await self.accept()
        if pages.of(self.user_id) >= settings.SOCKETS_PER_USER:
            await self.close(TOO_MANY)
            return
        await pages.add(self)

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Unregister the page."""
        pages.discard(self)
        await pages.join(self, set())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:  # noqa: ARG002
        """Set the topics; invalid messages close the socket."""
        topics = _topics(text_data)
        if topics is None or self.user_id is None:
            await self.close(NOT_UNDERSTOOD)
            return
        self.watched = topics
        self.follow = None
        self.known = {}  # the page may have lost earlier messages, so send everything again
        seen = await database_sync_to_async(look)([self.user_id], [self.key], set(topics))
        groups = {topic for topic in topics if seen.version(self.user_id, topic) is not None}
        if LIST in groups:
            groups.remove(LIST)
            groups |= {f"{LIST}:{team}" for team in seen.teams.get(self.user_id, ())}
        await pages.join(self, {group(topic) for topic in groups})
        follow = _follow(text_data, topics)
        if follow is not None and seen.version(self.user_id, _topic(follow)) is not None:
            self.follow = follow
        await self.show(seen)

    async def hint(self, topic: str, version: int) -> None:
        """Send the version of a hint, unless the page knows it."""
        if topic in self.watched and version > (self.known.get(topic) or 0):
            await self._send_version(topic, version)

    async def show(self, seen: Seen) -> None:
        """Send what the page does not know yet; close the socket if its user signed out."""
        user = self.user_id
        # A changed password ends the user's other browser sessions, as in Django.
        proven = user is not None and seen.proofs.get(user) == self.proof
        if user is None or not proven or self.key not in seen.signed_in:
            await self.close(SIGNED_OUT)
            return
        for topic in self.watched:
            version = seen.version(user, topic)
            # Users who left a team get no more hints.
            if version is None and group(topic) in self.joined:
                await pages.join(self, self.joined - {group(topic)})
            if topic not in self.known or self.known[topic] != version:
                await self._send_version(topic, version)

    async def carry(self, follow: FollowedRun, news: RunDelta) -> None:
        """Send a delta, unless the page has it or follows something else now."""
        has = self.carried == (follow, news.state) and follow.since == news.next
        if self.follow != follow or has:
            return
        if news.json != NOT_BROUGHT:
            self.follow = follow._replace(since=news.next)
            self.carried = self.follow, news.state
        head = {"topic": _topic(follow), "version": news.version, "run": follow.run}
        await self.send(f'{json.dumps(head)[:-1]}, "delta": {news.json.decode()}}}')

    async def _send_version(self, topic: str, version: int | None) -> None:
        self.known[topic] = version
        await self.send(json.dumps({"topic": topic, "version": version}))
        if self.follow is not None and topic == _topic(self.follow):
            if version is None:
                self.follow = None
            else:
                pages.carry(topic)


class Pages:
    """The open pages of this process; hears hints and reads the database once for all of them.

    With a channel of its own each page would cost a thread's turn a hint, and the layer in memory
    looks through all channels for each message.
    """

    def __init__(self) -> None:
        self.open: set[Live] = set()
        self.groups: dict[str, set[Live]] = {}
        self.channel = ""
        self.beside: list[asyncio.Task[None]] = []
        self.courier: asyncio.Task[None] | None = None
        self.asked = asyncio.Event()
        self.hinted: dict[str, int] = {}
        self.changed: set[str] = set()

    def of(self, user: int) -> int:
        """How many pages a user has open."""
        return sum(page.user_id == user for page in self.open)

    async def add(self, page: Live) -> None:
        """Register a page; hearing and reading start with the first."""
        self.open.add(page)
        if not self.beside:
            self.asked = asyncio.Event()
            loop = asyncio.get_running_loop()
            self.beside = [loop.create_task(self._hear_on()), loop.create_task(self._read_on())]
            self.channel = await get_channel_layer().new_channel()

    def discard(self, page: Live) -> None:
        """Unregister a page; hearing and reading stop with the last."""
        self.open.discard(page)
        if not self.open:
            for task in self.beside:
                task.cancel()
            self.beside = []

    async def join(self, page: Live, groups: set[str]) -> None:
        """Have a page hear of these groups and no others."""
        left = page.joined - groups
        page.joined = groups
        for name in left:
            self.groups[name].discard(page)
        for name in groups:
            self.groups.setdefault(name, set()).add(page)
        layer = get_channel_layer()
        with suppress(OSError):  # Redis is down; versions are still read from the database
            for name in left:
                if not self.groups.get(name):
                    self.groups.pop(name, None)
                    await layer.group_discard(name, self.channel)
            for name in groups:  # join again: Redis may have lost earlier groups
                await layer.group_add(name, self.channel)

    def hasten(self) -> None:
        """Read soon instead of at the next interval."""
        self.asked.set()

    def carry(self, topic: str) -> None:
        """Send the changes of a session to the pages that follow it."""
        self.changed.add(topic)
        self._wake()

    def _wake(self) -> None:
        if self.courier is None or self.courier.done():
            self.courier = asyncio.get_running_loop().create_task(self._carry_on())

    async def _hear_on(self) -> None:
        layer = get_channel_layer()
        while True:
            event = await layer.receive(self.channel)
            topic, version = event["topic"], event["version"]
            if topic.startswith(LIST):
                self.hasten()  # pages compare a sum over teams, which the hint does not contain
            else:
                self.hinted[topic] = max(version, self.hinted.get(topic, 0))
                self._wake()

    async def _carry_on(self) -> None:
        while self.hinted or self.changed:
            hinted, self.hinted = self.hinted, {}
            for topic, version in hinted.items():
                for page in list(self.groups.get(group(topic), ())):
                    await page.hint(topic, version)
            topics, self.changed = self.changed, set()
            follows = {page.follow for page in self.open if page.follow is not None}
            wanted = {follow for follow in follows if _topic(follow) in topics}
            try:
                found = await database_sync_to_async(collect)(wanted)
            except Error:
                found = {}  # without a delta, the page fetches the manifest itself
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
            return  # try again at the next interval
        for page in now:
            await page.show(seen)


pages = Pages()


def _topics(text: str | None) -> list[str] | None:
    try:
        topics = json.loads(text or "")["watch"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    wellformed = isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)
    return list(dict.fromkeys(topics[:TOPICS_PER_PAGE])) if wellformed else None


def _follow(text: str | None, topics: list[str]) -> FollowedRun | None:
    """The session that a page follows; it must also watch it."""
    try:
        said = json.loads(text or "")["follow"]
        found = FollowedRun(said["session"], said.get("run") or "recorded", said["since"])
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    short = all(isinstance(part, str) and len(part) <= 300 for part in found)
    known = short and id_in(_topic(found), "session") is not None and _topic(found) in topics
    return found if known else None


def _topic(follow: FollowedRun) -> str:
    return f"session:{follow.session}"
