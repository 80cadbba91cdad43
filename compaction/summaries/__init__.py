"""Summaries of history: what goes in, what must come out, and how good one is."""
