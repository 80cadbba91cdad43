"""Object storage of its own: OpenStack Swift, which speaks S3, of one machine and one copy.

`.ci/run` installs it; on a machine without it, tests that need it are skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.conftest import free_port, unavailable, wait_until

PROGRAMS = Path(os.environ.get("CONTEXTLAB_TEST_SWIFT", "/opt/contextlab-swift/bin"))
"""Where Swift's programs are: the `bin` of an environment with `pip install swift`."""
WHY_NOT = (
    f"needs OpenStack Swift in {PROGRAMS}: python3 -m venv ENV && ENV/bin/pip install swift, "
    "then CONTEXTLAB_TEST_SWIFT=ENV/bin"
)
KEY, SECRET = "lab:tester", "testing"
BACKENDS = ("account", "container", "object")

_BACKEND = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
user = {user}
log_level = ERROR
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
_PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
swift_dir = {folder}
workers = 0
user = {user}
log_level = ERROR
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth bulk slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
s3_acl = false
location = us-east-1
force_swift_request_proxy_log = false
auth_pipeline_check = false
[filter:tempauth]
use = egg:swift#tempauth
user_lab_tester = testing .admin
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
"""


class ObjectStorage:
    """A running server; `url` names a bucket, `environment` is how to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = "s3://lab/contextlab"
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        self._running: list[subprocess.Popen[bytes]] = []
        self._ports = {kind: free_port() for kind in BACKENDS}
        self._write()

    def _write(self) -> None:
        (self.folder / "devices" / "d1").mkdir(parents=True)
        (self.folder / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n"
        )
        said = {"folder": self.folder, "user": os.environ.get("USER", "root")}
        for kind, port in self._ports.items():
            text = _BACKEND.format(kind=kind, port=port, **said)
            (self.folder / f"{kind}.conf").write_text(text)
            builder = str(self.folder / f"{kind}.builder")
            for words in (
                ("create", "4", "1", "1"),
                ("add", f"r1z1-127.0.0.1:{port}/d1", "1"),
                ("rebalance",),
            ):
                program = PROGRAMS / "swift-ring-builder"
                subprocess.run([program, builder, *words], check=True, capture_output=True)
        (self.folder / "proxy.conf").write_text(_PROXY.format(port=self.port, **said))

    def start(self) -> None:
        """Start it, or start it again with what it has stored."""
        for kind in (*BACKENDS, "proxy"):
            with (self.folder / f"{kind}.log").open("ab") as log:
                self._running.append(
                    subprocess.Popen(
                        [PROGRAMS / f"swift-{kind}-server", str(self.folder / f"{kind}.conf")],
                        env={**os.environ, "SWIFT_DIR": str(self.folder)},
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        for port in (*self._ports.values(), self.port):
            wait_until(lambda port=port: _listens(port))  # type: ignore[misc]

    def stop(self) -> None:
        """End it with `kill -9`; what it stored stays."""
        for process in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._running.clear()

    def remove(self) -> None:
        """Stop it, and remove what it stored."""
        self.stop()
        shutil.rmtree(self.folder)

    @property
    def client(self) -> Any:
        """A client of its own, past the product."""
        import boto3

        said = self.environment
        return boto3.client(
            "s3",
            endpoint_url=said["AWS_ENDPOINT_URL"],
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )

    def names(self, prefix: str = "") -> list[str]:
        """The names of all objects in the bucket."""
        pages = self.client.get_paginator("list_objects_v2")
        found = pages.paginate(Bucket="lab", Prefix=prefix)
        return [one["Key"] for page in found for one in page.get("Contents", [])]


@contextmanager
def object_storage(folder: Path) -> Iterator[ObjectStorage]:
    """A server with a bucket, until the block ends; without Swift the test is skipped."""
    if not (PROGRAMS / "swift-proxy-server").exists():
        unavailable(WHY_NOT)
    made = ObjectStorage(folder)
    try:
        made.start()
        made.client.create_bucket(Bucket="lab")
        yield made
    finally:
        made.remove()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
