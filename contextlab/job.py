"""The process that does one job: `python -m contextlab.job <job id> <token>`.

A process of its own, since what it reads is foreign: it can be killed, and a page stays quick
while it works. Ends with 0 when how the attempt ended is written in the job's row.
"""

import ctypes
import os
import signal
import sys
import threading
import uuid


def die_with_parent() -> None:
    """Makes the system kill this process when the one that started it is gone."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # Elsewhere, and where the parent died before that call: its end of this pipe closes.
    threading.Thread(target=_watch_stdin, name="parent", daemon=True).start()


def be_modest() -> None:
    """Leaves the pages their share of the processor, and the machine its memory."""
    os.nice(5)
    if sys.platform == "linux":
        import resource

        limit = int(float(os.environ.get("CONTEXTLAB_JOB_MB") or 4096) * 1024 * 1024)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _watch_stdin() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def main() -> None:
    """Does the job named on the command line."""
    die_with_parent()
    be_modest()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")
    import django

    django.setup()
    from sessions.actions.attempts import attempt

    attempt(uuid.UUID(sys.argv[1]), uuid.UUID(sys.argv[2]))


if __name__ == "__main__":
    main()
