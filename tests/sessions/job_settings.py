"""The product's settings with the kinds of jobs that tests need."""

from contextlab.settings import *  # noqa: F403

_KINDS = ("add", "half", "who", "fail", "panic", "refuse", "leave", "crash", "forever", "until")
_KINDS += ("gorge",)
JOB_KINDS = {kind: f"tests.sessions.job_kinds.{kind}" for kind in _KINDS}
JOB_KINDS["verify"] = "sessions.actions.record.verify.verify"
