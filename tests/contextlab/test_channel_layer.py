"""The channel layer over Redis: listeners survive its loss."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from channels_redis.core import RedisChannelLayer

from contextlab.live.channel_layer import PatientLayer
from tests.conftest import ROOT
from tests.faults.services import Redis


@pytest.mark.fault("C4")
async def test_a_listener_outlives_redis(tmp_path: Path) -> None:
    redis = Redis(tmp_path)
    layer = PatientLayer(hosts=[{"address": redis.url, "socket_timeout": 15}])
    try:
        channel = await layer.new_channel()
        await layer.group_add("pages", channel)
        listening = asyncio.create_task(layer.receive(channel))
        await asyncio.to_thread(redis.kill)
        with pytest.raises(OSError, match="does not answer"):
            await layer.group_add("pages", channel)
        with pytest.raises(OSError, match="does not answer"):
            await layer.group_discard("pages", channel)
        await asyncio.to_thread(redis.start)
        await layer.group_add("pages", channel)
        await layer.group_send("pages", {"type": "news"})
        assert await asyncio.wait_for(listening, 60) == {"type": "news"}
    finally:
        await layer.close_pools()
        redis.kill()


def test_its_client_waits_longer_than_a_listener(tmp_path: Path) -> None:
    """Else a page that hears nothing for five seconds would lose its socket."""
    asked = "import json; from contextlab.settings import CHANNEL_LAYERS as l; print(json.dumps(l))"
    env = {"CONTEXTLAB_DATA_DIR": str(tmp_path), "REDIS_URL": "redis://nowhere", "HOME": "/"}
    result = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, env=env, capture_output=True, check=True
    )
    layer = json.loads(result.stdout)["default"]
    assert layer["BACKEND"] == f"{PatientLayer.__module__}.{PatientLayer.__name__}"
    (host,) = layer["CONFIG"]["hosts"]
    assert host["socket_timeout"] > RedisChannelLayer.brpop_timeout
