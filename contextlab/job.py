"""The job process, which runs one job after another: `python -m contextlab.job`.

It is a separate process because it reads foreign data: it can be killed, and pages stay fast. It
reads lines of "<job id> <token>" from stdin and writes to stdout:

    took                     the attempt begins
    progress                 the job's row has changed
    hint <topic> <version>   for open pages
    wake <job id> <seconds>  for a worker, so many seconds from now
    over | last              the attempt is over and recorded in the job's row; after `last` the
                             process exits, because its memory may be corrupt

It stays running between jobs, because starting takes half a second; its parent ends it.
"""

import ctypes
import os
import queue
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

MOST_JOBS = 1000
"""Jobs per process, to limit the effect of leaks."""

GROWTH_MB = 150
"""Growth in MB since its first job above which it exits after a job instead of waiting for the
next: what a session needs is in memory, and building it again is slow."""


def die_with_parent() -> "queue.SimpleQueue[str]":
    """Exit when the parent process is gone; return the lines of stdin."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # On other systems, or if the parent died before that call: stdin closes.
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_input, args=(lines,), name="parent", daemon=True).start()
    return lines


def _read_input(lines: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(1)


def be_modest() -> None:
    """Lower the process's priority and limit its memory."""
    os.nice(5)
    if sys.platform == "linux":
        import resource

        limit = int(float(os.environ.get("CONTEXTLAB_JOB_MB") or 4096) * 1024 * 1024)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def own_output() -> Callable[[str], None]:
    """Return a function that writes a line to the parent. All other output is dropped, because it
    might be content or look like such a line."""
    to_parent = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

    def say(line: str) -> None:
        os.write(to_parent, f"{line}\n".encode())  # one write, so that lines of threads do not mix

    return say


def memory_mb() -> int:
    """Memory used by this process in MB; 0 if unknown."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024 // 1024


def main() -> None:
    """Run the jobs named on stdin, until the parent ends it or it should exit."""
    lines, say = die_with_parent(), own_output()
    be_modest()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django

    django.setup()
    from django.db import close_old_connections

    from contextlab.garbage import collect_less
    from sessions import live
    from sessions.actions.jobs.attempts import attempt

    live.parent = say
    collect_less()
    first = 0
    for number in range(1, MOST_JOBS + 1):
        job_id, token = lines.get().split()
        say("took")
        unharmed = attempt(uuid.UUID(job_id), uuid.UUID(token))
        close_old_connections()
        first = first or memory_mb()
        if not unharmed or number == MOST_JOBS or memory_mb() > first + GROWTH_MB:
            say("last")
            return
        say("over")


if __name__ == "__main__":
    main()
