"""Redis channel layer that tolerates outages: pages lose hints but keep their sockets."""

from __future__ import annotations

import asyncio
from typing import Any

from channels_redis.core import RedisChannelLayer
from redis.exceptions import RedisError

SECONDS_BETWEEN_LOOKS = 1.0


class PatientLayer(RedisChannelLayer):
    """Waits for Redis while listening, and raises OSError when joining a group.

    Pages still see changes, because they poll the database every few seconds.
    """

    async def receive(self, channel: str) -> Any:
        """Wait for the next message, however long Redis is down."""
        while True:
            try:
                return await super().receive(channel)
            except (RedisError, OSError):
                await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    async def group_add(self, group: str, channel: str) -> None:
        """Join a group. Raises OSError without Redis."""
        try:
            await super().group_add(group, channel)
        except RedisError as error:
            raise ConnectionError("Redis does not answer") from error

    async def group_discard(self, group: str, channel: str) -> None:
        """Leave a group. Raises OSError without Redis."""
        try:
            await super().group_discard(group, channel)
        except RedisError as error:
            raise ConnectionError("Redis does not answer") from error
