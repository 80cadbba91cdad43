"""Two web servers and a worker that share a database, Redis and object storage, but no disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Server, start_server, wait_until
from tests.contextlab.stores.separate_store import PostgresStore
from tests.faults.live_agent import new_token
from tests.object_storage import object_storage

LARGE = [os.urandom(6_000).hex() for _ in range(3)]
"""Texts that are too large for rows, however they are compressed."""


@pytest.fixture(scope="module")
def environment(
    tmp_path_factory: pytest.TempPathFactory, postgres: str, redis_url: str
) -> Iterator[dict[str, str]]:
    """What all processes share."""
    folder = tmp_path_factory.mktemp("shared")
    store = PostgresStore(folder / "migrated", postgres)
    with object_storage(folder / "swift") as bucket:
        store.migrate()
        yield {
            **bucket.environment,
            "CONTEXTLAB_BLOBS": bucket.url,
            "CONTEXTLAB_SECRET_KEY": "a secret of this test alone",
            "DATABASE_URL": store.url,
            "REDIS_URL": redis_url,
        }
    store.administer(f"DROP DATABASE {store.name} WITH (FORCE)")


def asked(server: Server, token: str, path: str, body: bytes | None = None, **headers: str) -> Any:
    """The JSON answer of the API."""
    request = urllib.request.Request(
        f"{server.address}/api/v1/{path}",
        body,
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_what_one_has_the_others_read(tmp_path: Path, environment: dict[str, str]) -> None:
    names = ("one", "other", "worker")
    for name in names:
        (tmp_path / name).mkdir()
    one_disk, other_disk, worker_disk = (tmp_path / name for name in names)
    with ExitStack() as stack:
        one, other = (start_server(disk, **environment) for disk in (one_disk, other_disk))
        for server in (one, other):
            stack.callback(server.kill)
        token = new_token(one_disk, **environment)
        said = {"messages": [{"role": "user", "content": text} for text in LARGE[:2]]}
        asked(one, token, "sessions/large/messages", json.dumps(said).encode())
        read = asked(other, token, "sessions/large/messages")
        assert [text in json.dumps(read) for text in LARGE] == [True, True, False]

        # The upload is taken by one, read by a worker elsewhere, and shown by the other.
        log = json.dumps({"messages": [{"role": "user", "content": LARGE[2]}]}).encode()
        made = asked(one, token, "imports", log)
        worker = subprocess.Popen(
            [sys.executable, "-m", "contextlab.cli", "worker"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "CONTEXTLAB_DATA_DIR": str(worker_disk),
                **environment,
            },
            stdout=subprocess.DEVNULL,
        )
        stack.callback(worker.wait, 60)
        stack.callback(worker.terminate)
        wait_until(lambda: asked(other, token, f"jobs/{made['job']}")["state"] == "done")
        listed = asked(other, token, "sessions")
        (imported,) = [row for row in listed["sessions"] if row["external_id"] != "large"]
        read = asked(other, token, f"sessions/{imported['id']}/messages")
        assert LARGE[2] in json.dumps(read)
    for disk in (one_disk, other_disk, worker_disk):
        files = [path for path in disk.rglob("*") if path.is_file()]
        assert not [path for path in files if LARGE[2].encode() in path.read_bytes()]
        assert not [path for path in files if "uploads" in path.parts or "blobs" in path.parts]
