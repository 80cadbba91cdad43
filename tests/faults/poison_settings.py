"""Settings with jobs that fail for certain sessions, and shorter time limits."""

from contextlab.settings import *  # noqa: F403
from contextlab.settings import JOB_KINDS

JOB_KINDS = {
    **JOB_KINDS,
    "tend": "tests.faults.poison.tend",
    "hang": "tests.faults.poison.hang",
}
JOB_SECONDS_OF = {"hang": 1.0}
JOB_RETRY_SECONDS = 0.0
SWEEP_SECONDS = 0.1
