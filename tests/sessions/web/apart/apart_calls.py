"""What a process apart is asked to do in tests; it imports them by name."""

import os
import re
import signal
import time


def add(one: int, *, other: int) -> tuple[int, int]:
    """The sum, and the process that made it."""
    return one + other, os.getpid()


def echo(text: str) -> str:
    """The same text."""
    return text


def hang(note: str) -> None:
    """Holds the interpreter in C code, after leaving the process id in a file."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(note, "w") as file:  # noqa: PTH123
        file.write(f"{os.getpid()}\n")
    re.match(r"(a+)+$", "a" * 64 + "!")


def wait(seconds: float) -> int:
    """The process, after a while."""
    time.sleep(seconds)
    return os.getpid()


def fail(text: str) -> None:
    """Raises with words of the content."""
    raise ValueError(text)


def leave() -> None:
    """Ends the process behind Python's back."""
    os._exit(7)
