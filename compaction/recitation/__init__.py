"""Recitation at the end of a context."""
