"""What a job writes into the logs: ids, its kind and how it ended, never content."""

import logging

from sessions.log_context import with_ids
from sessions.models import Job

log = logging.getLogger(__name__)

REQUEST = "request"
"""Where a job's payload says which request asked for it."""


def ids_of(job: Job) -> dict[str, str]:
    """The ids in the lines of a job: its own, and that of the request that asked for it."""
    asked = job.payload.get(REQUEST)
    return {"job": str(job.pk), **({"request": asked} if asked else {})}


def note_end(job: Job) -> None:
    """Write the line of a job that has ended; called where its error, if any, is handled."""
    with with_ids(**ids_of(job)):
        if job.state == Job.State.FAILED:
            # Of the reason only the class and the place: its sentence may quote content.
            log.warning("%s job ended: failed", job.kind, exc_info=True)
        else:
            log.info("%s job ended: %s", job.kind, job.state)
