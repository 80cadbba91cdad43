"""The doctor detects failures, and reports them to people and programs."""

import json
import os
import socket
import subprocess
import sys

from contextlab import environment

NO_NETWORK = """
import socket, sys
def no(*args, **kwargs):
    raise OSError("no network in this test")
socket.socket.connect = no
socket.getaddrinfo = no
from contextlab.cli import main
main(["doctor", "--json"])
"""


def doctor(data_dir, *, port: int = 1, **environ: str) -> tuple[int, dict[str, str]]:
    """Exit code and state of all checks, without network."""
    ended = subprocess.run(
        [sys.executable, "-c", NO_NETWORK],
        env={
            **os.environ,
            "PYTHONPATH": str(environment.ROOT),
            "CONTEXTLAB_DATA_DIR": str(data_dir),
            "DATABASE_URL": "",
            "REDIS_URL": "",
            "PORT": str(port),
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = json.loads(ended.stdout)
    assert all(finding["text"] for finding in found)
    return ended.returncode, {finding["name"]: finding["state"] for finding in found}


def test_a_fresh_directory_is_fine_without_any_network(tmp_path):
    code, found = doctor(tmp_path)
    needed = {name for name, state in found.items() if state == "failed"}
    # Whether the pages are built is the affair of `make setup`.
    assert needed <= {"pages"}
    assert code == (1 if needed else 0)
    assert found["tokenizer"] == found["grammars"] == found["database"] == "ok"


def test_what_does_not_answer_is_a_failure(tmp_path):
    code, found = doctor(
        tmp_path, REDIS_URL="redis://127.0.0.1:1/0", DATABASE_URL="postgres://x@127.0.0.1:1/x"
    )
    assert code == 1
    assert found["redis"] == found["database"] == "failed"


def test_a_taken_port_is_a_warning(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        _, found = doctor(tmp_path, port=taken.getsockname()[1])
    assert found["port"] == "warning"
