"""Signals between subjects; `contextlab.live.followers` registers the receivers."""

from django.dispatch import Signal

members_changed = Signal()
"""Sent in the transaction in which someone's rights in `team` changed or ended."""

budget_passed = Signal()
"""Sent in the transaction in which `use` passed `mark` (permille of its limit), by a call of
`session`."""

breaks_found = Signal()
"""Sent in the transaction that stores figures of `session`: the `breaks` of its newest steps, by
step; also those reported before."""

job_failed = Signal()
"""Sent in the transaction in which `job` failed for good."""

blobs_go = Signal()
"""Sent in the transaction that is about to delete the blobs `shas` of `team`."""
