"""Tells open pages that something changed. A hint may be lost: the counter in the row is the
truth, and the pages' consumer reads it every few seconds."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)

# Set by `serve`: the in-memory layer holds queues of that loop and wakes readers only there.
server_loop: asyncio.AbstractEventLoop | None = None

# Set in job processes: says a line to the process that watches over it, which passes hints on.
parent: Callable[[str], None] | None = None


def group(topic: str) -> str:
    """The channel layer's name for a topic, which must not hold a colon."""
    return f"live.{topic.replace(':', '.')}"


def hint(topic: str, version: int) -> None:
    """After the transaction commits, tells pages that watch "job:<id>", "session:<id>" or
    "sessions:<team id>" that it is at `version`; never raises."""
    transaction.on_commit(lambda: _send(topic, version), robust=True)


def _send(topic: str, version: int) -> None:
    if parent is not None:
        parent(f"hint {topic} {version}")
        return
    if server_loop is None and not settings.REDIS_URL:
        return  # a command: the pages hang on another process, whose polling finds it
    layer = get_channel_layer()
    message = {"type": "live.hint", "topic": topic, "version": version}
    send = layer.group_send(group(topic), message)
    try:
        if server_loop is not None and server_loop.is_running():
            asyncio.run_coroutine_threadsafe(_quietly(send), server_loop)
        else:
            async_to_sync(_quietly)(send)
    except RuntimeError:  # the loop closed, or this thread runs one of its own
        send.close()


async def _quietly(send: Coroutine[Any, Any, None]) -> None:
    try:
        await send
    except Exception as error:  # noqa: BLE001 (whatever the layer's client raises)
        log.warning("live hint not sent: %s", type(error).__name__)
