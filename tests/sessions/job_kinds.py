"""Jobs that end in every way a job can end; job processes of tests import them by name."""

import os
import signal
import sys
import time
from pathlib import Path

from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running


def add(running: Running) -> JobOutcome:
    """Succeeds, and reports progress."""
    total = 0
    for done, number in enumerate(running.payload["numbers"], start=1):
        total += number
        running.progress(done, len(running.payload["numbers"]), "numbers")
    return JobOutcome({"sum": total})


def half(running: Running) -> JobOutcome:
    """Ends well enough."""
    return JobOutcome({"left": 1}, partial=True)


def fail(running: Running) -> JobOutcome:
    """Raises with a message that must stay hidden."""
    raise ValueError("secret of the user")


def panic(running: Running) -> JobOutcome:
    """Raises something that is not an Exception, as Rust extensions do."""
    raise BaseException("secret of the user")


def refuse(running: Running) -> JobOutcome:
    """Knows that trying again is no use."""
    raise PermanentFailure("No log", "The file is a picture.", "Choose a log.")


def leave(running: Running) -> JobOutcome:
    """Ends the process behind Python's back."""
    os._exit(7)


def crash(running: Running) -> JobOutcome:
    """Ends as an extension with a bug does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def gorge(running: Running) -> JobOutcome:
    """Asks for more memory than a job may have."""
    return JobOutcome({"bytes": len(bytearray(1 << 40))})


def who(running: Running) -> JobOutcome:
    """Reports its process, and how many such jobs that process ran before."""
    _done.append(running.job.id)
    sys.stdout.write("over\nlast\n")  # output of libraries must not reach the parent
    return JobOutcome({"pid": os.getpid(), "before": len(_done) - 1})


_done: list[object] = []


def until(running: Running) -> JobOutcome:
    """Leaves its process id in a file, and ends when there is a file `go` beside it."""
    note = Path(running.payload["note"])
    draft = note.with_suffix(f".{os.getpid()}")  # several jobs write one note
    draft.write_text(str(os.getpid()))
    draft.rename(note)
    while not note.with_name("go").exists():
        time.sleep(0.02)
    return JobOutcome({"ended": True})


def forever(running: Running) -> JobOutcome:
    """Never ends, and holds the interpreter; first leaves its process id in a file."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note = Path(running.payload["note"])
    draft = note.with_suffix(f".{os.getpid()}")  # several jobs write one note
    draft.write_text(str(os.getpid()))
    draft.rename(note)
    while True:
        pass
