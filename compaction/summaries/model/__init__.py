"""Summaries by a model: its prompt, and what its answer must contain and may claim."""
