"""Simulations: policy versions over chosen sessions, asked for and done."""

from __future__ import annotations

MOST_OTHERS = 4
"""Versions beside the draft and the active one."""
