"""The product's settings with a job that some sessions kill, and less patience for it."""

from contextlab.settings import *  # noqa: F403
from contextlab.settings import JOB_KINDS

JOB_KINDS = {**JOB_KINDS, "tend": "tests.faults.poison.tend"}
JOB_SECONDS = 1.0
JOB_SECONDS_OF = {}
JOB_RETRY_SECONDS = 0.0
SWEEP_SECONDS = 0.1
