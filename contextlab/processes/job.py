"""The job process, which runs one job after another, and what is loaded before it is forked.

It is a separate process because it reads foreign data: it can be killed, and pages stay fast. It
reads lines of "<job id> <token>" and writes:

    took                     the attempt begins
    progress                 the job's row has changed
    hint <topic> <version>   for open pages
    wake <job id> <kind> <seconds>
                             for a worker, so many seconds from now
    result <words>           what the attempt came to, where that is not "done"
    over | last              the attempt is over and recorded in the job's row; after `last` the
                             process exits, because its memory may be corrupt

It stays running between jobs, because what a session needs is in its memory; its parent ends it.
`python -m contextlab.processes.job <descriptor>` is the fork server where none was forked from the
server.
"""

import os
import queue
import socket
import sys
import threading
import uuid
from pathlib import Path

MOST_JOBS = 1000
"""Jobs per process, to limit the effect of leaks."""

GROWTH_MB = 150
"""Growth in MB since its first job above which it exits after a job instead of waiting for the
next: what a session needs is in memory, and building it again is slow."""


def load() -> None:
    """Load what jobs need, so that processes forked from this one share it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection
    from django.utils.module_loading import import_string

    from compaction import tokens
    from compaction.prices import prices
    from contextlab.processes import memory
    from sessions.models.web import statements

    memory.share_heaps()
    for name in settings.JOB_KINDS.values():
        import_string(name)
    tokens.count("")
    prices.price("claude")
    if connection.vendor == "sqlite":
        statements.compose_all()
    memory.collect_less()
    memory.give_back()


def run(given: int, taken: int) -> None:
    """Run the jobs named on one descriptor, reporting to the other, until the parent ends it or it
    should exit."""
    from django.db import close_old_connections

    from contextlab.database import keep_connections
    from contextlab.processes import memory
    from sessions import live
    from sessions.actions.jobs.attempts import attempt

    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(given, lines), name="parent", daemon=True).start()

    def say(line: str) -> None:
        os.write(taken, f"{line}\n".encode())  # one write, so that lines of threads do not mix

    live.parent = say
    keep_connections()
    first = 0
    for number in range(1, MOST_JOBS + 1):
        job_id, token = lines.get().split()
        say("took")
        unharmed = attempt(uuid.UUID(job_id), uuid.UUID(token))
        close_old_connections()  # the next job asks whether the connection still works
        memory.give_back()
        first = first or memory_mb()
        if not unharmed or number == MOST_JOBS or memory_mb() > first + GROWTH_MB:
            say("last")
            return
        say("over")


def _read(given: int, lines: "queue.SimpleQueue[str]") -> None:
    with os.fdopen(given) as file:
        for line in file:
            lines.put(line)
    os._exit(1)  # the parent is gone


def memory_mb() -> int:
    """Memory used by this process in MB; 0 if unknown."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024 // 1024


if __name__ == "__main__":
    load()
    from sessions.actions.web import forks

    forks.serve(socket.socket(fileno=int(sys.argv[1])))
