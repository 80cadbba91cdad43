"""Hints to open pages that something changed.

A hint may be lost: the counter in the row is authoritative, and the pages' consumer polls it every
few seconds.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)

# Set by `serve`: the in-memory layer keeps its queues on that loop and wakes readers only there.
server_loop: asyncio.AbstractEventLoop | None = None

# Set in job processes: sends a line to the supervising process, which forwards hints.
parent: Callable[[str], None] | None = None


def group(topic: str) -> str:
    """The channel layer's group name for a topic; group names must not contain colons."""
    return f"live.{topic.replace(':', '.')}"


def hint(topic: str, version: int) -> None:
    """Announce, once the transaction commits, that a topic is at `version`; never raises.

    Topics are "job:<id>", "session:<id>" and "sessions:<team id>".
    """
    transaction.on_commit(lambda: _send(topic, version), robust=True)


def may_be_shown(*topics: str) -> bool:
    """Whether a page may be open for one of the topics; True where that is not known."""
    layer = get_channel_layer() if parent is None and server_loop is not None else None
    if not isinstance(layer, InMemoryChannelLayer):
        return True
    return any(group(topic) in layer.groups for topic in topics)


def _send(topic: str, version: int) -> None:
    if parent is not None:
        parent(f"hint {topic} {version}")
        return
    if server_loop is None and not settings.REDIS_URL:
        return  # a command: pages are connected to another process, which polls
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer) and group(topic) not in layer.groups:
        return  # no page is open for it
    send = layer.group_send(group(topic), {"topic": topic, "version": version})
    try:
        if server_loop is not None and server_loop.is_running():
            asyncio.run_coroutine_threadsafe(_quietly(send), server_loop)
        else:
            async_to_sync(_quietly)(send)
    except RuntimeError:  # the loop is closed, or this thread runs its own
        send.close()


async def _quietly(send: Coroutine[Any, Any, None]) -> None:
    try:
        await send
    except Exception as error:  # noqa: BLE001 (whatever the layer's client raises)
        log.warning("live hint not sent: %s", type(error).__name__)
