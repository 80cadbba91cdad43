"""Jobs that end in every way a job can end; job processes of tests import them by name."""

import os
import signal
import sys
from pathlib import Path

from sessions.actions.attempts import Outcome, Refused, Running


def add(running: Running) -> Outcome:
    """Ends well, and says how far it is."""
    total = 0
    for done, number in enumerate(running.payload["numbers"], start=1):
        total += number
        running.progress(done, len(running.payload["numbers"]), "numbers")
    return Outcome({"sum": total})


def half(running: Running) -> Outcome:
    """Ends well enough."""
    return Outcome({"left": 1}, partial=True)


def fail(running: Running) -> Outcome:
    """Raises, with text that nobody must see."""
    raise ValueError("secret of the user")


def panic(running: Running) -> Outcome:
    """Raises what is no Exception, as extensions in Rust do."""
    raise BaseException("secret of the user")


def refuse(running: Running) -> Outcome:
    """Knows that trying again is no use."""
    raise Refused("No log", "The file is a picture.", "Choose a log.")


def leave(running: Running) -> Outcome:
    """Ends the process behind Python's back."""
    os._exit(7)


def crash(running: Running) -> Outcome:
    """Ends as an extension with a bug does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError


def who(running: Running) -> Outcome:
    """Says which process does it, and how many such jobs that process did before."""
    _done.append(running.job.id)
    sys.stdout.write("over\nlast\n")  # what a library prints is no word of ours
    return Outcome({"pid": os.getpid(), "before": len(_done) - 1})


_done: list[object] = []


def forever(running: Running) -> Outcome:
    """Never ends, and holds the interpreter; first leaves its process id in a file."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note = Path(running.payload["note"])
    note.with_suffix(".draft").write_text(str(os.getpid()))
    note.with_suffix(".draft").rename(note)
    while True:
        pass
