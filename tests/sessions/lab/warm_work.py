"""A worker for tests: answers what its request tells it to."""

from __future__ import annotations

import contextlib
import json
import os
from multiprocessing.connection import Connection

from sessions.actions.lab.warm_worker import CANCEL, END, PREPARE


def work(given: int, taken: int) -> None:
    """Answer {"say": lines}, {"line": any}, {"go_on": true} until it is cancelled, {"wait": true}
    likewise and without a word, or {"die": true}."""
    calls, answers = Connection(given, writable=False), Connection(taken, readable=False)
    with contextlib.suppress(EOFError):
        while True:
            asked = calls.recv_bytes()
            if asked in (CANCEL, PREPARE):
                continue
            wanted = json.loads(asked)
            if wanted.get("die"):
                os._exit(1)
            for line in wanted.get("say", ()):
                answers.send_bytes(f"{line} {os.getpid()}\n".encode())
            if "line" in wanted:
                answers.send_bytes(json.dumps(wanted["line"]).encode() + b"\n")
            if wanted.get("wait"):
                calls.poll(None)
            if wanted.get("go_on"):
                answers.send_bytes(b"begun\n")
                calls.poll(None)
            if wanted.get("hang"):
                answers.send_bytes(b"begun\n")
                while True:
                    calls.recv_bytes()
            answers.send_bytes(END)
