"""The process that does jobs, one after another: `python -m contextlab.job`.

A process of its own, since what it reads is foreign: it can be killed, and a page stays quick
while it works. It takes lines of "<job id> <token>" from its input, and says on its output:

    took                     the attempt begins
    progress                 the job's row has news
    hint <topic> <version>   open pages should hear of this
    wake <job id>            a worker should hear of this
    over | last              the attempt is over and how it ended is written in the job's row;
                             after `last` the process ends, for it may have taken harm

It stays warm in between, as starting costs half a second; whoever started it ends it.
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
"""After so many a fresh process goes on, whatever leaked."""

WARM_MB = 300
"""A process that is larger than this after a job ends instead of waiting for the next one."""


def die_with_parent() -> "queue.SimpleQueue[str]":
    """Makes this process end when the one that started it is gone; the lines of its input."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # Elsewhere, and where the parent died before that call: its end of this pipe closes.
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_input, args=(lines,), name="parent", daemon=True).start()
    return lines


def _read_input(lines: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(1)


def be_modest() -> None:
    """Leaves the pages their share of the processor, and the machine its memory."""
    os.nice(5)
    if sys.platform == "linux":
        import resource

        limit = int(float(os.environ.get("CONTEXTLAB_JOB_MB") or 4096) * 1024 * 1024)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def own_output() -> Callable[[str], None]:
    """What says a line to the parent; whatever else this process prints is dropped, as it might
    be content, or look like a line of ours."""
    to_parent = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)

    def say(line: str) -> None:
        os.write(to_parent, f"{line}\n".encode())  # one write: threads do not mix theirs

    return say


def memory_mb() -> int:
    """What this process holds now, in MB; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024 // 1024


def main() -> None:
    """Does the jobs that its input names, until it is ended or had better be."""
    lines, say = die_with_parent(), own_output()
    be_modest()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django

    django.setup()
    from django.db import close_old_connections

    from contextlab.garbage import collect_less
    from sessions import live
    from sessions.actions.attempts import attempt

    live.parent = say
    collect_less()
    for number in range(1, MOST_JOBS + 1):
        job_id, token = lines.get().split()
        say("took")
        unharmed = attempt(uuid.UUID(job_id), uuid.UUID(token))
        close_old_connections()
        if not unharmed or number == MOST_JOBS or memory_mb() > WARM_MB:
            say("last")
            return
        say("over")


if __name__ == "__main__":
    main()
