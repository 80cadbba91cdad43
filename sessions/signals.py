"""Signals between subjects; `contextlab.followers` registers the receivers."""

from django.dispatch import Signal

members_changed = Signal()
"""Sent in the transaction in which someone's rights in `team` changed or ended."""
