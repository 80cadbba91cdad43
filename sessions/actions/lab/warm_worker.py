"""The process of a warm worker: it answers requests of one team, and keeps what it has read."""

from __future__ import annotations

import contextlib
import json
from multiprocessing.connection import Connection

from django.db import connections

from compaction import tokens
from sessions.actions.lab.draft_figures import DraftFigures

IDLE_SECONDS = 300.0

CANCEL, PREPARE, END = b"cancel", b"prepare", b"end"


def work(given: int, taken: int) -> None:
    """Answer requests until none comes any more."""
    calls, answers = Connection(given, writable=False), Connection(taken, readable=False)
    figures = DraftFigures()
    with contextlib.suppress(EOFError, OSError):
        while not figures.full and calls.poll(IDLE_SECONDS):
            asked = calls.recv_bytes()
            if asked == CANCEL:  # the answer ended before it came
                continue
            if asked == PREPARE:
                tokens.count("")  # loads the vocabulary
                continue
            for line in figures.lines(json.loads(asked)):
                if line is not None:
                    answers.send_bytes(json.dumps(line).encode() + b"\n")
                if calls.poll(0):
                    break
            connections.close_all()
            answers.send_bytes(END)
