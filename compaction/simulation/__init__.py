"""A policy over a recorded session."""
