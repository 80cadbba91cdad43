"""What forked processes of tests do."""

import os
import subprocess
import sys
import time

loaded = os.getpid()
"""The process that imported this module."""


def answer(given: int, taken: int) -> None:
    """Report itself, its parent, its group, and where this module was loaded; then wait."""
    found = os.getpid(), os.getppid(), os.getpgrp(), loaded
    os.write(taken, (" ".join(map(str, found)) + "\n").encode())
    os.read(given, 1)


def leave(given: int, taken: int) -> None:
    """Exit with a code, after printing what must not appear anywhere."""
    sys.stdout.write("content")
    sys.stdout.flush()
    sys.exit(7)


def parent(given: int, taken: int) -> None:
    """Report a child that hangs, and hang."""
    child = subprocess.Popen(["sleep", "600"])
    os.write(taken, f"{child.pid}\n".encode())
    time.sleep(600)
